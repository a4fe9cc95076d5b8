/* SPDX-License-Identifier: Apache-2.0 */
/* A libamdhip64 without a GPU; tests/gpu/fake_kernel.h describes it. */
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>

#define FAKE_ERROR hipErrorUnknown
#define FAKE_RESULT hipError_t
#define FAKE_OK hipSuccess
#include "fake_kernel.h"

/* clang-format off: a function has one or two lines */

/* ---- functions that the headers of older releases do not declare ---- */

API hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz,
						unsigned bx, unsigned by, unsigned bz, unsigned shared,
						hipStream_t stream, void **parameters);
API hipError_t hipDeviceSetLimit(int limit, size_t value);
API hipError_t hipGetDevicePropertiesR0600(void *properties, int device);

/* ---- kernels ---- */

FAKE(hipModuleLaunchCooperativeKernel, (hipFunction_t f, unsigned gx, unsigned gy, unsigned gz,
     unsigned bx, unsigned by, unsigned bz, unsigned shared, hipStream_t stream, void **parameters),
	return fake_launch((struct module *)f, fake_stream(stream), gx, bx, parameters[0]) ? hipSuccess :
												hipErrorLaunchFailure;)

FAKE(hipModuleLaunchKernel, (hipFunction_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
     unsigned bz, unsigned shared, hipStream_t stream, void **parameters, void **extra),
	return fake_launch((struct module *)f, fake_stream(stream), gx, bx, parameters[0]) ? hipSuccess :
												hipErrorLaunchFailure;)
FAKE(hipStreamWriteValue64, (hipStream_t stream, void *at, uint64_t value, unsigned flags),
	fake_call((struct stream *)stream, &(struct call){.word = at, .value = value});)
FAKE(hipStreamWaitValue64, (hipStream_t stream, void *at, uint64_t value, unsigned flags, uint64_t mask),
	if (flags != hipStreamWaitValueGte || ~mask)
		return hipErrorInvalidValue;
	fake_call((struct stream *)stream, &(struct call){.word = at, .value = value, .awaits = 1});)

API hipError_t hipStreamQuery(hipStream_t stream)
{
	if (fake_fails("hipStreamQuery")) {
		fake_kill((struct stream *)stream);
		return FAKE_ERROR;
	}
	int state = fake_state((struct stream *)stream);
	return state < 0 ? hipErrorIllegalAddress : state ? hipErrorNotReady : hipSuccess;
}

FAKE(hipModuleLoadData, (hipModule_t *module, const void *image),
	*module = (hipModule_t)fake_load(image);
	return *module ? hipSuccess : hipErrorInvalidImage;)
FAKE(hipModuleUnload, (hipModule_t module), fake_unload((struct module *)module);)
FAKE(hipModuleGetFunction, (hipFunction_t *function, hipModule_t module, const char *name),
	*function = (hipFunction_t)module;
	return fake_has_kernel((struct module *)module, name) ? hipSuccess : hipErrorNotFound;)
FAKE(hipModuleGetGlobal, (hipDeviceptr_t *at, size_t *bytes, hipModule_t module, const char *name),
	*at = fake_record((struct module *)module, bytes);
	return strcmp(name, "loom_gpu") ? hipErrorNotFound : hipSuccess;)
FAKE(hipFuncGetAttribute, (int *value, hipFunction_attribute which, hipFunction_t function),
	*value = which == HIP_FUNC_ATTRIBUTE_NUM_REGS ? 64 : 0;)
FAKE(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, hipFunction_t function, int
     threads, size_t shared),
	*blocks = wrong("small") ? 1 : FAKE_BLOCKS;)
FAKE(hipDeviceSetLimit, (int limit, size_t value),
	return limit == 0 && value < 1u << 20 ? hipSuccess : hipErrorInvalidValue;)

/* ---- the device ---- */

FAKE(hipInit, (unsigned flags), return wrong("init") ? hipErrorNoDevice : hipSuccess;)
FAKE(hipRuntimeGetVersion, (int *version), *version = 60232831;)

API const char *hipGetErrorName(hipError_t rc)
{
	return rc == hipErrorNoDevice	    ? "hipErrorNoDevice" :
	       rc == hipErrorIllegalAddress ? "hipErrorIllegalAddress" :
					      "hipErrorOther";
}

API const char *hipGetErrorString(hipError_t rc)
{
	(void)rc;
	return "requested of the fake runtime";
}

FAKE(hipGetDeviceCount, (int *count),
	*count = wrong("no-gpu") ? 0 : fake_has_ranks() ? 2 : 1;
	return *count ? hipSuccess : hipErrorNoDevice;)

static __thread int current;

FAKE(hipGetDevice, (int *device), *device = current;)
FAKE(hipSetDevice, (int device), current = device;)
FAKE(hipDeviceGetName, (char *name, int room, hipDevice_t device),
	snprintf(name, (size_t)room, "%s", getenv("FAKE_GPU_MODEL") ? getenv("FAKE_GPU_MODEL") : "no GPU");)
FAKE(hipDeviceTotalMem, (size_t *bytes, hipDevice_t device), *bytes = 1u << 30;)
FAKE(hipDeviceGetPCIBusId, (char *bus, int room, int device),
	snprintf(bus, (size_t)room, "ffff:FF:1f.%d", 7 - device);)
FAKE(hipDeviceGetByPCIBusId, (int *device, const char *bus),
	*device = '7' - bus[strlen(bus) - 1];)

