# SPDX-License-Identifier: Apache-2.0
# The pages that tools/pages writes say what the source declares. The orders of calls in docs/kinds are those in which the
# core calls the ops of each kind: plugins/recorder.c records the calls. Messages of refused confs are in docs/limits.md.
. tests/lib.sh
need python3
tools/pages --check || fail 'run tools/pages'
# A page that differs from the source is found: another comment, another op, another message.
cp -r core comm conform docs lab plugins tools "$tmp"
sed -i 's/The worker has no task\./The worker has none./' "$tmp/core/include/gpuloom/term.h"
sed -i 's/OP(loom_sched_dev, spawn), //' "$tmp/core/plugin/check.c"
sed -i 's/Reduce workers"/Take fewer"/' "$tmp/plugins/sched_mgws/sched_mgws.c"
(cd "$tmp" && tools/pages --check) >"$tmp/out" 2>&1 && fail 'tools/pages --check accepts pages that are out of date'
for page in docs/kinds/term.md docs/kinds/sched.md docs/limits.md; do
	grep -q "$page" "$tmp/out" || fail "tools/pages --check does not report $page"
done
plain_build 'the recorder is compiled without a sanitizer'
for kind in $(sed -n 's/^\tX(\([A-Z]*\), \([a-z]*\), [a-z]*).*/\1:\2/p' core/include/gpuloom/plugin.h); do
	name=${kind#*:}_recorder
	[ -s "docs/kinds/${kind#*:}.md" ] || fail "no docs/kinds/${kind#*:}.md"
	${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -fPIC -fvisibility=hidden -shared -Wl,-z,defs "-I$B/include" \
		"-DKIND=${kind%:*}" "-DNAME=\"$name\"" "-DOPS=loom_${kind#*:}_ops" tests/plugins/recorder.c -o "$tmp/$name.so" -ldl ||
		fail "the recorder of ${kind#*:}"
done
# matches PAGE FILE...: the calls in each file are in an order that the page allows. Ops that a thread other than the core's
# calls are in a list item of the page that speaks of threads.
cat >"$tmp/matches.py" <<'END'
import re, sys
page = open(sys.argv[1]).read()
notation = re.search(r"^```order\n(.*?)^```", page, re.S | re.M).group(1)
order = re.compile(re.sub(r"\w+", lambda m: "(?:%s )" % m.group(0), notation).replace("(?:", "\0").replace("(", "(?:").replace(
    "\0", "(?:").replace(" )", "\1").replace(" ", "").replace("\n", "").replace("\1", " )"))
items = [item for item in re.split(r"\n(?=- |\n)", page) if "thread" in item]
for path in sys.argv[2:]:
    lines = open(path).read().split("\n")
    for op in {line.split()[0] for line in lines if line.endswith(" elsewhere")}:
        if not any("`%s`" % op in item for item in items):
            sys.exit("%s: %s does not say that another thread calls %s" % (path, sys.argv[1], op))
    calls = "".join(line.split()[0] + " " for line in lines if line)
    if not order.fullmatch(calls):
        sys.exit("%s: not in the order of %s: %s" % (path, sys.argv[1], calls))
END
# record PLUGIN ARGUMENT...: runs a conf that selects the recorder in place of the plug-in, and checks the calls.
runs=0
record() {
	plugin=$1
	shift
	rm -f "$tmp"/calls.*
	[ -e "$B/plugins/$plugin.so" ] || { echo "$plugin: not built"; return; }
	RECORD=$tmp/calls RECORDED=$B/plugins/$plugin.so GPULOOM_PLUGIN_PATH=$tmp "$limit" 120 "$G" run "$@" --samples 2 \
		--set run.warmup=0 --quiet >"$tmp/out" 2>&1 || {
		grep -q userfaultfd "$tmp/out" && echo "$plugin: not available here" && return
		fail "$plugin: $*"
		tail -n 3 "$tmp/out"
		return
	}
	ls "$tmp"/calls.* >/dev/null 2>&1 || { fail "$plugin: no calls were recorded"; return; }
	python3 "$tmp/matches.py" "docs/kinds/${plugin%%_*}.md" "$tmp"/calls.* || fail "$plugin: $*"
	runs=$((runs + 1))
}
small='--set workload.uts.tree=custom --set workload.uts.depth=4'
for p in mgws static counter plan host; do record sched_$p conf/uts.ini $small --set scheduler.use=recorder; done
record sched_mgws -n 2 conf/uts-ranks.ini $small --set scheduler.use=recorder
for p in counter hcounter tree; do record term_$p conf/uts.ini $small --set termination.use=recorder; done
record term_hcounter -n 2 conf/uts-ranks.ini $small --set termination.use=recorder
few='--set device.cpu.workers=2 --set workload.stn.size=32 --set workload.stn.iterations=3'
for p in poll futex wic; do record sync_$p conf/wic.ini $few --set sync.use=recorder; done
for p in central dissemination; do record barrier_$p conf/barrier.ini --set barrier.use=recorder; done
record barrier_dissemination -n 2 conf/barrier.ini --set barrier.use=recorder --set workload.barrier.scope=job --set trigger.use=peer
for p in gputn peer hdn; do record trigger_$p -n 2 conf/pingpong.ini --set workload.pingpong.rounds=50 --set trigger.use=recorder; done
record trigger_gputn -n 2 conf/pingpong.ini --set workload.pingpong.rounds=50 --set trigger.use=recorder --set workload.pingpong.order=random
record qos_split conf/qos/storm.ini --set qos.use=recorder
record qos_budget conf/qos/storm.ini --set 'qos.use=split recorder'
record workload_uts conf/uts.ini --set run.workload=recorder
record workload_makespan conf/uneven/lab.ini --set run.workload=recorder
record workload_pingpong -n 2 conf/pingpong.ini --set run.workload=recorder
record workload_requests_storm conf/qos/storm.ini --set run.workload=recorder
record workload_stn conf/wic.ini $few --set sync.use=futex --set run.workload=recorder
record transport_host conf/uts.ini $small --set transport.use=recorder
record transport_host conf/uts.ini $small --set transport.use=recorder --set run.devices=cpu:0
record device_cpu conf/uts.ini $small --set run.devices=recorder:0
record device_cpu conf/uts.ini $small --set 'run.devices=recorder:0 cpu:0'
record device_cpu conf/uts.ini $small --set 'run.devices=cpu:0 recorder:0'
[ "$runs" -gt 15 ] || fail "only $runs runs were recorded"
# An order that the core never uses is rejected, and a call of a thread that the page does not mention.
printf 'create\ninit\nneed\ndestroy\n' >"$tmp/wrong"
python3 "$tmp/matches.py" docs/kinds/sched.md "$tmp/wrong" >/dev/null 2>&1 && fail 'init before need is accepted'
printf 'create\nneed\ninit elsewhere\ndestroy\n' >"$tmp/wrong"
python3 "$tmp/matches.py" docs/kinds/sched.md "$tmp/wrong" >/dev/null 2>&1 && fail 'init() of any thread is accepted'
# refused SETTING...: the message of a run with these settings is a line of docs/limits.md.
cat >"$tmp/listed.py" <<'END'
import re, sys
text = " ".join(sys.stdin.read().split())
for line in open("docs/limits.md"):
    if line.startswith("- "):
        row = re.sub(r"\\\\(.)", r"\1", line[2:].strip())
        pattern = re.sub(r"\b[A-Z][A-Z_]*\b|\bN(?=th\b)", "\0", row)
        if re.search(".*".join(re.escape(part) for part in pattern.split("\0")), text):
            sys.exit(0)
sys.exit("not in docs/limits.md: " + text)
END
refused() {
	"$limit" 60 "$G" run "$@" >"$tmp/out" 2>&1 && fail "runs: $*"
	python3 "$tmp/listed.py" <"$tmp/out" || fail "$*"
}
refused conf/uts.ini --set 'run.devices=cpu:0 cpu:1' --set transport.host.atomics=no --set scheduler.use=counter \
	--set termination.use=hcounter
refused conf/uts.ini --set 'run.devices=cpu:0 cpu:1' --set transport.host.atomics=no --set termination.use=counter
refused -n 2 conf/uts-ranks.ini --set scheduler.mgws.transfer=id
refused conf/uts.ini --set scheduler.mgws.owners=3
refused -n 2 conf/pingpong.ini --set trigger.use=peer --set workload.pingpong.two_sided=yes
refused conf/fib.ini --set workload.fib.mode=join --set 'run.devices=cpu:0 cpu:1' --set transport.host.atomics=no \
	--set termination.use=hcounter
echo 'gpuloom: error: the moon cannot be reached' | python3 "$tmp/listed.py" 2>/dev/null && fail 'any message is listed'
finish
