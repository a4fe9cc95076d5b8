# SPDX-License-Identifier: Apache-2.0
# Tests simulated GPUs. Two runs give the same result under each scheduler and detector. Random schedules find planted faults,
# and a seed repeats them. Invalid options are rejected.
# With RUNS=N, the script tries N random schedules of each setup, and all faults (make check-sim).
. tests/lib.sh
need python3
[ "$CHECK" = all ] && few=30 || few=10
sh -c 'command -v ${CXX:-c++}' >/dev/null || skip 'no C++ compiler'
keep_programs

# same WORKLOAD OPTION...: two runs must have equal metrics, counters and verdicts.
same() {
	workload=$1
	shift
	for turn in 1 2; do
		expect 0 '' "$G" run "conf/$workload.ini" --set run.devices=sim:0 --samples 2 \
			--json "$tmp/$turn.json" "$@"
	done
	python3 - "$tmp/1.json" "$tmp/2.json" <<'PY' || fail "$workload $*: two runs differ"
import json, sys
one, two = ([d['status'], d['metrics'], d['workers'], [s['seconds'] for s in d['samples']]]
            for d in (json.load(open(path)) for path in sys.argv[1:]))
sys.exit(one != two or one[0] != 'ok')
PY
}
# Tests simulated ranks, which are threads of one process under one clock, with a simulated network.
ranks() {
	[ -e "$B/plugins/trigger_gputn.so" ] || return 0
	small="--set device.sim.workers=2 --set workload.allreduce.bytes=4KiB --set workload.jacobi2d.n=16 --set workload.jacobi2d.sweeps=5"
	small="$small --set workload.sgd.steps=4 --set workload.sgd.accuracy=0 --set workload.msgrate.fires=1000 --set workload.jacobi2d.sweeps=5 --set workload.pingpong.rounds=20"
	for trigger in gputn gds hdn proxy; do
		for job in pingpong jacobi2d msgrate allreduce sgd; do
			expect 0 'verified' "$G" run conf/$job.ini -n 2 --set run.devices=sim:0 --samples 1 \
				--set trigger.use=$trigger $small
		done
		expect 0 'verified' "$G" run conf/allreduce.ini -n 7 --set run.devices=sim:0,sim:1 --samples 2 \
			--set trigger.use=$trigger \
			--set trigger.sim_ranks_per_host=2 --set trigger.sim_hosts_per_leaf=2 \
			--set trigger.sim_jitter=3us --set trigger.sim_loss=2% $small
		# Sums are exact in any order of events.
		expect 0 'verified' "$G" run conf/allreduce.ini -n 3 --set run.devices=sim:0 --samples "${RUNS:-$few}" \
			--set run.warmup=0 \
			--set device.sim.schedule=random:1 --set trigger.use=$trigger $small
	done
	same allreduce -n 16 --set device.sim.workers=3 --set workload.allreduce.bytes=4KiB \
		--set workload.allreduce.algorithm=levels \
		--set workload.allreduce.group=4
	same allreduce -n 20 --set device.sim.workers=2 --set trigger.sim_hosts_per_leaf=2 \
		--set workload.allreduce.bytes=64KiB
	same jacobi2d --set run.ranks=4 --set device.sim.workers=4 --set workload.jacobi2d.n=32
	# Ranks steal from each other through the network. Two runs must give the same times, also for a barrier of all ranks.
	for term in tree hcounter; do
		same uts-ranks -n 16 --set trigger.use=gputn --set termination.use=$term \
			--set workload.uts.tree=custom \
			--set workload.uts.depth=5 --set device.sim.workers=2 --set scheduler.mgws.victim=neighbour
	done
	expect 0 '2 complete, 0 skipped, 0 failed' "$G" run conf/sim/barriers.ini --set sweep.run.ranks=5 \
		--set sweep.barrier.use=tree,auto --set device.sim.workers=3 \
		--json "$tmp/barriers.jsonl"
	expect 1 'an operation with rank 1 failed: Connection timed out' "$G" run conf/pingpong.ini -n 2 \
		--set run.devices=sim:0 $small \
		--set trigger.sim_dead=0-1
	expect 2 'two ranks, as in 0-3' "$G" run conf/pingpong.ini -n 2 --set run.devices=sim:0 \
		--set trigger.sim_dead=0
	expect 4 'choose devices = sim:0' "$G" run conf/pingpong.ini --set trigger.provider=sim
	expect 4 'choose provider = sim' "$G" run conf/pingpong.ini -n 2 --set run.devices=sim:0 \
		--set trigger.provider=tcp
	# An agent makes late posts. Two runs must give the same result.
	for order in fire-first random; do
		for with in gputn hdn; do
			expect 0 verified "$G" run conf/pingpong.ini -n 2 --set run.devices=sim:0 --set trigger.use=$with \
				--set workload.pingpong.rounds=50 --set workload.pingpong.order=$order --samples 2
			cp "$tmp/out" "$tmp/first"
			expect 0 verified "$G" run conf/pingpong.ini -n 2 --set run.devices=sim:0 --set trigger.use=$with \
				--set workload.pingpong.rounds=50 --set workload.pingpong.order=$order --samples 2
			[ "$(grep one_way "$tmp/out")" = "$(grep one_way "$tmp/first")" ] ||
				fail "$with, order = $order: other times in the second run"
		done
		expect 0 verified "$G" run conf/allreduce.ini -n 3 --set run.devices=sim:0 --set device.sim.workers=2 \
			--set device.sim.schedule=random:3 --samples 4 --set run.warmup=0 \
			--set workload.allreduce.order=$order --set workload.allreduce.bytes=16KiB
	done
	for with in hdn gputn; do
		expect 0 verified "$G" run conf/pingpong.ini -n 2 --set run.devices=sim:0 --set trigger.use=$with \
			--set workload.pingpong.rounds=50 --set workload.pingpong.two_sided=yes
	done
	# The stages of a message must add up to the total. With gputn the message arrives before the kernel has ended.
	expect 0 stage_total "$G" run -v conf/sim/figure-08.ini --no-sweep
	awk '{ at[$1] = $2 * ($3 == "us" ? 1000 : 1) }
		END { total = at["stage_launch_p50"] + at["stage_kernel_p50"] + at["stage_target_p50"] - at["stage_total_p50"]
			exit !(total * total < 25 && at["stage_target_p50"] < at["stage_end_p50"]) }' "$tmp/out" ||
		{ fail 'the stages of a message'; cat "$tmp/out"; }
	expect 0 verified "$G" run conf/jacobi2d.ini -n 4 --set run.devices=sim:0 --set workload.jacobi2d.local=12 \
		--set workload.jacobi2d.sweeps=5
	expect 2 'make no square grid' "$G" run conf/jacobi2d.ini -n 2 --set run.devices=sim:0 --set workload.jacobi2d.local=12
	expect 2 'without a launcher' env PMI_SIZE=2 "$G" run conf/pingpong.ini --set run.devices=sim:0
	expect 0 'gputn, 4000ns .*us' "$G" run conf/sim/figure-08.ini --set sweep.workload.pingpong.compute=3000ns,4000ns \
		--json "$tmp/f8.jsonl" --set sweep.report="$tmp/f8.svg" # a sweep over triggers, of two ranks each
	expect 2 'comparisons have one rank' "$G" compare conf/sim/gputn-paper.ini --vary trigger.use=gputn,gds
	expect 2 'ranks is 1 to 1024 where ranks are processes' "$G" run conf/pingpong.ini --set run.ranks=2000
}
ranks
case $B in */thread) finish ;; esac # ThreadSanitizer needs only the tests of several threads

