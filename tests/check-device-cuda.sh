# SPDX-License-Identifier: Apache-2.0
# Tests device_cuda without a GPU: its messages, whole runs with real policies, and each failure of the driver. The driver
# runs kernels as threads (tests/cuda/fake_driver.c).
. tests/lib.sh
[ -e "$B/plugins/device_cuda.so" ] || skip 'device_cuda is not built here'
export XDG_CACHE_HOME="$tmp/cache"
device=cuda wave=32 brief=
need "${CXX:-c++}" # compiles the kernels
. tests/gpu/runs.sh

# Without a driver there is one message, and no program is compiled.
expect 0 'device.cuda' "$G" describe device_cuda
if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
	expect 4 'no NVIDIA driver here .*install it' "$G" run "$tmp/gpu.ini"
	[ "$(wc -l <"$tmp/err")" -eq 1 ] || fail 'more than one sentence about the missing driver'
	expect 0 'cuda: driver +no ' "$G" doctor
fi

"$G" doctor >"$tmp/doctor" 2>/dev/null
fake=$B/tests/cuda
[ -e "$fake/libcuda.so.1" ] || { fail "no $fake/libcuda.so.1"; finish; }
export LD_LIBRARY_PATH="$fake"

# The sync plug-in needs one warp of each block for its monitor.
waits() { # arguments: STATUS PATTERN [ARGUMENTS]
	export FAKE_GPU=none
	status=$1 wanted=$2
	shift 2
	expect "$status" "$wanted" "$G" run "$tmp/gpu.ini" --set run.devices='cuda:0 cuda:1' --set device.cuda.1.gpu=0 \
		--set device.cuda.workers=4 --set run.workload=stn --set sync.use=warp "$@"
}
# crossing SYNC WORKLOAD STATUS PATTERN ARGUMENTS...: CPU and GPU wait for each other.
crossing() {
	sync=$1 workload=$2 status=$3 wanted=$4
	shift 4
	FAKE_GPU=none expect "$status" "$wanted" "$G" run conf/wic.ini --samples 2 --set device.cpu.workers=4 \
		--set device.cuda.workers=4 --set transport.use=p2p --set run.workload=$workload --set sync.use=$sync \
		--set workload.resume.of=4 \
		--set workload.resume.waiters=2 --set workload.resume.computing=1 --set workload.resume.work=10 \
		--set workload.resume.iterations=60 --set workload.resume.size=300 "$@"
}
crossings() {
	for sync in warp futex wic; do
		crossing $sync resume 0 verified --set run.devices='cpu:0 cuda:0'
		crossing $sync pattern 0 verified --set run.devices='cuda:0 cpu:0' \
			--set workload.pattern.model=alternating
		crossing $sync pattern 124 'no end after 0.3 s' --set run.devices='cpu:0 cuda:0' \
			--set run.timeout=300ms \
			--set workload.exchange.tp=400000
	done
	# Two coherent GPUs: flags and items are in the memory of the consumers' GPU.
	for size in 1 300; do
		crossing warp resume 0 verified --set run.devices='cuda:0 cuda:1' --set device.cuda.1.gpu=0 \
			--set workload.resume.size=$size
	done
	crossing warp gem 0 '^  overlap ' --set run.devices='cuda:0 cuda:1' --set device.cuda.1.gpu=0
	crossing warp pattern 124 'no end after 0.3 s' --set run.devices='cuda:0 cuda:1' --set device.cuda.1.gpu=0 \
		--set run.timeout=300ms --set workload.exchange.tp=400000
	for sync in futex wic; do
		crossing $sync resume 0 verified --set run.devices='cuda:0 cpu:0' --set sync.$sync.notify=interrupt
	done
	for notify in poll interrupt; do # here both devices publish to the same channel
		crossing wic gem 0 verified --set run.devices='cpu:0 cuda:0' --set device.cpu.workers=2 \
			--set device.cuda.workers=1 --set sync.wic.notify=$notify
	done
	crossing futex pattern 4 'supports one GPU' --set run.devices='cuda:0 cpu:0 cuda:1' --set device.cuda.1.gpu=0 \
		--set sync.futex.notify=interrupt
	crossing wic pattern 124 'no end after 0.3 s' --set run.devices='cuda:0 cpu:0' --set run.timeout=300ms \
		--set sync.wic.notify=interrupt --set workload.exchange.tp=400000
}
# crossing_death SYNC: during the run, the producers' process on the CPU is killed.
crossing_death() {
	FAKE_GPU=none "$G" run conf/wic.ini --samples 1 \
		--set run.devices="cpu:0 cuda:0" --set transport.use=p2p --set device.cpu.isolation=process \
		--set device.cpu.workers=2 --set device.cuda.workers=2 --set sync.use=$1 --set run.workload=pattern \
		--set workload.pattern.iterations=100000 --set workload.exchange.tp=1000 >"$tmp/out" 2>"$tmp/err" &
	run=$!
	soon 'at_work $run 1'
	ended_by KILL "$(pgrep -P $run)" $run
	[ $status -eq 1 ] && grep -q "cpu:0.*killed by signal 9" "$tmp/err" ||
		fail "$1: exit $status: $(cat "$tmp/err")"
	[ $took -lt 3000 ] || fail "$1: $took ms until a killed producer was noticed"
}
crossing_runs() {
	crossings
	case $B in *thread*) ;; *)
		crossing_death wic
		crossing_death futex
		;;
	esac
}

