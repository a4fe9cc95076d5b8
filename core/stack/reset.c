/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a program that embeds a stack with GPUs. The devices reset the memory of the policies themselves, so that no
 * image is made and copied for each run.
 *
 * A policy has only init(), a host function that writes its blocks. It declares which parts of its blocks init() writes (struct
 * loom_need). So after one call of init(), these parts have the values with which each run begins. For memory that the host
 * cannot access, each device gets a list of words and their values. The host keeps a copy of all other parts. If values depend
 * on the number of initial tasks, init() runs again when the number changes, and the values that differ are updated. */
#include <stdlib.h>
#include <string.h>

#include "stack/stack.h"

#define PIECE 16u /* limit on the words of an entry, because one lane writes them all */

struct loom__list {
	struct loom_reset *entry;
	size_t count;
	loom_ref ref; /* the device's copy of the list; 0: none */
};

/* A part of a block that the host can access. */
struct part {
	char *at;
	uint64_t bytes;
};

struct loom__resets {
	uint64_t initial_tasks; /* number of initial tasks to which the values belong */
	int varies;             /* 1: some values depend on the number of initial tasks */
	struct part *part;
	size_t parts;
	uint64_t bytes; /* size of all these parts */
	char *copy;     /* [bytes]; their values */
	struct loom__list list[LOOM_MAX_DEVICES];
};

int loom__may_keep(const struct loom_stack *s)
{
	int some = 0;
	if (s->selected[LOOM_WORKLOAD] || s->host.exchange.ranks || s->trace.room)
		return 0;
	for (size_t i = 0; i < s->policies; i++)
		if (LOOM_HAS(s->policy[i].ops, start) ||
		    (s->policy[i].need.size && !(s->policy[i].need.flags & LOOM_NEED_RESET))) /* size 0: not asked yet */
			return 0;
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		if (!(s->shape[d].flags & (LOOM_SHAPE_KEEPS | LOOM_SHAPE_PERSISTENT)))
			return 0;
		some |= (s->shape[d].flags & LOOM_SHAPE_KEEPS) != 0;
	}
	return some;
}

void loom__resets_drop(struct loom_stack *s)
{
	struct loom__resets *r = s->resets;
	for (uint32_t d = 0; r && d < LOOM_MAX_DEVICES; d++)
		free(r->list[d].entry);
	if (r) {
		free(r->part);
		free(r->copy);
	}
	free(r);
	s->resets = NULL;
}

static int init(struct loom_stack *s, struct loom_error *err)
{
	int rc = 0;
	for (size_t i = 0; i < s->policies && !rc; i++)
		rc = LOOM__OP(s->policy[i].choice, "init",
			      s->policy[i].ops->init(s->policy[i].self, &s->layout, &s->policy[i].view, err), err);
	memset(s->counters, 0, s->layout.workers * sizeof(*s->counters)); /* the host's image of the counters */
	return rc;
}

static int add_part(struct loom__resets *r, void *at, uint64_t bytes, struct loom_error *err)
{
	struct part *more = loom__more(r->part, r->parts, sizeof(*more));
	if (!more)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	r->part = more;
	r->part[r->parts++] = (struct part){at, bytes};
	r->bytes += bytes;
	return 0;
}

/* Adds a part of a block: to the host's parts, or its words to a device's list. A word that has the value of the word
 * before it extends the last entry, unless the values vary: then each word has an entry. */
static int add(struct loom_stack *s, loom_ref at, uint64_t bytes, struct loom_error *err)
{
	struct loom__resets *r = s->resets;
	uint32_t segment = LOOM_REF_SEGMENT(at);
	if (!bytes || !s->memory.image[segment])
		return bytes ? add_part(r, loom__host_at(s, at), bytes, err) : 0;
	struct loom__list *l = &r->list[s->memory.segment[segment].memory->device];
	for (uint64_t i = 0; i < bytes; i += 4, at += 4) {
		struct loom_reset *last = l->count ? &l->entry[l->count - 1] : NULL;
		uint32_t value = *(const uint32_t *)loom__host_at(s, at);
		if (last && !r->varies && last->at + 4ull * last->words == at && last->value == value && last->words < PIECE) {
			last->words++;
			continue;
		}
		struct loom_reset *more = loom__more(l->entry, l->count, sizeof(*more));
		if (!more)
			return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
		l->entry = more;
		l->entry[l->count++] = (struct loom_reset){at, value, 1};
	}
	return 0;
}

static int add_both(struct loom_stack *s, loom_ref block, uint64_t bytes, const struct loom_need_reset *reset,
		    struct loom_error *err)
{
	int rc = block ? add(s, block, reset->head, err) : 0;
	return rc || !block ? rc : add(s, block + bytes - reset->tail, reset->tail, err);
}

