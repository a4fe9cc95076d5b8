# SPDX-License-Identifier: Apache-2.0
# `gpuloom explore` finds planted faults of memory orders, names them, and repeats them by their seed. It finds nothing in
# plug-ins of the tree, nor in new ones.
. tests/lib.sh
keep_programs
set --
plain_build 'the explored program has calls of its own in place of a sanitizer'
need addr2line
need "${CXX:-c++}"

# plug_in FAULT: makes $tmp/FAULT.so from its template. A name without a fault gives a plug-in without one.
plug_in() {
	for f in conform/templates/"${1%%_*}".c.in conform/templates/"${1%%_*}".dev.h.in; do
		awk -v fault="$1" -f tests/broken/plant.awk "$f" >"$tmp/$1.$(basename "$f" .in | cut -d. -f2-)"
	done
	${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O1 -fPIC -fvisibility=hidden -Icore/include -Iplugins/device_cpu/include \
		-Iplugins/device_common/include -I"$tmp" -shared "$tmp/$1.c" -o "$tmp/$1.so" || fail "$1 does not compile"
}

explore() { # STATUS ARGUMENT...: its output is in $tmp/out
	status=$1
	shift
	"$limit" 120 "$G" explore "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	rc=$?
	[ $rc = "$status" ] || { fail "explore $*: exit $rc in place of $status"; sed 's/^/    /' "$tmp/out" "$tmp/err"; }
}

while read -r fault says; do
	plug_in "$fault"
	explore 3 "$tmp/$fault.so" --seeds 3000
	grep -Eq "$says" "$tmp/out" || fail "$fault: no '$says' in: $(cat "$tmp/out")"
	seed=$(sed -n 's/^again: --replay //p' "$tmp/out")
	sed -n 's/.* then: //p' "$tmp/out" >"$tmp/first"
	explore 3 "$tmp/$fault.so" --replay "${seed:-0}"
	sed -n 's/.* then: //p' "$tmp/out" | cmp -s - "$tmp/first" || fail "$fault: --replay $seed says: $(cat "$tmp/out")"
done <<'END'
term_weak race:.*end of a task
term_early too early|race:
sched_weak race:.*sched_weak.dev.h:[0-9]
sched_uncounted race:|too early
barrier_weak race:
sync_weak race:
END
explore 0 sched_counter --seeds 900 # 102 schedules on two devices found an end of term_hcounter that was too early
expect 5 'failed +stack.explored' "$G" validate "$tmp/sched_weak.so" --only stack.explored
for name in sched_mgws term_counter term_tree barrier_central sync_poll sync_backoff; do
	explore 0 "$name" --seeds 300
done
for kind in sched term barrier sync workload; do
	plug_in ${kind}_sound
	[ $kind = workload ] && explore 4 "$tmp/workload_sound.so" && set -- --set workload.sound.n=30 # too many tasks
	explore 0 "$tmp/${kind}_sound.so" --seeds 100 "$@"
done
explore 0 "$tmp/sched_sound.so" --seeds 100 --set termination.use=tree
explore 4 trigger_gputn
explore 4 conf/fib.ini
explore 2 sched_mgws --replay 99000000
explore 0 conf/fib.ini --set run.devices=sim:0 --set device.sim.workers=3 --set workload.fib.n=5 --seeds 50
expect 2 'set schedule = random:SEED' "$G" run conf/fib.ini --set run.devices=sim:0 --set device.sim.memory=weak
expect 4 'at most 8 devices and 16 workers' "$G" run conf/fib.ini --set run.devices=sim:0 --set device.sim.memory=weak \
	--set device.sim.schedule=random:1
finish
