#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Searches every state of the models: those of the code as it is must be free of errors, and each seeded
# fault must be found.
#   tests/models/check-models.sh [--quick]     --quick leaves out what takes more than some seconds
set -u
models=$(cd "$(dirname "$0")" && pwd)
command -v spin >/dev/null || { echo "skipped: no spin: tools/deps check"; exit 77; }
quick=${1-}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" && cp "$models"/*.pml . || exit 1
wrong=0

# search MODEL DEFINES: the number of errors into $errors, of states into $states; fails if it did not end.
search() {
	rm -f pan* *.trail
	spin -a $2 "$1.pml" >spin.log 2>&1 && gcc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=4000 pan.c -o pan ||
		{ cat spin.log; return 1; }
	timeout 600 ./pan -m1000000 >pan.log 2>&1 || { tail -n 3 pan.log; return 1; }
	errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log)
	# A search that was cut short proves nothing.
	[ "$errors" != 0 ] || ! grep -q 'max search depth too small\|Search not completed' pan.log
}
report() { # WORD MODEL DEFINES
	printf '  %-6s %-14s %10s states  %s\n' "$1" "$2" "$states" "$3"
}
right() { # MODEL [DEFINES]
	errors= states=
	if search "$1" "${2-}" && [ "$errors" = 0 ]; then
		report ok "$1" "${2-}"
	else
		report WRONG "$1" "${2-} (expected no error)"
		wrong=1
	fi
}
fault() { # MODEL NAME [DEFINES]
	errors= states=
	if search "$1" "-DFAULT=$2 ${3-}" && [ "${errors:-0}" -gt 0 ]; then
		report found "$1" "$2 ${3-}"
	else
		report WRONG "$1" "$2 ${3-} (expected an error)"
		wrong=1
	fi
}

right queue
right queue "-DBITS=2"
right queue "-DOWNERS=2 -DT=9 -DL=2"
fault queue idle_unchecked
fault queue completed_early
fault queue lock_ignored
fault queue attempts_wrap "-DBITS=2"
fault queue room_ignored "-DWIDE -DT=10"
fault queue readers_ignored "-DWIDE -DT=10"
fault queue unheld "-DOWNERS=2 -DN=3 -DT=7"
if [ "$quick" != --quick ]; then
	right park "-DK=1 -DP=2"
	right queue "-DWIDE -DT=9"
	right queue "-DOWNERS=2 -DN=3 -DT=6"
	right queue "-DOWNERS=2 -DN=4 -DT=4 -DL=2"
	right queue "-DOWNERS=4 -DN=4 -DT=5 -DL=2"
	right refill
	fault queue epoch_reentered "-DWIDE -DT=10"
	fault refill thief_in_hurry
fi

right term_counter
right term_hcounter -DS=2
right term_hcounter "-DDEVICES=3 -DN=3"
[ "$quick" = --quick ] || right term_hcounter
right term_tree
right term_tree "-DLOCAL=2"
for f in idle_early completed_early; do
	fault term_counter none "-DTERM_FAULT=$f"
	fault term_hcounter none "-DTERM_FAULT=$f"
done
fault term_hcounter said_late
fault term_hcounter one_look
fault term_tree robbed_ignored
fault term_tree children_ignored

right mail "-DW=1 -DI=4 -DT=6"
right mail "-DW=2 -DI=2 -DT=2"
for f in idle_owing busy_late range_lost stale_number; do
	fault mail $f -DW=1
done
for f in asks_early lost_grant; do
	fault mail $f "-DW=1 -DI=1 -DT=6"
done
fault mail draw_idle "-DI=3 -DT=3"
right mail "-DP -DI=3 -DT=3"
for f in range_left steal_late; do
	fault mail $f "-DP -DI=2 -DT=2"
done
if [ "$quick" != --quick ]; then
	right mail "-DW=2 -DI=1 -DT=3"
	right mail "-DD=3 -DW=1 -DI=2 -DT=2"
	fault mail wish_twice "-DI=2 -DT=4"
	fault mail one_look "-DI=1 -DT=4"
	fault mail said_late "-DI=1 -DT=4"
fi

right lists
right lists -DTAKES
fault lists busy_late
fault lists busy_late -DTAKES
fault lists list_forgotten

right park
right park "-DLONG -DK=2"
right park "-DLONG -DK=1 -DP=2"
fault park own_victim "-DLONG -DK=1 -DP=2"
for f in no_last_look look_first word_read_late ring_unheard nobody_told; do
	fault park $f
done
fault park waking_kept "-DLONG -DK=2"

right door "-DBELL=eventfd -DCOUNT=2 -DADAPTIVE"
right door "-DBELL=futex -DCOUNT=3 -DADAPTIVE"
right door "-DBELL=eventfd -DHALVES=monolithic"
fault door first_only "-DBELL=futex"
fault door first_only "-DBELL=futex -DHALVES=monolithic"
fault door gone_away "-DBELL=futex -DHALVES=monolithic"
fault door gone_away "-DBELL=eventfd -DHALVES=monolithic -DADAPTIVE"
fault door pending_late
right bedside "-DHALVES=split -DD=2 -DK=1"
right bedside "-DHALVES=monolithic -DD=2 -DK=1"
fault bedside queue_unseen "-DHALVES=split -DD=2 -DK=1"
fault bedside filled_unsaid "-DHALVES=split -DD=2 -DK=1"
for f in look_first no_last_look heed_late drained_late; do
	fault bedside $f "-DHALVES=monolithic -DK=1"
done
fault bedside armed_once "-DHALVES=monolithic"
if [ "$quick" != --quick ]; then
	right bedside "-DHALVES=monolithic"
	right door "-DBELL=futex -DHALVES=monolithic"
	right door "-DBELL=eventfd -DHALVES=monolithic -DCOUNT=2"
fi

[ $wrong = 0 ] && echo "all models as expected" || { echo "some models are not as expected"; exit 1; }
