# SPDX-License-Identifier: Apache-2.0
# The models of the trigger FIFO, of cancelling and of the table of trigger_proxy hold, and each seeded fault is found in them.
. tests/lib.sh
command -v spin >/dev/null || {
	echo 'skipped: spin is not installed'
	exit 77
}
# search MODEL CLAIM OPTIONS...: 0 when the search is complete without an error.
search() {
	model=$PWD/tests/models/$1.pml claim=$2
	shift 2
	rm -rf "$tmp/run" && mkdir "$tmp/run"
	(cd "$tmp/run" && spin -a "$@" "$model" >spin.out 2>&1 && gcc -O2 -w -DNFAIR=5 -o pan pan.c && ./pan -m1000000 -a -f -N "$claim" >pan.out 2>&1)
	grep -q 'errors: 0' "$tmp/run/pan.out" && ! grep -q 'search not completed\|max search depth' "$tmp/run/pan.out"
}
holds() {
	search "$@" || {
		fail "the model does not hold: $*"
		cat "$tmp/run/spin.out" "$tmp/run/pan.out"
	}
}
finds() {
	search "$@" && fail "the fault was not found: $*"
	grep -q 'errors: [1-9]' "$tmp/run/pan.out" || fail "no counterexample: $*"
}
holds trigger_fifo served
holds trigger_fifo served -DP=2 -DF=3 -DE=4
for fault in LAP ROOM ORDER TAIL; do finds trigger_fifo served -DFAULT_$fault; done
holds trigger_cancel either
holds trigger_cancel settled
finds trigger_cancel either -DFAULT_LOCK
finds trigger_cancel either -DFAULT_GENERATION
holds trigger_proxy whole
finds trigger_proxy whole -DFAULT_ODD
finds trigger_proxy whole -DFAULT_AGAIN
finish
