/* SPDX-License-Identifier: Apache-2.0 */
/* Segments, which the transport makes. The host accesses a segment directly, or its image: a copy in host memory. */
#include <stdlib.h>
#include <sys/mman.h>

#include "stack/stack.h"

/* An image has pages of its own, so that a device can map it. */
static char *image_new(uint64_t bytes)
{
	void *at = mmap(NULL, bytes + !bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

void loom__image_free(struct loom_stack *s, uint32_t segment)
{
	struct loom_memory *pinned = &s->pinned[segment];
	if (!s->image[segment])
		return;
	if (pinned->host)
		s->device[pinned->device].ops->mem_unmap(s->device[pinned->device].self, pinned);
	pinned->host = NULL;
	munmap(s->image[segment], s->segment[segment].bytes + !s->segment[segment].bytes);
	s->image[segment] = NULL;
}

int loom__segments_add(struct loom_stack *s, const struct loom_segment_want *want, uint32_t n,
		       uint32_t *first, struct loom_error *err)
{
	if (s->segments + n >= LOOM_MAX_SEGMENTS)
		return LOOM__FAIL(err, LOOM_EFULL, "more than %d memory segments in one stack",
				  LOOM_MAX_SEGMENTS - 1);
	uint32_t at = s->segments + 1;
	int rc = s->transport->segments(s->transport_self, &s->devices, want, n, &s->segment[at], err);
	if (rc)
		return rc;
	*first = at;
	s->segments += n;
	s->groups++;
	for (uint32_t i = at; i < at + n; i++) {
		s->group[i] = s->groups;
		s->image[i] = NULL;
	}
	for (uint32_t i = at; i < at + n; i++)
		if (!s->segment[i].memory->host && !(s->image[i] = image_new(s->segment[i].bytes))) {
			loom__segments_release_last(s);
			return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory for a %llu byte image",
					  (unsigned long long)s->segment[i].bytes);
		}
	return 0;
}

void loom__segment_disown(struct loom_stack *s, uint32_t segment)
{
	struct loom_memory *memory = s->adopted[segment];
	int32_t adopter = s->adopter[segment];
	for (uint32_t d = 0; d < s->layout.devices; d++)
		if ((int32_t)d != adopter)
			s->device[d].ops->mem_unmap(s->device[d].self, memory);
	if (adopter >= 0)
		s->device[adopter].ops->disown(s->device[adopter].self, memory);
	free(memory);
	/* Mark the segment as one that no device can access. */
	s->segment[segment] = (struct loom_segment){.memory = &s->no_memory, .owner = -2, .flags = LOOM_MEMORY_PRIVATE};
	s->adopted[segment] = NULL;
}

void loom__segments_release_last(struct loom_stack *s)
{
	uint32_t n = 0;
	if (s->segment[s->segments].memory == &s->no_memory || s->adopted[s->segments]) {
		if (s->adopted[s->segments])
			loom__segment_disown(s, s->segments);
		s->segments--;
		s->groups--;
		return;
	}
	while (n < s->segments && s->group[s->segments - n] == s->groups) {
		loom__image_free(s, s->segments - n);
		n++;
	}
	s->transport->release(s->transport_self, &s->devices, &s->segment[s->segments - n + 1], n);
	s->segments -= n;
	s->groups--;
}

void *loom__host_at(struct loom_stack *s, loom_ref ref)
{
	const struct loom_segment *g = &s->segment[LOOM_REF_SEGMENT(ref)];
	char *image = s->image[LOOM_REF_SEGMENT(ref)];
	return (image ? image : (char *)g->memory->host + g->offset) + LOOM_REF_OFFSET(ref);
}

int loom__segment_copy(void *stack, uint32_t segment, uint64_t offset, void *host, uint64_t bytes, int in,
		       struct loom_error *err)
{
	struct loom_stack *s = stack;
	const struct loom_segment *g = &s->segment[segment];
	const struct loom__device *d = &s->device[g->memory->device];
	return in ? d->ops->copy_in(d->self, g->memory, g->offset + offset, host, bytes, err) :
		    d->ops->copy_out(d->self, g->memory, g->offset + offset, host, bytes, err);
}

/* Lets the device access the image directly, so that copies of the device do not pass through a buffer of the driver. If
 * this fails, for example because a process may lock little memory, copies work, but take longer. */
static void pin(struct loom_stack *s, uint32_t segment)
{
	const struct loom_memory *memory = s->segment[segment].memory;
	struct loom_memory *pinned = &s->pinned[segment];
	const struct loom__device *d = &s->device[memory->device];
	if (!s->image[segment] || pinned->host)
		return;
	*pinned = (struct loom_memory){.size = sizeof(*pinned), .bytes = s->segment[segment].bytes, .fd = -1,
				       .device = memory->device, .host = s->image[segment]};
	if (d->ops->mem_map(d->self, pinned, NULL))
		pinned->host = NULL;
}

int loom__segment_start_copy(void *stack, uint32_t segment, uint64_t offset, uint64_t other, uint64_t bytes, uint32_t how,
			     uint64_t *number, struct loom_error *err)
{
	struct loom_stack *s = stack;
	const struct loom_segment *g = &s->segment[segment];
	if (g->memory->device < 0 || !LOOM_HAS(s->device[g->memory->device].ops, copy_start) ||
	    (how == LOOM_COPY_TO && g->memory->device))
		return LOOM__FAIL(err, LOOM_ENOTSUP, "segment %u: its device has no such copies beside workers", segment);
	const struct loom__device *d = &s->device[g->memory->device];
	int rc = d->ops->copy_start(d->self, g->memory, g->offset + offset, other, bytes, how, number, err);
	if (!rc && !bytes)
		pin(s, segment);
	return rc;
}

int loom__segment_copy_ended(void *stack, uint32_t segment, uint32_t how, uint64_t number)
{
	struct loom_stack *s = stack;
	const struct loom__device *d = &s->device[s->segment[segment].memory->device];
	return d->ops->copy_ended(d->self, how, number);
}

int loom__images_copy(struct loom_stack *s, int in, struct loom_error *err)
{
	int rc = 0;
	for (uint32_t i = 1; i <= s->segments && !rc; i++)
		if (s->image[i])
			rc = loom__segment_copy(s, i, 0, s->image[i], s->segment[i].bytes, in, err);
	return rc;
}
