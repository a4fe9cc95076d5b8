#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Dependencies between layers have one direction. CONTRIBUTING.md lists the layers; a file may include files of its own
# layer and of layers above it in that list. A plug-in may include public headers, lib, its own folder and the common
# code of its kind. No two files depend on each other. Host code is checked by the symbols of object files. Device code
# is checked by its text: in each list of LOOM_CODE_FILE, a file uses only functions of the files before it, includes
# only files before it, and declares no function without its body.
#   tests/check-layers.sh BUILD
set -u
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
exec python3 - "$1" <<'PYTHON'
import collections, glob, os, re, subprocess, sys

build = sys.argv[1]
layers = re.findall(r'^    ((?:core|comm|lib|lab|rig|explore|conform)[\w/]*) {2,}', open('CONTRIBUTING.md').read(), re.M)
if len(layers) < 8:
    sys.exit('CONTRIBUTING.md lists only these layers: %s' % layers)
# Folders of common code, in order, and the folders of plugins/ that may include them. Common code may include the common code
# before it, if that is for the same plug-ins.
common = {'device_common/explore': 'device_', 'device_common/hostmem': 'device_|transport_', 'device_common/compose': 'device_',
          'device_common/gpu': 'device_', 'workloads/common': 'workloads/', 'workloads/collective': 'workloads/net$',
          'sched_common': 'sched_|workloads/tasks$', 'sync_common': 'sync', 'trigger_common': 'trigger_',
          'trigger_common/fabric': 'trigger_', 'trigger_common/simnet': 'trigger_', 'trigger_common/nic': 'trigger_'}
public = ['core/include', 'comm/include', *sorted(glob.glob('plugins/device_*/include'))]
faults = []

def layer_of(path):
    return max((r for r in layers if path.startswith(r + '/')), key=len, default=None)

def resolve(path, name):
    """Returns the file that #include "name" in `path` means, under the Makefile's -I options."""
    for folder in (os.path.dirname(path), *public, 'core', 'lab', '.', 'explore/include/gpuloom/explore'):
        found = os.path.normpath(os.path.join(folder, name))
        if os.path.exists(found):
            return found
    return None

def may(path, target):
    layer, other = layer_of(path), layer_of(target)
    if target.startswith('plugins/') and '/include/' in target: # a device layer, which a plug-in or its own folder includes
        return path.startswith('plugins/')
    if path.startswith('plugins/'):
        if other in ('core/include', 'comm/include', 'lib') or os.path.dirname(path) == os.path.dirname(target):
            return True
        room = lambda name: os.path.relpath(os.path.dirname(name), 'plugins')
        rank = lambda name: list(common).index(room(name)) if room(name) in common else len(common)
        return room(target) in common and re.match(common[room(target)], room(path)) is not None and rank(target) <= rank(path)
    if target.startswith('plugins/device_common/explore/'):
        return layer in ('rig', 'explore')  # they explore the same schedules as simulated devices
    return other is not None and layers.index(other) <= layers.index(layer)

files = [f for top in ('core', 'comm', 'lib', 'lab', 'rig', 'explore', 'conform', 'plugins') for f in
         glob.glob(top + '/**/*.[ch]', recursive=True)]
edges = 0
for path in sorted(files):
    if not path.startswith('plugins/') and layer_of(path) is None:
        faults.append('%s is in no layer of CONTRIBUTING.md' % path)
        continue
    for number, line in enumerate(open(path), 1):
        m = re.match(r'\s*#\s*include\s+(?:"([^"]+)"|<(gpuloom/[^>]+)>)', line)
        target = m and resolve(path, m.group(1) or m.group(2))
        if not target:
            continue
        edges += 1
        if not may(path, target):
            faults.append('%s:%d: includes %s, which is not below it' % (path, number, target))

# A circle in host code: a file uses symbols that another file defines, which in turn uses symbols of the first file.
home, uses = {}, collections.defaultdict(set)
objects = [o for o in glob.glob(build + '/obj/**/*.o', recursive=True)
           if os.path.relpath(o, build + '/obj')[:-2] + '.c' in files]
