# SPDX-License-Identifier: Apache-2.0
# The barriers over layouts of CPU devices: one, two, apart, in processes, with lanes, more workers than cores; and how
# waits end that cannot be over.
. tests/lib.sh
plugins='auto central release tree dissemination flags'
isolations='thread process'
# A race detector sees nothing of what other processes do, and would take their order for none.
case $B in *thread*) isolations=thread ;; esac
small='--samples 1 --set run.warmup=0 --set workload.barrier.few=10 --set workload.barrier.difference=20
	--set workload.barrier.parts=2 --set workload.barrier.checked=60'
meets() {
	expect 0 'verified' "$G" run conf/barrier.ini $small --set barrier.use=$barrier "$@"
}
for barrier in $plugins; do
	meets --set workload.barrier.work=100
	meets --set device.cpu.workers=9 --set workload.barrier.scope=device
	meets --set device.cpu.workers=3 --set device.cpu.lanes=3
	for isolation in $isolations; do
		meets --set 'run.devices=cpu:0 cpu:1 cpu:2' --set device.cpu.workers=3 --set device.cpu.isolation=$isolation
		# Apart: no word may be changed by two devices.
		meets --set 'run.devices=cpu:0 cpu:1' --set device.cpu.workers=3 --set device.cpu.isolation=$isolation \
			--set transport.use=p2p --set transport.p2p.atomics=no
	done
done
barrier=release
for end in spin yield nap futex; do
	meets --set barrier.release.end=$end --set workload.barrier.work=50
done
barrier=tree
meets --set barrier.tree.arity=2 --set device.cpu.workers=7 --set workload.barrier.scope=worker
expect 2 'arity = 5: not a power of two from 2 on' "$G" run conf/barrier.ini $small --set barrier.use=tree --set barrier.tree.arity=5
expect 4 "scope 'job', which barrier_central does not have" "$G" run conf/barrier.ini $small --set barrier.use=central \
	--set workload.barrier.scope=job
expect 2 'no barrier is selected' "$G" run conf/barrier.ini --set barrier.use=
# Who never comes is named. The deadline is long enough for a busy machine to start the others.
for barrier in release dissemination flags; do
	expect 124 'worker 2 has not come to the barrier' "$G" run conf/barrier.ini $small --set barrier.use=$barrier \
		--set device.cpu.workers=4 --set workload.barrier.absent=2 --set workload.barrier.deadline=500ms
done
[ "$isolations" != thread ] || finish
# A device killed in mid-run: the workers of the other one stop waiting, and the message names it.
for barrier in release flags; do
	without_a_device $barrier conf/barrier.ini --set barrier.use=$barrier --set 'run.devices=cpu:0 cpu:1' \
		--set workload.barrier.difference=1000000000
done
finish
