#!/bin/bash
# A service from the shell: run a snippet, hand in a job and follow it, work in a session. `isle serve` starts one.
#
#   ISLE_URL  where it is (http://127.0.0.1:4753)      ISLE_KEY  who asks, where the service wants a key
set -euo pipefail
url=${ISLE_URL:-http://127.0.0.1:4753}

# ask METHOD PATH [CURL OPTION...]: the answer's body. Anything but success ends the script.
ask() {
    local method=$1 path=$2
    shift 2
    curl --silent --show-error --fail-with-body --request "$method" \
        ${ISLE_KEY:+--header "Authorization: Bearer $ISLE_KEY"} "$@" "$url/api/v1$path"
}

# field NAME: of the `data` of the answer on standard input.
field() { python3 -c 'import json, sys; print(json.load(sys.stdin)["data"][sys.argv[1]])' "$1"; }

echo "A snippet, while we wait:"
ask POST /tools/execute-code --json '{"language": "python", "code": "return params[\"a\"] + 1", "params": {"a": 41}}' |
    field result

echo "A job that goes on without us, then its events:"
job=$(ask POST /sandbox/jobs --json '{"command": ["sh", "-c", "echo one; sleep 0.2; echo two"]}' | field job_id)
ask GET "/sandbox/jobs/$job/events" --no-buffer | sed -n 's/^data: {"offset".*"text":\(.*\)}$/\1/p'
ask GET "/sandbox/jobs/$job" | field status

echo "A session: a file goes in, a job works on it, a file comes out:"
session=$(ask POST /sandbox/sessions --json '{"ttl_hours": 1}' | field session_id)
printf '3\n1\n2\n' | ask PUT "/sandbox/sessions/$session/files/input/numbers" --data-binary @- \
    --header 'Content-Type: application/octet-stream' >/dev/null
ask POST '/sandbox/jobs?wait=20' --json "{\"session_id\": \"$session\",
    \"command\": [\"sh\", \"-c\", \"sort input/numbers > output/sorted\"]}" | field status
ask GET "/sandbox/sessions/$session/files/output/sorted"
ask DELETE "/sandbox/sessions/$session" >/dev/null
