# SPDX-License-Identifier: Apache-2.0
# The common part of check-device-cuda.sh and check-device-hip.sh: whole runs with real policies over a driver that runs
# kernels as threads (fake_kernel.h). The caller has sourced tests/lib.sh and set
#   device   cuda or hip          wave     threads that run in lockstep
#   brief    yes: tests that do not depend on the vendor run only one variant

cat >"$tmp/gpu.ini" <<END
[run]
workload = memset
devices  = $device:0
samples  = 3
timeout  = 20s
[device.cpu]
oversubscribe = yes
[transport]
use = p2p
[scheduler]
use = mgws
[termination]
use = counter
[workload.memset]
tasks = 20000
[workload.fib]
n = 16
[workload.uts]
tree = custom
depth = 6
[workload.sgd]
inputs = 16
width = 16
batch = 6
steps = 5
[workload.replay]
most = 1KiB
steps = 2
[workload.ragged]
length = 100
[workload.experts]
tokens = 20
dim = 32
hidden = 48
rows = 16
block = 4
[workload.makespan]
mean = 2us
END

detector=counter
# The threads of a failed kernel remain, which ThreadSanitizer must not report.
export TSAN_OPTIONS="${TSAN_OPTIONS-} report_thread_leaks=0"

# run SCHEDULER WORKLOAD STATUS PATTERN [WRONG [ARGUMENTS]]
run() {
	scheduler=$1 workload=$2 status=$3 wanted=$4 wrong=${5-none}
	[ $# -lt 5 ] && shift 4 || shift 5
	export FAKE_GPU="$wrong"
	expect "$status" "$wanted" "$G" run "$tmp/gpu.ini" --set scheduler.use="$scheduler" \
		--set termination.use=$detector \
		--set run.workload="$workload" "$@"
}

# real_compiler NAME OPTION: the vendor's compiler NAME compiles a program, which the driver loads and does not run.
real_compiler() {
	real=$(sed -n "s/^$device: $1  *ok .*, *//p" "$tmp/doctor")
	case $real in
	/*) ;;
	?*) real=$(ldconfig -p | sed -n "s|.*$real (.* => ||p" | head -n 1) ;;
	esac
	[ -z "$real" ] || run mgws fib 4 'blocks must be resident at once' small --set device.$device.workers=8 \
		--set "device.$device.$2=$real"
}

# ways FIRST OTHER...: prints all its arguments, or only the first if `brief` is set.
ways() { if [ -n "$brief" ]; then echo "$1"; else echo "$*"; fi; }

# Runs barriers of two GPUs, and of a GPU with a non-coherent CPU. Across devices, the plug-ins that are not listed work like
# barrier_release.
barrier_runs() {
	for barrier in $(ways release dissemination flags); do
		for wrong in none lossy; do
			[ $wrong = lossy ] && devices="cpu:0 $device:0" transport=host ||
				devices="$device:0 $device:1" transport=p2p
			export FAKE_GPU=$wrong
			expect 0 verified "$G" run conf/barrier.ini --samples 1 --set run.warmup=0 \
				--set run.devices="$devices" \
				--set barrier.use=$barrier --set device.cpu.workers=2 --set device.$device.workers=3 \
				--set device.$device.1.gpu=0 --set transport.use=$transport \
				--set workload.barrier.few=5 \
				--set workload.barrier.difference=10 --set workload.barrier.parts=2 \
				--set workload.barrier.checked=40
		done
	done
	# Two to four GPUs have lines of words, with one part of the workers or several.
	for barrier in auto $(ways flags tree dissemination); do
		for split in 1 8; do
			[ $split = 1 ] && devices="$device:0 $device:1 $device:2 $device:3" workers=2 ||
				devices="$device:0 $device:1" workers=8
			export FAKE_GPU=none
			expect 0 verified "$G" run conf/barrier.ini --samples 1 --set run.warmup=0 \
				--set run.devices="$devices" --set device.$device.1.gpu=0 --set device.$device.2.gpu=0 \
				--set device.$device.3.gpu=0 --set barrier.use=$barrier --set barrier.split=$split \
				--set device.$device.workers=$workers --set transport.use=p2p --set workload.barrier.few=5 \
				--set workload.barrier.difference=10 --set workload.barrier.parts=2 --set workload.barrier.checked=40
		done
	done
	# Workers leave their groups, up to all workers of a device.
	export FAKE_GPU=none
	for lanes in $wave $((2 * wave)); do
		expect 0 verified "$G" run conf/barrier.ini --samples 1 --set run.warmup=0 \
			--set run.devices="$device:0 $device:1" \
			--set barrier.use=auto --set device.$device.workers=4 --set device.$device.lanes=$lanes \
			--set device.$device.1.gpu=0 --set transport.use=p2p --set workload.barrier.few=5 \
			--set workload.barrier.difference=10 --set workload.barrier.parts=2 \
			--set workload.barrier.checked=40 \
			--set workload.barrier.scope=group --set workload.barrier.leave=5
	done
}

# Measures operations of the hardware itself, by one lane and by groups within a warp. A warp has wave / 8 lanes here.
primitive_runs() {
	export FAKE_GPU=none
	for operation in add tile coalesced worker grid; do
		expect 0 '2 samples, each verified' "$G" run conf/sync/base.ini --samples 2 --set run.devices=$device:0 \
			--set run.workload=primitives --set device.$device.workers=3 \
			--set workload.primitives.operation=$operation --set workload.primitives.group=$((wave / 8))
		grep -q '^ *cycles' "$tmp/out" || fail "primitives, $operation: no cycles"
	done
	expect 4 'lanes that form groups within a worker are those of a GPU' "$G" run conf/sync/base.ini \
		--set run.devices=cpu:0 --set device.cpu.oversubscribe=yes --set run.workload=primitives \
		--set workload.primitives.operation=tile
	expect 2 'repeats = 12: not a multiple of 8' "$G" run conf/sync/base.ini --set run.devices=$device:0 \
		--set run.workload=primitives --set workload.primitives.repeats=12
	expect 2 'a tile is 1, 2, 4, 8, 16 or 32 lanes' "$G" run conf/sync/base.ini --set run.devices=$device:0 \
		--set run.workload=primitives --set workload.primitives.operation=tile --set workload.primitives.group=5
}

sound_runs() {
	for transport in p2p host; do
		for scheduler in mgws static; do
			for workload in memset fib uts; do
				run $scheduler $workload 0 '3 samples, each verified' none \
					--set transport.use=$transport
			done
		done
	done
	# The second run takes the program from the cache, but not with `compile = always`.
	run mgws memset 0 'taken from ' none --log debug
	run mgws memset 0 'compiled in ' none --log debug --set device.$device.compile=always
	grep -q 'taken from' "$tmp/err" && fail 'compile = always took the program from the cache'
	run mgws memset 0 'compiled in ' none --log debug --set device.$device.cache="$tmp/other"
	ls "$tmp"/other/*.code >/dev/null 2>&1 || fail 'nothing in the folder that cache names'
	# conformance() runs the two other tests, for which the driver needs a task and GPUs whose memory has keys.
	expect 0 '1[0-9] passed, 0 failed' "$G" validate "$B/plugins/device_$device.so" --level 4 --quiet \
		--skip device.keys --skip device.embeds
	# Runs uneven work. Tasks that are too large for a worker's scratchpad memory are rejected.
	for scheduler in 'counter fib experts' 'plan fib ragged makespan' 'mgws ragged'; do
		for workload in ${scheduler#* }; do
			run ${scheduler%% *} $workload 0 '3 samples, each verified' none
		done
	done
	run plan ragged 0 verified none --set run.devices="$device:0 $device:1" --set device.$device.1.gpu=0 \
		--set workload.ragged.redraw=sample
	run counter experts 0 verified none --set device.$device.lanes=$((2 * wave)) --set device.$device.workers=3 \
		--set workload.experts.redraw=sample --set workload.experts.skew=rotating
	run plan ragged 4 'ragged wants [0-9]* bytes of scratchpad memory per worker, .*: choose smaller tasks' none \
		--set workload.ragged.dim=256 --set workload.ragged.heads=16 --set workload.ragged.kv_heads=1 \
		--set device.$device.lanes=$((16 * wave)) --set device.$device.workers=1
	# GPUs read no files, so texts are loaded ahead if there is no CPU.
	contains="--set workload.contains.word=zwischen --set workload.contains.documents=100"
	run mgws contains 0 '3 samples, each verified' none $contains
	run mgws contains 2 'load = task lets a CPU read each document, and .run. devices has none: set load = ahead' none \
		$contains --set workload.contains.load=task
	run counter memset 4 'cannot add to the same word' lossy --set termination.use=hcounter \
		--set run.devices="cpu:0 $device:0" --set transport.use=host
	run plan memset 4 'devices of one kind' none --set run.devices="cpu:0 $device:0" --set transport.use=host
	run mgws uts 0 verified none --set device.gpu.worker=warp --set device.gpu.warps=2
	run mgws uts 0 verified none --set device.$device.lanes=$((2 * wave)) --set device.$device.workers=3
	run mgws fib 0 verified none --set run.devices="$device:0 $device:1" --set device.$device.1.gpu=0
	for granularity in worker lane; do # three devices have three ranges of the initial set, and three copies
		run mgws memset 0 verified none --set run.devices="$device:0 $device:1 $device:2" --set device.$device.1.gpu=0 \
			--set device.$device.2.gpu=0 --set scheduler.granularity=$granularity
	done
	run mgws fib 0 verified atomics --set run.devices="cpu:0 $device:0" --set transport.use=host
}

# meets WORKLOAD WORDS: prints the words if the workload uses a barrier.
meets() {
	case $1 in jacobi2d | sgd) echo "$2" ;; esac
}

# triggers 'TRIGGER [OPTION...]' TRANSPORT WORKLOAD...: workers fire operations, whose data are in the device's memory.
triggers() {
	with=${1%% *} over=$2 provider="--set trigger.${1%% *}.provider=shm"
	[ "$with" != peer ] || provider= # trigger_peer has no provider
	for one in ${1#$with}; do provider="$provider --set trigger.$with.$one"; done
	shift 2
	for workload; do
		for workers in 4 20; do # 4 workers have a FIFO each, 20 workers share one FIFO
			export FAKE_GPU=none
			expect 0 '3 samples, each verified' "$G" run "$tmp/gpu.ini" --set run.workload=$workload \
				$(meets $workload '--set barrier.use=auto') \
				--set trigger.use=$with $provider --set transport.use=$over \
				--set device.$device.workers=$workers --set device.gpu.worker=warp \
				--set device.gpu.warps=4 --set workload.pingpong.rounds=50 \
				--set workload.jacobi2d.n=48 \
				--set workload.jacobi2d.sweeps=20 --set workload.msgrate.fires=400 \
				--set workload.msgrate.per=100
		done
	done
}

trigger_runs() {
	storms
	triggers peer p2p pingpong msgrate
	triggers peer host allreduce
	[ -e "$B/plugins/trigger_gputn.so" ] || return # built without libfabric
	triggers gputn p2p $(ways pingpong msgrate jacobi2d allreduce sgd replay)
	[ -z "$brief" ] || return
	triggers gds host jacobi2d
	triggers 'gputn memory=device' p2p pingpong
}

more_trigger_runs() {
	[ -e "$B/plugins/trigger_gputn.so" ] || return
	triggers hdn p2p msgrate
	triggers proxy host pingpong
	triggers 'gputn memory=device' p2p msgrate jacobi2d allreduce
	triggers 'hdn memory=device' p2p jacobi2d
}

# in_device_memory STATUS PATTERN WRONG [ARGUMENTS]: runs $workload on two ranks. Their buffers are in GPU memory, which the
# network cannot access.
in_device_memory() {
	status=$1 wanted=$2
	export FAKE_GPU="$3"
	shift 3
	expect "$status" "$wanted" "$G" run "$tmp/gpu.ini" --ranks 2 --set run.workload=$workload \
		--set trigger.use=gputn \
		--set trigger.provider=shm --set trigger.memory=device --set device.$device.workers=2 \
		--set workload.pingpong.rounds=50 --set workload.pingpong.bytes=20000 --set workload.jacobi2d.n=24 \
		--set workload.jacobi2d.sweeps=8 --set workload.msgrate.fires=400 --set workload.msgrate.per=4 \
		--set workload.allreduce.bytes=20000 $(meets $workload '--set barrier.use=auto') "$@"
}

# kernels_run JOB: succeeds if each rank of the job runs a kernel. The driver runs workers as threads, in addition to the two of a
# rank and the two of its NIC.
kernels_run() {
	for rank in $(pgrep -P "$1"); do
		[ "$(ls "/proc/$rank/task" 2>/dev/null | wc -l)" -gt 4 ] || return
	done
}

# lost_in_device_memory SIGNAL STATUS PATTERN [ARGUMENTS]: one of two ranks gets the signal while they exchange messages.
lost_in_device_memory() {
	signal=$1 want=$2 wanted=$3
	shift 3
	export FAKE_GPU=ranks
	"$limit" 100 "$G" run "$tmp/gpu.ini" --ranks 2 --set run.workload=pingpong --set trigger.use=gputn \
		--set trigger.provider=shm --set trigger.memory=device --set device.$device.workers=2 --samples 1000000 \
		--quiet --set workload.pingpong.bytes=20000 "$@" >/dev/null 2>"$tmp/err" </dev/null &
	run=$!
	soon 'job=$(pgrep -P $run) && at_work $job 2 && kernels_run $job' || fail "two ranks do not begin: $*"
	ended_by "$signal" "$(pgrep -P "$job" | tail -n 1)" $run
	[ $status -eq "$want" ] && grep -qE "$wanted" "$tmp/err" && [ $took -lt 5000 ] ||
		{ fail "exit $status $took ms after $signal: $*"; cat "$tmp/err"; }
}

# memory_runs HOW CALL:N...: HOW is how the NIC's thread copies if it can choose. CALL is a function of the driver that copies;
# its N-th call fails.
memory_runs() {
	direct=$1
	shift
	[ -e "$B/plugins/trigger_gputn.so" ] || return # built without libfabric
	# ThreadSanitizer does not know the order of accesses by another process.
	case $B in *thread*) return ;; esac
	for workload in $(ways pingpong jacobi2d allreduce msgrate); do
		for provider in $(ways shm tcp); do
			in_device_memory 0 '3 samples, each verified' ranks --set trigger.provider=$provider
		done
	done
	workload=pingpong
	# Messages of one word, of one piece, and of more pieces than are in flight at once.
	for copies in auto staged; do
		[ $copies = auto ] && how=$direct || how=$([ $direct = direct ] && echo staged || echo $direct)
		for bytes in $(ways 300000 8 4096 4104); do
			in_device_memory 0 "trigger.copies: $how" ranks -v --set trigger.copies=$copies \
				--set workload.pingpong.bytes=$bytes --set trigger.piece=4KiB --set trigger.stamp=yes
			grep -q 'each verified' "$tmp/out" && grep -q 'trigger.copy_ns' "$tmp/out" ||
				fail "$bytes bytes, copies $copies: not verified, or no trigger.copy_ns"
		done
		lost_in_device_memory KILL 1 'rank [01] .*was killed by signal 9' --set trigger.copies=$copies --set trigger.piece=4KiB
		[ -n "$brief" ] || lost_in_device_memory STOP 124 'no end after' --set trigger.copies=$copies --set run.timeout=$(slack)s
	done
	# Ranks that share a GPU, and a rank that sends to itself, copy within one GPU, which needs copies in host memory.
	in_device_memory 0 "trigger.copies: $([ $direct = direct ] && echo staged || echo $direct)" ranks -v --set device.$device.gpu=0
	in_device_memory 0 '3 samples, each verified' ranks --ranks 1
	for call; do
		FAKE_GPU_FAIL=$call in_device_memory 1 "${call%:*}" ranks --set run.warmup=0
	done
	in_device_memory 4 'does not see fires in a GPU' ranks --set workload.pingpong.order=random
	in_device_memory 0 '3 samples, each verified' ranks --set transport.use=host # with this transport no buffer is in GPU memory
	workload=allreduce
	in_device_memory 4 'an addition needs the memory itself' ranks --set workload.allreduce.chain=yes \
		--set workload.allreduce.piece=1KiB --set trigger.provider=tcp
}

# peer_ranks STATUS PATTERN WRONG [ARGUMENTS]: runs $workload on two ranks with one GPU each. Their workers store into each
# other's memory.
peer_ranks() {
	status=$1 wanted=$2
	export FAKE_GPU="$3"
	shift 3
	expect "$status" "$wanted" "$G" run "$tmp/gpu.ini" --ranks 2 $(meets $workload '--set barrier.use=auto') \
		--set run.workload=$workload --set trigger.use=peer \
		--set device.$device.workers=3 --set workload.pingpong.rounds=50 --set workload.pingpong.bytes=200 \
		--set workload.jacobi2d.n=24 --set workload.jacobi2d.sweeps=20 --set workload.allreduce.bytes=20000 "$@"
}

# met_ranks STATUS PATTERN WRONG [ARGUMENTS]: two ranks synchronise by barrier $barrier at the scope of the job. Their workers
# store into each other's memory.
met_ranks() {
	status=$1 wanted=$2
	export FAKE_GPU="$3"
	shift 3
	expect "$status" "$wanted" "$G" run conf/barrier.ini --ranks 2 --samples 1 --set run.warmup=0 \
		--set run.devices=$device:0 --set transport.use=p2p --set workload.barrier.scope=job \
		--set trigger.use=peer \
		--set barrier.use=$barrier --set device.$device.workers=3 --set workload.barrier.few=5 \
		--set workload.barrier.difference=10 --set workload.barrier.parts=2 \
		--set workload.barrier.checked=40 "$@"
}

# If the driver reports that two processes share a GPU by time-slicing, there is a warning, and few rounds.
turn_runs() {
	alone="--set device.$device.gpu=0"
	for driver in ranks mps; do
		met_ranks 0 '1 sample, verified' $driver $alone
		[ $driver = ranks ] && n=1 || n=0
		[ "$(grep -c 'ranks 0 and 1 share the device at .*own, or start .*MPS' "$tmp/err")" = $n ] ||
			{ fail "not $n warnings that two ranks share a GPU:"; cat "$tmp/err"; }
	done
	met_ranks 4 'share a device in time slices .* 1064 rounds .*set few = 5' ranks $alone \
		--set workload.barrier.difference=500
	met_ranks 0 '1 sample, verified' mps $alone --set workload.barrier.difference=500
}

# shared_ranks STATUS PATTERN [ARGUMENTS]: runs $workload once on two ranks with one GPU each. Their workers steal from each
# other.
shared_ranks() {
	status=$1 wanted=$2
	shift 2
	export FAKE_GPU=ranks
	expect "$status" "$wanted" "$G" run "$tmp/gpu.ini" --ranks 2 --set run.workload=$workload \
		--set run.tasks=shared \
		--set termination.use=$detector --set trigger.use=peer --set device.$device.workers=3 "$@"
}

# peer_runs CALL...: each CALL is a function of the driver that only these runs use.
peer_runs() {
	# ThreadSanitizer does not know the order of accesses by another process.
	case $B in *thread*) return ;; esac
	for workload in pingpong jacobi2d allreduce dispatch; do
		peer_ranks 0 '3 samples, each verified' ranks
	done
	peer_ranks 0 '3 samples, each verified' ranks --set device.$device.gpu=0
	workload=pingpong
	for bytes in $(ways 8 4096 40000); do # the largest messages exceed the stage
		peer_ranks 0 '3 samples, each verified' ranks --set workload.pingpong.bytes=$bytes \
			--set workload.pingpong.counted=yes --set trigger.peer.stage=16KiB
	done
	workload=allreduce
	for barrier in $(ways auto dissemination); do
		met_ranks 0 '1 sample, verified' ranks
	done
	[ $device != cuda ] || turn_runs # other drivers do not report time-slicing
	for algorithm in $(ways ring oneshot twoshot pull); do
		[ $algorithm = ring ] && rounds=1 || rounds=70
		peer_ranks 0 '3 samples, each verified' ranks --set workload.allreduce.algorithm=$algorithm \
			--set workload.allreduce.rounds=$rounds
	done
	for detector in hcounter tree; do
		for workload in $(ways uts fib synthetic); do
			shared_ranks 0 '3 samples, each verified' --set workload.fib.mode=spawn
		done
	done
	shared_ranks 4 'NIC cannot change the words of a GPU' --set trigger.use=gputn --set trigger.provider=tcp
	detector=counter workload=allreduce
	peer_ranks 4 'memory of rank [01] is unreachable: .*cannot access the memory of GPU [01] directly' no-peer
	peer_ranks 4 'has no place that GPUs of other ranks reach: choose transport p2p' ranks --set transport.use=host
	for call; do
		FAKE_GPU_FAIL=$call:1 peer_ranks 1 "$call" ranks
	done
}

# launched STATUS PATTERN WRONG [ARGUMENTS]: runs $workload under trigger $with. Each step is a separate kernel.
launched() {
	status=$1 wanted=$2
	export FAKE_GPU="$3"
	shift 3
	expect "$status" "$wanted" "$G" run "$tmp/gpu.ini" $(meets $workload '--set barrier.use=auto') \
		--set device.$device.kernels=launched --set run.workload=$workload \
		--set trigger.use=$with --set trigger.provider=shm --set device.$device.workers=4 \
		--set workload.pingpong.rounds=100 --set workload.jacobi2d.n=48 --set workload.jacobi2d.sweeps=20 "$@"
}

# launched_runs CALL...: each CALL is a function of the driver that only these runs use.
launched_runs() {
	[ -e "$B/plugins/trigger_gds.so" ] || return # built without libfabric
	for with in gds hdn; do
		for workload in pingpong jacobi2d; do
			launched 0 '3 samples, each verified' none
			launched 0 '3 samples, each verified' none --ranks 2 --set transport.use=host
		done
		# A sample that does not end is stopped.
		launched 124 'no end after 0.3 s' none --set run.timeout=300ms --set workload.jacobi2d.sweeps=1000000000
	done
	with=gds workload=pingpong
	launched 1 'its kernel has failed' die
	# The stream waits for a word that the fake driver never sets.
	launched 124 'no end after 0.3 s' mute --set run.timeout=300ms
	! grep -q 'cannot be killed' "$tmp/err" || fail 'what the stream awaits is not released'
	for call; do
		FAKE_GPU_FAIL=$call:5 launched 1 "$call" none
	done
}

# Jobs that cannot be launched in steps are rejected.
launched_refusals() {
	[ -e "$B/plugins/trigger_gds.so" ] || return
	with=gds workload=pingpong
	launched 4 'streams cannot set and await words of memory: set use = hdn' no-words
	launched 4 'kernels = launched supports one device, not 2' none --set run.devices="$device:0 $device:1" \
		--set device.$device.1.gpu=0
	with=hdn
	launched 0 '3 samples, each verified' no-words
	with=gputn
	launched 4 'trigger_gputn does not send at the ends of kernels: set use = gds or hdn' none
	workload=msgrate
	launched 4 'workload_msgrate has no steps to launch: set kernels = persistent' none
}

# pages STATUS PATTERN WORKLOAD [ARGUMENTS]: the pages of the input are faulted into frames of the device's memory.
pages() {
	status=$1 wanted=$2 workload=requests_app
	[ "$3" != storm ] || workload=requests_storm
	[ "$3" = storm ] || set -- "$@" --set "workload.requests_app.app=$3"
	shift 3
	export FAKE_GPU=none
	expect "$status" "$wanted" "$G" run "$tmp/gpu.ini" --samples 3 --set run.workload=$workload \
		--set qos.use=monolithic \
		--set device.$device.workers=4 --set workload.$workload.settle=0 "$@"
}

# page_runs CALL...: each CALL is a function of the driver that fills frames.
page_runs() {
	for app in bfs spmv sssp bpt xsbench; do
		small="--set workload.requests.size=4000 --set workload.requests.lookups=3000"
		pages 0 '3 samples, each verified' $app $small
	done
	# With fewer frames than reading lanes, pages are evicted and filled all the time.
	for app in sssp bpt; do
		small="--set workload.requests.size=1000 --set workload.requests.lookups=500"
		pages 0 '3 samples, each verified' $app $small --set workload.requests.frames=12 \
			--set workload.requests.outstanding=2 \
			--set transport.use=p2p --set qos.notify=hybrid
	done
	pages 0 '3 samples, each verified' bfs --set workload.requests.size=3000 --set "run.devices=cpu:0 $device:0" \
		--set transport.use=host \
		--set termination.use=hcounter --set device.cpu.workers=3 --set workload.requests.tenants=2
	pages 0 'victim_speed' bpt --set workload.requests.size=300 --set 'workload.requests.victim=sleep 0.05'
	for service in alloc migrate; do
		pages 0 '3 samples, each verified' storm --set workload.requests_storm.service=$service \
			--set workload.requests_storm.requests=3000
	done
	for call; do
		FAKE_GPU_FAIL=$call:30 pages 3 'wrong answers; the first, of service 2, was -5' bfs
	done
}

# The driver cannot copy while workers run.
page_refusals() {
	pages 4 "need copies into the memory of $device:0 while its workers run" bfs
}

# Each worker has one request word. There are more workers than words in a group, and more requests than one poll takes. One
# run has a CPU, too.
storms() {
	for qos in split 'monolithic budget' 'split coalesce steer'; do
		for devices in $device:0 "cpu:0 $device:0"; do
			export FAKE_GPU=none
			expect 0 verified "$G" run "$tmp/gpu.ini" --samples 2 --set run.workload=requests_storm \
				--set "qos.use=$qos" \
				--set "run.devices=$devices" --set transport.use=host --set termination.use=hcounter \
				--set device.$device.workers=8 --set device.cpu.workers=58 \
				--set workload.requests_storm.service=nothing \
				--set workload.requests_storm.requests=20000 \
				--set workload.requests.outstanding=512 --set workload.requests.settle=0
		done
	done
}

# interrupts STATUS PATTERN [ARGUMENTS]: workers have rare requests, between which the host sleeps.
interrupts() {
	status=$1 wanted=$2
	shift 2
	export FAKE_GPU=none
	expect "$status" "$wanted" "$G" run "$tmp/gpu.ini" --samples 3 --set run.workload=requests_storm \
		--set qos.use=split \
		--set device.$device.workers=4 --set workload.requests_storm.service=nothing \
		--set workload.requests_storm.requests=100 \
		--set workload.requests.outstanding=1 --set workload.requests_storm.pace=2ms \
		--set workload.requests.settle=0 "$@"
}

# In `make check` each way of notification has one of the transports.
interrupt_variants() {
	for notify in interrupt hybrid; do
		for use in split monolithic 'monolithic coalesce' 'split steer budget'; do
			for transport in p2p host; do
				case $notify:$transport in
				interrupt:p2p | hybrid:host) in_check || continue ;;
				*) in_rest || continue ;;
				esac
				interrupts 0 'qos_interrupts +[1-9]' --set transport.use=$transport \
					--set "qos.use=$use" \
					--set qos.${use%% *}.notify=$notify --set qos.budget.limit=50%
			done
		done
	done
}

# interrupt_runs CALL...: a failure of the first CALL ends the run; after a failure of another CALL the host polls.
interrupt_runs() {
	interrupt_variants
	interrupts 0 'qos_interrupts +[1-9]' --set qos.notify=interrupt --set run.devices="$device:0 $device:1" \
		--set device.$device.1.gpu=0
	interrupts 4 'notify = hybrid is for GPUs only, and cpu:0 is not a GPU' --set qos.notify=hybrid \
		--set run.devices="cpu:0 $device:0" --set transport.use=host --set termination.use=hcounter
	# Interrupts are unavailable, or fail at the first or a later call.
	FAKE_GPU_FAIL=$1:1 interrupts 1 "$1" --set qos.notify=interrupt
	shift
	for call; do
		for n in 1 3; do
			FAKE_GPU_FAIL=$call:$n interrupts 0 verified --set qos.notify=interrupt
			grep -q 'interrupts are unavailable: .*; the host polls' "$tmp/err" ||
				{ fail "$call failed without a message"; cat "$tmp/err"; }
		done
	done
}

# Two GPUs lose additions to one word. The probe detects this or, in host memory, the driver reports it. There is one warning,
# and the run works.
lossy_runs() {
	detector=hcounter
	for transport in p2p host; do
		[ $transport = p2p ] && wrong=swapless || wrong=lossy
		run mgws uts 0 verified $wrong --set run.devices="$device:0 $device:1" --set device.$device.1.gpu=0 \
			--set transport.use=$transport
		grep -qE "(additions or compare-and-swaps were lost|a link has no atomic read-modify-writes); devices are treated as non-coherent" "$tmp/err" && [ "$(wc -l <"$tmp/err")" -eq 1 ] ||
			{ fail 'not one line that says why tasks cross by mailboxes:'; cat "$tmp/err"; }
	done
	run mgws uts 0 verified none --set run.devices="$device:0 $device:1" --set device.$device.1.gpu=0
	[ -s "$tmp/err" ] && { fail 'a word about devices whose additions are coherent:'; cat "$tmp/err"; }
	detector=counter
	run mgws uts 4 'no common counter: set use = hcounter or tree' lossy --set run.devices="$device:0 $device:1" \
		--set device.$device.1.gpu=0
}

# Two GPUs without common atomics, whose queues are in host memory, or in the GPUs. Words of one GPU are in its memory.
apart_runs() {
	detector=hcounter
	set -- --set run.devices="$device:0 $device:1" --set device.$device.1.gpu=0 --set transport.p2p.atomics=no \
		--set transport.host.atomics=no --set workload.contains.documents=300 --set workload.contains.word=zwischen
	for workload in uts memset contains; do
		for seed in $(ways 1 2 3 4 5 6 7); do
			run mgws $workload 0 verified none --set run.seed=$seed --set transport.use=host "$@"
			run mgws $workload 0 verified none --set run.seed=$seed --set transport.p2p.placement=host \
				--set scheduler.mgws.claim=queues "$@"
		done
	done
	detector=counter
	# One GPU, whose words are in its memory although all else is in host memory.
	for scheduler in mgws counter; do
		run $scheduler uts 0 verified none --set transport.use=host
	done
}

# A GPU uses other memory as its own.
memory_runs_elsewhere() {
	for workload in uts memset; do
		run mgws $workload 0 verified none --set device.$device.memory=host
		[ $device != cuda ] || run mgws $workload 0 verified two-gpus --set device.cuda.memory=next
	done
	run mgws uts 4 'memory = next: .*set memory = own' none --set device.$device.memory=next
}

# A CPU and a GPU whose link has no atomic read-modify-writes use mailboxes. With p2p neither accesses the other's memory.
noncoherent_runs() {
	set -- --set run.devices="cpu:0 $device:0" --set device.cpu.workers=2
	for transport in p2p host; do
		for detector in hcounter tree; do
			for workload in memset fib uts; do
				run mgws $workload 0 verified none --set transport.use=$transport "$@"
			done
		done
		run static memset 0 verified none --set transport.use=$transport "$@"
	done
	# Tasks of a lattice, each of which waits for its two predecessors.
	awk 'BEGIN {
		printf "{\"format\": \"gpuloom-costs\", \"tasks\": ["
		for (i = 0; i < 400; i++)
			printf("%s{\"id\": %d, \"cost\": 1000, \"after\": [%s%s%s]}", i ? ", " : "", i, i % 20 ? i - 1 : "",
				i % 20 && i >= 20 ? ", " : "", i >= 20 ? i - 20 : "")
		print "]}"
	}' >"$tmp/lattice.json"
	run mgws makespan 0 verified none --set transport.use=p2p --set workload.makespan.law=trace \
		--set workload.makespan.trace="$tmp/lattice.json" "$@"
	# The timeline has both devices, even if one of them was never busy.
	run mgws uts 0 verified none --set transport.use=p2p "$@" --trace "$tmp/trace.json" --json "$tmp/traced.json"
	grep -q "\"device.$device:0.model\":.*\"no GPU\"" "$tmp/traced.json" || fail "the result does not name the model of the GPU"
	for pid in 0 1; do
		grep -q "\"ph\":\"X\",\"pid\":$pid,.*\"cat\":\"busy\"" "$tmp/trace.json" ||
			fail "no busy span of device $pid"
	done
	grep -q "\"name\":\"$device:0\"" "$tmp/trace.json" || fail "the timeline does not name $device:0"
	# An embedding program submits tasks, more in each run.
	FAKE_GPU=none TEST_APART="cpu:0 $device:0" expect 0 'asserts +[0-9]+ +[0-9]+ +[0-9]+ +0' "$B/tests/test_embed" -t noncoherent
	detector=counter
	run mgws memset 4 'no common counter: set use = hcounter or tree' none "$@"
}

# embed DEVICES [VARIABLE=VALUE...]: runs the program that embeds a stack.
embed() {
	on=$1
	shift
	FAKE_GPU=none TEST_GPU=$on expect 0 'asserts +[0-9]+ +[0-9]+ +[0-9]+ +0' env "$@" "$B/tests/test_embed_gpu"
}

# The conformance suite, as for a plug-in of a vendor. Two GPUs exist, whose memory other processes may open.
conformance() {
	FAKE_GPU=ranks expect 0 ' 7 passed, 0 failed, 0 skipped' "$G" validate \
		device_$device --jobs 2 $(printf -- '--only device.%s ' copies keys adopt reports streams instances embeds)
}

# Workers stay between runs for 2 s, or leave after 20 us, so that each run starts them again.
resident_runs() {
	for idle in 2s 20us; do
		embed $device:0 TEST_GPU_RESIDENT=$idle
		embed $device:0 TEST_GPU_RESIDENT=$idle TEST_GPU_QUICK=1
	done
}

# Tests a program that embeds a stack: runs without copies, stops, time-outs, and errors of tasks.
embed_runs() {
	! in_check || embed $device:0
	! in_check || embed $device:0 TEST_GPU_QUICK=1
	if [ -n "$brief" ]; then
		! in_rest || resident_runs
		return
	fi
	FAKE_GPU=ranks TEST_GPU=$device:0 expect 0 'asserts +[0-9]+ +[0-9]+ +[0-9]+ +0' "$B/tests/test_comm"
	! in_check || resident_runs
	in_rest || embed "cpu:0 $device:0" TEST_GPU_RUNS=60
	in_rest || return 0
	embed "cpu:0 $device:0"
	embed "$device:0 $device:1"
}

refused_runs() {
	run mgws memset 4 "there is no GPU 7; the driver reports 1" none --set device.$device.gpu=7
	run mgws memset 4 'the driver sees no GPU' no-gpu
	run mgws memset 4 'blocks must be resident at once\. .* only 2 are' small --set device.$device.workers=8
	run mgws memset 2 "lanes = $((wave + 16)): must be a multiple of $wave" none \
		--set device.$device.lanes=$((wave + 16))
	run mgws memset 2 'at most 8 can be resident' none --set device.$device.workers=9
	run mgws memset 4 'choose smaller queues' none --set scheduler.mgws.local_queue=4096
	run mgws memset 1 'its kernel has failed: [A-Za-z_]*(ILLEGAL_ADDRESS|IllegalAddress)' die
	# A kernel that hangs keeps its memory, which is not reported as a leak.
	ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"
	export ASAN_OPTIONS
	run mgws memset 124 "no end after [0-9]* s .*: $device:0: .*; workers did not leave .*: $device:0: [^;]*1 at work \(1\)" hang \
		--set run.timeout=$(slack)s
	grep -q 'worker 1 is at work' "$tmp/err" || fail 'the device does not say which worker hangs'
	# In a separate supervised process the run ends the same way, and that process ends, too.
	run mgws memset 124 "no end after [0-9]* s" hang --ranks 1 --set run.timeout=$(slack)s
}

# failing_runs NAME...: lets each function of the driver that a run calls fail in turn. If its first call fails, the run ends
# with a message that names the function. For NAME..., functions that release resources or are optional, the run may also
# verify. If the last call fails, which may release resources, nothing hangs or crashes.
failing_runs() {
	optional=" $* "
	for transport in p2p host; do
		: >"$tmp/calls"
		FAKE_GPU_CALLS=$tmp/calls
		export FAKE_GPU_CALLS
		run mgws memset 0 verified none --samples 2 --set run.warmup=0 --set transport.use=$transport
		unset FAKE_GPU_CALLS
		[ "$(wc -l <"$tmp/calls")" -gt 20 ] || fail 'the driver was hardly called'
		while read -r name count; do
			[ ! -e "$tmp/done.$name" ] || continue # for the second transport, only functions that the first did not call
			: >"$tmp/done.$name"
			case $optional in
			*" $name "*) fails "$name" 1 '0' ;;
			*) fails "$name" 1 '1 4' ;;
			esac
			case $name in *StreamQuery) continue ;; esac # the number of its calls varies
			[ "$count" = 1 ] || fails "$name" "$count" '0 1 4'
		done <"$tmp/calls"
	done
}

# fails NAME CALL STATUSES
fails() {
	# A failed call does not free its memory, which is not reported as a leak.
	case $3 in *0*) leaks=:detect_leaks=0 ;; *) leaks= ;; esac
	FAKE_GPU_FAIL=$1:$2 ASAN_OPTIONS=${ASAN_OPTIONS-}$leaks "$limit" 100 "$G" run "$tmp/gpu.ini" --samples 2 \
		--set run.warmup=0 \
		--set transport.use="$transport" >"$tmp/out" 2>"$tmp/err" </dev/null
	got=$?
	case " $3 " in *" $got "*) ;; *) fail "$1, call $2 fails: exit $got, not $3"; cat "$tmp/err" ;; esac
	[ $got -eq 0 ] || grep -qE "$1|its kernel has failed" "$tmp/err" ||
		{ fail "$1, call $2: the error does not name it:"; cat "$tmp/err"; }
}
