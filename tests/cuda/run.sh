#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs all combinations on this machine's NVIDIA GPU, then the litmus tests of the device layer.
#   [PARTS='tasks waits litmus'] tests/cuda/run.sh BUILD [SAMPLES]
# SAMPLES (default 50) is the number of consecutive samples in a run. PARTS has the parts of tests/gpu/everything.sh, and
# embed (programs that embed a stack), memcheck and racecheck (of compute-sanitizer). Each of counter, hcounter, tree, policies, shapes, pairs, waits, peers,
# memcheck and racecheck takes 1 to 3 minutes. requests takes ten minutes, or four with JOBS=8. With REQUEST_TIME it makes a
# fair sample of its runs for that many seconds. Without a GPU the exit status is 77.
device=cuda vendor=NVIDIA
shapes='
lanes=64
lanes=256
worker=warp
worker=warp warps=8
workers=1
workers=2
max_registers=64
nesting=2
'
syncs='warp poll backoff'
shared_shapes='
worker=warp warps=4
worker=warp warps=16
lanes=64
'
litmus=false
if nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null); then
	litmus="$nvcc -std=c++20 -arch=native"
fi

# NVIDIA's MPS lets kernels of several processes run at once. Without MPS they take turns.
together() {
	export CUDA_MPS_PIPE_DIRECTORY="$tmp/mps" CUDA_MPS_LOG_DIRECTORY="$tmp/mps"
	mkdir -p "$tmp/mps" && nvidia-cuda-mps-control -d && trap 'in_turn; rm -rf "$tmp"' EXIT
}
in_turn() {
	echo quit | nvidia-cuda-mps-control
	unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
	trap 'rm -rf "$tmp"' EXIT
}

# memcheck and racecheck are separate parts: six runs under a tool of compute-sanitizer.
sanitize() {
	wrap="compute-sanitizer --tool $1 --error-exitcode 99"
	for workload in memset fib uts; do
		for granularity in worker lane; do
			once "$1 $workload $granularity" 0 $base --set run.workload="$workload" --samples 1 \
				--set workload.memset.tasks=20000 --set workload.fib.n=14 \
				--set workload.uts.tree=custom --set workload.uts.depth=5 \
				--set scheduler.granularity=$granularity --set device.$device.workers=64 \
				--set run.timeout=200s && printf '  ok  %s\n' "$1 $workload $granularity"
		done
	done
	wrap=
}
memcheck() { sanitize memcheck; }
racecheck() { sanitize racecheck; }

# Tests a program that embeds a stack, with 10,000 runs that are stopped (or RUNS), streams, graphs and adopted memory.
embed_program() { # LABEL DEVICES RESIDENT
	if TEST_GPU=$2 TEST_GPU_RESIDENT=$3 TEST_GPU_RUNS=${RUNS:-10000} "$B/tests/test_embed_gpu" >"$tmp/out" 2>&1; then
		passed=$((passed + 1))
		echo "  ok  embed $1"
	else
		failed=$((failed + 1))
		echo "FAILED  embed $1"
		tail -n 20 "$tmp/out"
	fi
}
embed() {
	top=$(dirname "$0")/../..
	make -s -C "$top" B="$B" "$B/tests/test_embed_gpu" || return
	for devices in cuda:0 'cuda:0 cuda:1' 'cpu:0 cuda:0'; do
		for resident in '' 10ms 20us; do
			embed_program "$devices ${resident:+resident }$resident" "$devices" "$resident"
		done
	done
	if [ "$litmus" != false ] && $nvcc -std=c++17 -O2 -arch=native -I"$B/include" "$top/examples/embed/stream.cu" \
		-o "$tmp/stream" -L"$B" -lgpuloom -Xlinker "-rpath=$B" >"$tmp/out" 2>&1 && "$tmp/stream" >>"$tmp/out" 2>&1; then
		passed=$((passed + 1))
		echo "  ok  $(tail -n 1 "$tmp/out")"
	else
		failed=$((failed + 1))
		echo 'FAILED  examples/embed/stream.cu'
		tail -n 5 "$tmp/out"
	fi
}

. "$(dirname "$0")/../gpu/everything.sh"
