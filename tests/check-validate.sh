# SPDX-License-Identifier: Apache-2.0
# The conformance suite finds planted faults. Each plug-in of tests/broken/ has one fault, and the test named here must find
# it. Plug-ins without faults, those of the tree and of new-plugin, must pass.
. tests/lib.sh

# a row has the fixture, the test that finds the fault, and a pattern of its message
table='
term_constructor abi.entry_pure descriptors
term_exports abi.exports term_exports_helper
term_row abi.rows share.a.field
term_null life.destroy_null SIGSEGV,.access.to.a.null.pointer.*in.term_null.so.at.offset
term_leak life.create_destroy descriptors
term_block_leak life.create_destroy blocks
term_heap life.create_destroy memory stay
term_padding blocks.init padding
term_reset blocks.init LOOM_NEED_RESET
term_twice life.create_destroy freed
term_shared life.two_instances one
term_prints life.quiet created
term_handler life.quiet SIGUSR1
term_environment life.quiet environment
term_options life.options_const option.struct
term_no_check life.out_of_memory SIGSEGV.*allocation.1
term_edge life.option_edges SIG(ILL|TRAP).*report.=.no
term_mute life.option_edges sentence
term_need blocks.need another.answer
term_huge blocks.need requests
term_unsteady blocks.init starting.state
term_overrun blocks.init behind
term_early term.orders early.end
term_never term.orders missing.end
term_late term.late missing
term_once term.orders early.end|and.then.0.again
term_first term.orders LOOM_TERM_MAY_SLEEP
term_weak term.steals ThreadSanitizer
term_no_busy term.orders early.end
term_no_reset term.orders early.end
term_raw term.orders loom_ref
term_lanes term.lanes end
sched_loses sched.each_task_once lost|never.run
sched_twice sched.each_task_once more.than.once
sched_keeps_record sched.each_task_once copy|more.than.once|never.run|lost|not.found
sched_leaves sched.each_task_once before.the.detector
sched_miscounts sched.each_task_once counts
sched_not_busy sched.each_task_once busy
sched_odd sched.initial_set lost|never.run
sched_full sched.tiny_queues lost|never.run
sched_overrun sched.tiny_queues behind
sched_no_join sched.joins of.a.join.did.not.run
sched_anywhere sched.affinity affinity.excludes
sched_misnames sched.affinity failed.the.run:.every.queue.is.full
sched_refuses sched.tiny_queues has.not.failed.the.run
sched_no_stop sched.stop stop.flag
sched_weak sched.each_task_once ThreadSanitizer
sched_uncounted stack.explored race:|too.early
transport_dirty transport.segments zeroed
transport_overlap transport.segments overlap
transport_unaligned transport.segments aligned
transport_owner transport.segments belongs
transport_keeps transport.segments mapped
transport_descriptor transport.release descriptors
transport_blind transport.failing refused
transport_private transport.coherence host
device_dirty device.memory zeroed
device_leak device.memory mappings
device_local device.samples c->local
device_twice device.samples lanes
device_context device.samples first
device_random device.samples loom_random
device_is_persistent device.persistent wait
device_too_soon device.hidden c->own
device_too_soon device.embeds SIGSEGV
device_lossy device.copies copy_out
device_half abi.load lacks..rest.*extension..kept
device_keeps device.shape LOOM_SHAPE_KEEPS
device_shares device.keys another.kind
device_shares device.adopt LOOM_ENOENT
device_energy device.reports energy
device_interrupt device.streams sentence
device_clock device.samples outside.of.the.sample
device_kind device.shape kind.77
device_repeat device.instances repeat
device_early device.wait wait
device_late device.wait wait
device_no_wake device.wait wake
workload_overrun workload.tasks more.than
workload_tag workload.tasks tag
workload_picky workload.verify rejects
workload_stale workload.verify rejects
workload_blind workload.rejects no.task
workload_sloppy workload.rejects corrupted|not.run
workload_code workload.rejects LOOM_EWRONG
workload_exits workload.verify ended.the.process
workload_silent workload.verify no.enum.loom_err
workload_lacks abi.load lacks.a.name.or.an.address
workload_plain workload.alone loom_own_add
barrier_early barrier.rounds early.release
barrier_device barrier.device early.release
barrier_lanes barrier.lanes early.release
barrier_no_stop barrier.stop stop.flag
barrier_no_died barrier.died LOOM_EDIED
barrier_hasty barrier.split early.release
barrier_endless barrier.deadline deadline
barrier_again barrier.deadline deadline.of.5.ms.returns.0
barrier_blames barrier.deadline names.worker
barrier_mixes barrier.groups early.release|not.released
barrier_stays barrier.drop not.released
barrier_weak barrier.rounds ThreadSanitizer
sync_early sync.wait_first wrong.byte
sync_naps sync.soon late.wake-up
sync_weak sync.wait_first ThreadSanitizer
sync_short sync.publish_first wrong.byte
sync_late sync.deadline deadline
sync_no_stop sync.stop stop.flag
sync_fails sync.wait_first failed.the.run:.every.queue.is.full
sync_patient sync.full deadline
sync_readers sync.many wrong.byte|lost.wake-up
trigger_early trigger.threshold threshold
trigger_twice trigger.threshold complete
trigger_weak trigger.threshold ThreadSanitizer
trigger_forgets trigger.fire_first complete
trigger_order trigger.chain order
trigger_loses trigger.race complete
trigger_deaf trigger.arrivals LOOM_TAG_ARRIVAL
trigger_joins trigger.chain chained
trigger_wild trigger.arguments beyond.the.window
trigger_lenient trigger.refuses accepts
trigger_drops trigger.refuses post
qos_generous qos.bounds requests
qos_spins qos.bounds time
qos_frequent qos.bounds frequent
qos_nowhere qos.bounds core
'
# The plug-ins of the tree must pass. Options that create() needs are in a conf beside the plug-in.
sound() {
	level=3 # in `make check` only these plug-ins are tested with threads halted at any instruction
	case $CHECK:$1 in all:* | *:sched_mgws | *:term_* | *:barrier_auto | *:sync_wic) level=4 ;; esac
	"$limit" 600 "$G" validate "$@" --level $level --quiet --jobs 2 --timeout 10m >"$tmp/out" 2>&1 </dev/null
	case $? in
	0 | 4) ;;
	*) fail "$1 does not conform"; sed 's/^/    /' "$tmp/out" ;;
	esac
}
# sync_options ARGUMENT...: other options of the sync plug-ins. The test of halted threads takes long where workers poll, so
# `make check` runs it for sync_wic only.
sync_options() {
	while read -r name options; do
		rough=
		case $CHECK:$name in
		all:* | :sync_wic) ;;
		rest:sync_wic) continue ;;
		rest:*) rough='--only sync.rough' ;;
		*) rough='--skip sync.rough' ;;
		esac
		case $rough in --only*) ;; *) rough="--only sync $rough" ;; esac
		sound "$name" $options --skip sync.fuzz $rough
	done <<'END'
