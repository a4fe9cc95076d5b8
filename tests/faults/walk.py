#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets the n-th call of a class fail in small jobs, for each n, and checks how each run ends.

usage: walk.py BUILD [--all] [--job NAME]... [--class NAME]... [--at N] [--how HOW]

A run is right if it ends in time and exits either with a message and a status other than 0, or with 0 and results as
complete as those of runs without faults. A run must not end by a signal. It must leave no process and no file behind, and no
descriptor if main() returns. --at N makes one run, and shows its output and the failed call's stack.
"""
import argparse, collections, ctypes, errno, json, math, mmap, multiprocessing, os, random, re, shutil, signal
import struct, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import pace

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CLASSES = ('malloc mmap memfd thread eventfd epoll futex userfaultfd ioctl syscall open read write fork '
           'socket poll wait prctl ftruncate rename').split()  # as in shim.c
# The errors of the calls of a class. With ',on' all later calls fail, too.
HOWS = {
    'malloc': ['ENOMEM', 'ENOMEM,on'], 'mmap': ['ENOMEM'], 'memfd': ['EMFILE', 'ENOSYS,on'], 'thread': ['EAGAIN'],
    'eventfd': ['EMFILE', 'ENOSYS,on'], 'epoll': ['ENOMEM', 'ENOSYS,on'], 'futex': ['ENOSYS', 'ENOSYS,on'],
    'userfaultfd': ['EPERM', 'ENOSYS,on'], 'ioctl': ['EINVAL', 'EPERM,on'],
    'syscall': ['ENOSYS', 'ENOSYS,on'], 'open': ['EMFILE', 'EINTR'], 'read': ['EIO', 'EINTR', 'short'],
    'write': ['ENOSPC', 'EINTR', 'short', 'EPIPE', 'EIO'], 'fork': ['EAGAIN'], 'socket': ['ENOBUFS', 'EPIPE'],
    'poll': ['EINTR', 'ENOMEM'], 'wait': ['EINTR', 'ECHILD'], 'prctl': ['EPERM'], 'ftruncate': ['ENOSPC'],
    'rename': ['EIO'],
}
TIMEOUT = math.ceil(3 / pace.pace()) # seconds of a sample, the same number for all runs, because results contain it
LIMIT = 10    # seconds beyond TIMEOUT
FEW = 60      # without --all, at most this number of random calls of a class in a job fail
STACKS = 65536
PAGE = 8 * (len(CLASSES) + 2) + 240 + 32768 + 72 + 520 + 4 * STACKS

RUN = '--samples 1 --set run.warmup=0 --set run.timeout=%ds ' % TIMEOUT
MEMSET = 'conf/memset.ini %s--set workload.memset.tasks=64 ' % RUN
JOBS = {
    'memset': 'run %s--json out.json' % MEMSET,
    'thread': 'run conf/fib.ini %s--set workload.fib.n=8 --json out.json' % RUN,
    'process': 'run %s--set device.cpu.isolation=process --json out.json' % MEMSET,
    'wic': 'run conf/wic.ini %s--set run.workload=cg --set device.cpu.workers=2 --set workload.cg.size=4 '
           '--set workload.cg.iterations=2 --json out.json' % RUN,
    'qos': 'run conf/qos/storm.ini %s--set workload.requests_storm.requests=100 '
           '--set workload.requests_storm.file=64KiB --set workload.requests_storm.room=16KiB --json out.json' % RUN,
    'fault': 'run conf/qos/storm.ini %s--set workload.requests_storm.requests=16 '
             '--set workload.requests_storm.service=fault --set workload.requests_storm.room=16KiB --json out.json' % RUN,
    'ranks': 'run -n 2 conf/jacobi2d.ini %s--set workload.jacobi2d.n=16 '
             '--set workload.jacobi2d.sweeps=2 --json out.json' % RUN,
    'compare': 'compare conf/memset.ini --vary scheduler.use=mgws,static --set workload.memset.tasks=64 '
               '--set run.timeout=%ds --blocks 6 --samples-per-block 2 --spread 0 --json out.json' % TIMEOUT,
    'sweep': 'sweep conf/memset.ini %s--vary scheduler.mgws.public_queue=8,64 -o out.jsonl' % MEMSET.split(' ', 1)[1],
    'report': 'report study.jsonl -o out.html -o out.csv',
}
# These libraries crash without memory. iniparser 4.1 does not check the allocations of a new dictionary. libfabric 1.17 frees
# an entry twice after a failure, and its provider shm uses memory that it could not map.
LIBRARIES = ('libiniparser.', 'libfabric.')
# These values of a result differ from run to run.
VARY = re.compile(r'verdict|seed|started|ended|begin|time|date|load|freq|mhz|governor|hash|argv|command|pid|hint|reason|'
                  r'concl|text|note|warn|order|digest|id$|host|quiet|choices')

prctl = ctypes.CDLL(None).prctl


def flatten(doc, path, paths, leaves):
    """Returns the counts of each path, and the values of those that are text."""
    paths[path] += 1
    if isinstance(doc, dict):
        for key, value in doc.items():
            flatten(value, '%s.%s' % (path, key), paths, leaves)
    elif isinstance(doc, list):
        for value in doc:
            flatten(value, path + '[]', paths, leaves)
    elif isinstance(doc, (str, bool)):
        leaves.setdefault(path, []).append(doc)


class Shape:
    """Returns the contents of a run's files and tables: counts by path, and texts."""

    def __init__(self, folder, stdout):
        self.paths, self.leaves = collections.Counter(), {}
        for line in stdout.splitlines():
            words = line.split()
            if words and re.match(r'metric|seconds|samples|with|on', words[0]):
                self.paths['table: ' + words[0]] += 1
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if name.startswith('study') or os.path.isdir(path):
                continue
            self.paths['file: ' + name] += 1
            with open(path, encoding='utf-8', errors='replace') as f:
                text = f.read()
            if name.endswith('.json'):
                flatten(json.loads(text), name, self.paths, self.leaves)
            elif name.endswith('.jsonl'):
                for line in text.splitlines():
                    flatten(json.loads(line), name, self.paths, self.leaves)
            else:
                for tag in re.findall(r'<\w+', text):
                    self.paths[name + ': ' + tag] += 1
                self.leaves[name] = [text]


