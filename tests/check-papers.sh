# SPDX-License-Identifier: Apache-2.0
# Tests the figures and tables of papers. Each has a row, and the sweep of each conf can be planned. Kept results have what the
# claims need. New runs of simulated rows equal the kept results to the last digit. CPU rows run. docs/papers.md is what
# tools/papers prints.
. tests/lib.sh
keep_programs
need python3
root=$PWD

expect 0 '' "$G" papers
# A copy of a build folder finds the confs beside it.
mkdir -p "$tmp/copy/build/plugins" "$tmp/copy/results"
cp "$B/gpuloom" "$tmp/copy/build/" && cp -r conf "$tmp/copy/" && cp results/papers.ini "$tmp/copy/results/"
expect 0 'MGWS|mgws' "$tmp/copy/build/gpuloom" papers
expect 0 '' tools/papers "$G" --check
expect 0 '' tools/papers "$G"
diff -u docs/papers.md "$tmp/out" >"$tmp/diff" || { fail 'docs/papers.md: run `tools/papers build/gpuloom >docs/papers.md`'; head -n 40 "$tmp/diff"; }
[ "$(du -sk results | cut -f1)" -le 3072 ] || fail 'results/ has more than 3 MB'

expect 0 '' "$G" papers --json "$tmp/papers.json" --quiet
python3 - "$tmp/papers.json" >"$tmp/rows" <<'PY' || fail 'the rows'
import json, re, sys
WANT = {"mgws": (27, 8), "wic": (17, 2), "gputn": (11, 3), "hiss": (12, 2), "sync": (13, 10)}
doc = json.load(open(sys.argv[1]))
assert doc["schema"] == "gpuloom.papers/1"
assert [p["id"] for p in doc["papers"]] == list(WANT), "papers"
rows = [r for p in doc["papers"] for r in p["rows"] if r["claims"] and r["state"] != "not to be had here"]
assert len(rows) <= 60, len(rows)  # of docs/papers.md
assert all(r["says"] for r in rows), [r["conf"] for r in rows if not r["says"]]
for r in rows:
    for c in r["claims"]:
        if r["result"] and c["verdict"] != "same":
            assert c["reason"] and not c["error"], (r["conf"], c)
        # A claim is one-sided only if it has a direction, and no size.
        assert None not in (c["low"], c["high"]) or c["neutral"] in (c["low"], c["high"]), (r["conf"], c)
    # Reasons are short. A number in them would be that of another run.
    for text in re.findall(r"^(?:why|incomparable)[.\w]* *= (.*)", open("conf/%s.ini" % r["conf"]).read(), re.M):
        assert len(text.split()) <= 10 and not re.search(r"\d", text), (r["conf"], text)
written = {}
for p in doc["papers"]:
    for kind, most in zip(("figure", "table"), WANT[p["id"]]):  # each has confs or a line in results/papers.ini
        has = {}
        for r in p["rows"]:
            for n in re.findall(r"\d+", r["label"].partition(" (")[0]) if r["label"].startswith(kind) else ():
                has.setdefault(int(n), set()).add(bool(r["conf"]))
        assert set(has) == set(range(1, most + 1)) and all(len(v) == 1 for v in has.values()), (p["id"], kind, has)
    for r in p["rows"]:
        bad = [c for c in r["claims"] if r["result"] and c["error"]]
        assert not bad, (r["result"], "lacks what a claim needs", bad)
        for line in re.findall(r"^(?:output|report) *= *\S+", open("conf/%s.ini" % r["conf"]).read(), re.M) if r["conf"] else ():
            assert written.setdefault(line, r["conf"]) == r["conf"], (line, "in two confs", written[line], r["conf"])
    words = [(r["label"].split()[0], r["number"], r["part"]) for r in p["rows"] if r["conf"]]
    assert len(words) == len(set(words)), (p["id"], "two confs of one figure need a `part`")
    assert p["url"].startswith("https://"), p["id"]
    for r in p["rows"]:
        for c in r["claims"]: # a division by a number changes the unit, so that 1 does not mean "no effect"
            assert not c["claim"].endswith("/ 1000") or c["neutral"] in (None, 0), c
        kind, number = r["label"].split(" ", 1)
        if r["conf"]:
            word = ("table-" if kind == "table" else "") + number.split(",")[0].split(" ")[0]
            part = number[number.index("(") + 1:-1] if "(" in number else ""
            print(p["id"], word + ("-" + part if part else ""), r["needs"], r["conf"], r["result"] or "-")
