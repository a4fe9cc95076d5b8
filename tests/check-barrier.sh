# SPDX-License-Identifier: Apache-2.0
# Tests the barriers over layouts of CPU devices: one device, two, non-coherent ones, devices in processes, with lanes, and with
# more workers than cores. A wait must also end if not all workers arrive.
. tests/lib.sh
plugins='auto central release tree dissemination flags'
isolations='thread process'
# A race detector observes one process only. It would report accesses that another process orders.
case $B in *thread*) isolations=thread ;; esac
small='--samples 1 --set run.warmup=0 --set workload.barrier.few=10 --set workload.barrier.difference=20
	--set workload.barrier.parts=2 --set workload.barrier.checked=60'
rounds() {
	expect 0 'verified' "$G" run conf/barrier.ini $small --set barrier.use=$barrier "$@"
}
for barrier in $plugins; do
	rounds --set workload.barrier.work=100
	rounds --set device.cpu.workers=9 --set workload.barrier.scope=device
	rounds --set device.cpu.workers=3 --set device.cpu.lanes=3
	for isolation in $isolations; do
		rounds --set 'run.devices=cpu:0 cpu:1 cpu:2' --set device.cpu.workers=3 \
			--set device.cpu.isolation=$isolation
		# Two non-coherent devices must not change the same word.
		rounds --set 'run.devices=cpu:0 cpu:1' --set device.cpu.workers=3 \
			--set device.cpu.isolation=$isolation \
			--set transport.use=p2p --set transport.p2p.atomics=no
	done
done
# Tests barriers of groups, and workers that leave a group, up to all workers of a device.
for barrier in auto central release; do
	for devices in cpu:0 'cpu:0 cpu:1'; do
		own="--set device.cpu.workers=4 --set transport.use=p2p --set transport.p2p.atomics=no"
		rounds --set "run.devices=$devices" $own --set workload.barrier.scope=group \
			--set workload.barrier.teams=3
		rounds --set "run.devices=$devices" $own --set workload.barrier.leave=5
		rounds --set "run.devices=$devices" $own --set workload.barrier.scope=group \
			--set workload.barrier.leave=3
	done
done
expect 4 "has a barrier of the scope 'group', which barrier_flags does not support" "$G" run conf/barrier.ini \
	--set barrier.use=flags \
	--set workload.barrier.scope=group
expect 4 'leave the barrier for good, which barrier_tree does not support' "$G" run conf/barrier.ini \
	--set barrier.use=tree \
	--set workload.barrier.leave=1
barrier=release
for end in spin yield nap sleep; do
	rounds --set barrier.wait=$end --set workload.barrier.work=50
done
barrier=tree
rounds --set barrier.tree.arity=2 --set device.cpu.workers=7 --set workload.barrier.scope=worker
expect 2 'arity = 5: must be a power of two, at least 2' "$G" run conf/barrier.ini $small --set barrier.use=tree \
	--set barrier.tree.arity=5
expect 2 'no barrier is selected' "$G" run conf/barrier.ini --set barrier.use=
# The message names a worker that never arrives. The deadline is long enough for a busy machine to start the others.
for barrier in release dissemination flags; do
	expect 124 'worker 2 has not arrived at the barrier' "$G" run conf/barrier.ini $small \
		--set barrier.use=$barrier \
		--set device.cpu.workers=4 --set workload.barrier.absent=2 --set workload.barrier.deadline=500ms
done

# At the scope of the job, ranks notify each other by messages. A single rank sends none.
job() {
	expect 0 'verified' "$G" run conf/barrier.ini $small --set barrier.use=$barrier \
		--set workload.barrier.scope=job \
		--set device.cpu.wait=yield "$@"
}
barrier=auto
job
expect 2 "has a barrier of the scope 'job', and 2 ranks synchronise by messages: set 'use = NAME' in .trigger" "$G" \
	run conf/barrier.ini --ranks 2 \
	--set workload.barrier.scope=job
expect 124 'has not arrived at the barrier' "$G" run conf/barrier.ini $small --ranks 3 \
	--set workload.barrier.scope=job \
	--set trigger.use=peer --set workload.barrier.absent=1 --set workload.barrier.deadline=500ms
job --ranks 4 --set trigger.use=peer --set 'run.devices=cpu:0 cpu:1' --set workload.barrier.work=50
if [ -e "$B/plugins/trigger_gputn.so" ]; then # the build has libfabric
	job --ranks 3 --set trigger.use=gputn --set trigger.provider=tcp --set device.cpu.lanes=2
	job --ranks 2 --set trigger.use=proxy --set trigger.provider=shm
	expect 4 'needs a trigger that sends while a kernel runs' "$G" run conf/barrier.ini --ranks 2 \
		--set workload.barrier.scope=job \
		--set trigger.use=hdn --set trigger.provider=tcp
	for barrier in $plugins; do
		job --ranks 4 --set trigger.use=gputn --set trigger.provider=shm
	done
fi

# Sums need barriers. 40,004 floats do not divide into whole tiles per worker.
sums() {
	expect 0 'verified' "$G" run -v conf/reduce.ini --samples 1 --set run.warmup=0 --set workload.reduce.floats=40004 \
		--set workload.reduce.rounds=20 "$@"
}
for barrier in $plugins; do
	sums --set barrier.use=$barrier --set device.cpu.workers=3
	sums --set barrier.use=$barrier --set 'run.devices=cpu:0 cpu:1' --set transport.use=p2p \
		--set transport.p2p.atomics=no
done
for isolation in $isolations; do
	sums --set 'run.devices=cpu:0 cpu:1 cpu:2' --set device.cpu.workers=3 --set device.cpu.isolation=$isolation
done
sums --set device.cpu.lanes=3
sums --set device.cpu.workers=1 --set device.cpu.lanes=35
grep -q ' by_warp_model ' "$tmp/out" || fail 'no warp among the ways of a worker with 35 lanes'
sums --set workload.reduce.way=device --set workload.reduce.floats=4
grep -q ' by_worker_model ' "$tmp/out" && fail 'way = device ran others, too'
expect 2 'floats = 6: not a multiple of 4' "$G" run conf/reduce.ini --set workload.reduce.floats=6
expect 2 'way = stack: there is only one device' "$G" run conf/reduce.ini --set workload.reduce.way=stack
[ "$isolations" != thread ] || finish
# Without a barrier worker 0 reads values that others have not written yet.
expect 3 'reduce: way device: round [0-9]*: the sum is [0-9]* instead of [0-9]*' "$G" run conf/reduce.ini --samples 1 \
	--set barrier.use="$B/tests/broken/barrier_device.so" --set workload.reduce.floats=40004
# When a device is killed in mid-run, the workers of the other device stop waiting, and the message names the killed device.
for barrier in release flags; do
	without_a_device $barrier conf/barrier.ini --set barrier.use=$barrier --set 'run.devices=cpu:0 cpu:1' \
		--set workload.barrier.difference=1000000000
done
finish