def known(shape, path):
    """A fact of the environment, or ratios of a metric that is 0, may be missing if the result has the reason."""
    if '.comparisons[]' in path and any('not positive' in n for n in shape.leaves.get('out.json.comparisons[].notes[]',
                                                                                      [])):
        return True
    return shape.paths[path + '.null_because'] or path.endswith('.null_because')


class Reference:
    """Returns the contents that several runs without faults have in common."""

    def __init__(self, runs):
        shapes = [r.shape for r in runs]
        self.open = max(r.open for r in runs)
        self.took = max(r.took for r in runs)
        self.paths = {p: min(s.paths[p] for s in shapes) for p in shapes[0].paths}
        self.paths = {p: n for p, n in self.paths.items() if n and not re.search(r'\.(warnings|quiet|notes)\b', p)}
        self.leaves = {p: v for p, v in shapes[0].leaves.items()
                       if not VARY.search(p.lower()) and all(s.leaves.get(p) == v for s in shapes)}

    def lacks(self, shape):
        for p, n in self.paths.items():
            if shape.paths[p] < n and not ((n == 1 or 'comparisons' in p) and known(shape, p)):
                return '%s: %d of %d' % (p, shape.paths[p], n)
        for p, v in self.leaves.items():
            if shape.leaves.get(p) != v and not known(shape, p) and 'not known' not in str(shape.leaves.get(p)):
                return '%s: %.60r instead of %.60r' % (p, shape.leaves.get(p), v)
        return None


def children():
    try:
        with open('/proc/self/task/%d/children' % os.getpid()) as f:
            return f.read().split()
    except OSError:
        return []


OPEN = 8 * (len(CLASSES) + 2) + 240 + 32768 + 72  # the offset of `open` in the page


