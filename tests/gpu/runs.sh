# SPDX-License-Identifier: Apache-2.0
# What check-device-cuda.sh and check-device-hip.sh share: whole runs with real policies over a driver that
# runs kernels as threads (fake_kernel.h). The caller has read tests/lib.sh and set
#   device   cuda or hip          wave     threads that run in step
#   group    warp or wave: a worker that shares its block

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
END

detector=counter
# A kernel that has died leaves its threads.
export TSAN_OPTIONS="${TSAN_OPTIONS-} report_thread_leaks=0"

# run SCHEDULER WORKLOAD STATUS PATTERN [WRONG [ARGUMENTS]]
run() {
	scheduler=$1 workload=$2 status=$3 wanted=$4 wrong=${5-none}
	[ $# -lt 5 ] && shift 4 || shift 5
	export FAKE_GPU="$wrong"
	export FAKE_GPU_PLUGINS="$B/plugins/sched_$scheduler.so $B/plugins/term_$detector.so $B/plugins/workload_$workload.so"
	expect "$status" "$wanted" "$G" run "$tmp/gpu.ini" --set scheduler.use="$scheduler" --set termination.use=$detector \
		--set run.workload="$workload" "$@"
}

sound_runs() {
	for transport in p2p host; do
		for scheduler in mgws static; do
			for workload in memset fib uts; do
				run $scheduler $workload 0 '3 samples, each verified' none --set transport.use=$transport
			done
		done
	done
	run mgws uts 0 verified none --set device.$device.worker="$group" --set "device.$device.${group}s=2"
	run mgws uts 0 verified none --set device.$device.lanes=$((2 * wave)) --set device.$device.workers=3
	run mgws fib 0 verified none --set run.devices="$device:0 $device:1" --set device.$device.1.gpu=0
	run mgws fib 0 verified atomics --set run.devices="cpu:0 $device:0" --set transport.use=host

	# The second run takes the program from the cache; `compile = always` does not.
	run mgws memset 0 'taken from ' none --log debug
	run mgws memset 0 'compiled in ' none --log debug --set device.$device.compile=always
	grep -q 'taken from' "$tmp/err" && fail 'compile = always took the program from the cache'
	run mgws memset 0 'compiled in ' none --log debug --set device.$device.cache="$tmp/other"
	ls "$tmp"/other/*.code >/dev/null 2>&1 || fail 'nothing in the folder that cache names'
	expect 0 '1[0-9] passed, 0 failed' "$G" validate "$B/plugins/device_$device.so" --level 4 --quiet
}

# Two GPUs whose additions get lost in one word: found by the probe, said in one line, and lived with.
lossy_runs() {
	detector=hcounter
	for transport in p2p host; do
		run mgws uts 0 verified lossy --set run.devices="$device:0 $device:1" --set device.$device.1.gpu=0 \
			--set transport.use=$transport
		grep -q "additions were lost; devices are kept apart" "$tmp/err" && [ "$(wc -l <"$tmp/err")" -eq 1 ] ||
			{ fail 'not one line that says why tasks cross by mail:'; cat "$tmp/err"; }
	done
	run mgws uts 0 verified none --set run.devices="$device:0 $device:1" --set device.$device.1.gpu=0
	[ -s "$tmp/err" ] && { fail 'a word about devices whose additions are coherent:'; cat "$tmp/err"; }
	detector=counter
	run mgws uts 4 'no common counter: say use = hcounter or tree' lossy --set run.devices="$device:0 $device:1" \
		--set device.$device.1.gpu=0
}

# A CPU and a GPU whose link has no atomic read-modify-writes: mail. With p2p neither reaches the other's memory.
apart_runs() {
	set -- --set run.devices="cpu:0 $device:0" --set device.cpu.workers=2
	for transport in p2p host; do
		for detector in hcounter tree; do
			for workload in memset fib uts; do
				run mgws $workload 0 verified none --set transport.use=$transport "$@"
			done
		done
		run static memset 0 verified none --set transport.use=$transport "$@"
	done
	detector=counter
	run mgws memset 4 'no common counter: say use = hcounter or tree' none "$@"
	run mgws memset 2 'each needs its own segments near: say owner or host' none --set transport.p2p.placement=remote "$@"
}

# The driver's calls are made by a process of the device's own.
process_runs() {
	two="--set run.devices=$device:0\\ $device:1 --set device.$device.1.gpu=0"
	own="--set device.$device.isolation=process"
	# ThreadSanitizer sees no order in what passes through another process.
	case $B in *thread*) return ;; esac
	for workload in memset fib uts; do
		run mgws $workload 0 '3 samples, each verified' none $own
		eval run mgws $workload 0 "'3 samples, each verified'" none $own "$two" --set transport.use=host
	done
	run mgws memset 0 'taken from ' none --log debug $own
	run mgws memset 4 'the driver sees no GPU' no-gpu $own
	run mgws memset 1 'its kernel has failed: [A-Za-z_]*(ILLEGAL_ADDRESS|IllegalAddress)' die $own
	# A kernel that hangs ends with it.
	run mgws memset 124 "no end after 0.5 s .* 1 at work \(1\)" hang --set run.timeout=500ms $own
	grep -q 'did not leave within 1000 ms: its process (pid [0-9]*) was killed' "$tmp/err" || fail 'a hanging kernel lives on'
	# So does the sample, when that process dies.
	long_run
	kill -9 "$child"
	wait $run
	[ $? -eq 1 ] && grep -q "its process (pid $child) was killed by signal 9" "$tmp/err" ||
		{ fail 'no word about a process that was killed'; cat "$tmp/err"; }
	# And it ends when the run is killed.
	long_run
	kill -9 $run
	wait $run 2>/dev/null
	for i in $(seq 50); do
		state=$(sed 's/.*) //; s/ .*//' "/proc/$child/stat" 2>/dev/null)
		[ -n "$state" ] && [ "$state" != Z ] || break
		sleep 0.2
	done
	[ -z "$state" ] || [ "$state" = Z ] || fail "the device's process outlived the run: $state"
}

# $run, and its device's process $child, whose workers run.
long_run() {
	export FAKE_GPU=none
	"$G" run "$tmp/gpu.ini" --set workload.memset.tasks=100000000 --samples 1000 $own >"$tmp/out" 2>"$tmp/err" </dev/null &
	run=$! child= tries=0
	while [ $tries -lt 200 ] && [ "$(ls "/proc/${child:-none}/task" 2>/dev/null | wc -l)" -lt 9 ]; do
		child=$(cut -d ' ' -f 1 "/proc/$run/task/$run/children" 2>/dev/null)
		tries=$((tries + 1))
		sleep 0.1
	done
}

refused_runs() {
	run mgws memset 4 "there is no GPU 7, the driver sees 1" none --set device.$device.gpu=7
	run mgws memset 4 'the driver sees no GPU' no-gpu
	run mgws memset 4 'blocks must be resident at once, .* only 2 are' small --set device.$device.workers=8
	run mgws memset 2 "lanes = $((wave + 16)): must be a multiple of $wave" none \
		--set device.$device.lanes=$((wave + 16))
	run mgws memset 2 'at most 8 can be resident' none --set device.$device.workers=9
	run mgws memset 4 'choose smaller queues' none --set scheduler.mgws.local_queue=4096
	run mgws memset 1 'its kernel has failed: [A-Za-z_]*(ILLEGAL_ADDRESS|IllegalAddress)' die
	# A kernel that hangs keeps its memory: no leak of ours.
	ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"
	export ASAN_OPTIONS
	run mgws memset 124 "no end after 0.5 s .*: $device:0: .*; the workers did not leave .*: $device:0: [^;]*1 at work \(1\)" hang \
		--set run.timeout=500ms
	grep -q 'worker 1 is at work' "$tmp/err" || fail 'the device does not say who hangs'
}

# failing_runs NAME...: every function of the driver that a run calls fails in turn. At its first call the
# run ends with a sentence that names it, but for NAME..., without which the run verifies: what takes down,
# what a driver need not tell. At its last call, where devices are taken down, nothing hangs or crashes.
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
			[ ! -e "$tmp/done.$name" ] || continue # the second transport adds its own
			: >"$tmp/done.$name"
			case $optional in
			*" $name "*) fails "$name" 1 '0' ;;
			*) fails "$name" 1 '1 4' ;;
			esac
			case $name in *StreamQuery) continue ;; esac # as often as there is time
			[ "$count" = 1 ] || fails "$name" "$count" '0 1 4'
		done <"$tmp/calls"
	done
}

# fails NAME CALL STATUSES
fails() {
	# What is not freed because that failed is no leak of ours.
	case $3 in *0*) leaks=:detect_leaks=0 ;; *) leaks= ;; esac
	FAKE_GPU_FAIL=$1:$2 ASAN_OPTIONS=${ASAN_OPTIONS-}$leaks timeout 30 "$G" run "$tmp/gpu.ini" --samples 2 --set run.warmup=0 \
		--set transport.use="$transport" >"$tmp/out" 2>"$tmp/err" </dev/null
	got=$?
	case " $3 " in *" $got "*) ;; *) fail "$1, call $2 fails: exit $got, not $3"; cat "$tmp/err" ;; esac
	[ $got -eq 0 ] || grep -qE "$1|its kernel has failed" "$tmp/err" ||
		{ fail "$1, call $2: the error does not name it:"; cat "$tmp/err"; }
}