for o in objects:
    path = os.path.relpath(o, build + '/obj')[:-2] + '.c'
    for line in subprocess.run(['nm', o], capture_output=True, text=True, check=True).stdout.splitlines():
        word = line.split()
        if len(word) == 3 and word[1] in 'TDBRVW':
            home[(os.path.dirname(path), word[2])] = path
        elif len(word) == 2 and word[0] == 'U':
            uses[path].add(word[1])
everywhere = {symbol: path for (folder, symbol), path in home.items() if not folder.startswith('plugins/') or os.path.relpath(folder, 'plugins') in common}
needs = {p: {home.get((os.path.dirname(p), s)) or everywhere.get(s) for s in uses[p]} - {None, p} for p in uses}

def circle(needs):
    """Returns a path of files that ends where it starts, or None."""
    done, way = set(), []
    def walk(p):
        if p in way:
            return way[way.index(p):] + [p]
        if p in done:
            return None
        way.append(p)
        for q in sorted(needs.get(p, ())):
            found = walk(q)
            if found:
                return found
        way.pop()
        done.add(p)
    sys.setrecursionlimit(10000)
    for p in sorted(needs):
        found = walk(p)
        if found:
            return found

def circles(needs):
    """Reports each circle as a fault and returns the number of circles."""
    count = 0
    while (found := circle(needs)) and len(faults) < 20:
        faults.append('a circle: ' + ' -> '.join(found))
        needs[found[-2]].discard(found[-1])
        count += 1
    return count

host_circles = circles(needs)

# The parts of struct loom_stack: only the owners that stack.h names change a part's members.
stack = open('core/stack/stack.h').read()
owners = {m[2]: set(re.findall(r'\w+\.c', m[1])) for m in re.finditer(r'Owners?: ((?:\w+\.c(?:, )?)+) \*/\nstruct (\w+) \{', stack)}
parts = {m[2]: m[1] for m in re.finditer(r'^\tstruct (\w+) (\w+);', stack, re.M) if m[1] in owners}
change = (r'(?P<inc>\+\+|--)?(?:\b(?:s|stack)|->stack)->(?P<part>%s)\.\w+(?:\[[^]]*\]|\.\w+)*(?P<set>\s*(?:[-+|&]?=(?!=)|\+\+|--))?' % '|'.join(parts))
if len(parts) < 9 or len(parts) != len(owners):
    faults.append('core/stack/stack.h: found only these parts with an owner: %s' % ' '.join(parts))
for path in (f for f in files if 'stack/stack.h' in open(f).read() or f == 'core/run/enqueue.c'):
    for number, line in enumerate(open(path), 1):
        for m in re.finditer(change, line):
            atomic = re.search(r'__atomic_(?:store_n|fetch_\w+|exchange_n)\(&$', line[:m.start()])
            if (m['inc'] or m['set'] or atomic) and os.path.basename(path) not in owners[parts[m['part']]]:
                faults.append('%s:%d: changes %s of a stack, which belongs to %s' %
                              (path, number, m['part'], ', '.join(sorted(owners[parts[m['part']]]))))

# ---- device code -------------------------------------------------------------------------------------------------

