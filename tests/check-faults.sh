# SPDX-License-Identifier: Apache-2.0
# Allocations and system calls that fail: a sample for a minute; FAULTS=all: all of them (a quarter of an hour).
. tests/lib.sh
case $B in */thread* | */address* | */undefined*) echo 'skipped: not under a sanitizer'; exit 77 ;; esac
command -v python3 >/dev/null || { echo 'skipped: there is no python3'; exit 77; }
if [ "${FAULTS:-}" = all ]; then
	exec python3 tests/faults/walk.py "$B" --all
fi
exec python3 tests/faults/walk.py "$B" --budget 60
