# SPDX-License-Identifier: Apache-2.0
# Tests gpuloom sweep. A sweep that is killed at any moment and resumed ends with the same configurations and samples as an
# uninterrupted one, none of them twice. Ctrl-C keeps the finished part. A failed configuration is tried again.
. tests/lib.sh
export TSAN_OPTIONS="die_after_fork=0 ${TSAN_OPTIONS-}"
planted_conf "$tmp/p.ini"
grid='--vary workload.planted.turns=1000,6000000,9000000 --vary device.cpu.spin=1us,50us'
# The sweep runs in the background without a shell function around it, so that signals reach gpuloom and not a shell.
sweep="sweep $tmp/p.ini $grid --samples 8 --quiet"

"$G" $sweep -o "$tmp/whole.jsonl" || fail 'a sweep'
kills=0
for wait in 0.05 0.1 0.15 0.2 0.25 0.3 0.1 0.05; do
	"$G" $sweep -o "$tmp/killed.jsonl" --resume 2>"$tmp/err" &
	pid=$!
	sleep $wait
	kill -9 $pid 2>/dev/null && kills=$((kills + 1))
	wait $pid 2>/dev/null
done
[ $kills -gt 2 ] || fail "only $kills of the sweeps were killed: they are too short"
# On a fast machine the last sweep may end before the kill. The test needs a missing sample, so it removes the last one.
last=$(grep -n '"sample"' "$tmp/killed.jsonl" | tail -n 1 | cut -d: -f1)
sed -i "$last,\$d" "$tmp/killed.jsonl"
printf '{"configuration":"half a li' >>"$tmp/killed.jsonl" # an incomplete line, as after a power failure
"$G" $sweep -o "$tmp/killed.jsonl" --resume || fail 'resuming a sweep that was killed'
expect 2 'resume.*restart' "$G" sweep "$tmp/p.ini" $grid --samples 8 -o "$tmp/killed.jsonl"
expect 2 'other factors' "$G" sweep "$tmp/p.ini" --vary workload.planted.turns=1,2 -o "$tmp/killed.jsonl" --resume
cat >"$tmp/same.py" <<'PY'
import collections, json, sys
def samples(path):
    n = collections.Counter()
    for line in map(json.loads, open(path)):
        if 'sample' in line:
            n[line['configuration'], line['sample']] += 1
    return n
whole, killed = map(samples, sys.argv[1:])
assert len(whole) == 6 * 8 and set(whole.values()) == {1}, whole
assert killed == whole, killed
PY
python3 "$tmp/same.py" "$tmp/whole.jsonl" "$tmp/killed.jsonl" || fail 'not the samples of an undisturbed sweep'
expect 0 '' "$G" report "$tmp/killed.jsonl" -o "$tmp/killed.html"

# Samples that are given twice count once: a file, a link to it, a copy, and lines that were appended to themselves.
rows() { # FILE...: prints how many samples a report of the files has
	"$G" report "$@" --format csv 2>"$tmp/err" | wc -l
}
ln -s whole.jsonl "$tmp/again.jsonl"
cp "$tmp/whole.jsonl" "$tmp/copy.jsonl"
cat "$tmp/whole.jsonl" "$tmp/whole.jsonl" >"$tmp/doubled.jsonl"
for files in "$tmp/whole.jsonl $tmp/again.jsonl" "$tmp/whole.jsonl $tmp/copy.jsonl" "$tmp/doubled.jsonl"; do
	[ "$(rows $files)" = 49 ] || fail "not the samples of one sweep: $files"
	grep -q 'count.* once' "$tmp/err" || fail "no word of samples that are there twice: $files"
done

