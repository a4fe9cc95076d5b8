/* SPDX-License-Identifier: Apache-2.0 */
/* A librocm_smi64.so without a GPU. FAKE_SMI: ecc (ECC is on), unsupported (no temperature). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMI(name, parameters, ...)                                                                                     \
	__attribute__((visibility("default"))) int rsmi_##name parameters;                                             \
	int rsmi_##name parameters                                                                                     \
	{                                                                                                              \
		__VA_ARGS__                                                                                            \
		return 0;                                                                                              \
	}
#pragma GCC diagnostic ignored "-Wunused-parameter"

static int is(const char *what)
{
	const char *set = getenv("FAKE_SMI");
	return set && !strcmp(set, what);
}

SMI(init, (uint64_t flags))
SMI(status_string, (int rc, const char **text), *text = rc == 2 ? "Not Supported" : "Other";)
SMI(num_monitor_devices, (uint32_t *gpus), *gpus = 2;)
SMI(dev_pci_id_get, (uint32_t gpu, uint64_t *bdf), *bdf = (uint64_t)0xffff << 32 | 0xff << 8 | 0x1f << 3 | (6 + gpu);)
SMI(version_str_get, (int component, char *text, uint32_t room), snprintf(text, room, "6.10.5");)
SMI(dev_power_cap_get, (uint32_t gpu, uint32_t sensor, uint64_t *microwatts), *microwatts = 560000000;)
SMI(dev_ecc_enabled_get, (uint32_t gpu, uint64_t *blocks), *blocks = is("ecc");)
SMI(dev_temp_metric_get, (uint32_t gpu, uint32_t sensor, int metric, int64_t *millicelsius), *millicelsius = 41000;
    return is("unsupported") ? 2 : 0;)
