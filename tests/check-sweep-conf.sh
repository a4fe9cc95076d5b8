# SPDX-License-Identifier: Apache-2.0
# Tests the conf of a sweep with run, sweep, check, show and report: errors have a position, and Ctrl-C shows the finished
# part.
. tests/lib.sh
planted_conf "$tmp/p.ini"
cat >"$tmp/s.ini" <<INI
[sweep]
pareto = seconds, cpu_seconds
report = $tmp/s.svg
output = $tmp/s.jsonl
[sweep.points]
Small = workload.planted.turns=1000
large = workload.planted.turns=40000000, device.cpu.spin=1us
as-it-is =
[sweep.run]
seed = 1, 2
[sweep.skip]
tired = point=large, run.seed=2
INI
cat "$tmp/p.ini" >>"$tmp/s.ini"

expect 0 '' "$G" run "$tmp/s.ini" --dry-run
[ "$(grep -c '^run' "$tmp/out")" = 5 ] || fail 'five configurations to run'
grep -q '^skip .*point=large .*run.seed=2: tired$' "$tmp/out" || fail 'a configuration left out, with its reason'
[ ! -e "$tmp/s.jsonl" ] || fail 'a dry run wrote a file'
expect 0 '' "$G" run "$tmp/s.ini" --samples 6
grep -q '^  [*~] * Small, 1 .* 6$' "$tmp/out" && grep -q '^ * large, 1 .* 6$' "$tmp/out" ||
	fail 'rows, and what is on the front'
grep -q '1 left out: tired' "$tmp/out" || fail 'what was left out'
tail -n 6 "$tmp/out" | grep -q 'front of seconds (less is better) and cpu_seconds' ||
	fail 'it does not end with the front'
grep -q '<svg' "$tmp/s.svg" || fail 'no drawing'
# The report depends only on the contents of the file.
expect 0 '' "$G" report "$tmp/s.jsonl" -o "$tmp/r.json"
python3 - "$tmp/r.json" "$tmp/s.jsonl" <<'PY' || fail 'the report of its file'
import json, sys
r = json.load(open(sys.argv[1]))
assert r['pareto'] == {'x': 'seconds', 'y': 'cpu_seconds'}, r['pareto']
front = {v['label']: v['front'] for v in r['variants']}
assert front['large, 1'] == 'off' and 'on' in (front['Small, 1'], front['Small, 2']), front
lines = [json.loads(l) for l in open(sys.argv[2])]
head, samples = lines[0], [l for l in lines if 'sample' in l]
point = head['factors'][0]
assert point['key'] == 'point' and point['values'] == ['Small', 'large', 'as-it-is'], point
assert point['sets']['large'] == ['workload.planted.turns=40000000', 'device.cpu.spin=1us'], point
assert len(samples) == 5 * 6
# The sweep runs in rounds: each configuration has one sample before any has all.
names = [json.dumps(l['values']) for l in samples]
assert len(set(names[:5])) == 5, names
PY
expect 2 'restart' "$G" run "$tmp/s.ini" --samples 6
expect 0 ' 0 new samples' "$G" run "$tmp/s.ini" --samples 6 --resume
expect 0 ' 5 new samples' "$G" sweep "$tmp/s.ini" --samples 7 --resume --set sweep.pareto=
tail -n 6 "$tmp/out" | grep -q 'front of seconds' || fail 'the front of the file'
expect 0 ' 5 new samples' "$G" run "$tmp/s.ini" --samples 1 --restart
# With --json - the lines go to standard output in place of the table. Without an output file they are not saved.
expect 0 '' "$G" run "$tmp/s.ini" --samples 1 --json - --set sweep.output=
head -n 1 "$tmp/out" | grep -q '"gpuloom.sweep/1"' || fail 'run --json -'
expect 0 '' "$G" sweep "$tmp/s.ini" --samples 1 -o -
head -n 1 "$tmp/out" | grep -q '"gpuloom.sweep/1"' || fail 'sweep -o -'
[ ! -e ./- ] || fail "a file called '-'"
expect 0 'Small, 2' "$G" run "$tmp/s.ini" --samples 1 --set sweep.output=

expect 0 '' "$G" sweep "$tmp/s.ini" --vary run.seed=3 --point large=workload.planted.turns=5 --dry-run \
	--set sweep.skip.tired=point=Small --skip 'point=as-it-is: why not'
