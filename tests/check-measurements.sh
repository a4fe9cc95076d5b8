# SPDX-License-Identifier: Apache-2.0
# Tests that docs/measurements.md is what bench/keep makes from kept results, that every value which another page cites is that of
# the cited row, and that bench/keep keeps what benchmarks write.
. tests/lib.sh
need python3
root=$PWD
keep=$root/bench/keep
expect 0 '' "$keep" --check || cat "$tmp/err"

# A kept value that changes makes the check fail: the page is stale, and so is each page that cites the value.
cp results/measurements.json "$tmp/kept.json"
mine="--kept $tmp/kept.json"
python3 - "$tmp/kept.json" <<'PY' || fail 'the kept value'
import sys
text = open(sys.argv[1]).read()
at = text.index('"figure": "fib_tasks_per_s", "value": ')
open(sys.argv[1], 'w').write(text[:at] + text[at:].replace('"value": ', '"value": 7', 1))
PY
expect 1 'measurements.md is not what' "$keep" $mine --check
expect 1 ': cites .* but fib_tasks_per_s is ' "$keep" $mine --check
# So does a citation of a row that does not exist, in any file.
printf 'It takes [5 us](docs/measurements.md#no_such_row).\n' >"$tmp/page.md"
expect 1 "page.md: measurements.md has no row 'no_such_row'" "$keep" --check "$tmp/page.md"
printf 'It takes [5 us](docs/measurements.md#embed_run_us).\n' >"$tmp/page.md"
expect 1 "page.md: cites '5 us', but embed_run_us is " "$keep" --check "$tmp/page.md"

# --cite changes the citation of a value, and nothing else.
printf '[row](docs/measurements.md#embed_run_us), [5\nus](docs/measurements.md#embed_run_us), [5 us](other.md#embed_run_us).\n' >"$tmp/page.md"
expect 0 "page.md:1: " "$keep" --cite "$tmp/page.md"
value=$("$keep" --page | sed -n 's/.*id="embed_run_us"><\/a>[^|]*| \([^|]*\) |.*/\1/p')
grep -qF "#embed_run_us), [$value](docs/measurements.md#embed_run_us), [5 us](other" "$tmp/page.md" || { fail '--cite'; cat "$tmp/page.md"; }
expect 0 '' "$keep" --check "$tmp/page.md"

# row FIGURE CELLS: the row of the figure on the page of the copy has these cells.
row() {
	expect 0 '' "$keep" $mine --page
	grep "<a id=\"$1\">" "$tmp/out" | grep -qF "$2" || { fail "the row of $1"; grep "<a id=\"$1\">" "$tmp/out"; }
}

# Outputs with lines `bar` and `figure`, and `run` lines as bench/gpu.sh prints them.
cat >"$tmp/out.txt" <<'END'
run command bench/gpu.sh build 5 triggers
run date 2031-02-03
run revision 0123456789ab
| table | 1 |
bar trigger_one_way_us 3.25 <= 4.5 ok
bar no_such_figure 1 <= 2 ok
figure embed_start_us 4.75
END
expect 0 'not kept.*no_such_figure' "$keep" $mine "$tmp/out.txt" --machine P
row trigger_one_way_us '| 3.25 us |  | <= 4.5 us | P | 2031-02-03 | 0123456789ab | `bench/gpu.sh build 5 triggers` |'
row embed_start_us '| 4.75 us |  |  | P | 2031-02-03 |'
[ "$(grep -c '"trigger_one_way_us"' "$tmp/kept.json")" = 1 ] || fail 'the earlier value is still kept'
expect 1 'choose from A, ' "$keep" $mine "$tmp/out.txt" --machine Z
printf 'bar trigger_one_way_us 9.5 <= 4.5 short\n' >"$tmp/out.txt"
expect 1 'give --command' "$keep" $mine "$tmp/out.txt" --machine P
expect 0 '' "$keep" $mine "$tmp/out.txt" --machine P --command make --date 2031-02-04
row trigger_one_way_us '| 9.5 us |  | <= 4.5 us, **short** | P | 2031-02-04 |  | `make` |'
printf 'nothing\n' >"$tmp/out.txt"
expect 1 'has no figure to keep' "$keep" $mine "$tmp/out.txt" --machine P --command make

# The document of a comparison, of a benchmark in Python, and the result of a run.
expect 0 '' "$G" compare conf/memset.ini --set workload.memset.tasks=100 --vary scheduler.use=static,mgws --blocks 4 \
	--samples-per-block 2 --spread 0s --bar 'memset_to_static: seconds(static) / seconds(mgws) >= 0.0001' --json "$tmp/c.json"
sed -i 's/"load_1m":[[:space:]]*[0-9.e+-]*/"load_1m": 7.25/' "$tmp/c.json"
expect 0 'kept 1 figures' "$keep" $mine "$tmp/c.json" --machine B
row memset_to_static "| >= 0.0001 | B, load 7 | $(date -u +%Y)-"
revision=$(sed -n 's/^#define LOOM_BUILD_REVISION "\(.*\)"/\1/p' "$B/build-facts.h")
row memset_to_static " | $revision | \`gpuloom compare conf/memset.ini "
(cd "$tmp" && ln -s "$root/conf" conf && cat >bench.py <<PY && python3 bench.py >bench.txt) || fail 'a benchmark in Python'
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, '$root/bench')
import os, figures
os.makedirs('b/bench')
os.symlink('$G', 'b/gpuloom')
os.symlink('$B/plugins', 'b/plugins')
figures.bar('sim_1024_s', 12.5, '<=', 60, [11, 12.5, 14])
figures.finish('b/bench/mine.json')
PY
expect 0 'kept 1 figures' "$keep" $mine "$tmp/b/bench/mine.json" --machine B
row sim_1024_s '| 12.5 s | 11 to 14 s | <= 60 s | B'
row sim_1024_s '| `bench.py` |'
expect 0 '' "$G" run conf/memset.ini --set workload.memset.tasks=100 --samples 3 --json "$tmp/r.json"
expect 1 "no metric 'second'" "$keep" $mine "$tmp/r.json" --machine B --figure compile_slowest_s=second
expect 0 'kept 1 figures' "$keep" $mine "$tmp/r.json" --machine B --figure compile_slowest_s=seconds
finish
