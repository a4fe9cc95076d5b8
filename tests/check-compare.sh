# SPDX-License-Identifier: Apache-2.0
# Tests gpuloom compare. The measured values come from programs that print their time, so that no verdict depends on the
# machine.
. tests/lib.sh
export TSAN_OPTIONS="die_after_fork=0 ${TSAN_OPTIONS-}" # isolation = process starts threads in a child
quick='--spread 0 --quiet'

planted_conf "$tmp/p.ini"
printf '[workload.planted]\nturns = 20000\n' >>"$tmp/p.ini"
cat >"$tmp/timed" <<'SH'
#!/bin/sh
# The program prints the given time plus a small periodic variation.
n=$(cat "$2" 2>/dev/null || echo 0)
echo $(((n + 1) % 7)) >"$2"
awk -v t="$1" -v n="$n" 'BEGIN {
	printf "words first\n{\"seconds\": %.9f, \"rate\": {\"value\": %.9f, \"unit\": \"x/s\", \"better\": \"more\"}}\n",
		t * (1 + n / 10000), 1 / t }'
SH
chmod +x "$tmp/timed"
exec_conf "$tmp/a.ini" "$tmp/timed 1.00 $tmp/na"
exec_conf "$tmp/b.ini" "$tmp/timed 1.03 $tmp/nb"
exec_conf "$tmp/c.ini" "$tmp/timed 1.002 $tmp/nc"

expect 0 'SLOWER' "$G" compare "$tmp/a.ini" "$tmp/b.ini" --spread 0 --blocks 8 --samples-per-block 2
expect 0 'EQUIVALENT within 1 %' "$G" compare "$tmp/a.ini" "$tmp/c.ini" --spread 0 --blocks 8 --samples-per-block 2
expect 0 'FASTER' "$G" compare "$tmp/b.ini" "$tmp/a.ini" --spread 0 --blocks 8 --samples-per-block 2
expect 0 'INCONCLUSIVE, about [0-9]+ more blocks' "$G" compare "$tmp/a.ini" "$tmp/b.ini" --spread 0 \
	--blocks 4 --samples-per-block 2
expect 0 'bar slow 1.03 <= 1.1 ok' "$G" compare "$tmp/a.ini" "$tmp/b.ini" $quick --blocks 2 \
	--samples-per-block 2 --bar 'slow: seconds(b) / seconds(a) <= 1.1'
expect 0 '' "$G" compare "$tmp/a.ini" "$tmp/b.ini" "$tmp/c.ini" --spread 0 --blocks 9 --samples-per-block 2 \
	--metric seconds,rate --aa --seed 7 --json -
python3 - "$tmp/out" <<'PY' || fail 'the JSON of a comparison'
import json, sys
d = json.load(open(sys.argv[1]))
assert d['schema'] == 'gpuloom.compare/1' and d['status'] == 'ok' and d['error'] is None
g = d['design']
assert g['order'] == 'abba' and g['blocks'] == g['complete'] == 9 and g['seed'] == 7 and g['interleaved']
assert [v['label'] for v in d['variants']] == ['a', 'b', 'c']
s = d['schedule']
assert len(s) == 9 * 2 * 3
for b in range(9):  # shuffled, then reversed
    block = s[6 * b:6 * b + 6]
    assert sorted(block[:3]) == [0, 1, 2] and block == block[::-1], block
for i, v in enumerate(d['variants']):
    r = v['result']
    assert r['schema'] == 'gpuloom.result/1' and r['status'] == 'ok'
    counted = [x for x in r['samples'] if not x['warmup']]
    assert len(counted) == s.count(i) == len(r['metrics']['seconds']['samples'])
    assert [x['start_ns'] for x in r['samples']] == sorted(x['start_ns'] for x in r['samples'])
    assert all(len(p['build_id']) == 40 for p in r['plugins'])
order = sorted((x['start_ns'], i) for i, v in enumerate(d['variants'])
               for x in v['result']['samples'] if not x['warmup'])
assert [i for _, i in order] == s, 'the schedule is the order in which samples ran'
c = {(x['metric'], x['variant']): x for x in d['comparisons']}
assert len(c) == 4
assert c['seconds', 1]['verdict'] == 'SLOWER' and c['rate', 1]['verdict'] == 'SLOWER'
assert c['seconds', 2]['verdict'] == 'EQUIVALENT' and c['seconds', 1]['baseline'] == 0
assert 1.02 < c['seconds', 1]['low'] <= c['seconds', 1]['effect'] <= c['seconds', 1]['high'] < 1.04
assert all(x['p'] <= x['p_holm'] for x in c.values()) and len(c['seconds', 1]['ratios']) == 9
assert {n['metric'] for n in d['noise']} == {'seconds', 'rate'}
e = d['environment']
assert e['before']['cpu_model'] and e['after']['uptime_s'] > e['before']['uptime_s']
assert isinstance(d['quiet']['quiet'], bool) and d['command'][:2] == ['gpuloom', 'compare']
PY

# Two openings of the same stack may differ. compare must not report this as an effect, except if it opens each stack only once.
# Each table has the same median of a variant, that of its samples.
luck="$tmp/p.ini --vary run.title=a,b --set workload.planted.luck=5% --set workload.planted.turns=1 --metric seconds --spread 0"
for seed in 1 2 3 4 5 6; do
	"$G" compare $luck --seed $seed --samples-per-block 2 --json "$tmp/luck.json" --rewarm 0 --quiet || fail 'luck'
	grep -q '"verdict": *"[FS][AL]' "$tmp/luck.json" && fail "luck is taken for a difference, seed $seed"
