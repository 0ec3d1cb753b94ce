#include "cli/remote_verbs.h"

#include "base/fd.h"

#define AT(field) offsetof(struct remote_options, field)

#define COMMON                                                                                     \
    {"--url", NULL, "URL", OPTION_TEXT, AT(url), REMOTE_URL_HELP, NULL},                           \
        {"--key", NULL, "KEY", OPTION_TEXT, AT(key), REMOTE_KEY_HELP, NULL},                       \
        {"--json",    NULL,     NULL,                                                              \
         OPTION_FLAG, AT(json), "the service's own answer: one document, or one a line",           \
         NULL},                                                                                    \
        VERB_HELP(struct remote_options, help)

#define PLAIN_NOTE                                                                                 \
    "At a terminal lists are tables with a head; elsewhere a tab stands between columns."

static const struct verb_status statuses[] = {
    {"0", "done"},
    {"125", "refused, not there, no service, an answer that is none"},
    {"130", "Ctrl-C and the like"},
    {NULL, NULL},
};

// ---- isle jobs

static const struct option jobs_options[] = {
    {"--status", NULL, "STATUS", OPTION_TEXT, AT(status), "list: only those with this status",
     "queued preparing running collecting completed failed cancelled"},
    {"--limit", NULL, "N", OPTION_TEXT, AT(limit), "list: so many at most", NULL},
    {"--cursor", NULL, "CURSOR", OPTION_TEXT, AT(cursor),
     "list: goes on where the list before ended, as that said", NULL},
    {"--wait", NULL, "SECONDS", OPTION_TEXT, AT(wait),
     "submit: waits so long for the job's end before it answers", NULL},
    {"--idempotency-key", NULL, "TEXT", OPTION_TEXT, AT(idempotency_key),
     "submit: the same text and job again is the same job, not a second one", NULL},
    COMMON,
};

static const struct remote_action jobs_actions[] = {
    {"list", "", "--status --limit --cursor", NULL},
    {"show", "JOB", "", NULL},
    {"submit", "FILE", "--wait --idempotency-key", NULL},
    {"wait", "JOB", "", NULL},
    {"events", "JOB", "", NULL},
    {"cancel", "JOB", "", NULL},
    {},
};

static const struct verb_form jobs_forms[] = {
    {"[list] [--status STATUS] [--limit N]", "your team's jobs, newest first"},
    {"show JOB", "one job's result, as far as it is"},
    {"submit [--wait SECONDS] FILE", "a job as JSON, - for standard input; prints its id"},
    {"wait JOB", "waits for its end; ends as isle run does"},
    {"events JOB", "what happens to it, as it happens"},
    {"cancel JOB", "ends it; harmless when it has ended"},
    {NULL, NULL},
};

static const struct verb_status jobs_statuses[] = {
    {"0", "done"},
    {"125", "refused, not there, no service, an answer that is none"},
    {"130", "Ctrl-C and the like; the job goes on"},
    {"any", "of wait, and of submit --wait once the job has ended: as isle run"},
    {NULL, NULL},
};

static const char *const jobs_examples[] = {
    "isle jobs list --status running",
    "echo '{\"language\": \"python\", \"code\": \"return 42\"}' | isle jobs submit -",
    "isle jobs wait 0199f3a2-5a9d-7c41-9d7c-3f1b2a4c5d6e",
    NULL,
};

const struct verb verb_jobs = {
    .name = "jobs",
    .summary = "list, submit, follow and cancel jobs of a service",
    .forms = jobs_forms,
    .about = "Jobs of a service (isle serve): a job that it has accepted goes on without you.",
    .notes = PLAIN_NOTE "\nisle run --url runs a job there as isle run does here.",
    .options = jobs_options,
    .n_options = ARRAY_LEN(jobs_options),
    .operands = "list show submit wait events cancel",
    .file_words = "submit",
    .statuses = jobs_statuses,
    .examples = jobs_examples,
    .options_of = remote_options_of,
};

// ---- isle sessions

static const struct option sessions_options[] = {
    {"--conversation", NULL, "ID", OPTION_TEXT, AT(conversation),
     "create: the same conversation, agent and user again is the same session", NULL},
    {"--agent", NULL, "ID", OPTION_TEXT, AT(agent), "create: which agent of the conversation",
     NULL},
    {"--user", NULL, "ID", OPTION_TEXT, AT(user), "create: which user", NULL},
    {"--ttl", NULL, "HOURS", OPTION_TEXT, AT(ttl),
     "create, extend: how long it lives from now on, 1 to 720 hours", NULL},
    {"--limit", NULL, "N", OPTION_TEXT, AT(limit), "list: so many at most", NULL},
    {"--cursor", NULL, "CURSOR", OPTION_TEXT, AT(cursor),
     "list: goes on where the list before ended, as that said", NULL},
    COMMON,
};

