// node.h: a workflow's code node: what its outputs are declared to be, and whether what main
// returned is so.
//
// A declaration is [{name, type, typeSpec?}]. Types: string, number, integer, boolean, object,
// array, any, and array[TYPE], also within each other. A typeSpec says more of a value:
//   spec       = a type's name, or an object of
//   type       : a type's name; absent: object where there are properties or required, array where
//                there are items, else any
//   properties : {name: spec}, of an object; others than these may be there
//   required   : [name], of an object
//   items      : spec, of an array
//   enum       : [scalar], written as they are in the value: 1 is not 1.0
//   nullable   : true or false; null is of no type but any
//   description: text
// An integer is written without fraction and exponent.
#ifndef ISLE_TOOLS_NODE_H
#define ISLE_TOOLS_NODE_H

#include "base/buf.h"

#include <stddef.h>

#include <yyjson.h>

enum {
    NODE_OUTPUTS_MAX = 100,
    NODE_NAME_MAX = 256,            // bytes of an output's name
    NODE_DECLARED_BYTES = 64 << 10, // of all declarations, as compact JSON
    NODE_TYPE_DEPTH_MAX = 16,       // of typeSpec; of array[...]
    NODE_LIST_MAX = 100,            // properties, required, enum: of each
    NODE_FAULTS_MAX = 20,
    NODE_UNDECLARED_MAX = 100, // that are named
};

// Faults are lines "PATH\tWHAT", '\n' between them; after NODE_FAULTS_MAX "and more". A path may
// hold ": ", and no control character.

// Are these declared outputs sound? NULL and null are: nothing is declared. 0, -EINVAL with faults,
// or -ENOMEM.
int node_declared_check(yyjson_val *declared, struct buf *faults);

// What main returned, held against declarations that are sound: appends the outputs (JSON object,
// digits as they came) to `out`, the names that nothing declares (JSON array) to `undeclared`. A
// value that is no object is {"result": value}; where nothing is declared, all is passed on. Each
// mismatch by its path ("outputs.rows[3].price\tnumber expected, got string"). 0, -EINVAL with
// faults, or -ENOMEM; then what was appended is nothing to use.
int node_outputs(yyjson_val *declared, yyjson_val *returned, struct buf *out,
                 struct buf *undeclared, struct buf *faults);

#endif