done
expect 0 'openings' python3 -c "import json; d = json.load(open('$tmp/luck.json'))['design']; assert d['openings'] == 20; print('openings')"
"$G" compare $luck --openings 10 --blocks 12 --samples-per-block 2 --quiet --json "$tmp/luck.json" # 10 at least
expect 0 'at least' python3 -c "import json; d = json.load(open('$tmp/luck.json'))['design']; assert d['openings'] == 12; print('at least')"
expect 0 'all blocks share one opening' "$G" compare $luck --openings 1
grep -qE 'FASTER|SLOWER' "$tmp/out" || fail 'one opening shows its luck as a difference'
expect 0 'medians are of all samples; changes compare within blocks' "$G" compare $luck --openings 7 --blocks 21 --samples-per-block 2 \
	--json "$tmp/luck.json"
"$G" report "$tmp/luck.json" >"$tmp/luck.md"
python3 - "$tmp/out" "$tmp/luck.json" "$tmp/luck.md" <<'PY' || fail 'medians of the tables'
import json, re, sys
rows = [line for line in open(sys.argv[1]) if re.match(r'    [ab] ', line)]
d = json.load(open(sys.argv[2]))
median = [v['result']['metrics']['seconds']['median'] for v in d['variants']]
shown = [re.search(r'(\d[\d.,]*) [mu]s', r) for r in rows]
assert all(abs(float(s.group(1)) * (1e-3 if 'ms' in s.group() else 1e-6) / m - 1) < 1e-3 for s, m in zip(shown, median)), (rows, median)
assert all(s.group() in open(sys.argv[3]).read() for s in shown), rows
c = d['comparisons'][0]
assert len(c['ratios']) == 7 == c['blocks']
PY

# A wrong width is an error before the comparison begins, and so is one without a report.
expect 2 'none of page, column' "$G" compare conf/fib.ini --vary scheduler.use=static,mgws --width colum -o "$tmp/column.svg"
expect 2 'which --output FILE names' "$G" compare conf/fib.ini --vary scheduler.use=static,mgws --width column
# In a column there is one plot, in which no line crosses a text.
expect 0 '' "$G" compare "$tmp/luck.json" --quiet --width column -o "$tmp/column.svg"
python3 - "$tmp/column.svg" <<'PY' || fail 'the effects in a column'
import re, sys
svg = open(sys.argv[1]).read()
assert 'width="84mm"' in svg and re.findall('aria-label="([^"]*)', svg) == ['Effects with 95 % intervals; right is better'], svg
text = [float(y) for y in re.findall(r'<text class="(?:label|strong|note)[^>]* y="([\d.]+)"', svg)]
line = [(float(a), float(b)) for a, b in re.findall(r'<line class="(?:one|grid)"[^>]* y1="([\d.]+)"[^>]* y2="([\d.]+)"', svg)]
assert text and line and not [(y, l) for y in text for l in line if l[0] < y and y - 9 < l[1]], (text, line)
PY
expect 0 '' "$G" run "$tmp/p.ini" --samples 6 --quiet --json "$tmp/column.json"
expect 0 '' "$G" report "$tmp/column.json" --width column -o "$tmp/column.svg"
[ "$(grep -c aria-label "$tmp/column.svg")" -eq 1 ] && grep -q 'aria-label="Distribution' "$tmp/column.svg" || fail 'a run in a column'

# On a terminal of 80 columns no line is longer, no line is broken within a word, and verdicts have a colour.
cat >"$tmp/onpty.py" <<'PY'
import fcntl, os, pty, re, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM='xterm', NO_COLOR='')
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 40, 80, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])
out = b''
while True:
    try:
        piece = os.read(fd, 65536)
    except OSError:
        break
    if not piece:
        break
    out += piece
assert os.waitpid(pid, 0)[1] == 0
text = re.sub('.*\\r\x1b\\[K', '', out.decode().replace('\r\n', '\n'))
plain = re.sub('\x1b\\[[0-9;]*m', '', text)
assert all(len(line) <= 80 for line in plain.split('\n')), plain
assert ('\x1b[1;31mSLOWER' in text) == ('SLOWER' in plain)
for word in sys.stdin.read().split():
    assert word in plain.split(), (word, plain)
PY
echo 'SLOWER verdict interval' | python3 "$tmp/onpty.py" "$G" compare "$tmp/a.ini" "$tmp/b.ini" --spread 0 --blocks 8 \
	--samples-per-block 2 || fail 'a comparison on a terminal'
echo 'median verified:' | python3 "$tmp/onpty.py" "$G" run conf/fib.ini --samples 1 || fail 'a run on a terminal'
echo 'SUMMARY' | python3 "$tmp/onpty.py" "$G" list || fail 'a list on a terminal'

# A terminal that cannot move its cursor, or that may be of any kind, gets neither control sequences nor colours.
cat >"$tmp/dumb.py" <<'PY'
import os, pty, sys
for term in 'dumb', '', None:
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.pop('TERM', None)
        os.environ.update({} if term is None else {'TERM': term})
        os.execvp(sys.argv[1], sys.argv[1:])
    out = b''
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:
            piece = b''
        if not piece:
            break
        out += piece
    assert os.waitpid(pid, 0)[1] == 0 and out and b'\x1b' not in out, (term, out)
PY
for command in 'run conf/fib.ini --samples 3' 'list' "compare $tmp/a.ini $tmp/b.ini --spread 0 --blocks 2 --samples-per-block 2" \
	"sweep $tmp/a.ini --vary run.seed=1,2 --samples 2 --restart -o $tmp/dumb.jsonl"; do
	python3 "$tmp/dumb.py" "$G" $command || fail "control sequences on a dumb terminal: $command"
done

