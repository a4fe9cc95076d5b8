# SPDX-License-Identifier: Apache-2.0
# Tests the figures that an external program prints (workload exec). An invalid figure is an error that names the line. The time
# of the program must never replace a figure silently.
. tests/lib.sh
exec_conf "$tmp/e.ini" "cat $tmp/output"
one="--set device.cpu.isolation=thread --samples 1 --set run.warmup=0 --json $tmp/r.json --quiet"

# figure NAME: prints the value in the last result, or nothing.
figure() {
	python3 -c 'import json,sys; m=json.load(open(sys.argv[1]))["metrics"]; print("%g" % m[sys.argv[2]]["median"] if sys.argv[2] in m else "none")' \
		"$tmp/r.json" "$1"
}
# right TEXT NAME FIGURE [OPTIONS...]: a program that prints TEXT (in printf's format) must give this figure.
right() {
	printf "$1" >"$tmp/output"
	name=$2 value=$3 text=$1
	shift 3
	expect 0 '' "$G" run "$tmp/e.ini" $one "$@"
	[ "$(figure $name)" = "$value" ] || fail "$name is $(figure $name) in place of $value: $text"
}
# wrong TEXT WORDS [OPTIONS...]: a program that prints TEXT must be rejected with these words.
wrong() {
	printf "$1" >"$tmp/output"
	words=$2
	shift 2
	expect 3 "$words" "$G" run "$tmp/e.ini" $one "$@"
}

right 'no figures\n' x none
# Names that tables of samples use themselves.
for name in variant configuration point sample order start_ns; do
	wrong "{\"$name\": 1}\n" "prints a metric '$name', which is the name of a column in tables"
done
wrong '{"workload.exec.command": 1}\n' "prints a metric 'workload.exec.command', which is the name of an option in tables"
right '{"wait.p50": 7}\n' wait.p50 7
right '{"seconds": 1.5, "label": "fio", "error": null, "jobs": [1, 2]}\n' seconds 1.5
right '{"seconds": 7}\n{"seconds": 1.5}\n' seconds 1.5
right 'text\n \t{"seconds": 1.5}\t\r\nmore text\n\n' seconds 1.5
right '{"x": 2}\n' x 2
right '{"x": {"value": 2, "unit": "MB/s", "better": "more"}}' x 2
right '{"x": 2, "x2": 3}' x2 3 --set 'workload.exec.metrics=x:more:MB/s x2, wall_seconds:less'
right '{"x": {"value": 2, "unit": "MB/s"}}' x 2 --set workload.exec.metrics=x:more:MB/s
right "$(yes | head -c 70000)"'\n{"seconds": 1.5}\n' seconds 1.5

wrong '{"seconds": 1.5, "x": NaN}\n' 'line 1 of its output is not one JSON object: .*NaN and Infinity are not numbers of JSON'
wrong 'text\n{"seconds": 7}\n{"seconds": 1.5, "x": -Infinity}\n' 'line 3 .*NaN and Infinity'
wrong '{"seconds": 7}\n{"seconds": 1.5, \n' "line 2 .*one line"
wrong '{"seconds": 7}\n{ok}\n' "line 2 of its output is not one JSON object: '\{ok\}'; .*let no other line start"
wrong '{"seconds": 7} and more\n' 'line 1 '
wrong '{\n  "seconds": 1.5\n}\n' 'line 1 .*the metrics must be in one line'
wrong '{\n "jobs": [\n  {"seconds": 1.5}\n ]\n}\n' 'line 3 of its output .*, but a part of one: .*the metrics must be in one line'
wrong '{"seconds": 1e999}\n' "'seconds' is no finite number in line 1"
wrong '{"seconds": 1.5, "x": 1e999}\n' "'x' is no finite number in line 1"
wrong '\n{"seconds": "1.5"}\n' "'seconds' is no number in line 2"
wrong '{"seconds": null}\n' "'seconds' is no number in line 1"
wrong '{"x": {"value": "1.5"}}\n' "'x' is no number"
wrong '{"x": {"unit": "s"}}\n' "'x' is no number"
wrong '{"x": {"value": 1, "unit": "a unit of over 15"}}\n' "'x' with a .unit. that is no text of at most 15"
wrong '{"x": {"value": 1, "better": "mroe"}}\n' "'x' with .better. that is neither"
wrong '{"x": 1}\n' "did not print 'y', which .workload.exec. metrics names, in line 1" \
	--set workload.exec.metrics=x:more,y:less
