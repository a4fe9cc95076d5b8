# SPDX-License-Identifier: Apache-2.0
# The device is built if the CUDA toolkit's headers are found. CUDA=1 requires them, CUDA=0 leaves the device out.
# Nothing of CUDA is linked: a stack with a CUDA device loads the driver and NVRTC when it is opened.
CUDA_HOME ?= $(firstword $(wildcard /usr/local/cuda /opt/cuda) /usr)
CUDA ?= auto
CUDA_FOUND := $(wildcard $(CUDA_HOME)/include/cuda.h)
CUDA_D := $D
ifeq ($(CUDA),0)
$(call leave_out,device_cuda,it was built with CUDA=0,build again without CUDA=0)
else ifneq ($(CUDA_FOUND),)
PLUGINS += device_cuda
device_cuda_SRC = $(addprefix $(CUDA_D)/,plugin.c calls.c driver.c jitlink.c ptxas.c notify.c nvml.c) $(GPU_SRC)
device_cuda_CFLAGS := -isystem $(CUDA_HOME)/include -I$D -I$D/include -I$(COMPOSE_D)
device_cuda_LIBS := -ldl
$B/obj/$D/calls.o: $D/cuda.dev.h $D/include/gpuloom/dev/cuda.h

# tests/test_compose.c compiles every combination without a GPU. tests/check-device-cuda.sh runs the device over a fake
# driver.
CUDA_TEST_OBJ := $(patsubst %.c,$B/obj/%.o,$D/calls.c $D/driver.c $D/jitlink.c $D/ptxas.c $D/notify.c $D/nvml.c)
$B/obj/tests/test_compose.o: EXTRA_CFLAGS := -DWITH_CUDA -isystem $(CUDA_HOME)/include -Iplugins
$B/tests/test_compose: $(CUDA_TEST_OBJ)
$B/obj/tests/cuda/fake_driver.o: EXTRA_CFLAGS := -isystem $(CUDA_HOME)/include -Iplugins -Itests/gpu -DFAKE_RTC_TOP='"$(CURDIR)"'
$B/tests/cuda/libcuda.so.1: $B/obj/tests/cuda/fake_driver.o $B/obj/plugins/device_common/explore/fiber.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$Q$(CC) $(CFLAGS) -shared $(LDFLAGS) -Wl,-soname,libcuda.so.1 $^ -ldl -o $@
	$Qln -sf libcuda.so.1 $(@D)/libnvrtc.so.13
$B/tests/cuda/libnvidia-ml.so.1: $B/obj/tests/cuda/fake_nvml.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$Q$(CC) $(CFLAGS) -shared $(LDFLAGS) -Wl,-soname,libnvidia-ml.so.1 $^ -o $@
tests: $B/tests/cuda/libcuda.so.1 $B/tests/cuda/libnvidia-ml.so.1
check-cuda: tests ## every combination on this machine's NVIDIA GPU; PARTS="memcheck racecheck" for its sanitizer
	PARTS="$(PARTS)" sh tests/cuda/run.sh $B $(or $(REPEATS),5)
.PHONY: check-cuda
-include $B/obj/tests/cuda/fake_driver.d $B/obj/tests/cuda/fake_nvml.d
bench-compile: tests ## what the first use of a selection on an NVIDIA GPU costs; needs NVRTC, no GPU
	bench/compile $B $(REPEATS)
.PHONY: bench-compile
else ifeq ($(CUDA),1)
$(error CUDA=1, but there is no cuda.h under $(CUDA_HOME)/include: set CUDA_HOME)
else
$(call leave_out,device_cuda,there was no cuda.h under $(CUDA_HOME)/include,install the headers of the CUDA toolkit (CUDA_HOME says where) and build again)
endif