mkdir "$tmp/docs"
for i in $(seq 50); do
	seq "$i" $((i + i % 17 * 20)) | sed 's/3$/zwischen/' >"$tmp/docs/$i"
done
same fib --set workload.fib.n=14
same uts --set workload.uts.tree=custom --set workload.uts.depth=5 --set termination.use=tree \
	--set 'run.devices=sim:0 sim:1' --set transport.use=p2p
same memset --set scheduler.use=static --set termination.use=hcounter --set workload.memset.tasks=20000
same contains --set "workload.contains.path=$tmp/docs" --set 'workload.contains.glob=*' \
	--set workload.contains.load=ahead --set termination.use=hcounter --set 'run.devices=sim:0 sim:1' \
	--set transport.host.atomics=no --set device.sim.workers=9
# Compares the search of GPUs with that of the check, for words of one byte, repeated words, words at the end of a text, and
# whole words.
for word in w ww 33 3zwischen zwischen 19; do
	for match in substring word; do
		expect 0 verified "$G" run conf/contains.ini --set run.devices=sim:0 --samples 1 \
			--set device.sim.workers=3 \
			--set "workload.contains.path=$tmp/docs" --set 'workload.contains.glob=*' \
			--set workload.contains.load=ahead \
			--set "workload.contains.word=$word" --set workload.contains.match=$match
	done
done

# The microbenchmarks measure the latencies that the conf of the simulated device sets.
costs='load_local=210 load_host=1110 load_peer=810 store_local=11 store_host=21 store_peer=31 atomic_local=220 atomic_host=1320
	atomic_peer=930 fence_dev=101 fence_sys=701 stream=29'