PY

# The sweep of each conf can be planned.
cd "$tmp" && ln -s "$root/conf" conf && ln -s "$root/results" results || exit 1
while read -r paper figure needs conf result; do
	"$G" run "conf/$conf.ini" --dry-run >"$tmp/out" 2>"$tmp/err" && grep -q '^run' "$tmp/out" ||
		{ fail "conf/$conf.ini has no plan"; cat "$tmp/err"; }
done <"$tmp/rows"

# again PAPER FIGURE RESULT [OPTION...]: the samples of a new run are those of the kept result.
again() {
	paper=$1 figure=$2 result=$3
	shift 3
	rm -f again.jsonl
	expect 0 '' "$G" papers "$paper" "$figure" --quiet -o again.jsonl "$@"
	python3 - "$result" again.jsonl <<'PY' || fail "$paper $figure differs from its kept result"
import gzip, json, sys
def samples(path):
    lines = (gzip.open if path.endswith(".gz") else open)(path, "rt").read().splitlines()
    return [(json.dumps(l["values"], sort_keys=True), l["metrics"]) for l in map(json.loads, lines) if "metrics" in l]
kept = dict(samples(sys.argv[1]))
new = samples(sys.argv[2])
assert new, "no sample"
for at, metrics in new:
    assert kept[at], at
    now = {k: metrics.get(k) for k in kept[at]}
    assert kept[at] == now, (at, kept[at], now)
PY
}
# small PAPER FIGURE: runs the figure small. A metric of waits is missing if no consumer of this run had to wait, which happens
# on a busy machine. So such a run is repeated, up to twice.
small() {
	for try in 1 2 3; do
		"$G" papers "$1" "$2" --small --quiet >"$tmp/out" 2>"$tmp/err" && return
		grep -q "no metric '.*' in the first sample" "$tmp/err" || break
	done
	fail "papers $1 $2 --small"
	cat "$tmp/err"
}
while read -r paper figure needs conf result; do
	case $needs:$result in
	sim:-) fail "$paper $figure is simulated, and has no kept result" ;;
	sim:*)
		# With CHECK=all every point is repeated, otherwise those that take a second.
		if [ "$CHECK" = all ]; then again "$paper" "$figure" "$result"
		else again "$paper" "$figure" "$result" --small
		fi
		;;
	cpu:*) small "$paper" "$figure" ;;
	esac
done <"$tmp/rows"

# A result is kept if its revision is a commit of this repository, and gives the same claims.
git -C "$root" rev-parse HEAD >head 2>/dev/null || echo 0123456789abcdef >head
mkdir kept && "$G" papers gputn 8 --small --quiet -o new.jsonl && sed "s/\"revision\":\"[^\"]*\"/\"revision\":\"$(cat head)\"/" new.jsonl >good.jsonl
expect 0 '' "$root/tools/papers" "$G" --results kept --keep good.jsonl
expect 0 '' "$root/tools/papers" "$G" --results kept --check
for from in new.jsonl kept/gputn-figure-8.jsonl; do
	expect 0 '' "$G" papers gputn 8 --from $from
	grep '^  g[a-z]*_under' "$tmp/out" >$(basename $from).claims
done
cmp new.jsonl.claims gputn-figure-8.jsonl.claims && [ -s new.jsonl.claims ] || fail 'a kept result has other claims'
[ "$(wc -c <kept/gputn-figure-8.jsonl)" -lt "$(wc -c <good.jsonl)" ] || fail 'a kept result is not shorter'
for revision in abcdefabcdef "$(cut -c1-12 head)-dirty" ''; do
	sed "s/\"revision\":\"[^\"]*\"/\"revision\":\"$revision\"/" good.jsonl >bad.jsonl
	if [ "$revision" = abcdefabcdef ] && [ "$(git -C "$root" rev-parse --is-shallow-repository 2>/dev/null)" != false ]; then continue; fi
	expect 1 'its revision' "$root/tools/papers" "$G" --results kept --keep bad.jsonl
	cp bad.jsonl kept/
	expect 1 'bad.jsonl: its revision' "$root/tools/papers" "$G" --results kept --check
	rm kept/bad.jsonl