static int add_all(struct loom_stack *s, struct loom_error *err)
{
	int rc = add(s, s->counters_ref, s->layout.workers * sizeof(struct loom_counters), err);
	for (size_t i = 0; i < s->policies && !rc; i++) {
		const struct loom__policy *p = &s->policy[i];
		const loom_ref *registry = p->need.worker ? loom__host_at(s, p->registry[0]) : NULL;
		rc = add_both(s, p->global, p->need.global, &p->need.reset_global, err);
		for (uint32_t d = 0; d < s->layout.devices && !rc; d++)
			rc = add_both(s, p->on_device[d], p->need.device, &p->need.reset_device, err);
		for (uint32_t w = 0; registry && w < s->layout.workers && !rc; w++)
			rc = add_both(s, registry[w], p->need.worker, &p->need.reset_worker, err);
	}
	return rc;
}

/* Makes the devices' copies of the lists. */
static int place_lists(struct loom_stack *s, struct loom__resets *r, struct loom_error *err)
{
	struct loom_segment_want want[LOOM_MAX_DEVICES];
	uint32_t of[LOOM_MAX_DEVICES], first, n = 0;
	for (uint32_t d = 0; d < s->layout.devices; d++)
		if (r->list[d].count) {
			of[n] = d;
			want[n++] = (struct loom_segment_want){
			    .bytes = (r->list[d].count * sizeof(struct loom_reset) + 63) & ~63ull,
			    .owner = (int32_t)d,
			    .flags = LOOM_MEMORY_PRIVATE};
		}
	int rc = n ? loom__segments_add(s, want, n, &first, err) : 0;
	for (uint32_t i = 0; i < n && !rc; i++) {
		struct loom__list *l = &r->list[of[i]];
		l->ref = LOOM_REF(first + i, 0);
		memcpy(loom__host_at(s, l->ref), l->entry, l->count * sizeof(*l->entry));
	}
	return rc;
}

/* Copies the host's parts to the copy, or back. */
static void copy(struct loom__resets *r, int out)
{
	char *to = r->copy;
	for (size_t i = 0; i < r->parts; to += r->part[i++].bytes)
		memcpy(out ? to : r->part[i].at, out ? r->part[i].at : to, r->part[i].bytes);
}

int loom__resets_make(struct loom_stack *s, struct loom_error *err)
{
	if (s->resets || !loom__may_keep(s))
		return 0;
	struct loom__resets *r = s->resets = calloc(1, sizeof(*r));
	if (!r)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	r->initial_tasks = s->layout.initial_tasks;
	for (size_t i = 0; i < s->policies; i++)
		r->varies |= (s->policy[i].need.flags & LOOM_NEED_VARIES) != 0;
	int rc = init(s, err);
	rc = rc ? rc : add_all(s, err);
	if (!rc && !(r->copy = malloc(r->bytes + 1)))
		rc = LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	if (!rc)
		copy(r, 1);
	rc = rc ? rc : place_lists(s, r, err);
	rc = rc ? rc : loom__images_copy(s, 1, err);
	if (rc)
		loom__resets_drop(s);
	return rc;
}

loom_ref loom__resets_of(const struct loom_stack *s, uint32_t device, uint64_t *count)
{
	const struct loom__list *l = &s->resets->list[device];
	*count = l->count;
	return l->ref;
}

/* Updates the values that depend on the number of initial tasks, also in the devices' copies of the lists. */
static int update(struct loom_stack *s, struct loom__resets *r, struct loom_error *err)
{
	r->initial_tasks = UINT64_MAX; /* no number: if this update fails, the next run makes another */
	int rc = init(s, err);
	copy(r, 1);
	for (uint32_t d = 0; d < s->layout.devices && !rc; d++) {
		struct loom__list *l = &r->list[d];
		for (size_t i = 0; i < l->count && !rc; i++) {
			uint32_t now = *(const uint32_t *)loom__host_at(s, l->entry[i].at);
			if (l->entry[i].value == now)
				continue;
			l->entry[i].value = now;
			rc = loom__segment_copy(s, LOOM_REF_SEGMENT(l->ref), i * sizeof(*l->entry), &l->entry[i],
						sizeof(*l->entry), 1, err);
		}
	}
	if (!rc)
		r->initial_tasks = s->layout.initial_tasks;
	return rc;
}

int loom__resets_apply(struct loom_stack *s, struct loom_error *err)
{
	struct loom__resets *r = s->resets;
	if (r->varies && r->initial_tasks != s->layout.initial_tasks)
		return update(s, r, err);
	copy(r, 0);
	return 0;
}

int loom__resets_by_host(const struct loom_stack *s)
{
	return s->resets->parts != 0;
}

int loom__resets_vary(const struct loom_stack *s)
{
	return s->resets->varies;
}
