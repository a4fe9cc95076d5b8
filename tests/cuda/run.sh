#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every combination for real, on this machine's NVIDIA GPU; then the litmus tests of the device layer.
#   [PARTS='tasks waits'] tests/cuda/run.sh BUILD [SAMPLES [SANITIZER]]
# SAMPLES (default 50): in a row, in one run. SANITIZER: compute-sanitizer's tools to run once each, as in
# "memcheck racecheck". Exit 77: no GPU here.
device=cuda vendor=NVIDIA sanitizer=${3-}
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
. "$(dirname "$0")/../gpu/everything.sh"

# Litmus tests of the device layer: compiled here, for they need no composition.
if nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) &&
	"$nvcc" -std=c++20 -arch=native -I"$(dirname "$0")/../../core/include" -o "$tmp/litmus" \
		"$(dirname "$0")/litmus.cu" >"$tmp/out" 2>&1; then
	if "$tmp/litmus"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
else
	echo '  no litmus tests: no nvcc here, or it fails:'
	[ ! -s "$tmp/out" ] || tail -n 5 "$tmp/out"
fi

base='--set transport.use=p2p --set scheduler.use=mgws --set termination.use=counter'
for tool in $sanitizer; do
	wrap="compute-sanitizer --tool $tool --error-exitcode 99"
	for workload in memset fib uts; do
		for grain in worker lane; do
			once "$tool $workload $grain" 0 $base --set run.workload="$workload" --samples 1 \
				--set workload.memset.tasks=20000 --set workload.fib.n=14 \
				--set workload.uts.tree=custom --set workload.uts.depth=5 \
				--set scheduler.mgws.grain=$grain --set device.$device.workers=64 \
				--set run.timeout=200s && printf '  ok  %s\n' "$tool $workload $grain"
		done
	done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
