# SPDX-License-Identifier: Apache-2.0
# Tests the command line: stdout has only data, each mistake gives one clear message, and exit codes are as documented.
. tests/lib.sh
unset GPULOOM_RUN__TIMEOUT # a variable of the environment overrides what a result contains
small='--set workload.memset.tasks=1000 --samples 2'

# The output is JSON and nothing else, with every effective option and its origin.
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

# The message of a mistake has file, line, column and a suggestion.
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
# A plug-in's check() of its options needs no device, and the error names the line.
conf "$base" '[scheduler.mgws]' 'granularity = worker' 'public_queue = 63'
expect 2 "x.ini:12:16: error: .scheduler.mgws. public_queue = 63: must be a power of two" "$G" config check "$tmp/x.ini"
for set in uts:workload.uts.tree=custom,workload.uts.type=binomial,workload.uts.q=0.5:q \
	qos/storm:workload.requests.outstanding=3:outstanding \
	memset:transport.use=p2p,transport.p2p.placement=there:placement \
	allreduce:workload.allreduce.chain=yes,workload.allreduce.order=fire-first:order \
	msgrate:workload.msgrate.per=7:per pingpong:workload.pingpong.bytes=12:bytes \
	memset:scheduler.use=static,scheduler.static.local_queue=3:local_queue \
	memset:run.workload=exec,workload.exec.command=true,workload.exec.expect=x:expect; do
	file=${set%%:*} key=${set##*:} list=${set#*:}
	expect 2 "$key=[^ ]*: error: " "$G" config check "conf/$file.ini" \
		$(echo "${list%:*}" | tr , '\n' | sed 's/^/--set /')
done
# The rate in a workload's own unit of work comes first, after the time.
for rate in uts:nodes memset:bytes fib:tasks msgrate:triggers pingpong:messages wic:iterations qos/storm:requests \
	jacobi2d:cells sgd:samples; do
	unit=${rate#*:}
	"$G" config check "conf/${rate%:*}.ini" 2>"$tmp/err" || continue # not built here
	expect 0 "" "$G" run "conf/${rate%:*}.ini" --samples 1 --set run.warmup=0 \
		--set workload.pingpong.rounds=50 --quiet --json "$tmp/rate.json"
	python3 - "$tmp/rate.json" "$unit" <<-'PY' || fail "the rate of ${rate%:*}"
		import json, sys
		metrics = json.load(open(sys.argv[1]))['metrics']
		name = sys.argv[2] + '_per_s'
		assert list(metrics)[:2] == ['seconds', name], list(metrics)[:3]
		assert metrics[name]['better'] == 'more' and metrics[name]['unit'].endswith('/s')
		work = metrics.get(sys.argv[2])
		if not work or name == 'requests_per_s': sys.exit()
		assert abs(metrics[name]['median'] * metrics['seconds']['median'] / work['median'] - 1) < 1e-6
	PY
done
# Values are checked also for a plug-in that is not selected; nothing is reported as missing for it.
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
expect 2 'cpu:2: .*number them from 0' "$G" run conf/memset.ini --set 'run.devices=cpu:0 cpu:2'
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
# Output files are opened before anything runs, and opening does not change them.
for to in "--json $tmp" "--json $tmp/no/r.json" "--json=" "--trace $tmp/no/t"; do
	expect 2 'cannot write' "$G" run conf/memset.ini $to
	[ ! -s "$tmp/out" ] || fail "it ran, and lost what it had for $to"
done
for to in "--json $tmp/no/r.json" "-o $tmp/no/r.html"; do
	expect 2 'cannot write' "$G" compare conf/memset.ini --vary run.seed=1,2 --spread 100s $to
done
# A result that cannot be written at the end goes to standard output.
expect 1 'No space left .*; the result goes to standard output' "$G" run conf/memset.ini $small --json /dev/full
python3 -c 'import json,sys; assert json.load(open(sys.argv[1]))["samples"]' "$tmp/out" ||
	fail 'a result on a full disk'
echo old >"$tmp/r.json"
expect 2 'needs a value' "$G" run conf/memset.ini --json "$tmp/r.json" --samples
[ "$(cat "$tmp/r.json")" = old ] || fail 'a file that was only looked at'
# An output never overwrites an input or another output, whatever its name is, or the samples of a sweep.
cat >"$tmp/base.ini" <<INI
include = $PWD/conf/memset.ini
INI
printf 'include = base.ini\n' >"$tmp/mine.ini"
ln -s mine.ini "$tmp/alias.ini"
"$G" run "$tmp/mine.ini" $small --quiet --json "$tmp/one.json" && "$G" run "$tmp/mine.ini" $small --quiet --json "$tmp/two.json" &&
	"$G" sweep "$tmp/mine.ini" $small --vary run.seed=1,2 --quiet -o "$tmp/samples.jsonl" || fail 'files to protect'
mkdir "$tmp/safe" && cp "$tmp"/*.ini "$tmp"/one.json "$tmp"/two.json "$tmp"/samples.jsonl "$tmp/safe"
for option in --json --trace; do
	for input in mine base alias; do
		expect 2 "$option .*/$input.ini' would overwrite the input" "$G" run "$tmp/mine.ini" $small $option "$tmp/$input.ini"
	done
	expect 2 "$option .* would overwrite the samples of a sweep" "$G" run "$tmp/mine.ini" $small $option "$tmp/samples.jsonl"
	expect 2 "$option .* would overwrite the input" "$G" rerun "$tmp/one.json" $option "$tmp/./one.json"
done
expect 2 'same file' "$G" run "$tmp/mine.ini" $small --json "$tmp/new" --trace "$tmp/./new"
expect 2 "plugins/sched_mgws.so' would overwrite|sched_mgws.so' .*overwrite the input" "$G" run "$tmp/mine.ini" $small \
	--set scheduler.use="$B/plugins/sched_mgws.so" --trace "$B/plugins/sched_mgws.so"
expect 2 'overwrite an input of the command' "$G" run "$tmp/mine.ini" $small --set scheduler.use=plan \
	--set scheduler.plan.costs=measured --set scheduler.plan.save="$tmp/base.ini"
expect 2 "would overwrite '.*new.plan' of .scheduler.plan. save" "$G" run "$tmp/mine.ini" $small --set scheduler.use=plan \
	--set scheduler.plan.costs=measured --set scheduler.plan.save="$tmp/new.plan" --json "$tmp/new.plan"
expect 2 'would overwrite the input' "$G" compare "$tmp/mine.ini" --vary run.seed=1,2 --json "$tmp/base.ini"
expect 2 'same file' "$G" compare "$tmp/mine.ini" --vary run.seed=1,2 -o "$tmp/new.svg" -o "$tmp/./new.svg"
expect 2 'would overwrite the input' "$G" compare "$tmp/one.json" "$tmp/two.json" --json "$tmp/two.json"
expect 2 'would overwrite the input' "$G" report "$tmp/one.json" -o "$tmp/one.json"
expect 2 'overwrite the samples' "$G" report "$tmp/one.json" --format json -o "$tmp/samples.jsonl"
expect 2 'would overwrite the samples' "$G" report "$tmp/samples.jsonl" --format md -o "$tmp/samples.jsonl"
expect 2 'sweep.output .* and sweep.report .* are the same file' "$G" sweep "$tmp/mine.ini" $small --vary run.seed=1,2 \
	-o "$tmp/new.json" --report "$tmp/./new.json"
expect 2 'standard output .* and sweep.report .* are the same file' sh -c "exec '$G' sweep '$tmp/mine.ini' $small --vary \
	run.seed=1,2 --report '$tmp/new.json' >'$tmp/new.json'"
[ ! -s "$tmp/new.json" ] && [ ! -e "$tmp/new.svg" ] || fail 'an output of a command that was refused'
for file in "$tmp"/safe/*; do
	cmp -s "$file" "$tmp/$(basename "$file")" || fail "$(basename "$file") was overwritten"
done
# A file that is mounted over another one is written in place.
if unshare -m true 2>/dev/null; then
	echo old >"$tmp/under"
	echo old >"$tmp/over"
	expect 0 '' unshare -m sh -c "mount --bind '$tmp/over' '$tmp/under' && exec '$G' run conf/memset.ini $small --quiet \
		--json '$tmp/under'"
	[ "$(cat "$tmp/under")" = old ] && python3 -m json.tool "$tmp/over" >/dev/null || fail 'an output over a mount'
fi
# Pipes are inputs, also of commands that read a conf several times; devices are not.
for command in "run" "run --json -" "compare --vary run.seed=1,2 --blocks 1 --samples-per-block 2 --spread 0" \
	"sweep --vary run.seed=1,2" "config show"; do
	expect 0 '' sh -c "sed 's/tasks *=.*/tasks = 1000/; s/samples *=.*/samples = 2/' conf/memset.ini | '$G' $command -"
done
expect 2 "stdin:2:1: .*did you mean 'workload'" sh -c "printf '[run]\nworklod = uts\n' | '$G' run -"
gzip -k "$tmp/one.json"
for command in 'report -' 'report /dev/stdin' 'rerun -' "compare - $tmp/two.json"; do
	for reader in cat zcat; do
		expect 0 '' sh -c "$reader <'$tmp/one.json.gz' | '$G' $command"
	done
done
if command -v bash >/dev/null; then
	expect 0 'two|[0-9]+ +[0-9]' bash -c "exec '$G' compare <(cat '$tmp/one.json') <(cat '$tmp/two.json')"
	! grep -q 'same file' "$tmp/err" || fail 'two pipes that are one file'
	expect 0 'count once' bash -c "exec '$G' report <(cat '$tmp/samples.jsonl') <(cat '$tmp/samples.jsonl')"
fi
for input in - /dev/zero; do
	expect 2 'is not a regular file' sh -c "exec '$G' run $input </dev/zero"
	expect 2 'is not a regular file' sh -c "exec '$G' report $input </dev/zero"
done
expect 2 'larger than the limit of 1048576' sh -c "head -c 1100000 /dev/zero | '$G' run -"
mkfifo "$tmp/fifo"
expect 2 'is a pipe: write its content to a file' "$G" run "$tmp/fifo"
# A compressed result is one for each command, and so is one without a suffix.
cp "$tmp/one.json.gz" "$tmp/renamed"
for file in one.json.gz renamed; do
	expect 0 '' "$G" compare "$tmp/$file" "$tmp/two.json"
	for command in rerun report 'config show'; do
		expect 0 '' "$G" $command "$tmp/$file"
	done
done
expect 2 'unexpected argument' "$G" list sched term
expect 2 'no conf given' "$G" config check
expect 2 'check, show or schema' "$G" config
# Values are completed from the tables of options.
[ "$("$G" complete --s run | tr '\n' ' ')" = '--set --samples ' ] || fail 'completion of run --s'
[ "$("$G" complete --lo compare)" = --log ] || fail 'completion of compare --lo'
completes() { # arguments: ANSWERS WORD BEFORE...
	want=$1
	shift
	[ "$("$G" complete "$@" | tr '\n' ' ')" = "$want " ] || fail "completion of: $*: $("$G" complete "$@" | tr '\n' ' ')"
}
completes mgws mg describe
completes 'sched_mgws' sched_m describe
completes 'pareto' par report x.json --plot
completes 'forest,lines' forest,li report x.json --plot
completes 'column' c report x.json --width
completes 'median' m compare x.ini --per-block
completes 'scheduler.use=mgws,static' scheduler.use=mgws,st compare x.ini --vary
completes 'cpu_seconds' cpu compare x.ini --metric
completes 'seconds' sec report tests/data/result.json --metric
completes '12a 12b' 12 papers wic
completes 'table-1 table-3' tab papers gputn
completes '--quiet' --q run x.ini --no-sweep
expect 2 'devices' "$G" run conf/memset.ini --set run.devices=
# The fixtures have the name term_NAME in their descriptors, and the name of a plug-in must match its file's name.
for bad in abort major; do
	cp "$B/tests/plugins/bad_$bad.so" "$tmp/term_$bad.so" || fail "no fixture bad_$bad.so"
done
expect 2 'term_abort.so: .*SIGABRT' "$G" run conf/memset.ini --set "termination.use=$tmp/term_abort.so"
expect 2 'term_major.so: .*ABI' "$G" run conf/memset.ini --set "termination.use=$tmp/term_major.so"
mkdir "$tmp/p" && ln -s "$tmp/none" "$tmp/p/sched_gone.so"
expect 2 "no scheduler plug-in 'gone' in [^;]*; there is: counter, host, mgws, plan, static" "$G" run conf/memset.ini \
	--set scheduler.use=gone --set "gpuloom.plugin_path=$tmp/p"
expect 2 'no such plug-in file' "$G" run conf/memset.ini --set "scheduler.use=./no_such.so"
# If a workload needs a kind that the conf does not select, the error comes before anything starts.
expect 2 "meets needs a barrier, and no barrier is selected: add 'use = NAME' to .barrier." "$G" run conf/memset.ini \
	--set "run.workload=$B/tests/plugins/workload_meets.so"
# A workload that calls a kind without declaring it also ends with a message.
printf '[run]\nworkload = %s\ndevices = cpu:0\n[transport]\nuse = host\n' \
	"$(realpath "$B")/tests/plugins/workload_undeclared.so" >"$tmp/undeclared.ini"
for kind in scheduler termination sync barrier trigger qos; do
	case $kind in scheduler) short=sched ;; termination) short=term ;; *) short=$kind ;; esac
	expect 2 "the workload calls a $kind, and the conf selects none" "$G" run "$tmp/undeclared.ini" --quiet \
		--set workload.undeclared.calls=$short --set device.cpu.isolation=process