done

# A kept result may be compressed; a damaged one is an error.
expect 0 '' "$G" papers gputn 08 --from results/gputn-figure-8.jsonl
grep '^  gputn_under_hdn .* 0\.[0-9]* ' "$tmp/out" >claim || fail 'the claims of a result'
gzip -c results/gputn-figure-8.jsonl >kept.jsonl.gz
expect 0 '' "$G" papers gputn 08 --from kept.jsonl.gz
grep '^  gputn_under_hdn ' "$tmp/out" | cmp -s - claim || fail 'the claims of a compressed result'
expect 0 '' "$G" report kept.jsonl.gz -o kept.svg
head -c 300 kept.jsonl.gz >torn.jsonl.gz
expect 2 'torn.jsonl.gz.* damaged' "$G" report torn.jsonl.gz -o torn.svg
expect 2 'torn.jsonl.gz' "$G" papers gputn 8 --from torn.jsonl.gz

expect 4 "has no kept result; 'x.svg' was not written" "$G" papers hiss 4 --kept -o x.svg
expect 2 'needs PAPER and FIGURE' "$G" papers gputn --kept
expect 2 'x.jsonl: no samples are measured' "$G" papers gputn 8 --kept -o x.jsonl

# Without a GPU, a figure that needs one runs with the settings for CPUs (--cpu). These say whether its claims are judged.
# On a busy machine the second of a small figure may end before two lines have a point, so it gets a minute. It takes about one.
expect 0 'queue_64 .*not run here .*no GPU takes part' "$G" papers mgws 12 --cpu --small --set sweep.budget=60s -o cpu.svg
grep -q '>queue-[0-9]*</text>\|>owners-[0-9]</text>' cpu.svg || fail '--cpu: the plot has no lines'
grep -q 'opposite\|larger\|smaller' "$tmp/out" && fail '--cpu judges claims'
expect 0 "others .*role computes" "$G" papers hiss 4 --cpu --small
expect 0 'unlike the paper: A CPU takes the role' "$G" papers hiss 12 --cpu --small --set sweep.workload.requests.victim=@memory
! grep -q 'not like for like\|role computes' "$tmp/out" || fail '--cpu does not judge what a CPU shows, too'
expect 0 'mean .*not like for like .*time slices' "$G" papers wic 12a --cpu --small -o cpu.jsonl
expect 0 'mean .*not like for like .*time slices' "$G" papers wic 12a --from cpu.jsonl
expect 0 'unlike the paper: Two CPU devices' "$G" papers wic 14 --kept
expect 0 '^run' "$G" papers gputn 9 --cpu --dry-run
expect 2 'runs a figure, and judges no result' "$G" papers hiss 4 --cpu --kept

# Without GPUs, a figure that needs one says so at once, and runs nothing. The list says what the machine can run.
if "$G" papers sync >list && ! grep -q '  runs  ' list; then
	expect 4 'figure 8 needs 1 GPU, and this machine has 0 .*--cpu runs it' "$G" papers mgws 8
	[ "$(wc -l <"$tmp/err")" = 1 ] || { fail 'more than one line'; cat "$tmp/err"; }
	expect 4 'figure 9, 10 needs 2 GPUs, and this machine has 0 .`gpuloom doctor`.$' "$G" papers sync 9
	expect 0 '^run' "$G" papers mgws 8 --dry-run
