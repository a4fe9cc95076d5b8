# SPDX-License-Identifier: Apache-2.0
# Tests examples/slurm with a stand-in for sbatch: all shards are made, a requeued job continues, and one table has all
# results.
. tests/lib.sh
need python3
mkdir "$tmp/bin" && ln -s "$G" "$tmp/bin/gpuloom"
cat >"$tmp/bin/sbatch" <<'END'
#!/bin/sh
# sbatch SCRIPT ARGUMENT...: runs in sequence the tasks that Slurm would run in parallel.
array=$(sed -n 's/^#SBATCH --array=//p' "$1")
export SLURM_ARRAY_TASK_COUNT="${array#*-}"
for SLURM_ARRAY_TASK_ID in $(seq "${array%-*}" "${array#*-}"); do
	export SLURM_ARRAY_TASK_ID
	sh "$@" || exit
done
END
chmod +x "$tmp/bin/sbatch"
sed 's/^tree *=.*/tree = custom\ndepth = 5/' conf/uts.ini >"$tmp/uts.ini"
grep -q '^depth = 5' "$tmp/uts.ini" || printf '[workload.uts]\ntree = custom\ndepth = 5\n' >>"$tmp/uts.ini"
python=$PWD/python script=$PWD/examples/slurm/sweep.sbatch
cd "$tmp" || exit 1
export PATH="$tmp/bin:$PATH"
cells='--vary device.cpu.workers=1,2,4 --vary scheduler.mgws.victim=random,neighbour'
expect 0 '' sbatch "$script" uts.ini $cells --samples 2
head -n 4 shard-1.jsonl >cut && mv cut shard-1.jsonl # a cancelled job leaves such a file
expect 0 '' sbatch "$script" uts.ini $cells --samples 3
PYTHONPATH=$python PYTHONDONTWRITEBYTECODE=1 python3 - <<'END' || fail 'the table of all shards'
import glob, gpuloom
table = gpuloom.load(*sorted(glob.glob("shard-*.jsonl")), pandas=False)
cells = table.groupby("device.cpu.workers", "scheduler.mgws.victim").count()
assert sorted(cells["device.cpu.workers"]) == [1, 1, 2, 2, 4, 4], cells
assert cells["seconds"] == [3] * 6, cells
END
finish
