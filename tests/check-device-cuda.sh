# SPDX-License-Identifier: Apache-2.0
# device_cuda without a GPU: what it says where there is none; and, over a driver that runs kernels as
# threads (tests/cuda/fake_driver.c), whole runs with real policies, and each way in which they go wrong.
. tests/lib.sh
[ -e "$B/plugins/device_cuda.so" ] || { echo 'skipped: device_cuda is not built here'; exit 77; }
export XDG_CACHE_HOME="$tmp/cache"
cat >"$tmp/cuda.ini" <<'END'
[run]
workload = memset
devices  = cuda:0
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

# Where there is no driver, one sentence says so; nothing is compiled for it.
expect 0 'device.cuda' "$G" describe device_cuda
if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
	expect 4 'no NVIDIA driver here .*install it' "$G" run "$tmp/cuda.ini"
	[ "$(wc -l <"$tmp/err")" -eq 1 ] || fail 'more than one sentence about the missing driver'
	expect 0 'cuda: driver +no ' "$G" doctor
fi

"$G" doctor >"$tmp/doctor" 2>/dev/null
grep -q '^cuda: NVRTC *ok' "$tmp/doctor" || { echo 'skipped: no NVRTC here'; [ "$failures" -eq 0 ] && exit 77; finish; }
fake=$B/tests/cuda
[ -e "$fake/libcuda.so.1" ] || { fail "no $fake/libcuda.so.1"; finish; }
export LD_LIBRARY_PATH="$fake"

# run SCHEDULER WORKLOAD STATUS PATTERN [WRONG [ARGUMENTS]]
run() {
	scheduler=$1 workload=$2 status=$3 wanted=$4 wrong=${5-none}
	[ $# -lt 5 ] && shift 4 || shift 5
	export FAKE_CUDA="$wrong"
	export FAKE_CUDA_PLUGINS="$B/plugins/sched_$scheduler.so $B/plugins/term_counter.so $B/plugins/workload_$workload.so"
	expect "$status" "$wanted" "$G" run "$tmp/cuda.ini" --set scheduler.use="$scheduler" \
		--set run.workload="$workload" "$@"
}

for transport in p2p host; do
	for scheduler in mgws static; do
		for workload in memset fib uts; do
			run $scheduler $workload 0 '3 samples, each verified' none --set transport.use=$transport
		done
	done
done
run mgws uts 0 verified none --set device.cuda.worker=warp --set device.cuda.warps=2
run mgws uts 0 verified none --set device.cuda.lanes=64 --set device.cuda.workers=3
run mgws fib 0 verified none --set run.devices='cuda:0 cuda:1' --set device.cuda.1.gpu=0
run mgws fib 0 verified atomics --set run.devices='cpu:0 cuda:0' --set transport.use=host

# A sync that wants a warp of its own in each block.
waits() { # STATUS PATTERN [ARGUMENTS]
	export FAKE_CUDA=none FAKE_CUDA_PLUGINS="$B/plugins/sync_warp.so $B/plugins/workload_stn.so"
	status=$1 wanted=$2
	shift 2
	expect "$status" "$wanted" "$G" run "$tmp/cuda.ini" --set run.devices='cuda:0 cuda:1' --set device.cuda.1.gpu=0 \
		--set device.cuda.workers=4 --set run.workload=stn --set sync.use=warp "$@"
}
waits 0 '3 samples, each verified'
waits 4 'wants 32 threads in each block' --set device.cuda.lanes=1024

# The second run takes the program from the cache; `compile = always` does not.
run mgws memset 0 'taken from ' none --log debug
run mgws memset 0 'compiled in ' none --log debug --set device.cuda.compile=always
grep -q 'taken from' "$tmp/err" && fail 'compile = always took the program from the cache'
run mgws memset 0 'compiled in ' none --log debug --set device.cuda.cache="$tmp/other"
ls "$tmp"/other/*.code >/dev/null 2>&1 || fail 'nothing in the folder that cache names'

run mgws memset 4 'CUDA_ERROR_NO_DEVICE .*make an NVIDIA GPU visible' init
run mgws memset 4 'the driver sees no GPU' no-gpu
run mgws memset 4 'compute capability 6.0: 7.0 or later' old-gpu
run mgws memset 4 'there is no GPU 7, the driver sees 1' none --set device.cuda.gpu=7
run mgws memset 4 'blocks must be resident at once, .* only 2 are' small --set device.cuda.workers=8
run mgws memset 1 'its kernel has failed: CUDA_ERROR_ILLEGAL_ADDRESS' die
# A kernel that hangs keeps its memory: no leak of ours.
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"
run mgws memset 124 'worker 1 is inside a task or the scheduler' hang --set run.timeout=500ms
run mgws memset 4 'no atomic addition.*GPUs alone' none --set run.devices='cpu:0 cuda:0' --set transport.use=host
run mgws memset 2 'lanes = 48: must be a multiple of 32' none --set device.cuda.lanes=48
run mgws memset 2 'at most 8 can be resident' none --set device.cuda.workers=9
run mgws memset 4 'choose smaller queues' none --set scheduler.mgws.local_queue=4096
run mgws memset 4 'nvrtc = in' none --set device.cuda.nvrtc=/nonexistent/libnvrtc.so
finish