static const struct remote_action sessions_actions[] = {
    {"list", "", "--limit --cursor", NULL},
    {"create", "", "--conversation --agent --user --ttl", NULL},
    {"show", "SESSION", "", NULL},
    {"extend", "SESSION", "--ttl", NULL},
    {"delete", "SESSION", "", NULL},
    {},
};

static const struct verb_form sessions_forms[] = {
    {"[list]", "your team's sessions"},
    {"create [--ttl HOURS] [--conversation ID]", "makes one; prints its id"},
    {"show SESSION", "one session"},
    {"extend [--ttl HOURS] SESSION", "gives it more time"},
    {"delete SESSION", "ends it; its files are removed"},
    {NULL, NULL},
};

static const char *const sessions_examples[] = {
    "session=$(isle sessions create --ttl 2)",
    "isle run --session \"$session\" -l bash -c 'date >> log'",
    "isle sessions delete \"$session\"",
    NULL,
};

const struct verb verb_sessions = {
    .name = "sessions",
    .summary = "make, list and end sessions of a service",
    .forms = sessions_forms,
    .about = "Sessions of a service (isle serve): a /workspace that stays from job to job.",
    .notes = PLAIN_NOTE "\nJobs of one session run one at a time, in order.",
    .options = sessions_options,
    .n_options = ARRAY_LEN(sessions_options),
    .operands = "list create show extend delete",
    .statuses = statuses,
    .examples = sessions_examples,
    .options_of = remote_options_of,
};

// ---- isle files

static const struct option files_options[] = {
    {"--recursive", "-r", NULL, OPTION_FLAG, AT(recursive), "list: folders within folders too",
     NULL},
    {"--new", NULL, NULL, OPTION_FLAG, AT(new), "put: refused when the name is taken", NULL},
    {"--if-match", NULL, "SHA256", OPTION_TEXT, AT(if_match),
     "put, delete: only if the file's content still has this checksum", NULL},
    {"--replace", NULL, NULL, OPTION_FLAG, AT(replace), "move: in place of a file that is there",
     NULL},
    COMMON,
};

static const struct remote_action files_actions[] = {
    {"list", "SESSION[:PATH]", "--recursive", NULL},
    {"get", "SESSION:PATH [LOCAL]", "", NULL},
    {"put", "LOCAL SESSION:PATH", "--new --if-match", NULL},
    {"delete", "SESSION:PATH", "--if-match", NULL},
    {"move", "SESSION:PATH PATH", "--replace", NULL},
    {},
};

static const struct verb_form files_forms[] = {
    {"list [-r] SESSION:PATH", "what is in a folder; without :PATH in /workspace"},
    {"get SESSION:PATH [LOCAL]", "copies a file here; - is standard output"},
    {"put LOCAL SESSION:PATH", "copies a file there; - is standard input"},
    {"delete SESSION:PATH", "removes a file, or a folder with what is in it"},
    {"move SESSION:PATH PATH", "gives it another name in the same session"},
    {NULL, NULL},
};

static const char *const files_examples[] = {
    "isle files put data.csv \"$session:input/data.csv\"",
    "isle files list -r \"$session\"",
    "isle files get \"$session:output/plot.png\"",
    NULL,
};

const struct verb verb_files = {
    .name = "files",
    .summary = "list, get, put, move and delete files of a session",
    .forms = files_forms,
    .about = "Files of a session: PATH is relative to its /workspace.",
    .notes = PLAIN_NOTE "\nFiles arrive whole or not at all, with the checksum compared. A folder "
                        "comes as an archive, NAME.zip.",
    .options = files_options,
    .n_options = ARRAY_LEN(files_options),
    .operands = "list get put delete move",
    .file_words = "get put",
    .statuses = statuses,
    .examples = files_examples,
    .options_of = remote_options_of,
};

// ---- isle artifacts

static const struct option artifacts_options[] = {
    {"--output-dir", NULL, "DIR", OPTION_TEXT, AT(output_dir),
     "get: where they go, under their path in /workspace; must be given", VALUES_FOLDER},
    COMMON,
};

static const struct remote_action artifacts_actions[] = {
    {"list", "JOB", "", NULL},
    {"get", "JOB [NAME]", "--output-dir", "--output-dir"},
    {},
};

static const struct verb_form artifacts_forms[] = {
    {"list JOB", "what a job left"},
    {"get --output-dir DIR JOB [NAME]", "copies one of them, or all, here"},
    {NULL, NULL},
};

static const char *const artifacts_examples[] = {
    "isle artifacts list 0199f3a2-5a9d-7c41-9d7c-3f1b2a4c5d6e",
    "isle artifacts get --output-dir results 0199f3a2-5a9d-7c41-9d7c-3f1b2a4c5d6e",
    NULL,
};

