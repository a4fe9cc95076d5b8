/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a program that embeds a stack with GPUs. The devices reset the memory of the policies themselves, so that no
 * image is made and copied for each run.
 *
 * A policy has only init(), a host function that writes its blocks. The core finds out once what init() writes. For
 * this, init() runs on blocks that are filled with one pattern, and a second time on blocks that are filled with
 * another. A byte that is equal after both runs was written by init(). A byte that still has the two patterns was not
 * written. The result is lists of words and their values. Each device has a list for memory that the host cannot
 * access; the host applies another list, for all other memory. init() also runs for smaller numbers of initial tasks,
 * which shows the words whose values depend on this number. These words are updated when the number changes. */
#include <stdlib.h>
#include <string.h>

#include "stack/stack.h"

#define FIRST_FILL 0x5a
#define OTHER_FILL 0xa5
#define PIECE      16u /* limit on the words of an entry, because one lane writes them all */

/* A block of a policy. */
struct extent {
	loom_ref ref;
	uint64_t bytes;
	uint64_t at; /* offset of its content in the buffer that save() fills */
};

struct loom__list {
	struct loom_reset *entry;
	size_t count;
	loom_ref ref;  /* the device's copy of the list; 0: none */
	char *changed; /* [count]; 1: the value depends on the number of initial tasks */
};

struct loom__resets {
	struct extent *extent;
	size_t extents;
	uint64_t bytes;                               /* size of all extents together */
	uint64_t initial_tasks;                       /* number of initial tasks to which the values belong */
	uint64_t most;                                /* the largest number of initial tasks so far */
	int varies;                                   /* 1: some values depend on the number of initial tasks */
	struct loom__list list[LOOM_MAX_DEVICES + 1]; /* by device; the last list is the host's */
};

int loom__may_keep(const struct loom_stack *s)
{
	int some = 0;
	if (s->selected[LOOM_WORKLOAD] || s->host.exchange.ranks || s->trace_room)
		return 0;
	for (size_t i = 0; i < s->policies; i++) {
		enum loom_kind kind = s->policy[i].choice->kind;
		if ((kind != LOOM_SCHED && kind != LOOM_TERM) || LOOM_HAS(s->policy[i].ops, start) ||
		    s->policy[i].need.flags & LOOM_NEED_INIT)
			return 0;
	}
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
	for (uint32_t d = 0; r && d <= LOOM_MAX_DEVICES; d++) {
		free(r->list[d].entry);
		free(r->list[d].changed);
	}
	if (r)
		free(r->extent);
	free(r);
	s->resets = NULL;
}

/* ---- what init() writes -------------------------------------------------------------------------- */

static int add_extent(struct loom__resets *r, loom_ref ref, uint64_t bytes, struct loom_error *err)
{
	if (!ref || !bytes)
		return 0;
	struct extent *more = loom__more(r->extent, r->extents, sizeof(*more));
	if (!more)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	r->extent = more;
	r->extent[r->extents++] = (struct extent){ref, bytes, r->bytes};
	r->bytes += bytes;
	return 0;
}

static int find_extents(struct loom_stack *s, struct loom__resets *r, struct loom_error *err)
{
	int rc = 0;
	for (size_t i = 0; i < s->policies && !rc; i++) {
		const struct loom__policy *p = &s->policy[i];
		const loom_ref *registry = p->need.worker ? loom__host_at(s, p->registry[0]) : NULL;
		rc = add_extent(r, p->global, p->need.global, err);
		for (uint32_t d = 0; d < s->layout.devices && !rc; d++)
			rc = add_extent(r, p->on_device[d], p->need.device, err);
		for (uint32_t w = 0; registry && w < s->layout.workers && !rc; w++)
			rc = add_extent(r, registry[w], p->need.worker, err);
	}
	return rc;
}

static void fill(struct loom_stack *s, const struct loom__resets *r, int pattern)
{
	for (size_t i = 0; i < r->extents; i++)
		memset(loom__host_at(s, r->extent[i].ref), pattern, r->extent[i].bytes);
}

static int init(struct loom_stack *s, struct loom_error *err)
{
	int rc = 0;
	for (size_t i = 0; i < s->policies && !rc; i++)
		rc = s->policy[i].ops->init(s->policy[i].self, &s->layout, &s->policy[i].view, err);
	return rc;
}

static void save(struct loom_stack *s, const struct loom__resets *r, char *to)
{
	for (size_t i = 0; i < r->extents; i++)
		memcpy(to + r->extent[i].at, loom__host_at(s, r->extent[i].ref), r->extent[i].bytes);
}

/* Compares a word after both runs of init(). `first` points to the word in the blocks that were filled with FIRST_FILL,
 * and `other` to the word in the blocks that were filled with OTHER_FILL. Returns 1 if init() has written the word, 0
 * if it has not, and -1 if it has written different bytes. If init() has written only some bytes of the word, the other
 * bytes are padding, and are 0 in *value. */