# By default `compare` reports wall time and CPU time, and takes as many samples as fit into the spread. The CPU time of an
# external program includes that of its worker.
cat >"$tmp/usual.py" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
assert [c['metric'] for c in d['comparisons']] == ['seconds', 'cpu_seconds'], d['comparisons']
each = d['design']['samples_per_block']
assert each % 2 == 0 and (each == 8 if d['design']['spread'] == 0 else 8 <= each <= 32), each
for v in d['variants']:
    m = {k: x['samples'] for k, x in v['result']['metrics'].items()}
    assert all(x > 0 for x in m['cpu_seconds'])
    if 'user_seconds' in m:
        assert all(c > u + s for c, u, s in zip(m['cpu_seconds'], m['user_seconds'], m['system_seconds']))
PY
"$G" compare "$tmp/p.ini" --vary run.title=a,b --quiet --spread 1s --blocks 5 --json "$tmp/u.json" &&
	python3 "$tmp/usual.py" "$tmp/u.json" || fail 'the usual metrics and samples'
exec_conf "$tmp/busy.ini" "python3 -c 0"
"$G" compare "$tmp/busy.ini" --vary run.title=a,b $quick --blocks 1 --json "$tmp/u.json" &&
	python3 "$tmp/usual.py" "$tmp/u.json" || fail 'CPU time of external programs'

# A warning about a conf is printed once, not once for each variant.
sed 's/^workload = .*/&\ntitle = words;cut/' "$tmp/p.ini" >"$tmp/warns.ini"
"$G" compare "$tmp/warns.ini" --vary workload.planted.turns=1,2,3 $quick --blocks 1 --samples-per-block 2 \
	2>"$tmp/err" || fail 'a conf with a warning'
[ "$(grep -c 'warning: value cut' "$tmp/err")" -eq 1 ] || fail "a conf's warning is not said once"
# Derived metrics work live and from files. Mistakes in their definitions are reported before anything is measured.
expect 0 '' "$G" compare "$tmp/p.ini" --vary workload.planted.turns=1,2 $quick --blocks 2 \
	--samples-per-block 2 --derive 'per_turn = seconds / 7 [s, less]' --metric per_turn --json "$tmp/d.json"
expect 0 'ms.+cpu.+less.*per.+turn|per.+turn' "$G" report "$tmp/d.json" \
	--derive 'ms_cpu = cpu_seconds * 1e3 [ms, less]' --metric ms_cpu,per_turn
expect 2 "no metric 'secnds'; did you mean 'seconds'" "$G" compare "$tmp/p.ini" --vary workload.planted.turns=1,2 \
	--derive 'x = secnds / 2'
expect 2 "did you mean 'seconds'" "$G" run "$tmp/p.ini" --derive 'x = secnds / 2'
expect 2 "derive.*')' is missing" "$G" run "$tmp/p.ini" --derive 'x = (seconds'
for i in 1 2; do "$G" run "$tmp/p.ini" --samples 3 --quiet --json "$tmp/f$i.json"; done
expect 0 'half .less is better' "$G" compare "$tmp/f1.json" "$tmp/f2.json" --derive 'half = seconds / 2 [s, less]' \
	--metric half
expect 2 "no metric 'secnds'" "$G" compare "$tmp/f1.json" "$tmp/f2.json" --derive 'half = secnds / 2'
expect 0 'gb_s' "$G" sweep "$tmp/p.ini" --vary workload.planted.turns=1,2 --samples 1 -o "$tmp/d.jsonl" \
	--derive 'gb_s = 1 / seconds / 1e9 [GB/s, more]' --metric gb_s
expect 2 "no metric 'secnds'" "$G" sweep "$tmp/p.ini" --vary workload.planted.turns=1,2 --samples 1 -o "$tmp/d2.jsonl" \
	--derive 'gb_s = 1 / secnds'
grep -q '"gb_s"' "$tmp/d.jsonl" || fail 'a sweep whose lines lack what is derived'

# Paths are labelled by the parts in which they differ.
mkdir "$tmp/one" "$tmp/two"
printf '#!/bin/sh\n' | tee "$tmp/one/run" >"$tmp/two/run"
chmod +x "$tmp/one/run" "$tmp/two/run"
expect 0 '^    two/run ' "$G" compare "$tmp/a.ini" --vary "workload.exec.command=$tmp/one/run,$tmp/two/run" \
	--spread 0 --blocks 1 --samples-per-block 2

expect 5 "FAILED: b is 3.0 % slower" "$G" compare "$tmp/a.ini" "$tmp/b.ini" --spread 0 --blocks 8 \
	--samples-per-block 2 --fail-on 'seconds: slower > 2%'
expect 0 'holds' "$G" compare "$tmp/a.ini" "$tmp/b.ini" --spread 0 --blocks 8 --samples-per-block 2 \
	--fail-on 'seconds: slower > 5%'
expect 0 'could not be decided' "$G" compare "$tmp/a.ini" "$tmp/b.ini" $quick --blocks 4 \
	--samples-per-block 2 --fail-on 'seconds: slower > 2%'
expect 6 '' "$G" compare "$tmp/a.ini" "$tmp/b.ini" $quick --blocks 4 --samples-per-block 2 --strict
expect 3 'planted' "$G" compare "$tmp/p.ini" --vary workload.planted.wrong=no,yes --spread 0 --json "$tmp/w.json"
python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); assert d["status"]=="wrong" and not d["comparisons"]' \
	"$tmp/w.json" || fail 'a comparison with a wrong result has verdicts'
expect 2 'one variant' "$G" compare "$tmp/p.ini"
expect 2 "did you mean 'turns'" "$G" compare "$tmp/p.ini" --vary workload.planted.turn=1,2
expect 2 'even' "$G" compare "$tmp/p.ini" --vary workload.planted.turns=1,2 --samples-per-block 3
expect 0 '' "$G" compare "$tmp/p.ini" --vary workload.planted.turns=1,2 --samples-per-block 3 --order random \
	--spread 0 --blocks 2