const struct verb verb_artifacts = {
    .name = "artifacts",
    .summary = "list and get the files that a job left",
    .forms = artifacts_forms,
    .about = "Artifacts: files that a job named and left, kept as long as its result.",
    .notes = PLAIN_NOTE "\nNo link in DIR is followed; a file that is there is replaced.",
    .options = artifacts_options,
    .n_options = ARRAY_LEN(artifacts_options),
    .operands = "list get",
    .statuses = statuses,
    .examples = artifacts_examples,
    .options_of = remote_options_of,
};

// ---- isle tools

static const struct option tools_options[] = {
    {"--name", NULL, "NAME", OPTION_TEXT, AT(name),
     "create, update: what models and callers call it: letters, digits, _", NULL},
    {"--description", NULL, "TEXT", OPTION_TEXT, AT(description),
     "create, update: what it does, for a model to read", NULL},
    {"--parameter", "-p", "SPEC", OPTION_LIST, AT(parameters),
     "create, update: NAME[:TYPE[:CHOICE,CHOICE]][!][=DEFAULT][ # TEXT], see above", NULL},
    {"--language", "-l", "LANG", OPTION_TEXT, AT(language),
     "create, update: FILE is code, python or javascript; else its extension says it",
     "python javascript"},
    {"--artifact", NULL, "PATH[?]", OPTION_LIST, AT(artifacts),
     "create, update: a file the code makes; with ? it may be missing", NULL},
    {"--timeout", NULL, "SECONDS", OPTION_TEXT, AT(timeout),
     "create, update: of every call, 1 to 600; run: of this one, if the tool has none", NULL},
    {"--if-version", NULL, "N", OPTION_TEXT, AT(if_version),
     "update: only if the tool is still at this version", NULL},
    {"--permission", NULL, "WORD", OPTION_TEXT, AT(permission), "share: must be given",
     "read_only read_execute"},
    {"--arguments", NULL, "FILE", OPTION_TEXT, AT(arguments),
     "run: an object as JSON, - for standard input, or {...} itself; NAME=VALUE counts more",
     VALUES_FILE},
    {"--session", NULL, "ID", OPTION_TEXT, AT(session), "run: in that session's /workspace", NULL},
    {"--output-dir", NULL, "DIR", OPTION_TEXT, AT(output_dir),
     "run: where artifacts go, under their path in /workspace", VALUES_FOLDER},
    {"--format", NULL, "NAME", OPTION_TEXT, AT(format),
     "schemas: as whose function schemas; openai unless told", "openai anthropic mcp"},
    {"--shared", NULL, NULL, OPTION_FLAG, AT(shared),
     "schemas: with those that other teams share with yours: their texts reach your model", NULL},
    {"--on-conflict", NULL, "WORD", OPTION_TEXT, AT(on_conflict),
     "import: what becomes of a name that is taken; refuse (all of them) unless told",
     "refuse skip replace"},
    {"--limit", NULL, "N", OPTION_TEXT, AT(limit), "list: so many at most", NULL},
    {"--cursor", NULL, "CURSOR", OPTION_TEXT, AT(cursor),
     "list: goes on where the list before ended, as that said", NULL},
    COMMON,
};

#define DEFINES "--name --description --parameter --language --artifact --timeout"

static const struct remote_action tools_actions[] = {
    {"list", "", "--limit --cursor", NULL},
    {"show", "TOOL", "", NULL},
    {"create", "FILE", DEFINES, NULL},
    {"update", "TOOL [FILE]", DEFINES " --if-version", NULL},
    {"delete", "TOOL", "", NULL},
    {"enable", "TOOL", "", NULL},
    {"disable", "TOOL", "", NULL},
    {"share", "TOOL TEAM", "--permission", "--permission"},
    {"unshare", "TOOL TEAM", "", NULL},
    {"shares", "TOOL", "", NULL},
    {"versions", "TOOL [VERSION]", "", NULL},
    {"restore", "TOOL VERSION", "", NULL},
    {"run", "TOOL [NAME=VALUE...]", "--arguments --session --timeout --output-dir", NULL},
    {"schemas", "", "--format --shared", NULL},
    {"export", "[TOOL]", "", NULL},
    {"import", "FILE", "--on-conflict", NULL},
    {},
};

static const struct verb_form tools_forms[] = {
    {"[list]", "your team's tools, and those shared with it"},
    {"show TOOL", "one tool: parameters, code, limits"},
    {"create FILE [--name NAME] ...", "saves one: code, or a definition as JSON; prints its id"},
    {"update TOOL [FILE] ...", "changes it: its code, or what a definition or option says"},
    {"delete TOOL", "removes it, its versions and shares"},
    {"enable TOOL", "makes it callable again"},
    {"disable TOOL", "it is in no schema and cannot be called until then"},
    {"share TOOL TEAM --permission WORD", "lets another team read it, or read and run it"},
    {"unshare TOOL TEAM", "ends that"},
    {"shares TOOL", "with whom it is shared"},
    {"versions TOOL [VERSION]", "what it was before; one of them whole"},
    {"restore TOOL VERSION", "makes an old version the newest"},
    {"run TOOL [NAME=VALUE ...]", "calls it; ends as isle run does"},
    {"schemas [--format NAME]", "function schemas for a model, as JSON"},
    {"export [TOOL]", "all your team's tools, or one, as JSON"},
    {"import FILE", "saves what export gave; all or nothing"},
    {NULL, NULL},
};