in_check || { # `make check` has run the rest
	embed_runs
	more_trigger_runs
	interrupt_variants
	crossing_runs
	finish
}

FAKE_GPU=two-gpus expect 0 'cuda: peer access +limited +2 of 2 directed pairs of GPUs, 1 of them with native 64-bit atomics' \
	"$G" doctor
expect 0 'cuda: GPU 0 and CPU +limited +no native atomics on host memory' "$G" doctor
FAKE_GPU=atomics expect 0 'cuda: GPU 0 and CPU +ok +64-bit add and compare-and-swap' "$G" doctor

# With kernels = graph, the kernels and words of a sample form one graph.
graph_runs() {
	[ -e "$B/plugins/trigger_gds.so" ] || return # built without libfabric
	with=gds
	graph="--set device.cuda.kernels=graph"
	for workload in pingpong jacobi2d; do
		launched 0 '3 samples, each verified' none $graph
		launched 0 '3 samples, each verified' none $graph --ranks 2 --set transport.use=host
		launched 4 'a sample has 100000?1 steps, but a graph at most 4096' none $graph \
			--set workload.pingpong.rounds=100000 \
			--set workload.jacobi2d.sweeps=100000
	done
	launched 124 'no end after 0.3 s' mute $graph --set run.timeout=300ms
	for call in cuStreamBeginCapture cuStreamEndCapture cuGraphInstantiate cuGraphLaunch; do
		FAKE_GPU_FAIL=$call:1 launched 1 "$call" none $graph
	done
	with=hdn
	launched 4 'the host takes part in each step' none $graph
}

# The blocks of a kernel leave shared memory to the cache. If the driver gives too little, they get all.
carved() { # arguments: MODE PERCENT [ARGUMENTS]
	mode=$1 percent=$2
	shift 2
	run mgws memset 0 'verified' $mode --set device.cuda.workers=4 --samples 1 "$@"
	grep 'fake: 4 blocks' "$tmp/err" | tail -n 1 | grep -q "carveout $percent\$" || { fail "carveout is not $percent"; cat "$tmp/err"; }
}
carved carveout 6
carved less-shared 100

conformance
sound_runs
real_compiler NVRTC nvrtc
barrier_runs
primitive_runs
lossy_runs
# The driver reports links without atomics for host memory.
run mgws uts 4 'no common counter: set use = hcounter or tree' none --set run.devices='cuda:0 cuda:1' \
	--set device.cuda.1.gpu=0 \
	--set transport.use=host
trigger_runs
[ "$CHECK" != all ] || more_trigger_runs
peer_runs cuIpcGetMemHandle cuIpcOpenMemHandle
memory_runs direct cuMemcpyHtoDAsync:4 cuMemcpyDtoHAsync:4 cuMemcpyAsync:20 cuStreamWriteValue64:20
launched_runs cuLaunchKernel cuStreamWriteValue64 cuStreamWaitValue64
launched_refusals
graph_runs
page_runs cuMemcpyHtoDAsync cuStreamSynchronize
interrupt_runs cuEventCreate cuEventSynchronize cuEventRecord
apart_runs
memory_runs_elsewhere
noncoherent_runs
embed_runs
# gpuloom.torch, with a stand-in for PyTorch whose streams are those of the driver without a GPU.
case $B in *address* | *thread* | *undefined*) ;; *)
	! python3 -c 'import ctypes, unittest' 2>/dev/null ||
		FAKE_GPU=ranks STAND_IN_CUDA=1 GPULOOM=$G PYTHONPATH=python:tests/torch_stand_in PYTHONDONTWRITEBYTECODE=1 expect 0 OK python3 tests/python_torch.py
	;;
