# SPDX-License-Identifier: Apache-2.0
# compare and report read files of other benchmark programs, which python/gpuloom/foreign.py converts, and write JUnit XML.
# tests/data/foreign has files in their public formats; hyperfine itself is run if it is installed. foreign.py has the cases
# of the converter itself.
. tests/lib.sh
need python3
data=$PWD/tests/data/foreign
judged() { # arguments: FILES PATTERN...: each pattern must be in the comparison of the files
	files=$1
	shift
	for pattern; do
		# shellcheck disable=SC2086
		(cd "$data" && expect 0 "$pattern" "$G" compare $files && finish) || failures=$((failures + 1))
	done
}

judged hyperfine.json 'baseline ./sort --threads 1' '\./sort --threads 2 .*FASTER, not interleaved'
judged 'google-before.json google-after.json' 'BM_Insert<int>/64 \(less' 'google-after +822 ns|google-after +8.* EQUIVALENT' \
	'google-after +55.23 us .*SLOWER'
judged 'nccl-before.txt nccl-after.txt' 'all_reduce_perf/8/float/sum.in_place.seconds' \
	'nccl-after +24.85 us .*-9.81 % .*FASTER' 'adjusted for 6 comparisons'
judged 'osu-before.txt osu-after.txt' 'MPI_Allreduce_Latency/1048576' 'osu-after +348.9 us .*SLOWER'
judged 'nvbench.json nvbench-means.json' 'nvbench-means +12.1 us .*INCONCLUSIVE' 'only the mean.*--jsonbin' \
	'was skipped: Out of memory'
cp -r "$data"/nvbench.json* "$tmp"
judged "nvbench.json $tmp/nvbench.json" 'EQUIVALENT within 1 %'

# A page does not claim that another program verified its samples.
expect 0 '' "$G" report "$data/osu-bw.txt" -o "$tmp/osu.html"
! grep -q 'each verified' "$tmp/osu.html" || fail 'a page says that samples of OSU were verified'
# Rates, rows of one size, and benchmarks without a size.
expect 0 '' "$G" report "$data/osu-bw.txt" -o "$tmp/osu.csv"
grep -q 'MPI Barrier Latency' "$tmp/osu.csv" || fail 'a benchmark without sizes'
grep -q '18211700000' "$tmp/osu.csv" || fail 'a bandwidth in bytes/s'

# A rule for each judged metric, and one for a metric that is named after a benchmark.
expect 5 'FAILED: BM_Insert<int>/4096/threads=4: google-after is 7.6 % slower' "$G" compare "$data/google-before.json" \
	"$data/google-after.json" --fail-on '*: slower > 3%' -o "$tmp/gate.xml" -o "$tmp/gate.md"
expect 0 'holds' "$G" compare "$data/google-before.json" "$data/google-after.json" \
	--fail-on 'BM_Insert<int>/64: slower > 3%'
grep -q 'SLOWER' "$tmp/gate.md" || fail 'the second -o replaces the first'

# The comparison as JSON, with results that conform to the schema (check-schemas has its own documents).
expect 0 '' "$G" compare "$data/osu-before.txt" "$data/osu-after.txt" --json "$tmp/c.json"
python3 - "$tmp/c.json" <<'PY' || fail 'the JSON of a comparison of files'
import json, sys
d = json.load(open(sys.argv[1]))
need = json.load(open('docs/schemas/result.json'))['required']
for v in d['variants']:
    r = v['result']
    assert not [k for k in need if k not in r], r.keys()
    assert r['workload'] == 'OSU micro-benchmarks' and r['choices'] == {'osu': '7.3'} and len(r['leading']) == 3
    assert len(r['metrics']['MPI_Allreduce_Latency/4']['samples']) == 8
assert not d['quiet']['quiet'], 'nothing is known about the load'
PY

# JUnit XML.
for file in result.json compare.json sweep.jsonl foreign/hyperfine.json foreign/nccl-before.txt; do
	name=$(basename "$file")
	expect 0 '' "$G" report "tests/data/$file" -o "$tmp/$name.xml"