def code_of(path):
    """Returns the text without comments, strings and preprocessor lines; line breaks remain."""
    blank = lambda m: re.sub(r'[^\n]', ' ', m[0])
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, open(path).read(), flags=re.S)
    return re.sub(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', blank, text, flags=re.M)

def functions_of(path):
    """Returns the definitions of a file, and its declarations of functions without a body: name -> line."""
    text, defines, declares = code_of(path), {}, {}
    defines.update((m[1], 0) for m in re.finditer(r'^[ \t]*#[ \t]*define[ \t]+(\w+)', open(path).read(), re.M))
    flat, depth = [], 0 # only the text outside of all braces
    for char in text:
        depth -= char == '}'
        flat.append(char if char == '\n' or not depth else ' ')
        depth += char == '{'
    # The pattern matches a type, a name, parameters, and a body or a semicolon. It matches no assignment, typedef or call.
    head = r'(?:^|(?<=[;}]))\s*((?:\w+[\s*]+|__attribute__\s*\(\(.*?\)\)\s*)+)(\w+)\s*\(([^;{}]*)\)\s*([;{])'
    for m in re.finditer(head, ''.join(flat)):
        if 'typedef' in m[1].split():
            continue
        line = text.count('\n', 0, m.start(2)) + 1
        (defines if m[4] == '{' else declares)[m[2]] = line
    return defines, declares

devices = sorted(f for top in ('core', 'plugins', 'examples') for f in glob.glob(top + '/**/*.dev.h', recursive=True))
functions = {f: functions_of(f) for f in devices}
definers = collections.defaultdict(set)
for f in devices:
    for name in functions[f][0]:
        definers[name].add(f)

def words_of(text):
    """Returns the identifiers that code uses, without members and tags of types."""
    return set(re.findall(r'(?<![\w.>])\w+', re.sub(r'\b(?:struct|enum|union)\s+\w+', '', text)))

macros = collections.defaultdict(dict) # name -> file -> words
for f in devices:
    for m in re.finditer(r'^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n]*\\\n)*[^\n]*)', open(f).read(), re.M):
        macros[m[1]].setdefault(f, set()).update(words_of(re.sub(r'/\*.*?\*/', '', m[2], flags=re.S)))

def uses(path):
    """Returns the words of the file's code, and of the macros that it uses: its own, or any of that name."""
    found, new = set(), words_of(code_of(path))
    while new:
        found |= new
        bodies = (macros[w] for w in new if w in macros)
        new = set().union(*(b for body in bodies for b in ([body[path]] if path in body else body.values()))) - found
    return found

uses_of = {f: uses(f) for f in devices}
forward = 0
for f in devices:
    for name, line in functions[f][1].items():
        forward += 1
        faults.append('%s:%d: declares %s() without its body' % (f, line, name))

def named(source, name):
    """Returns the file that a LOOM_CODE_FILE of `source` names."""
    places = [os.path.dirname(source), *sorted(glob.glob('plugins/*_common/*') + glob.glob('plugins/*') + glob.glob('plugins/workloads/*'))]
    return next((p for d in places if os.path.exists(p := os.path.normpath(os.path.join(d, name)))), None)

backward, device_needs, lists = 0, collections.defaultdict(set), 0
for source in sorted(glob.glob('plugins/**/*.[ch]', recursive=True)):
    text = re.sub(r'/\*.*?\*/', '', open(source).read(), flags=re.S)
    for found in re.finditer(r'(?:LOOM_CODE_FILE\("[^"]+"\)\s*\\?\s*)+', text):
        order = [p for n in re.findall(r'LOOM_CODE_FILE\("([^"]+)"\)', found[0]) if (p := named(source, n))]
        lists += len(order) > 1
        for i, f in enumerate(order):
            for number, line in enumerate(open(f), 1):
                m = re.match(r'#\s*include\s+"([^"]+\.dev\.h)"', line)
                target = m and os.path.normpath(os.path.join(os.path.dirname(f), m[1]))
                if target in order[i:]:
                    backward += 1
                    faults.append('%s:%d: includes %s, which %s puts behind it' % (f, number, m[1], source))
            for name in uses_of[f] - set(functions[f][0]):
                homes = definers[name] & set(order)
                device_needs[f] |= homes if len(homes) == 1 else set()
                if homes and not homes & set(order[:i]):
                    backward += 1
                    faults.append('%s uses %s of %s, which %s puts behind it' % (f, name, min(homes), source))
# Includes are checked alone, also in files that no list has.
for f in devices:
    for m in re.finditer(r'^#\s*include\s+"([^"]+\.dev\.h)"', open(f).read(), re.M):
        target = os.path.normpath(os.path.join(os.path.dirname(f), m[1]))
        if target in functions:
            device_needs[f].add(target)
device_circles = circles(device_needs)

for f in faults:
    print(f)
print('%d files, %d includes, %d object files, %d circles' % (len(files), edges, len(objects), host_circles))
print('%d files of device code, %d lists of several: %d circles, %d backward edges, %d forward declarations' %
      (len(devices), lists, device_circles, backward, forward))
print('%d faults' % len(faults))
sys.exit(1 if faults or len(objects) < 100 or len(devices) < 50 or lists < 10 else 0)
PYTHON