def left_open(page):
    """Returns the descriptors of the process that had most of them at the end of main(): their number, and some names."""
    names = page[OPEN + 8:OPEN + 520].decode(errors='replace').split('\0')
    return struct.unpack_from('Q', page, OPEN)[0], [n for n in names if n]


class Run:
    """One run in a separate folder."""

    def __init__(self, build, job, fault, study, keep=False, usual=TIMEOUT + LIMIT):
        self.folder = tempfile.mkdtemp(prefix='faults-')
        self.job = job
        page = os.path.join(self.folder, 'page')
        work = os.path.join(self.folder, 'work')
        os.mkdir(work)
        temp = os.path.join(self.folder, 'tmp')
        os.mkdir(temp)
        if job == 'report':
            shutil.copy(study, work)
        with open(page, 'wb') as f:
            f.truncate(PAGE)
        env = dict(os.environ, LD_PRELOAD=os.path.join(build, 'tests/faults.so'), FAULT_PAGE=page, TMPDIR=temp,
                   LC_ALL='C.UTF-8', XDG_CACHE_HOME=temp)
        env.pop('FAULT', None)
        if fault:
            env['FAULT'] = fault
        words = [w if not w.startswith('conf/') else os.path.join(ROOT, w) for w in JOBS[job].split()]
        self.command = [os.path.join(build, 'gpuloom')] + words
        if fault and ',0,' in fault: # without address randomisation, a place in the code has the same address in all processes
            self.command = ['setarch', '-R'] + self.command
        self.hung = False
        with open(self.folder + '/out', 'wb') as out, open(self.folder + '/err', 'wb') as err:
            clock = pace.Clock()
            p = subprocess.Popen(self.command, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                 start_new_session=True)
            self.limit = TIMEOUT + LIMIT + usual
            if not pace.wait(p, self.limit):
                self.hung = True
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
            self.took = clock.read()
        self.status = p.returncode
        # Processes that the run leaves behind become children of this process, which waits for those that are ending.
        self.left = []
        for _ in range(200):  # a rank whose launcher has ended is ended by force after 3 s
            while True:
                try:
                    if not os.waitpid(-1, os.WNOHANG)[0]:
                        break
                except ChildProcessError:
                    break
            self.left = children()
            if not self.left:
                break
            time.sleep(0.02)
        names = []
        for pid in self.left:
            try:
                with open('/proc/%s/cmdline' % pid) as f:
                    names.append(f.read().replace('\0', ' ')[:80])
                os.kill(int(pid), signal.SIGKILL)
                os.waitpid(int(pid), 0)
            except OSError:
                pass
        self.left = ['process %s' % n for n in names]
        with open(page, 'rb') as f:
            raw = f.read(PAGE)
        self.counts = dict(zip(CLASSES, struct.unpack_from('%dQ' % len(CLASSES), raw)))
        self.failed, = struct.unpack_from('Q', raw, 8 * len(CLASSES))
        where = 8 * len(CLASSES) + 8
        self.where = raw[where:where + 240].split(b'\0')[0].decode()
        at = where + 240
        self.died, within = struct.unpack_from('Q64s', raw, at + 8 + 32768)
        self.within = within.split(b'\0')[0].decode()
        self.open, self.open_names = left_open(raw)
        used, = struct.unpack_from('Q', raw, at)
        if fault and ',0,' in fault:
            self.stacks = struct.unpack_from('%dI' % min(STACKS, self.counts[fault.split(',')[0]]), raw,
                                             at + 8 + 32768 + 72 + 520)
        for path in set(raw[at + 8:at + 8 + min(used, 32768)].split(b'\0')):
            path = os.path.join(work, path.decode(errors='replace'))
            if path == work + '/' or not os.path.lexists(path) or path.startswith('/dev/null'):
                continue
            if os.path.dirname(path) == work and re.match(r'out\.|study\.|.*\.jsonl', os.path.basename(path)):
                continue
            if path.startswith('/proc/') or os.path.isabs(path) and not path.startswith((self.folder, '/dev/shm',
                                                                                         '/tmp')):
                continue
            self.left.append('file ' + path.replace(self.folder, ''))
            if path.startswith('/dev/shm'):
                os.unlink(path)
        self.left += ['file tmp/' + n for n in os.listdir(temp)]
        read = lambda name: open(os.path.join(self.folder, name), encoding='utf-8', errors='replace').read()
        self.out, self.err = read('out'), read('err')
        try:
            self.shape = Shape(work, self.out)
            self.unreadable = None
        except ValueError as e:
            self.shape, self.unreadable = None, str(e)
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def judge(self, reference, kind):
        """Returns None if the run is right, otherwise the kind of error and a sentence."""
        if self.hung:
            return 'hang', 'no end in %d s' % self.limit
        if self.left:
            return 'left', '; '.join(self.left[:3])
        if self.open > reference.open:
            return 'left', '%d descriptors open at the end: %s' % (self.open, ' '.join(self.open_names))
        library = kind in ('malloc', 'mmap') and self.within.startswith(LIBRARIES)
        if self.status < 0 or self.died or re.search(
                r'[Ss]egmentation|signal (4|6|7|8|11)\b|terminated by|Assert|double free|corrupt', self.err):
            text = ' | '.join(self.err.strip().splitlines())[-200:]
            return 'library' if library else 'crash', 'exit %d, in %s: %s' % (self.status, self.within, text)
        if self.status == 0:
            if self.unreadable:
                return 'wrong', self.unreadable
            lacks = reference.lacks(self.shape)
            return ('wrong', 'lacks ' + lacks) if lacks else None
        if not re.search(r'\w+ \w+', self.err):
            return 'silent', 'exit %d without a sentence' % self.status
        if kind == 'malloc' and self.status != 124 and not re.search(r'memory|allocat', self.err):
            return 'library' if library else 'cause', 'exit %d, and does not say that memory was short: %s' % (
                self.status, ' | '.join(self.err.strip().splitlines())[:160])
        return None


