#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills or stops one process of a job at a random moment, again and again.

usage: kills.py BUILD [KILLS [SEED]] [--ranks N] [--jobs N] [--seconds N]

--ranks runs jobs of N ranks, and kills each rank KILLS times. --jobs runs N jobs at once. After --seconds no job starts.

A job whose rank or device process is killed ends within 5 s, with a status other than 0 and an error that names the
process. When the first process of a job is killed, all others die with it. A job with a process that is stopped for 3 s continues
afterwards, or ends with an error. No process and no file in shared memory is left behind, and no descriptor if main()
returns. A failure prints the command that repeats it.
"""
import collections, multiprocessing, os, random, re, signal, statistics, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'faults'))
import pace, soak, walk

words = sys.argv[1:]
def option(name, default):
    if name not in words:
        return default
    words.pop(at := words.index(name))
    return int(words.pop(at))

many, at_once, seconds = option('--ranks', 0), option('--jobs', 1), option('--seconds', 1e9)
build, kills, seed = (words + ['8', str(time.time_ns())][len(words) - 1:])[:3]
G = os.path.join(build, 'gpuloom')
SHIM = os.path.abspath(os.path.join(build, 'tests/faults.so'))
PRELOADS = os.path.exists(SHIM) and not re.search(r'/(thread|address|undefined)', build) # a sanitizer must be the first library, so the shim cannot be preloaded
NOTICED, STOPPED = 5, 3
endless = ['--samples', '1000000', '--set', 'run.timeout=10m']
uts = ['conf/uts.ini', '--set', 'device.cpu.isolation=process', '--set', 'workload.uts.tree=T1', *endless]
mailboxes = ['--set', 'transport.host.atomics=no', '--set', 'termination.use=hcounter']
jobs = {
    '4 ranks, jacobi2d': ['-n', '4', 'conf/jacobi2d.ini', *endless],
    '4 ranks, sgd': ['-n', '4', 'conf/sgd.ini', *endless],
    '4 ranks, allreduce': ['-n', '4', 'conf/allreduce.ini', '--set', 'workload.allreduce.bytes=64KiB', *endless],
    '4 ranks that meet': ['-n', '4', 'conf/barrier.ini', '--set', 'trigger.use=gputn', '--set',
                          'workload.barrier.scope=job',
                          '--set', 'workload.barrier.difference=500', '--set', 'device.cpu.wait=yield', *endless],
    '3 ranks that share tasks': ['-n', '3', 'conf/uts-ranks.ini', *endless],
    '3 ranks that ask for tasks': ['-n', '3', 'conf/uts-ranks.ini', '--set', 'trigger.use=gputn', '--set',
                                   'trigger.provider=tcp',
                                   '--set', 'trigger.wait=nap', '--set', 'termination.use=tree', *endless],
    '2 device processes': uts,
    '2 that use mailboxes': uts + mailboxes,
}
if not os.path.exists(build + '/plugins/trigger_gputn.so'):
    print('left out: jobs of several ranks: built without libfabric (Debian: libfabric-dev)')
    jobs = {name: job for name, job in jobs.items() if '-n' not in job}
if many:
    jobs = {'%d%s' % (many, name[1:]): ['-n', str(many), *job[2:]] for name, job in jobs.items() if '-n' in job}

def family(pid):
    return [pid] + soak.descendants(pid)

def ranks_of(pid):
    """Returns the ranks that the process has forked, in order, without the children that probe plug-ins."""
    found = []
    for child in soak.descendants(pid):
        try:
            parent = int(open('/proc/%d/stat' % child).read().rsplit(') ', 1)[1].split()[1])
        except OSError:
            continue
        if parent == pid and not soak.may_go(child):
            found.append(child)
    return sorted(found)

def left(session):
    """Returns the live processes of the job's session."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            state, _, _, of = open('/proc/%s/stat' % pid).read().rsplit(') ', 1)[1].split()[:4]
        except OSError:
            continue
        if int(of) == session and state not in 'ZX':
            found.append(int(pid))
    return found

def where(pids):
    """Returns the wait channel of each thread of a job, for the report of a failure."""
    text = ''
    for pid in pids:
        try:
            for task in os.listdir('/proc/%d/task' % pid):
                at = '/proc/%d/task/%s/' % (pid, task)
                call = open(at + 'syscall').read().split()[0]
                state = re.search(r'State:\s*(\S)', open(at + 'status').read())[1]
                text += '    pid %d %s: %s, call %s\n' % (pid, open(at + 'comm').read().strip(), state, call)
        except OSError:
            pass
    return text