set_costs=
for cost in $costs; do set_costs="$set_costs --set device.sim.${cost}ns"; done
expect 0 'workers = 4' "$G" doctor --profile 'sim:0 sim:1' --set device.sim.workers=4 $set_costs
for cost in $costs; do
	grep -qx "${cost%=*} = ${cost#*=}ns" "$tmp/out" || fail "profile: $cost: $(grep "^${cost%=*} " "$tmp/out")"
done
expect 0 '^load_local = ' "$G" doctor --profile cpu:0 --set device.cpu.workers=1
cp "$tmp/out" "$tmp/profile.ini"
expect 0 verified "$G" run conf/fib.ini "$tmp/profile.ini" --set run.devices=sim:0 --set workload.fib.n=10 --samples 1
expect 2 'nothing:0' "$G" doctor --profile nothing:0
expect 2 'plug-in folder of plugin_path' "$G" doctor --profile cpu:0 --plugin-path "$tmp/none"
expect 2 'requires --profile' "$G" doctor --set device.cpu.workers=1

# Random schedules with small queues, so that rare paths are common.
setups='
fib n=9 workers=4 local_queue=2 public_queue=2 backlog=1
uts workers=3 local_queue=2 public_queue=2 backlog=1 in_place_depth=0
fib n=8 workers=4 local_queue=2 public_queue=1 backlog=1 owners=2
fib n=11 workers=4 local_queue=2 public_queue=4 backlog=1 transfer=id
noncoherent fib n=7 workers=2 local_queue=2 public_queue=4 backlog=1
noncoherent memset tasks=30 workers=3 local_queue=2 public_queue=4 backlog=1
fib n=8 workers=3 local_queue=2 public_queue=1 backlog=1 in_place_depth=0
ranks uts workers=2 local_queue=2 public_queue=2 backlog=1
ranks fib n=7 workers=1 local_queue=2 public_queue=1 backlog=1 in_place_depth=0
ranks synthetic tasks=30 workers=1 local_queue=2 public_queue=4 backlog=1
'
play() { # RUNS SEED SETUP ARGUMENT...: prints the messages
	runs=$1 seed=$2 options=
	for o in $3; do
		case $o in
		noncoherent) set_to="run.devices=sim:0,sim:1 --set transport.host.atomics=no" ;;
		ranks) set_to="run.ranks=3 --set run.tasks=shared --set trigger.use=gputn" ;;
		fib | uts | memset | synthetic) set_to=run.workload=$o ;;
		n=*) set_to=workload.fib.$o ;;
		tasks=*) set_to="workload.memset.$o --set workload.synthetic.$o" ;;
		workers=*) set_to=device.sim.$o ;;
		*) set_to=scheduler.mgws.$o ;;
		esac
		options="$options --set $set_to"
	done
	shift 3
	"$limit" 500 "$G" run conf/fib.ini "$tmp/tree.ini" --set "device.sim.schedule=random:$seed" \
		--samples "$runs" --json "$tmp/play.json" $options "$@" 2>&1 >/dev/null
}
cat >"$tmp/tree.ini" <<'INI'
[device.sim]
limit = 100ms
[workload.uts]
tree = custom
type = binomial
b0 = 9
q = 0.1
m = 6
[workload.synthetic]
spawn = 0
depth = 0
[run]
devices = sim:0
INI

# The schedulers run without faults. Non-coherent devices work only with some detectors.
[ "${RUNS:-}" ] && some=1,99p || some=2p\;3p\;6p\;9p
echo "$setups" | sed -n "$some" | while read -r setup; do
	case $setup in '') continue ;; noncoherent* | ranks*) terms='hcounter tree' ;; *) \
		terms='counter tree hcounter' ;; esac
	for term in $terms; do
		[ "${RUNS:-}" ] || [ "$term" = "${terms%% *}" ] || continue
		play "${RUNS:-${few}0}" 1 "$setup" --set termination.use=$term || { echo "$term: $setup"; exit 1; }
	done
done || fail 'random schedules'

