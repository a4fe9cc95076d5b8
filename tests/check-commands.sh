# SPDX-License-Identifier: Apache-2.0
# Every command of the documentation does what the page says. Commands are the lines of indented blocks and of ``` and
# ```sh blocks that begin with a program that is known here; they run in order, in a folder of each page's own, with the
# command that `make install` has put there, on one sample. Commands of make are looked up with make -n, tests are not
# run again. Of what stands in `backticks` the subcommand, its options, targets and files must exist. In front of a
# block a page may say:
#   <!-- commands: skip, REASON -->          none of these lines can run here
#   <!-- commands: skip WORD, REASON -->     those that contain WORD
#   <!-- commands: first SHELL -->           what the reader has done before
#   <!-- commands: file NAME -->             the block is this file; of C its first line says so: /* NAME */
#   <!-- commands: expect TEXT -->           what its commands print has this in it
. tests/lib.sh
plain_build 'the plain build is installed'
need python3
make -s install DESTDIR= PREFIX="$tmp/usr" >/dev/null || { fail 'make install'; finish; }
[ -d /usr/share/man/de ] || no_manual=contains.ini
export PKG_CONFIG_PATH="$tmp/usr/lib/pkgconfig" GPULOOM_RUN__SAMPLES=1 GPULOOM_RUN__WARMUP=0 OMPI_ALLOW_RUN_AS_ROOT=1 \
	OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
python3 - "$tmp" "$B" "${no_manual-}" <<'PYTHON' || failures=1
import glob, os, re, shutil, subprocess, sys

tmp, build, no_manual = sys.argv[1:]
root = os.getcwd()
pages = ['README.md', 'CONTRIBUTING.md', 'tests/README.md'] + sorted(
    sum((glob.glob(p) for p in ('docs/*.md', 'plugins/*/README.md', 'plugins/shared/*/README.md', 'examples/*/README.md')), []))
installed = tmp + '/usr/bin/gpuloom'
programs = 'sed make gpuloom build/gpuloom sh cc cd mpirun srun python3 cp mkdir'.split()
targets = set(re.findall(r'^([a-z][a-z-]*):', ''.join(open(f).read() for f in ['Makefile'] + glob.glob('plugins/*/plugin.mk')
                                                     + glob.glob('plugins/shared/*/plugin.mk')), re.M))
faults, skipped, counts = [], {}, dict.fromkeys(('ran', 'make -n', 'looked up'), 0)

# Short jobs: what a page leaves to the defaults is made small, behind what it says.
os.makedirs(tmp + '/bin')
for name, real in (('gpuloom', installed), ('build-gpuloom', build + '/gpuloom')):
    with open(f'{tmp}/bin/{name}', 'w') as f:
        f.write(f'''#!/bin/sh
case $1 in
compare) case $2 in *.json) ;; *) set -- "$@" --blocks 6 --samples-per-block 2 --spread 0s ;; esac ;;
validate) set -- "$@" --fuzz 1s ;;
run) case "$*" in *pareto*) set -- "$@" --set sweep.budget=3s ;; *1024*) set -- "$@" --set run.ranks=64 ;;
	*figure-11*) set -- "$@" --set sweep.workload.replay.job=mnist_hidden ;; esac ;;
sweep) set -- "$@" --samples 1 ;;
esac
exec '{real}' "$@"
''')
    os.chmod(f'{tmp}/bin/{name}', 0o755)
env = dict(os.environ, PATH=tmp + '/bin:' + os.environ['PATH'], PYTHONDONTWRITEBYTECODE='1')

def blocks(text):
    """(directives, language, lines with their numbers) of each code block; text in between as language None."""
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

def run(shell, where, limit=100):
    try:
        p = subprocess.run(['sh', '-c', shell], cwd=where, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, errors='replace', timeout=limit)
        return p.returncode, p.stdout + p.stderr
    except subprocess.TimeoutExpired:
        return 124, 'no end after %d s' % limit

