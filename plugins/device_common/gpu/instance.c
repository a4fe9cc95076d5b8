/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a device and closes it. A device whose opening has failed halfway can be closed, too. */
#include "gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

const char *const gpu_worker_choices[] = {"block", "warp", NULL};
const char *const gpu_compile_choices[] = {"cached", "always", NULL};
const char *const gpu_kernels_choices[] = {"persistent", "launched", "graph", NULL};
const char *const gpu_memory_choices[] = {"own", "next", "host", NULL};

const char *gpu_symbols(void *library, const struct gpu_symbol *symbol, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		void *at = dlsym(library, symbol[i].name);
		if (!at)
			return symbol[i].name;
		memcpy(symbol[i].to, &at, sizeof(at));
	}
	return NULL;
}

static int choose(struct gpu *d, uint32_t instance, uint32_t instances, int *number, struct loom_error *err)
{
	int count = 0;
	uint32_t rank = LOOM_HAS(d->host, allgather) ? d->host->rank : 0;
	int rc = d->driver->count(d, &count);
	if (rc != 0)
		return gpu_fail(d, err, rc, NULL);
	if (!count)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL, "%s: the driver sees no GPU: %s", d->name,
				 d->driver->fix);
	/* Ranks of one host use consecutive GPUs. If there are more ranks than GPUs, some ranks share a GPU. */
	*number = d->options->gpu >= 0 ? (int)d->options->gpu
		  : rank               ? (int)((rank * instances + instance) % (uint32_t)count)
				       : (int)instance;
	if (*number >= count)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: there is no GPU %d; the driver reports %d: name fewer devices in [run] devices, "
				 "or set gpu = 0 in [device.%s.%u] to share one",
				 d->name, *number, count, d->driver->name, instance);
	d->next = (*number + 1) % count;
	if (d->options->memory == MEMORY_NEXT && (!d->driver->alloc_next || d->next == *number))
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: memory = next: %s: set memory = own in [device.%s]", d->name,
				 d->driver->alloc_next ? "there is no second GPU" : "the driver for this vendor cannot do that",
				 d->driver->name);
	return 0;
}

static void find_node(struct gpu *d)
{
	char path[96];
	d->node = -1;
	if (!*d->bus)
		return;
	for (char *at = d->bus; *at; at++)
		*at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at; /* lower case, as in sysfs */
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", d->bus);
	FILE *file = fopen(path, "re");
	if (!file)
		return;
	if (fscanf(file, "%d", &d->node) != 1)
		d->node = -1;
	fclose(file);
}

/* Allocates words and gate once for all launches, because freeing memory would wait for a kernel of another instance on
 * the same GPU. For the same reason, the probe is loaded here if there are several instances. */
static int prepare(struct gpu *d, uint32_t instances, struct loom_error *err)
{
	uint64_t most = (uint64_t)d->limits.multiprocessors * (uint64_t)(d->limits.threads / d->limits.wave);
	void *words = NULL;
	int code = gpu_enter(d, err);
	if (code)
		return code;
	int rc = d->driver->host_alloc(d, sizeof(*d->words), &words, &d->words_view);
	d->words = rc == 0 ? words : NULL;
	if (rc == 0) {
		rc = d->driver->alloc(d, sizeof(struct loom_gpu_gate) + most * sizeof(uint32_t), &d->gate);
		if (rc != 0)
			d->gate = 0;
		else
			rc = d->driver->clear(d, d->gate, sizeof(struct loom_gpu_gate));
	}
	if (rc == 0 && d->options->flush && !d->limits.cache)
		code = LOOM_FAIL(d->host, err, LOOM_EUNAVAIL, "%s: the driver does not report the size of the L2 cache: set flush = no "
				 "in [device.gpu]", d->name);
	else if (rc == 0 && d->options->flush)
		rc = d->driver->alloc(d, gpu_flush_bytes(d), &d->flush);
	if (rc != 0)
		code = gpu_fail(d, err, rc, NULL);
	if (!code && instances > 1)
		code = program_probe(d, err);
	gpu_leave(d);
	return code;
}

static int open_all(struct gpu *d, uint32_t instance, uint32_t instances, struct loom_error *err)
{
	char topic[64];
	int number = 0, rc, code = d->driver->open(d, err);
	if (!code)
		code = rtc_open(d->host, d->name, d->driver->compiler, d->options->compiler, &d->compiler, err);
	if (!code)
		code = choose(d, instance, instances, &number, err);
	d->number = number;
	if (!code)
		code = d->driver->find(d, number, err);
	if (!code && d->options->flush)
		strncat(d->defines, "#define LOOM_GPU_FLUSH 1\n", sizeof(d->defines) - strlen(d->defines) - 1);
	if (!code && d->options->quick)
		strncat(d->defines, "#define LOOM_GPU_QUICK 1\n", sizeof(d->defines) - strlen(d->defines) - 1);
	if (!code)
		code = shape_find(d, err);
	if (code)
		return code;
	if (d->options->arch && *d->options->arch)
		snprintf(d->arch, sizeof(d->arch), "%s", d->options->arch);
	find_node(d);
	snprintf(topic, sizeof(topic), "device.%s.model", d->name);
	LOOM_CHOICE(d->host, topic, "%s", d->model);
	rc = d->driver->attach(d);
	if (rc != 0) {
		code = gpu_fail(d, err, rc, NULL);
		d->driver->detach(d);
		return code;
	}
	d->attached = 1;
	return prepare(d, instances, err);
}

/* Devices that were lost and closed. Their memory stays until this process ends, because a kernel may still write to it.
 * The list is only written: it keeps the memory reachable, so that leak checkers do not report it. */
static struct gpu *lost_devices;

static void keep(struct gpu *d)
{
	d->next_lost = __atomic_load_n(&lost_devices, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&lost_devices, &d->next_lost, d, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void gpu_destroy(void *self)
{
	struct gpu *d = self;
	if (!d)
		return;
	if (d->launch)
		gpu_retire(d, 0, NULL);
	if (d->lost) {
		keep(d);
		return;
	}
	if (d->attached && gpu_enter(d, NULL) == 0) {
		program_finish(d);
		if (d->gate)
			d->driver->free(d, d->gate);
		if (d->flush)
			d->driver->free(d, d->flush);
		if (d->words)
			d->driver->host_free(d, d->words);
		copies_close(d);
		gpu_leave(d);
	}
	if (d->attached)
		d->driver->detach(d);
	d->host->free(d->host, d);
}

int gpu_create(const struct loom_host *host, const struct gpu_driver *driver, size_t bytes,
	       const struct gpu_options *options, uint32_t instance, uint32_t instances, void **self,
	       struct loom_error *err)
{
	struct gpu *d = host->alloc(host, bytes);
	if (!d)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s:%u: out of memory", driver->name, instance);
	d->driver = driver;
	d->host = host;
	d->options = options;
	snprintf(d->name, sizeof(d->name), "%s:%u", driver->name, instance);
	int code = open_all(d, instance, instances, err);
	if (code) {
		gpu_destroy(d);
		return code;
	}
	LOOM_LOG(host, LOOM_LOG_INFO, d->name, "%s, %d multiprocessors, workers of %u lanes; %s %d.%d (%s)", d->arch,
		 d->limits.multiprocessors, d->lanes, d->compiler.kind->title, d->compiler.major, d->compiler.minor,
		 d->compiler.path);
	*self = d;
	return 0;
}
