# SPDX-License-Identifier: Apache-2.0
# The output of the commands conforms to the schemas in docs/schemas, and docs/results.md describes each key in them.
. tests/lib.sh
need python3
small='--set workload.uts.tree=custom --set workload.uts.depth=5 --quiet'
cd "$tmp" && ln -s "$OLDPWD/conf" conf && ln -s "$OLDPWD/docs" docs || exit 1
expect 0 '' "$G" run conf/uts.ini $small --samples 2 --json run.result.json
expect 124 '' "$G" run conf/memset.ini --quiet --samples 2 --set run.timeout=1ms --set workload.memset.tasks=10000000 \
	--json timeout.result.json
expect 0 '' "$G" compare conf/uts.ini $small --vary scheduler.mgws.victim=random,neighbour --blocks 6 \
	--samples-per-block 2 \
	--spread 0s --aa --fail-on 'seconds: slower > 9999%' --bar 'x: seconds(random) / seconds(neighbour) >= 0' \
	--json live.compare.json
expect 0 '' "$G" run -n 2 conf/uts-ranks.ini $small --samples 2 --json ranks.result.json
cp run.result.json copy.result.json
expect 0 '' "$G" compare run.result.json copy.result.json --quiet --json files.compare.json
expect 0 '' "$G" compare "$OLDPWD/tests/data/foreign/nvbench.json" --json foreign.compare.json
expect 0 '' "$G" sweep conf/uts.ini $small --vary device.cpu.workers=1,2 --point 'a=scheduler.mgws.victim=random' \
	--skip 'device.cpu.workers=2: not that' --samples 6 --metric seconds,steals \
	--pareto seconds,cpu_seconds -o lines.sweep.jsonl
for f in run.result.json live.compare.json lines.sweep.jsonl; do
	expect 0 '' "$G" report $f -o "${f%%.*}.report.json"
done
expect 0 '' "$G" papers --quiet --json all.papers.json
for f in "$OLDPWD"/results/*.jsonl; do cp "$f" "$(basename "$f" .jsonl).sweep.jsonl"; done
python3 - <<'END' || fail 'a document is not as its schema says'
import glob, json, re, sys

NAMES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict, "null": type(None)}
KNOWN = {"type", "required", "properties", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs", "$schema", "title"}

def wrong(root, schema, value, at):
    """Returns the first violation of the schema, or None. Supports the parts of JSON Schema that our schemas use."""
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    if "$ref" in schema:
        file, _, place = schema["$ref"].partition("#")
        root = json.load(open("docs/schemas/" + file)) if file else root
        return wrong(root, root["$defs"][place.split("/")[-1]] if place else root, value, at)
    if "anyOf" in schema:
        found = [wrong(root, s, value, at) for s in schema["anyOf"]]
        return None if None in found else max(found, key=len)
    if "const" in schema and value != schema["const"]:
        return "%s: %r is not %r" % (at, value, schema["const"])
    if "enum" in schema and value not in schema["enum"]:
        return "%s: %r is none of %s" % (at, value, schema["enum"])
    kind = schema.get("type")
    if kind and (not isinstance(value, NAMES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return "%s: %.60r is no %s" % (at, value, kind)
    for key in schema.get("required", []):
        if key not in value:
            return "%s: there is no '%s'" % (at, key)
    inner = []
    if isinstance(value, dict):
        for key, v in value.items():
            s = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            inner += [(s, v, "%s.%s" % (at, key))] if s else []
    if isinstance(value, list) and "items" in schema:
        inner = [(schema["items"], v, "%s[%d]" % (at, i)) for i, v in enumerate(value)]
    return next((w for s, v, place in inner for w in [wrong(root, s, v, place)] if w), None)

def keys(schema):
    for k, v in schema.items():
        if k == "properties":
            yield from v
        for inner in v if isinstance(v, list) else [v]:
            if isinstance(inner, dict):
                yield from keys(inner)

failed, page, checked = 0, open("docs/results.md").read(), 0
for name in "result", "compare", "sweep", "report", "papers":
    schema = json.load(open("docs/schemas/%s.json" % name))
    for key in sorted(set(keys(schema))):
        if not re.search(r"\b%s\b" % key, page):
            print("docs/results.md does not speak of %s, which %s.json has" % (key, name))
            failed = 1
    for path in glob.glob("*.%s.json*" % name):
        text = open(path).read()
        for i, document in enumerate([json.loads(l) for l in text.splitlines()] if name == "sweep" else [json.loads(text)]):
            w = wrong(schema, schema, document, "%s line %d" % (path, i + 1))
            checked += 1
            if w:
                print(w)
                failed = 1
# The schemas reject documents without a required key, or with a word in place of a number.
schema = json.load(open("docs/schemas/result.json"))
good = json.load(open("run.result.json"))
for key in schema["required"]:
    if not wrong(schema, schema, {k: v for k, v in good.items() if k != key}, ""):
        print("result.json passes a result without", key)
        failed = 1
good["metrics"]["seconds"]["samples"][0] = "fast"
if not wrong(schema, schema, good, ""):
    print("result.json passes a word for a figure")
    failed = 1
print(checked, "documents and lines")
sys.exit(failed or checked < 15)
END

# A value that names something to load, run or write is taken from a result only with --trust. So each option that takes a
# text or a path needs the flag LOOM_OPT_TRUST, or a reason here why its value may be that of a stranger.
"$G" config schema --json >"$tmp/options.json" || fail 'no schema of the options'
python3 - "$tmp/options.json" <<'END' || fail 'an option has neither LOOM_OPT_TRUST nor a reason'
import json, sys

read_only = {  # files of which only the content is read, as data
    "device_cpu.powercap", "workload_contains.path", "workload_experts.trace", "workload_dispatch.trace",
    "workload_contains.index", "workload_makespan.trace", "workload_ragged.trace"}
names = {  # words that select or describe something, and name no file
    "run.title": "shown in results",
    "device_cuda.arch": "word of the compiler's option -arch", "device_hip.arch": "word of the compiler's option --offload-arch",
    "device_sim.schedule": "order of simulated workers",
    "trigger.provider": "name of a provider that libfabric has already", "trigger.address": "address of a network interface",
    "trigger.sim_dead": "numbers of ranks", "workload_contains.glob": "pattern of names below `path`",
    "workload_contains.word": "the word to search for", "workload_exec.metrics": "names of metrics",
    "workload_exec.expect": "names and values of metrics"}
schema, seen, wrong = json.load(open(sys.argv[1])), set(), 0
rows = [(section, row) for section, rows in schema["core"].items() if section != "sweep"  # rerun.c drops sweeps of a result
        for row in rows]
rows += [(p["name"], row) for p in schema["plugins"] for row in p["options"]]
for owner, row in rows:
    if row["type"] not in ("str", "path"):
        continue
    names_of = {"%s.%s" % (o, row["name"]) for o in (owner, row.get("section"))}
    reasons = names_of & (read_only | set(names))
    seen |= reasons
    if row["trust"] == bool(reasons):
        wrong = 1
        print("%s.%s" % (owner, row["name"]), "has LOOM_OPT_TRUST and a reason against it" if reasons else
              "takes a text: set LOOM_OPT_TRUST if its value is loaded, run or written; else add it to this test with the reason")
built = {p["name"] for p in schema["plugins"]} | {row.get("section") for _, row in rows} | set(schema["core"])
for name in (read_only | set(names)) - seen:
    if name.rsplit(".", 1)[0] in built:
        wrong = 1
        print(name, "is no option any more")
sys.exit(wrong or len(seen) < 15)
END
finish
