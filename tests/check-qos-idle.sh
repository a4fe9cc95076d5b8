# SPDX-License-Identifier: Apache-2.0
# Tests that the service path sleeps while there are no requests, by counting how often the threads of a run wake up. A sleeping
# worker must end when the run is stopped.
. tests/lib.sh
conf=conf/qos/storm.ini
W=workload.requests_storm
asleep="--set run.warmup=0 --set run.samples=1 --set $W.pace=10s --set $W.pause=100s"

cat >"$tmp/wakes.py" <<'PY'
import os, subprocess, sys, time
def wakes(pid):
    n = {}
    for task in os.listdir(f'/proc/{pid}/task'):
        text = open(f'/proc/{pid}/task/{task}/status').read().split('\n')
        of = dict(line.split(':\t', 1) for line in text if ':\t' in line)
        n[of['Name'] + '/' + task] = int(of['voluntary_ctxt_switches'])
    return n
p = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
workers, last = 0, {}
while p.poll() is None and not (last and wakes(p.pid) == last): # until no thread wakes any more
    last = wakes(p.pid) if any(n.startswith('cpu:0.w0') for n in wakes(p.pid)) else {}
    time.sleep(0.3)
def awake():
    before = wakes(p.pid)
    time.sleep(2)
    woke = {name: n - before.get(name, 0) for name, n in wakes(p.pid).items()}
    print({name: n for name, n in woke.items() if n})
    # The path and the worker sleep without a time limit; the host polls once a second.
    return any(n for name, n in woke.items() if name.startswith(('qos-', 'cpu:'))) or sum(woke.values()) > 6
# The worker posts a request every 10 s. If the first interval includes a request, the next one does not.
failed = awake() and awake()
p.kill()
sys.exit(failed)
PY
for use in split monolithic 'coalesce monolithic steer budget'; do
	expect 0 '' python3 "$tmp/wakes.py" "$G" run "$conf" --quiet $asleep --set $W.duration=50s \
		--set "qos.use=$use" --set qos.class=other
	[ "$got" -eq 0 ] || cat "$tmp/out"
done
for isolation in thread process; do
	expect 124 'workers left after the stop' "$G" run "$conf" $asleep --set run.timeout=1s \
		--set $W.duration=50s --set device.cpu.isolation=$isolation
done
finish