# spoil NAME [ranks:]DETECTOR FILE FUNCTION OLD NEW: random schedules must find the fault, and its seed must repeat it.
spoil() {
	case $1 in
	'the end wakes '*) return ;;                  # GPUs do not sleep
	'each rank claims by a word of its own') return ;; # with RMA each rank has a word of its own anyway
	'no check before an attempt') return ;;    # the fault shows only when a counter wraps, which needs a narrower counter
	'idle while thieves copy' | 'votes before the children' | 'a device stays full') ;;
	*) [ "${RUNS:-}" ] || return 0 ;;
	esac
	rm -rf "$tmp/plugins" && mkdir "$tmp/plugins" &&
		cp -r plugins/sched_mgws plugins/sched_common plugins/term "$tmp/plugins/"
	python3 tests/spoil.py "$(find "$tmp/plugins" -name "$3")" "$4" "$5" "$6" ||
		{ fail "$1: not one such place in $4() of $3"; return; }
	case $1 in 'a request is granted twice') # only one worker of a GPU grants requests, so this check must be removed, too
		python3 tests/spoil.py "$tmp/plugins/sched_mgws/mailbox.dev.h" mgws_request_pending '> 0' '>= 0' ;;
	esac
	use= term=${2#*:}
	for part in sched_mgws "term_$term"; do
		case $part:$3 in
		sched_*:term_* | term_*:[!t]*) continue ;; # the plug-in is unchanged
		sched_*) use="$use --set scheduler.use=$tmp/plugins/$part.so" ;;
		*) use="$use --set termination.use=$tmp/plugins/$part.so" ;;
		esac
		${CC:-cc} -std=gnu11 -O0 -w -fPIC -shared "-I$B/include" -I. -I"$tmp/plugins/sched_mgws" -I"$tmp/plugins/sched_common" \
			-I"$tmp/plugins/term" -D_GNU_SOURCE "$(find "$tmp/plugins" -name "$part.c")" -o \
			"$tmp/plugins/$part.so" || { fail "$1 does not compile"; return; }
	done
	runs=${RUNS:-1000}
	[ "$1" != 'does not scan again' ] || [ "$runs" -gt 8000 ] || runs=8000 # the fault shows only if an answer comes late
	echo "$setups" | while read -r setup; do
		case $2:$setup in *: | counter:noncoherent* | counter:ranks* | hcounter:[!n]* | ranks:*:[!r]*) \
			continue ;; esac
		play "$runs" 1 "$setup" --set "termination.use=$term" $use >"$tmp/found" && continue
		echo "$setup" >"$tmp/setup"
		exit 1
	done && { fail "$1 was not found"; return; }
	seed=$(sed -n 's/.*random:\([0-9]*\) repeats it.*/\1/p' "$tmp/found" | head -n 1)
	play 1 "${seed:-0}" "$(cat "$tmp/setup")" --set "termination.use=$term" $use >"$tmp/again"
	cmp -s "$tmp/found" "$tmp/again" ||
		{ fail "$1: seed '$seed' does not repeat it"; cat "$tmp/found" "$tmp/again"; }
	echo "found: $1: $(cat "$tmp/setup"): random:$seed"
}
. tests/mutants.sh

# spoil_trigger NAME TRIGGER 'JOB OPTION...' FUNCTION OLD NEW: like spoil, with a fault in nic.dev.h.
spoil_trigger() {
	case $1 in 'ends of a kernel'*) ;; *) [ "${RUNS:-}" ] || return 0 ;; esac
	rm -rf "$tmp/plugins" && mkdir "$tmp/plugins" && cp -r plugins/trigger_nic plugins/trigger_common "$tmp/plugins/"
	python3 tests/spoil.py "$tmp/plugins/trigger_common/nic/nic.dev.h" "$4" "$5" "$6" ||
		{ fail "$1: not one such place in $4()"; return; }
	objects=$(ls "$B"/obj/plugins/trigger_common/nic/*.o "$B"/obj/plugins/trigger_common/fabric/*.o \
		"$B"/obj/plugins/trigger_common/simnet/*.o)
	(cd "$tmp/plugins/trigger_nic" &&
		${CC:-cc} -std=gnu11 -O0 -w -fPIC -c -I"$B/include" -I"$OLDPWD" -I. -I../trigger_common/nic -D_GNU_SOURCE \
		"trigger_$2.c" -o "$tmp/plugins/trigger_$2.o") &&
		${CC:-cc} -shared "$tmp/plugins/trigger_$2.o" $objects "$B/obj/lib/child.o" -lfabric \
		-lpthread -ldl \
			-o "$tmp/plugins/trigger_$2.so" || { fail "$1 does not compile"; return; }
	job=${3%% *}
	options=
	for o in ${3#* }; do options="$options --set $o"; done
	once() {
		"$G" run "conf/$job.ini" -n 2 --set run.devices=sim:0 --set run.warmup=0 --set device.sim.limit=20ms \
			--set "trigger.use=$tmp/plugins/trigger_$2.so" --samples "$1" \
			--set "device.sim.schedule=random:$3" $options 2>&1 >/dev/null
	}
	once "${RUNS:-300}" "$2" 1 >"$tmp/found" && { fail "$1 was not found"; return; }
	seed=$(sed -n 's/.*random:\([0-9]*\) repeats it.*/\1/p' "$tmp/found" | head -n 1)
	[ "$seed" ] || { fail "$1: $(cat "$tmp/found")"; return; }
	once 1 "$2" "$seed" >"$tmp/again"
	cmp -s "$tmp/found" "$tmp/again" ||
		{ fail "$1: seed '$seed' does not repeat it"; cat "$tmp/found" "$tmp/again"; }
	echo "found: $1: $job: random:$seed"
}
if [ -e "$B/plugins/trigger_gputn.so" ]; then
	rate='msgrate device.sim.workers=4 workload.msgrate.fires=64 workload.msgrate.per=8'
	grid='jacobi2d device.sim.workers=3 workload.jacobi2d.n=8 workload.jacobi2d.sweeps=4'
	steps() { echo "({ uint64_t n_ = loom_load_relaxed_dev($1); loom_store_relaxed_dev($1, n_ + $2); n_; })"; }
	spoil_trigger 'ends of a kernel are counted in two steps' hdn "$grid" nic_kernel_end \
		'loom_fetch_add_acq_rel_dev(&d->arrived, (uint64_t)1)' "$(steps '&d->arrived' 1)"
	spoil_trigger 'nobody waits for a place in the FIFO' gputn "$rate trigger.fifo=2" nic_take_slot \
		'nic_await_slot(c, ring, tail, entries, *n)' 0
	spoil_trigger 'slots of the FIFO are taken in two steps' gputn "$rate device.sim.workers=17" nic_take_slot \
		'loom_take_ticket_dev(&ring->head)' "$(steps '&ring->head' 1)"
