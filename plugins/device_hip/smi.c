/* SPDX-License-Identifier: Apache-2.0 */
/* State of the GPU, from ROCm SMI. This code has not run on an AMD GPU yet. It does not read clock rates, because the layout
 * of their record differs between releases, and nothing of throttling. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "runtime.h"

/* Functions of librocm_smi64, which return 0 for success. */
struct smi {
	int (*init)(uint64_t flags);
	int (*text)(int rc, const char **text);
	int (*count)(uint32_t *gpus);
	int (*place)(uint32_t gpu, uint64_t *bdf);
	int (*version)(int component, char *text, uint32_t room);
	int (*limit)(uint32_t gpu, uint32_t sensor, uint64_t *microwatts);
	int (*ecc)(uint32_t gpu, uint64_t *blocks);
	int (*temperature)(uint32_t gpu, uint32_t sensor, int metric, int64_t *millicelsius);
};

static const char *load(struct smi *smi)
{
	static const char *const names[] = {"librocm_smi64.so.7", "librocm_smi64.so.6", "/opt/rocm/lib/librocm_smi64.so",
					    "librocm_smi64.so.5", "librocm_smi64.so.1"};
	const struct gpu_symbol symbols[] = {{&smi->init, "rsmi_init"},
					     {&smi->text, "rsmi_status_string"},
					     {&smi->count, "rsmi_num_monitor_devices"},
					     {&smi->place, "rsmi_dev_pci_id_get"},
					     {&smi->version, "rsmi_version_str_get"},
					     {&smi->limit, "rsmi_dev_power_cap_get"},
					     {&smi->ecc, "rsmi_dev_ecc_enabled_get"},
					     {&smi->temperature, "rsmi_dev_temp_metric_get"}};
	void *so = NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !so; i++)
		so = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!so)
		return "librocm_smi64.so was not found: install ROCm SMI";
	return gpu_symbols(so, symbols, sizeof(symbols) / sizeof(symbols[0])) ? "librocm_smi64.so is too old" : NULL;
}

/* Finds the number that the GPU has in ROCm SMI. Returns its code, or -1 if there is no GPU with this PCI address. */
static int find(const struct smi *smi, const char *bus, uint32_t *gpu)
{
	unsigned domain = 0, number = 0, slot = 0, function = 0;
	uint32_t count = 0;
	uint64_t bdf = 0;
	int rc = smi->init(0);
	sscanf(bus, "%x:%x:%x.%x", &domain, &number, &slot, &function);
	uint64_t wanted = (uint64_t)domain << 32 | number << 8 | slot << 3 | function;
	rc = rc ? rc : smi->count(&count);
	for (*gpu = 0; !rc && *gpu < count; ++*gpu) {
		rc = smi->place(*gpu, &bdf);
		if (!rc && bdf == wanted)
			return 0;
	}
	return rc ? rc : -1;
}

static void report(const struct smi *smi, struct loom_facts *out, const char *name, uint32_t flags, const char *absent, int rc,
		   const char *text, double number)
{
	char why[200];
	const char *words = "no GPU with this PCI address";
	if (!absent && !rc) {
		out->row(out, name, flags, text, number);
		return;
	}
	if (!absent && rc > 0 && smi->text(rc, &words))
		words = "an error without a text";
	snprintf(why, sizeof(why), "%s%s", absent ? "" : "ROCm SMI reports: ", absent ? absent : words);
	out->row(out, name, flags | LOOM_FACT_UNKNOWN, why, 0);
}

void hip_facts(struct gpu *d, struct loom_facts *out)
{
	struct smi smi;
	const char *a = load(&smi);
	char version[96] = "";
	uint32_t gpu = 0;
	uint64_t value = 0;
	int64_t heat = 0;
	int there = a ? 0 : find(&smi, d->bus, &gpu), rc = a || there ? there : smi.version(0, version, sizeof(version));
	report(&smi, out, "gpu_driver", LOOM_FACT_FIXED, a, rc, version, 0);
	rc = a || there ? there : smi.limit(gpu, 0, &value);
	report(&smi, out, "gpu_power_limit_w", LOOM_FACT_FIXED, a, rc, NULL, (double)value / 1e6);
	value = 0;
	rc = a || there ? there : smi.ecc(gpu, &value);
	report(&smi, out, "gpu_ecc", LOOM_FACT_FIXED, a, rc, value ? "on" : "off", 0);
	rc = a || there ? there : smi.temperature(gpu, 1, 0, &heat); /* 1: the hottest place of the chip; 0: now */
	report(&smi, out, "gpu_temperature_c", 0, a, rc, NULL, (double)heat / 1e3);
}