expect 2 "did you mean '--blocks'" "$G" compare "$tmp/p.ini" --vary workload.planted.turns=1,2 --bloks 3
expect 2 'error: compare: --vary x=1: not of the form' "$G" compare "$tmp/p.ini" --vary x=1
expect 2 'error: compare: --vary workload.planted.turns twice: give all' "$G" compare "$tmp/p.ini" \
	--vary workload.planted.turns=1,2 --vary workload.planted.turns=3
expect 2 'METRIC: slower' "$G" compare "$tmp/p.ini" --vary workload.planted.turns=1,2 --fail-on 'slow'
expect 2 'html' "$G" compare "$tmp/p.ini" --vary workload.planted.turns=1,2 -o "$tmp/x.exe"
expect 0 'fail-on' "$G" compare --help
exec_conf "$tmp/none.ini" 'no-such-program-here'
expect 4 'no-such-program-here' "$G" compare "$tmp/none.ini" "$tmp/a.ini" --spread 0

# Metrics with a direction that the user declares are judged first: those that a program must print, and derived ones.
for n in 1 2; do
	exec_conf "$tmp/d$n.ini" "$tmp/timed 1.0$n $tmp/n$n"
	echo 'metrics = "rate:more:x/s"' >>"$tmp/d$n.ini"
done
judged() { python3 -c 'import json,sys; print(*(c["metric"] for c in json.load(open(sys.argv[1]))["comparisons"]))' "$1"; }
expect 0 '^  d2 is slower than d1 in rate: -0.9' "$G" compare "$tmp/d1.ini" "$tmp/d2.ini" --spread 0 --blocks 8 \
	--samples-per-block 2 --margin 0.1% --json "$tmp/declared.json"
[ "$(judged "$tmp/declared.json")" = 'rate seconds cpu_seconds' ] || fail 'declared metrics are judged first'
"$G" compare "$tmp/a.ini" "$tmp/b.ini" $quick --blocks 8 --samples-per-block 2 --derive 'half = seconds / 2 [s, less], x = rate * 2' \
	--json "$tmp/ab2.json"
[ "$(judged "$tmp/ab2.json")" = 'half seconds cpu_seconds' ] || fail 'derived metrics with a direction are judged first'
for n in 1 2; do "$G" run "$tmp/d$n.ini" --samples 8 --quiet --json "$tmp/d$n.json"; done
"$G" compare "$tmp/d1.json" "$tmp/d2.json" --quiet --json "$tmp/declared2.json"
[ "$(judged "$tmp/declared2.json")" = 'rate seconds cpu_seconds' ] || fail 'declared metrics of results'
# A saved comparison is judged again by other metrics, margins and rules. A metric that it lacks is an error.
expect 0 '^    b .* -2.9[0-9] % .* SLOWER' "$G" compare "$tmp/ab2.json" --metric rate --json "$tmp/again.json"
[ "$(judged "$tmp/again.json")" = rate ] || fail 'a saved comparison is judged by --metric'
expect 0 'EQUIVALENT within 5 %' "$G" compare "$tmp/ab2.json" --metric rate --margin 5%
expect 5 "gate 'rate: slower > 1%' FAILED" "$G" compare "$tmp/ab2.json" --fail-on 'rate: slower > 1%'
expect 2 "did you mean 'rate'" "$G" compare "$tmp/ab2.json" --metric rat
expect 2 'no verdicts' "$G" compare "$tmp/w.json"
expect 2 'blocks, samples and warm-ups require confs' "$G" compare "$tmp/ab2.json" --blocks 30
expect 0 '. b . rate . .*SLOWER.* −2.9' "$G" report "$tmp/ab2.json" --metric rate
! grep -qE '^. b . (half|seconds|cpu_seconds) ' "$tmp/out" || fail 'verdicts on metrics that --metric does not name'
expect 0 '. b . third . .*SLOWER.* [+]3.0' "$G" report "$tmp/ab2.json" --derive 'third = seconds / 3 [s, less]' --metric third
expect 0 'p .Holm' "$G" report "$tmp/ab2.json" --metric seconds,rate
"$G" report "$tmp/ab2.json" --metric rate --plot forest -o "$tmp/rate.svg"
grep -q '>rate against a, more is better<' "$tmp/rate.svg" && ! grep -q '>seconds against' "$tmp/rate.svg" ||
	fail 'a plot shows the metrics that --metric names'
# A certain difference that may be small is no conclusion, but the sentence names it. One within twice the margin is TRIVIAL.
cat >"$tmp/steps" <<'SH'
#!/bin/sh
# The program prints a time of $1 to $1 + 7 * $2 milliseconds.
n=$(cat "$3" 2>/dev/null || echo 0)
echo $((n + 1)) >"$3"
ms=$(($1 + n % 8 * $2))
printf '{"seconds": %d.%03d}\n' $((ms / 1000)) $((ms % 1000))
SH
chmod +x "$tmp/steps"
exec_conf "$tmp/same.ini" "$tmp/steps 1000 0 $tmp/n0"
exec_conf "$tmp/wide.ini" "$tmp/steps 787 30 $tmp/n30"
exec_conf "$tmp/little.ini" "$tmp/steps 1005 1 $tmp/n1005"
steps='--spread 0 --blocks 8 --samples-per-block 1 --order random --warmup 0 --metric seconds'
expect 0 'wide is faster than same in seconds, perhaps by less than 1 %: -10.8 % .-21.3 % .. -0.30 %' "$G" compare "$tmp/same.ini" \
	"$tmp/wide.ini" $steps
