/* SPDX-License-Identifier: Apache-2.0 */
/* Energy and state of the GPU, from the driver's management library. The counters are of the whole card. The driver updates
 * them some ten times a second, so a sample with `joules` should take seconds. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"

#define FUNCTION_NOT_FOUND 13 /* NVML's own code for a function that the driver lacks */
enum { SM_CLOCK = 1, MEMORY_CLOCK = 2 };
enum { VIOLATED_THERMAL = 1, VIOLATED_BOARD_LIMIT = 3 };

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
	    {&n->driver, "nvmlSystemGetDriverVersion"},
	    {&n->limit, "nvmlDeviceGetEnforcedPowerLimit"},
	    {&n->ecc, "nvmlDeviceGetEccMode"},
	    {&n->persistence, "nvmlDeviceGetPersistenceMode"},
	    {&n->mig, "nvmlDeviceGetMigMode"},
	    {&n->clock, "nvmlDeviceGetClockInfo"},
	    {&n->temperature, "nvmlDeviceGetTemperature"},
	    {&n->reasons, "nvmlDeviceGetCurrentClocksThrottleReasons"}, /* also has the name ...ClocksEventReasons now */
	    {&n->violation, "nvmlDeviceGetViolationStatus"},
	};
	void *so = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *at = so ? dlsym(so, symbols[i].name) : NULL;
		memcpy(symbols[i].fn, &at, sizeof(at));
	}
	return n->init && n->error && n->find ? 0 : LOOM_ENOENT;
}

/* Opens the library and finds the GPU, once. Returns NULL, or the reason why that is impossible. */
static const char *find(struct cuda *c)
{
	struct nvml *n = &c->nvml;
	if (n->device || *n->absent)
		return n->device ? NULL : n->absent;
	if (open_library(n)) {
		snprintf(n->absent, sizeof(n->absent), "libnvidia-ml.so.1 was not found, or is too old: install it with the driver");
		return n->absent;
	}
	int rc = n->init();
	if (!rc)
		rc = n->find(c->gpu.bus, &n->device);
	if (!rc)
		return NULL;
	n->device = NULL;
	snprintf(n->absent, sizeof(n->absent), "NVML reports: %s", n->error(rc));
	return n->absent;
}

/* Calls a function of NVML for the GPU, if the library has it. */
#define ASK(n, function, ...) ((n)->function ? (n)->function((n)->device, __VA_ARGS__) : FUNCTION_NOT_FOUND)

int cuda_energy(void *self, uint64_t *source, double *joules, struct loom_error *err)
{
	static const char card[256]; /* the address of an element identifies the counter of a card */
	struct cuda *c = self;
	unsigned long long millijoules = 0;
	const char *reason = find(c);
	if (reason)
		return LOOM_FAIL(c->gpu.host, err, LOOM_EUNAVAIL, "%s: no energy counter: %s: set joules = no in [run]", c->gpu.name,
				 reason);
	int rc = ASK(&c->nvml, energy, &millijoules);
	if (rc)
		return LOOM_FAIL(c->gpu.host, err, LOOM_EUNAVAIL,
				 "%s: no energy counter: NVML reports: %s: set joules = no in [run]", c->gpu.name, c->nvml.error(rc));
	*joules = (double)millijoules / 1e3;
	*source = (uint64_t)(uintptr_t)&card[(size_t)c->number % sizeof(card)];
	return 0;
}

/* ---- facts ---- */

/* Reasons why clocks are lower than they could be. BAD: heat, or a lack of power for the card. A limit that software sets,
 * such as the power limit, is normal. */
static const struct {
	unsigned long long bit;
	const char *text;
} reasons[] = {{0x1, "idle"},
	       {0x2, "application clocks"},
	       {0x4, "software power cap"},
	       {0x8, "hardware slowdown"},
	       {0x10, "sync boost"},
	       {0x20, "software thermal slowdown"},
	       {0x40, "hardware thermal slowdown"},
	       {0x80, "hardware power brake"},
	       {0x100, "display clocks"}};