static int written(const unsigned char *first, const unsigned char *other, uint32_t *value)
{
	unsigned char byte[4];
	int some = 0;
	for (int i = 0; i < 4; i++) {
		int is = first[i] == other[i];
		if (!is && (first[i] != FIRST_FILL || other[i] != OTHER_FILL))
			return -1;
		byte[i] = is ? first[i] : 0;
		some |= is;
	}
	memcpy(value, byte, sizeof(*value));
	return some;
}

static struct loom__list *list_of(struct loom_stack *s, struct loom__resets *r, loom_ref ref)
{
	uint32_t segment = LOOM_REF_SEGMENT(ref);
	return &r->list[s->image[segment] ? (uint32_t)s->segment[segment].memory->device : LOOM_MAX_DEVICES];
}

/* Adds words to a list. If the words follow the words of the last entry and have the same value, the last entry
 * grows. */
static int add_words(struct loom__list *l, loom_ref at, uint32_t value, uint32_t words, struct loom_error *err)
{
	while (words) {
		struct loom_reset *last = l->count ? &l->entry[l->count - 1] : NULL;
		uint32_t n = words < PIECE ? words : PIECE;
		if (last && last->at + 4ull * last->words == at && last->value == value && last->words < PIECE) {
			n = n < PIECE - last->words ? n : PIECE - last->words;
			last->words += n;
		} else {
			struct loom_reset *more = loom__more(l->entry, l->count, sizeof(*more));
			if (!more)
				return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
			l->entry = more;
			l->entry[l->count++] = (struct loom_reset){at, value, n};
		}
		at += 4ull * n;
		words -= n;
	}
	return 0;
}

/* Lists what init() wrote. The blocks have their content after the second run of init(); `first` has their content
 * after the first run. Returns LOOM_ENOTSUP if init() writes values that depend on the earlier content. */
static int list_words(struct loom_stack *s, struct loom__resets *r, const char *first, struct loom_error *err)
{
	int rc = 0;
	for (size_t i = 0; i < r->extents && !rc; i++) {
		const struct extent *e = &r->extent[i];
		const unsigned char *a = (const unsigned char *)first + e->at, *b = loom__host_at(s, e->ref);
		struct loom__list *l = list_of(s, r, e->ref);
		uint32_t value;
		for (uint64_t at = 0; at + 4 <= e->bytes && !rc; at += 4) {
			int is = written(a + at, b + at, &value);
			if (is)
				rc = is < 0 ? LOOM_ENOTSUP : add_words(l, e->ref + at, value, 1, err);
		}
	}
	return rc;
}

static int init_for(struct loom_stack *s, uint64_t initial_tasks, struct loom_error *err)
{
	uint64_t now = s->layout.initial_tasks;
	s->layout.initial_tasks = initial_tasks;
	int rc = init(s, err);
	s->layout.initial_tasks = now;
	return rc;
}

/* Adds an entry to a list. If `changes` is 1, adds one entry for each word of `e` instead, because each word may get
 * another value. */
static int keep_entry(struct loom__list *l, const struct loom_reset *e, int changes, struct loom_error *err)
{
	for (uint32_t k = 0; k < (changes ? e->words : 1u); k++) {
		struct loom_reset *more = loom__more(l->entry, l->count, sizeof(*more));
		l->entry = more ? more : l->entry;
		char *changed = loom__more(l->changed, l->count, 1);
		l->changed = changed ? changed : l->changed;
		if (!more || !changed)
			return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
		l->changed[l->count] = (char)changes;
		l->entry[l->count++] = changes ? (struct loom_reset){e->at + 4ull * k, e->value, 1} : *e;
	}
	return 0;
}

static int differs(struct loom_stack *s, const struct loom_reset *e)
{
	const uint32_t *now = loom__host_at(s, e->at);
	uint32_t k = 0;
	while (k < e->words && now[k] == e->value)
		k++;
	return k < e->words;
}

/* Marks the words whose value differs for another number of initial tasks. Tries only smaller numbers, because the
 * blocks may have no room for more tasks. */
static int find_variables(struct loom_stack *s, struct loom__resets *r, struct loom_error *err)
{
	uint64_t n = s->layout.initial_tasks, other[] = {0, 1, n / 2, n - 1};
	int rc = 0;
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]) && !rc; i++) {
		if (other[i] >= n)
			continue;
		rc = init_for(s, other[i], err);
		for (uint32_t d = 0; d <= LOOM_MAX_DEVICES && !rc; d++) {
			struct loom__list old = r->list[d], *l = &r->list[d];
			*l = (struct loom__list){0};
			for (size_t k = 0; k < old.count && !rc; k++) {
				int changes = (old.changed && old.changed[k]) || differs(s, &old.entry[k]);
				r->varies |= changes;
				rc = keep_entry(l, &old.entry[k], changes, err);
			}
			free(old.entry);
			free(old.changed);
		}
	}
	return rc ? rc : init(s, err); /* init() brings the blocks back into their starting state */
}

