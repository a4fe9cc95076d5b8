#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Searches all states of the models. A model without a fault must have no error, and each planted fault must be found.
#   tests/models/check-models.sh [--quick] [PART...]
# --quick omits searches of more than some seconds. Parts: sched sync trigger barrier; the default is all parts.
set -u
models=$(cd "$(dirname "$0")" && pwd)
command -v spin >/dev/null || { echo "skipped: no spin: tools/deps check"; exit 77; }
quick=
[ "${1-}" != --quick ] || { quick=$1; shift; }
[ $# -gt 0 ] || set -- sched sync trigger barrier
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" && cp "$models"/*.pml . || exit 1
wrong=0

# make_pan MODEL DEFINES CLAIM: builds the program of a search, $pan, if it is missing. With a planted fault the program is not
# optimised, because the search is shorter than an optimised build. A claim is a liveness property under weak fairness.
make_pan() {
	kind=-DSAFETY claim=
	[ -z "$3" ] || kind=-DNFAIR=5 claim="-a -f -N $3"
	pan=$tmp/$(echo "pan $1 $2 $kind $optimise" | tr ' ' _)
	[ ! -x "$pan" ] || return 0
	spin -a $2 "$1.pml" >spin.log 2>&1 && gcc $optimise -w $kind -DCOLLAPSE -DMEMLIM=4000 pan.c -o "$pan" ||
		{ cat spin.log; return 1; }
}
# run_pan: sets $errors and $states to the numbers of errors and states. It fails if the search did not end.
run_pan() {
	"$pan" -m1000000 $claim >pan.log 2>&1 || { tail -n 3 pan.log; return 1; }
	errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log)
	# An incomplete search proves nothing.
	[ "$errors" != 0 ] || ! grep -q 'max search depth too small\|Search not completed' pan.log
}
report() { # arguments: WORD MODEL DEFINES
	printf '  %-6s %-14s %10s states  %s\n' "$1" "$2" "$states" "$3"
}
right() { # arguments: MODEL [DEFINES [CLAIM]]
	errors= states= optimise=-O1
	[ -n "$quick" ] || optimise=-O2
	if make_pan "$1" "-DFAULT=0 ${2-}" "${3-}" && run_pan && [ "$errors" = 0 ]; then
		report ok "$1" "${2-} ${3-}"
	else
		report WRONG "$1" "${2-} ${3-} (expected no error)"
		wrong=1
	fi
}
planted() { # arguments: MODEL NAME [DEFINES [CLAIM]]
	errors= states= optimise=-O0 defines=${3-}
	if make_pan "$1" "$defines" "${4-}" && run_pan && [ "${errors:-0}" -gt 0 ]; then
		report found "$1" "$2 ${defines#-D$2 }"
	else
		report WRONG "$1" "$2 ${defines#-D$2 } (expected an error)"
		wrong=1
	fi
}
mistake() { # MODEL DEFINE [DEFINES [CLAIM]]: searches a fault that needs a program of its own
	planted "$1" "$2" "-D$2 ${3-}" "${4-}"
}
fault() { # MODEL NAME [DEFINES]: one verifier serves all faults; fault.pml gives the number
	FAULT=$(sed -n "s/^#define $2 \([0-9]*\).*/\1/p" "$1.pml" $(sed -n 's/^#include "\(.*\)"/\1/p' "$1.pml"))
	export FAULT
	planted "$@"
}