done
expect 2 'memset needs a termination, and no termination is selected' "$G" config check conf/memset.ini \
	--set termination.use=
# Paths of plug-ins and their folders in a conf are relative to the conf. Paths on the command line are relative to the
# current folder.
mkdir -p "$tmp/away/here" && cp "$B/plugins/sched_static.so" "$B/plugins/device_cpu.so" "$tmp/away/here/"
printf '[run]\nworkload = fib\ndevices = here/device_cpu.so:0\n[transport]\nuse = host\n[scheduler]\nuse = ./here/sched_static.so\n[termination]\nuse = counter\n' \
	>"$tmp/away/own.ini"
expect 0 verified "$G" run "$tmp/away/own.ini" --samples 1 --set workload.fib.n=10
expect 2 "here/sched_static.so: no such plug-in file" "$G" run "$tmp/away/own.ini" \
	--set scheduler.use=here/sched_static.so
printf '[gpuloom]\nplugin_path = here:.\n[scheduler]\nuse = static\n' >"$tmp/away/path.ini"
expect 0 "plugin_path=here:\\." "$G" config show conf/memset.ini "$tmp/away/path.ini"
expect 0 "\"path\":.*$tmp/away/here/sched_static.so" "$G" run conf/fib.ini "$tmp/away/path.ini" --samples 1 --json - \
	--set workload.fib.n=10
