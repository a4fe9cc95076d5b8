# SPDX-License-Identifier: Apache-2.0
# Tests that a job never blocks the machine. A program that sleeps for 50 ms at a time must never be late by more than 100 ms,
# on any core. Beside this program run jobs, whose threads wait in each way that an option offers.
#   BYSTANDER=all tests/check-bystander.sh BUILD     tries all combinations of ways to wait, for longer
. tests/lib.sh
network=yes
[ -e "$B/plugins/trigger_gputn.so" ] || {
	network=
	echo 'left out: jobs of several ranks: built without libfabric (Debian: libfabric-dev)'
}
python3 - "$G" "${BYSTANDER:-some}" "$network" <<'PY' || fail 'a bystander was late'
import itertools, json, os, resource, signal, subprocess, sys, time

G, which, network = sys.argv[1:]
LATE, SLEEP, SECONDS = 0.1, 0.05, 8 if which == 'all' else 1.2
cores = sorted(os.sched_getaffinity(0))

def ways(plugin, option):
    rows = json.loads(subprocess.run([G, 'describe', plugin, '--json'], capture_output=True, check=True).stdout)['options']
    return next(row['choices'] for row in rows if row['name'] == option)

def bystander(core, seconds, out):
    """Runs in its own session and so in its own scheduling group of the kernel, as other programs do."""
    os.setsid()
    os.sched_setaffinity(0, {core})
    worst, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        time.sleep(SLEEP)
        worst = max(worst, time.monotonic() - begin - SLEEP)
    os.write(out, b'%f\n' % worst)

def worst_of(seconds):
    """Returns the longest delay of sleeping programs, one on each core."""
    into, out = os.pipe()
    children = []
    for core in cores:
        pid = os.fork()
        if pid == 0:
            bystander(core, seconds, out)
            os._exit(0)
        children.append(pid)
    os.close(out)
    with os.fdopen(into) as f:
        said = [float(line) for line in f]
    for pid in children:
        os.waitpid(pid, 0)
    return max(said)

def beside(command, stop):
    """Returns the longest delay beside a job at work, and the job's message if it has ended. stop: one process of the
    job is stopped, so that the others wait for it."""
    job = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(2 if stop else 0.3)
    if stop:
        with open('/proc/%d/task/%d/children' % (job.pid, job.pid)) as f:
            os.kill(int(f.read().split()[-1]), signal.SIGSTOP)
    worst = worst_of(SECONDS)
    over = job.poll() is not None
    if not over:
        os.killpg(job.pid, signal.SIGKILL)
    text = job.stderr.read().decode()
    job.wait()
    return worst, text if over else None

endless = ['--samples', '1000000', '--quiet']
def conf(name, ranks=0, **values):
    line = [G, 'run', *(['-n', str(ranks)] if ranks else []), 'conf/%s.ini' % name, *endless]
    for key, value in values.items():
        line += ['--set', key.replace('__', '.') + '=' + value]
    return line

n = str(2 * len(cores))
oversubscribed = dict(device__cpu__workers=n, device__cpu__oversubscribe='yes', run__devices='cpu:0')
cases, stopped = [], []
yields, idles = ways('device.cpu', 'wait'), ways('scheduler.mgws', 'wait')
waits = ways('trigger.gputn', 'wait') if network else []
if which != 'all': # each way once
    pairs = [(y, 'yield') for y in yields] + [('yield', w) for w in waits if w != 'yield']
else:
    pairs = itertools.product(yields, waits)
for y, w in pairs if network else ():
    for job in ('jacobi2d', 'allreduce') if which == 'all' else ('jacobi2d',):
        cases.append(conf(job, 4, device__cpu__wait=y, trigger__wait=w))
        stopped += cases[-1:] if y == 'yield' or which == 'all' else []
if network:
    cases += [conf('allreduce', 4)] if which != 'all' else []
    stopped.append(conf('jacobi2d', 4))
for i, term, y in itertools.product(idles, ('counter', 'tree'), yields if which == 'all' else yields[:1]):
    if which == 'all' or term == 'counter' or i == 'sleep':
        cases.append(conf('uts', scheduler__wait=i, termination__use=term, device__cpu__wait=y, **oversubscribed))
for sync in ('poll', 'futex', 'warp', 'wic'):
    cases.append(conf('wic', run__workload='c2d', sync__use=sync))
for how in ways('sync.backoff', 'wait'):
    cases.append(conf('wic', run__workload='c2d', sync__use='backoff', sync__backoff__wait=how))
for use in ('split', 'monolithic'):
    for notify in ways('qos.' + use, 'notify'):
        if notify in ('interrupt', 'hybrid'): # only GPUs send interrupts
            continue
        cases.append(conf('qos/storm', qos__use=use, qos__notify=notify))

late = 0
for command, stop in [(c, False) for c in cases] + [(c, True) for c in stopped]:
    what = ('one stopped: ' if stop else '') + ' '.join(word for word in command[2:] if word not in endless and word != '--set')
    for trial in range(3):
        worst, text = beside(command, stop)
        if text is not None:
            print('FAILED: the job ended: %s: %s' % (what, text), flush=True)
            late += 1
        if text is not None or worst <= LATE:
            break
        # The job is the cause only if delays occur repeatedly beside it, and never without it.
        without = worst_of(SECONDS)
        print('  %4.0f ms beside it, %.0f ms without: %s' % (1e3 * worst, 1e3 * without, what), flush=True)
        if without > LATE:
            print('  undecided: the machine is late by itself')
            break
    else:
        late += 1
    print('%6.1f ms  %s' % (1e3 * worst, what), flush=True)
print('%d jobs, %d late' % (len(cases) + len(stopped), late))
sys.exit(late != 0)
PY
finish
