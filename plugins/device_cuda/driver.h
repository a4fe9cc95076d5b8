/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libcuda.so.1 that this device calls. The library is loaded when it is needed. */
#ifndef GPULOOM_CUDA_DRIVER_H
#define GPULOOM_CUDA_DRIVER_H

#include <cuda.h>
#include <gpuloom/plugin.h>

#include "../device_common/gpu/gpu.h"

/* cuda.h renames functions to their newest version, for example cuMemAlloc to cuMemAlloc_v2. It renames them in these
 * rows, too. */
#define DRIVER_MAP(X)												\
	GPU_CALLS_MAP(X, cu) X(cuDriverGetVersion) X(cuDeviceGetCount) X(cuDeviceGet)				\
	X(cuDeviceGetP2PAttribute) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease)			\
	X(cuCtxPushCurrent) X(cuCtxPopCurrent) X(cuCtxEnablePeerAccess) X(cuCtxSetLimit) X(cuCtxGetLimit)	\
	X(cuFuncSetAttribute) X(cuOccupancyMaxActiveBlocksPerMultiprocessor) X(cuLaunchCooperativeKernel)	\
	X(cuLaunchKernel) X(cuStreamBeginCapture) X(cuStreamEndCapture) X(cuGraphInstantiate)			\
	X(cuGraphLaunch) X(cuGraphDestroy) X(cuGraphExecDestroy) X(cuStreamCreate) X(cuStreamSynchronize) X(cuStreamGetCtx)	\
	X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventSynchronize) X(cuMemAlloc) X(cuMemFree)	\
	X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemHostRegister) X(cuMemHostUnregister)				\
	X(cuMemHostGetDevicePointer) X(cuMemcpyAsync)

struct driver {
	void *so;
	int version; /* 13000 means CUDA 13.0 */
#define DRIVER_FIELD(name) __typeof__(name) *name;
	DRIVER_MAP(DRIVER_FIELD)
#undef DRIVER_FIELD
	/* Only drivers since CUDA 13.0 have these functions. NULL: unavailable. */
	CUresult (*host_atomics)(unsigned *capabilities, const int *operations, unsigned count, CUdevice device);
	CUresult (*peer_atomics)(unsigned *capabilities, const int *operations, unsigned count, CUdevice from,
				 CUdevice to);
};

/* Loads and initialises the driver. Returns LOOM_EUNAVAIL, and says what is missing and how to fix it. */
int driver_open(const struct loom_host *host, const char *label, struct driver *cu, struct loom_error *err);

/* Returns a text such as "CUDA_ERROR_NO_DEVICE 100 (no CUDA-capable device is detected)", in a buffer of the calling
 * thread. */
const char *driver_text(const struct driver *cu, CUresult rc);

void driver_host_atomics(const struct driver *cu, CUdevice device, struct gpu_atomics *out);
void driver_peer_atomics(const struct driver *cu, CUdevice from, CUdevice to, struct gpu_atomics *out);

/* A device of this plug-in. */
struct nvml_violation {
	unsigned long long reference, ns;
};
/* Functions of libnvidia-ml.so.1, which return 0 for success. Old libraries lack some of those after find(), which are then
 * NULL. */
struct nvml {
	int (*init)(void);
	const char *(*error)(int rc);
	int (*find)(const char *bus, void **device);
	int (*energy)(void *device, unsigned long long *millijoules);
	int (*driver)(char *version, unsigned room);
	int (*limit)(void *device, unsigned *milliwatts);
	int (*ecc)(void *device, unsigned *now, unsigned *after_reset);
	int (*persistence)(void *device, unsigned *on);
	int (*mig)(void *device, unsigned *now, unsigned *after_reset);
	int (*clock)(void *device, int which, unsigned *mhz);
	int (*temperature)(void *device, int which, unsigned *celsius);
	int (*reasons)(void *device, unsigned long long *bits);
	int (*violation)(void *device, int policy, struct nvml_violation *out);
	void *device; /* handle of the GPU; NULL: not opened yet */
	char absent[160]; /* why there is no handle; "": unknown */
	uint64_t violated_ns; /* the last reading of the counters of violations */
	int counts; /* 1: a sample is in progress or comes next for which these counters are read */
};

struct cuda {
	struct gpu gpu;
	struct driver api;
	int number; /* the driver's number of the device */
	CUdevice device;
	CUcontext context, next; /* of the device; of GPU gpu.next, or NULL if it lends no memory */
	CUstream work, copy; /* non-blocking streams, so neither waits for the other */
	struct nvml nvml;
};
/* nvml.c */
int cuda_energy(void *self, uint64_t *source, double *joules, struct loom_error *err);
void cuda_facts(struct gpu *d, struct loom_facts *out);
int cuda_throttled(struct gpu *d, uint64_t ns);
extern const struct gpu_driver cuda_driver; /* defined in calls.c */
/* notify.c: functions for fields of cuda_driver. */
int cuda_notify_open(struct gpu *d, void **channel);
void cuda_notify_close(struct gpu *d, void *channel);
int cuda_notify_await(struct gpu *d, void *channel, uint64_t at, uint64_t value);
int cuda_notify_copy(struct gpu *d, void *channel, uint64_t at, void *to, const void *from, uint64_t bytes);
int cuda_notify_flush(struct gpu *d, void *channel);
int cuda_queue_copy(struct gpu *d, void *channel, uint64_t to, uint64_t from, uint64_t bytes, uint64_t word,
		    uint64_t value);
extern const struct compose_layer cuda_layer; /* defined in calls.c */
extern const struct rtc_kind cuda_compiler; /* the same */

/* Writes the options of the compiler, except -arch=, to `option`. linked: 1 if the program will be linked with IR.
 * Returns the number of options. */
#define CUDA_OPTIONS_MOST 4
int cuda_compiler_options(const struct rtc *compiler, int linked, const char **option);

#endif
