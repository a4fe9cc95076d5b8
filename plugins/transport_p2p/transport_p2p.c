/* SPDX-License-Identifier: Apache-2.0 */
/* Each device owns its segments and the others reach them directly (MGWS thesis, 4.7). */
#include <gpuloom/transport.h>

#include "../transport_host/hostmem.h"
#include "../transport_host/layout.h"
#include "placement.h"

struct options {
	const char *placement;
	uint32_t huge_pages, atomics;
};

static const char *const huge_choices[] = {"no", "try", NULL};
static const struct loom_opt rows[] = {
    LOOM_OPT(struct options, placement, LOOM_OPT_STR, "owner",
	     "Whose memory a device's segments lie in. owner: its own. remote: that of the next "
	     "device. host: the host's, so that queues are there while the stack's own segments, with tasks and "
	     "results, lie on the first device. device:N: all in that of device N, in the order of [run] devices."),
    LOOM_OPT(struct options, huge_pages, LOOM_OPT_ENUM, "no",
	     "Whether to ask the kernel for huge pages for the part in host memory. try: it gives "
	     "them if it has any. The devices' own option says it for theirs.",
	     .choices = huge_choices),
    LAYOUT_ATOMICS_ROW(struct options),
    {.name = NULL},
};

/* What one call of segments() made: a memory per device and, last, the host's. bytes 0: none. */
struct batch {
	struct batch *next;
	uint32_t memories;
	int apart;
	struct loom_memory memory[];
};

struct transport {
	const struct loom_host *host;
	const struct options *options;
	struct placement placement;
	struct batch *batches;
};

static int create(const struct loom_host *host, const void *opts, void **self,
		  struct loom_error *err)
{
	struct transport *t = host->alloc(host, sizeof(*t));
	if (!t)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "transport_p2p: out of memory");
	t->host = host;
	t->options = opts;
	int code = placement_parse(host, t->options->placement, &t->placement, err);
	if (code) {
		host->free(host, t);
		return code;
	}
	*self = t;
	return 0;
}

static void destroy(void *self)
{
	struct transport *t = self;
	if (t)
		t->host->free(t->host, t);
}

static int apart(void *self, const struct loom_devices *devices)
{
	const struct transport *t = self;
	(void)devices;
	return t->options->atomics == LAYOUT_NO;
}

/* Devices that are apart need not reach each other's memory: what they share is the host's. */
static int is_alone(const struct batch *b, uint32_t home)
{
	return b->apart && home + 1 < b->memories;
}

static void lay_out(struct transport *t, struct batch *b, const struct loom_segment_want *want,
		    uint32_t n, struct loom_segment *out)
{
	struct layout layout[LOOM_MAX_DEVICES + 1] = {0};
	for (uint32_t i = 0; i < n; i++) {
		uint32_t home = b->apart && want[i].owner < 0 ?
					b->memories - 1 :
					placement_home(&t->placement, &want[i], b->memories - 1);
		layout_add(&layout[home], &want[i], &b->memory[home], &out[i]);
		if (is_alone(b, home))
			out[i].flags |= LOOM_MEMORY_ALONE;
	}
	for (uint32_t home = 0; home < b->memories; home++)
		b->memory[home].bytes = layout[home].bytes;
}

/* Unmaps memory `home` from the first `mapped` devices and frees it. */
static void drop(const struct loom_devices *devices, struct batch *b, uint32_t home, uint32_t mapped)
{
	struct loom_memory *memory = &b->memory[home];
	while (mapped-- > 0)
		if (mapped != home && !is_alone(b, home))
			devices->ops[mapped]->mem_unmap(devices->self[mapped], memory);
	if (home < devices->count)
		devices->ops[home]->mem_free(devices->self[home], memory);
	else
		hostmem_free(memory);
}

/* Makes memory `home` of the bytes that lay_out found and maps it into all other devices. */
static int make(struct transport *t, const struct loom_devices *devices, struct batch *b, uint32_t home,
		struct loom_error *err)
{
	struct loom_memory *memory = &b->memory[home];
	uint64_t bytes = memory->bytes;
	int code;
	if (home < devices->count)
		code = devices->ops[home]->mem_alloc(devices->self[home], bytes, 0, memory, err);
	else
		code = hostmem_make(t->host,
				    &(struct hostmem_want){.who = "transport_p2p",
							   .bytes = bytes,
							   .node = -1,
							   .huge = t->options->huge_pages != 0},
				    memory, err);
	if (code)
		return code;
	memory->device = home < devices->count ? (int32_t)home : -1;
	for (uint32_t i = 0; i < devices->count; i++) {
		if (i == home || is_alone(b, home))
			continue;
		code = devices->ops[i]->mem_map(devices->self[i], memory, err);
		if (code) {
			drop(devices, b, home, i);
			return code;
		}
	}
	return 0;
}

static void drop_all(const struct loom_devices *devices, struct batch *b, uint32_t made)
{
	while (made-- > 0)
		if (b->memory[made].bytes)
			drop(devices, b, made, devices->count);
}

static int segments(void *self, const struct loom_devices *devices,
		    const struct loom_segment_want *want, uint32_t n, struct loom_segment *out,
		    struct loom_error *err)
{
	struct transport *t = self;
	int code = placement_check(t->host, &t->placement, devices->count, err);
	if (!code && devices->layout->apart && t->placement.kind != PLACE_OWNER && t->placement.kind != PLACE_HOST)
		code = LOOM_FAIL(t->host, err, LOOM_EINVAL,
				 "[transport.p2p] placement = %s: these devices cannot change the same word, so each "
				 "needs its own segments near: say owner or host",
				 t->options->placement);
	if (code || !n)
		return code;
	uint32_t memories = devices->count + 1;
	struct batch *b = t->host->alloc(t->host, sizeof(*b) + memories * sizeof(b->memory[0]));
	if (!b)
		return LOOM_FAIL(t->host, err, LOOM_ENOMEM, "transport_p2p: out of memory");
	b->memories = memories;
	b->apart = devices->layout->apart != 0;
	lay_out(t, b, want, n, out);
	for (uint32_t home = 0; home < memories; home++) {
		if (!b->memory[home].bytes)
			continue;
		code = make(t, devices, b, home, err);
		if (code) {
			drop_all(devices, b, home);
			t->host->free(t->host, b);
			return code;
		}
	}
	b->next = t->batches;
	t->batches = b;
	return 0;
}

static void release(void *self, const struct loom_devices *devices,
		    const struct loom_segment *segment, uint32_t n)
{
	struct transport *t = self;
	if (!n)
		return;
	for (struct batch **at = &t->batches; *at; at = &(*at)->next) {
		struct batch *b = *at;
		if (segment[0].memory < b->memory || segment[0].memory >= b->memory + b->memories)
			continue;
		*at = b->next;
		drop_all(devices, b, b->memories);
		t->host->free(t->host, b);
		return;
	}
}

static const struct loom_transport_ops ops = {
    .size = sizeof(ops),
    .apart = apart,
    .create = create,
    .destroy = destroy,
    .segments = segments,
    .release = release,
};

LOOM_PLUGIN_DEFINE(TRANSPORT, "transport_p2p", "1.0.0", "Apache-2.0",
		   "each device owns its memory and the others reach it directly", .opts = rows,
		   .opts_size = sizeof(struct options), .ops = &ops)