[ "$(grep -c '^run' "$tmp/out")" = 1 ] && grep -q '^run .*large (workload.planted.turns=5) run.seed=3' "$tmp/out" ||
	fail 'lists, points and rules of the command line'
expect 2 'run.seed is varied in .*s.ini:10; .*no-sweep' "$G" run "$tmp/s.ini" --set run.seed=7
expect 2 'run.seed=7: error: run.seed is varied by --vary' "$G" sweep "$tmp/p.ini" --vary run.seed=1,2 --set run.seed=7
expect 2 'GPULOOM_RUN__SEED: .*varied' env GPULOOM_RUN__SEED=7 "$G" run "$tmp/s.ini"
expect 2 'varied twice' "$G" sweep "$tmp/s.ini" --vary run.seed=3 --vary run.seed=4
expect 2 'vary seed=3: not of the form' "$G" sweep "$tmp/s.ini" --vary seed=3
expect 2 'only .*not varied' "$G" sweep "$tmp/s.ini" --only run.sed=1
expect 0 '1 sample' "$G" run "$tmp/s.ini" --set run.seed=7 --samples 1 --no-sweep
expect 2 'trace requires a single run' "$G" run "$tmp/s.ini" --trace "$tmp/t"
expect 2 'resume requires a conf with .sweep.' "$G" run "$tmp/p.ini" --resume
expect 0 '^run .*planted.*: 5 samples' "$G" run "$tmp/p.ini" --dry-run
expect 0 'ok' "$G" config check "$tmp/s.ini"
expect 0 'sweep.points.Small +workload.planted.turns=1000 +file +.*s.ini:6' "$G" config show "$tmp/s.ini" --origin
"$G" config show "$tmp/s.ini" --as-ini >"$tmp/full.ini" 2>/dev/null || fail 'config show --as-ini of a sweep'
"$G" run "$tmp/s.ini" --dry-run >"$tmp/a" && "$G" run "$tmp/full.ini" --dry-run >"$tmp/b"
cmp "$tmp/a" "$tmp/b" || { fail "show --as-ini is another sweep"; diff "$tmp/a" "$tmp/b"; }

# A mistake is reported with file, line and the nearest name, before anything is run.
wrong() { # PATTERN LINE...: lines at the end of the conf, from line 8 on
	pattern=$1
	shift
	{ cat "$tmp/p.ini"; printf '%s\n' "$@"; } >"$tmp/w.ini"
	expect 2 "$pattern" "$G" run "$tmp/w.ini"
	expect 2 "$pattern" "$G" config check "$tmp/w.ini"
}
seeds='[sweep.run]
seed = 1, 2'
wrong "w.ini:9:1: error: .*'budgte'.*did you mean 'budget'" '[sweep]' 'budgte = 1m' "$seeds"
wrong 'w.ini:8: error: .sweep. varies nothing' '[sweep]' 'budget = 1m'
wrong 'w.ini:9:10: error: .*two metrics' '[sweep]' 'pareto = seconds' "$seeds"
wrong 'w.ini:9:8: error: .*did you mean forest' '[sweep]' 'plot = forst' "$seeds"
wrong 'w.ini:9:10: error: .*end in .html' '[sweep]' 'report = x.exe' "$seeds"
wrong 'w.ini:9:4: error: a key has no dots; write .sweep.run.' '[sweep]' 'run.seed = 1, 2'
wrong "w.ini:9:8: error: seed in .run.: 'x'" '[sweep.run]' 'seed = 1, x'
wrong "w.ini:9:1: error: unknown key 'sed' in .run.; did you mean 'seed'" '[sweep.run]' 'sed = 1, 2'
wrong "w.ini:9:1: error: unknown section .rnu.; did you mean .run." '[sweep.rnu]' 'seed = 1, 2'
wrong 'w.ini:9:8: error: run.seed=1,1: the same value twice' '[sweep.run]' 'seed = 1,1'
wrong "w.ini:9:5: error: 'seed=1' is not of the form section.key=value" '[sweep.points]' 'a = seed=1'
wrong "w.ini:9:5: error: point 'a' sets run.seed twice" '[sweep.points]' 'a = run.seed=1, run.seed=2'
wrong "w.ini:9:8: error: run.seed is varied by a list, and set by point 'a'" "$seeds" '[sweep.points]' 'a = run.seed=3'
wrong "w.ini:11:6: error: .*has no value '3'" "$seeds" '[sweep.skip]' 'no = run.seed=3'
wrong "w.ini:10:5: error: .*did you mean .*'host'" '[sweep.points]' 'a = transport.use=host' 'b = transport.use=hots'
expect 2 "sweep.report: cannot write '.*no/r.html'" "$G" run "$tmp/s.ini" --samples 100000 --restart \
	--set "sweep.report=$tmp/no/r.html"