done
if command -v xmllint >/dev/null; then
	for file in "$tmp"/*.xml; do
		expect 0 validates xmllint --noout --schema tests/data/JUnit.xsd "$file"
	done
	sed 's/ name="[^"]*"//' "$tmp/gate.xml" >"$tmp/bad.xml" # the schema detects what it should
	expect 3 '' xmllint --noout --schema tests/data/JUnit.xsd "$tmp/bad.xml"
fi
python3 - "$tmp" <<'PY' || fail 'JUnit XML'
import glob, sys, xml.etree.ElementTree as tree
tmp = sys.argv[1]
s = tree.parse(tmp + '/gate.xml').getroot()[0]
cases = list(s)
assert (s.get('tests'), s.get('failures'), s.get('errors'), s.get('skipped')) == ('3', '1', '0', '0'), s.attrib
assert cases[0].get('classname') == 'gpuloom.gate' and '7.6 % slower' in cases[0][0].get('message')
assert 'SLOWER: +7.59 %' in cases[2].find('system-out').text
for s in (tree.parse(f).getroot()[0] for f in glob.glob(tmp + '/*.xml') if not f.endswith('bad.xml')):
    count = lambda tag: sum(c.find(tag) is not None for c in s)
    assert [int(s.get(k)) for k in ('tests', 'failures', 'errors', 'skipped')] == \
        [len(s), count('failure'), count('error'), count('skipped')], s.attrib
PY

# Wrong and incomplete files: the message has the file, the place, and what to do.
edit() { # arguments: FILE EXPRESSION
	sed "$2" "$data/$1" >"$tmp/$1"
}
edit nccl-before.txt '11s/ 0\.[0-9]* .*//'
expect 2 "nccl-before.txt' line 11: .*run the benchmark again" "$G" report "$tmp/nccl-before.txt"
edit nccl-before.txt '10s/(us)/(ms)/g'
expect 2 "line 10: the times are not in us" "$G" report "$tmp/nccl-before.txt"
python3 - "$data" "$tmp" <<'PY'
import json, re, sys
data, tmp = sys.argv[1:]
lines = open(data + '/nccl-before.txt').read().split('\n')
for i, line in enumerate(lines):
    words = line.split()
    if words and words[0] == '4096':
        words[8] = '5'
        lines[i] = ' '.join(words)
        break
open(tmp + '/wrong.txt', 'w').write('\n'.join(lines))
h = json.load(open(data + '/hyperfine.json'))
h['results'][1]['times'][3] = 'slow'
json.dump(h, open(tmp + '/text.json', 'w'))
h = json.load(open(data + '/hyperfine.json'))
h['results'][1]['exit_codes'][3] = 1
json.dump(h, open(tmp + '/exit.json', 'w'))
h['results'] = [h['results'][0]]
json.dump(h, open(tmp + '/one.json', 'w'))
h['results'][0]['times'] = None
del h['results'][0]['mean']
json.dump(h, open(tmp + '/none.json', 'w'))
g = json.load(open(data + '/google-before.json'))
g['benchmarks'][2]['time_unit'] = 'h'
json.dump(g, open(tmp + '/unit.json', 'w'))
n = open(data + '/nvbench.json').read()
open(tmp + '/out.json', 'w').write(n.replace('nvbench.json-bin/', '../foreign/'))
json.dump({'benchmarks': [{'a': 1}]}, open(tmp + '/other.json', 'w'))
PY
expect 2 'wrong.txt: is from a run with a wrong result' "$G" compare "$data/nccl-before.txt" "$tmp/wrong.txt"
expect 2 "text.json': results\[1\].times\[3\] is not a number" "$G" compare "$tmp/text.json"
expect 0 '1 of 20 executions had an exit code other than 0' "$G" compare "$tmp/exit.json"
expect 2 'only one variant: give a second file' "$G" compare "$tmp/one.json"
expect 2 'neither times nor a mean: .*--export-json' "$G" compare "$tmp/none.json" "$tmp/one.json"
expect 2 "benchmarks\[2\].time_unit is 'h': expected ns, us, ms or s" "$G" report "$tmp/unit.json"
expect 0 'has only the mean' "$G" compare "$tmp/out.json" # files outside of the folder are not read
expect 2 'hyperfine, Google Benchmark and nvbench' "$G" report "$tmp/other.json"
expect 2 'these are different jobs: workload is hyperfine' "$G" compare "$tmp/one.json" "$data/nvbench.json"
expect 2 'cannot be mixed' "$G" compare "$data/hyperfine.json" conf/fib.ini

# The converter itself.
python3 tests/foreign.py >"$tmp/out" 2>&1 || { fail 'python/gpuloom/foreign.py'; cat "$tmp/out"; }

# Entries that are no measurement give a warning, and a file without any other is an error for a gate. Counters of a user do
# not meet the times.
python3 - "$tmp" <<'PY'
import json, sys
def write(name, *entries):
    json.dump({'context': {}, 'benchmarks': [{'name': 'BM', 'real_time': 100, 'cpu_time': 100, **e} for e in entries]},
              open('%s/%s.json' % (sys.argv[1], name), 'w'))
skip = {'skipped': True, 'skip_message': 'no GPU', 'real_time': 0, 'cpu_time': 0}
write('plain', *[{}] * 12)
write('half', *[{}, skip] * 6)
write('skipped', *[skip] * 12)
write('counter', *[{'seconds': 5, 'cpu_seconds': 7}] * 12)
PY
expect 2 'skipped.json. is of Google Benchmark, but has no samples: BM was skipped: no GPU' "$G" compare "$tmp/plain.json" \
	"$tmp/skipped.json" --fail-on 'seconds: slower > 5%'
expect 0 "warning: '.*half.json': BM was skipped: no GPU" "$G" report "$tmp/half.json"
expect 0 'note: half: BM was skipped: no GPU' "$G" compare "$tmp/plain.json" "$tmp/half.json"
expect 0 'counter +100 ns .*EQUIVALENT' "$G" compare "$tmp/plain.json" "$tmp/counter.json"

