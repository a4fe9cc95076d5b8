# SPDX-License-Identifier: Apache-2.0
# bench/rivals: the jobs of rivals are those of gpuloom, and the server gives samples to gpuloom. No GPU and no PyTorch are needed.
. tests/lib.sh
need python3
export PYTHONDONTWRITEBYTECODE=1
rivals=$PWD/bench/rivals
for f in "$rivals"/*.py; do
	python3 -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' "$f" || fail "$f is no Python"
done

# metric NAME: prints the median of a metric of the last run.
metric() {
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["metrics"][sys.argv[2]]["median"])' "$tmp/run.json" "$1"
}
same() { # WHAT OURS THEIRS
	awk -v a="$2" -v b="$3" 'BEGIN { exit !(a != "" && (a - b) ^ 2 <= 1e-18 * b ^ 2) }' || fail "$1: $2 in gpuloom, $3 in laws.py"
}
for seed in 7; do
	for law in equal uniform zipf two; do
		expect 0 '' "$G" run conf/ragged.ini --quiet --samples 1 --set run.seed=$seed --set workload.ragged.law=$law \
			--set workload.ragged.checked=1 --json "$tmp/run.json"
		set -- $(cd "$rivals" && python3 -c "import laws
n = laws.lengths('$law', 512, 16, $seed)
print(sum(n), (sum((x - sum(n) / 16)**2 for x in n) / 16)**0.5 / (sum(n) / 16))")
		same "tokens of $law" "$(metric tokens)" "$1"
		same "variation of $law" "$(metric variation)" "$2"
	done
	for skew in equal uniform sqrt zipf hot_eighth hot_one hot_top drift; do
		expect 0 '' "$G" run conf/experts.ini --quiet --samples 1 --set run.seed=$seed --set workload.experts.skew=$skew \
			--set workload.experts.checked=1 --json "$tmp/run.json"
		set -- $(cd "$rivals" && python3 -c "import laws
n = laws.counts('$skew', 16, 64, 2, $seed)
print(max(n), (sum((x - 8)**2 for x in n) / 16)**0.5 / 8)")
		same "most tokens of $skew" "$(metric most_tokens)" "$1"
		same "variation of $skew" "$(metric variation)" "$2"
	done
done

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
same 'seconds of a rival' "$(metric seconds)" 0.5
[ "$(metric turn)" -ge 2 ] || fail "the median of turns is $(metric turn)"
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
