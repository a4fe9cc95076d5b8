/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of the GPU, from the driver's management library. The counter is of the whole card. The driver updates it some ten
 * times a second, so a sample should take seconds. */
#include <dlfcn.h>
#include <string.h>

#include "driver.h"

static int open_library(struct nvml *n)
{
	const struct {
		void *fn;
		const char *name;
	} symbols[] = {
	    {&n->init, "nvmlInit_v2"},
	    {&n->error, "nvmlErrorString"},
	    {&n->find, "nvmlDeviceGetHandleByPciBusId_v2"},
	    {&n->energy, "nvmlDeviceGetTotalEnergyConsumption"},
	};
	void *so = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *at = so ? dlsym(so, symbols[i].name) : NULL;
		if (!at)
			return LOOM_ENOENT;
		memcpy(symbols[i].fn, &at, sizeof(at));
	}
	return 0;
}

int cuda_energy(void *self, uint64_t *source, double *joules, struct loom_error *err)
{
	static const char card[256]; /* the address of an element identifies the counter of a card */
	struct cuda *c = self;
	struct nvml *n = &c->nvml;
	const struct loom_host *host = c->gpu.host;
	unsigned long long millijoules = 0;
	int rc = 0;
	if (!n->device) {
		if (open_library(n))
			return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
					 "%s: no energy counter: libnvidia-ml.so.1 was not found, or is too old: install it with "
					 "the driver, or set joules = no in [run]", c->gpu.name);
		rc = n->init();
		if (!rc)
			rc = n->find(c->gpu.bus, &n->device);
	}
	if (!rc)
		rc = n->energy(n->device, &millijoules);
	if (rc) {
		n->device = NULL;
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL, "%s: no energy counter: NVML reports: %s: set joules = no in [run]",
				 c->gpu.name, n->error(rc));
	}
	*joules = (double)millijoules / 1e3;
	*source = (uint64_t)(uintptr_t)&card[(size_t)c->number % sizeof(card)];
	return 0;
}
