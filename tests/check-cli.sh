# SPDX-License-Identifier: Apache-2.0
# The command line as its user meets it: clean data on stdout, one clear message per mistake, exit codes.
. tests/lib.sh
small='--set workload.memset.tasks=1000 --samples 2'

# JSON and nothing else, with every effective option and its origin.
expect 0 '' "$G" run conf/memset.ini $small --json -
python3 - "$tmp/out" <<'PY' || fail 'the JSON result'
import json, sys
d = json.load(open(sys.argv[1]))
assert d['schema'] == 'gpuloom.result/1' and d['status'] == 'ok', d['status']
c = d['config']
assert c['run.samples']['source'] == 'command line', c['run.samples']
assert c['run.workload']['source'] == 'file' and c['run.workload']['at'].startswith('conf/memset.ini:')
assert c['run.timeout']['source'] == 'default'
assert any(k.startswith('scheduler.mgws.') for k in c) and any(k.startswith('device.cpu.') for k in c)
assert len(d['metrics']['seconds']['samples']) == 2
assert sum(w['executed'][0] for w in d['workers']) == 1000
PY

# Mistakes: file, line, column, a suggestion.
conf() { printf '%s\n' "$@" >"$tmp/x.ini"; }
base='[run]
workload = memset
devices = cpu:0
[transport]
use = host
[scheduler]
use = mgws
[termination]
use = counter'
conf "$base" '[scheduler.mgws]' 'public_queu = 64'
expect 2 "x.ini:11:1: error: .*'public_queu'.*public_queue" "$G" run "$tmp/x.ini"
conf "$base" '[scheduler.mgws]' 'public_queue = 64k5'
expect 2 "x.ini:11:16: error: .*64k5" "$G" run "$tmp/x.ini"
# Of a plug-in that is not in use, too; but nothing is missing there.
conf "$base" '[workload.fib]' 'n = 3x' '[device.cpu.1]' 'workers = -1' '[workload.contains]' 'word = x'
expect 2 "x.ini:13:11: error: .*'-1'" "$G" config check "$tmp/x.ini"
[ "$(grep -c error: "$tmp/err")" = 2 ] || fail 'values of sections that are not in use'
conf "$base" '[device.cpu]' 'lanes = 1' 'lanes = 2'
expect 2 'x.ini:12:1: error: .*lanes.*11' "$G" run "$tmp/x.ini"
expect 2 'folder' "$G" run "$tmp"
expect 2 'no.such.ini' "$G" run "$tmp/no.such.ini"
conf "$base" '[scheduler.mgsw]' 'x = 1'
expect 2 'x.ini:10:.*mgsw.*mgws' "$G" run "$tmp/x.ini"
expect 2 "mgsw.*did you mean.*mgws|mgsw.*mgws" "$G" run conf/memset.ini --set scheduler.use=mgsw
expect 2 "did you mean '--samples'" "$G" run conf/memset.ini --sample 3
expect 2 "did you mean 'run'" "$G" rum conf/memset.ini
expect 2 'json needs a value, as in --json FILE' "$G" run conf/memset.ini --json
expect 2 'quiet takes no value' "$G" run conf/memset.ini --quiet=yes
expect 2 "trace-every: '-3' .*negative" "$G" run conf/memset.ini --trace-every -3
expect 2 "'warning' is none of error, warn" "$G" run conf/memset.ini --log=warning
expect 2 "no option '-x'" "$G" run -x conf/memset.ini
expect 0 '1 sample' "$G" run --samples=1 -- conf/memset.ini
expect 0 'warning: the conf has no .trigger., .* each of the 2 runs the whole job' "$G" run -n 2 conf/memset.ini $small
[ "$(grep -c warning: "$tmp/err")" = 1 ] || fail 'a warning from each rank'
# What is to be written is tried before anything is run, and left as it is.
for to in "--json $tmp" "--json $tmp/no/r.json" "--json=" "--trace $tmp/no/t" "--metrics $tmp/no/m"; do
	expect 2 'cannot write' "$G" run conf/memset.ini $to
	[ ! -s "$tmp/out" ] || fail "it ran, and lost what it had for $to"
done
for to in "--json $tmp/no/r.json" "-o $tmp/no/r.html"; do
	expect 2 'cannot write' timeout 5 "$G" compare conf/memset.ini --vary run.seed=1,2 --spread 100s $to