wrong 'x\n' "did not print 'y', which .workload.exec. metrics names: no line of its output begins" \
	--set workload.exec.metrics=y
wrong '{"x": "1"}\n' "'x', which .workload.exec. metrics names, is no number in line 1" \
	--set workload.exec.metrics=x:more
wrong '{"x": {"value": 1, "unit": "s"}}\n' 'another unit or direction' --set workload.exec.metrics=x:less:ms
wrong '{"x": {"value": 1, "better": "more"}}\n' 'another unit or direction' --set workload.exec.metrics=x:less
{
	printf '{"seconds": 1.5, "text": "'
	yes | tr -d '\n' | head -c 70000
	printf '"}\n'
} >"$tmp/output"
expect 3 'last line of its output is longer than 65536 bytes' "$G" run "$tmp/e.ini" $one
for metrics in x:mroe x:more:a-unit-of-over-15 :more; do
	expect 2 "metrics: '$metrics' is not of the form" "$G" config check "$tmp/e.ini" \
		--set workload.exec.metrics=$metrics
done

# The output of a program is not trusted: a result is UTF-8 without control characters for terminals.
cat >"$tmp/rude" <<'SH'
#!/bin/sh
printf 'x\303\n\033[2Jn\366\302\233\n' >&2
exit 3
SH
chmod +x "$tmp/rude"
exec_conf "$tmp/r.ini" "$tmp/rude"
expect 3 'status 3.*n\?' "$G" run "$tmp/r.ini" --samples 1 --json "$tmp/u.json"
bad=$(printf '%s/n\366\302\233n.ini' "$tmp")
cp "$tmp/e.ini" "$bad"
printf '{"x\\u001b\\u009b\302\233\377": {"value": 1, "unit": "\303"}}\n' >"$tmp/output"
expect 0 'x\?\?\?\?' "$G" run -v "$bad" --samples 1 --json "$tmp/v.json"
expect 0 '' "$G" report "$tmp/v.json" -o "$tmp/v.html"
expect 0 '' "$G" report "$tmp/v.json" -o "$tmp/v.report.json"
python3 - "$tmp/u.json" "$tmp/v.json" "$tmp/v.html" "$tmp/v.report.json" "$tmp/out" <<'PY' || fail \
	'the output has control characters'
import json, sys
def walk(item):
    if isinstance(item, dict):
        for key, value in item.items():
            walk(key), walk(value)
    elif isinstance(item, list):
        for value in item:
            walk(value)
    elif isinstance(item, str):
        assert not any(ord(c) < 32 and c not in "\n\t" or 127 <= ord(c) < 160 for c in item), repr(item)
for path in sys.argv[1:]:
    text = open(path, encoding="utf-8").read()
    walk(text)
    if path.endswith(".json"):
        walk(json.loads(text))
PY
"$G" run "$tmp/r.ini" --samples 1 2>&1 | LC_ALL=C grep -q "$(printf '[\033\233\366]')" &&
	fail 'bytes of a program reach the terminal'
# The axes of a Pareto front are logarithmic if points are far from each other: `a` has ticks at 5, 50 and so on, `b` at equal steps.
for of in '1 2' '2000 3'; do
	set -- $of
	echo "{\"a\": {\"value\": $1, \"better\": \"less\"}, \"b\": {\"value\": $2, \"better\": \"less\"}}" >"$tmp/point-$1"
done
expect 0 '' "$G" sweep "$tmp/e.ini" --vary "workload.exec.command=cat $tmp/point-1,cat $tmp/point-2000" --samples 2 --quiet -o "$tmp/far.jsonl"
expect 0 '' "$G" report "$tmp/far.jsonl" --pareto a,b --plot pareto -o "$tmp/far.svg"
for tick in 5 50 500 2.2; do
	grep -q ">$tick</text>" "$tmp/far.svg" || fail "a Pareto front has no tick at $tick"
done
finish
