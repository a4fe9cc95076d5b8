/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda.so.1 without a GPU: see tests/gpu/fake_kernel.h. */
#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#define FAKE_ERROR CUDA_ERROR_UNKNOWN
#include "fake_kernel.h"

API CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
				       unsigned by, unsigned bz, unsigned shared, CUstream stream,
				       void **parameters)
{
	CALLED(cuLaunchCooperativeKernel);
	(void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)parameters;
	return fake_launch((struct module *)f, (struct stream *)stream) == 0 ? CUDA_SUCCESS :
									       CUDA_ERROR_LAUNCH_FAILED;
}

API CUresult cuStreamQuery(CUstream stream)
{
	if (fake_fails("cuStreamQuery")) {
		fake_kill((struct stream *)stream);
		return FAKE_ERROR;
	}
	int state = fake_state((struct stream *)stream);
	return state < 0 ? CUDA_ERROR_ILLEGAL_ADDRESS : state ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* ---- everything else ---- */

/* Who uses it first: forks of that process cannot. */
static pid_t user;

API CUresult cuInit(unsigned flags)
{
	CALLED(cuInit);
	(void)flags;
	user = user ? user : getpid();
	return wrong("init") ? CUDA_ERROR_NO_DEVICE : user != getpid() ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

/* NVRTC loads libcuda.so.1 too, starts it when it compiles, and takes this one's presence for granted. */
API CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	(void)id;
	user = user ? user : getpid();
	*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}

API CUresult cuDriverGetVersion(int *version)
{
	CALLED(cuDriverGetVersion);
	*version = 13000;
	return CUDA_SUCCESS;
}

API CUresult cuGetErrorName(CUresult rc, const char **name)
{
	*name = rc == CUDA_ERROR_NO_DEVICE	 ? "CUDA_ERROR_NO_DEVICE" :
		rc == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" :
						   "CUDA_ERROR_OTHER";
	return CUDA_SUCCESS;
}

API CUresult cuGetErrorString(CUresult rc, const char **text)
{
	(void)rc;
	*text = "as the fake driver was told";
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetCount(int *count)
{
	CALLED(cuDeviceGetCount);
	*count = wrong("no-gpu") ? 0 : wrong("two-gpus") ? 2 : 1;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGet(CUdevice *device, int number)
{
	CALLED(cuDeviceGet);
	*device = number;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetName(char *name, int room, CUdevice device)
{
	CALLED(cuDeviceGetName);
	(void)device;
	snprintf(name, (size_t)room, "no GPU");
	return CUDA_SUCCESS;
}

API CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
	CALLED(cuDeviceTotalMem);
	(void)device;
	*bytes = 1u << 30;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetPCIBusId(char *bus, int room, CUdevice device)
{
	CALLED(cuDeviceGetPCIBusId);
	(void)device;
	snprintf(bus, (size_t)room, "ffff:FF:1f.7");
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
	CALLED(cuDeviceGetAttribute);
	(void)device;
	switch (which) {
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*value = wrong("old-gpu") ? 6 : 9;
		break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		*value = 0;
		break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*value = 2;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
		*value = 4;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
		*value = 2048;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
		*value = 65536;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
		*value = 65536;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
		*value = 65536;
		break;
	case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
		*value = 1024;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = 1024;
		break;
	case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
		*value = 1;
		break;
	default:
		*value = 0;
	}
	return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 13000
API CUresult cuDeviceGetHostAtomicCapabilities(unsigned *capabilities,
					       const CUatomicOperation *operations, unsigned count,
					       CUdevice device)
{
	CALLED(cuDeviceGetHostAtomicCapabilities);
	(void)operations, (void)device;
	for (unsigned i = 0; i < count; i++)
		capabilities[i] = wrong("atomics") ? CU_ATOMIC_CAPABILITY_SCALAR_64 : 0;
	return CUDA_SUCCESS;
}
#endif

/* Two, as far as `gpuloom doctor` asks. */
API CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute which, CUdevice a, CUdevice b)
{
	CALLED(cuDeviceGetP2PAttribute);
	*value = which == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED && a < b;
	return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 13000
API CUresult cuDeviceGetP2PAtomicCapabilities(unsigned *capabilities, const CUatomicOperation *operations,
					      unsigned count, CUdevice a, CUdevice b)
{
	CALLED(cuDeviceGetP2PAtomicCapabilities);
	(void)operations, (void)a, (void)b;
	for (unsigned i = 0; i < count; i++)
		capabilities[i] = wrong("atomics") ? CU_ATOMIC_CAPABILITY_SCALAR_64 : 0;
	return CUDA_SUCCESS;
}
#endif

API CUresult cuDeviceCanAccessPeer(int *can, CUdevice a, CUdevice b)
{
	CALLED(cuDeviceCanAccessPeer);
	(void)a, (void)b;
	*can = 1;
	return CUDA_SUCCESS;
}

static int the_context;

API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	CALLED(cuDevicePrimaryCtxRetain);
	(void)device;
	*context = (CUcontext)&the_context;
	return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	CALLED(cuDevicePrimaryCtxRelease);
	(void)device;
	return CUDA_SUCCESS;
}

API CUresult cuCtxPushCurrent(CUcontext context)
{
	CALLED(cuCtxPushCurrent);
	return context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

API CUresult cuCtxPopCurrent(CUcontext *context)
{
	*context = (CUcontext)&the_context;
	return CUDA_SUCCESS;
}

API CUresult cuCtxEnablePeerAccess(CUcontext context, unsigned flags)
{
	CALLED(cuCtxEnablePeerAccess);
	(void)context, (void)flags;
	return CUDA_SUCCESS;
}

static size_t stack_limit = 1024;

API CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	CALLED(cuCtxSetLimit);
	if (limit == CU_LIMIT_STACK_SIZE)
		stack_limit = value;
	return CUDA_SUCCESS;
}

API CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	CALLED(cuCtxGetLimit);
	(void)limit;
	*value = stack_limit;
	return CUDA_SUCCESS;
}

API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	CALLED(cuModuleLoadData);
	if (memcmp(image, "\177ELF", 4) != 0)
		return CUDA_ERROR_INVALID_IMAGE;
	*module = calloc(1, sizeof(struct module));
	return CUDA_SUCCESS;
}

API CUresult cuModuleUnload(CUmodule module)
{
	CALLED(cuModuleUnload);
	free(module);
	return CUDA_SUCCESS;
}

API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	CALLED(cuModuleGetFunction);
	*function = (CUfunction)module;
	return strcmp(name, "loom_gpu_work") ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

API CUresult cuModuleGetGlobal(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name)
{
	CALLED(cuModuleGetGlobal);
	struct module *m = (struct module *)module;
	*at = (CUdeviceptr)(uintptr_t)&m->launch;
	*bytes = sizeof(m->launch);
	return strcmp(name, "loom_gpu") ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

API CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction function)
{
	CALLED(cuFuncGetAttribute);
	(void)function;
	*value = which == CU_FUNC_ATTRIBUTE_NUM_REGS ? 64 : 0;
	return CUDA_SUCCESS;
}

API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value)
{
	CALLED(cuFuncSetAttribute);
	(void)function, (void)which, (void)value;
	return CUDA_SUCCESS;
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
							 size_t shared)
{
	CALLED(cuOccupancyMaxActiveBlocksPerMultiprocessor);
	(void)function, (void)threads, (void)shared;
	*blocks = wrong("small") ? 1 : 4;
	return CUDA_SUCCESS;
}

API CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
	CALLED(cuStreamCreate);
	(void)flags;
	*stream = calloc(1, sizeof(struct stream));
	return CUDA_SUCCESS;
}

