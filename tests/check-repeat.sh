# SPDX-License-Identifier: Apache-2.0
# Checks that 200 runs in a row give the same count. The MGWS thesis reports wrong results of CPU workers (section 6.3).
. tests/lib.sh
mkdir "$tmp/docs"
for i in $(seq 300); do
	seq "$i" $((i + i % 17 * 20)) | sed 's/3$/zwischen/' >"$tmp/docs/$i"
done
want=$(grep -rl zwischen "$tmp/docs" | wc -l)
"$G" run conf/contains.ini --set "workload.contains.path=$tmp/docs" --set 'workload.contains.glob=*' \
	--samples 200 --set device.cpu.workers=2 --json - >"$tmp/r.json" || fail 'the run'
python3 - "$tmp/r.json" "$want" <<'PY' || fail 'the counts'
import json, sys
d = json.load(open(sys.argv[1]))
counts = d['metrics']['matches']['samples']
assert len(counts) == 200 and set(counts) == {int(sys.argv[2])}, (sys.argv[2], set(counts))
PY
finish
