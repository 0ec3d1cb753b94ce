#!/bin/sh
# links.sh LAUNCHER SHIM: the privileged half consists of libc and isle's own lowest layers, and loads
# nothing at run time.
set -eu
for program in "$@"; do
    if readelf -d "$program" | grep -q NEEDED; then
        echo "$program needs shared libraries:"
        readelf -d "$program" | grep NEEDED
        exit 1
    fi
done
# names of what it must not contain: other layers, and what they use
if nm "$1" | grep -E ' [TtDdBb] (yyjson|json_|frame_(encode|feed|next|decoder)|utf8_|seccomp_(rule|load)|sqlite3|SSL_|curl_|policy_names|job_|loop_|limits_)'; then
    exit 1
fi
# the shim has no libc either: nothing is left to resolve, and it stays within a few pages
test -z "$(nm -u "$2")"
test "$(stat -c %s "$2")" -lt 16384