/* The name of the GPU is at the start, and the name of its architecture somewhere after it. */
FAKE(hipGetDevicePropertiesR0600, (void *properties, int device),
	memcpy(properties, "a GPU that is none", 19);
	memcpy((char *)properties + 1160, "gfx90a:sramecc+:xnack-", 23);)
FAKE(hipDeviceGetAttribute, (int *value, hipDeviceAttribute_t which, int device),
	const struct fake_attribute rows[] = {
		{hipDeviceAttributeWarpSize, 64},
		{hipDeviceAttributeMultiprocessorCount, FAKE_MULTIPROCESSORS},
		{hipDeviceAttributeMaxThreadsPerBlock, 1024},
		{hipDeviceAttributeMaxThreadsPerMultiProcessor, 2048},
		{hipDeviceAttributeMaxBlocksPerMultiProcessor, 4},
		{hipDeviceAttributeMaxRegistersPerBlock, 131072},
		{hipDeviceAttributeMaxSharedMemoryPerBlock, 65536},
		{hipDeviceAttributeCooperativeLaunch, !wrong("old-gpu")},
		{hipDeviceAttributeL2CacheSize, FAKE_CACHE},
		{hipDeviceAttributeCanUseStreamWaitValue, !wrong("no-words")},
		{hipDeviceAttributeHostNativeAtomicSupported, wrong("atomics")},
	};
	*value = fake_attribute(rows, sizeof(rows) / sizeof(*rows), which);
	if (which == hipDeviceAttributeMaxRegistersPerMultiprocessor ||
	    which == hipDeviceAttributeMaxSharedMemoryPerMultiprocessor)
		return hipErrorInvalidValue; /* a release that does not know the attribute returns this */)

FAKE(hipDeviceCanAccessPeer, (int *can, int a, int b), *can = !wrong("no-peer");)
FAKE(hipDeviceEnablePeerAccess, (int peer, unsigned flags))

/* ---- streams and memory ---- */

FAKE(hipStreamCreateWithFlags, (hipStream_t *stream, unsigned flags),
	*stream = flags == hipStreamNonBlocking ? calloc(1, sizeof(struct stream)) : NULL;
	return *stream ? hipSuccess : hipErrorInvalidValue;)
FAKE(hipStreamDestroy, (hipStream_t stream), fake_destroy((struct stream *)stream);)
FAKE(hipExtMallocWithFlags, (void **at, size_t bytes, unsigned flags),
	*at = flags == hipDeviceMallocFinegrained ? fake_device_memory(bytes) : NULL;
	return *at ? hipSuccess : hipErrorInvalidValue;)
FAKE(hipIpcGetMemHandle, (hipIpcMemHandle_t *handle, void *at),
	return fake_lend(at, (struct fake_handle *)handle) ? hipSuccess : hipErrorInvalidValue;)
FAKE(hipIpcOpenMemHandle, (void **at, hipIpcMemHandle_t handle, unsigned flags),
	*at = fake_borrow((struct fake_handle *)&handle);
	return *at ? hipSuccess : hipErrorMapFailed;)
FAKE(hipIpcCloseMemHandle, (void *at),
	return fake_give_back(at) ? hipSuccess : hipErrorInvalidValue;)
FAKE(hipFree, (void *at), fake_device_free(at);)
FAKE(hipHostMalloc, (void **at, size_t bytes, unsigned flags),
	*at = flags & hipHostMallocCoherent ? fake_memory(4096, bytes) : NULL;
	return *at ? hipSuccess : hipErrorInvalidValue;)
FAKE(hipHostFree, (void *at), free(at);)
FAKE(hipHostRegister, (void *at, size_t bytes, unsigned flags),
	int state = fake_register(at);
	return state < 0 ? hipErrorOutOfMemory :
	       state	 ? hipErrorHostMemoryAlreadyRegistered :
			   hipSuccess;)
FAKE(hipHostUnregister, (void *at),
	return fake_unregister(at) == 0 ? hipSuccess : hipErrorHostMemoryNotRegistered;)
FAKE(hipHostGetDevicePointer, (void **view, void *at, unsigned flags), *view = at;)
FAKE(hipMemcpyHtoDAsync, (hipDeviceptr_t to, void *from, size_t bytes, hipStream_t stream),
	fake_copy(to, from, bytes);)
FAKE(hipMemcpyDtoHAsync, (void *to, hipDeviceptr_t from, size_t bytes, hipStream_t stream),
	fake_copy(to, from, bytes);)
FAKE(hipMemsetD8Async, (hipDeviceptr_t at, unsigned char value, size_t bytes, hipStream_t stream),
	memset(at, value, bytes);)
FAKE(hipPointerGetAttribute, (void *value, hipPointer_attribute which, hipDeviceptr_t at),
	if (!fake_is_ours(at))
		return hipErrorInvalidValue;
	if (which == HIP_POINTER_ATTRIBUTE_HOST_POINTER)
		*(void **)value = NULL;
	else if (which == HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR)
		*(void **)value = fake_range(at, NULL);
	else if (which == HIP_POINTER_ATTRIBUTE_RANGE_SIZE)
		(void)fake_range(at, value);
	else
		*(int *)value = 0;)
FAKE(hipStreamIsCapturing, (hipStream_t stream, hipStreamCaptureStatus *status),
	*status = hipStreamCaptureStatusNone;)

/* ---- hipRTC ---- */

#define FAKE_RTC(name) hiprtc##name
#define FAKE_RTC_LAYER "<gpuloom/dev/hip.h>"
#include "fake_rtc.h"
FAKE_RTC_OUTPUT(GetCode, code)