fi
expect 0 'table 1 .* runs ' "$G" papers hiss
expect 0 'figure 8: .*needs no GPU' "$G" papers gputn 8 --small
expect 0 '' "$G" papers gputn 11 --kept -o one.svg -o two.csv --width column
grep -q 'width="84mm"' one.svg && [ -s two.csv ] || fail 'two outputs'
expect 0 '' "$G" papers sync table-5 --kept --quiet -o lines.svg
grep -q '>cycles' lines.svg && grep -q '>per_multiprocessor' lines.svg || fail 'lines of the first metric only'
expect 0 '' "$G" papers hiss 6-interrupts --kept --quiet -o part.svg
grep -q '>hiss, figure 6 (interrupts)<' part.svg || fail 'the title of a part of a figure'
expect 2 'exists: --resume' "$G" papers gputn 8 --small -o new.jsonl
expect 0 '' "$G" papers gputn 8 --small -o new.jsonl --resume

# After Ctrl-C, the samples are in the file, and what was measured is judged.
"$G" papers hiss table-1 --samples 100000 -o cut.jsonl >cut 2>"$tmp/err" &
run=$!
for i in $(seq 300); do
	grep -q '"sample":1' cut.jsonl 2>/dev/null && break
	sleep 0.1
done
kill -INT $run
wait $run
[ $? = 130 ] || fail 'Ctrl-C: another exit code'
grep -q 'signal_over_least .*table I' cut && grep -q '"metrics"' cut.jsonl || { fail 'Ctrl-C: nothing is kept'; cat cut "$tmp/err"; }
for conf in "$root"/conf/thesis/figure-*.ini "$root"/conf/hiss/figure-*.ini "$root"/conf/wic/figure-12a.ini "$root"/conf/wic/figure-1[467].ini; do
	cpu=$(sed -n '/^\[x-paper\]/,$s/^cpu *= //p' "$conf")
	[ -n "$cpu" ] || cpu=$(cat "${conf%/*}"/base.ini "${conf%/*}"/gpu.ini 2>/dev/null | sed -n '/^\[x-paper\]/,$s/^cpu *= //p')
	"$G" run "$conf" "${conf%/*}/$cpu" --dry-run >"$tmp/out" 2>"$tmp/err" && grep -q '^run' "$tmp/out" ||
		{ fail "$conf with $cpu has no plan"; cat "$tmp/err"; }
	! grep -q '^run.*cuda:' "$tmp/out" || fail "$conf with $cpu needs a GPU"
done

# A level at which no configuration has samples has no place in a plot.
sed '/"sample"/{/"cg"/d}' results/wic-figure-14.jsonl >some.jsonl
expect 0 '' "$G" report some.jsonl -o some.svg
grep -q '>fe<' some.svg && ! grep -q '>cg<' some.svg || fail 'a plot with an empty group'

# rsvg-convert must draw two pictures on white, in the colours that the files name. If Chromium is installed, it must do so, too.
expect 0 '' "$G" papers gputn 11 --kept --quiet -o bars.svg
expect 0 '' "$G" papers gputn 10 --kept --quiet -o lines.svg
browser=
for b in chromium chromium-browser google-chrome; do ! command -v "$b" >/dev/null || browser=$b; done
for picture in bars lines; do
	! grep -n 'var(' $picture.svg || fail "$picture.svg has variables of style sheets"
	command -v rsvg-convert >/dev/null || continue
	rsvg-convert $picture.svg -o $picture.png || fail "rsvg-convert $picture.svg"
	[ -z "$browser" ] || "$limit" 60 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars \
		--window-size=1008,630 --screenshot="$tmp/$picture-browser.png" "file://$tmp/$picture.svg" >"$tmp/err" 2>&1
	python3 - $picture.png $picture-browser.png <<'PY' || fail "the colours of $picture.svg"
