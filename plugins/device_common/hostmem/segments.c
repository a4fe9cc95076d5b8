/* SPDX-License-Identifier: Apache-2.0 */
#include "segments.h"

#include "hostmem.h"
#include "lib/align.h"

/* The layout of one memory, while segments are added. */
struct home {
	uint64_t bytes;  /* size in bytes so far */
	int32_t owner;   /* owner of the last segment */
	uint32_t shared; /* number of segments that devices other than the owner use */
};

/* The memories of one call of segments_make(): one for each device, and the last one for the host. A memory of 0 bytes
 * does not exist. */
struct segments_batch {
	struct segments_batch *next;
	uint32_t memories;
	uint64_t private; /* bit d is 1 if only device d maps memory number d */
	struct loom_memory memory[];
};

static void add(struct home *home, const struct loom_segment_want *want, const struct loom_memory *memory,
		struct loom_segment *out)
{
	uint64_t unit = home->bytes && want->owner != home->owner ? hostmem_page() : 64;
	*out = (struct loom_segment){.memory = memory,
				     .offset = loom__align(home->bytes, unit),
				     .bytes = want->bytes,
				     .owner = want->owner,
				     .flags = want->flags & LOOM_MEMORY_HOST};
	home->bytes = out->offset + out->bytes;
	home->owner = want->owner;
	home->shared += !(want->flags & LOOM_MEMORY_PRIVATE);
}

static uint32_t home_of(const struct segments *s, const struct loom_devices *devices,
			const struct loom_segment_want *want)
{
	if (want->flags & LOOM_MEMORY_HOST)
		return devices->count;
	if (want->flags & LOOM_MEMORY_PRIVATE)
		return (uint32_t)want->owner;
	return devices->layout->noncoherent && want->owner < 0 ? devices->count : s->home(s, devices, want);
}

static void lay_out(const struct segments *s, const struct loom_devices *devices, struct segments_batch *b,
		    const struct loom_segment_want *want, uint32_t n, struct loom_segment *out)
{
	struct home home[LOOM_MAX_DEVICES + 1] = {{0}};
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = home_of(s, devices, &want[i]);
		add(&home[at], &want[i], &b->memory[at], &out[i]);
	}
	for (uint32_t d = 0; d < b->memories; d++) {
		b->memory[d].bytes = home[d].bytes;
		/* Non-coherent devices do not map each other's memory, so shared segments are in host memory. */
		if (d < devices->count && (devices->layout->noncoherent || !home[d].shared))
			b->private |= 1ull << d;
	}
	for (uint32_t i = 0; i < n; i++)
		if (b->private >> (out[i].memory - b->memory) & 1)
			out[i].flags |= LOOM_MEMORY_PRIVATE;
}

/* Unmaps memory number `home` from the devices below number `mapped`, and frees it. */
static void drop(const struct loom_devices *devices, struct segments_batch *b, uint32_t home, uint32_t mapped)
{
	struct loom_memory *memory = &b->memory[home];
	while (mapped-- > 0)
		if (mapped != home && !(b->private >> home & 1))
			devices->ops[mapped]->mem_unmap(devices->self[mapped], memory);
	if (home < devices->count)
		devices->ops[home]->mem_free(devices->self[home], memory);
	else
		hostmem_free(memory);
}

/* Allocates the memory with index `home`, whose size lay_out() has set. Maps it into all other devices, except if it is private. */
static int make(const struct segments *s, const struct loom_devices *devices, struct segments_batch *b, uint32_t home,
		struct loom_error *err)
{
	struct loom_memory *memory = &b->memory[home];
	const struct hostmem_want want = {.label = s->label, .bytes = memory->bytes, .node = -1};
	int code = home < devices->count
		       ? devices->ops[home]->mem_alloc(devices->self[home], memory->bytes, 0, memory, err)
		       : hostmem_make(s->host, &want, memory, err);
	if (code)
		return code;
	memory->device = home < devices->count ? (int32_t)home : -1;
	for (uint32_t i = 0; i < devices->count; i++) {
		if (i == home || b->private >> home & 1)
			continue;
		code = devices->ops[i]->mem_map(devices->self[i], memory, err);
		if (code) {
			drop(devices, b, home, i);
			return code;
		}
	}
	return 0;
}

static void drop_all(const struct loom_devices *devices, struct segments_batch *b, uint32_t made)
{
	while (made-- > 0)
		if (b->memory[made].bytes)
			drop(devices, b, made, devices->count);
}

int segments_make(void *self, const struct loom_devices *devices, const struct loom_segment_want *want, uint32_t n,
		  struct loom_segment *out, struct loom_error *err)
{
	struct segments *s = self;
	if (!n)
		return 0;
	uint32_t memories = devices->count + 1;
	struct segments_batch *b = s->host->alloc(s->host, sizeof(*b) + memories * sizeof(b->memory[0]));
	if (!b)
		return LOOM_FAIL(s->host, err, LOOM_ENOMEM, "%s: out of memory", s->label);
	b->memories = memories;
	lay_out(s, devices, b, want, n, out);
	for (uint32_t home = 0; home < memories; home++) {
		int code = b->memory[home].bytes ? make(s, devices, b, home, err) : 0;
		if (code) {
			drop_all(devices, b, home);
			s->host->free(s->host, b);
			return code;
		}
	}
	b->next = s->batches;
	s->batches = b;
	return 0;
}

void segments_release(void *self, const struct loom_devices *devices, const struct loom_segment *segment, uint32_t n)
{
	struct segments *s = self;
	if (!n)
		return;
	for (struct segments_batch **at = &s->batches; *at; at = &(*at)->next) {
		struct segments_batch *b = *at;
		if (segment[0].memory < b->memory || segment[0].memory >= b->memory + b->memories)
			continue;
		*at = b->next;
		drop_all(devices, b, b->memories);
		s->host->free(s->host, b);
		return;
	}
}

int segments_noncoherent(void *self, const struct loom_devices *devices)
{
	const struct segments *s = self;
	(void)devices;
	return s->atomics == ATOMICS_NO;
}

void segments_destroy(void *self)
{
	struct segments *s = self;
	if (s)
		s->host->free(s->host, s);
}