def errno_of(how):
    return ','.join(w if w in ('short', 'on', 'own', 'trace') else str(getattr(errno, w)) for w in how.split(','))


def one(task):
    build, job, kind, n, how, study, reference = task
    prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    # Runs without faults do not count towards the time, as they may be slow beside other load.
    r = Run(build, job, '%s,%d,%s' % (kind, n, errno_of(how)), study, usual=5 * reference.took)
    fault = r.judge(reference, kind)
    again = 'tests/faults/walk.py %s --job %s --class %s --how %s --at %d' % (
        os.path.relpath(build), job, kind, how, n)
    return job, kind, how, n, r.failed > 0, fault, r.where, again


def main():
    a = argparse.ArgumentParser()
    a.add_argument('build')
    a.add_argument('--all', action='store_true')
    a.add_argument('--job', action='append', choices=list(JOBS))
    a.add_argument('--class', action='append', dest='kind', choices=CLASSES)
    a.add_argument('--how')
    a.add_argument('--at', type=int)
    a.add_argument('--budget', type=float, default=60, help='seconds, without --all')
    a.add_argument('--seed', type=int, default=1, help='which calls are drawn')
    a = a.parse_args()
    build = os.path.abspath(a.build)
    prctl(36, 1, 0, 0, 0)
    jobs, kinds = a.job or list(JOBS), a.kind or CLASSES
    if not a.job and not os.path.exists(os.path.join(build, 'plugins/trigger_gputn.so')):
        print('left out: ranks: built without libfabric (Debian: libfabric-dev)')
        jobs.remove('ranks')
    temp = tempfile.mkdtemp(prefix='faults-')
    study = os.path.join(temp, 'study.jsonl')
    try:
        r = Run(build, 'sweep', None, None, keep=True)
        if r.status:
            sys.exit('the sweep fails by itself: ' + r.err)
        shutil.copy(os.path.join(r.folder, 'work', 'out.jsonl'), study)
        shutil.rmtree(r.folder)
        return walk(a, build, jobs, kinds, study)
    finally:
        shutil.rmtree(temp)