def skip(why):
    skipped[why] = skipped.get(why, 0) + 1

seen = set()
here = tmp + '/here'  # where the reader stands
def one(at, line, where, own):
    """Runs one line of a page; its output, or None."""
    command = re.sub(r'(?<!\w)/usr/local/share', tmp + '/usr/share', line)
    words = re.sub(r'^([A-Z_]+=("[^"]*"|\S*) +)*', '', re.sub(r' +#.*', '', command)).split()
    if words[0].startswith(('tests/', 'bench/')) or words[0] == 'sh' or (words[0] == 'python3' and words[1] != '-c'):
        for w in words:
            if re.match(r'(tests|bench)/\w', w) and not os.path.exists(w):
                faults.append(f'{at}: there is no {w}')
        counts['looked up'] += 1
        return None
    if words[0] == 'make' and not own:
        if line in seen:
            return None
        seen.add(line)
        rc, out = run(re.sub(r'\bmake\b', 'make -n', re.sub(' +#.*', '', command), 1) + f' B={build} >/dev/null', root)
        counts['make -n'] += 1
    elif words[0].startswith('build/tests/'):
        rc, out = run(words[0].replace('build', build, 1) + ' -l', root)
        counts['ran'] += 1
    else:
        if 'mpirun' in words and not shutil.which('mpirun'):
            return skip('there is no mpirun')
        if no_manual and no_manual in line:
            return skip('the German manual pages are not installed')
        rc, out = run('cd "$(cat %s)" && { %s\n} && pwd >%s' % (here, re.sub(r'(^|(?<=\s))build/gpuloom', 'build-gpuloom',
                                                                            command), here), where)
        if rc == 4:
            return skip('not available here: ' + out.strip().split('\n')[-1][:100])
        counts['ran'] += 1
    if rc:
        faults.append(f'{at}: exit {rc}: {line}\n    ' + '\n    '.join(out.strip().split('\n')[-8:]))
    return out

def inline(at, text):
    """What stands in backticks exists."""
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
                if not os.path.exists(path) and not os.path.exists('core/include/' + path):
                    faults.append(f'{at}: there is no {path}')
helps = {}

for page in pages:
    own = page.startswith('examples/')
    where = tmp + '/pages/' + page.replace('/', '-')
    if own:
        shutil.copytree(os.path.dirname(page), where)
    else:
        os.makedirs(where)
        for name in ('conf', 'examples', 'core', 'python'):
            os.symlink(root + '/' + name, where + '/' + name)
    for notes, kind, lines in blocks(open(page).read()):
        if kind is None:
            inline(f'{page}:{lines[0][0]}', lines[0][1])
            continue
        for note in notes:
            if note.startswith('first '):
                rc, out = run(note[6:], where)
                if rc:
                    faults.append(f'{page}: exit {rc}: {note[6:]}\n{out}')
        name = [n[5:] for n in notes if n.startswith('file ')] or re.findall(r'^/\* (\w\S+) \*/$', lines[0][1])
        if name:
            open(where + '/' + name[0], 'w').write(''.join(l + '\n' for _, l in lines))
        if name or kind not in ('sh', 'indented'):
            continue
        skips = [re.match(r'skip ?(\S*), (.*)', n).groups() for n in notes if n.startswith('skip')]
        open(here, 'w').write(where)
        joined, output = [], ''
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
                output += one(f'{page}:{number}', line, where, own) or ''
        for note in notes:
            if note.startswith('expect ') and note[7:] not in output:
                faults.append(f'{page}:{lines[0][0]}: no "{note[7:]}" in what its commands print')

for f in faults:
    print(f)
print('%d commands ran, %d by make -n, %d looked up; skipped: %s' % (
    counts['ran'], counts['make -n'], counts['looked up'],
    ', '.join('%d (%s)' % (n, why) for why, n in sorted(skipped.items())) or 'none'))
sys.exit(1 if faults or counts['ran'] < 15 else 0)
PYTHON
finish