API CUresult cuStreamDestroy(CUstream stream)
{
	CALLED(cuStreamDestroy);
	free(stream);
	return CUDA_SUCCESS;
}

API CUresult cuStreamSynchronize(CUstream stream)
{
	CALLED(cuStreamSynchronize);
	(void)stream;
	return CUDA_SUCCESS;
}

API CUresult cuMemAlloc(CUdeviceptr *at, size_t bytes)
{
	CALLED(cuMemAlloc);
	*at = (CUdeviceptr)(uintptr_t)fake_device_memory(bytes);
	return CUDA_SUCCESS;
}

API CUresult cuMemFree(CUdeviceptr at)
{
	CALLED(cuMemFree);
	fake_device_free((void *)(uintptr_t)at);
	return CUDA_SUCCESS;
}

/* ---- memory of several processes: a memfd ---- */

API CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *p,
					   CUmemAllocationGranularity_flags which)
{
	CALLED(cuMemGetAllocationGranularity);
	(void)p, (void)which;
	*bytes = 65536;
	return CUDA_SUCCESS;
}

API CUresult cuMemCreate(CUmemGenericAllocationHandle *memory, size_t bytes, const CUmemAllocationProp *p,
			 unsigned long long flags)
{
	CALLED(cuMemCreate);
	(void)p, (void)flags;
	int fd = memfd_create("fake GPU", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*memory = (CUmemGenericAllocationHandle)fd;
	return bytes % 65536 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

API CUresult cuMemRelease(CUmemGenericAllocationHandle memory)
{
	CALLED(cuMemRelease);
	close((int)memory);
	return CUDA_SUCCESS;
}

API CUresult cuMemExportToShareableHandle(void *to, CUmemGenericAllocationHandle memory,
					  CUmemAllocationHandleType type, unsigned long long flags)
{
	CALLED(cuMemExportToShareableHandle);
	(void)flags;
	*(int *)to = dup((int)memory);
	return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *memory, void *from,
					    CUmemAllocationHandleType type)
{
	CALLED(cuMemImportFromShareableHandle);
	*memory = (CUmemGenericAllocationHandle)dup((int)(uintptr_t)from);
	return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* Where it can be looked for in vain: each process has it at another address. */
API CUresult cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t align, CUdeviceptr wish, unsigned long long flags)
{
	CALLED(cuMemAddressReserve);
	(void)align, (void)wish, (void)flags;
	void *p = mmap(NULL, bytes + (size_t)getpid() % 64 * 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	*at = (CUdeviceptr)(uintptr_t)p;
	return p == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

API CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
	CALLED(cuMemAddressFree);
	munmap((void *)(uintptr_t)at, bytes + (size_t)getpid() % 64 * 65536);
	return CUDA_SUCCESS;
}

API CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle memory,
		      unsigned long long flags)
{
	CALLED(cuMemMap);
	(void)flags;
	void *p = mmap((void *)(uintptr_t)at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, (int)memory, (off_t)offset);
	return p == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

API CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
	CALLED(cuMemUnmap);
	mmap((void *)(uintptr_t)at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	return CUDA_SUCCESS;
}

API CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
	CALLED(cuMemSetAccess);
	(void)access, (void)count;
	mprotect((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE);
	return CUDA_SUCCESS;
}

/* ---- memory of the host ---- */

API CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
	CALLED(cuMemHostAlloc);
	(void)flags;
	*at = fake_memory(4096, bytes);
	return CUDA_SUCCESS;
}

API CUresult cuMemFreeHost(void *at)
{
	CALLED(cuMemFreeHost);
	free(at);
	return CUDA_SUCCESS;
}

API CUresult cuMemHostRegister(void *at, size_t bytes, unsigned flags)
{
	CALLED(cuMemHostRegister);
	(void)bytes, (void)flags;
	int state = fake_register(at);
	return state < 0 ? CUDA_ERROR_OUT_OF_MEMORY :
	       state	 ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED :
			   CUDA_SUCCESS;
}

API CUresult cuMemHostUnregister(void *at)
{
	CALLED(cuMemHostUnregister);
	return fake_unregister(at) == 0 ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

API CUresult cuMemHostGetDevicePointer(CUdeviceptr *view, void *at, unsigned flags)
{
	CALLED(cuMemHostGetDevicePointer);
	(void)flags;
	*view = (CUdeviceptr)(uintptr_t)at;
	return CUDA_SUCCESS;
}

API CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	CALLED(cuMemcpyHtoDAsync);
	(void)stream;
	fake_copy((void *)(uintptr_t)to, from, bytes);
	return CUDA_SUCCESS;
}

API CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	CALLED(cuMemcpyDtoHAsync);
	(void)stream;
	fake_copy(to, (const void *)(uintptr_t)from, bytes);
	return CUDA_SUCCESS;
}

API CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream)
{
	CALLED(cuMemsetD8Async);
	(void)stream;
	memset((void *)(uintptr_t)at, value, bytes);
	return CUDA_SUCCESS;
}

API CUresult cuPointerGetAttribute(void *value, CUpointer_attribute which, CUdeviceptr at)
{
	CALLED(cuPointerGetAttribute);
	if (!fake_is_ours((void *)(uintptr_t)at))
		return CUDA_ERROR_INVALID_VALUE;
	if (which == CU_POINTER_ATTRIBUTE_CONTEXT)
		*(CUcontext *)value = (CUcontext)&the_context;
	else
		*(int *)value = 0;
	return CUDA_SUCCESS;
}
