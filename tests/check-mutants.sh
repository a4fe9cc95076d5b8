# SPDX-License-Identifier: Apache-2.0
# Plants faults in device code, one at a time. The schedules of test_races (schedulers), test_races_gpu (barriers) and test_races_net
# (triggers, collectives) must find each fault. Two kinds are not planted: weaker memory orders, which these tests plant
# themselves, and faults that only models reach (tests/models/refill.pml and mailbox.pml).
. tests/lib.sh
work=$tmp/tree
mkdir -p "$work/plugins"
cp -r plugins/sched_* plugins/term plugins/barrier plugins/sync* plugins/trigger_* plugins/qos plugins/device_common \
	plugins/workloads comm core "$work/plugins/"
mkdir "$work/tests" && cp tests/*.h tests/test_races*.c tests/races_device.c "$work/tests/"
mkdir "$tmp/run" && ln -s "$B/plugins" "$tmp/run/plugins" && mkdir "$tmp/run/tests"

need python3
mutants=0 program=test_races

# spoil NAME TEST FILE FUNCTION OLD NEW: the test TEST of $program must find the fault. One program contains all
# faults, and the environment variable SPOILT selects one.
spoil() {
	mutants=$((mutants + 1))
	python3 tests/spoil.py "$(find "$work/plugins" -path "*/$3")" "$4" "$5" "$6" "loom_spoilt == $mutants" ||
		{ fail "$1: not one such place in $4() of $3"; return; }
	echo "$mutants $program ${2%:*} $1" >>"$tmp/mutants"
}
. tests/mutants.sh
# Faults in the pool of sched_counter and sched_plan, and in the lists of sched_plan.
spoil 'never busy after a task of the pool' pools pool.dev.h sched_pool_take \
	'if (*idle) LOOM_CALL(term, busy, c); *idle = 0;' '*idle = 0;'
spoil 'a slot of the pool is read before it is written' pools pool.dev.h sched_pool_claim \
	'!LOOM_JOB(loom_load_acquire)(sched_pool_ready(p, at))' '0'
spoil 'a taker that finds no slot keeps its claim' pools pool.dev.h sched_pool_claim \
	'loom_fetch_add_relaxed_sys(&p->open, (uint64_t)1); return p->room;' 'return p->room;'
spoil 'a worker is idle while the pool has tasks' pools pool.dev.h sched_pool_search '!filled && !idle' '!idle'
spoil 'a taker claims although it found no slot' pools pool.dev.h sched_pool_claim \
	'(int64_t)loom_fetch_add_relaxed_sys(&p->open, ~0ull) <= 0' '(loom_fetch_add_relaxed_sys(&p->open, ~0ull), 0)'
spoil 'a taker stores where it must add' pools sched_plan.dev.h plan_take \
	'loom_fetch_add_relaxed_sys(&b->next, n)' '(loom_store_relaxed_sys(&b->next, taken + n), taken)'
spoil 'a worker does not wait for the plan' pools sched_plan.dev.h plan_begin '!LOOM_JOB(loom_load_acquire)(&p->ready)' '0'
spoil 'worker 0 does not wait for the costs' pools sched_plan.dev.h plan_make \
	'LOOM_JOB(loom_load_acquire)(&p->stored) < plan_makers(c)' '0'
spoil 'a list ends with its last whole round' pools sched_plan.dev.h plan_length 's->full + (turn < s->rest)' 's->full'
program=test_races_gpu
spoil 'the arriver before the last one releases' shipped counter.dev.h barrier_signal \
	'barrier_add(&arrived->value, wide) + 1 != round * n' 'barrier_add(&arrived->value, wide) + 2 != round * n'
spoil 'the first arriver releases several devices' shipped barrier/state.dev.h barrier_signal_wide \
	'barrier_add(&barrier_node(h, slot, part)->value, 1) + 1 != round * n' \
	'barrier_add(&barrier_node(h, slot, part)->value, 1) + n != round * n'
