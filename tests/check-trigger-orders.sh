# SPDX-License-Identifier: Apache-2.0
# What a trigger can be: posted before or after its fire, fired by work-item, work-group, kernel or a mix,
# chained so that no processor takes part. Every result is verified, under every plug-in.
. tests/lib.sh
[ -e "$B/plugins/trigger_gputn.so" ] || {
	echo 'skipped: built without libfabric (Debian: libfabric-dev)'
	exit 77
}
export FI_SOCKETS_PE_WAITTIME=0
two='--set device.cpu.oversubscribe=yes'
# each SO: one plug-in, in a folder of its own; they run side by side, since most of a start is waiting.
each() {
	tmp=$tmp/${1##*/}
	mkdir "$tmp"
	so=$1
	use="--samples 1 --set trigger.use=${so##*/trigger_}" use=${use%.so}
	for order in fire-first random; do
		expect 0 verified "$G" run -n 2 conf/pingpong.ini $use --set workload.pingpong.order=$order \
			--set workload.pingpong.rounds=50
		expect 0 verified "$G" run -n 3 conf/allreduce.ini $use --set workload.allreduce.order=$order \
			--set workload.allreduce.bytes=100KB --set workload.allreduce.piece=4KiB
	done
	expect 0 verified "$G" run -n 3 conf/allreduce.ini $use --set workload.allreduce.chain=yes \
		--set workload.allreduce.bytes=24KiB --set workload.allreduce.piece=1KiB
	expect 0 verified "$G" run -n 4 conf/allreduce.ini $use --set device.cpu.workers=2 $two \
		--set workload.allreduce.bytes=100KB
	for by in item group kernel mixed; do
		expect 0 verified "$G" run -n 2 conf/msgrate.ini $use --set workload.msgrate.by=$by \
			--set workload.msgrate.operation=put --set workload.msgrate.fires=400 --set workload.msgrate.per=4 \
			--set device.cpu.workers=2 --set device.cpu.lanes=2 $two
	done
	expect 0 verified "$G" run -n 1 conf/pingpong.ini $use --set device.cpu.isolation=process \
		--set workload.pingpong.rounds=50
	expect 0 verified "$G" run -n 1 conf/pingpong.ini $use --set workload.pingpong.kernel=yes \
		--set device.cpu.launch_cost=5us --set workload.pingpong.rounds=50
	[ "$failures" -eq 0 ]
}
pids=
for so in "$B"/plugins/trigger_*.so; do
	(trap - EXIT; each "$so") &
	pids="$pids $!"
done
for pid in $pids; do wait "$pid" || failures=$((failures + 1)); done
expect 2 'arrivals fire most' "$G" run -n 2 conf/allreduce.ini --set workload.allreduce.chain=yes \
	--set workload.allreduce.order=fire-first
expect 4 'no such endpoint with triggered operations' "$G" run conf/pingpong.ini --set trigger.use=ofi \
	--set trigger.ofi.provider=shm
for provider in tcp net sockets shm; do
	expect 0 verified "$G" run -n 2 conf/jacobi2d.ini --samples 1 --set workload.jacobi2d.n=40 \
		--set workload.jacobi2d.sweeps=12 --set trigger.gputn.provider=$provider
	expect 0 verified "$G" run -n 2 conf/allreduce.ini --samples 1 --set workload.allreduce.bytes=100KB \
		--set trigger.use=counter --set trigger.counter.provider=$provider --set trigger.counter.wait=sleep
done
finish
