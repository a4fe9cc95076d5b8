# SPDX-License-Identifier: Apache-2.0
# A timeline agrees with the counters of the run that it shows.
. tests/lib.sh
need python3
for isolation in thread process; do
	expect 0 '' "$G" run conf/uts.ini --samples 1 --set run.warmup=0 --set device.cpu.workers=2 \
		--set workload.uts.tree=custom --set workload.uts.depth=6 --set workload.uts.create=eager \
		--set device.cpu.isolation=$isolation \
		--set scheduler.mgws.public_queue=8 --trace "$tmp/trace.json" --trace-every 1 --json "$tmp/result.json"
	python3 - "$tmp" <<'END' || fail "the timeline with isolation = $isolation"
import json, sys
trace = json.load(open(sys.argv[1] + "/trace.json"))
m = {k: v["samples"][0] for k, v in json.load(open(sys.argv[1] + "/result.json"))["metrics"].items()}
events = trace["traceEvents"]
of = lambda category: [e for e in events if e["ph"] == "X" and e["cat"] == category]
tasks = lambda category: sum(e["args"]["tasks"] for e in of(category))
assert trace["otherData"]["lost"] == 0
assert len(of("steal")) == m["steals"] and tasks("steal") == m["stolen_in"]
assert tasks("acquire") == m["acquired"]
assert len(of("task")) == m["executed"] - m["in_place"], (len(of("task")), m["executed"], m["in_place"])
assert len(of("idle")) + len(of("termination")) == m["idle_entries"]
assert len(of("termination")) == 4
workers = {e["tid"]: e["pid"] for e in events if e.get("name") == "thread_name"}
assert len(workers) == 4
start = {e["id"]: e for e in events if e["ph"] == "s"}
end = {e["id"]: e for e in events if e["ph"] == "f"}
assert start.keys() == end.keys() and len(start) == m["steals"]
for i in start:
    assert start[i]["tid"] != end[i]["tid"] and workers[start[i]["tid"]] == start[i]["pid"]
assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in events if e["ph"] == "X")
END
done
# For any tasks, each worker is always busy, idle or at the end, and each arrow is within slices.
expect 0 '' "$G" run conf/uts.ini --samples 1 --set run.warmup=0 --set device.cpu.workers=2 \
	--set workload.uts.tree=custom \
	--set workload.uts.depth=10 --trace "$tmp/trace.json"
python3 - "$tmp" <<'END' || fail 'busy spans and arrows'
import json, sys
events = json.load(open(sys.argv[1] + "/trace.json"))["traceEvents"]
assert sum(e["ph"] == "s" for e in events) > 0
for worker in {e["tid"] for e in events}:
    mine = [(e["ts"], e["ts"] + e["dur"], e["cat"]) for e in events if e["ph"] == "X" and e["tid"] == worker]
    state = sorted(e for e in mine if e[2] in ("busy", "idle", "termination"))
    assert state and all(abs(b[0] - a[1]) < 0.002 for a, b in zip(state, state[1:])), state
    for a in (e["ts"] for e in events if e["ph"] in "sf" and e["tid"] == worker):
        assert any(b - 0.0005 <= a <= e + 0.0005 for b, e, _ in state), a
    for b, e, cat in mine: # the slices must be nested
        assert any(s - 0.002 <= b and e <= t + 0.002 for s, t, _ in state), (b, e, cat)
END
# A timeline without tasks shows when workers were busy, and a warning reports the missing tasks.
exec_conf "$tmp/exec.ini" /bin/true
expect 0 "but no tasks: the workers of this workload do not use" "$G" run "$tmp/exec.ini" --samples 1 \
	--trace "$tmp/few.json"
grep -q '"cat":"busy"' "$tmp/few.json" || fail 'no busy spans'
expect 2 'may not be negative' "$G" run conf/uts.ini --trace x --trace-every -1
expect 2 'cannot write .*No such' "$G" run conf/uts.ini --samples 1 --quiet --set workload.uts.tree=custom \
	--trace "$tmp/no/where"
finish