spoil 'the last arriver of a group releases' shipped barrier_tree.dev.h barrier_signal 'groups == 1' '1'
spoil 'dissemination omits a step' shipped barrier_dissemination.dev.h barrier_poll '*step += 1;' '*step += 2;'
spoil 'no worker polls the last flag' shipped barrier_flags.dev.h barrier_poll 'w->next < c->count' 'w->next + 1 < c->count'
spoil 'a worker waits for one device only' shipped barrier/state.dev.h barrier_is_released \
	'w->wide ? barrier_parties(c, slot) : 1' '1'
spoil 'a worker that relays waits for no device' shipped barrier/state.dev.h barrier_is_released \
	'w->wide ? barrier_parties(c, slot) : 1' \
	'w->relays && loom_load_relaxed_dev(&barrier_local(c)->leads) >> slot & 1 ? 0 : w->wide ? barrier_parties(c, slot) : 1'
spoil 'workers wait for the one that relays only' shipped barrier/state.dev.h barrier_is_released \
	'++w->polls % BARRIER_RELAY_POLLS' '1'
spoil 'a worker awaits one word of a line' shipped barrier/state.dev.h barrier_watch_release 'n * barrier_split(c, slot)' '1'
spoil 'only the first copy of a line is written' shipped barrier/state.dev.h barrier_release_lines 'copy < n' 'copy < 1'
spoil 'workers that left are counted in one word' shipped counter.dev.h barrier_leave 'round % 2' '0'
spoil 'an arrival for workers that left releases no round' shipped counter.dev.h barrier_signal \
	'loom_fetch_add_acq_rel_dev(&arrived->value, left_before) + left_before != round * n' \
	'(loom_fetch_add_acq_rel_dev(&arrived->value, left_before), 1)'
spoil 'a device does not tell that all have left' shipped counter.dev.h barrier_signal 'left_before == n && wide' '0'
program=test_races_net
spoil 'a lane runs operations for any value of work' shipped trigger_peer.dev.h peer_fire_counter \
	'loom_fetch_add_acq_rel_dev(&peer_counter(c, at)->work, count) == 0' \
	'(loom_fetch_add_acq_rel_dev(&peer_counter(c, at)->work, count), 1)'
spoil 'a lane ends without a check for fires' shipped trigger_peer.dev.h peer_serve \
	'loom_cas_acq_rel_dev(&k->work, &work, (uint64_t)0)' '(loom_exchange_acq_rel_dev(&k->work, (uint64_t)0), 1)'
spoil 'a lane runs what another lane has taken' shipped trigger_peer.dev.h peer_add 'k->taken = taken;' ';'
spoil 'a rank does not wait for a piece' shipped collective.h loom_comm_meet 'loom_load_relaxed_sys(flag) < value' '0'
spoil 'a buffer has two places' shipped collective.h loom_comm_pushed 'parted ? 0 : ++w->buffered' '0'
spoil 'there is one set of slots' shipped allreduce.dev.h loom_allreduce_slots 'round & 1' '0'
spoil 'a rank pulls without waiting' shipped allreduce.dev.h loom_allreduce_direct 'step > 0' 'step > 1'
spoil 'a rank writes its input while it is read' shipped allreduce.dev.h loom_allreduce_direct \
	'loom_allreduce_await_signals(c, a, step - 1, at->round + step, wait)' \
	'step == 2 || loom_allreduce_await_signals(c, a, step - 1, at->round + step, wait)'
spoil 'a rank stores while others load' shipped collective.h loom_comm_some 'before && before != layout' '0'
spoil 'a rank copies sums without waiting' shipped collective.h loom_comm_pushed \
	'loom_comm_meet(v, w, t, track, 2 * *round + 2)' '0'
