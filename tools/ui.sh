# shellcheck shell=bash
# Progress and errors for the scripts of this repository. Colours only on a terminal.

if [ -t 2 ] && [ "${TERM:-dumb}" != dumb ] && [ -z "${NO_COLOR:-}" ]; then
    ui_bold=$'\e[1m' ui_red=$'\e[31m' ui_green=$'\e[32m' ui_dim=$'\e[2m' ui_off=$'\e[0m'
else
    ui_bold='' ui_red='' ui_green='' ui_dim='' ui_off=''
fi

# say TEXT: a heading.
say() { printf '%s==> %s%s\n' "$ui_bold" "$*" "$ui_off" >&2; }

# note TEXT: a detail under the last heading.
note() { printf '%s    %s%s\n' "$ui_dim" "$*" "$ui_off" >&2; }

# good TEXT: something that was asked for is now true.
good() { printf '%s    %s%s\n' "$ui_green" "$*" "$ui_off" >&2; }

# die TEXT [ADVICE]: what went wrong, and what to do next.
die() {
    printf '%serror: %s%s\n' "$ui_red" "$1" "$ui_off" >&2
    [ $# -lt 2 ] || printf '       %s\n' "$2" >&2
    exit 1
}

# quietly LOG COMMAND...: the output goes to LOG; on failure its end is shown.
quietly() {
    local log=$1
    shift
    mkdir -p "$(dirname "$log")"
    if ! "$@" >"$log" 2>&1 </dev/null; then
        printf '%s' "$ui_red" >&2
        tail -n 30 "$log" >&2
        printf '%s' "$ui_off" >&2
        printf 'error: failed: %s\n       the whole output is in %s\n' "$*" "$log" >&2
        return 1
    fi
}
