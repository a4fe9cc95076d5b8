# SPDX-License-Identifier: Apache-2.0
# Tests that docs/measurements.md is what bench/keep makes from kept documents, that every value which another page cites is that of
# the cited row, and that bench/keep keeps what benchmarks write, and nothing without interval or with an unknown revision.
. tests/lib.sh
need python3
root=$PWD
keep=$root/bench/keep
expect 0 '' "$keep" --check || cat "$tmp/err"

# A kept value that changes makes the check fail: the page is stale, and so is each page that cites the value.
cp -r results/measurements "$tmp/kept"
mine="--kept $tmp/kept"
sed -i '/"embed_run_us"/s/"values": \[[^]]*\]/"values": [7, 7, 7, 7, 7, 7]/' "$tmp/kept/embed.json"
expect 1 'measurements.md is not what' "$keep" $mine --check
printf 'It takes [5 us](docs/measurements.md#embed_run_us).\n' >"$tmp/page.md"
expect 1 "page.md: cites '5 us', but embed_run_us is '7 us'" "$keep" $mine --check "$tmp/page.md"
# So does a citation of a row that does not exist, in any file.
printf 'It takes [5 us](docs/measurements.md#no_such_row).\n' >"$tmp/page.md"
expect 1 "page.md: measurements.md has no row 'no_such_row'" "$keep" --check "$tmp/page.md"
# fault SED PATTERN: a document changed like this is a fault.
fault() {
	cp results/measurements/embed.json "$tmp/kept/embed.json"
	sed -i "$1" "$tmp/kept/embed.json"
	expect 1 "$2" "$keep" $mine --check
}
fault '/"embed_run_us"/s/"values": \[[^]]*\]/"values": [7, 7, 7, 7, 7]/' 'embed: embed_run_us has no interval'
fault 's/"revision": "/&0000/' 'embed: its revision 0000[0-9a-f]* is not in this repository'
fault 's/"revision": "[0-9a-f]*/&-dirty/' 'embed: its revision [0-9a-f]*-dirty is .*measure again|embed: its revision is [0-9a-f]*-dirty: commit'
fault 's/"machine": "[A-Z0-9]*"/"machine": "Z"/' 'embed: no machine Z'
fault 's/"embed_run_us"/"embed_pool_us"/' 'embed_pool_us: two values are kept'
cp results/measurements/embed.json "$tmp/kept/gpu-embed-2.json"
expect 1 'gpu-embed-2: no facts of its GPUs' "$keep" $mine --check
rm "$tmp/kept/gpu-embed-2.json"
cp results/measurements/embed.json "$tmp/kept/embed.json"

# --cite changes the citation of a value, and nothing else.
printf '[row](docs/measurements.md#embed_run_us), [5\nus](docs/measurements.md#embed_run_us), [5 us](other.md#embed_run_us).\n' >"$tmp/page.md"
expect 0 "page.md:1: " "$keep" --cite "$tmp/page.md"
value=$("$keep" --page | sed -n 's/.*id="embed_run_us"><\/a>[^|]*| \([^|]*\) |.*/\1/p')
grep -qF "#embed_run_us), [$value](docs/measurements.md#embed_run_us), [5 us](other" "$tmp/page.md" || { fail '--cite'; cat "$tmp/page.md"; }
expect 0 '' "$keep" --check "$tmp/page.md"

# row FIGURE PATTERN: the row of the figure on the page of the copy matches.
row() {
	expect 0 '' "$keep" $mine --page
	grep "<a id=\"$1\">" "$tmp/out" | grep -qE "$2" || { fail "the row of $1"; grep "<a id=\"$1\">" "$tmp/out"; }
}
# The revision of a kept document must be one of this repository, which that of a build with changes is not.
known=$(git rev-parse HEAD 2>/dev/null) || known=
[ -n "$known" ] || { echo 'no repository here: documents are not kept'; finish; }

# The document of a comparison.
expect 0 '' "$G" compare conf/memset.ini --set workload.memset.tasks=100 --vary scheduler.use=static,mgws --blocks 7 \
	--samples-per-block 2 --spread 0s --bar 'memset_to_static: seconds(static) / seconds(mgws) >= 0.0001' \
	--bar 'contains_two_workers: seconds(mgws) / seconds(static)' --bar 'no_such_figure: seconds(mgws)' --json "$tmp/tasks-x.json"
