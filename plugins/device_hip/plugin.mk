# SPDX-License-Identifier: Apache-2.0
# The device is built if HIP's headers are found (Debian: libamdhip64-dev). HIP=1 requires them, HIP=0 leaves the device
# out. Nothing of ROCm is linked: a stack with a HIP device loads the runtime and hipRTC when it is opened.
ROCM_PATH ?= $(firstword $(wildcard /opt/rocm) /usr)
HIP ?= auto
HIP_FOUND := $(firstword $(wildcard $(ROCM_PATH)/include/hip/hip_runtime_api.h))
ifeq ($(HIP),0)
$(call leave_out,device_hip,it was built with HIP=0,build again without HIP=0)
else ifneq ($(HIP_FOUND),)
PLUGINS += device_hip
device_hip_SRC := $(addprefix $D/,plugin.c calls.c runtime.c codeobject.c smi.c) $(GPU_SRC)
device_hip_CFLAGS := -isystem $(ROCM_PATH)/include -I$D -I$D/include -I$(COMPOSE_D)
device_hip_LIBS := -ldl
$B/obj/$D/calls.o: $D/hip.dev.h $D/include/gpuloom/dev/hip.h

# tests/test_compose_hip.c compiles every combination without a GPU. tests/check-device-hip.sh runs the device over a
# fake runtime.
$B/obj/tests/test_compose_hip.o: EXTRA_CFLAGS := -DWITH_HIP -isystem $(ROCM_PATH)/include -Iplugins
$B/tests/test_compose_hip: $(patsubst %.c,$B/obj/%.o,$D/calls.c $D/runtime.c $D/codeobject.c $D/smi.c)
$B/obj/tests/hip/fake_runtime.o: EXTRA_CFLAGS := -isystem $(ROCM_PATH)/include -Iplugins -Itests/gpu -DFAKE_RTC_TOP='"$(CURDIR)"'
$B/tests/hip/libamdhip64.so.7: $B/obj/tests/hip/fake_runtime.o $B/obj/plugins/device_common/explore/fiber.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$Q$(CC) $(CFLAGS) -shared $(LDFLAGS) -Wl,-soname,libamdhip64.so.7 $^ -ldl -o $@
	$Qln -sf libamdhip64.so.7 $(@D)/libhiprtc.so.7
$B/tests/hip/librocm_smi64.so.7: $B/obj/tests/hip/fake_smi.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$Q$(CC) $(CFLAGS) -shared $(LDFLAGS) -Wl,-soname,librocm_smi64.so.7 $^ -o $@
tests: $B/tests/hip/libamdhip64.so.7 $B/tests/hip/librocm_smi64.so.7
check-hip: tests ## every combination on this machine's AMD GPU
	PARTS="$(PARTS)" sh tests/hip/run.sh $B $(or $(REPEATS),5)
.PHONY: check-hip
-include $B/obj/tests/hip/fake_runtime.d $B/obj/tests/hip/fake_smi.d
else ifeq ($(HIP),1)
$(error HIP=1, but there is no hip/hip_runtime_api.h under $(ROCM_PATH)/include: install libamdhip64-dev, or set ROCM_PATH)
else
$(call leave_out,device_hip,there was no hip/hip_runtime_api.h under $(ROCM_PATH)/include,install the headers of HIP (Debian: libamdhip64-dev; ROCM_PATH says where) and build again)
endif
