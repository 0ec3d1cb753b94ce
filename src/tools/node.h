// node.h: a workflow's code node: a function main(inputs), and outputs of declared types.
#ifndef ISLE_TOOLS_NODE_H
#define ISLE_TOOLS_NODE_H

#include "base/buf.h"

#include <stddef.h>

#include <yyjson.h>

enum {
    NODE_OUTPUTS_MAX = 100,
    NODE_TYPE_DEPTH_MAX = 16, // of typeSpec
};

// Are these declared outputs sound ([{name, type, typeSpec?}])? Each fault is appended to `faults`
// as "outputs[1].type: ...". 0 or -EINVAL.
int node_declared_check(yyjson_val *outputs, struct buf *faults);

// What main returned, held against the declared outputs: appends the outputs (JSON object, digits
// as they came) to `out`. A value that is no object is {"result": value}. Each mismatch by its path
// ("outputs.rows[3].price: number expected, got string"). 0, -EINVAL with faults, or -ENOMEM.
int node_outputs(yyjson_val *declared, yyjson_val *returned, struct buf *out, struct buf *faults);

#endif