expect 0 "use = $tmp/away/here/sched_static.so" "$G" describe "$tmp/away/here/sched_static.so"

# The error of a sample that does not end lists the state of each worker.
expect 124 'no end after [0-9.]* s .*: cpu:0: 1 at work \(0\); cpu:1: 1 at work \(1\); workers left' "$G" run \
	conf/uts.ini \
	--set workload.uts.tree=T1XXL --set run.timeout=$(slack)s
for sync in poll futex wic backoff; do
	expect 124 'cpu:0: 2 at work \(0-1\); cpu:1: 2 waiting for data of others \(2-3\); workers' "$G" run \
		conf/wic.ini --set run.workload=pattern \
		--set sync.use=$sync --set device.cpu.workers=2 --set run.timeout=$(slack)s \
		--set workload.exchange.tp=1000000 --set workload.pattern.iterations=100000
done

# The output of `config show --as-ini` is a conf with the same values.
"$G" config show conf/memset.ini --as-ini >"$tmp/full.ini" 2>/dev/null || fail 'config show --as-ini'
"$G" config show conf/memset.ini >"$tmp/a" && "$G" config show "$tmp/full.ini" >"$tmp/b"
cmp -s "$tmp/a" "$tmp/b" || { fail 'as-ini differs'; diff "$tmp/a" "$tmp/b"; }
long=$(printf '%01200d' 0)
expect 2 'no conf can hold .title = 000.*the most is 1000' "$G" config show conf/memset.ini --set run.title="$long" \
	--as-ini