static const char *const tools_examples[] = {
    "isle tools create greet.py --name greet -p name:string! -p 'times:integer=1 # how often'",
    "isle tools run greet name=Ada times=2",
    "isle tools schemas --format anthropic",
    "isle tools export | isle tools import - --url https://other.example --on-conflict skip",
    NULL,
};

static const struct verb_status tools_statuses[] = {
    {"0", "done"},
    {"125", "refused, not there, no service, an answer that is none"},
    {"130", "Ctrl-C and the like; a tool that runs is cancelled"},
    {"any", "of run, once the tool has run: as isle run"},
    {NULL, NULL},
};

const struct verb verb_tools = {
    .name = "tools",
    .summary = "save, call, share and move code tools of a service",
    .forms = tools_forms,
    .about = "Code tools of a service (isle serve): code with a name and parameters, for models.",
    .notes = PLAIN_NOTE
    "\nTOOL is a name or an id. A name that two other teams share with yours needs the id."
    "\nFILE that ends in .json, or - without --language, is a definition; code ends in .py, .js, "
    ".mjs"
    "\nor .cjs, or has --language. Each top level runs at a call, with `params`, and returns."
    "\nSPEC is a parameter: `name:string!` must be given, `n:integer=3` has a default,"
    "\n`unit:string:C,F=C` is one of these, `tags:string[]` is a list, `x:number # text` says what"
    "\nit is. Types: string (unless told) number integer boolean object array."
    "\nVALUE of a string is taken as it is, of any other type as JSON: `n=3`, "
    "`tags='[\"a\",\"b\"]'`.",
    .options = tools_options,
    .n_options = ARRAY_LEN(tools_options),
    .operands = "list show create update delete enable disable share unshare shares versions "
                "restore run schemas export import",
    .file_words = "create update import",
    .statuses = tools_statuses,
    .examples = tools_examples,
    .options_of = remote_options_of,
};

// ---- isle key

static const struct option key_options[] = {
    {"--team", NULL, "TEAM", OPTION_TEXT, AT(team),
     "create: whose key it is, must be given; list: only that team's", NULL},
    {"--name", NULL, "NAME", OPTION_TEXT, AT(name), "create: what it is for; must be given", NULL},
    {"--admin", NULL, NULL, OPTION_FLAG, AT(admin), "create: may make and revoke keys", NULL},
    {"--limit", NULL, "N", OPTION_TEXT, AT(limit), "list: so many at most", NULL},
    {"--cursor", NULL, "CURSOR", OPTION_TEXT, AT(cursor),
     "list: goes on where the list before ended, as that said", NULL},
    COMMON,
};

static const struct remote_action key_actions[] = {
    {"list", "", "--team --limit --cursor", NULL},
    {"create", "", "--team --name --admin", "--team --name"},
    {"revoke", "ID", "", NULL},
    {},
};

static const struct verb_form key_forms[] = {
    {"[list] [--team TEAM] [--limit N]", "keys, by their ids, oldest first"},
    {"create --team TEAM --name NAME [--admin]", "makes one; prints it once"},
    {"revoke ID", "makes it worthless"},
    {NULL, NULL},
};

static const char *const key_examples[] = {
    "export ISLE_KEY=$(isle key create --team me --name laptop)",
    "isle key list",
    "isle key revoke 9f86d081884c7d65",
    NULL,
};

const struct verb verb_key = {
    .name = "key",
    .summary = "make, list and revoke keys of a service",
    .forms = key_forms,
    .about =
        "Keys of a service (isle serve): each belongs to a team, and jobs to their key's team.",
    .notes = PLAIN_NOTE "\nNeeds an admin's key, or none on the service's own host, through its "
                        "socket.",
    .options = key_options,
    .n_options = ARRAY_LEN(key_options),
    .operands = "list create revoke",
    .statuses = statuses,
    .examples = key_examples,
    .options_of = remote_options_of,
};

const struct remote_verb remote_verbs[] = {
    {&verb_jobs, jobs_actions},   {&verb_sessions, sessions_actions},
    {&verb_files, files_actions}, {&verb_artifacts, artifacts_actions},
    {&verb_tools, tools_actions}, {&verb_key, key_actions},
};
const size_t n_remote_verbs = ARRAY_LEN(remote_verbs);