# ---- queues, detectors, sleep, late workers, requests of services ----
sched() {
	right spread
	for mistake in LOAD OWN MARK END; do mistake spread FAULT_$mistake; done
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
		right eventcount "-DK=1 -DP=2"
		right queue "-DWIDE -DT=9"
		right queue "-DOWNERS=2 -DN=3 -DT=6"
		right queue "-DOWNERS=2 -DN=4 -DT=4 -DL=2"
		right queue "-DOWNERS=4 -DN=4 -DT=5 -DL=2"
		right refill
		fault queue epoch_reentered "-DWIDE -DT=10"
		fault refill thief_no_room
	fi

	right overflow_flags
	right overflow_flags "-DEPOCHS=3 -DWAIT_ALL -DTHIEVES=2"
	planted overflow_flags one_flag "-DFLAGS=1"
	planted overflow_flags reentered "-DEPOCHS=3"
	planted overflow_flags last_only "-DEPOCHS=3 -DLAST_ONLY"
	planted overflow_flags too_many_thieves "-DWRAP=4"

	right mailbox "-DW=1 -DI=4 -DT=6"
	right mailbox "-DW=2 -DI=2 -DT=2"
	for f in idle_untaken busy_late range_lost stale_number; do
		fault mailbox $f -DW=1
	done
	for f in requests_early lost_grant; do
		fault mailbox $f "-DW=1 -DI=1 -DT=6"
	done
	fault mailbox claim_idle "-DI=3 -DT=3"
	right mailbox "-DP -DI=3 -DT=3"
	for f in range_left steal_late; do
		fault mailbox $f "-DP -DI=2 -DT=2"
	done
	if [ "$quick" != --quick ]; then
		right mailbox "-DW=2 -DI=1 -DT=3"
		right mailbox "-DD=3 -DW=1 -DI=2 -DT=2"
		fault mailbox request_twice "-DI=2 -DT=4"
		fault mailbox one_scan "-DI=1 -DT=4"
		fault mailbox report_late "-DI=1 -DT=4"
	fi

	right ranks
	for f in idle_early completed_early busy_posted one_scan left_ignored ignored_copies dead_is_idle; do
		fault ranks $f
	done
	right ranks "-DRMA -DS=1"
	fault ranks claimed_early "-DRMA -DS=0"
	fault ranks busy_posted "-DRMA -DS=0"
	if [ "$quick" != --quick ]; then
		right ranks "-DI=2 -DT=4 -DS=3"
		right ranks "-DRMA -DI=2 -DT=4"
	fi

	right host
	for f in two_words no_room taken_early forgets_held; do
		fault host $f
	done

	right lists
	right lists -DTAKES
	fault lists busy_late
	fault lists busy_late -DTAKES
	fault lists list_forgotten

	right plan
	right plan "-DN=3 -DL=3"
	[ "$quick" = --quick ] || right plan "-DP=3 -DN=3 -DL=2"
	for f in removed_early level1_early stored unclamped unwrapped; do
		fault plan $f
	done

	right eventcount
	right eventcount "-DLONG -DK=2"
	right eventcount "-DLONG -DK=1 -DP=2"
	for variant in -DWORD -DSTOP "-DWORD -DSTOP"; do
		right eventcount "$variant"
		for f in waiters_first word_read_late; do
			fault eventcount $f "$variant"
		done
	done
	fault eventcount stop_not_notified -DSTOP
	fault eventcount stop_not_notified "-DWORD -DSTOP"
	fault eventcount own_victim "-DLONG -DK=1 -DP=2"
	for f in no_last_check waiters_first word_read_late stale_waking end_not_notified; do
		fault eventcount $f
	done
	fault eventcount waking_kept "-DLONG -DK=2"

	right resident
	right resident "-DW=3 -DS=1"
	for f in blind unfenced_device unfenced_host hasty twice kept stale not_ready early ready_before run_again; do
		fault resident $f
	done
	right resident_quick
	right resident_quick -DK=2
	right resident_quick "-DW=3 -DS=1 -DK=2"
	for f in blind unfenced_device unfenced_host hasty twice kept stale early run_again unsettled reset_early once_more forgotten; do
		fault resident_quick $f
	done
	for f in both own_skipped retires_early; do
		fault resident_quick $f -DK=2
	done
	fault resident_quick settled_first -DS=3
	right gate -DW=3
	right gate -DSTOP
	right gate "-DCALLER -DSTOP"
	for f in close_late unclosed read_then_add phase_unread waits_for_good; do
		fault gate $f
	done
	for f in unlocked joins_too admits_none; do
		fault gate $f -DCALLER
	done
	[ "$quick" = --quick ] || right gate "-DW=3 -DSTOP"
	right caller
	right caller -DREQUESTS
	for f in unasked unnumbered unwaited; do
		fault caller $f -DREQUESTS
	done
	for f in sleeps_first unwoken; do
		fault caller $f
	done

	right qos_doorbell "-DCOUNT=2 -DADAPTIVE"
	right qos_doorbell -DHALVES=monolithic
	fault qos_doorbell no_note "-DHALVES=monolithic -DADAPTIVE"
	fault qos_doorbell pending_late
	right qos_doorbell -DHALVES=polled
	fault qos_doorbell woken_early -DHALVES=polled
	right qos_server "-DHALVES=split -DD=2 -DK=1"
	right qos_server "-DHALVES=monolithic -DD=2 -DK=1"
	fault qos_server queue_unseen "-DHALVES=split -DD=2 -DK=1"
	fault qos_server fill_silent "-DHALVES=split -DD=2 -DK=1"
	for f in check_first no_last_check mask_late drained_late; do
		fault qos_server $f "-DHALVES=monolithic -DK=1"
	done
	fault qos_server armed_once "-DHALVES=monolithic"
	right qos_interrupt -DK=1
	right qos_interrupt "-DD=1 -DK=4"
	for f in two_reads rung_late armed_once; do
		fault qos_interrupt $f
	done
	right frames
	for f in answered_early shown_early pins_ignored unchecked held; do
		fault frames $f
	done
	fault frames lost_answer -DF=2
	right permit
	right permit "-DW=3 -DR=1"
	for f in reads_first hasty leaves_late waits_only cleared stays_counted; do
		fault permit $f
	done
	if [ "$quick" != --quick ]; then
		right frames "-DP=2 -DF=2 -DR=3"
		right frames "-DR=3"
		right qos_interrupt
		right qos_server "-DHALVES=monolithic"
		right qos_doorbell "-DHALVES=monolithic -DCOUNT=2"
	fi
}

