# SPDX-License-Identifier: Apache-2.0
# Runs the commands of the documentation. Commands are the lines of indented blocks and of ``` and ```sh blocks that
# begin with a known program. The commands of a page run in order, in one shell and in a separate folder, with the
# installed gpuloom and one sample. Long jobs are made smaller, except with CHECK=all. Targets of make are checked with
# make -n, and tests are not run again. In `backticks`, subcommands, options, targets and files must exist. A page may
# have one of these lines before a block:
#   <!-- commands: skip, REASON -->          the lines of the block cannot run here
#   <!-- commands: skip WORD, REASON -->     skips lines that contain WORD
#   <!-- commands: first SHELL -->           SHELL runs before the commands
#   <!-- commands: file NAME -->             the block is this file; a block of C names it in its first line: /* NAME */
#   <!-- commands: expect TEXT -->           the output of its commands contains this
#   <!-- commands: jobs -->                  the block has jobs of GitHub Actions or GitLab: their scripts are run
. tests/lib.sh
keep_programs
plain_build 'the plain build is installed'
need python3
make -s install DESTDIR= PREFIX="$tmp/usr" >/dev/null || { fail 'make install'; finish; }
export PKG_CONFIG_PATH="$tmp/usr/lib/pkgconfig" GPULOOM_RUN__SAMPLES=1 GPULOOM_RUN__WARMUP=0 OMPI_ALLOW_RUN_AS_ROOT=1 \
	OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
env -u PYTHONPATH python3 - "$tmp" "$B" <<'PYTHON' || failures=1
import glob, os, re, shutil, subprocess, sys, tempfile

tmp, build = sys.argv[1:]
root = os.getcwd()
everything = os.environ.get('CHECK') == 'all'
pages = ['README.md', 'CONTRIBUTING.md', 'tests/README.md'] + sorted(
    sum((glob.glob(p) for p in ('docs/*.md', 'docs/kinds/*.md', 'plugins/*/README.md', 'plugins/*_common/*/README.md', 'plugins/workloads/*/README.md', 'examples/*/README.md')), []))
installed = tmp + '/usr/bin/gpuloom'
programs = 'hyperfine sed make gpuloom build/gpuloom sh cc cd mpirun srun python3 venv/bin/pip venv/bin/python cp mkdir export'.split()
targets = set(re.findall(r'^([a-z][a-z-]*):', ''.join(open(f).read() for f in ['Makefile'] + glob.glob('plugins/*/plugin.mk')
                                                     + glob.glob('plugins/*_common/*/plugin.mk') + glob.glob('plugins/workloads/*/plugin.mk')), re.M))
faults, skipped, counts = [], {}, dict.fromkeys(('ran', 'make -n', 'looked up'), 0)

# Makes jobs short: appends options with smaller values than the defaults.
os.makedirs(tmp + '/bin')
for name, real in (('gpuloom', installed), ('build-gpuloom', build + '/gpuloom')):
    with open(f'{tmp}/bin/{name}', 'w') as f:
        f.write(f'''#!/bin/sh
case $1 in
compare) case $2 in *.json) ;; *) set -- "$@" --blocks 6 --samples-per-block 2 --spread 0s ;; esac ;;
validate) set -- "$@" --fuzz 1s ;;
run) case "$*" in *pareto*) set -- "$@" --set sweep.budget=3s ;; *1024*) set -- "$@" --set run.ranks=64 ;;
	*uneven/gain*) set -- "$@" --set sweep.workload.makespan.tasks=64,256 ;;
	*figure-11*) set -- "$@" --set sweep.workload.replay.job=mnist_hidden ;;
	*sim/barriers*) {'' if everything else 'set -- "$@" --set sweep.run.ranks=4,8'} ;; esac ;;
sweep) set -- "$@" --samples 1 ;;
esac
exec '{real}' "$@"
''')
    os.chmod(f'{tmp}/bin/{name}', 0o755)
env = dict(os.environ, PATH=tmp + '/bin:' + os.environ['PATH'], PYTHONDONTWRITEBYTECODE='1')

def blocks(text):
    """Yields (directives, language, numbered lines) of each code block; other text has the language None."""
    notes, lines, kind, number = [], [], None, 0
    for number, line in enumerate(text.split('\n'), 1):
        fence = re.match(r'```(\w*)', line)
        inside = kind not in (None, 'indented')
        if inside and not fence:
            lines.append((number, line))
            continue
        indented = not inside and not fence and line.startswith('    ')
        if kind and (inside or not indented) and (inside or line.strip()):
            yield notes, kind, lines
            notes, lines, kind = [], [], None
            if inside:
                continue
        if fence:
            kind, lines = fence.group(1) or 'sh', []
        elif indented:
            kind = 'indented'
            lines.append((number, line[4:]))
        elif kind is None:
            note = re.match(r'<!-- commands: (.*) -->$', line)
            if note:
                notes.append(note.group(1))
            elif line.strip():
                notes = []
                yield [], None, [(number, line)]
    if kind:
        yield notes, kind, lines

limit = [build + '/tests/limit', '1800' if everything else '600']