#define BAD 0xe8ull

static const char *on(unsigned value)
{
	return value ? "on" : "off";
}

/* Reports a fact, or why it is not known. absent: why NVML cannot be used, or NULL. rc: the code of its function. */
static void report(const struct nvml *n, struct loom_facts *out, const char *name, uint32_t flags, const char *absent, int rc,
		   const char *text, double number)
{
	char why[200];
	if (!absent && !rc) {
		out->row(out, name, flags, text, number);
		return;
	}
	snprintf(why, sizeof(why), "%s%s", absent ? absent : "NVML reports: ", absent ? "" : n->error(rc));
	out->row(out, name, flags | LOOM_FACT_UNKNOWN, why, 0);
}

void cuda_facts(struct gpu *d, struct loom_facts *out)
{
	struct nvml *n = &((struct cuda *)d)->nvml;
	const char *a = find((struct cuda *)d);
	char version[96] = "";
	unsigned value = 0, later = 0;
	unsigned long long bits = 0;
	int rc = a ? 0 : n->driver ? n->driver(version, sizeof(version)) : FUNCTION_NOT_FOUND;
	report(n, out, "gpu_driver", LOOM_FACT_FIXED, a, rc, version, 0);
	rc = a ? 0 : ASK(n, limit, &value);
	report(n, out, "gpu_power_limit_w", LOOM_FACT_FIXED, a, rc, NULL, value / 1e3);
	rc = a ? 0 : ASK(n, ecc, &value, &later);
	report(n, out, "gpu_ecc", LOOM_FACT_FIXED, a, rc, on(value), 0);
	rc = a ? 0 : ASK(n, persistence, &value);
	report(n, out, "gpu_persistence", LOOM_FACT_FIXED, a, rc, on(value), 0);
	rc = a ? 0 : ASK(n, mig, &value, &later);
	report(n, out, "gpu_mig", LOOM_FACT_FIXED, a, rc, on(value), 0);
	rc = a ? 0 : ASK(n, clock, SM_CLOCK, &value);
	report(n, out, "gpu_sm_clock_mhz", 0, a, rc, NULL, value);
	rc = a ? 0 : ASK(n, clock, MEMORY_CLOCK, &value);
	report(n, out, "gpu_memory_clock_mhz", 0, a, rc, NULL, value);
	rc = a ? 0 : ASK(n, temperature, 0, &value);
	report(n, out, "gpu_temperature_c", 0, a, rc, NULL, value);
	rc = a ? 0 : ASK(n, reasons, &bits);
	bits = rc ? 0 : bits;
	if (!bits)
		report(n, out, "gpu_throttle", 0, a, rc, "none", 0);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (bits & reasons[i].bit)
			report(n, out, "gpu_throttle", 0, NULL, 0, reasons[i].text, 0);
}

/* Returns the time for which heat or the board's limit has lowered the clocks; 0: there are no counters. */
static uint64_t violated(const struct nvml *n)
{
	struct nvml_violation heat = {0}, board = {0};
	(void)ASK(n, violation, VIOLATED_THERMAL, &heat);
	(void)ASK(n, violation, VIOLATED_BOARD_LIMIT, &board);
	return heat.ns + board.ns;
}

/* On an H200, reading the reasons takes 1 us, and reading a counter 0.5 ms. Counters are updated every 100 ms, so they tell
 * nothing about short samples. So they are read before and after a sample if the one before was long. The reasons are read
 * after every sample. */
#define LONG_NS 100000000u

int cuda_throttled(struct gpu *d, uint64_t ns)
{
	struct nvml *n = &((struct cuda *)d)->nvml;
	unsigned long long bits = 0;
	if (find((struct cuda *)d))
		return 0;
	uint64_t before = n->violated_ns;
	n->violated_ns = n->counts ? violated(n) : 0;
	if (!ns)
		return 0;
	int grew = n->counts && n->violated_ns > before;
	n->counts = ns >= LONG_NS;
	return grew || (!ASK(n, reasons, &bits) && bits & BAD);
}
