# SPDX-License-Identifier: Apache-2.0
# Sourced by tests/check-*.sh: $B is the build folder, $tmp a folder of this test's own.
B=$1
case $B in /*) ;; *) B=$PWD/$B ;; esac
G=$B/gpuloom
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failures=0

fail() {
	echo "FAILED: $*"
	failures=$((failures + 1))
}

# expect STATUS PATTERN COMMAND...: exit status and an extended regex that stderr or stdout contains.
expect() {
	want=$1 pattern=$2
	shift 2
	timeout 60 "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	got=$?
	if [ "$got" -ne "$want" ]; then
		fail "exit $got instead of $want: $*"
		sed 's/^/    /' "$tmp/err"
	elif [ -n "$pattern" ] && ! cat "$tmp/out" "$tmp/err" | grep -qE -- "$pattern"; then
		fail "no '$pattern' in the output of: $*"
		sed 's/^/    /' "$tmp/err"
	fi
}

# A conf that runs another program.
exec_conf() { # FILE COMMAND
	cat >"$1" <<INI
[run]
workload = exec
devices = cpu:0
[device.cpu]
workers = 1
[transport]
use = host
[workload.exec]
command = "$2"
INI
}

finish() {
	[ "$failures" -eq 0 ] && exit 0
	echo "$failures failures"
	exit 1
}
