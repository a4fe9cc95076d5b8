/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define TEXT_OF(name)  TEXT_OF_(name)
#define TEXT_OF_(name) #name
#define COUNT(array)   (sizeof(array) / sizeof((array)[0]))

const char *driver_text(const struct driver *cu, CUresult rc)
{
	static __thread char text[200];
	const char *name = NULL, *words = NULL;
	if (cu->cuGetErrorName(rc, &name) != CUDA_SUCCESS || !name)
		name = "unknown error";
	if (cu->cuGetErrorString(rc, &words) != CUDA_SUCCESS || !words)
		words = "";
	snprintf(text, sizeof(text), *words ? "%s %d (%s)" : "%s %d", name, (int)rc, words);
	return text;
}

/* Returns how to fix an error of cuInit(). */
static const char *init_fix(CUresult rc)
{
	switch (rc) {
	case CUDA_ERROR_NO_DEVICE:
		return "make an NVIDIA GPU visible (nvidia-smi lists them, CUDA_VISIBLE_DEVICES and the "
		       "container's settings hide them)";
	case CUDA_ERROR_NOT_INITIALIZED: /* returned in a fork of a process that has used CUDA */
		return "this process is a fork of one that used CUDA: start a new program, or fork before CUDA is used";
	case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
	case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
		return "libcuda and the kernel module are of different versions: reboot, or reinstall "
		       "the driver";
	case CUDA_ERROR_STUB_LIBRARY:
		return "the library found is the toolkit's stub: take it out of LD_LIBRARY_PATH and "
		       "install the driver";
	default:
		return "load the NVIDIA kernel module and give this user access to /dev/nvidia*";
	}
}

static int load(const struct loom_host *host, const char *label, struct driver *cu, struct loom_error *err)
{
	cu->so = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!cu->so)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				 "%s: there is no NVIDIA driver here (libcuda.so.1 was not found): install it, or set "
				 "devices = cpu:0",
				 label);
	const struct gpu_symbol symbols[] = {
#define DRIVER_ROW(name) {&cu->name, TEXT_OF(name)},
	    DRIVER_MAP(DRIVER_ROW)
#undef DRIVER_ROW
	};
	const char *lacks = gpu_symbols(cu->so, symbols, COUNT(symbols));
	if (lacks)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				 "%s: the NVIDIA driver lacks %s: it is older than CUDA 12: install a newer "
				 "one",
				 label, lacks);
	void *at = dlsym(cu->so, "cuDeviceGetHostAtomicCapabilities");
	memcpy(&cu->host_atomics, &at, sizeof(at));
	at = dlsym(cu->so, "cuDeviceGetP2PAtomicCapabilities");
	memcpy(&cu->peer_atomics, &at, sizeof(at));
	return 0;
}

int driver_open(const struct loom_host *host, const char *label, struct driver *cu, struct loom_error *err)
{
	*cu = (struct driver){0};
	int rc = load(host, label, cu, err);
	if (rc)
		return rc;
	CUresult failed = cu->cuInit(0);
	if (failed != CUDA_SUCCESS)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL, "%s: the NVIDIA driver does not start: cuInit: %s; %s",
				 label, driver_text(cu, failed), init_fix(failed));
	failed = cu->cuDriverGetVersion(&cu->version);
	if (failed != CUDA_SUCCESS)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL, "%s: cuDriverGetVersion: %s", label,
				 driver_text(cu, failed));
	if (cu->version < 12000)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				 "%s: the NVIDIA driver offers CUDA %d.%d: install one that offers 12.0 "
				 "or later",
				 label, cu->version / 1000, cu->version % 1000 / 10);
	return 0;
}

/* Values of enum CUatomicOperation and CUatomicOperationCapability, which cuda.h has since 13.0. */
enum { ADD = 0, EXCHANGE = 8, CAS = 9, SCALAR_64 = 1 << 4 };
static const int operations[] = {ADD, CAS, EXCHANGE};

/* Returns which operations are atomic. If `native` is set, all are; else those that the driver reports. */
static struct gpu_atomics judge(int native, int known, const unsigned *capabilities)
{
	if (native)
		return (struct gpu_atomics){.known = 1, .native = 1, .add = 1, .cas = 1, .exchange = 1};
	if (!known)
		return (struct gpu_atomics){.known = 0};
	return (struct gpu_atomics){.known = 1,
				    .add = (capabilities[0] & SCALAR_64) != 0,
				    .cas = (capabilities[1] & SCALAR_64) != 0,
				    .exchange = (capabilities[2] & SCALAR_64) != 0};
}

void driver_host_atomics(const struct driver *cu, CUdevice device, struct gpu_atomics *out)
{
	unsigned capabilities[COUNT(operations)] = {0};
	int native = 0, known;
	if (cu->cuDeviceGetAttribute(&native, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, device) != CUDA_SUCCESS)
		native = 0;
	known = !native && cu->host_atomics &&
		cu->host_atomics(capabilities, operations, COUNT(operations), device) == CUDA_SUCCESS;
	*out = judge(native, known, capabilities);
}

void driver_peer_atomics(const struct driver *cu, CUdevice from, CUdevice to, struct gpu_atomics *out)
{
	unsigned capabilities[COUNT(operations)] = {0};
	int native = 0, reported, known;
	reported = cu->cuDeviceGetP2PAttribute(&native, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, from, to) ==
		   CUDA_SUCCESS;
	native = reported && native;
	known = !native && cu->peer_atomics &&
		cu->peer_atomics(capabilities, operations, COUNT(operations), from, to) == CUDA_SUCCESS;
	*out = judge(native, known, capabilities);
	out->known |= reported; /* older drivers report only whether all operations are atomic */
}