grep -qE '^    wide .* INCONCLUSIVE, about [0-9]+ more blocks' "$tmp/out" || fail 'a wide interval is no conclusion'
expect 0 'little differs little from same in seconds: [+]0.85 %' "$G" compare "$tmp/same.ini" "$tmp/little.ini" $steps
grep -qE '^    little .* TRIVIAL' "$tmp/out" || fail 'a difference within twice the margin'
# What a forge shows has the outcome of the rules.
expect 0 '' "$G" compare "$tmp/d1.json" "$tmp/d2.json" --quiet -o "$tmp/gate.md" --fail-on 'seconds: slower > 5%'
grep -q '^- gate seconds: slower &gt; 5% .*\*\*holds\*\*' "$tmp/gate.md" || fail 'a rule that holds'
expect 5 '' "$G" compare "$tmp/d1.json" "$tmp/d2.json" --quiet -o "$tmp/gate.md" -o "$tmp/gate.html" --fail-on '*: slower > 0.5%'
grep -q '\*\*FAILED\*\*' "$tmp/gate.md" && grep -q 'Gate failed' "$tmp/gate.html" || fail 'a rule that fails'
expect 0 'in seconds: .* [(]too few blocks[)]' "$G" compare "$tmp/a.ini" "$tmp/b.ini" --spread 0 --blocks 2 --samples-per-block 2
grep -qE '^    b .* too few blocks ' "$tmp/out" || fail 'the table does not say why there is no interval'
expect 0 '' "$G" compare "$tmp/a.ini" "$tmp/b.ini" $quick --blocks 4 --samples-per-block 2 --fail-on 'seconds: slower > 2%' \
	-o "$tmp/gate.md" -o "$tmp/gate.html"
grep -q '\*\*is undecided\*\*' "$tmp/gate.md" && grep -q 'with .--strict. it fails' "$tmp/gate.md" &&
	grep -q 'Gate undecided' "$tmp/gate.html" || fail 'an undecided rule'
# A picture without content is an error, which names the plots that the file has data for.
expect 2 "ab2.json' has no data for lines; it has data for forest, runs, distribution" "$G" report "$tmp/ab2.json" --plot lines,forest \
	-o "$tmp/empty.svg"
expect 2 'has no data for heat; .*, workers, bars$' "$G" report "$tmp/ab2.json" --plot heat -o "$tmp/empty.svg"
expect 2 'has no data for forest' "$G" report tests/data/result.json --plot forest -o "$tmp/empty.svg"
[ ! -e "$tmp/empty.svg" ] || fail 'an empty picture'
expect 2 "d1.ini' is a conf: .gpuloom run .*d1.ini --json" "$G" report "$tmp/d1.ini"
# A table for LaTeX: the verdicts, or the medians.
expect 0 '^variant & metric & verdict & change & 95 .% interval' "$G" report "$tmp/ab2.json" -o - --format tex
grep -q '^configuration & ' "$tmp/out" || fail 'the medians of a comparison for LaTeX'
grep -qF '\begin{tabular}{lllrrrr}' "$tmp/out" && grep -qF 'cpu\_seconds' "$tmp/out" && grep -qF ' \% ' "$tmp/out" ||
	fail 'a table for LaTeX'
expect 0 '' "$G" report tests/data/sweep.jsonl -o "$tmp/sweep.tex"
grep -q '^configuration & ' "$tmp/sweep.tex" && grep -qF '\bottomrule' "$tmp/sweep.tex" || fail 'a sweep for LaTeX'

# The full product, isolated processes, and a report. ThreadSanitizer does not support a fork of a process with threads.
if [ "${B##*/}" != thread ]; then
"$G" compare "$tmp/p.ini" --vary workload.planted.turns=1000,2000 --vary device.cpu.isolation=thread,process \
	$quick --blocks 3 --samples-per-block 2 --budget 1m --rewarm 1 -o "$tmp/r.html" --json "$tmp/r.json" ||
	fail 'the product of two factors'
grep -q '<html' "$tmp/r.html" || fail 'no report'
python3 -c 'import json,sys; d=json.load(open(sys.argv[1]))
assert [v["label"] for v in d["variants"]] == ["1000, thread", "1000, process", "2000, thread", "2000, process"]
assert d["variants"][3]["varied"] == {"workload.planted.turns": "2000", "device.cpu.isolation": "process"}' \
	"$tmp/r.json" || fail 'labels of the product'
fi

# With --spread, all threads sleep between blocks, so parked workers use no CPU time.
"$G" compare "$tmp/p.ini" --vary workload.planted.turns=1000,2000 --set device.cpu.spin=1ms --quiet --spread 3s \
	--blocks 3 --samples-per-block 2 --json "$tmp/s.json" || fail 'a spread comparison'
python3 -c 'import json,sys; e=json.load(open(sys.argv[1]))["environment"]
used=e["after"]["own_cpu_s"]-e["before"]["own_cpu_s"]; took=e["after"]["uptime_s"]-e["before"]["uptime_s"]
assert took > 1.5 and used < 0.3*took, (used, took)' "$tmp/s.json" || fail 'parked workers use the CPU'

# Results of runs whose environments differ are rejected, unless the differing fact is allowed by name.
"$G" run "$tmp/a.ini" --samples 8 --quiet --json "$tmp/a.json" && "$G" run "$tmp/b.ini" --samples 8 --quiet \
	--json "$tmp/b.json" || fail 'two runs'