/* Called after init() for a larger number of tasks than before. Returns 1 if init() has changed a word that had the
 * same value for all smaller numbers. */
static int changes_more(struct loom_stack *s, const struct loom__resets *r)
{
	for (uint32_t d = 0; d <= LOOM_MAX_DEVICES; d++)
		for (size_t i = 0; i < r->list[d].count; i++)
			if (!(r->list[d].changed && r->list[d].changed[i]) && differs(s, &r->list[d].entry[i]))
				return 1;
	return 0;
}

int loom__resets_grow(struct loom_stack *s, struct loom_error *err)
{
	struct loom__resets *r = s->resets;
	if (!r || s->layout.initial_tasks <= r->most)
		return 0;
	int rc = init(s, err);
	if (rc)
		return rc;
	memset(s->counters, 0, s->layout.workers * sizeof(*s->counters)); /* clears the host's image of the counters */
	r->most = s->layout.initial_tasks;
	return changes_more(s, r);
}

/* ---- the devices' copies -------------------------------------------------------------------------- */

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

static int build(struct loom_stack *s, struct loom__resets *r, struct loom_error *err)
{
	char *first = NULL;
	int rc = find_extents(s, r, err);
	if (!rc && !(first = malloc(r->bytes)))
		rc = LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	if (!rc) {
		fill(s, r, FIRST_FILL);
		rc = init(s, err);
	}
	if (!rc) {
		save(s, r, first);
		fill(s, r, OTHER_FILL);
		rc = init(s, err);
	}
	if (!rc)
		rc = list_words(s, r, first, err);
	free(first);
	fill(s, r, 0);
	if (!rc)
		rc = add_words(list_of(s, r, s->counters_ref), s->counters_ref, 0,
			       (uint32_t)(s->layout.workers * sizeof(struct loom_counters) / 4), err);
	if (!rc)
		rc = find_variables(s, r, err);
	if (!rc)
		rc = place_lists(s, r, err);
	r->initial_tasks = r->most = s->layout.initial_tasks;
	return rc;
}

#define BUILDS 8 /* limit on the calls of build(), because each takes memory until the stack is closed */

int loom__resets_make(struct loom_stack *s, struct loom_error *err)
{
	if (s->resets || s->unkept || !loom__may_keep(s))
		return 0;
	struct loom__resets *r = s->resets = calloc(1, sizeof(*r));
	int rc = r ? build(s, r, err) : LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	if (!rc)
		rc = loom__images_copy(s, 1, err);
	if (rc)
		loom__resets_drop(s);
	s->unkept = rc == LOOM_ENOTSUP || ++s->resets_made == BUILDS;
	return rc == LOOM_ENOTSUP ? 0 : rc;
}

loom_ref loom__resets_of(const struct loom_stack *s, uint32_t device, uint64_t *count)
{
	const struct loom__list *l = &s->resets->list[device];
	*count = l->count;
	return l->ref;
}

/* ---- a run ---------------------------------------------------------------------------------------- */

/* Updates the values that depend on the number of initial tasks, also in the devices' copies of the lists. */
static int update(struct loom_stack *s, struct loom__resets *r, struct loom_error *err)
{
	int rc = init(s, err);
	for (uint32_t d = 0; d <= LOOM_MAX_DEVICES && !rc; d++) {
		struct loom__list *l = &r->list[d];
		for (size_t i = 0; i < l->count && !rc; i++) {
			if (!l->changed || !l->changed[i] || !differs(s, &l->entry[i]))
				continue;
			l->entry[i].value = *(const uint32_t *)loom__host_at(s, l->entry[i].at);
			if (l->ref)
				rc = loom__segment_copy(s, LOOM_REF_SEGMENT(l->ref), i * sizeof(*l->entry),
							&l->entry[i], sizeof(*l->entry), 1, err);
		}
	}
	if (!rc)
		r->initial_tasks = s->layout.initial_tasks;
	return rc;
}

int loom__resets_apply(struct loom_stack *s, struct loom_error *err)
{
	struct loom__resets *r = s->resets;
	const struct loom__list *own = &r->list[LOOM_MAX_DEVICES];
	int rc = r->varies && r->initial_tasks != s->layout.initial_tasks ? update(s, r, err) : 0;
	for (size_t i = 0; i < own->count && !rc; i++) {
		uint32_t *at = loom__host_at(s, own->entry[i].at);
		for (uint32_t k = 0; k < own->entry[i].words; k++)
			at[k] = own->entry[i].value;
	}
	return rc;
}

int loom__resets_by_host(const struct loom_stack *s)
{
	return s->resets->list[LOOM_MAX_DEVICES].count != 0;
}

int loom__resets_vary(const struct loom_stack *s)
{
	return s->resets->varies;
}