# A table has each name once, also if a document of another version has a metric with the name of a factor or a column.
printf '%s\n' '{"schema": "gpuloom.sweep/1", "workload": "w", "factors": [{"key": "run.seed", "values": ["1"]}]}' \
	'{"configuration": "1", "values": {"run.seed": "1", "order": "2"}, "sample": 0, "metrics": {"seconds": 1, "run.seed": 5, "sample": 7, "start": 9, "metric.sample": 8}, "units": {"start": "ns"}}' \
	>"$tmp/names.jsonl"
expect 0 '^variant,run.seed,factor.order,sample,order,start_ns,seconds,metric.run.seed,metric.sample,metric.start_ns,metric.metric.sample$' \
	"$G" report "$tmp/names.jsonl" --format csv
expect 0 '^"?1, 2"?,1,2,0,0,,1,5,7,9,8$' "$G" report "$tmp/names.jsonl" --format csv

# Documents that were converted before are read like the files.
PYTHONPATH=python python3 -m gpuloom.foreign "$data/osu-before.txt" "$data/osu-after.txt" >"$tmp/both" ||
	fail 'python3 -m gpuloom.foreign'
sed -n 1p "$tmp/both" >"$tmp/osu-before.json"
sed -n 2p "$tmp/both" >"$tmp/osu-after.json"
"$G" compare "$tmp/osu-before.json" "$tmp/osu-after.json" | sed 's/json$/txt/' >"$tmp/converted"
(cd "$data" && "$G" compare osu-before.txt osu-after.txt) | sed "s|osu-before.txt$|$tmp/osu-before.txt|" |
	diff "$tmp/converted" - || fail 'a converted document is compared in another way'

# Without python3, and with a python3 that fails or does not stop.
mkdir "$tmp/none" "$tmp/stub"
expect 2 'hyperfine.json. is not a result of gpuloom, and python3, .*is not installed: install python3' env PATH="$tmp/none" \
	"$G" compare "$data/hyperfine.json"
printf '#!/bin/sh\necho first >&2\necho last words >&2\nexit 7\n' >"$tmp/stub/python3"
chmod +x "$tmp/stub/python3"
expect 1 'the converter for files of other programs ended by itself with status 7: last words' env PATH="$tmp/stub:$PATH" \
	"$G" report "$data/hyperfine.json"
printf '#!/bin/sh\nenv | grep -e ^GPULOOM -e ^PYTHON | head -n 1 >&2\necho nothing leaks >&2; exit 2\n' >"$tmp/stub/python3"
expect 2 'error: nothing leaks' env PATH="$tmp/stub:$PATH" PYTHONPATH=x "$G" report "$data/hyperfine.json"
printf '#!/bin/sh\nexec yes 0123456789012345678901234567890123456789\n' >"$tmp/stub/python3"
expect 2 'its conversion becomes too large' env PATH="$tmp/stub:$PATH" "$G" report "$data/hyperfine.json"

# The time that files take does not grow with the square or the cube of their size. Look-ups in lists would need minutes of
# processor time for these: 1500 benchmarks with 50 counters, and a factor with 100,000 levels.
python3 - "$tmp" <<'PY'
import json, sys
entries = [{'name': 'BM_%d' % i, 'real_time': 1 + i, **{'c%d' % k: k for k in range(50)}} for i in range(1500)]
json.dump({'context': {}, 'benchmarks': entries}, open(sys.argv[1] + '/many.json', 'w'))
levels = ['v%d' % i for i in range(100000)]
with open(sys.argv[1] + '/many.jsonl', 'w') as f:
    f.write(json.dumps({'schema': 'gpuloom.sweep/1', 'workload': 'w', 'factors': [{'key': 'run.title', 'values': levels}]}) + '\n')
    for level in reversed(levels):
        f.write('{"configuration": "%s", "values": {"run.title": "%s"}, "sample": 0, "metrics": {"seconds": 1}}\n' % (level, level))
PY
limited='ulimit -t 60; exec "$@"'
cp "$tmp/many.json" "$tmp/more.json"
expect 0 'BM_1499 ' sh -c "$limited" sh "$G" compare "$tmp/many.json" "$tmp/more.json"
expect 0 '^v0,v0,0,99999,,1$' sh -c "$limited" sh "$G" report "$tmp/many.jsonl" --format csv

# Each result of the program itself.
if command -v hyperfine >/dev/null; then
	hyperfine -N --runs 12 --warmup 1 --export-json "$tmp/two.json" 'sleep 0.001' 'sleep 0.06' >/dev/null 2>&1
	hyperfine -N --runs 12 --export-json "$tmp/a.json" 'sleep 0.001' >/dev/null 2>&1
	hyperfine -N --runs 12 --export-json "$tmp/b.json" 'sleep 0.06' >/dev/null 2>&1
	expect 0 'sleep 0.06 .*SLOWER' "$G" compare "$tmp/two.json"
	expect 5 'gate .* FAILED: b is' "$G" compare "$tmp/a.json" "$tmp/b.json" --fail-on 'seconds: slower > 5%'
else
	echo 'no hyperfine here: its own file is not tried'
fi
finish