# A file that is not a sweep's is neither continued nor emptied, however short.
"$G" report "$tmp/killed.jsonl" -o "$tmp/foreign.json"
printf 'my notes' >"$tmp/foreign.txt"
printf 'see gpuloom.sweep, without an end of line, and long enough for that: 64 bytes and more' >"$tmp/foreign.md"
printf '{"schema":"gpuloom.r' >"$tmp/foreign.jsonl"
printf '{"schema": "gpuloom.sweep/1"}\nnot ours\n' >"$tmp/foreign.lines"
cp "$tmp/killed.jsonl" "$tmp/foreign.other"
printf '{"torn' >>"$tmp/foreign.other"
for file in json txt md jsonl lines other; do
	cp "$tmp/foreign.$file" "$tmp/before"
	for how in resume restart; do
		[ $file-$how != other-restart ] || continue # a sweep with different factors, which --restart replaces
		expect 2 '' "$G" sweep "$tmp/p.ini" --vary workload.planted.turns=1,2 \
			--samples 1 -o "$tmp/foreign.$file" --$how
		cmp -s "$tmp/foreign.$file" "$tmp/before" || fail "--$how touched foreign.$file"
	done
done
expect 2 'foreign.txt. is not the file of a sweep, and was not changed' "$G" sweep "$tmp/p.ini" \
	--vary workload.planted.turns=1,2 \
	-o "$tmp/foreign.txt" --restart
expect 0 '' "$G" sweep "$tmp/p.ini" --vary workload.planted.turns=1,2 --samples 1 -o "$tmp/foreign.other" --restart
mkfifo "$tmp/fifo"
expect 2 'not a regular file' timeout 10 "$G" sweep "$tmp/p.ini" --vary workload.planted.turns=1,2 -o "$tmp/fifo" \
	--restart

# An axis that is not varied is a mistake, in a sweep before anything runs and in a report.
for axis in x lines facet; do
	expect 2 "$axis = workload.planted.turn: .*did you mean 'workload.planted.turns'" "$G" sweep "$tmp/p.ini" \
		$grid --samples 1 \
		--set sweep.$axis=workload.planted.turn -o "$tmp/axis.jsonl"
	[ ! -e "$tmp/axis.jsonl" ] || fail "a sweep with a wrong $axis began"
	for format in html svg csv json; do
		expect 2 "did you mean 'workload.planted.turns'" "$G" report "$tmp/killed.jsonl" --$axis \
			workload.planted.turn \
			--format $format
	done
done
cp "$tmp/p.ini" "$tmp/axis.ini"
printf '\n[sweep]\nx = device.cpu.spn\n\n[sweep.device.cpu]\nspin = 1us, 50us\n' >>"$tmp/axis.ini"
line=$(grep -n '^x = ' "$tmp/axis.ini" | cut -d: -f1)
expect 2 "axis.ini:$line:5: error: .sweep. x = device.cpu.spn: .*did you mean 'device.cpu.spin'" "$G" run \
	"$tmp/axis.ini"
# A report of a document that names such an axis omits this plot.
python3 - "$tmp/whole.jsonl" "$tmp/axis.jsonl" <<'PY'
import json, sys
lines = open(sys.argv[1]).read().splitlines()
head = json.loads(lines[0])
head["report"] = {"x": "no.such", "lines": "workload.planted.turn", "facet": "x"}
open(sys.argv[2], "w").write("\n".join([json.dumps(head)] + lines[1:]) + "\n")
PY
for format in html svg csv json md; do
	expect 0 'warning: report: ignoring the line plot of the sweep: --x no.such' "$G" report "$tmp/axis.jsonl" \
		--format $format
done

# After Ctrl-C the status is 130, the file has whole lines, and the sweep continues later.
interrupted 'grep -q "\"sample\":" "$tmp/int.jsonl" 2>/dev/null' "$G" $sweep -o "$tmp/int.jsonl"
python3 -c 'import json,sys; l=list(map(json.loads, open(sys.argv[1]))); assert l[-1]["status"] == "interrupted"' \
	"$tmp/int.jsonl" || fail 'what an interrupted sweep leaves'