# A closed pipe ends the sweep without a message, and no configuration is marked as failed.
"$G" sweep "$tmp/s.ini" --samples 100000 -o - 2>"$tmp/err" | head -n 1 >"$tmp/out"
! grep -qE 'error:|warning:' "$tmp/err" ||
	{ fail 'a closed pipe'; cat "$tmp/err"; }

# A wrong name of a metric is an error after the first sample if the name resembles a metric. Otherwise the error comes after
# the first round, as other cells may have the metric. No sample is lost: the file can be read, and continued with another
# name.
expect 2 "no metric 'secnds'; did you mean 'seconds'" "$G" run "$tmp/s.ini" --samples 100000 \
	--set sweep.pareto=secnds,cpu_seconds --set sweep.output= --set sweep.report=
rm -f "$tmp/s.jsonl"
expect 2 "did you mean 'seconds'. The samples are in '.*s.jsonl': --resume" "$G" run "$tmp/s.ini" --samples 2 \
	--set sweep.pareto=secnds,cpu_seconds --set sweep.report=
expect 0 "warning: report: ignoring 'pareto' of the sweep: no metric 'secnds'" "$G" report "$tmp/s.jsonl"
grep -qE '^\| .*(Small|large|as-it-is)' "$tmp/out" || fail 'a report with a wrong name in its front'
expect 2 "no metric 'secnds'" "$G" report "$tmp/s.jsonl" --pareto secnds,cpu_seconds
expect 0 ' 9 new samples' "$G" run "$tmp/s.ini" --samples 2 --resume
tail -n 6 "$tmp/out" | grep -q 'front of seconds (less is better) and cpu_seconds' ||
	fail 'the front of the metrics that the second run names'
expect 0 '' "$G" report "$tmp/s.jsonl"
! grep -q warning "$tmp/err" || fail "the file still names a metric that does not exist"
expect 2 "warning: no metric 'beauty' in the first sample" "$G" run "$tmp/s.ini" --samples 100000 --restart \
	--set sweep.pareto=seconds,beauty
grep -q "error: no metric 'beauty' in any configuration; there are seconds, .*--resume" "$tmp/err" &&
	grep -q ' 5 new samples' "$tmp/err" ||
	fail 'a metric of no configuration, after the first round'
grep -q 'Small, 1' "$tmp/out" || fail 'no table, for want of a metric'
expect 2 "no metric 'ugliness' in any configuration" "$G" run "$tmp/s.ini" --samples 1 --resume \
	--set sweep.pareto=seconds,ugliness
expect 2 "no metric 'beauty' in any configuration" "$G" run "$tmp/s.ini" --samples 1 --set sweep.pareto=seconds,beauty \
	--set sweep.output=

# After Ctrl-C the status is 130. The output has the table and plot of the finished part, and the command that continues.
rm -f "$tmp/s.svg" "$tmp/s.jsonl"
interrupted '[ "$(grep -c "\"sample\":" "$tmp/s.jsonl" 2>/dev/null || :)" -ge 20 ] 2>/dev/null' "$G" run "$tmp/s.ini" \
	--samples 100000
grep -q 'interrupted after .*resume continues' "$tmp/err" && grep -q 'front of' "$tmp/out" && [ -s "$tmp/s.svg" ] ||
	fail 'what an interrupted run of a sweep shows'

# A prerequisite that all configurations lack is reported once, before a stack is opened or a file is made.
for conf in 24 25 26; do
	expect 2 'path = /usr/share/man/none: No such file .*generated.*no configuration can run' "$G" run \
		conf/thesis/figure-$conf.ini \
		--set workload.contains.path=/usr/share/man/none --set sweep.output="$tmp/none.jsonl"
	[ "$(wc -l <"$tmp/err")" -eq 1 ] || fail 'not one line about what is missing'
	[ ! -e "$tmp/none.jsonl" ] || fail 'a sweep that cannot run wrote a file'
done
expect 0 '' "$G" run conf/thesis/figure-24.ini --dry-run --set workload.contains.path=/usr/share/man/none
finish