sync_poll --set probe=atomic
sync_backoff --set wait=spin
sync_backoff --set wait=nap
sync_futex --set polls=50
sync_wic --set mode=copy
sync_wic --set eager=no
sync_wic --set eager=no --set mode=copy
sync_wic --set companions=2
sync_wic --set activate=monitor
sync_wic --set activate=monitor --set mode=copy --set shards=4
END
}
in_check || { # `make check` has run the rest
	sync_options
	finish
}
echo "$table" | grep . >"$tmp/table"
n=0
tsan=$(${CC:-gcc} -print-file-name=libtsan.so)
sanitizer=$(ldd "$G" | grep -oE 'lib[at]san' | head -1)
case $tsan$sanitizer in /*san.so) ;; *) tsan= ;; esac
[ -n "$sanitizer" ] && without="cannot be loaded beside $sanitizer" || without='is missing'
[ -n "$tsan" ] || echo "not tested: weak memory orders, because libtsan $without"
while read -r fixture test says; do
	n=$((n + 1))
	so=$B/tests/broken/$fixture.so
	[ -e "$so" ] || { fail "no fixture $fixture"; continue; }
	preload= timeout=
	# Workers of these plug-ins spin until the test gives up, so the test is to give up early.
	case $fixture in
	term_lanes | sched_no_stop | barrier_no_stop | barrier_endless | barrier_stays | sync_no_stop | sync_readers | \
		sync_patient)
		timeout='--timeout 3s'
		;;
	esac
	case $fixture in # only ThreadSanitizer finds weak memory orders, so its library is needed
	*_weak) [ -n "$tsan" ] || continue; preload=$tsan ;;
	term_heap)
		[ -z "$sanitizer" ] || { echo "not tested: $fixture: mallinfo2() of $sanitizer counts no memory"; continue; }
		;;
	esac
	# On a busy machine, naps may end by chance when an item comes. Three such items are enough to miss the fault.
	case $fixture in sync_naps) tries=5 ;; *) tries=1 ;; esac
	got=0
	while [ $got -ne 5 ] && [ $tries -gt 0 ]; do
		TSAN_OPTIONS=halt_on_error=1 LD_PRELOAD=$preload "$limit" 100 "$G" validate "$so" \
			--only "$test" $timeout >"$tmp/out" 2>&1 </dev/null
		got=$?
		tries=$((tries - 1))
	done
	[ $got -eq 5 ] || { fail "$fixture: $test does not catch it (exit $got)"; continue; }
	tr '\n' ' ' <"$tmp/out" | grep -qE "(failed|crashed|timeout) +$test .*($says)" ||
		{ fail "$fixture: $test does not say '$says'"; sed 's/^/    /' "$tmp/out"; }
done <"$tmp/table"
for so in "$B"/tests/broken/*.so; do
	name=$(basename "$so" .so)
	grep -q "^$name " "$tmp/table" || fail "$name.so is in no row of the table"
done
echo "$n broken plug-ins"
# A run, which validates nothing, refuses answers that would crash the core or give a false time, in a sentence that names the
# plug-in. A plug-in that ends the process does not look like a run that has succeeded.
lying() { expect "$1" "$2" "$G" run contains --samples 1 --set "$3=$B/tests/broken/$4.so$5"; }
lying 2 'transport_owner: segments\(\) gives other memory than was requested .segment 1' transport.use transport_owner
lying 2 'shape\(\) of device_kind offers .* kind 77, which is impossible' run.devices device_kind :0
lying 2 'wait\(\) of device_clock returned 0 ns as the end' run.devices device_clock :0
lying 2 'workload_silent: verify\(\) returned 3 .* without a reason' run.workload workload_silent
lying 2 'task function 0 of 1 of plug-in .workload_lacks. lacks' run.workload workload_lacks
lying 1 'has called exit\(\), so there is no result' run.workload workload_exits
# A crash is located: worker, file, and function with line if the file has them. An overflow of the stack has a name.
case $B in *address* | *thread* | *undefined*) ;; *)
	crashes=$B/tests/plugins/workload_crashes.so where='in workload_crashes.so at offset 0x[0-9a-f]+'
	expect 5 "worker [0-9] of dev:[0-9] overflowed its stack .SIGSEGV., $where .deeper, workload_crashes.c:[0-9]+\)" \
		"$G" validate "$crashes" --set way=stack --only workload.verify
	expect 5 "in libc.*, called by ${where#in } .kernel, workload_crashes.c:[0-9]+\)" \
		"$G" validate "$crashes" --set way=libc --only workload.verify ;;
esac
# The cause of a failed run is in the words of explain(). If tasks are lost, the message names the scheduler.
expect 5 'raise .workload.fib. frames' "$G" validate workload_fib --set mode=join --set frames=1 --only workload.verify
expect 3 'were run: sched_refuses has lost tasks' "$G" run conf/fib.ini --samples 1 --set run.warmup=0 \
	--set scheduler.use="$B/tests/broken/sched_refuses.so" --set scheduler.refuses.queue=4

for so in "$B"/plugins/*.so; do
	name=$(basename "$so" .so)
	case $name in
	device_sim) [ "$CHECK" = all ] && sound "$name" || sound "$name" --skip device.embeds ;; # this compiles for seconds
	workload_barrier) sound "$name" --with conf/barrier.ini ;;
	workload_reduce) sound "$name" --with conf/reduce.ini --set floats=4096 ;;
	workload_contains) sound "$name" --with conf/contains.ini --skip stack ;;
	workload_exec) sound "$name" --set command=true --skip workload.rejects ;; # this workload has no result in memory
	workload_fib) sound "$name" --set n=20 ;;
	workload_memset) sound "$name" --set tasks=5000 ;;
	workload_synthetic) sound "$name" --set tasks=100 --set length=10 ;;
	workload_uts) sound "$name" --set tree=custom ;;
	workload_ragged) sound "$name" --set length=50 ;;
	workload_experts) sound "$name" --set tokens=16 --set dim=32 --set hidden=48 --set rows=16 ;;
	workload_makespan) sound "$name" --set tasks=50 --set mean=1us ;;
	trigger_peer | trigger_gputn) sound "$name" ;;
	# Their create(), destroy() and options are those of trigger_gputn (NIC_PLUGIN), and these tests are slow.
	trigger_*) sound "$name" --skip life.create_destroy --skip life.option_edges --skip life.option_mix ;;
	*) sound "$name" ;;
	esac
done
sound sched_static --with conf/fib.ini --only stack
sound device_cpu --set spin=0us --only device --skip device.fuzz
sync_options

# New plug-ins build out of the tree, with the headers of the gpuloom that made them or through pkg-config, and pass.
sed -e "s|@PREFIX@|$PWD/core|; s|@LIBDIR@|$B|; s|@VERSION@|0|" tools/gpuloom.pc.in >"$tmp/gpuloom.pc"
for kind in device transport sched term sync barrier trigger qos workload; do
	"$G" new-plugin $kind fresh --dir "$tmp/$kind" >/dev/null || fail "new-plugin $kind"
	PKG_CONFIG_PATH=none make -s -C "$tmp/$kind" >"$tmp/make" 2>&1 ||
		{ fail "new-plugin $kind does not build"; cat "$tmp/make"; }
	sound "$tmp/$kind/${kind}_fresh.so"
	expect 0 fresh "$G" describe "$tmp/$kind/${kind}_fresh.so"
done
# A device whose memory the host cannot access: the author of one starts with this option of the template.
fresh=$tmp/device/device_fresh.so
sound "$fresh" --set memory=private --only device --skip device.fuzz
for conf in contains fib uts memset barrier; do
	expect 0 'verified' "$G" run $conf --samples 1 --set run.warmup=0 --set run.devices="$fresh:0" \
		--set device.fresh.memory=private --set transport.use=p2p
done
expect 4 'set transport.use = host' "$G" run contains --set run.devices="$fresh:0 $fresh:1" \
	--set device.fresh.memory=private --set transport.use=p2p
# A device takes the place of each device of the conf, which may be named as in other commands; --set applies there, too.
expect 0 'passed +stack.runs' "$G" validate "$fresh" --only stack --with contains --set memory=private
printf 'include = %s\n[run]\ndevices = cpu:0\n[transport]\nuse = p2p\n' "$PWD/conf/contains.ini" >"$tmp/p2p.ini"
expect 5 'failed +stack.runs' "$G" validate "$B/tests/broken/device_too_soon.so" --only stack --with "$tmp/p2p.ini"
expect 2 "did you mean 'contains'" "$G" validate "$fresh" --only stack --with contans
expect 0 'verified' "$G" run conf/fib.ini "$tmp/device/device_fresh.ini" --samples 1 --set workload.fib.n=15
# The README's command also tests a perturbed copy and a copy for the thread sanitizer.
make -s -C "$tmp/term" check GPULOOM="$G" $([ -n "$tsan" ] || echo TSAN=) >"$tmp/make" 2>&1 || { fail 'make check of a new plug-in'; cat "$tmp/make"; }
# Plug-ins whose workers all change one word refuse devices that are not coherent.
[ -z "$tsan" ] || { # tasks nest deeply in the workers of small queues, and the frames of this copy are large
	make -s -C "$tmp/sched" races/sched_fresh.so || fail 'a copy for the thread sanitizer'
	expect 0 '1 passed' env LD_PRELOAD="$tsan" "$G" validate "$tmp/sched/races/sched_fresh.so" --only sched.each_task_once \
		--set queue=1
}
apart='--set transport.use=p2p --set transport.p2p.atomics=no --set workload.fib.n=10'
expect 4 'sched_fresh: the devices are non-coherent' "$G" run conf/fib.ini $apart --set termination.use=tree \
	--set scheduler.use="$tmp/sched/sched_fresh.so"
expect 4 'term_fresh: the devices are non-coherent' "$G" run conf/fib.ini $apart \
	--set termination.use="$tmp/term/term_fresh.so"
# A program with joins is verified with the scheduler of the template, also if its queue is full.
expect 0 'verified' "$G" run conf/fib.ini --set workload.fib.mode=join --set workload.fib.n=15 \
	--set scheduler.use="$tmp/sched/sched_fresh.so" --set scheduler.fresh.queue=2
expect 0 'qos_fresh_served' "$G" run -v conf/qos/storm.ini "$tmp/qos/qos_fresh.ini" --samples 1 --set run.warmup=0
touch "$tmp/term/term_fresh.c"
sed -i "s|wildcard [^)]*|wildcard $tmp/none|" "$tmp/term/Makefile"
touch "$tmp/term/term_fresh.c"
PKG_CONFIG_PATH=$tmp make -s -C "$tmp/term" >"$tmp/make" 2>&1 || { fail 'headers through pkg-config'; cat "$tmp/make"; }
expect 2 'did you mean' "$G" new-plugin shed mine
expect 2 'cannot make' "$G" new-plugin term mine --dir "$tmp/term"

# A leak is not taken for memory of another instance.
expect 5 'destroy\(\) leaves 1 block behind' "$G" validate "$B/tests/broken/term_block_leak.so" --only life.two_instances
# Options are those of the plug-in.
expect 2 "unknown key 'victm'.*did you mean 'victim'" "$G" validate mgws --only abi.load --set victm=none
expect 2 "'x' is none of" "$G" validate mgws --only abi.load --set victim=x
expect 2 'OPTION=VALUE' "$G" validate mgws --only abi.load --set scheduler.mgws.victim=none

# A plain copy of a wrong detector passes, as nothing runs between two accesses. The report says which copy finds the fault.
mkdir "$tmp/plain"
cc -std=gnu11 -D_GNU_SOURCE -O1 "-I$B/include" "-I$B/tests/broken" -fPIC -fvisibility=hidden -shared \
	"$B/tests/broken/term_once.c" -o "$tmp/plain/term_once.so" || fail 'a plain copy of term_once'
expect 0 'copy that is compiled with -DLOOM_PERTURB' "$G" validate "$tmp/plain/term_once.so" --jobs 2
"$G" validate "$B/tests/broken/term_once.so" --skip term >"$tmp/out" 2>&1 || fail 'term_once without the tests of detectors'
! grep LOOM_PERTURB "$tmp/out" || fail 'a perturbed copy is taken for a plain one'

# The verdicts have several output formats. A seed repeats a case.
so=$B/tests/broken/term_early.so
expect 5 '"conforms":.*false' "$G" validate "$so" --only term.orders --json
expect 5 '^how to fix failures: docs/kinds/term.md' "$G" validate "$so" --only term.orders
"$G" validate "$so" --only term.orders --json 2>/dev/null | python3 -c 'import json,sys
d = json.load(sys.stdin)
assert d["schema"] == "gpuloom.validate/1" and d["counts"]["failed"] == 1 and d["tests"][0]["why"]' ||
	fail 'validate --json'
"$G" validate "$so" --only term.fuzz --fuzz 5s --seed 77 --json 2>/dev/null >"$tmp/a"
seed=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["tests"][0]["seed"])' "$tmp/a")
expect 5 "\"seed\":.*$seed" "$G" validate "$so" --only term.fuzz --fuzz 5s --seed "$seed" --json
expect 0 'sched.each_task_once' "$G" validate --list

# On a terminal, a long sample reports its progress.
exec_conf "$tmp/long.ini" 'sleep 2.5'
python3 - "$G" run "$tmp/long.ini" --samples 1 --set run.warmup=0 <<'PY' || fail 'the progress of a long sample'
import os, pty, re, sys
pid, fd = pty.fork()
if not pid:
    os.environ['TERM'] = 'xterm'
    os.execvp(sys.argv[1], sys.argv[1:])
out = b''
try:
    while piece := os.read(fd, 65536):
        out += piece
except OSError: # the terminal is closed
    pass
assert os.waitpid(pid, 0)[1] == 0 and re.search(rb'sample 1/1  in progress for [0-9]+ s of at most', out), out
PY
expect 0 '^validate$' "$G" complete val
expect 0 '^scheduler.static.local_queue=$' "$G" complete scheduler.static. run --set
expect 0 '^device.cpu.isolation=process$' "$G" complete device.cpu.isolation= run --set
expect 0 '^--samples$' "$G" complete --s run
"$G" completion bash >"$tmp/c" && bash -n "$tmp/c" || fail 'completion bash'
expect 2 'expected a shell' "$G" completion csh
expect 2 'no such plug-in file' "$G" validate ./no_such.so
expect 5 'abi.load' "$G" validate "$B/tests/plugins/bad_abort.so"
expect 2 'out of range|too large' "$G" validate "$so" --level 9
finish