def places(build, job, kind, study, seen):
    """Takes the first and the last call of each stack. Calls with the same stack are equivalent, in all jobs."""
    calls = collections.defaultdict(list)
    for n, stack in enumerate(Run(build, job, '%s,0,0' % kind, study).stacks, 1):
        calls[stack].append(n)
    new = [c for stack, c in calls.items() if stack not in seen[kind]]
    seen[kind].update(calls)
    return sorted(set(n for c in new for n in (c[0], c[-1])))


def walk(a, build, jobs, kinds, study):
    if a.at:
        r = Run(build, jobs[0], '%s,%d,%s,trace' % (kinds[0], a.at, errno_of(a.how or HOWS[kinds[0]][0])), study, True)
        reference = Reference([Run(build, jobs[0], None, study) for _ in range(2)])
        print(r.out + r.err)
        print('status %d after %.1f s; %d failed, first %s; in %s' % (r.status, r.took, r.failed, r.where, r.folder))
        print(r.judge(reference, kinds[0]) or 'right')
        return
    random.seed(a.seed)
    tasks, seen = [], collections.defaultdict(set)
    for job in jobs:
        runs = [Run(build, job, None, study) for _ in range(4 if a.all else 3)]
        for r in runs:
            if r.status or r.hung or r.unreadable or r.left:
                sys.exit('%s fails by itself: exit %d %s %s %s' % (job, r.status, r.unreadable, r.left, r.err))
        reference = Reference(runs)
        print('%-8s %.2f s' % (job, sorted(r.took for r in runs)[1]), runs[0].counts, file=sys.stderr)
        for kind in kinds:
            count = max(r.counts[kind] for r in runs)
            calls = range(1, count + 1)
            if count > FEW and not a.all:
                calls = random.sample(calls, FEW)
            elif count > FEW:
                calls = places(build, job, kind, study, seen)
            for how in [a.how] if a.how else HOWS[kind]:
                # A kernel lacks futexes from the first call on. It may reject other calls later.
                some = calls if a.how or ',on' not in how else [1] if kind == 'futex' else calls[::9]
                tasks += [(build, job, kind, n, how, study, reference) for n in some]
    random.shuffle(tasks)
    total = len(tasks)
    print("%d calls to fail" % total, file=sys.stderr)
    if not a.all:  # first some runs of each class and job, then further runs while there is time
        seen = collections.Counter()
        rank = []
        for t in tasks:
            seen[t[1:3]] += 1
            rank.append(seen[t[1:3]])
        tasks = [t for _, t in sorted(zip(rank, tasks), key=lambda p: p[0])]
    failed, faults = collections.Counter(), []
    begin = time.monotonic()
    with multiprocessing.Pool(os.cpu_count(), maxtasksperchild=200) as pool:  # a run consists mostly of waiting
        for job, kind, how, n, hit, fault, where, again in pool.imap_unordered(one, tasks):
            failed[job, kind] += hit
            if fault:
                faults.append(fault[0])
            if fault and fault[0] != 'library':
                print('%s %s %s %d: %s: %s\n    %s\n    %s' % (job, kind, how, n, *fault, where, again), flush=True)
            if not a.all and time.monotonic() - begin > a.budget:
                pool.terminate()
                break
    print('%-9s' % 'failed' + ''.join('%9s' % j for j in jobs) + '%9s' % 'all')
    for kind in kinds:
        row = [failed[j, kind] for j in jobs]
        print('%-9.9s' % kind + ''.join('%9d' % n for n in row) + '%9d' % sum(row))
    sort = collections.Counter(faults)
    print('%d calls failed of %d to fail: %d crashes, %d hangs, %d wrong or incomplete with exit 0, '
          '%d times things left behind, %d without a sentence or with a false one' % (
              sum(failed.values()), total, sort['crash'], sort['hang'], sort['wrong'], sort['left'],
              sort['silent'] + sort['cause']))
    if sort['library']:
        print('besides, %d times it ended by a signal inside iniparser or libfabric, which use what they did not get' %
              sort['library'])
    sys.exit(len(faults) > sort['library'])


if __name__ == '__main__':
    main()
