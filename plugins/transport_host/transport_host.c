/* SPDX-License-Identifier: Apache-2.0 */
/* All segments in one region of host memory that every device maps (MGWS thesis, 4.7). */
#include <gpuloom/transport.h>

#include "hostmem.h"
#include "layout.h"

struct options {
	uint32_t huge_pages, atomics;
	int64_t node;
};

static const char *const huge_choices[] = {"no", "try", NULL};
static const struct loom_opt rows[] = {
    LOOM_OPT(struct options, huge_pages, LOOM_OPT_ENUM, "no",
	     "Whether to ask the kernel for huge pages. try: it gives them if it has any.",
	     .choices = huge_choices),
    LOOM_OPT(struct options, node, LOOM_OPT_I64, "-1",
	     "NUMA node that the memory is bound to. -1: the kernel decides.", .min = -1,
	     .max = 1023),
    LAYOUT_ATOMICS_ROW(struct options),
    {.name = NULL},
};

struct transport {
	const struct loom_host *host;
	const struct options *options;
};

static int create(const struct loom_host *host, const void *opts, void **self,
		  struct loom_error *err)
{
	struct transport *t = host->alloc(host, sizeof(*t));
	if (!t)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "transport_host: out of memory");
	t->host = host;
	t->options = opts;
	*self = t;
	return 0;
}

static void destroy(void *self)
{
	struct transport *t = self;
	if (t)
		t->host->free(t->host, t);
}

static void unmap(const struct loom_devices *devices, const struct loom_memory *memory,
		  uint32_t mapped)
{
	while (mapped-- > 0)
		devices->ops[mapped]->mem_unmap(devices->self[mapped], memory);
}

static int segments(void *self, const struct loom_devices *devices,
		    const struct loom_segment_want *want, uint32_t n, struct loom_segment *out,
		    struct loom_error *err)
{
	struct transport *t = self;
	if (!n)
		return 0;
	struct loom_memory *memory = t->host->alloc(t->host, sizeof(*memory));
	if (!memory)
		return LOOM_FAIL(t->host, err, LOOM_ENOMEM, "transport_host: out of memory");
	struct layout layout = {0};
	for (uint32_t i = 0; i < n; i++)
		layout_add(&layout, &want[i], memory, &out[i]);
	int code = hostmem_make(t->host,
				&(struct hostmem_want){.who = "transport_host",
						       .bytes = layout.bytes,
						       .node = (int)t->options->node,
						       .huge = t->options->huge_pages != 0},
				memory, err);
	if (code)
		goto err_record;
	uint32_t mapped;
	for (mapped = 0; mapped < devices->count; mapped++) {
		code = devices->ops[mapped]->mem_map(devices->self[mapped], memory, err);
		if (code)
			goto err_mapped;
	}
	return 0;
err_mapped:
	unmap(devices, memory, mapped);
	hostmem_free(memory);
err_record:
	t->host->free(t->host, memory);
	return code;
}

static void release(void *self, const struct loom_devices *devices,
		    const struct loom_segment *segment, uint32_t n)
{
	struct transport *t = self;
	if (!n)
		return;
	/* Ours, and const only for those who use the segments. */
	struct loom_memory *memory = (struct loom_memory *)segment[0].memory;
	unmap(devices, memory, devices->count);
	hostmem_free(memory);
	t->host->free(t->host, memory);
}

static int apart(void *self, const struct loom_devices *devices)
{
	const struct transport *t = self;
	(void)devices;
	return t->options->atomics == LAYOUT_NO;
}

static const struct loom_transport_ops ops = {
    .size = sizeof(ops),
    .apart = apart,
    .create = create,
    .destroy = destroy,
    .segments = segments,
    .release = release,
};

LOOM_PLUGIN_DEFINE(TRANSPORT, "transport_host", "1.0.0", "Apache-2.0",
		   "one region of host memory that every device maps", .opts = rows,
		   .opts_size = sizeof(struct options), .ops = &ops)