expect 2 'no conf can hold .title = ' "$G" config show conf/memset.ini --set "run.title=;'\"" --as-ini
# The same holds in any folder: `show` prints paths that do not depend on the conf's folder.
(cd conf && "$G" config show contains.ini --set workload.contains.path=../docs --as-ini) >"$tmp/full.ini" 2>/dev/null
expect 0 "^workload.contains.path=$PWD/(conf/../)?docs" "$G" config show "$tmp/full.ini"
expect 0 'conf/memset.ini:[0-9]' "$G" config show conf/memset.ini --origin
for conf in conf/*.ini conf/*/*.ini; do
	absent=
	for name in device_cuda device_hip trigger_gputn; do
		[ -e "$B/plugins/$name.so" ] || ! grep -qE "^(devices|use) *=.*${name#*_}" "$conf" || absent=${name#*_}
	done
	if [ -n "$absent" ]; then
		expect 4 "'$absent' was left out" "$G" config check "$conf"
	else
		expect 0 '' "$G" config check "$conf"
	fi
done
expect 0 '^scheduler +mgws +[0-9.]+ +.*sched_mgws[.]so +Work stealing' "$G" list --verbose
expect 0 'public_queue' "$G" describe mgws
# What describe prints can be pasted: of a workload a whole conf, of another plug-in lines behind a conf of its kind.
for name in $("$G" list | awk 'NR > 1 { print $1 "." $2 }'); do
	case $name in
	workload.contains) set -- --set workload.contains.documents=9 ;; # it needs documents, or a path
	workload.*) set -- ;;
	sync.*) set -- conf/wic.ini ;;
	barrier.*) set -- conf/barrier.ini ;;
	trigger.*) set -- conf/pingpong.ini ;;
	qos.*) set -- conf/qos/storm.ini ;;
	*) set -- conf/uts.ini ;;
	esac
	"$G" describe "$name" | sed '1,/^\(To use it\|A conf that runs it\):$/d; /^A ready conf/d; s/= [.][.][.].*/= true/' >"$tmp/paste.ini"
	expect 0 '' "$G" config check "$@" "$tmp/paste.ini"
done
set --
"$G" describe stn | sed '1,/^A conf that runs it:$/d' >"$tmp/paste.ini"
expect 0 '1 sample, verified' "$G" run "$tmp/paste.ini" --samples 1
# The next command is of the same job.
expect 0 'next: .* compare fib --vary scheduler.use=static,mgws' "$G" run fib
expect 0 verified "$G" run fib --samples 1 --set workload.fib.n=9
! grep -q next: "$tmp/out" || fail 'the next command would have another fib.n'
expect 0 'A ready conf of it: gpuloom run exec' "$G" describe exec
sed '1,/^A conf that runs it:$/d; /^A ready conf/d; s/= [.][.][.].*/= true/' "$tmp/out" >"$tmp/paste.ini"
expect 0 '3 samples, each verified' "$G" run "$tmp/paste.ini" --samples 3
for name in mgws sched_mgws scheduler.mgws; do
	expect 0 'sched.each_task_once' "$G" validate --list $name
done
expect 2 "'counter' is the name of 2 plug-ins: choose from scheduler.counter, termination.counter" "$G" validate counter
expect 2 "no plug-in 'mgs'; did you mean 'mgws'\\?" "$G" validate mgs
expect 0 'userfaultfd' "$G" doctor
expect 0 'Ctrl-C' "$G" run --help

# For plug-ins with faults, list and doctor report the fault and continue. The output of a plug-in is never in the data.
odd() { cp "$B/tests/plugins/$1.so" "$tmp/odd/$2.so"; }
mkdir "$tmp/odd" && odd bad_abort term_abort && odd bad_print term_print && odd bad_unmarked term_unmarked &&
	odd bad_none term_none && odd bad_doctor device_ill
export GPULOOM_PLUGIN_PATH="$tmp/odd"
expect 0 'term_none.so: it exports no' "$G" list termination
for name in abort print unmarked; do
	grep -qE "^termination +$name " "$tmp/out" || fail "no $name in the list"
done
expect 0 'term_abort.so: .*crashed .SIGABRT' "$G" list --probe
grep -q 'term_print.so: .*hello from' "$tmp/err" || fail 'list --probe hides what a plug-in prints'
expect 0 '^ill engine  ' "$G" doctor
grep -q 'to fix: take a rest' "$tmp/out" && grep -q 'device_ill.so: .*crashed (SIGABRT)' "$tmp/out" || fail "doctor: a plug-in's rows"
awk '/^ +to fix: ./ { needs = 0 } !/^ / { if (needs) print row; row = $0; needs = substr($0, 26, 3) != "ok " } END { if (needs) print row }
	!/^ / && substr($0, 26, 8) !~ /^(ok|limited|no) /' "$tmp/out" | grep . && fail 'doctor: a row without a state, or without a remedy'