def run(shell, where):
    p = subprocess.run(limit + ['sh', '-c', shell], cwd=where, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, errors='replace')
    return p.returncode, p.stdout + p.stderr

def skip(why):
    skipped[why] = skipped.get(why, 0) + 1

class Page:
    """Collects the commands of a page, for one shell."""

    def __init__(self, name, where):
        self.name, self.where, self.steps = name, where, []

    def add(self, at, line, shell):
        """line: a line of the page; shell: the command to run. Returns the step, which gets the output."""
        self.steps.append({'at': at, 'line': line, 'shell': shell, 'rc': None, 'out': '', 'took': 0})
        return self.steps[-1]

    def go(self):
        out = tempfile.mkdtemp(dir=tmp)
        script = ['exec </dev/null']
        for n, step in enumerate(self.steps):
            script += ['date +%s.%N >' + f'{out}/{n}.begin', '{ ' + step['shell'], '} >%s/%d.out 2>&1' % (out, n),
                       'echo $? >%s/%d.rc' % (out, n), 'date +%s.%N >' + f'{out}/{n}.end']
        with open(out + '/page.sh', 'w') as f:
            f.write('\n'.join(script) + '\n')
        p = subprocess.run(limit + ['sh', out + '/page.sh'], cwd=self.where, env=env, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, errors='replace')
        for n, step in enumerate(self.steps):
            read = lambda what: open(f'{out}/{n}.{what}', errors='replace').read()
            step['out'] = read('out') if os.path.exists(f'{out}/{n}.out') else ''
            if not os.path.exists(f'{out}/{n}.end'):
                faults.append(f"{step['at']}: the shell ends here, exit {p.returncode}: {step['line']}\n    {p.stderr.strip()}")
                return
            step['rc'], step['took'] = int(read('rc')), float(read('end')) - float(read('begin'))
            if step['rc'] == 4:
                skip('not available here: ' + step['out'].strip().split('\n')[-1][:100])
                continue
            counts['ran'] += 1
            if step['rc']:
                faults.append(f"{step['at']}: exit {step['rc']}: {step['line']}\n    " +
                              '\n    '.join(step['out'].strip().split('\n')[-8:]))

def scripts(lines):
    """Yields (number, text) of each script of a job: the value of a key `run`, and each item of a list `script`."""
    wanted, at = None, 0
    while at < len(lines):
        number, line = lines[at]
        at += 1
        indent = len(line) - len(line.lstrip())
        key = re.match(r'( *(?:- )?)run: *(.*)$', line)
        if re.match(r' *script:$', line):
            wanted = indent
            continue
        item = re.match(r'( *- )(.*)$', line) if wanted is not None and indent > wanted else None
        if wanted is not None and not item:
            wanted = None
        found = key or item
        if not found:
            continue
        text = [] if found.group(2) in ('|', '>') else [found.group(2)]
        inside = len(found.group(1)) if key else len(found.group(1)) - 1
        folded = found.group(2) != '|'  # in YAML a plain value goes on in lines that are indented further
        while at < len(lines) and len(lines[at][1]) - len(lines[at][1].lstrip()) > inside:
            text.append(lines[at][1].strip())
            at += 1
        yield number, (' ' if folded else '\n').join(text)

absent = set()
seen = set()
def one(at, line, page, own):
    """Runs one line of a page, or gives it to the page's shell and returns the step."""
    command = re.sub(r'(?<!\w)/usr/local/share', tmp + '/usr/share', line)
    words = re.sub(r'^([A-Z_]+=("[^"]*"|\S*) +)*', '', re.sub(r' +#.*', '', command)).split()
    if words[0].startswith(('tests/', 'bench/')) or words[0] == 'sh' or (words[0] == 'python3' and words[1] not in ('-c', '-m')):
        for w in words:
            if re.match(r'(tests|bench)/\w', w) and not os.path.exists(w):
                faults.append(f'{at}: there is no {w}')
        counts['looked up'] += 1
        return None
    if words[0] == 'make' and not own or words[0].startswith('build/tests/'):
        if line in seen:
            return None
        seen.add(line)
        if words[0] == 'make':
            rc, out = run(re.sub(r'\bmake\b', 'make -n', re.sub(' +#.*', '', command), 1) + f' B={build} >/dev/null', root)
            counts['make -n'] += 1
        else:
            rc, out = run(words[0].replace('build', build, 1) + ' -l', root)
            counts['ran'] += 1
        if rc:
            faults.append(f'{at}: exit {rc}: {line}\n    ' + '\n    '.join(out.strip().split('\n')[-8:]))
        return None
    for name in ('mpirun', 'hyperfine'):
        if name in words and not shutil.which(name):
            absent.add(name)
            return skip('there is no ' + name)
    if 'hyperfine' in absent and re.search(r'\b(before|after)\.json', line):
        return skip('there is no file of hyperfine')
    return page.add(at, line, re.sub(r'(^|(?<=\s))build/gpuloom', 'build-gpuloom', command))