def trial(key):
    """Returns the action and the job, whether it was stopped, its time, and whether it failed; or None if no time is left."""
    if time.monotonic() > deadline:
        return None
    draw = random.Random(key)
    name = draw.choice(list(jobs))
    before = set(os.listdir('/dev/shm')) # files of other programs, whose names may have the same process numbers
    with tempfile.TemporaryFile('w+') as err, tempfile.NamedTemporaryFile() as page:
        page.truncate(walk.PAGE)
        env = dict(os.environ, LD_PRELOAD=SHIM, FAULT_PAGE=page.name) if PRELOADS else None
        job = subprocess.Popen([G, 'run', *jobs[name]], start_new_session=True, stdout=subprocess.DEVNULL, stderr=err,
                               env=env)
        pids = set()
        while many and len(ranks_of(job.pid)) < many and job.poll() is None:
            time.sleep(0.01)
        until = time.monotonic() + (draw.uniform(0, 1) if many else draw.uniform(0.05, 2.5))
        while time.monotonic() < until:
            pids |= set(family(job.pid))
            time.sleep(0.02)
        now = family(job.pid)
        victim, stop = draw.choice(now), draw.random() < 0.25
        ranks = ranks_of(job.pid) if 'ranks' in name else []
        if len(ranks) != int(name.split()[0]):
            ranks = [] # not all ranks have begun: a child may be one that is about to probe a plug-in
        if many:
            victim, stop = ranks[int(key.rsplit('.', 1)[1]) % many] if len(ranks) == many else 0, False
        try:
            comm = open('/proc/%d/comm' % victim).read().strip()
        except OSError:
            comm = '?'
        what = '%s %s of %s' % ('stop' if stop else 'kill -9', 'the first process' if victim == job.pid else comm, name)
        begin = time.monotonic()
        wrong = []
        try:
            # The process must not have ended, and must not be one that probes plug-ins.
            missed = stop or (victim and soak.freeze(victim) and not soak.may_go(victim))
            begin = time.monotonic() # on a busy machine the stop itself takes time
            if victim:
                os.kill(victim, signal.SIGSTOP if stop else signal.SIGKILL)
            if not missed:
                raise ProcessLookupError
            if stop:
                time.sleep(STOPPED)
                os.kill(victim, signal.SIGCONT)
                time.sleep(0.5)
                if job.poll() is None:
                    os.kill(job.pid, signal.SIGINT)
        except ProcessLookupError: # the process was short-lived, or the job is over
            if job.poll() is None:
                os.kill(job.pid, signal.SIGINT)
            what, victim = 'none of ' + name, 0
        clock = pace.Clock()
        over = pace.wait(job, NOTICED + (STOPPED if stop else 0))
        took = clock.read()
        if not over:
            wrong.append('no end in %d s' % NOTICED)
            wrong.append(where(family(job.pid)))
        clock = pace.Clock()
        while over and left(job.pid) and clock.read() < NOTICED:
            time.sleep(0.02)
        behind = left(job.pid)
        if over and behind:
            wrong.append('processes are left:\n' + where(behind))
        for pid in behind:
            os.kill(pid, signal.SIGKILL)
        job.wait()
        took = took if victim != job.pid or stop else took + clock.read()
        names = '|'.join(map(str, pids | set(now)))
        files = [f for f in set(os.listdir('/dev/shm')) - before if re.search(r'(?<!\d)(%s)(?!\d)' % names, f)]
        if files and not wrong:
            wrong.append('left in shared memory: ' + ' '.join(files))
        for f in files:
            os.unlink('/dev/shm/' + f)
        n, names = walk.left_open(open(page.name, 'rb').read(walk.PAGE))
        n -= len([of for of in names if of.endswith('libfabric')]) # see socket_of() in faults/shim.c
        if n > ('ranks' in name): # a rank keeps its connection to the hub until the rank ends
            wrong.append('%d descriptors open at the end: %s' % (n, ' '.join(names)))
        err.seek(0)
        text = err.read()
        if victim and not stop and victim != job.pid:
            if job.returncode in (0, -9):
                wrong.append('exit %d' % job.returncode)
            if not re.search(r'\b%d\b|rank \d|cpu:\d|\.so:' % victim, text):
                wrong.append('nobody is named')
            if victim in ranks and not re.search(r'\brank %d\b|\b%d\b' % (ranks.index(victim), victim), text):
                wrong.append('rank %d is not named' % ranks.index(victim))
        elif stop and job.returncode not in (0, 130) and not re.search(r'rank \d|cpu:\d', text):
            wrong.append('exit %d, and nobody is named' % job.returncode)
        if 'wrong' in text:
            wrong.append('a wrong result')
    if wrong:
        print('FAILED: %s: over after %.2f s: %s\n    %s\n    repeat: tests/kills.py %s 1 %s' % (
            what, took, '; '.join(wrong), text.strip().replace('\n', '\n    '), build, key), flush=True)
    return what, stop, took, bool(wrong), key, ranks.index(victim) if victim in ranks else -1, name

keys = ['%s.%d' % (seed, i) if '.' not in seed else seed for i in range(int(kills) * (many or 1))]
deadline = time.monotonic() + seconds
with multiprocessing.Pool(at_once) as pool:
    rows = [row for row in pool.imap(trial, keys) if row]
killed = [row for row in rows if not row[1] and not row[0].startswith('none')]
if many:
    for name in jobs:
        per = collections.Counter(rank for *_, rank, of in killed if of == name)
        print('%s: %s' % (name, ', '.join('rank %d killed %d times' % (rank, per[rank]) for rank in range(many))))
took = [row[2] for row in killed] or [0]
print('%d killed, %d stopped; %d failures; seconds until all had ended after a kill: median %.2f, most %.2f (%s)' % (
    len(killed), sum(row[1] for row in rows), sum(row[3] for row in rows), statistics.median(took), max(took),
    max(killed, key=lambda row: row[2])[4] if killed else seed))
sys.exit(any(row[3] for row in rows))
