# SPDX-License-Identifier: Apache-2.0
# The model of sync_wic holds, and each seeded mistake is found in it.
. tests/lib.sh
command -v spin >/dev/null || {
	echo 'skipped: spin is not installed'
	exit 77
}
model=$PWD/tests/models/sync_wic.pml

# search OPTIONS...: 0 errors is exit 0, some are exit 1.
search() {
	rm -rf "$tmp/run" && mkdir "$tmp/run"
	(cd "$tmp/run" && spin -a "$@" "$model" >spin.out 2>&1 && gcc -O2 -DSAFETY -w -o pan pan.c &&
		./pan -m1000000 >pan.out 2>&1)
	grep -q 'errors: 0' "$tmp/run/pan.out" && ! grep -q 'search not completed\|max search depth' "$tmp/run/pan.out"
}
for setting in '' -DAHEAD -DBY_MONITOR -DTURNS; do
	search $setting || {
		fail "the model $setting"
		cat "$tmp/run/spin.out" "$tmp/run/pan.out"
	}
done
for mistake in NO_FULL_TEST NO_LOOK_AGAIN NO_ARM LOOK_FIRST COUNT_LATE RELEASE_EARLY DROP_FAULT NO_RING TURN_LATE; do
	case $mistake in
	DROP_FAULT | NO_RING) setting=-DBY_MONITOR ;;
	RELEASE_EARLY) setting=-DAHEAD ;;
	TURN_LATE) setting=-DTURNS ;;
	*) setting= ;;
	esac
	search $setting "-D$mistake" && fail "$mistake was not found"
	grep -q 'errors: 1' "$tmp/run/pan.out" || fail "$mistake: no counterexample"
done
finish