expect 0 'SLOWER, not interleaved' "$G" compare "$tmp/a.json" "$tmp/b.json"
sed 's/"clocksource":[^,]*/"clocksource": "sundial"/' "$tmp/b.json" >"$tmp/b2.json"
expect 2 'clocksource: .* in a, sundial in b2' "$G" compare "$tmp/a.json" "$tmp/b2.json"
expect 0 'note: clocksource' "$G" compare "$tmp/a.json" "$tmp/b2.json" --allow-mismatch=clocksource
expect 2 'mixed' "$G" compare "$tmp/a.json" "$tmp/b.ini"
# A result that is given twice is no comparison.
ln -s a.json "$tmp/a-link.json"
expect 2 'same file, which counts once' "$G" compare "$tmp/a.json" "$tmp/a-link.json"
grep -q 'only one variant' "$tmp/err" || fail 'a comparison of a file with itself'
expect 0 'same file, which counts once' "$G" report "$tmp/a.json" "$tmp/b.json" "$tmp/a-link.json"
# --fail-on fails if no variant has the metric, or if the results are of different jobs or sizes.
expect 2 "no variant has a metric 'secnds'; did you mean 'seconds'" "$G" compare "$tmp/a.json" "$tmp/b.json" \
	--fail-on 'secnds: slower > 3%'
expect 2 "did you mean 'seconds'" "$G" compare "$tmp/a.ini" "$tmp/b.ini" --spread 0 --fail-on 'secnds: slower > 3%'
expect 2 "did you mean 'seconds'" "$G" compare "$tmp/p.ini" --vary workload.planted.turns=1,2 --spread 0 --metric secnds
expect 2 'workload is exec in a and .*workload_planted.so in p; .*--allow-mismatch=workload' "$G" compare "$tmp/a.ini" \
	"$tmp/p.ini"
sed 's/^turns.*/turns = 77/' "$tmp/p.ini" >"$tmp/p77.ini"
grep -q 'turns = 77' "$tmp/p77.ini" || printf '[workload.planted]\nturns = 77\n' >>"$tmp/p77.ini"
expect 2 'workload.planted.turns is [0-9]+ in p and 77 in p77' "$G" compare "$tmp/p.ini" "$tmp/p77.ini"
expect 0 '' "$G" compare "$tmp/p.ini" "$tmp/p77.ini" --allow-mismatch=workload.planted.turns $quick --blocks 1 \
	--samples-per-block 2
for j in a p; do "$G" run "$tmp/$j.ini" --quiet --samples 2 --json "$tmp/job-$j.json"; done
expect 2 'workload is exec in job-a and .*planted' "$G" compare "$tmp/job-a.json" "$tmp/job-p.json"
# Options without numbers define the job as well: another tree or another input is another job.
small='--set workload.uts.tree=custom --set workload.uts.b0=4 --set workload.uts.q=0.1 --set workload.uts.depth=3'
"$G" run conf/uts.ini $small --set workload.uts.type=binomial --samples 2 --quiet --json "$tmp/t1.json" &&
	"$G" run conf/uts.ini $small --set workload.uts.type=geometric --samples 2 --quiet --json "$tmp/t3.json" &&
	"$G" run conf/uts.ini $small --set workload.uts.type=binomial --set scheduler.use=static --samples 2 --quiet \
	--json "$tmp/t1b.json" &&
	"$G" run conf/uts.ini $small --set workload.uts.type=binomial --set run.seed=2 --samples 2 --quiet \
	--json "$tmp/t1c.json" ||
	fail 'four runs of uts'
expect 2 'different jobs: workload.uts.type is binomial in t1 and geometric in t3; .*--allow-mismatch=workload.uts.type' \
	"$G" compare "$tmp/t1.json" "$tmp/t3.json"
expect 0 'not interleaved' "$G" compare "$tmp/t1.json" "$tmp/t3.json" --allow-mismatch=workload.uts.type
expect 0 'not interleaved' "$G" compare "$tmp/t1.json" "$tmp/t1b.json"
expect 0 '' "$G" compare conf/uts.ini $small --vary workload.uts.type=binomial,geometric $quick --blocks 1 \
	--samples-per-block 2
# Whatever the options are, results with different answers are of different jobs.
python3 - "$tmp/t1.json" "$tmp/t1n.json" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
assert d["metrics"]["nodes"]["answer"] is True and "answer" not in d["metrics"]["steals"], d["metrics"]
d["metrics"]["nodes"]["samples"] = [n + 1 for n in d["metrics"]["nodes"]["samples"]]
json.dump(d, open(sys.argv[2], "w"))
PY
expect 2 'verified answers differ: nodes is [0-9]+ in t1 and [0-9]+ in t1n, so these are different jobs' \
	"$G" compare "$tmp/t1.json" "$tmp/t1n.json"
expect 0 '' "$G" compare "$tmp/t1.json" "$tmp/t1n.json" --allow-mismatch=workload
# Metrics are compared only with equal units and directions.
wait_conf() { # arguments: NAME FIGURE
	printf '%s\n' '#!/bin/sh' "echo '{\"wait\": $2}'" >"$tmp/wait-$1"
	chmod +x "$tmp/wait-$1"
}
wait_conf ms '{"value": 5, "unit": "ms", "better": "less"}'
wait_conf s '{"value": 0.005, "unit": "s", "better": "less"}'
wait_conf more '{"value": 5, "unit": "ms", "better": "more"}'
wait_conf none '{"value": 5, "better": "less"}'
for other in s none; do
	expect 2 "'wait' is in ms in .*wait-ms and in (s|no unit) in .*wait-$other: .*cannot be compared" "$G" compare \
		"$tmp/a.ini" \
		--vary "workload.exec.command=$tmp/wait-ms,$tmp/wait-$other" --metric wait \
		--fail-on 'wait: faster > 3%' --spread 0
	! grep -Eq 'seems|faster|cannot be distinguished' "$tmp/out" || fail 'a verdict about different units'
done
expect 2 "'wait' is better when it is less in .*wait-ms, and when it is more in .*wait-more" "$G" compare "$tmp/a.ini" \
	--vary "workload.exec.command=$tmp/wait-ms,$tmp/wait-more" --metric wait --spread 0