esac

waits 0 '3 samples, each verified'
! grep -q '^ *work_s' "$tmp/out" || fail 'the work of warps, which have no processor time'
[ "$CHECK" != all ] || crossing_runs
waits 4 'compares clocks of devices, which only CPUs share' --set workload.exchange.times=yes
waits 4 'needs 32 threads in each block' --set device.cuda.lanes=1024

# joules, from a stand-in for NVML (fake_nvml.c) whose cards consume 100 W. Two devices on one card have one counter.
energy() { # arguments: STATUS PATTERN NVML [ARGUMENTS]
	status=$1 wanted=$2
	export FAKE_NVML="$3"
	shift 3
	run mgws memset "$status" "$wanted" none --set run.joules=yes "$@"
}
energy 0 'joules +[0-9]' none --json "$tmp/joules.json"
for devices in cuda:0 'cuda:0 cuda:1'; do
	energy 0 'joules +[0-9]' none --json "$tmp/joules.json" --set run.devices="$devices" --set device.cuda.1.gpu=0
	python3 - "$tmp/joules.json" <<-'PY' || fail "joules of $devices"
		import json, sys
		m = json.load(open(sys.argv[1]))['metrics']
		for j, s in zip(m['joules']['samples'], m['seconds']['samples']):
		    assert 100 * s - 0.02 <= j <= 100 * s + 20, (j, s)  # at 100 W; the process can lose its core between two readings
	PY
done
energy 4 'cuda:0: no energy counter: NVML reports: Driver Not Loaded: set joules = no' init
energy 4 'NVML reports: Not Supported' unsupported
mkdir "$tmp/driver" && ln -s "$fake/libcuda.so.1" "$tmp/driver/"
LD_LIBRARY_PATH=$tmp/driver energy 4 'libnvidia-ml.so.1 was not found.*install it with the driver' none
unset FAKE_NVML

# The result says on which GPU and in which state it was measured. says FILE EXPRESSION: checks a Python expression of the
# facts that must agree, the readings, the marks of counted samples, and the text of the warning.
says() {
	python3 - "$tmp/$1" "$2" <<-'PY' || fail "$1: not $2"
		import json, sys
		d = json.load(open(sys.argv[1]))
		facts, readings = d["environment"].get("devices"), d["environment"].get("readings")
		marks = sum(s.get("throttled", False) for s in d["samples"] if not s["warmup"])
		warning = "".join(w["text"] for w in d["warnings"] if w["id"] == "throttled")
		if not eval(sys.argv[2]):
		    sys.exit("%s\n%s\n%s %s" % (facts, readings, marks, warning))
	PY
}
facts() { # arguments: NAME [ARGUMENTS]
	name=$1
	shift
	run mgws memset 0 verified none --json "$tmp/$name.json" "$@"
}
facts a
says a.json 'facts == {"clock": "samples of one launch", "gpu_model": "no GPU", "gpu_driver": "580.10", "gpu_power_limit_w": 700,
	"gpu_ecc": "on", "gpu_persistence": "on", "gpu_mig": "off"}'
says a.json 'readings == {"gpu_sm_clock_mhz": {"low": 1965, "high": 1980}, "gpu_memory_clock_mhz": {"low": 3201, "high": 3201},
	"gpu_temperature_c": {"low": 35, "high": 35}, "gpu_throttle": "idle"}'
