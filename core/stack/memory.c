/* SPDX-License-Identifier: Apache-2.0 */
/* Segments, which the transport makes. The host accesses a segment directly, or its image: a copy in host memory. */
#include <stdlib.h>

#include "stack/stack.h"

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
		if (!s->segment[i].memory->host && !(s->image[i] = calloc(1, s->segment[i].bytes))) {
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
		free(s->image[s->segments - n]);
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

int loom__images_copy(struct loom_stack *s, int in, struct loom_error *err)
{
	int rc = 0;
	for (uint32_t i = 1; i <= s->segments && !rc; i++)
		if (s->image[i])
			rc = loom__segment_copy(s, i, 0, s->image[i], s->segment[i].bytes, in, err);
	return rc;
}
