# SPDX-License-Identifier: Apache-2.0
# joules, from a folder in place of /sys/class/powercap. Each sample is a command that advances the counter by a known amount.
# check-device-cuda.sh has the same for a GPU.
. tests/lib.sh
zones=$tmp/powercap
for zone in intel-rapl:0 intel-rapl:1 intel-rapl:0:0 intel-rapl-mmio:0; do
	mkdir -p "$zones/$zone"
	echo package-0 >"$zones/$zone/name"
	echo 0 >"$zones/$zone/energy_uj"
	echo 1000000 >"$zones/$zone/max_energy_range_uj"
done
echo package-1 >"$zones/intel-rapl:1/name"
echo core >"$zones/intel-rapl:0:0/name"
cat >"$tmp/burn" <<SH
#!/bin/sh
# Advances the counters of both packages, which wrap at 1 J.
for zone in 'intel-rapl:0' 'intel-rapl:1' 'intel-rapl:0:0' 'intel-rapl-mmio:0'; do
	now=\$(cat "$zones/\$zone/energy_uj")
	echo \$(((now + \$1) % 1000000)) >"$zones/\$zone/energy_uj"
done
SH
chmod +x "$tmp/burn"
exec_conf "$tmp/a.ini" "$tmp/burn 300000"
with="--set run.joules=yes --set device.cpu.powercap=$zones"

expect 0 '' "$G" run "$tmp/a.ini" $with --samples 10 --json -
python3 - "$tmp/out" <<'PY' || fail 'the energy of two packages, with wraps'
import json, sys
m = json.load(open(sys.argv[1]))['metrics']['joules']
assert m['unit'] == 'J' and m['better'] == 'less', m
assert len(m['samples']) == 10 and all(abs(s - 0.6) < 1e-9 for s in m['samples']), m
PY
# Two devices share the packages, so the energy counts once.
expect 0 'joules +0.6 J' "$G" run "$tmp/a.ini" $with --samples 3 --set run.devices='cpu:0 cpu:1' \
	--set device.cpu.oversubscribe=yes --set device.cpu.cores=0
expect 0 'joules' "$G" compare "$tmp/a.ini" $with --spread 0 --blocks 7 --samples-per-block 2 --metric joules \
	--vary "workload.exec.command=$tmp/burn 300000,$tmp/burn 310000"
grep -q 'SLOWER' "$tmp/out" || fail 'joules are not judged'
! "$G" run "$tmp/a.ini" --samples 1 2>/dev/null | grep -q joules || fail 'joules without the option'

# What is missing, and what to do.
expect 4 'has no zone of a CPU package.*set joules = no' "$G" run "$tmp/a.ini" --set run.joules=yes \
	--set device.cpu.powercap="$tmp"
rm "$zones/intel-rapl:1/energy_uj"
expect 4 'intel-rapl:1/energy_uj: No such file' "$G" run "$tmp/a.ini" $with
expect 4 'sim:0 has no energy counter' "$G" run "$tmp/a.ini" $with --set run.devices=sim:0 --set run.workload=fib \
	--set scheduler.use=mgws --set termination.use=counter
if [ "$(id -u)" != 0 ]; then
	echo 0 >"$zones/intel-rapl:1/energy_uj"
	chmod 0 "$zones/intel-rapl:1/energy_uj"
	expect 4 'as root, run chmod a.r on it' "$G" run "$tmp/a.ini" $with
fi
finish
