/* SPDX-License-Identifier: Apache-2.0 */
/* Segments, which the transport makes or the embedding program adds. The host accesses a segment directly, or its image: a
 * copy in host memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "stack/stack.h"

/* An image has pages of its own, so that a device can map it. */
static char *image_new(uint64_t bytes)
{
	void *at = mmap(NULL, bytes + !bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

static void image_free(struct loom_stack *s, uint32_t segment)
{
	struct loom_memory *pinned = &s->memory.pinned[segment];
	if (!s->memory.image[segment])
		return;
	if (pinned->host)
		s->device[pinned->device].ops->mem_unmap(s->device[pinned->device].self, pinned);
	pinned->host = NULL;
	munmap(s->memory.image[segment], s->memory.segment[segment].bytes + !s->memory.segment[segment].bytes);
	s->memory.image[segment] = NULL;
}

void loom__images_forget(struct loom_stack *s)
{
	for (uint32_t i = 1; i <= s->memory.segments; i++) {
		s->memory.pinned[i].host = NULL;
		image_free(s, i);
	}
}

/* Returns 1 if the segment is as gpuloom/transport.h demands. Else the host would crash, or workers would. */
static int is_as_wanted(const struct loom_stack *s, const struct loom_segment_want *want, const struct loom_segment *g)
{
	const struct loom_memory *m = g->memory;
	return m && g->offset % 64 == 0 && g->bytes >= want->bytes && g->offset <= m->bytes && g->bytes <= m->bytes - g->offset &&
	       g->owner == want->owner && m->device < (int32_t)s->layout.devices && (m->host || m->device >= 0) &&
	       (!(g->flags & LOOM_MEMORY_PRIVATE) || g->owner >= 0);
}

int loom__segments_add(struct loom_stack *s, const struct loom_segment_want *want, uint32_t n,
		       uint32_t *first, struct loom_error *err)
{
	if (s->memory.segments + n >= LOOM_MAX_SEGMENTS)
		return LOOM__FAIL(err, LOOM_EFULL, "more than %d memory segments in one stack", LOOM_MAX_SEGMENTS - 1);
	uint32_t at = s->memory.segments + 1;
	const struct loom__choice *c = loom__plan_get(&s->plan, LOOM_TRANSPORT);
	memset(&s->memory.segment[at], 0, n * sizeof(s->memory.segment[at]));
	int rc = LOOM__OP(c, "segments", s->transport->segments(s->transport_self, &s->devices, want, n, &s->memory.segment[at], err), err);
	for (uint32_t i = 0; i < n && !rc; i++)
		if (!is_as_wanted(s, &want[i], &s->memory.segment[at + i]))
			rc = LOOM__FAIL(err, LOOM_EPLUGIN, "%s: segments() gives other memory than was requested (segment %u of %u, %llu bytes): "
					"`gpuloom validate` says more", c->plugin->name, i + 1, n, (unsigned long long)want[i].bytes);
	if (rc)
		return rc;
	*first = at;
	s->memory.segments += n;
	s->memory.groups++;
	for (uint32_t i = at; i < at + n; i++) {
		s->memory.group[i] = s->memory.groups;
		s->memory.image[i] = NULL;
	}
	for (uint32_t i = at; i < at + n; i++)
		if (!s->memory.segment[i].memory->host && !(s->memory.image[i] = image_new(s->memory.segment[i].bytes))) {
			loom__segments_release_last(s);
			return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory for a %llu byte image",
					  (unsigned long long)s->memory.segment[i].bytes);
		}
	return 0;
}

int loom__segment_spare(const struct loom_stack *s, const char *at, size_t bytes, uint32_t *segment, struct loom_error *err)
{
	*segment = s->memory.segments + 1;
	for (uint32_t i = s->memory.segments; i > 0; i--) {
		const char *other = s->memory.adopted[i] ? s->memory.adopted[i]->host : NULL;
		if (s->memory.segment[i].memory == &s->memory.none)
			*segment = i;
		if (other && at < other + s->memory.adopted[i]->bytes && other < at + bytes)
			return LOOM__FAIL(err, LOOM_EINVAL, "memory at %p: %zu bytes at %p are adopted, which it overlaps",
					  (const void *)at, (size_t)s->memory.adopted[i]->bytes, (const void *)other);
	}
	if (*segment >= LOOM_MAX_SEGMENTS)
		return LOOM__FAIL(err, LOOM_EFULL, "more than %d memory segments in one stack", LOOM_MAX_SEGMENTS - 1);
	return 0;
}

void loom__segment_own(struct loom_stack *s, uint32_t segment, struct loom_memory *m, int32_t adopter)
{
	s->memory.none = (struct loom_memory){.size = sizeof(s->memory.none), .fd = -1, .device = -1};
	if (segment > s->memory.segments) {
		s->memory.segments = segment;
		s->memory.group[segment] = ++s->memory.groups;
		s->memory.image[segment] = NULL;
	}
	s->memory.segment[segment] = (struct loom_segment){.memory = m, .bytes = m->bytes, .owner = -1};
	s->memory.adopted[segment] = m;
	s->memory.adopter[segment] = adopter;
}

void loom__segment_disown(struct loom_stack *s, uint32_t segment)
{
	struct loom_memory *memory = s->memory.adopted[segment];
	int32_t adopter = s->memory.adopter[segment];
	for (uint32_t d = 0; d < s->layout.devices; d++)
		if ((int32_t)d != adopter)
			s->device[d].ops->mem_unmap(s->device[d].self, memory);
	if (adopter >= 0)
		s->device[adopter].sharing->disown(s->device[adopter].self, memory);
	free(memory);
	/* Mark the segment as one that no device can access. */
	s->memory.segment[segment] = (struct loom_segment){.memory = &s->memory.none, .owner = -2, .flags = LOOM_MEMORY_PRIVATE};
	s->memory.adopted[segment] = NULL;
}

void loom__segments_release_last(struct loom_stack *s)
{
	uint32_t n = 0;
	if (s->memory.segment[s->memory.segments].memory == &s->memory.none || s->memory.adopted[s->memory.segments]) {
		if (s->memory.adopted[s->memory.segments])
			loom__segment_disown(s, s->memory.segments);
		s->memory.segments--;
		s->memory.groups--;
		return;
	}
	while (n < s->memory.segments && s->memory.group[s->memory.segments - n] == s->memory.groups) {
		image_free(s, s->memory.segments - n);
		n++;
	}
	s->transport->release(s->transport_self, &s->devices, &s->memory.segment[s->memory.segments - n + 1], n);
	s->memory.segments -= n;
	s->memory.groups--;
}

void *loom__host_at(struct loom_stack *s, loom_ref ref)
{
	const struct loom_segment *g = &s->memory.segment[LOOM_REF_SEGMENT(ref)];
	char *image = s->memory.image[LOOM_REF_SEGMENT(ref)];
	return (image ? image : (char *)g->memory->host + g->offset) + LOOM_REF_OFFSET(ref);
}

int loom__segment_copy(void *stack, uint32_t segment, uint64_t offset, void *host, uint64_t bytes, int in,
		       struct loom_error *err)
{
	struct loom_stack *s = stack;
	const struct loom_segment *g = &s->memory.segment[segment];
	const struct loom__device *d = &s->device[g->memory->device];
	return in ? d->ops->copy_in(d->self, g->memory, g->offset + offset, host, bytes, err) :
		    d->ops->copy_out(d->self, g->memory, g->offset + offset, host, bytes, err);
}

/* Lets the device access the image directly, so that copies of the device do not pass through a buffer of the driver. If
 * this fails, for example because a process may lock little memory, copies work, but take longer. */
static void pin(struct loom_stack *s, uint32_t segment)
{
	const struct loom_memory *memory = s->memory.segment[segment].memory;
	struct loom_memory *pinned = &s->memory.pinned[segment];
	const struct loom__device *d = &s->device[memory->device];
	if (!s->memory.image[segment] || pinned->host)
		return;
	*pinned = (struct loom_memory){.size = sizeof(*pinned), .bytes = s->memory.segment[segment].bytes, .fd = -1,
				       .device = memory->device, .host = s->memory.image[segment]};
	if (d->ops->mem_map(d->self, pinned, NULL))
		pinned->host = NULL;
}

int loom__segment_start_copy(void *stack, uint32_t segment, uint64_t offset, uint64_t other, uint64_t bytes, uint32_t how,
			     uint64_t *number, struct loom_error *err)
{
	struct loom_stack *s = stack;
	const struct loom_segment *g = &s->memory.segment[segment];
	if (g->memory->device < 0 || !s->device[g->memory->device].copies || (how == LOOM_COPY_TO && g->memory->device))
		return LOOM__FAIL(err, LOOM_ENOTSUP, "segment %u: its device has no such copies beside workers", segment);
	const struct loom__device *d = &s->device[g->memory->device];
	int rc = d->copies->copy_start(d->self, g->memory, g->offset + offset, other, bytes, how, number, err);
	if (!rc && !bytes)
		pin(s, segment);
	return rc;
}

int loom__segment_copy_ended(void *stack, uint32_t segment, uint32_t how, uint64_t number)
{
	struct loom_stack *s = stack;
	const struct loom__device *d = &s->device[s->memory.segment[segment].memory->device];
	return d->copies->copy_ended(d->self, how, number);
}

int loom__images_copy(struct loom_stack *s, int in, struct loom_error *err)
{
	int rc = 0;
	for (uint32_t i = 1; i <= s->memory.segments && !rc; i++)
		if (s->memory.image[i])
			rc = loom__segment_copy(s, i, 0, s->memory.image[i], s->memory.segment[i].bytes, in, err);
	return rc;
}