! grep -q 'throttled' "$tmp/out" || fail 'a word about a GPU that was not throttled'
facts two --set run.devices='cuda:0 cuda:1' --set device.cuda.1.gpu=0
says two.json 'facts["gpu_model"] == "no GPU" and facts["gpu_power_limit_w"] == 700'
FAKE_GPU_MODEL='NVIDIA H100' facts h100
FAKE_GPU_MODEL='NVIDIA H200' FAKE_NVML_DRIVER=580.100 FAKE_NVML_LIMIT=650 facts h200
for differs in 'gpu_model: NVIDIA H100 in h100, NVIDIA H200 in h200' 'gpu_driver: 580.10 in h100, 580.100 in h200' \
	'gpu_power_limit_w: 700 in h100, 650 in h200' '--allow-mismatch=gpu_model --allow-mismatch=gpu_driver --allow-mismatch=gpu_power_limit_w'; do
	expect 2 "$differs" "$G" compare "$tmp/h100.json" "$tmp/h200.json"
done
expect 0 'note: gpu_model: NVIDIA H100 in h100, NVIDIA H200 in h200' "$G" compare "$tmp/h100.json" "$tmp/h200.json" \
	--allow-mismatch=gpu_model --allow-mismatch=gpu_driver --allow-mismatch=gpu_power_limit_w
expect 2 "gpu_modle: no such fact; did you mean 'gpu_model'" "$G" compare "$tmp/h100.json" "$tmp/h200.json" --allow-mismatch=gpu_modle
expect 0 seconds "$G" compare "$tmp/a.json" "$tmp/two.json" # two devices on the same GPU
# A result from before these facts is of an unknown GPU, but a result of a CPU is of none.
python3 - "$tmp/a.json" >"$tmp/old.json" <<-'PY'
	import json, sys
	d = json.load(open(sys.argv[1]))
	del d["environment"]["devices"]
	json.dump(d, sys.stdout)
PY
expect 2 'gpu_model: no GPU in a, not known .not said. in old' "$G" compare "$tmp/a.json" "$tmp/old.json"
facts cpu --set run.devices=cpu:0
says cpu.json 'facts is None and readings is None'
expect 0 seconds "$G" compare "$tmp/a.json" "$tmp/cpu.json"

# Samples of a hot GPU are repeated, but not forever. The first reading of the reasons precedes the samples.
FAKE_NVML_REASONS=40:3:4 facts hot
says hot.json 'marks == 0 and warning.endswith("2 of these samples do not count and were repeated, 0 count")'
FAKE_NVML_REASONS=80 facts hot
says hot.json 'marks == 3 and "10 of these" in warning and warning.endswith("3 count") and readings["gpu_throttle"] == "hardware power brake"'
grep -q 'note: heat or a lack of power throttled a device' "$tmp/out" || fail 'no line about a throttled GPU'
FAKE_NVML_REASONS=4 facts capped
says capped.json 'marks == 0 and not warning and readings["gpu_throttle"] == "software power cap"'
# Of long samples, the counters also tell: here the second reading is higher.
FAKE_NVML_REASONS=0 FAKE_NVML_VIOLATED=1 facts long --set workload.memset.tasks=600000
says long.json 'marks == 0 and "1 of these samples do not count" in warning and readings["gpu_throttle"] == "none"'
FAKE_GPU=none FAKE_NVML_REASONS=8:9:9 expect 0 'note: [a-z0-9]*: heat or a lack of power throttled a device during samples: 1 of these' \
	"$G" compare "$tmp/gpu.ini" --blocks 6 --samples-per-block 2 --spread 0 --warmup 1 --vary scheduler.mgws.public_queue=8,16

# NVML is absent, does not start, or is of an old driver.
LD_LIBRARY_PATH=$tmp/driver facts absent
says absent.json '"libnvidia-ml.so.1 was not found" in facts["gpu_driver"]["null_because"] and facts["gpu_model"] == "no GPU"'
FAKE_NVML=init facts silent
says silent.json 'facts["gpu_ecc"]["null_because"] == "NVML reports: Driver Not Loaded"'
expect 2 'gpu_ecc: on in a, not known .NVML reports: Driver Not Loaded. in silent' "$G" compare "$tmp/a.json" "$tmp/silent.json"
mkdir "$tmp/old" && ln -s "$fake/libcuda.so.1" "$tmp/old/"
"${CXX:-c++}" -x c -std=gnu11 -w -shared -fPIC -DOLD tests/cuda/fake_nvml.c -o "$tmp/old/libnvidia-ml.so.1" || fail 'no old NVML'
FAKE_NVML_REASONS=40 LD_LIBRARY_PATH=$tmp/old facts old
says old.json 'marks == 0 and facts["gpu_mig"]["null_because"] == "NVML reports: Function Not Found" and facts["gpu_ecc"] == "on"'