fi

# docs/simulation.md and docs/uneven.md must have the figures that the confs give. Without ALL=1 only the quick ones are
# checked. On a busy machine a run may take ten minutes. The message of a time-out names the rank that waits.
if [ -e "$B/plugins/trigger_gputn.so" ]; then
	python3 tests/simulated.py "$B" ${ALL:+all} >"$tmp/figures" ||
		{ fail 'docs_F6: figures of docs/simulation.md and docs/uneven.md'; cat "$tmp/figures"; }
	for conf in conf/sim/*.ini; do
		expect 0 '^run.timeout=10m$' "$G" config show "$conf"
	done
	expect 124 '^gpuloom: error: rank [0-9]+: no end after 0.05 s' "$G" run conf/sim/gputn-paper.ini \
		--set workload.pingpong.rounds=100000 --set run.timeout=50ms
	if [ -n "${ALL-}" ]; then
		timeout 900 "$G" run conf/sim/allreduce-1024.ini 2>&1 | grep -q verified || fail 'docs_F5: 1,024 ranks'
	fi
fi

# More workers are faster, since each has its own virtual time.
python3 - "$G" <<'PY' || fail '64 workers are not 30 times as fast as one'
import json, subprocess, sys
def seconds(workers):
    out = subprocess.run([sys.argv[1], 'run', 'conf/sim/h200.ini', '--samples', '1', '--set', 'run.warmup=0', '--quiet',
                          '--set', f'device.sim.workers={workers}', '--json', '-'], capture_output=True, text=True)
    return json.loads(out.stdout)['samples'][-1]['seconds']
sys.exit(seconds(1) < 30 * seconds(64))
PY

# sync_poll polls without a pause. PCT must still run the worker for which it waits.
for probe in load atomic; do
	expect 0 verified "$G" run conf/wic.ini --set 'run.devices=sim:0 sim:1' --set device.sim.workers=2 \
		--set sync.use=poll --set sync.poll.probe=$probe --set device.sim.schedule=random:1
done
expect 4 'sync_futex has host threads' "$G" run conf/wic.ini --set 'run.devices=sim:0 sim:1' --set sync.use=futex
expect 4 'sync_wic has host threads' "$G" run conf/wic.ini --set 'run.devices=sim:0 sim:1'
expect 4 'cpu:0 runs in real time' "$G" run conf/fib.ini --set 'run.devices=cpu:0 sim:0'
expect 2 'set schedule, memory, stall and limit in \[device.sim\]' "$G" run conf/fib.ini --set 'run.devices=sim:0 sim:1' \
	--set device.sim.1.stall=1s
expect 2 'use time, or random:SEED' "$G" run conf/fib.ini --set run.devices=sim:0 --set device.sim.schedule=often
expect 4 'no C\+\+ compiler can be run \(/nowhere\)' env CXX=/nowhere "$G" run conf/fib.ini --set run.devices=sim:0
finish
