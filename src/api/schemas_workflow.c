// schemas_workflow.c: the code node of a workflow.
#include "api/schema.h"
#include "api/workflow.h"

#include "base/fd.h"
#include "model/job.h"
#include "tools/node.h"

static const struct schema_field code_node_input[] = {
    {.name = "name",
     .type = SCHEMA_TEXT,
     .required = true,
     .min = 1,
     .max = NODE_NAME_MAX,
     .help = "a member of what main is given; no two of one name"},
    {.name = "value", .type = SCHEMA_ANY, .required = true, .help = "its value"},
};
SCHEMA_REQUEST(code_node_input, "CodeNodeInput", "One input of a code node.");

static const struct schema_field code_node_output[] = {
    {.name = "name",
     .type = SCHEMA_TEXT,
     .required = true,
     .min = 1,
     .max = NODE_NAME_MAX,
     .help = "a member of what main returns; no two of one name"},
    {.name = "type",
     .type = SCHEMA_TEXT,
     .required = true,
     .help = "string, number, integer, boolean, object, array, any or array[TYPE]"},
    {.name = "typeSpec",
     .type = SCHEMA_ANY,
     .help = "more of it: a type's name, or an object of type, properties, required, items, enum, "
             "nullable, description (docs/workflow.md)"},
};
SCHEMA_REQUEST(code_node_output, "CodeNodeOutput", "One declared output of a code node.");

#define CODE_NODE_OUTPUTS                                                                          \
    {                                                                                              \
        .name = "outputs", .type = SCHEMA_ARRAY, .items = SCHEMA_OBJECT,                           \
        .of = &schema_code_node_output, .max = NODE_OUTPUTS_MAX, .judged = true, .initial = "[]",  \
        .help = "what main must return, up to 64 KiB; empty: anything"                             \
    }

// `inputs` and `outputs` are judged by tools/node.h and api/workflow_read.c, which name each fault
// by its path, as :validate does.
static const struct schema_field code_node[] = {
    {.name = "language",
     .type = SCHEMA_TEXT,
     .choices = snippet_languages,
     .required = true,
     .help = "of the code"},
    {.name = "code",
     .type = SCHEMA_TEXT,
     .required = true,
     .max = JOB_MAX_CODE_BYTES,
     .help = "defines main(inputs)"},
    {.name = "inputs",
     .type = SCHEMA_OBJECT_OR_LIST,
     .of = &schema_code_node_input,
     .max = WORKFLOW_INPUTS_MAX,
     .judged = true,
     .initial = "{}",
     .help = "what main is given, digit for digit; up to 8 MiB"},
    CODE_NODE_OUTPUTS,
    {.name = "timeout",
     .type = SCHEMA_INT,
     .min = 1,
     .max = JOB_MAX_EXECUTE_SECONDS,
     .initial = "30",
     .help = "seconds; limits.timeout_seconds comes first"},
    {.name = "limits", .type = SCHEMA_LIMITS, .initial = "{}", .help = "what it may use"},
};
SCHEMA_REQUEST(code_node, "CodeNode", "A code node and its inputs.");

static const struct schema_field code_node_answer[] = {
    {.name = "outputs",
     .type = SCHEMA_OBJECT,
     .required = true,
     .null = true,
     .help = "what main returned, the declared names only; null without success"},
    {.name = "error",
     .type = SCHEMA_TEXT,
     .required = true,
     .null = true,
     .help = "one line for a person; of outputs that do not fit, each by its path"},
    {.name = "logs",
     .type = SCHEMA_TEXT,
     .required = true,
     .null = true,
     .help = "stdout without its last line end; null when empty"},
    {.name = "success",
     .type = SCHEMA_BOOL,
     .required = true,
     .help = "main returned what is declared"},
    {.name = "reason",
     .type = SCHEMA_TEXT,
     .required = true,
     .help = "`ok`, `error`, `timeout` ...: docs/jobs.md has the list"},
    {.name = "job_id",
     .type = SCHEMA_TEXT,
     .form = SCHEMA_FORM_ID,
     .required = true,
     .help = "of the job that this was"},
    {.name = "duration_ms", .type = SCHEMA_INT, .required = true, .help = "from queued to ended"},
    {.name = "undeclared",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_TEXT,
     .required = true,
     .help = "names that main returned and nothing declares: they are not passed on"},
    {.name = "stderr",
     .type = SCHEMA_TEXT,
     .required = true,
     .help = "its head, as UTF-8: of an error the traceback"},
};
SCHEMA_ANSWER(code_node_answer, "CodeNodeAnswer", "How a code node ended.");

static const struct schema_field code_node_check_input[] = {
    {.name = "name",
     .type = SCHEMA_TEXT,
     .required = true,
     .min = 1,
     .max = NODE_NAME_MAX,
     .help = "a member of what main is given; no two of one name"},
    {.name = "value", .type = SCHEMA_ANY, .help = "its value, if it has one yet"},
};
SCHEMA_REQUEST(code_node_check_input, "CodeNodeCheckInput", "One input of a code node.");

// What schema_code_node has, which tells the faults: here all are taken, as they are the answer.
static const struct schema_field code_node_check[] = {
    {.name = "language",
     .type = SCHEMA_TEXT,
     .choices = snippet_languages,
     .judged = true,
     .help = "of the code; must be there to be right"},
    {.name = "code",
     .type = SCHEMA_TEXT,
     .max = JOB_MAX_CODE_BYTES,
     .judged = true,
     .help = "defines main(inputs); must be there to be right"},
    {.name = "inputs",
     .type = SCHEMA_OBJECT_OR_LIST,
     .of = &schema_code_node_check_input,
     .max = WORKFLOW_INPUTS_MAX,
     .judged = true,
     .initial = "{}",
     .help = "what main will be given"},
    CODE_NODE_OUTPUTS,
    {.name = "timeout",
     .type = SCHEMA_INT,
     .min = 1,
     .max = JOB_MAX_EXECUTE_SECONDS,
     .judged = true,
     .initial = "30",
     .help = "seconds; limits.timeout_seconds comes first"},
    {.name = "limits",
     .type = SCHEMA_LIMITS,
     .judged = true,
     .initial = "{}",
     .help = "what it may use"},
};
const struct schema schema_code_node_check = {
    .name = "CodeNodeCheck",
    .help = "A code node, right or wrong.",
    .fields = code_node_check,
    .n_fields = ARRAY_LEN(code_node_check),
    .open = true,
};

static const struct schema_field code_node_fault[] = {
    {.name = "field",
     .type = SCHEMA_TEXT,
     .required = true,
     .help = "of the request: `inputs[1].name`"},
    {.name = "message", .type = SCHEMA_TEXT, .required = true, .help = "what is wrong with it"},
    {.name = "line",
     .type = SCHEMA_INT,
     .required = true,
     .null = true,
     .help = "of the code, from 1; null: none in particular"},
};
SCHEMA_ANSWER(code_node_fault, "CodeNodeFault", "What is wrong with a code node.");

static const struct schema_field code_node_verdict[] = {
    {.name = "valid", .type = SCHEMA_BOOL, .required = true, .help = "nothing was found"},
    {.name = "errors",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_OBJECT,
     .of = &schema_code_node_fault,
     .required = true,
     .help = "every fault that was found"},
};
SCHEMA_ANSWER(code_node_verdict, "CodeNodeVerdict",
              "What can be said of a code node without running it.");