expect 0 '' "$G" compare "$tmp/a.ini" --vary "workload.exec.command=$tmp/wait-ms,$tmp/wait-more" \
	--metric wait:less $quick --blocks 1 --samples-per-block 2
expect 0 '' "$G" compare "$tmp/a.ini" --vary "workload.exec.command=$tmp/wait-ms,$tmp/wait-s" $quick --blocks 1 \
	--samples-per-block 2
expect 2 "bar two: 'wait' has different units in .*ms and" "$G" compare "$tmp/a.ini" \
	--vary "workload.exec.command=$tmp/wait-ms,$tmp/wait-s" \
	$quick --blocks 1 --samples-per-block 2 --bar 'two: wait(wait-ms) / wait(wait-s) >= 1'
for unit in ms s more; do
	"$G" run "$tmp/a.ini" --set "workload.exec.command=$tmp/wait-$unit" --samples 3 --quiet \
		--json "$tmp/w-$unit.json" || fail "a run in $unit"
done
expect 2 "'wait' is in ms in w-ms and in s in w-s" "$G" compare "$tmp/w-ms.json" "$tmp/w-s.json" --metric wait
for format in html md csv svg json; do
	expect 2 "'wait' is in ms in .*w-ms.json and in s in .*w-s.json" "$G" report "$tmp/w-ms.json" "$tmp/w-s.json" \
		--format $format
done
expect 2 "'wait' is better when it is less in .*w-ms.json, and when it is more in .*w-more.json" "$G" report \
	"$tmp/w-ms.json" "$tmp/w-more.json"
expect 2 "'wait' is in ms in .*wait-ms.* and in s in .*wait-s" "$G" sweep "$tmp/a.ini" \
	--vary "workload.exec.command=$tmp/wait-ms,$tmp/wait-s" --samples 2 -o "$tmp/wait.jsonl"
expect 2 "'wait' is in (ms|s) in .*exec.command=.*wait-(ms|s) and in (ms|s) in" "$G" report "$tmp/wait.jsonl"
# All samples of a run must have one unit.
printf '%s\n' '#!/bin/sh' "echo x >>$tmp/turns" "[ \$(wc -l <$tmp/turns) -le 2 ] && unit=ms || unit=s" \
	"echo '{\"wait\": {\"value\": 5, \"unit\": \"'\$unit'\"}}'" >"$tmp/wait-both"
chmod +x "$tmp/wait-both"
expect 3 "'wait' has the unit 's' .* in this sample, 'ms'" "$G" run "$tmp/a.ini" \
	--set "workload.exec.command=$tmp/wait-both" \
	--samples 6 --set run.warmup=0
if command -v rsvg-convert >/dev/null; then
	expect 0 '' "$G" report tests/data/compare.json -o "$tmp/plot.png"
	[ "$(head -c 4 "$tmp/plot.png" | tail -c 3)" = PNG ] || fail 'plot.png is no PNG'
	expect 0 '' "$G" report tests/data/compare.json -o "$tmp/plot.pdf"
	[ "$(head -c 4 "$tmp/plot.pdf")" = %PDF ] || fail 'plot.pdf is no PDF'
	# A program without support of CSS variables draws the SVG file with its background, text and colours.
	"$G" report tests/data/compare.json -o "$tmp/plot.svg"
	rsvg-convert "$tmp/plot.svg" -o "$tmp/plain.png"
	python3 - "$tmp/plain.png" <<'PY' || fail 'docs_F11: rsvg-convert draws the SVG file black'
import struct, sys, zlib
data, at, packed = open(sys.argv[1], 'rb').read(), 8, b''
while at < len(data):
    n, kind = struct.unpack('>I4s', data[at:at + 8])
    if kind == b'IHDR':
        width, height, depth, colour = struct.unpack('>IIBB', data[at + 8:at + 18])
    packed += data[at + 8:at + 8 + n] if kind == b'IDAT' else b''
    at += 12 + n
