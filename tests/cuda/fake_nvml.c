/* SPDX-License-Identifier: Apache-2.0 */
/* A libnvidia-ml.so.1 without a GPU, whose cards consume 100 W. FAKE_NVML: init (it does not start), unsupported (the card
 * has no counter). */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define API __attribute__((visibility("default")))

enum { OK = 0, NOT_SUPPORTED = 3, DRIVER_NOT_LOADED = 9 };

static int is(const char *fault)
{
	const char *set = getenv("FAKE_NVML");
	return set && !strcmp(set, fault);
}

API int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
	return is("init") ? DRIVER_NOT_LOADED : OK;
}

API const char *nvmlErrorString(int rc);
const char *nvmlErrorString(int rc)
{
	return rc == NOT_SUPPORTED ? "Not Supported" : "Driver Not Loaded";
}

API int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
	static char card;
	*device = *bus ? &card : NULL;
	return OK;
}

API int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
	struct timespec now;
	(void)device;
	clock_gettime(CLOCK_MONOTONIC, &now);
	*millijoules = (unsigned long long)now.tv_sec * 100000 + (unsigned long long)now.tv_nsec / 10000;
	return is("unsupported") ? NOT_SUPPORTED : OK;
}
