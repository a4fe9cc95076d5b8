# SPDX-License-Identifier: Apache-2.0
# bench/rivals: the jobs of rivals are those of gpuloom, and the server gives samples to gpuloom. No GPU and no PyTorch are needed.
. tests/lib.sh
need python3
export PYTHONDONTWRITEBYTECODE=1
rivals=$PWD/bench/rivals
for f in "$rivals"/*.py; do
	python3 -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' "$f" || fail "$f is no Python"
done
# workload_exec refuses another direction, so a rival with one ends its comparison.
grep -n "'better': *'none'" "$rivals"/*.py && fail 'a metric without a direction has no "better"'

# draw KIND LAW CONF OPTION...: one sample by one worker, whose metrics go to $tmp/KIND-LAW.json.
draw() {
	to=$tmp/$1-$2.json
	shift 2
	expect 0 '' "$G" run "$@" --quiet --samples 1 --set run.warmup=0 --set run.seed=7 --set run.devices=cpu:0 \
		--set device.cpu.workers=1 --json "$to"
}
for law in equal uniform zipf two; do
	draw lengths $law conf/ragged.ini --set workload.ragged.law=$law --set workload.ragged.checked=1
done
for skew in equal uniform sqrt zipf hot_eighth hot_one hot_top; do
	draw counts $skew conf/experts.ini --set workload.experts.skew=$skew --set workload.experts.checked=1
done
(cd "$rivals" && python3 - "$tmp") <<'PY' || fail 'the laws of bench/rivals/laws.py are not those of gpuloom'
import glob, json, math, sys
import laws

files = glob.glob(sys.argv[1] + '/*-*.json')
assert len(files) == 11, files
for file in files:
    kind, law = file.split('/')[-1][:-5].split('-')
    metrics = {k: m['median'] for k, m in json.load(open(file))['metrics'].items()}
    n = laws.lengths(law, 512, 16, 7) if kind == 'lengths' else laws.counts(law, 16, 64, 2, 7)
    mean = sum(n) / 16
    own = {'variation': math.sqrt(sum((x - mean)**2 for x in n) / 16) / mean,
           **({'tokens': sum(n)} if kind == 'lengths' else {'most_tokens': max(n)})}
    for name, value in own.items():
        assert math.isclose(metrics[name], value, rel_tol=1e-9, abs_tol=1e-12), (file, name, metrics[name], value)
PY

# A family of the test takes the place of those that need a GPU.
cat >"$tmp/pretended.py" <<'PY'
class Rival:
    def __init__(self, how):
        self.how, self.samples = how, 0

    def sample(self):
        self.samples += 1
        if self.how == 'wrong':
            raise ArithmeticError('a result is off\nby 2')
        return {'seconds': 0.5, 'turn': {'value': self.samples, 'unit': 'turns', 'better': 'more'}}


def make(how, options):
    if how == 'none':
        raise ValueError(f'none: {options}')
    return Rival(how)
PY
cat >"$tmp/jobs" <<'END'
# NAME FAMILY.RIVAL [KEY=VALUE]
good pretended.good

bad pretended.wrong
unmade pretended.none key=1=2
END
PYTHONPATH=$tmp python3 "$rivals/serve.py" "$tmp/socket" "$tmp/jobs" >"$tmp/out" 2>"$tmp/err" &
server=$!
trap 'kill $server 2>/dev/null; rm -rf "$tmp"' EXIT
soon 'grep -q "^ready 2 of 3$" "$tmp/out"' || cat "$tmp/err"
grep -q "unmade: pretended.none cannot be made: ValueError: none: {'key': '1=2'}" "$tmp/err" || fail 'why a job cannot be made'
cat >"$tmp/exec.ini" <<END
[run]
workload = exec
devices = cpu:0
[device.cpu]
workers = 1
[transport]
use = host
[scheduler]
use = static
[termination]
use = counter
[workload.exec]
command = $rivals/ask.py $tmp/socket good
END
expect 0 '' "$G" run "$tmp/exec.ini" --quiet --samples 3 --set run.warmup=0 --json "$tmp/run.json"
python3 -c 'import json, sys
m = json.load(open(sys.argv[1]))["metrics"]
assert m["seconds"]["median"] == 0.5 and m["turn"]["samples"] == [1, 2, 3] and m["turn"]["better"] == "more", m' "$tmp/run.json" ||
	fail 'the metrics of a rival'
ask() { "$rivals/ask.py" "$tmp/socket" "$1" 2>&1; }
[ "$(ask bad)" = 'bad: ArithmeticError: a result is off by 2' ] || fail "a wrong result: $(ask bad)"
ask unmade | grep -q '^unmade: .*cannot be made: ValueError' || fail "a job that was not made: $(ask unmade)"
ask other | grep -q '^other: there is no such job, but good bad unmade' || fail "no such job: $(ask other)"
ask bad >/dev/null && fail 'the exit status of a wrong result is 0'
kill $server
wait $server || fail 'the server was ended and fails'
[ ! -e "$tmp/socket" ] || fail 'the server leaves its socket'
ask good | grep -q '^good: .*socket' || fail "no server: $(ask good)"
finish