# What the clock includes must agree, too.
if [ -e "$B/plugins/trigger_gds.so" ]; then
	with=gds workload=pingpong
	launched 0 verified none --json "$tmp/launched.json"
	says launched.json 'facts["clock"] == "a launch of each step"'
	set -- "$tmp/gpu.ini" --vary device.cuda.kernels=launched,graph --set barrier.use=auto --set run.workload=pingpong \
		--set trigger.use=gds --set trigger.provider=shm --set device.cuda.workers=4 --set workload.pingpong.rounds=100
	expect 2 'clock: a launch of each step in launched, a launch of a graph in graph' "$G" compare "$@"
	expect 0 'FASTER|SLOWER|INCONCLUSIVE|EQUIVALENT' "$G" compare "$@" --blocks 6 --samples-per-block 2 --spread 0 --allow-mismatch=clock
fi

# Between samples the cache is filled, by workers that are resident or, if there are none, by the driver. When the memory is
# freed, the driver counts it if all of it was overwritten.
flushed() { # arguments: COUNT FUNCTION ARGUMENTS
	flushes=$1
	shift
	FAKE_GPU_CALLS=$tmp/flushes
	export FAKE_GPU_CALLS
	: >"$FAKE_GPU_CALLS"
	"$@"
	unset FAKE_GPU_CALLS
	[ "$(sed -n 's/^Flushed //p' "$tmp/flushes")" = "$flushes" ] || fail "$*: not $flushes flushes"
}
flushed '' facts flushed
flushed 1 facts flushed --set device.gpu.flush=yes
grep -q '"device.gpu.flush":' "$tmp/flushed.json" || fail 'the result does not name the option flush'
flushed 1 facts flushed --set device.gpu.flush=yes --set device.gpu.quick=yes --set device.cuda.lanes=64
workload=pingpong
[ ! -e "$B/plugins/trigger_gds.so" ] || flushed 1 launched 0 verified none --set device.gpu.flush=yes

# These functions release resources or read the location of the GPU. Their failure must not fail a run.
failing_runs cuDeviceGetPCIBusId cuMemFree cuMemFreeHost cuMemHostUnregister cuModuleUnload cuStreamDestroy \
	cuDevicePrimaryCtxRelease cuDeviceGetHostAtomicCapabilities
run mgws memset 4 'CUDA_ERROR_NO_DEVICE .*make an NVIDIA GPU visible' init
run mgws memset 4 'compute capability 6.0: 7.0 or later' old-gpu
run mgws memset 2 "unknown key 'nvrtc' in .device.gpu.; it belongs in .device.cuda." none --set device.gpu.nvrtc=x
run mgws memset 4 'nvrtc = in' none --set device.cuda.nvrtc=/nonexistent/libnvrtc.so
refused_runs

# Variants that fill the GPU take turns on it: the workers of one would wait for ever for those of another to leave. When all stacks are
# opened again, no stack frees memory while workers of another one run, because the driver would wait for them.
expect 0 'static ' env FAKE_GPU=atomics FAKE_ROOM=1 timeout -k 5 60 "$G" compare "$tmp/gpu.ini" --set run.workload=memset \
	--vary scheduler.use=mgws,static --blocks 8 --openings 8 --samples-per-block 2 --spread 0s --aa
# A rival is a program of its own, which may use the GPU. No workers of another variant may be on it meanwhile: each block of the fake GPU is
# a thread of gpuloom's process.
cat >"$tmp/rival" <<'END'
#!/bin/sh
[ "$(ls "/proc/$PPID/task" | wc -l)" -le 6 ] || exit 1
echo '{"seconds": {"value": 0.01, "unit": "s", "better": "less"}}'
END
chmod +x "$tmp/rival"
printf '%s\n' '[run]' 'workload = exec' 'devices = cpu:0' '[device.cpu]' 'workers = 1' '[transport]' 'use = host' \
	'[workload.exec]' "command = $tmp/rival" >"$tmp/rival.ini"
expect 0 'rival ' env FAKE_GPU=atomics FAKE_ROOM=1 timeout -k 5 60 "$G" compare "$tmp/gpu.ini" "$tmp/rival.ini" --blocks 4 \
	--openings 1 --samples-per-block 2 --spread 0s --allow-mismatch=workload
finish