done
# What cannot be written when it comes to that goes to standard output.
expect 1 'No space left .*; the result goes to standard output' "$G" run conf/memset.ini $small --json /dev/full
python3 -c 'import json,sys; assert json.load(open(sys.argv[1]))["samples"]' "$tmp/out" || fail 'a result on a full disk'
echo old >"$tmp/r.json"
expect 2 'needs a value' "$G" run conf/memset.ini --json "$tmp/r.json" --samples
[ "$(cat "$tmp/r.json")" = old ] || fail 'a file that was only looked at'
expect 2 'one too many' "$G" list sched term
expect 2 'which conf' "$G" config check
expect 2 'check, show or schema' "$G" config
# What may follow is what the options' rows say.
[ "$("$G" complete --s run | tr '\n' ' ')" = '--set --samples ' ] || fail 'completion of run --s'
[ "$("$G" complete --lo compare)" = --log ] || fail 'completion of compare --lo'
expect 2 'devices' "$G" run conf/memset.ini --set run.devices=
# The fixtures call themselves term_NAME; a plug-in has its own name as its file's.
for bad in abort major; do
	cp "$B/tests/plugins/bad_$bad.so" "$tmp/term_$bad.so" || fail "no fixture bad_$bad.so"
done
expect 2 'term_abort.so: .*SIGABRT' "$G" run conf/memset.ini --set "termination.use=$tmp/term_abort.so"
expect 2 'term_major.so: .*ABI' "$G" run conf/memset.ini --set "termination.use=$tmp/term_major.so"
mkdir "$tmp/p" && ln -s "$tmp/none" "$tmp/p/sched_gone.so"
expect 2 "no scheduler plug-in 'gone' in [^;]*; there is: mgws, static" "$G" run conf/memset.ini \
	--set scheduler.use=gone --set "gpuloom.plugin_path=$tmp/p"
expect 2 'no such plug-in file' "$G" run conf/memset.ini --set "scheduler.use=./no_such.so"

# A sample that does not end says what each worker was at.
expect 124 'no end after 0.2 s .*: cpu:0: 1 at work \(0\); cpu:1: 1 at work \(1\); the workers left' "$G" run conf/uts.ini \
	--set workload.uts.tree=T1XXL --set run.timeout=200ms
for sync in poll futex wic backoff; do
	expect 124 'cpu:0: 2 at work \(0-1\); cpu:1: 2 waiting for data of others \(2-3\); the workers' "$G" run conf/wic/pattern.ini \
		--set sync.use=$sync --set device.cpu.workers=2 --set run.timeout=1s --set workload.pattern.tp=1000000
done

# What `show --as-ini` writes gives the same values.
"$G" config show conf/memset.ini --as-ini >"$tmp/full.ini" 2>/dev/null || fail 'config show --as-ini'
"$G" config show conf/memset.ini >"$tmp/a" && "$G" config show "$tmp/full.ini" >"$tmp/b"
cmp -s "$tmp/a" "$tmp/b" || { fail 'as-ini differs'; diff "$tmp/a" "$tmp/b"; }
expect 0 'conf/memset.ini:[0-9]' "$G" config show conf/memset.ini --origin
for conf in conf/*.ini conf/*/*.ini; do
	device=$(sed -n 's/^devices *= *\(.*\)/\1/p' "$conf" | grep -oE 'cuda|hip')
	if [ -n "$device" ] && [ ! -e "$B/plugins/device_$device.so" ]; then
		expect 4 "'$device' was left out" "$G" config check "$conf"
	else
		expect 0 '' "$G" config check "$conf"
	fi
done
expect 0 'sched_mgws' "$G" list
expect 0 'public_queue' "$G" describe mgws
for name in mgws sched_mgws scheduler.mgws; do
	expect 0 'sched.each_task_once' "$G" validate --list $name
done
expect 2 "'counter' is the name of 2 plug-ins; say which: termination.counter, trigger.counter" "$G" validate counter
expect 2 "no plug-in 'mgs'; did you mean 'mgws'\\?" "$G" validate mgs
expect 0 'userfaultfd' "$G" doctor
expect 0 'Ctrl-C' "$G" run --help

# A time limit and Ctrl-C end in time and keep what was measured.
expect 124 'no end' "$G" run conf/uts.ini --set workload.uts.tree=T1L --set run.timeout=50ms
expect 124 'of 1 initial tasks unclaimed, .* tasks public' "$G" run conf/uts.ini --set workload.uts.tree=T1L \
	--set run.timeout=50ms
for signal in INT HUP; do # Ctrl-C, and a terminal that goes away
	rm -f "$tmp/part.json"
	"$G" run conf/fib.ini --samples 100000 --json "$tmp/part.json" --quiet 2>/dev/null &
	pid=$!
	sleep 1
	kill -$signal $pid
	wait $pid
	[ $? -eq 130 ] || fail "SIG$signal does not exit with 130"
	python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); assert d["status"]=="interrupted" and d["samples"]' \
		"$tmp/part.json" || fail "no partial result after SIG$signal"
done
finish