for name in print term_print termination.print unmarked; do
	expect 0 'broken on purpose' "$G" describe $name
	grep -q 'use = ' "$tmp/out" && grep -q 'no options' "$tmp/out" || fail "describe $name"
done
expect 0 "use = $tmp/odd/term_print.so" "$G" describe "$tmp/odd/term_print.so"
expect 0 '"name":[[:space:]]*"term_print"' "$G" describe "$tmp/odd/term_print.so" --json
odd bad_unmarked sched_print
expect 2 "'print' is the name of 2 plug-ins.*scheduler.print, termination.print" "$G" describe print
for wrong in 'describe abort' 'describe nothing' 'list nonsense' 'list --nonsense' 'doctor now'; do
	expect 2 '' "$G" $wrong
done
unset GPULOOM_PLUGIN_PATH

# A time limit and Ctrl-C end a run in time and keep what was measured.
expect 124 'no end' "$G" run conf/uts.ini --set workload.uts.tree=T1L --set run.timeout=50ms
expect 124 'of 1 initial tasks unclaimed, .* tasks public' "$G" run conf/uts.ini --set workload.uts.tree=T1L \
	--set run.timeout=50ms
for signal in INT HUP; do # Ctrl-C, and a closed terminal; `env`, because nohup makes commands ignore SIGHUP
	rm -f "$tmp/part.json"
	env --default-signal=HUP "$G" run conf/fib.ini --samples 100000 --json "$tmp/part.json" --quiet 2>/dev/null &
	pid=$!
	soon 'has_used $pid 50' # more than the start of a run takes, so samples are running
	kill -$signal $pid
	wait $pid
	[ $? -eq 130 ] || fail "SIG$signal does not exit with 130"
	python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); assert d["status"]=="interrupted" and d["samples"]' \
		"$tmp/part.json" || fail "no partial result after SIG$signal"
done

# `rerun` runs a result again with its options, and reports each difference in a sentence.
set='--set workload.memset.tasks=1000 --set scheduler.mgws.public_queue=128 --set run.timeout=50s'
expect 0 '' "$G" run conf/memset.ini $set --samples 12 --quiet --json "$tmp/was.json"
expect 0 'the same versions, options and machine' "$G" rerun "$tmp/was.json" --json "$tmp/is.json"
python3 - "$tmp/was.json" "$tmp/is.json" <<'PY' || fail 'a result that is run again has other options'
import json, sys
a, b = ({k: v['value'] for k, v in json.load(open(f))['config'].items()} for f in sys.argv[1:])
assert a == b and a['scheduler.mgws.public_queue'] == '128'
PY
expect 0 'public_queue was 128, is 64' "$G" rerun "$tmp/was.json" --set scheduler.mgws.public_queue=64
sed 's/"build_id":.*/"build_id": "0"/; s/"kernel":.*/"kernel": "5.0",/' "$tmp/was.json" >"$tmp/other.json"
expect 0 'since .*other.json: the build_id of sched_mgws was 0, is ' "$G" rerun "$tmp/other.json"
grep -q 'kernel was 5.0, is' "$tmp/err" || fail 'another kernel'
# What the file does not tell is not claimed to be the same.
python3 - "$tmp/was.json" "$tmp" <<'PY'
import copy, json, sys
was = json.load(open(sys.argv[1]))
def write(name, change):
    d = copy.deepcopy(was)
    change(d)
    json.dump(d, open(f'{sys.argv[2]}/{name}.json', 'w'))
write('bare', lambda d: [d.pop(k) for k in ('gpuloom', 'plugins', 'environment')])
write('partly', lambda d: d['environment']['before'].pop('kernel'))
def others(d):
    d['plugins'][0]['name'] = 'sched_gone'
    d['config']['scheduler.mgws.gone'] = {'value': '1', 'written': '1', 'source': 'default'}
    del d['config']['scheduler.mgws.public_queue']
write('others', others)
PY
for file in bare partly others; do
	expect 0 '' "$G" rerun "$tmp/$file.json" --quiet --json "$tmp/again.json"
	expect 0 '' "$G" rerun "$tmp/$file.json"
	! grep 'the same versions' "$tmp/err" || fail "rerun of $file claims what it does not know"
	cat "$tmp/err" >"$tmp/said-$file"
done
grep -q "does not tell gpuloom's version, gpuloom's revision, the plug-ins, the machine" "$tmp/said-bare" || fail 'a bare result'
grep -q 'no difference .*does not tell kernel' "$tmp/said-partly" || fail 'a result without its kernel'
for what in 'plug-in sched_gone is not used any more' 'plug-in [a-z_]* was not used' 'scheduler.mgws.gone does not exist' \
	'scheduler.mgws.public_queue is new'; do
	grep -q "$what" "$tmp/said-others" || fail "rerun does not say: $what"
done
expect 0 'scheduler.mgws.public_queue=128' "$G" config show "$tmp/was.json"
expect 2 'no result given' "$G" rerun conf/memset.ini
expect 2 'is a sweep' "$G" run tests/data/sweep.jsonl
expect 2 'is a comparison' "$G" config check tests/data/compare.json
# A file that a plug-in reads must be a regular file. Opening a FIFO would wait for a writer.
for set in "1 ragged workload.ragged.law=trace workload.ragged.trace" \
	"1 contains workload.contains.path=$PWD/README.md workload.contains.index" \
	"1 experts workload.experts.skew=trace workload.experts.trace"; do
	set -- $set
	code=$1 conf=$2
	shift 2
	for option; do shift; set -- "$@" --set "$option"; done
	expect "$code" "$tmp/fifo: is a pipe: write its content to a file first" "$G" run "$conf" "$@=$tmp/fifo"