assert depth == 8 and colour in (2, 6)
k = 4 if colour == 6 else 3
raw, before, seen = zlib.decompress(packed), bytes(width * k), {}
for y in range(height):
    kind, line = raw[y * (width * k + 1)], bytearray(raw[y * (width * k + 1) + 1:(y + 1) * (width * k + 1)])
    for i in range(len(line)):
        a, b, c = line[i - k] if i >= k else 0, before[i], before[i - k] if i >= k else 0
        paeth = min((a, b, c), key=lambda v: abs(a + b - c - v))
        line[i] = line[i] + (0, a, b, (a + b) // 2, paeth)[kind] & 255
    before = bytes(line)
    for i in range(0, len(line), k):
        seen[before[i:i + 3]] = seen.get(before[i:i + 3], 0) + 1
white, black = seen.get(b'\xff\xff\xff', 0), seen.get(b'\0\0\0', 0)
sys.exit(not (white > width * height // 2 and black < width * height // 100 and len(seen) > 20))
PY
fi
expect 1 'rsvg-convert, which converts plots to PNG and PDF, is not installed .Debian: librsvg2-bin' \
	env PATH=/nonexistent "$(realpath "$G")" report tests/data/compare.json -o "$tmp/no.png"
[ -e "$tmp/no.png" ] && fail 'a picture that was not drawn'
"$G" compare "$tmp/a.json" "$tmp/b.json" --quiet --json "$tmp/ab.json"
expect 2 'not a result' "$G" compare "$tmp/a.json" "$tmp/ab.json"

# Ctrl-C keeps complete blocks, and no file or process is left.
printf '#!/bin/sh\necho >>"%s"\nsleep 0.04\n' "$tmp/naps" >"$tmp/nap"
chmod +x "$tmp/nap"
exec_conf "$tmp/sleep.ini" "$tmp/nap"
interrupted '[ "$(wc -l <"$tmp/naps")" -ge 20 ]' "$G" compare "$tmp/sleep.ini" "$tmp/a.ini" --blocks 1000 \
	--openings 1000 --samples-per-block 2 --quiet \
	--json "$tmp/part.json"
python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); g=d["design"]
assert d["status"] == "interrupted" and 0 < g["complete"] < 1000
assert d["comparisons"][0]["blocks"] == g["complete"] <= len(d["schedule"]) / 4' "$tmp/part.json" ||
	fail 'no partial comparison after Ctrl-C'

# Ctrl-C also keeps blocks while the noise floor is measured.
: >"$tmp/naps"
interrupted '[ "$(wc -l <"$tmp/naps")" -ge 6 ]' "$G" compare "$tmp/sleep.ini" "$tmp/a.ini" --aa --spread 0 --quiet \
	--json "$tmp/floor.json"
python3 -c 'import json,sys; assert json.load(open(sys.argv[1]))["status"] == "interrupted"' "$tmp/floor.json" ||
	fail 'nothing is left after Ctrl-C during --aa'
[ "$(grep -c interrupted "$tmp/err")" -eq 1 ] || fail 'an interruption is not said once'

# exec: time limit, exit status, signals, figures and process isolation; no process is left.
for isolation in thread process; do
	one="--set device.cpu.isolation=$isolation --samples 2"
	mark=7$$
	exec_conf "$tmp/e.ini" "sleep $mark"
	expect 124 'no end' "$G" run "$tmp/e.ini" $one --set run.timeout=300ms
	expect 124 'exec: .*no end' "$G" run "$tmp/e.ini" $one --set workload.exec.timeout=200ms
	exec_conf "$tmp/e.ini" "sleep $mark & sleep $mark & echo on"
	expect 0 'wall_seconds' "$G" run -v "$tmp/e.ini" $one --set workload.exec.shell=yes
	exec_conf "$tmp/e.ini" 'echo oh no >&2; exit 3'
	expect 3 'status 3.*oh no' "$G" run "$tmp/e.ini" $one --set workload.exec.shell=yes
	expect 0 '' "$G" run "$tmp/e.ini" $one --set workload.exec.shell=yes --set workload.exec.expect_exit=3
	exec_conf "$tmp/e.ini" 'kill -SEGV $$'
	expect 1 'signal 11' "$G" run "$tmp/e.ini" $one --set workload.exec.shell=yes
	exec_conf "$tmp/e.ini" "$tmp/timed 2 $tmp/ne"
	expect 0 'rate +0.5 x/s' "$G" run -v "$tmp/e.ini" $one --set workload.exec.expect=rate=0.5
	expect 3 'rate = 0.5, expected is 0.6' "$G" run "$tmp/e.ini" $one --set workload.exec.expect=rate=0.6
	expect 3 "did not print 'words'" "$G" run "$tmp/e.ini" $one --set workload.exec.expect=words=1
	# A program may print more output than is kept, and may read its standard input.
	printf '%s\n' '#!/bin/sh' 'cat' 'yes | head -c 1000000' "echo '' '{\"rate\": 7}'" "echo '{\"seconds\": 0.5}'" \
		'echo }' >"$tmp/loud"
	chmod +x "$tmp/loud"
	exec_conf "$tmp/e.ini" "$tmp/loud"
	expect 0 '500 ms' "$G" run -v "$tmp/e.ini" $one
	if pgrep -f "^sleep $mark\$" >/dev/null; then
		fail "a program was left behind ($isolation)"
		pgrep -f "^sleep $mark\$" | xargs kill
	fi
done
# The rules that bench/aa.py judges beside ours. The second value of p is that of an example in the literature.
python3 - <<'PY' || fail 'the rules of bench/aa.py'
import math, sys
sys.path.insert(0, 'bench')
sys.dont_write_bytecode = True
from aa import by_nvbench, by_welch, welch_p
c = [17.2, 20.9, 22.6, 18.1, 21.7, 21.4, 23.5, 24.2, 14.7, 21.8]
d = [21.5, 22.8, 21.0, 23.0, 21.6, 23.6, 22.5, 20.7, 23.4, 21.8, 20.7, 21.7, 21.5, 22.5, 23.6, 21.5, 22.5, 23.5, 21.5, 21.8]
assert abs(welch_p(c, d) - 0.148841696605327) < 1e-9, welch_p(c, d)
# p is twice the tail of Student's density, here by Simpson's rule.
def tail(t, df, n=20000):
    f = lambda x: math.exp(math.lgamma(df / 2 + 0.5) - math.lgamma(df / 2) - (df + 1) / 2 * math.log1p(x * x / df)) / math.sqrt(df * math.pi)
    return 1 - 2 * t / (3 * n) * (f(0) + f(t) + sum((4 if i % 2 else 2) * f(t * i / n) for i in range(1, n)))
a, b = [1, 2, 3, 4, 5], [2, 3, 4, 5, 9]
u, v = 2.5 / 5, 7.3 / 5  # variances of the means
df = (u + v) ** 2 / (u * u / 4 + v * v / 4)
assert abs(welch_p(a, b) - tail(1.6 / math.sqrt(u + v), df)) < 1e-9, welch_p(a, b)
low, high = [100, 101, 102, 103], [110, 111, 112, 113]
assert (by_welch(low, high), by_welch(high, low), by_welch(c, d)) == ('SLOWER', 'FASTER', 'SAME')
# The means differ by 2 %; the smaller relative standard deviation is 1 % or 3 %.
assert by_nvbench([99, 100, 101], [96, 102, 108]) == 'SLOWER' and by_nvbench([97, 100, 103], [98, 102, 106]) == 'SAME'
PY
finish
