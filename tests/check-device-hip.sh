# SPDX-License-Identifier: Apache-2.0
# Tests device_hip without a GPU: its messages, whole runs with real policies, and each failure of the runtime. The runtime
# runs kernels as threads (tests/hip/fake_runtime.c).
. tests/lib.sh
[ -e "$B/plugins/device_hip.so" ] || skip 'device_hip is not built here'
export XDG_CACHE_HOME="$tmp/cache"
device=hip wave=64
brief=yes # tests/check-device-cuda.sh runs all combinations of the code that the vendors share
need "${CXX:-c++}" # compiles the kernels
. tests/gpu/runs.sh

# Without a runtime, or with an old one, there is one message, and no program is compiled.
expect 0 'device.hip' "$G" describe device_hip
"$G" doctor >"$tmp/doctor" 2>/dev/null
if grep -q '^hip: runtime *no' "$tmp/doctor"; then
	expect 4 'HIP runtime.*install ROCm 6 or later' "$G" run conf/hip.ini
	[ "$(wc -l <"$tmp/err")" -eq 1 ] || fail 'more than one sentence about the missing runtime'
fi
fake=$B/tests/hip
[ -e "$fake/libamdhip64.so.7" ] || { fail "no $fake/libamdhip64.so.7"; finish; }
export LD_LIBRARY_PATH="$fake"
in_check || { # `make check` has run the rest
	embed_runs
	finish
}

# `make check` runs the parts that the vendors do not share. The tests over CUDA's driver cover the rest.
if [ "$CHECK" != all ]; then
	everything() { :; }
else
	everything() { "$@"; }
fi
real_compiler hipRTC hiprtc
everything conformance
everything sound_runs
[ "$CHECK" = all ] || run mgws uts 0 '3 samples, each verified' none
barrier_runs
primitive_runs
everything lossy_runs
everything trigger_runs
embed_runs
page_refusals
everything peer_runs hipIpcGetMemHandle hipIpcOpenMemHandle
everything memory_runs waiting hipMemcpyHtoDAsync:60 hipMemcpyDtoHAsync:60
everything memory_runs_elsewhere
launched_runs hipModuleLaunchKernel hipStreamWriteValue64 hipStreamWaitValue64
# These functions release resources or are optional queries. Their failure must not fail a run.
failing_runs hipDeviceGetPCIBusId hipFree hipHostFree hipHostUnregister hipModuleUnload hipStreamDestroy
run mgws memset 4 'hipErrorNoDevice .*/dev/kfd' init
run mgws memset 4 'no cooperative launches' old-gpu
run mgws memset 4 'hiprtc = in' none --set device.hip.hiprtc=/nonexistent/libhiprtc.so
refused_runs

FAKE_GPU_FAIL=hipExtMallocWithFlags:1
export FAKE_GPU_FAIL
run mgws memset 1 'hipExtMallocWithFlags.*HSA_FORCE_FINE_GRAIN_PCIE=1' none
FAKE_GPU_FAIL=hipDeviceSetLimit:1
export FAKE_GPU_FAIL
run mgws fib 1 'hipDeviceSetLimit.*lower nesting' none --set device.hip.nesting=2
unset FAKE_GPU_FAIL
run mgws fib 0 verified none --set device.hip.nesting=2

# The state of the GPU, from a stand-in for ROCm SMI.
state() { # arguments: NAME PATTERN
	run mgws memset 0 verified none --json "$tmp/$1.json"
	tr -d '\n\t ' <"$tmp/$1.json" | grep -qF "$2" || fail "$1.json lacks $2"
}
state smi '"gpu_driver":"6.10.5","gpu_power_limit_w":560,"gpu_ecc":"off"'
state smi '"gpu_temperature_c":{"low":41,"high":41}'
FAKE_SMI=ecc state ecc '"gpu_ecc":"on"'
FAKE_SMI=unsupported state cold '"gpu_temperature_c":{"null_because":"ROCmSMIreports:NotSupported"}'
mkdir "$tmp/alone" && ln -s "$fake"/libamdhip64.so.7 "$fake"/libhiprtc.so.7 "$tmp/alone/"
LD_LIBRARY_PATH=$tmp/alone state alone '"gpu_driver":{"null_because":"librocm_smi64.sowasnotfound'

# The CPUs are in a separate process, which maps all memory at other addresses.
run mgws uts 0 verified atomics --set run.devices='cpu:0 hip:0' --set transport.use=host \
	--set device.cpu.isolation=process

# GPUs of two vendors share segments and offsets only. Each GPU has its own driver here, and steals from the other GPU through
# host memory. Neither accesses the other's device memory.
if [ -e "$B/tests/cuda/libcuda.so.1" ]; then
	export LD_LIBRARY_PATH="$fake:$B/tests/cuda"
	for workload in memset fib uts; do
		detector=hcounter run mgws $workload 0 'device_cuda.*device_hip|verified' none \
			--set run.devices='cuda:0 hip:0' \
			--set transport.use=host
	done
	for workload in memset uts; do
		detector=hcounter run mgws $workload 0 verified atomics --set run.devices='cpu:0 cuda:0 hip:0' \
			--set transport.use=host \
			--set device.cpu.isolation=process
	done
	run mgws memset 4 'it cannot access memory of a device that is no' none --set run.devices='cuda:0 hip:0'
fi

# The litmus tests of the device layer compile.
if clang=$(command -v clang++) && [ -e /usr/include/hip/hip_runtime.h ]; then
	for arch in gfx90a gfx1030; do
		expect 0 '' "$clang" -x hip --offload-arch=$arch --cuda-device-only -std=c++20 -O1 -nogpulib \
			--rocm-path=/usr \
			"-I$B/include" -S -o "$tmp/litmus.s" tests/gpu/litmus.cu
		grep -q 'buffer_wbl2\|buffer_gl0_inv\|buffer_wbinvl1' "$tmp/litmus.s" ||
			fail "$arch: no order in the litmus tests"
	done
fi
finish