# ---- sync_wic ----
sync() {
	for setting in '' -DAHEAD -DBY_MONITOR -DTURNS; do
		right sync_wic "$setting"
	done
	for mistake in NO_FULL_TEST NO_CHECK_AGAIN NO_ARM LOAD_FIRST COUNT_LATE; do
		mistake sync_wic $mistake
	done
	mistake sync_wic RELEASE_EARLY -DAHEAD
	mistake sync_wic DROP_FAULT -DBY_MONITOR
	mistake sync_wic NO_RING -DBY_MONITOR
	mistake sync_wic TURN_LATE -DTURNS
	right gpu_wait
	for f in requested_early cleared_late flag_first not_counted place_taken place_kept parity_kept one_half early_half; do
		fault gpu_wait $f
	done
	right listener
	for f in counted_late cpus_first cpus_ignored; do
		fault listener $f
	done
}

# ---- the trigger FIFO, the table of trigger_proxy, stores into other ranks ----
trigger() {
	right trigger_fifo -DF=2 served
	for mistake in LAP ROOM ORDER TAIL MERGE POLL OLD; do
		mistake trigger_fifo FAULT_$mistake '' served
	done
	right trigger_proxy '' whole
	mistake trigger_proxy FAULT_ODD '' whole
	mistake trigger_proxy FAULT_AGAIN '' whole
	right trigger_paired '' all_taken
	for mistake in TORN FIRST LINE PACE LANE; do mistake trigger_paired FAULT_$mistake '' all_taken; done
	right trigger_paired -DBASE=1 all_taken
	mistake trigger_paired FAULT_COUNT -DBASE=1 all_taken
	right allreduce_ring -DN=3
	for mistake in VECTOR INBOX; do mistake allreduce_ring FAULT_$mistake -DN=3; done
	right allreduce_oneshot -DN=2 ends
	for mistake in SLOT EARLY; do mistake allreduce_oneshot FAULT_$mistake -DN=2 ends; done
}

# ---- barriers ----
barrier() {
	right grid_sync
	for mistake in SHORT ALIKE LATE RECORD; do mistake grid_sync FAULT_$mistake; done
	right barrier_job
	right barrier_job '-DRANKS=4 -DW=1'
	for mistake in ALONE SHORT AGAIN LEAVE; do mistake barrier_job FAULT_$mistake; done
	mistake barrier_job FAULT_AT_ONCE '-DRANKS=4 -DW=1'
}

for part; do
	$part
done
[ $wrong = 0 ] && echo "all models as expected" || { echo "some models are not as expected"; exit 1; }
