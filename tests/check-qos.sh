# SPDX-License-Identifier: Apache-2.0
# Service requests through whole runs: every service under every arrangement, pipelines of all policies, and both isolations,
# with a victim and with tenants. Invalid options are rejected.
. tests/lib.sh
conf=conf/qos/storm.ini
W=workload.requests_storm
run() {
	expect 0 'verified' "$G" run "$conf" --samples 2 --set run.warmup=0 "$@"
}
# Real-time and nice classes would let tests starve each other, so the tests use the normal class.
other='--set qos.class=other'

for service in nothing signal fault alloc read write migrate send; do
	for use in split monolithic; do
		run $other --set $W.requests=2000 --set $W.service=$service --set qos.use=$use \
			--set device.cpu.workers=2
	done
	run $other --set $W.requests=2000 --set $W.service=$service --set qos.use=monolithic \
		--set device.cpu.isolation=process
done
for use in coalesce 'split coalesce steer' 'steer monolithic' 'coalesce monolithic' \
	'throttle' 'split throttle' 'monolithic throttle steer' 'budget' 'monolithic budget' \
	'coalesce steer monolithic budget' 'split coalesce throttle budget'; do
	for notify in eventfd poll; do
		run $other --set $W.requests=1500 --set "qos.use=$use" \
			--set qos.notify=$notify --set qos.budget.limit=50% \
			--set qos.throttle.limit=50% --set qos.throttle.delay_most=1ms
	done
done
run $other --set $W.requests=1500 --set 'qos.use=split steer' --set qos.steer.cores=0
run $other --set $W.requests=1000 --set qos.use=split
run $other --set $W.requests=1000 --set qos.use=split --set transport.use=p2p --set 'run.devices=cpu:0 cpu:1' \
	--set $W.tenants=2

for app in bfs spmv sssp bpt xsbench; do
	for isolation in thread process; do
		expect 0 'verified' "$G" run conf/qos/apps.ini --samples 2 $other --set workload.requests_app.app=$app \
			--set device.cpu.isolation=$isolation --set device.cpu.workers=2 --set device.cpu.lanes=2 \
			--set workload.requests.size=3000 --set workload.requests.lookups=3000
	done
	# With fewer requests than lanes, lane 0 takes answers before it posts for the next lanes.
	for outstanding in 1 2; do
		expect 0 'verified' "$G" run conf/qos/apps.ini --samples 2 $other --set workload.requests_app.app=$app \
			--set device.cpu.workers=2 --set device.cpu.lanes=4 --set workload.requests.outstanding=$outstanding \
			--set workload.requests.size=3000 --set workload.requests.lookups=3000
	done
	# The answers are the same in repeated runs beside a victim, with and without requests.
	for isolation in thread process; do
		expect 0 'victim_speed' "$G" run -v conf/qos/apps.ini --samples 2 --set run.warmup=0 $other \
			--set workload.requests_app.app=$app --set workload.requests.size=1000 \
			--set device.cpu.isolation=$isolation --set "workload.requests.victim=sleep 0.05"
	done
done

expect 0 'victim_speed' "$G" run -v "$conf" --samples 2 --set run.warmup=0 $other \
	--set "$W.victim=sleep 0.1" --set $W.victim_cores=0 --set $W.pause=1ms
expect 0 'requests_per_s' "$G" run "$conf" --samples 2 --set run.warmup=0 $other --set $W.duration=100ms
# Tests the victims that have a name, the counters of a victim (or the reason why there are none), and samples without requests.
for name in memory barrier; do
	expect 0 'victim_speed' "$G" run -v "$conf" --samples 1 --set run.warmup=0 $other --set $W.victim=@$name --set $W.pause=1ms
done
expect 2 "no victim '@memoy': there are @x264, .*@idle, and commands" "$G" run "$conf" --set $W.victim=@memoy
"$G" run -v "$conf" --samples 1 --set run.warmup=0 $other --set $W.victim=@barrier --set workload.requests.victim_counters=yes \
	>"$tmp/out" 2>&1
got=$?
case $got in
0) grep -q victim_l1d_misses "$tmp/out" || fail 'victim_counters: no metric' ;;
4) grep -q 'victim_counters: this machine lets a process count no cache misses' "$tmp/out" || fail 'victim_counters: no reason' ;;
*) fail "victim_counters: exit $got" ;;
esac
expect 0 'requesting' "$G" run -v "$conf" --samples 1 --set run.warmup=0 $other --set $W.duration=100ms \
	--set workload.requests.silent=yes