"$G" $sweep -o "$tmp/int.jsonl" --resume || fail 'resuming after Ctrl-C'
python3 "$tmp/same.py" "$tmp/whole.jsonl" "$tmp/int.jsonl" || fail 'samples after Ctrl-C'

# If a program is missing, only its cell fails. When the program exists, the cell gets its samples. A cell with a wrong result is
# not tried again.
exec_conf "$tmp/e.ini" true
cells="--vary workload.exec.command=true,$tmp/later,false"
expect 3 '2 failed' "$G" sweep "$tmp/e.ini" $cells --samples 2 -o "$tmp/e.jsonl"
printf '#!/bin/sh\n' >"$tmp/later"
chmod +x "$tmp/later"
expect 3 '2 complete, 0 skipped, 1 failed; 2 new' "$G" sweep "$tmp/e.ini" $cells --samples 2 -o "$tmp/e.jsonl" --resume
expect 0 'later' "$G" report "$tmp/e.jsonl"
# If no cell could run, the exit code is that of the reason. Each reason is printed at once, and once.
expect 4 'warning: .*/no/such' "$G" sweep "$tmp/e.ini" --vary workload.exec.command=/no/such,/no/such/either --samples 1
[ "$(grep -c warning: "$tmp/err")" = 2 ] || fail 'two reasons, each once'
# Shards of several machines run here in sequence. Together they are the sweep, and each continues where it stopped.
cells='--vary workload.planted.turns=1000,2000,3000 --vary device.cpu.spin=1us,50us'
for part in 1 2 3 4 2; do
	resume=
	[ ! -e "$tmp/part-$part.jsonl" ] || resume=--resume
	"$G" sweep "$tmp/p.ini" $cells --samples 2 --shard $part/4 --quiet -o "$tmp/part-$part.jsonl" $resume \
		>"$tmp/out" 2>"$tmp/err" || fail "shard $part"
done
"$G" sweep "$tmp/p.ini" $cells --samples 2 --quiet -o "$tmp/alone.jsonl" || fail 'a sweep without shards'
cat "$tmp"/part-*.jsonl >"$tmp/all.jsonl"
python3 - "$tmp" <<'PY' || fail 'the shards are not the sweep'
import collections, json, sys
def samples(path):
    return collections.Counter((l['configuration'], l['sample']) for l in map(json.loads, open(path)) if 'sample' in l)
assert samples(sys.argv[1] + '/all.jsonl') == samples(sys.argv[1] + '/alone.jsonl')
PY
"$G" report "$tmp"/part-*.jsonl -o "$tmp/parts.csv" && "$G" report "$tmp/alone.jsonl" -o "$tmp/alone.csv"
[ "$(cut -d, -f1-3 "$tmp/parts.csv" | sort)" = "$(cut -d, -f1-3 "$tmp/alone.csv" | sort)" ] || fail 'a report of shards'
expect 2 'differ in factors' "$G" report "$tmp/part-1.jsonl" "$tmp/killed.jsonl"
expect 2 'not of the form K/N' "$G" sweep "$tmp/p.ini" $cells --shard 5/4
expect 0 'other .*turns=2000' "$G" sweep "$tmp/p.ini" $cells --shard 1/4 --dry-run
# A report overwrites the named file and no other file.
ls "$tmp" >"$tmp/before"
"$G" report "$tmp/alone.jsonl" -o "$tmp/alone.svg" --x workload.planted.turns --lines device.cpu.spin ||
	fail 'a plot with lines'
"$G" report "$tmp/alone.jsonl" -o "$tmp/alone.html" || fail 'a page'
rm "$tmp/alone.svg" "$tmp/alone.html"
ls "$tmp" | cmp -s - "$tmp/before" || fail 'a report leaves other files'
expect 2 "did you mean 'device.cpu.spin'" "$G" report "$tmp/alone.jsonl" --x device.cpu.spn
expect 2 'choose from value' "$G" report "$tmp/alone.jsonl" --show speed
finish
