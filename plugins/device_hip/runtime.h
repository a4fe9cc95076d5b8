/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the HIP runtime, libamdhip64, that this device calls. The library is loaded when it is needed. */
#ifndef GPULOOM_HIP_RUNTIME_H
#define GPULOOM_HIP_RUNTIME_H

#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>

#include "../device_common/gpu/gpu.h"

#define RUNTIME_MAP(X)												\
	GPU_CALLS_MAP(X, hip) X(hipRuntimeGetVersion) X(hipGetDeviceCount) X(hipDeviceEnablePeerAccess)		\
	X(hipGetDevice) X(hipSetDevice) X(hipModuleLaunchKernel)						\
	X(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor) X(hipStreamCreateWithFlags)			\
	X(hipExtMallocWithFlags) X(hipFree) X(hipHostMalloc) X(hipHostFree) X(hipHostRegister)			\
	X(hipHostUnregister) X(hipHostGetDevicePointer)

struct runtime {
	void *so;
	int version; /* 60232831 means HIP 6.2 */
#define RUNTIME_FIELD(name) __typeof__(name) *name;
	RUNTIME_MAP(RUNTIME_FIELD)
#undef RUNTIME_FIELD
	/* ROCm 6 has these functions, but older headers do not. */
	hipError_t (*hipModuleLaunchCooperativeKernel)(hipFunction_t function, unsigned grid_x, unsigned grid_y,
						       unsigned grid_z, unsigned block_x, unsigned block_y,
						       unsigned block_z, unsigned shared, hipStream_t stream,
						       void **parameters);
	hipError_t (*hipDeviceSetLimit)(int limit, size_t value);
	hipError_t (*hipGetDevicePropertiesR0600)(void *properties, int device);
};

/* Loads and initialises the runtime. Returns LOOM_EUNAVAIL, and says what is missing and how to fix it. */
int runtime_open(const struct loom_host *host, const char *label, struct runtime *hip, struct loom_error *err);

/* Returns a text such as "hipErrorNoDevice 100 (no ROCm-capable device is detected)", in a buffer of the calling
 * thread. */
const char *runtime_text(const struct runtime *hip, int rc);

/* A device of this plug-in. */
struct hip {
	struct gpu gpu;
	struct runtime api;
	int number, device;     /* number: the runtime's number of the GPU; device: the same number */
	int previous;           /* the thread's current GPU before enter(), which leave() restores */
	size_t stack;           /* stack per thread that was reserved, in bytes */
	hipStream_t work, copy; /* non-blocking streams, so neither waits for the other */
};
void hip_facts(struct gpu *d, struct loom_facts *out); /* smi.c */
extern const struct gpu_driver hip_driver; /* defined in calls.c */
extern const struct compose_layer hip_layer; /* defined in calls.c */
extern const struct rtc_kind hip_compiler; /* the same */

/* Options of the compiler in addition to --offload-arch=. */
#define HIP_COMPILER_FLAGS "-std=c++20", "-O3", "-DLOOM_INT64_IS_LONG_LONG"

/* codeobject.c: reads the resources of a kernel from the notes of its code object. Returns 1, or 0 if there are no
 * notes. */
int code_resources(const char *code, size_t bytes, struct resources *out);

#endif