grep '^  requests' "$tmp/out" && fail 'silent = yes: there were requests'
expect 2 'silent = yes needs a duration' "$G" run "$conf" --set workload.requests.silent=yes
expect 2 'silent = yes is for samples without a victim' "$G" run "$conf" --set workload.requests.silent=yes --set $W.duration=1s \
	--set $W.victim=@gzip
# The CPU time of polling is charged, too. While no tenant is served, polling must not use up a small budget.
expect 0 verified "$G" run conf/qos/storm.ini --samples 1 --set run.warmup=0 --set 'qos.use=split budget' \
	--set qos.notify=poll --set qos.budget.limit=2% --set 'run.devices=cpu:0 cpu:1' --set $W.service=migrate \
	--set $W.bytes=65536 --set $W.room=65536 --set $W.requests=300
# The path keeps a budget: the clocks of its threads measure the CPU time over a second, with room for noise.
expect 0 verified "$G" run "$conf" --samples 1 --set run.warmup=0 $other --set $W.duration=1500ms \
	--set 'qos.use=monolithic budget' --set qos.budget.limit=5% --set $W.pause=1ms \
	--set $W.outstanding=1024 --json "$tmp/budget.json"
python3 - "$tmp/budget.json" <<'PY' || fail 'the budget of 5%'
import json, sys
share = json.load(open(sys.argv[1]))['metrics']['qos_cpu_share']['median']
print('share', share)
sys.exit(0 if 0.02 < share < 0.06 else 1)
PY

# Invalid options are rejected, each with its reason.
expect 2 'named twice' "$G" run "$conf" --set 'qos.use=split split'
expect 2 'no qos is selected' "$G" run "$conf" --set qos.use=
expect 4 'cannot run the victim' "$G" run "$conf" --set "$W.victim=/no/such/program" --set run.warmup=0
printf '#!/bin/sh\necho no rate\n' >"$tmp/openssl"
chmod +x "$tmp/openssl"
expect 4 'prints no rate' "$G" run "$conf" --set "$W.victim=$tmp/openssl speed" --set run.warmup=0
expect 4 "victim = @openssl is not installed: install the package 'openssl'" env PATH=/nowhere "$G" run "$conf" \
	--set $W.victim=@openssl --set run.warmup=0
expect 4 'install it, or set .victim. to another' "$G" run "$conf" --set "$W.victim=no-such-program" --set run.warmup=0
expect 3 "victim 'false' failed with exit code 1" "$G" run "$conf" --set "$W.victim=false" --set run.warmup=0
expect 3 "exit code 2: .*no-such-file" "$G" run "$conf" --set "$W.victim=ls no-such-file" --set run.warmup=0
printf '#!/bin/sh\nkill -9 $$\n' >"$tmp/dies"
chmod +x "$tmp/dies"
expect 3 "was ended by signal 9" "$G" run "$conf" --set "$W.victim=$tmp/dies" --set run.warmup=0
expect 2 'bytes = 65536: a datagram' "$G" run "$conf" --set $W.service=send --set $W.bytes=64KiB
expect 2 'service = alloc posts both' "$G" run "$conf" --set $W.service=free
expect 2 'may hold 2359296 bytes, but room is 1048576: raise room' "$G" config check "$conf" --set $W.service=alloc \
	--set $W.bytes=32769 --set $W.outstanding=64
expect 0 verified "$G" run "$conf" --set $W.service=alloc --set $W.bytes=32769 --set $W.outstanding=16 --samples 1
expect 2 'service = fault posts both' "$G" run "$conf" --set $W.service=evict
expect 2 'power of two' "$G" run "$conf" --set $W.outstanding=33
expect 2 'the rings of 256 workers would take 1152 MiB, and the limit is 1024' "$G" run "$conf" \
	--set $W.service=nothing \
	--set $W.outstanding=65536 --set device.cpu.workers=256
expect 4 'for GPUs only, and cpu:0 is not a GPU: set eventfd or poll' "$G" run "$conf" --set qos.notify=hybrid
expect 2 'tenants need as many workers' "$G" run "$conf" --set $W.tenants=9
finish