done

# The check of `contains` reads documents in pieces, whose ends may split a word. It must not hold the whole text of a compressed
# file in memory.
python3 - "$G" "$tmp" <<'PY' || fail 'contains reads documents in pieces'
import gzip, json, os, resource, subprocess, sys, zlib
gpuloom, tmp = sys.argv[1:]
def run(files):
    folder = os.path.join(tmp, "pieces")
    os.makedirs(folder, exist_ok=True)
    for old in os.listdir(folder):
        os.unlink(os.path.join(folder, old))
    for name, text in files.items():
        open(os.path.join(folder, name), "wb").write(text)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    subprocess.run([gpuloom, "run", "conf/contains.ini", "--set", f"workload.contains.path={folder}", "--set", "workload.contains.glob=*", "--set", "workload.contains.match=word",
                    "--samples", "1", "--set", "run.warmup=0", "--quiet", "--json", f"{tmp}/pieces.json"], check=True)
    return {k: m["median"] for k, m in json.load(open(f"{tmp}/pieces.json"))["metrics"].items()}
edge = 1 << 20
files = {}
for k in range(-10, 3):
    text = b"." * (edge + k) + b"zwischen" + b"." * 70000
    files[f"yes{k}"], files[f"yes{k}.gz"] = text, gzip.compress(text, 1)
    files[f"no{k}"] = text.replace(b"zwischen", b"zwischenx")
    files[f"end{k}"] = text[:edge + k + 8]
m = run(files)
assert (m["documents"], m["matches"], m["unreadable"]) == (52, 39, 0), m
small = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
pack = zlib.compressobj(1, wbits=31) # in pieces, because the peak of this process counts as one of its child, by vfork()
run({"bomb.gz": b"".join(pack.compress(bytes(1 << 20)) for _ in range(150)) + pack.flush()})
assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < small + (100 << 10), (small, resource.getrusage(resource.RUSAGE_CHILDREN))
PY

# Nothing in a result is trusted. Without --trust, programs, plug-ins and output files in a result are reported and not used.
exec_conf "$tmp/mark.ini" "touch $tmp/MARK"
expect 0 '' "$G" run "$tmp/mark.ini" --samples 1 --quiet --json "$tmp/mark.json"
rm -f "$tmp/MARK"
cp "$B/plugins/workload_memset.so" "$tmp/workload_memset.so"
cat >"$tmp/hostile.py" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
for setting in sys.argv[3:]:
    key, value = setting.split("=", 1)
    d["config"][key] = {"value": value, "written": value, "source": "file", "default": ""}
json.dump(d, open(sys.argv[2], "w"))
PY
hostile() { # SETTING...: makes a result of memset with these settings
	python3 "$tmp/hostile.py" "$tmp/was.json" "$tmp/hostile.json" "$@"
}
for command in rerun run 'sweep --vary run.seed=1,2' 'config show' 'config check'; do
	set -- $command
	expect 2 "mark.json: error: .workload.exec. command = touch $tmp/MARK: .*would be run, .*a result is not trusted; .*--trust" \
		"$G" "$@" "$tmp/mark.json"
	hostile gpuloom.plugin_path="$tmp"
	expect 2 "hostile.json: error: .gpuloom. plugin_path = $tmp: .*would be loaded" "$G" "$@" "$tmp/hostile.json"
	hostile run.workload="$tmp/workload_memset.so"
	expect 2 "run. workload = $tmp/workload_memset.so: .*would be loaded" "$G" "$@" "$tmp/hostile.json"
	hostile scheduler.use=./x.so
	expect 2 'scheduler. use = ./x.so: .*would be loaded' "$G" "$@" "$tmp/hostile.json"
	hostile 'run.devices=cpu:0 ./x.so:1'
	expect 2 'run. devices = cpu:0 ./x.so:1: .*would be loaded' "$G" "$@" "$tmp/hostile.json"
done
expect 2 'would be run' "$G" rerun "$tmp/mark.json" --set workload.exec.shell=no
[ ! -e "$tmp/MARK" ] || fail 'a result ran its command'
expect 0 '' "$G" rerun "$tmp/mark.json" --set workload.exec.command=true --quiet
[ ! -e "$tmp/MARK" ] || fail 'a result ran its command in place of that of --set'
expect 0 '' "$G" rerun "$tmp/mark.json" --trust --quiet
[ -e "$tmp/MARK" ] || fail 'a result of trust did not run its command'
hostile run.workload="$tmp/workload_memset.so"
expect 0 '' "$G" rerun "$tmp/hostile.json" --trust --quiet
hostile run.workload=requests_storm "workload.requests.victim=touch $tmp/MARK2" qos.use=monolithic
expect 2 'victim = touch .*would be run' "$G" rerun "$tmp/hostile.json"
# `rerun` ignores a sweep in a result, and the files that a sweep writes.
hostile sweep.scheduler.use=mgws,static sweep.report="$tmp/MARK3.html" sweep.output="$tmp/MARK3.jsonl"
expect 0 'sample' "$G" rerun "$tmp/hostile.json"
expect 0 '' "$G" sweep "$tmp/hostile.json" --vary run.seed=1,2 --samples 1
ls "$tmp" | grep -q MARK[23] && fail 'a result wrote a file or ran a victim'
# Conditions that distort a run are reported as warnings.
python3 - "$tmp/was.json" <<'PY' || fail 'a result without warnings'
import json, sys
d = json.load(open(sys.argv[1]))
assert isinstance(d['warnings'], list) and all(set(w) == {'id', 'text'} for w in d['warnings']), d.get('warnings')
PY