def inline(at, text):
    """Checks that names in backticks exist."""
    for code in re.findall(r'`([^`]+)`', text):
        words = code.split()
        named = re.match(r'(?:[A-Z_]+=\S* +)*make ((?:[\w=/-]+ ?)+)$', code)
        for w in named.group(1).split() if named else []:
            counts['looked up'] += 1
            if '=' not in w and w not in targets and not w.endswith('-NAME'):
                faults.append(f'{at}: make has no target {w}')
        if words[0] == 'gpuloom' and len(words) > 1 and re.match('[a-z]', words[1]):
            counts['looked up'] += 1
            if words[1] not in helps:
                rc, text = run(f'gpuloom {words[1]} --help', root)
                helps[words[1]] = text if rc == 0 else ''
            if not helps[words[1]]:
                faults.append(f'{at}: gpuloom has no {words[1]}')
            for option in re.findall(r'(?<!\S)--[a-z][a-z-]*', code):
                if option not in helps[words[1]]:
                    faults.append(f'{at}: gpuloom {words[1]} has no {option}')
        for path in re.findall(r'(?<![\w/.<-])(?:conf|tests|bench|tools|lab|conform|core|examples|plugins|docs)/[\w./-]*\w(?![\w*])', code):
            if not re.search(r'NAME|FOLDER|/\*', code):
                counts['looked up'] += 1
                if not os.path.exists(path) and not any(os.path.exists(d + path) for d in ('core/include/', 'comm/include/')):
                    faults.append(f'{at}: there is no {path}')
helps, every = {}, []

for page in pages:
    own = page.startswith('examples/')
    where = tmp + '/pages/' + page.replace('/', '-')
    if own:
        shutil.copytree(os.path.dirname(page), where)
    else:
        os.makedirs(where)
        for name in ('conf', 'examples', 'core', 'python'):
            os.symlink(root + '/' + name, where + '/' + name)
    shell, wanted = Page(page, where), []
    for notes, kind, lines in blocks(open(page).read()):
        if kind is None:
            inline(f'{page}:{lines[0][0]}', lines[0][1])
            continue
        for note in notes:
            if note.startswith('first '):
                shell.add(page, note[6:], note[6:])
        name = [n[5:] for n in notes if n.startswith('file ')] or re.findall(r'^/\* (\w\S+) \*/$', lines[0][1])
        if name: # the file is made when the run reaches this block
            text = tempfile.NamedTemporaryFile('w', dir=tmp, delete=False)
            with text:
                text.write(''.join(l + '\n' for _, l in lines))
            shell.add(f'{page}:{lines[0][0]}', 'the file ' + name[0], f'cp {text.name} {name[0]}')
        skips = [re.match(r'skip ?(\S*), (.*)', n).groups() for n in notes if n.startswith('skip')]
        joined, steps = [], []
        if 'jobs' in notes:
            for number, text in scripts(lines):
                why = [reason for w, reason in skips if w in text]
                if why:
                    skip(why[0])
                    continue
                script = tempfile.NamedTemporaryFile('w', dir=tmp, delete=False)
                with script:
                    script.write(text + '\n')
                steps.append(shell.add(f'{page}:{number}', text, f'sh -e {script.name}'))
            if not steps:
                faults.append(f'{page}:{lines[0][0]}: no script in the jobs')
            wanted += [(f'{page}:{lines[0][0]}', note[7:], steps) for note in notes if note.startswith('expect ')]
            continue
        if name or kind not in ('sh', 'indented'):
            continue
        for number, line in lines:
            if joined and joined[-1][1].endswith('\\'):
                joined[-1] = (joined[-1][0], joined[-1][1][:-1] + ' ' + line)
            else:
                joined.append((number, line))
        for number, line in joined:
            word = re.sub(r'^([A-Z_]+=("[^"]*"|\S*) +)*', '', line).split(' ')[0]
            if word not in programs and not re.match(r'(tests|bench|build/tests|build/bench)/\w', word):
                if kind == 'sh' and page != 'README.md' and re.match(r'[\w./-]+ ', line):
                    faults.append(f'{page}:{number}: no command that this test knows: {line}')
                continue
            why = [reason for w, reason in skips if w in line]
            if why:
                skip(why[0])
            else:
                steps.append(one(f'{page}:{number}', line, shell, own))
        wanted += [(f'{page}:{lines[0][0]}', note[7:], steps) for note in notes if note.startswith('expect ')]
    shell.go()
    every += shell.steps
    for at, text, steps in wanted:
        if text not in ''.join(step['out'] for step in steps if step):
            faults.append(f'{at}: no "{text}" in what its commands print')

every.sort(key=lambda step: -step['took'])
print('the longest:', ''.join('\n  %5.1f s  %s: %s' % (step['took'], step['at'], step['line'][:80]) for step in every[:12]))
for f in faults:
    print(f)
print('%d commands ran, %d by make -n, %d looked up; skipped: %s' % (
    counts['ran'], counts['make -n'], counts['looked up'],
    ', '.join('%d (%s)' % (n, why) for why, n in sorted(skipped.items())) or 'none'))
sys.exit(1 if faults or counts['ran'] < 15 else 0)
PYTHON
finish
