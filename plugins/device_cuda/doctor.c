/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine offers CUDA devices, and how to mend what lacks. */
#include <stdio.h>

#include "driver.h"

#define TOPIC_DRIVER "cuda: driver"

static int attribute(const struct driver *cu, CUdevice gpu, CUdevice_attribute which)
{
	int value = 0;
	return cu->cuDeviceGetAttribute(&value, which, gpu) == CUDA_SUCCESS ? value : 0;
}

static void gpu_row(const struct driver *cu, struct loom_doctor *out, int number, CUdevice gpu)
{
	char topic[32], name[96] = "?", found[200];
	size_t bytes = 0;
	int major = attribute(cu, gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	int usable = major >= 7 && attribute(cu, gpu, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
	snprintf(topic, sizeof(topic), "cuda: GPU %d", number);
	if (cu->cuDeviceGetName(name, sizeof(name), gpu) != CUDA_SUCCESS)
		snprintf(name, sizeof(name), "?");
	if (cu->cuDeviceTotalMem(&bytes, gpu) != CUDA_SUCCESS)
		bytes = 0;
	snprintf(found, sizeof(found), "%s, sm_%d%d, %d multiprocessors, %zu MiB", name, major,
		 attribute(cu, gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
		 attribute(cu, gpu, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), bytes >> 20);
	out->row(out, topic, usable ? "ok" : "no", found,
		 usable ? "" : "compute capability 7.0 or later with cooperative launches is needed");
}

static void atomics_row(const struct driver *cu, struct loom_doctor *out, int number, CUdevice gpu)
{
	char topic[48];
	struct gpu_atomics can;
	snprintf(topic, sizeof(topic), "cuda: GPU %d and CPU", number);
	driver_host_atomics(cu, gpu, &can);
	if (can.native)
		out->row(out, topic, "ok", "atomics on host memory are native", "");
	else if (can.known && can.add && can.cas)
		out->row(out, topic, "ok", "64-bit add and compare-and-swap on host memory are native",
			 "");
	else if (can.known)
		out->row(out, topic, "limited",
			 can.add ? "no native compare-and-swap on host memory" :
				   "no native atomics on host memory",
			 "do not mix cpu:N and cuda:N devices in one stack; GPUs alone work");
	else
		out->row(out, topic, "limited", "the driver does not tell about atomics on host memory",
			 "a driver for CUDA 13 tells; mixed stacks are probed before use");
}

static void peer_row(const struct driver *cu, struct loom_doctor *out, int count)
{
	char found[64];
	int pairs = 0, able = 0;
	for (int a = 0; a < count; a++)
		for (int b = 0; b < count; b++) {
			CUdevice from, to;
			int can = 0;
			if (a == b || cu->cuDeviceGet(&from, a) != CUDA_SUCCESS ||
			    cu->cuDeviceGet(&to, b) != CUDA_SUCCESS)
				continue;
			pairs++;
			if (cu->cuDeviceCanAccessPeer(&can, from, to) == CUDA_SUCCESS && can)
				able++;
		}
	if (!pairs)
		return;
	snprintf(found, sizeof(found), "%d of %d directed pairs of GPUs", able, pairs);
	out->row(out, "cuda: peer access", able == pairs ? "ok" : "limited", found,
		 able == pairs ? "" : "transport p2p needs it between the GPUs of a stack; host does not");
}

void cuda_doctor(const struct loom_host *host, struct loom_doctor *out)
{
	struct driver cu;
	struct loom_error err = {0};
	char found[64];
	int count = 0;
	doctor_compiler(host, &cuda_driver, out);
	if (driver_open(host, "cuda", &cu, &err) != 0) {
		doctor_failed(out, TOPIC_DRIVER, &err);
		return;
	}
	CUresult rc = cu.cuDeviceGetCount(&count);
	snprintf(found, sizeof(found), "CUDA %d.%d, %d GPU(s)", cu.version / 1000,
		 cu.version % 1000 / 10, count);
	out->row(out, TOPIC_DRIVER, rc == CUDA_SUCCESS && count ? "ok" : "no", found,
		 rc == CUDA_SUCCESS && count ? "" : "make an NVIDIA GPU visible (nvidia-smi lists them)");
	for (int i = 0; i < count; i++) {
		CUdevice gpu;
		if (cu.cuDeviceGet(&gpu, i) != CUDA_SUCCESS)
			continue;
		gpu_row(&cu, out, i, gpu);
		atomics_row(&cu, out, i, gpu);
	}
	peer_row(&cu, out, count);
}