# Paths may contain blanks: unquoted in a single name, with a backslash in lists. The conf itself may be in such a folder.
mkdir -p "$tmp/my own/plug ins"
cp "$B/plugins/sched_static.so" "$B/plugins/device_cpu.so" "$B/plugins/workload_fib.so" "$tmp/my own/plug ins/"
cat >"$tmp/my own/x.ini" <<INI
[gpuloom]
plugin_path = plug ins:$B/plugins
[run]
workload = ./plug ins/workload_fib.so
devices = ./plug\\ ins/device_cpu.so:0
samples = 1
[device.cpu]
workers = 1
[transport]
use = host
[scheduler]
use = $tmp/my own/plug ins/sched_static.so
[termination]
use = counter
[workload.fib]
n = 18
INI
expect 0 'verified' "$G" run "$tmp/my own/x.ini" --json "$tmp/blank.json" --set scheduler.use=mgws
expect 0 "use *= *$tmp/my own/plug ins/sched_static.so" "$G" config show "$tmp/my own/x.ini" --as-ini
"$G" config show "$tmp/my own/x.ini" --as-ini >"$tmp/my own/as.ini" && expect 0 verified "$G" run "$tmp/my own/as.ini"
expect 0 'verified' "$G" rerun "$tmp/blank.json" --trust # it names plug-ins
# Variables of other programs are ignored. A warning names an empty variable.
expect 0 '' env GPULOOM_HOME=/sw GPULOOM_SERVICE_HOST=10.0.0.1 GPULOOM_LIBRARY=/x "$G" run conf/memset.ini $small
! grep -q GPULOOM "$tmp/err" || { fail 'T4b, F25: a warning of a variable that means something else'; cat "$tmp/err"; }
expect 2 'GPULOOM_SCHEDULER__USE: error: the value is empty: .*no scheduler is selected' env GPULOOM_SCHEDULER__USE= \
	"$G" run conf/memset.ini

# A long check ends after the time-out.
checks="$B/tests/plugins/workload_checks.so"
cat >"$tmp/checks.ini" <<END
[run]
workload = $checks
devices  = cpu:0
samples  = 1
warmup   = 0
[device.cpu]
workers = 1
[transport]
use = host
END
expect 0 'verified' "$G" run "$tmp/checks.ini" --set workload.checks.seconds=0
expect 124 'time_limit reached while a sample was verified' "$G" run "$tmp/checks.ini" --set run.time_limit=300ms
# Both ways to ask for a command's help print the same text.
"$G" run --help >"$tmp/help"
expect 0 '^usage: gpuloom run ' "$G" help run
cmp -s "$tmp/help" "$tmp/out" || fail 'docs_10: help run is not run --help'
expect 2 "no command 'rum'; did you mean 'run'" "$G" help rum

# The reason of a failure is printed once, on stderr. The library's messages about a conf end without a newline (test_config).
exec_conf "$tmp/sleep.ini" 'sleep 60'
expect 124 'no end after' "$G" run "$tmp/sleep.ini" --set run.timeout=2s --samples 1
[ "$(cat "$tmp/out" "$tmp/err" | grep -c 'no end after')" = 1 ] || fail 'docs_13: a cause that is not said once'
grep -q '^  status: timeout$' "$tmp/out" || fail 'docs_13: the status in the table'

# The message for a language whose manual pages are missing names the packages.
expect 2 'man/xx: No such.*manpages-xx .*man-pages-xx .*generated' "$G" run contains \
	--set workload.contains.path=/usr/share/man/xx
expect 2 'path = /nowhere/man: No such file or directory$' "$G" run contains --set workload.contains.path=/nowhere/man

# A shipped conf is found by its name in any folder. A file of that name has priority; a folder of that name is ignored.
mkdir "$tmp/elsewhere" "$tmp/elsewhere/uts"
for name in uts uts.ini conf/uts.ini; do
	(failures=0; cd "$tmp/elsewhere" && expect 0 'verified' "$G" run $name --samples 1 \
		--set workload.uts.tree=custom --set workload.uts.depth=4
		exit $failures) || fail "docs_F12: run $name from elsewhere"
done
(failures=0; cd "$tmp/elsewhere" && expect 0 'trigger.use=gputn' "$G" sweep sim/figure-08 \
	--dry-run; expect 0 'mgws' "$G" config show conf/memset.ini
	expect 2 "no file or shipped conf 'utts'.*did you mean 'uts'.*list confs" "$G" run utts
	mkdir both && expect 2 "'both' is a folder" "$G" run both
	printf '[run]\nworkload = none_such\n' >fib && expect 2 'fib:2' "$G" run fib
	exit $failures) || fail 'docs_F12: names of confs'
