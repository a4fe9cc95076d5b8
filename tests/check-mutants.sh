# SPDX-License-Identifier: Apache-2.0
# Plants faults in the schedulers' code, one at a time. The schedules of test_sched_deterministic must find each fault. Two
# kinds are not planted: weaker memory orders, which test_races plants, and faults that only models reach
# (tests/models/refill.pml and mailbox.pml). A missing check of the pool before a worker reports idle is not planted either,
# because the worker has just failed to take from the pool.
. tests/lib.sh
work=$tmp/tree
mkdir -p "$work/plugins"
cp -r plugins/sched_* plugins/term "$work/plugins/"
mkdir "$work/tests" && cp tests/*.h "$work/tests/" && cp tests/test_sched_deterministic.c "$work/tests/"
mkdir "$tmp/run" && ln -s "$B/plugins" "$tmp/run/plugins" && mkdir "$tmp/run/tests"

need python3
mutants=0

# spoil NAME TEST FILE FUNCTION OLD NEW: the test TEST of test_sched_deterministic must find the fault. One program contains all
# faults, and the environment variable SPOILT selects one.
spoil() {
	mutants=$((mutants + 1))
	python3 tests/spoil.py "$(find "$work/plugins" -name "$3")" "$4" "$5" "$6" "loom_spoilt == $mutants" ||
		{ fail "$1: not one such place in $4() of $3"; return; }
	echo "$mutants ${2%:*} $1" >>"$tmp/mutants"
}
. tests/mutants.sh
# Faults in the pool of sched_counter and sched_plan.
spoil 'never busy after a task of the pool' pools pool.dev.h sched_pool_take \
	'if (*idle) LOOM_CALL(term, busy, c); *idle = 0;' '*idle = 0;'
spoil 'a slot of the pool is read before it is written' pools pool.dev.h sched_pool_claim \
	'!loom_load_acquire_sys(sched_pool_ready(p, at))' '0'
spoil 'a taker that finds no slot keeps its claim' pools pool.dev.h sched_pool_claim \
	'loom_fetch_add_relaxed_sys(&p->open, (uint64_t)1); return p->room;' 'return p->room;'
cat >"$tmp/spoilt.h" <<'C'
#include <stdlib.h>
static int loom_spoilt;
__attribute__((constructor)) static void loom_spoil(void)
{
	loom_spoilt = atoi(getenv("SPOILT"));
}
C
gcc -std=gnu11 -O1 -w -include "$tmp/spoilt.h" "-I$B/include" -Icore -I. -D_GNU_SOURCE -pthread \
	"$work/tests/test_sched_deterministic.c" "$B/obj/tests/support.o" "$B/lab.a" "$B/libgpuloom.a" -liniparser \
	-lcjson -lm -ldl \
	-lcunit -o "$tmp/run/tests/mutant" || fail 'the mutants do not compile'
while read -r number test name; do
	SPOILT=$number TURNS_GAMES=12000 TURNS_STOP=1 "$limit" 300 "$tmp/run/tests/mutant" -t \
		"$test" >"$tmp/out" 2>&1 </dev/null
	status=$?
	seen=$(grep -m1 -o 'seed [0-9]*: .*' "$tmp/out" | cut -c1-70)
	[ "$seen" ] || [ $status -lt 128 ] || seen="it ended by signal $((status - 128))"
	[ "$seen" ] && echo "noticed: $name: $seen" || fail "$name was not noticed"
done <"$tmp/mutants"
[ "$CHECK" = all ] && games=300 || games=20
SPOILT=0 TURNS_GAMES=$games "$tmp/run/tests/mutant" >"$tmp/out" 2>&1 ||
	{ fail 'none is selected, and yet noticed'; cat "$tmp/out"; }
finish