spoil 'marked words free a buffer' shipped collective.h loom_comm_some '!bytes || call->pulls' '1'
spoil 'a rank does not wait for the words of one rank' shipped collective.h loom_comm_load 'u[k].word[1] < least' '0'
spoil 'no lock among the workers of a device' shipped after.h loom_last_noncoherent \
	'loom_cas_acq_rel_dev(lock, &open, 1u)' '1'
spoil 'a device does not wait for its turn' shipped after.h loom_last_noncoherent 'loom_onebit_lock_acquire(c, turn)' '1'
spoil 'a device ends its turn too early' shipped after.h loom_last_noncoherent \
	'left = loom_load_relaxed_sys(pending) - 1;' \
	'loom_store_release_sys(&turn[c->device].wants, 0u); left = loom_load_relaxed_sys(pending) - 1;'
spoil 'lower devices are not waited for' shipped after.h loom_onebit_lock_acquire 'd == c->device' 'd <= c->device'
spoil 'higher devices are not waited for' shipped after.h loom_onebit_lock_acquire 'd == c->device' 'd >= c->device'
spoil 'a device that gave way does not start again' shipped after.h loom_onebit_lock_acquire 'd = ~0u;' ';'
cat >"$tmp/spoilt.h" <<'C'
#include <stdlib.h>
static int loom_spoilt;
__attribute__((constructor)) static void loom_spoil(void)
{
	loom_spoilt = atoi(getenv("SPOILT"));
}
C
compile="gcc -std=gnu11 -O1 -w -include $tmp/spoilt.h -I$work/plugins/core/include -I$work/plugins/comm/include -I$B/include -Icore -I. -D_GNU_SOURCE -pthread -fsanitize=thread"
for f in "$work"/plugins/barrier/barrier_*.dev.h "$work"/plugins/sync/sync_poll.dev.h "$work"/plugins/sync/sync_backoff.dev.h; do
	name=$(basename "$f" .dev.h)
	$compile -c "-DRACES_NAME=$name" "-DRACES_${name%%_*}" "-DRACES_FILE=\"../plugins/${name%%_*}/$name.dev.h\"" \
		"$work/tests/races_device.c" -o "$tmp/$name.o" || fail "the mutants of $name do not compile"
done
for program in test_races test_races_gpu test_races_net; do
	objects=
	[ $program != test_races_gpu ] || objects=$(echo "$tmp"/*_*.o)
	$compile -c "$work/tests/$program.c" -o "$tmp/mutant.o" &&
		gcc "$tmp/mutant.o" $objects "$B/obj/plugins/device_common/explore/race.o" "$B/obj/tests/support.o" "$B/lab.a" \
			"$B/libgpuloom.a" -liniparser -lcjson -lm -ldl -lcunit -pthread -o "$tmp/run/tests/$program" ||
		fail "the mutants of $program do not compile"
done
while read -r number program test name; do
	games=3000
	[ "$name" != 'a worker is idle while the pool has tasks' ] || games=9000 # seed 4664 shows it
	SPOILT=$number TURNS_GAMES=$games TURNS_STOP=1 "$limit" 300 "$tmp/run/tests/$program" -t \
		"$test" >"$tmp/out" 2>&1 </dev/null
	status=$?
	seen=$(grep -m1 -o 'seed [0-9]*: .*' "$tmp/out" | cut -c1-70)
	[ "$seen" ] || [ $status -lt 128 ] || seen="it ended by signal $((status - 128))"
	[ "$seen" ] && echo "noticed: $name: $seen" || fail "$name was not noticed"
done <"$tmp/mutants"
for program in test_races test_races_gpu test_races_net; do
	[ $program = test_races ] && tests='counter hcounter tree ranks pools' || tests=shipped
	for test in $tests; do
		SPOILT=0 TURNS_GAMES=20 "$tmp/run/tests/$program" -t $test >"$tmp/out" 2>&1 ||
			{ fail 'none is selected, and yet noticed'; cat "$tmp/out"; }
	done
done
finish