expect 0 '^sim/allreduce-1024 +[0-9]+ (s|min) +A ring allreduce over 1,024 ranks' "$G" list confs
[ "$(grep -c . "$tmp/out")" -eq $(($(find conf -name '*.ini' | wc -l) + 1)) ] || fail 'docs_F12: list confs lacks some'
awk 'NF < 3 { bad = 1 } END { exit bad }' "$tmp/out" || fail 'docs_F12: a conf whose first comment says nothing'
# Confs say how long they take, but those that need two GPUs, an AMD GPU, CUDA's compiler or hardware counters.
awk 'NR > 1 && !/^(hip|sim.figure-01|hiss.figure-05|sync.table-09|(sync|thesis).figure-..) / && $2 !~ /^[0-9]+$/ { print; bad = 1 } END { exit bad }' "$tmp/out" ||
	fail 'list confs: confs that do not say how long they take'
# Each command has a page, which exists, and its help keeps to 80 columns. The first word of an example is a command.
"$G" --help | tee "$tmp/help" | sed -n '/^commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p' >"$tmp/commands"
awk 'length > 80 { bad = 1 } END { exit bad }' "$tmp/help" || fail 'gpuloom --help is wider than 80 columns'
[ "$(grep -c . "$tmp/commands")" -gt 10 ] || fail 'commands of --help'
while read -r command; do
	"$G" help "$command" >"$tmp/help" && "$G" "$command" --help | cmp -s - "$tmp/help" || fail "help $command"
	awk 'length > 80 { print; bad = 1 } END { exit bad }' "$tmp/help" || fail "$command --help is wider than 80 columns"
	page=$(sed -n 's/^page: \([^ ]*\) .*/\1/p' "$tmp/help")
	[ -n "$page" ] && [ -f "$page" ] || fail "$command --help names the page '$page'"
	grep -q '^  gpuloom ' "$tmp/help" || fail "$command --help has no example"
	sed -n '/^examples:/,/^$/s/^  gpuloom \([a-z-]*\).*/\1/p' "$tmp/help" | grep -qvx "$command" &&
		fail "$command --help: an example of another command"
done <"$tmp/commands"
[ "$("$G" complete sim/fig run | wc -l)" = "$(ls conf/sim/figure-*.ini | wc -l)" ] || fail 'docs_F12: completion of run sim/fig'
# One signal, or time_limit, ends the set-up between its steps. A step that does not poll for the signal is ended by force.
planted_conf "$tmp/planted.ini"
for step in create need; do
	interrupted 'grep -q "takes its time" "$tmp/err"' "$G" run "$tmp/planted.ini" \
		--set workload.planted.${step}_time=30s
	grep -q 'interrupted while the run was set up' "$tmp/err" ||
		{ fail "S14: set-up in $step() went on"; cat "$tmp/err"; }
done
expect 124 'time_limit reached while the run was set up' "$G" run "$tmp/planted.ini" \
	--set workload.planted.need_time=300ms \
	--set run.time_limit=100ms
# A step that calls progress() ends by its result: here it would not end otherwise.
expect 124 'time_limit reached while the run was set up' "$G" run "$tmp/planted.ini" --set workload.planted.asks=yes \
	--set run.time_limit=100ms
interrupted 'grep -q "takes its time" "$tmp/err"' "$G" run "$tmp/planted.ini" --set workload.planted.asks=yes
# contains calls it in create(), which would take minutes.
expect 124 'time_limit reached while the run was set up' "$G" run contains --set workload.contains.documents=32000000 \
	--set run.time_limit=100ms
# Without /proc or /sys, messages and doctor name the missing mount.
cat >"$tmp/hide" <<'SH'
folder=$1
shift
mount -t tmpfs none "$folder" && exec "$@"
SH
hide="unshare -rm sh $tmp/hide"
if $hide /proc true 2>/dev/null; then
	expect 2 'cannot pass the text to iniparser: /proc/self/fd/[0-9]*: No such file.*; mount /proc' $hide /proc "$G" run conf/fib.ini
	expect 0 '^scheduler *mgws' $hide /proc "$G" list
	expect 0 'PSI. *no *not known: /proc is not mounted' $hide /proc "$G" doctor
	expect 0 'huge pages *no *not known: /sys is not mounted' $hide /sys "$G" doctor
else
	echo 'without mount namespaces: no test of a machine without /proc'
fi
# A long check reports its progress, without a terminal after ten seconds, and ends at an interrupt.
"$G" run "$tmp/checks.ini" >"$tmp/checks.out" 2>"$tmp/checks.err" </dev/null &
run=$!
# A script without its first line, and limits of the shell, are reported with a remedy.
printf 'echo 1\n' >"$tmp/script" && chmod +x "$tmp/script"
exec_conf "$tmp/script.ini" "$tmp/script"
expect 4 'Exec format error; a script needs a first line such as #!/bin/sh' "$G" run "$tmp/script.ini" --samples 1
expect 2 'raise that limit' sh -c "ulimit -n 8; exec '$G' run conf/fib.ini --samples 1"
expect 0 'File too large' sh -c "(ulimit -f 0; exec '$G' run conf/fib.ini --samples 1) 2>&1 | cat" # through cat, because no file can take the message
soon 'grep -q "verifying for [0-9]* s, .* about .* left" "$tmp/checks.err"' || fail 'a long check without a terminal is silent'
kill -INT $run
soon 'grep -q "again" "$tmp/checks.err"' || fail 'no word about the first interrupt'
ended_by INT $run $run
[ $status -eq 130 ] && grep -q 'interrupted while a sample was verified' "$tmp/checks.err" ||
	{ fail "exit $status of a check that was interrupted"; cat "$tmp/checks.err"; }
finish
