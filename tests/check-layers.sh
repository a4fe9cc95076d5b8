#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The arrows between rooms point one way. CONTRIBUTING.md lists the rooms; a file may include files of its own
# room and of rooms above it in that list. A plug-in may include core/include, lib, its own folder and
# plugins/shared/. No two files of a library need each other: whoever defines a function is a file of its own, which
# the symbols of the object files tell.
#   tests/check-layers.sh BUILD
set -u
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
exec python3 - "$1" <<'PYTHON'
import collections, glob, os, re, subprocess, sys

build = sys.argv[1]
rooms = re.findall(r'^    ((?:lib|core|lab|rig|conform)[\w/]*) {2,}', open('CONTRIBUTING.md').read(), re.M)
if len(rooms) < 8:
    sys.exit('CONTRIBUTING.md lists only these rooms: %s' % rooms)
shared = ['explore', 'child', 'hostmem', 'workload', 'collective', 'compose', 'gpu', 'sched', 'sync', 'fabric', 'simnet', 'nic']  # of plugins/shared, in order
faults = []

def room_of(path):
    return max((r for r in rooms if path.startswith(r + '/')), key=len, default=None)

def resolve(path, name):
    """The file that #include "name" in `path` means, as the Makefile's -I options find it."""
    for folder in (os.path.dirname(path), 'core/include', 'core', 'lab', '.'):
        found = os.path.normpath(os.path.join(folder, name))
        if os.path.exists(found):
            return found
    return None

def may(path, target):
    room, other = room_of(path), room_of(target)
    if path.startswith('plugins/'):
        if other in ('core/include', 'lib') or os.path.dirname(path) == os.path.dirname(target):
            return True
        part = path.split('/')
        inside = target.split('/')
        if inside[:2] != ['plugins', 'shared']:
            return False
        return part[1] != 'shared' or len(inside) == 3 or shared.index(inside[2]) <= shared.index(part[2])
    return other is not None and rooms.index(other) <= rooms.index(room)

files = [f for top in ('lib', 'core', 'lab', 'rig', 'conform', 'plugins') for f in
         glob.glob(top + '/**/*.[ch]', recursive=True)]
edges = 0
for path in sorted(files):
    if not path.startswith('plugins/') and room_of(path) is None:
        faults.append('%s stands in no room of CONTRIBUTING.md' % path)
        continue
    for number, line in enumerate(open(path), 1):
        m = re.match(r'\s*#\s*include\s+(?:"([^"]+)"|<(gpuloom/[^>]+)>)', line)
        target = m and resolve(path, m.group(1) or m.group(2))
        if not target:
            continue
        edges += 1
        if not may(path, target):
            faults.append('%s:%d: includes %s, which is not below it' % (path, number, target))

# Circles: who uses a symbol that another file defines.
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
everywhere = {symbol: path for (folder, symbol), path in home.items() if not re.match('plugins/(?!shared)', folder)}
needs = {p: {home.get((os.path.dirname(p), s)) or everywhere.get(s) for s in uses[p]} - {None, p} for p in uses}

def circle():
    """A path of files that ends where it began, or None."""
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

while (found := circle()) and len(faults) < 20:
    faults.append('a circle: ' + ' -> '.join(found))
    needs[found[-2]].discard(found[-1])

for f in faults:
    print(f)
print('%d files, %d includes, %d object files: %d faults' % (len(files), edges, len(objects), len(faults)))
sys.exit(1 if faults or len(objects) < 100 else 0)
PYTHON
