# SPDX-License-Identifier: Apache-2.0
# Automatic choices are reported: in results, by `run --verbose`, and by comparisons. A slower choice gives a warning.
. tests/lib.sh
small='--samples 1 --set workload.uts.tree=custom --set workload.uts.type=binomial --set workload.uts.b0=500 --set workload.uts.q=0.12'
left() { # WHAT: reports a part that cannot run here
	echo "left out: $1"
}

expect 0 'device.cpu:0.cores: [0-9]' "$G" run -v conf/uts.ini $small
expect 0 'transport.atomics: between devices' "$G" run --verbose conf/uts.ini $small
expect 0 'barrier.cpu:0.how: (counter|released word)' "$G" run -v conf/barrier.ini --samples 1 --set barrier.use=auto
"$G" run conf/uts.ini $small --json "$tmp/one.json" >/dev/null 2>&1
python3 - "$tmp" <<'PY' || fail 'choices in a result'
import json, sys
doc = json.load(open(sys.argv[1] + '/one.json'))
assert set('0123456789-,') >= set(doc['choices']['device.cpu:0.cores']), doc['choices']
doc['choices']['trigger.provider'] = 'shm'
json.dump(doc, open(sys.argv[1] + '/shm.json', 'w'))
doc['choices']['trigger.provider'] = 'tcp;ofi_rxm'
json.dump(doc, open(sys.argv[1] + '/tcp.json', 'w'))
PY
# A comparison of files reports different choices.
expect 0 'trigger.provider: shm in .*, tcp;ofi_rxm in' "$G" compare "$tmp/shm.json" "$tmp/tcp.json"
expect 0 'trigger.provider: not chosen in .*, shm in' "$G" compare "$tmp/one.json" "$tmp/shm.json"
"$G" compare "$tmp/shm.json" "$tmp/shm.json" 2>&1 | grep -q 'trigger.provider' && fail 'the same choice differs'

# Without room in /dev/shm the provider tcp is chosen, and a warning names a remedy.
if [ ! -e "$B/plugins/trigger_gputn.so" ]; then
	left 'trigger_gputn was not built'
elif ! unshare -m mount -t tmpfs -o size=4k gpuloom /dev/shm 2>/dev/null; then
	left 'mounts are not allowed'
else
	expect 0 'trigger.provider: (shm|tcp)' "$G" run -v -n 2 conf/pingpong.ini --samples 1 \
		--set workload.pingpong.rounds=20
	if grep -q 'provider: shm' "$tmp/out"; then
		cat >"$tmp/tight" <<-'SH'
		mount -t tmpfs -o size=4k gpuloom /dev/shm && exec "$@"
		SH
		expect 0 'provider tcp.*slower.*/dev/shm has 0.0 MiB free.*enlarge it' unshare -m sh "$tmp/tight" "$G" \
			run -n 2 \
			conf/pingpong.ini --samples 1 --set workload.pingpong.rounds=20
		expect 4 '/dev/shm has 0.0 MiB free.*enlarge it' unshare -m sh "$tmp/tight" "$G" run -n 2 \
			conf/pingpong.ini \
			--samples 1 --set trigger.provider=shm
	else
		left 'libfabric offers no shm here'
	fi
fi

# A launcher may let each rank run on all cores. A warning reports more workers than cores.
cores=$(nproc)
grep -v '^workers' conf/uts-ranks.ini >"$tmp/ranks.ini"
if [ -e "$B/plugins/trigger_peer.so" ]; then
	if command -v mpirun >/dev/null; then
		expect 0 "2 ranks have $((2 * cores)) workers on the same $cores core" mpirun --allow-run-as-root \
			--oversubscribe --bind-to none -n 2 "$G" run "$tmp/ranks.ini" $small --set device.cpu.workers=$cores
	fi
	[ "$cores" -lt 2 ] || {
		expect 0 '' "$G" run -n 2 "$tmp/ranks.ini" $small --set device.cpu.workers=1
		! grep -q 'ranks have' "$tmp/err" || fail 'a warning of ranks that have cores of their own'
	}
fi

# The test sets a quota of CPU time in its own control group of version 1 or 2.
group=
for at in /sys/fs/cgroup/cpu /sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup; do
	[ -e "$at/cgroup.procs" ] && mkdir "$at/gpuloom-test-$$" 2>/dev/null || continue
	group=$at/gpuloom-test-$$
	trap 'rmdir "$group" 2>/dev/null; rm -rf "$tmp"' EXIT
	if [ -w "$group/cpu.cfs_quota_us" ] && echo 100000 >"$group/cpu.cfs_period_us" &&
		echo 50000 >"$group/cpu.cfs_quota_us"; then
		break
	elif [ -w "$group/cpu.max" ] && echo '50000 100000' >"$group/cpu.max"; then
		break
	fi
	rmdir "$group"
	group=
done 2>/dev/null
if [ -z "$group" ]; then
	left 'no control group can be made'
else
	cat >"$tmp/limited" <<-SH
	echo \$\$ >"$group/cgroup.procs" && exec "\$@"
	SH
	expect 0 'cpu: time +limited +0.50 CPUs' sh "$tmp/limited" "$G" doctor
	expect 0 '2 workers in a control group that grants time for 0.5 CPUs.*raise the limit' sh "$tmp/limited" "$G" \
		run \
		conf/fib.ini --samples 2 --set run.devices=cpu:0 --set device.cpu.workers=2 \
		--set device.cpu.oversubscribe=yes
	expect 0 '"cpu_quota":[[:space:]]*"0.5 cores"' sh "$tmp/limited" "$G" run conf/fib.ini --samples 2 --json - \
		--set run.devices=cpu:0 \
		--set device.cpu.workers=1
	# The default number of workers is at most the CPU time of the group.
	expect 0 'cpu:0 \(1 worker\)' sh "$tmp/limited" "$G" run conf/fib.ini --samples 1 --set run.devices=cpu:0 \
		--set device.cpu.workers=0
	rmdir "$group"
fi

finish
