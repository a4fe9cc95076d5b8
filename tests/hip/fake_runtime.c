/* SPDX-License-Identifier: Apache-2.0 */
/* A libamdhip64 without a GPU: see tests/gpu/fake_kernel.h. */
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>

#define FAKE_ERROR hipErrorUnknown
#include "fake_kernel.h"

/* ---- what the headers of older releases do not declare ---- */

API hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz,
						unsigned bx, unsigned by, unsigned bz, unsigned shared,
						hipStream_t stream, void **parameters);
API hipError_t hipDeviceSetLimit(int limit, size_t value);
API hipError_t hipGetDevicePropertiesR0600(void *properties, int device);

/* ---- kernels ---- */

API hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz,
						unsigned bx, unsigned by, unsigned bz, unsigned shared,
						hipStream_t stream, void **parameters)
{
	CALLED(hipModuleLaunchCooperativeKernel);
	(void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)parameters;
	return fake_launch((struct module *)f, (struct stream *)stream) == 0 ? hipSuccess :
									       hipErrorLaunchFailure;
}

API hipError_t hipStreamQuery(hipStream_t stream)
{
	if (fake_fails("hipStreamQuery")) {
		fake_kill((struct stream *)stream);
		return FAKE_ERROR;
	}
	int state = fake_state((struct stream *)stream);
	return state < 0 ? hipErrorIllegalAddress : state ? hipErrorNotReady : hipSuccess;
}

API hipError_t hipModuleLoadData(hipModule_t *module, const void *image)
{
	CALLED(hipModuleLoadData);
	if (memcmp(image, "\177ELF", 4) != 0)
		return hipErrorInvalidImage;
	*module = calloc(1, sizeof(struct module));
	return hipSuccess;
}

API hipError_t hipModuleUnload(hipModule_t module)
{
	CALLED(hipModuleUnload);
	free(module);
	return hipSuccess;
}

API hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name)
{
	CALLED(hipModuleGetFunction);
	*function = (hipFunction_t)module;
	return strcmp(name, "loom_gpu_work") ? hipErrorNotFound : hipSuccess;
}

API hipError_t hipModuleGetGlobal(hipDeviceptr_t *at, size_t *bytes, hipModule_t module, const char *name)
{
	CALLED(hipModuleGetGlobal);
	struct module *m = (struct module *)module;
	*at = &m->launch;
	*bytes = sizeof(m->launch);
	return strcmp(name, "loom_gpu") ? hipErrorNotFound : hipSuccess;
}

API hipError_t hipFuncGetAttribute(int *value, hipFunction_attribute which, hipFunction_t function)
{
	CALLED(hipFuncGetAttribute);
	(void)function;
	*value = which == HIP_FUNC_ATTRIBUTE_NUM_REGS ? 64 : 0;
	return hipSuccess;
}

API hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, hipFunction_t function,
								  int threads, size_t shared)
{
	CALLED(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor);
	(void)function, (void)threads, (void)shared;
	*blocks = wrong("small") ? 1 : 4;
	return hipSuccess;
}

API hipError_t hipDeviceSetLimit(int limit, size_t value)
{
	CALLED(hipDeviceSetLimit);
	return limit == 0 && value < 1u << 20 ? hipSuccess : hipErrorInvalidValue;
}

/* ---- the device ---- */

API hipError_t hipInit(unsigned flags)
{
	CALLED(hipInit);
	(void)flags;
	return wrong("init") ? hipErrorNoDevice : hipSuccess;
}

API hipError_t hipRuntimeGetVersion(int *version)
{
	CALLED(hipRuntimeGetVersion);
	*version = 60232831;
	return hipSuccess;
}

API const char *hipGetErrorName(hipError_t rc)
{
	return rc == hipErrorNoDevice	    ? "hipErrorNoDevice" :
	       rc == hipErrorIllegalAddress ? "hipErrorIllegalAddress" :
					      "hipErrorOther";
}

API const char *hipGetErrorString(hipError_t rc)
{
	(void)rc;
	return "as the fake runtime was told";
}

API hipError_t hipGetDeviceCount(int *count)
{
	CALLED(hipGetDeviceCount);
	*count = wrong("no-gpu") ? 0 : 1;
	return *count ? hipSuccess : hipErrorNoDevice;
}

static __thread int current;

API hipError_t hipGetDevice(int *device)
{
	CALLED(hipGetDevice);
	*device = current;
	return hipSuccess;
}

API hipError_t hipSetDevice(int device)
{
	CALLED(hipSetDevice);
	current = device;
	return hipSuccess;
}

API hipError_t hipDeviceGetName(char *name, int room, hipDevice_t device)
{
	CALLED(hipDeviceGetName);
	(void)device;
	snprintf(name, (size_t)room, "no GPU");
	return hipSuccess;
}

API hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device)
{
	CALLED(hipDeviceTotalMem);
	(void)device;
	*bytes = 1u << 30;
	return hipSuccess;
}

API hipError_t hipDeviceGetPCIBusId(char *bus, int room, int device)
{
	CALLED(hipDeviceGetPCIBusId);
	(void)device;
	snprintf(bus, (size_t)room, "ffff:FF:1f.7");
	return hipSuccess;
}