sed -i 's/"load_1m":[[:space:]]*[0-9.e+-]*/"load_1m": 7.25/; s/"revision":[[:space:]]*"[^"]*"/"revision": "'"$known"'-dirty"/' "$tmp/tasks-x.json"
expect 1 'tasks-x.json: its revision is .*-dirty: commit, build and measure again' "$keep" $mine "$tmp/tasks-x.json" --machine A
sed -i "s/$known-dirty/$known/" "$tmp/tasks-x.json"
rm -f "$tmp"/kept/tasks-*.json
expect 0 'kept 2 figures' "$keep" $mine "$tmp/tasks-x.json" --machine A
grep -q 'not kept.*no_such_figure' "$tmp/err" || fail 'a figure without a description'
row memset_to_static '\| [0-9.]+ \(static [0-9.]+ [mun]?s / mgws [0-9.]+ [mun]?s\) \| [0-9.]+ to [0-9.]+ \| 7 \| >= 0.0001 \| \[tasks-x\]\(#document-tasks-x\)'
sed 's/"no_such_figure",/"no_such_figure", "target": 1,/' "$tmp/tasks-x.json" >"$tmp/tasks-y.json"
expect 1 'not kept.*no_such_figure' "$keep" $mine "$tmp/tasks-y.json" --machine A # a missed target must not vanish
expect 0 "tasks-x.json.* A, load 7 \| $(date -u +%Y)-.* $known \| .gpuloom compare conf/memset.ini " "$keep" $mine --page
expect 1 'choose from A, ' "$keep" $mine "$tmp/tasks-x.json" --machine Z

# Those of a benchmark in Python, and of a program that prints samples.
(cd "$tmp" && mkdir -p b/bench && ln -s "$G" b/gpuloom && ln -s "$B/plugins" b/plugins && ln -s "$root/conf" conf && cat >bench.py <<PY && python3 bench.py >bench.txt) || fail 'a benchmark in Python'
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, '$root/bench')
import figures
figures.bar('join_to_tbb', [11, 12.5, 14, 12, 13, 12.25], '<=', 60)
figures.bar('fib_to_tbb', [1, 2, 3, 4, 5], '<=', 60)
figures.bar('memset_static_to_loop', [], '<=', 60)
figures.count('memset_to_tbb', 3, 200, '<=', 0.05)
figures.finish('b/bench/mine.json')
PY
grep -q '^bar join_to_tbb 12.38 <= 60 ok$' "$tmp/bench.txt" || fail 'the bar of a list of values'
grep -q '^bar memset_static_to_loop - <= 60 missing$' "$tmp/bench.txt" || fail 'a bar without values'
sed -i "s/\"revision\": \"[^\"]*\"/\"revision\": \"$known\"/" "$tmp/b/bench/mine.json"
expect 0 'kept 2 figures' "$keep" $mine "$tmp/b/bench/mine.json" --machine H
grep -q 'not kept, as it has no interval: fib_to_tbb, 5 values' "$tmp/err" || fail 'a figure of 5 values'
row join_to_tbb '\| 12.38 \| 11 to 14 \| 6 \| <= 60 \| \[mine\]'
row memset_to_tbb '\| 0.015 \| 0.003104 to 0.04321 \| 200 \| <= 0.05 '
{
	printf 'table\nversion nccl 22809\n'
	printf 'sample join_to_tbb %s\n' 1 2 3 4 5 6
} >"$tmp/samples"
expect 0 '^bar join_to_tbb 3.5 >= 3 ok$' sh -c "PYTHONDONTWRITEBYTECODE=1 python3 bench/figures.py $tmp/b some join_to_tbb '>=' 3 <$tmp/samples"
# The version of a rival's library, which it prints, stays beside its values: of such programs, and of programs in turns.
sed -i "s/\"revision\": \"[^\"]*\"/\"revision\": \"$known\"/" "$tmp/b/bench/some.json"
rm "$tmp/kept/mine.json"
expect 0 'kept 1 figures' "$keep" $mine "$tmp/b/bench/some.json" --machine H
expect 0 'id="document-some".* nccl 2.28.9 ' "$keep" $mine --page
printf 'nothing\n' >"$tmp/out.txt"
expect 1 'not a document' "$keep" $mine "$tmp/out.txt" --machine A
finish
