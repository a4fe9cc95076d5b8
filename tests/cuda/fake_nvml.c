/* SPDX-License-Identifier: Apache-2.0 */
/* A libnvidia-ml.so.1 without a GPU, whose cards consume 100 W.
 *
 * FAKE_NVML          init (it does not start), unsupported (the card has no counter of energy, and no MIG)
 * FAKE_NVML_DRIVER   the version of the driver
 * FAKE_NVML_LIMIT    the power limit in W
 * FAKE_NVML_REASONS  bits of the reasons why clocks are low, or BITS:N:M for the N-th to the M-th time that they are read
 * FAKE_NVML_VIOLATED the number of readings of the counters of violations after which they have grown
 *
 * With -DOLD the library lacks the functions that old drivers lack. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OK = 0, NOT_SUPPORTED = 3, DRIVER_NOT_LOADED = 9, FUNCTION_NOT_FOUND = 13 };

/* Defines a function of the library. */
#define NVML(name, parameters, ...)                                                                                    \
	__attribute__((visibility("default"))) int nvml##name parameters;                                              \
	int nvml##name parameters                                                                                      \
	{                                                                                                              \
		__VA_ARGS__                                                                                            \
		return OK;                                                                                             \
	}
#pragma GCC diagnostic ignored "-Wunused-parameter"

static int is(const char *fault)
{
	const char *set = getenv("FAKE_NVML");
	return set && !strcmp(set, fault);
}

static const char *given(const char *name, const char *otherwise)
{
	const char *set = getenv(name);
	return set ? set : otherwise;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(int rc);
const char *nvmlErrorString(int rc)
{
	return rc == NOT_SUPPORTED	  ? "Not Supported" :
	       rc == FUNCTION_NOT_FOUND ? "Function Not Found" :
					    "Driver Not Loaded";
}

NVML(Init_v2, (void), return is("init") ? DRIVER_NOT_LOADED : OK;)
NVML(DeviceGetHandleByPciBusId_v2, (const char *bus, void **device), static char card; *device = *bus ? &card : NULL;)
NVML(DeviceGetTotalEnergyConsumption, (void *device, unsigned long long *millijoules), struct timespec now;
     clock_gettime(CLOCK_MONOTONIC, &now);
     *millijoules = (unsigned long long)now.tv_sec * 100000 + (unsigned long long)now.tv_nsec / 10000;
     return is("unsupported") ? NOT_SUPPORTED : OK;)
NVML(SystemGetDriverVersion, (char *version, unsigned room), snprintf(version, room, "%s", given("FAKE_NVML_DRIVER", "580.10"));)
NVML(DeviceGetEnforcedPowerLimit, (void *device, unsigned *milliwatts),
     *milliwatts = 1000 * (unsigned)atoi(given("FAKE_NVML_LIMIT", "700"));)
NVML(DeviceGetEccMode, (void *device, unsigned *now, unsigned *after_reset), *now = *after_reset = 1;)
NVML(DeviceGetPersistenceMode, (void *device, unsigned *persists), *persists = 1;)
NVML(DeviceGetClockInfo, (void *device, int which, unsigned *mhz), static unsigned count;
     *mhz = which == 2 ? 3201 : 1980 - 15 * (count++ % 3);)
NVML(DeviceGetTemperature, (void *device, int which, unsigned *celsius), *celsius = 35;)
#ifndef OLD
NVML(DeviceGetMigMode, (void *device, unsigned *now, unsigned *after_reset), *now = *after_reset = 0;
     return is("unsupported") ? NOT_SUPPORTED : OK;)
NVML(DeviceGetCurrentClocksThrottleReasons, (void *device, unsigned long long *bits), static unsigned count;
     unsigned first = 1, last = ~0u; *bits = 1; count++;
     sscanf(given("FAKE_NVML_REASONS", "1"), "%llx:%u:%u", bits, &first, &last); *bits = count < first || count > last ? 0 : *bits;)
NVML(DeviceGetViolationStatus, (void *device, int policy, unsigned long long *reference_and_ns), static unsigned count;
     unsigned grows = (unsigned)atoi(given("FAKE_NVML_VIOLATED", "0")); count += policy == 1;
     reference_and_ns[1] = grows && policy == 1 && count > grows ? 5000000 : 0;)
#endif