/* The name of a GPU at the beginning, that of its architecture somewhere behind it. */
API hipError_t hipGetDevicePropertiesR0600(void *properties, int device)
{
	CALLED(hipGetDevicePropertiesR0600);
	(void)device;
	memcpy(properties, "a GPU that is none", 19);
	memcpy((char *)properties + 1160, "gfx90a:sramecc+:xnack-", 23);
	return hipSuccess;
}

API hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t which, int device)
{
	CALLED(hipDeviceGetAttribute);
	(void)device;
	*value = 0;
	switch ((int)which) {
	case hipDeviceAttributeWarpSize:
		*value = 64;
		break;
	case hipDeviceAttributeMultiprocessorCount:
		*value = 2;
		break;
	case hipDeviceAttributeMaxThreadsPerBlock:
		*value = 1024;
		break;
	case hipDeviceAttributeMaxThreadsPerMultiProcessor:
		*value = 2048;
		break;
	case hipDeviceAttributeMaxBlocksPerMultiProcessor:
		*value = 4;
		break;
	case hipDeviceAttributeMaxRegistersPerBlock:
		*value = 131072;
		break;
	case hipDeviceAttributeMaxSharedMemoryPerBlock:
		*value = 65536;
		break;
	case hipDeviceAttributeCooperativeLaunch:
		*value = !wrong("old-gpu");
		break;
	case hipDeviceAttributeHostNativeAtomicSupported:
		*value = wrong("atomics");
		break;
	case hipDeviceAttributeMaxRegistersPerMultiprocessor: /* as a release that does not know them */
	case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor:
		return hipErrorInvalidValue;
	}
	return hipSuccess;
}

API hipError_t hipDeviceCanAccessPeer(int *can, int a, int b)
{
	CALLED(hipDeviceCanAccessPeer);
	(void)a, (void)b;
	*can = 1;
	return hipSuccess;
}

API hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
	CALLED(hipDeviceEnablePeerAccess);
	(void)peer, (void)flags;
	return hipSuccess;
}

/* ---- streams and memory ---- */

API hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags)
{
	CALLED(hipStreamCreateWithFlags);
	*stream = flags == hipStreamNonBlocking ? calloc(1, sizeof(struct stream)) : NULL;
	return *stream ? hipSuccess : hipErrorInvalidValue;
}

API hipError_t hipStreamDestroy(hipStream_t stream)
{
	CALLED(hipStreamDestroy);
	free(stream);
	return hipSuccess;
}

API hipError_t hipExtMallocWithFlags(void **at, size_t bytes, unsigned flags)
{
	CALLED(hipExtMallocWithFlags);
	*at = flags == hipDeviceMallocFinegrained ? fake_device_memory(bytes) : NULL;
	return *at ? hipSuccess : hipErrorInvalidValue;
}

API hipError_t hipFree(void *at)
{
	CALLED(hipFree);
	fake_device_free(at);
	return hipSuccess;
}

API hipError_t hipHostMalloc(void **at, size_t bytes, unsigned flags)
{
	CALLED(hipHostMalloc);
	*at = flags & hipHostMallocCoherent ? fake_memory(4096, bytes) : NULL;
	return *at ? hipSuccess : hipErrorInvalidValue;
}

API hipError_t hipHostFree(void *at)
{
	CALLED(hipHostFree);
	free(at);
	return hipSuccess;
}

API hipError_t hipHostRegister(void *at, size_t bytes, unsigned flags)
{
	CALLED(hipHostRegister);
	(void)bytes, (void)flags;
	int state = fake_register(at);
	return state < 0 ? hipErrorOutOfMemory :
	       state	 ? hipErrorHostMemoryAlreadyRegistered :
			   hipSuccess;
}

API hipError_t hipHostUnregister(void *at)
{
	CALLED(hipHostUnregister);
	return fake_unregister(at) == 0 ? hipSuccess : hipErrorHostMemoryNotRegistered;
}

API hipError_t hipHostGetDevicePointer(void **view, void *at, unsigned flags)
{
	CALLED(hipHostGetDevicePointer);
	(void)flags;
	*view = at;
	return hipSuccess;
}

API hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void *from, size_t bytes, hipStream_t stream)
{
	CALLED(hipMemcpyHtoDAsync);
	(void)stream;
	fake_copy(to, from, bytes);
	return hipSuccess;
}

API hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t bytes, hipStream_t stream)
{
	CALLED(hipMemcpyDtoHAsync);
	(void)stream;
	fake_copy(to, from, bytes);
	return hipSuccess;
}

API hipError_t hipMemsetD8Async(hipDeviceptr_t at, unsigned char value, size_t bytes, hipStream_t stream)
{
	CALLED(hipMemsetD8Async);
	(void)stream;
	memset(at, value, bytes);
	return hipSuccess;
}

API hipError_t hipPointerGetAttribute(void *value, hipPointer_attribute which, hipDeviceptr_t at)
{
	CALLED(hipPointerGetAttribute);
	(void)which;
	*(int *)value = 0;
	return fake_is_ours(at) ? hipSuccess : hipErrorInvalidValue;
}