import os, struct, sys, zlib
def pixels(path):
    """{(r, g, b): share} of a PNG without interlacing."""
    data, at, packed = open(path, "rb").read(), 8, b""
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + n]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and colour in (2, 6), (depth, colour)
        packed += body if kind == b"IDAT" else b""
        at += 12 + n
    size = 4 if colour == 6 else 3
    raw, before, seen, row = zlib.decompress(packed), bytes(width * size), {}, width * size + 1
    for y in range(height):
        how, line = raw[y * row], bytearray(raw[y * row + 1:(y + 1) * row])
        for i in range(len(line)):
            a, b = line[i - size] if i >= size else 0, before[i]
            c = before[i - size] if i >= size else 0
            p = a + b - c
            paeth = a if abs(p - a) <= abs(p - b) and abs(p - a) <= abs(p - c) else b if abs(p - b) <= abs(p - c) else c
            line[i] = (line[i] + (0, a, b, (a + b) // 2, paeth)[how]) & 255
        before = bytes(line)
        for x in range(0, len(line), size):
            colour = before[x:x + 3]
            seen[colour] = seen.get(colour, 0) + 1
    return {tuple(k): v / width / height for k, v in seen.items()}
drawn = pixels(sys.argv[1])
share = lambda of, text: of.get(tuple(bytes.fromhex(text)), 0)
assert share(drawn, "ffffff") > 0.5, "no white page"
assert share(drawn, "000000") < 0.01, "black"
series = ["0072b2", "d55e00", "009e73", "b0003a"]
for c in series:
    assert share(drawn, c) > 0.0002, (c, share(drawn, c))
if os.path.exists(sys.argv[2]):
    other = pixels(sys.argv[2])
    for c in series + ["ffffff"]:
        assert abs(share(drawn, c) - share(other, c)) < 0.1 * share(drawn, c) + 0.001, (c, share(drawn, c), share(other, c))
PY
done

# The message of a mistake in [x-paper] has the position and a suggestion, whichever command reads the conf.
mistake() { # LINE-PATTERN MESSAGE SECTION...
	at=$1 message=$2
	shift 2
	{
		printf 'include = %s/conf/memset.ini\n[sweep.scheduler]\nuse = mgws, static\n[x-paper]\n' "$root"
		printf '%s\n' "$@"
	} >mistake.ini
	"$G" config check mistake.ini >"$tmp/out" 2>&1
	[ $? = 2 ] && grep -q "^mistake.ini:$at.*$message" "$tmp/out" || { fail "$message"; cat "$tmp/out"; }
}
good='of = wic' show='shows = x' cpu='needs = cpu' fig='figure = 2'
mistake 5:1 "unknown key 'fugure'.*did you mean 'figure'" 'fugure = 2'
mistake 8:9 'choose from sim, cpu, gpu, two-gpus' "$good" "$fig" "$show" 'needs = GPU'
mistake 9:1 'claim.a has no paper.a' "$good" "$fig" "$show" "$cpu" 'claim.a = at(seconds, use=mgws)'
mistake 9:11 "has no value 'mgsw'; did you mean 'mgws'" "$good" "$fig" "$show" "$cpu" 'claim.a = at(seconds, use=mgsw)' 'paper.a = 1'
mistake 9:11 "'uze' is not varied" "$good" "$fig" "$show" "$cpu" 'claim.a = at(seconds, uze=mgws)' 'paper.a = 1'
mistake 9:11 "a ')' is missing" "$good" "$fig" "$show" "$cpu" 'claim.a = at(seconds, use=mgws' 'paper.a = 1'
mistake 10:11 'is no value of a paper' "$good" "$fig" "$show" "$cpu" 'claim.a = at(seconds, use=mgws)' 'paper.a = much'
mistake 9:1 "there is no claim.b" "$good" "$fig" "$show" "$cpu" 'paper.b = 1'
mistake 9:7 "no file '.*nowhere.ini'" "$good" "$fig" "$show" "$cpu" 'cpu = nowhere.ini'
mistake 6:10 "no number of a figure" "$good" 'figure = x' "$show" "$cpu"
# A run that could not start leaves no file, which would block the next try.
"$G" sweep conf/memset.ini --set run.devices=cuda:99 --vary scheduler.use=mgws,static -o none.jsonl >"$tmp/out" 2>&1
[ $? != 0 ] && [ ! -e none.jsonl ] || fail 'a sweep without a device left its file'
cd "$root"
expect 2 "no paper 'wik'; did you mean 'wic'" "$G" papers wik
expect 2 "has no figure or table '99'" "$G" papers wic 99
expect 4 'a drawing' "$G" papers wic 1
finish
