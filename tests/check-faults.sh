# SPDX-License-Identifier: Apache-2.0
# Lets allocations and system calls fail. `make check` tests a random choice of calls for half a minute, and `make check-all` for
# a minute. FAULTS=all tests all calls, in a quarter of an hour.
. tests/lib.sh
case $B in */thread* | */address* | */undefined*) skip 'not under a sanitizer' ;; esac
need python3
if [ "${FAULTS:-}" = all ]; then
	exec python3 tests/faults/walk.py "$B" --all
fi
[ "$CHECK" = all ] && budget=60 || budget=30
exec python3 tests/faults/walk.py "$B" --budget $budget
