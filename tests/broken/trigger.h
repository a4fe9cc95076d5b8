/* SPDX-License-Identifier: Apache-2.0 */
/* A sound trigger, memory copies within this process, with places for a fault.
 * A fixture defines NAME and one hook, the fault, before it includes this. */
#ifndef LOOM_BROKEN_TRIGGER_H
#define LOOM_BROKEN_TRIGGER_H

#ifndef DUE /* when an operation runs */
#define DUE(count, at) ((count) >= (at))
#endif
#ifndef BEFORE /* which one runs first */
#define BEFORE(a, b) ((a)->at < (b)->at || ((a)->at == (b)->at && (a)->id < (b)->id))
#endif
#ifndef DONE /* an operation has run */
#define DONE(w) (w)->id = 0
#endif
#ifndef FIRED /* what a fire counts for */
#define FIRED(n, ticket) (n)
#endif
#ifndef CANCEL /* an operation is cancelled */
#define CANCEL(w) (w).id = 0
#endif
#ifndef POSTED /* what a post adds to its threshold */
#define POSTED(count) 0
#endif

#include <gpuloom/plugin.h>
#include <gpuloom/trigger.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include <gpuloom/dev/dev.h>
#include <gpuloom/trigger.h>

struct b_entry {
	uint64_t filled; /* the entry's ticket + 1 once the rest stands */
	uint64_t tag, count, argument;
};
struct b_word {
	uint64_t count;
	uint64_t pad[7];
};

/* The block for the stack; slots, arrival words and entries follow. */
struct block {
	uint64_t head; /* tickets given to workers */
	uint64_t pad0[7];
	uint64_t tail; /* entries that the host has taken */
	uint64_t pad1[7];
	uint64_t failed; /* minus an enum loom_err: the first failure */
	uint32_t entries, slots, arrivals, pad2;
	uint64_t pad3[5];
};

/* For each device: where its workers meet at the end of a kernel. */
struct b_gate {
	uint32_t arrived;
	uint32_t round;
	uint64_t pad[7];
};

LOOM_FN struct block *b_block(const struct loom_ctx *c)
{
	return (struct block *)c->global[LOOM_TRIGGER];
}

LOOM_FN struct b_word *b_slots(struct block *b)
{
	return (struct b_word *)(b + 1);
}

LOOM_FN struct b_word *b_arrivals(struct block *b)
{
	return b_slots(b) + b->slots;
}

LOOM_FN struct b_entry *b_entries(struct block *b)
{
	return (struct b_entry *)(b_arrivals(b) + b->arrivals);
}

LOOM_FN int b_put(struct loom_ctx *c, uint64_t tag, uint64_t count, uint64_t argument)
{
	struct block *b = b_block(c);
	uint64_t n = loom_fetch_add_relaxed_sys(&b->head, (uint64_t)1);
	/* Acquire: pairs with the host's release of tail: it has read the entry's last content. */
	while (n - loom_load_acquire_sys(&b->tail) >= b->entries) {
		if (loom_stopped(c))
			return LOOM_EINTR;
		loom_pause(c);
	}
	struct b_entry *e = &b_entries(b)[n % b->entries];
	loom_store_relaxed_sys(&e->tag, tag);
	loom_store_relaxed_sys(&e->count, count);
	loom_store_relaxed_sys(&e->argument, argument);
	/* Release: what this lane wrote is sent with the operation. */
	loom_store_release_sys(&e->filled, n + 1);
	return 0;
}

LOOM_FN int b_fire(struct loom_ctx *c, uint64_t tag, uint32_t count)
{
	return b_put(c, tag, count, 0);
}

LOOM_FN int b_fire_with(struct loom_ctx *c, uint64_t tag, uint64_t argument)
{
	return b_put(c, tag, 1, argument);
}

LOOM_FN int64_t b_look(struct loom_ctx *c, struct b_word *word)
{
	uint64_t failed = loom_load_relaxed_sys(&b_block(c)->failed);
	/* Acquire: pairs with the host's release after the data is there. */
	return failed ? -(int64_t)failed : (int64_t)loom_load_acquire_sys(&word->count);
}

LOOM_FN int64_t b_completed(struct loom_ctx *c, uint32_t slot)
{
	return b_look(c, &b_slots(b_block(c))[slot]);
}

LOOM_FN int64_t b_arrived(struct loom_ctx *c, uint32_t index)
{
	return b_look(c, &b_arrivals(b_block(c))[index]);
}

LOOM_FN uint64_t b_arrived_at(struct loom_ctx *c, uint32_t index)
{
	(void)c, (void)index;
	return 0; /* times are not kept */
}

/* Fires are under way at once: only the meeting of the workers is left of a boundary. */
LOOM_FN int b_boundary(struct loom_ctx *c)
{
	uint64_t stopped = 0;
	loom_barrier_lanes(c);
	if (c->lane == 0) {
		struct b_gate *g = (struct b_gate *)c->on_device[LOOM_TRIGGER];
		uint32_t round = loom_load_relaxed_sys(&g->round);
		if (loom_fetch_add_acq_rel_sys(&g->arrived, 1u) + 1 == c->count) {
			loom_store_relaxed_sys(&g->arrived, 0u);
			loom_store_release_sys(&g->round, round + 1);
		}
		while (loom_load_acquire_sys(&g->round) == round && !stopped) {
			stopped = (uint64_t)loom_stopped(c);
			loom_pause(c);
		}
	}
	return loom_from_lane0(c, stopped) ? LOOM_EINTR : 0;
}

LOOM_FN int b_deliver(struct loom_ctx *c)
{
	(void)c; /* nothing: what was fired is on its way */
	return 0;
}

struct opts {
	uint32_t posts, entries, slots;
};
static const struct loom_opt rows[] = {
    LOOM_OPT(struct opts, posts, LOOM_OPT_U32, "1024", "Operations that may wait at once.",
	     .min = 1, .max = 65536),
    LOOM_OPT(struct opts, entries, LOOM_OPT_U32, "1024", "Fires that may be under way at once.",
	     .min = 1, .max = 65536),
    LOOM_OPT(struct opts, slots, LOOM_OPT_U32, "256",
	     "Completion slots, and as many arrival words; the first is number 0.", .min = 1,
	     .max = 65536),
    {0},
};

/* A counter exists once somebody named it. */
struct counter {
	uint64_t tag, count, argument;
};
struct waiting {
	struct loom_trigger_post post;
	uint64_t id, at; /* id 0: a free place; at: the count that it waits for */
};

struct instance {
	const struct loom_host *host;
	const struct opts *opts; /* filled by the core, valid until destroy() */
	pthread_mutex_t lock;    /* over all that follows */
	struct waiting *waiting; /* [opts->posts] */
	struct counter *counter;
	uint32_t counters, room;
	uint64_t ids;
	struct block *block; /* the host's view */
	struct loom_segments segments;
	pthread_t thread;
	int running;
};

/* ---- life
 * ---------------------------------------------------------------------------------------- */

static void destroy(void *self)
{
	struct instance *i = self;
	if (!i)
		return;
	pthread_mutex_destroy(&i->lock);
	i->host->free(i->host, i->waiting);
	i->host->free(i->host, i->counter);
	i->host->free(i->host, i);
}

static int create(const struct loom_host *host, const void *opts, void **self,
		  struct loom_error *err)
{
	struct instance *i = host->alloc(host, sizeof(*i));
	if (!i)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, NAME ": out of memory");
	i->host = host;
	i->opts = opts;
	pthread_mutex_init(&i->lock, NULL);
	i->room = 4 * i->opts->posts;
	i->waiting = host->alloc(host, i->opts->posts * sizeof(*i->waiting));
	i->counter = host->alloc(host, i->room * sizeof(*i->counter));
	if (!i->waiting || !i->counter) {
		destroy(i);
		return LOOM_FAIL(host, err, LOOM_ENOMEM, NAME ": out of memory");
	}
	*self = i;
	return 0;
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *need,
		struct loom_error *err)
{
	const struct instance *i = self;
	(void)layout, (void)err;
	need->global = sizeof(struct block) + 2ull * i->opts->slots * sizeof(struct b_word) +
		       i->opts->entries * sizeof(struct b_entry);
	need->device = sizeof(struct b_gate);
	return 0;
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		struct loom_error *err)
{
	struct instance *i = self;
	struct loom_need whole = {0};
	need(self, layout, &whole, err);
	pthread_mutex_lock(&i->lock);
	memset(view->global, 0, whole.global);
	i->block = view->global;
	i->block->entries = i->opts->entries;
	i->block->slots = i->block->arrivals = i->opts->slots;
	for (uint32_t d = 0; d < layout->devices; d++)
		memset(view->device[d], 0, sizeof(struct b_gate));
	memset(i->waiting, 0, i->opts->posts * sizeof(*i->waiting));
	i->counters = 0;
	pthread_mutex_unlock(&i->lock);
	return 0;
}

/* ---- operations, under the lock
 * ------------------------------------------------------------------- */

static struct counter *counter(struct instance *i, uint64_t tag)
{
	for (uint32_t n = 0; n < i->counters; n++)
		if (i->counter[n].tag == tag)
			return &i->counter[n];
	if (i->counters == i->room)
		return NULL;
	i->counter[i->counters] = (struct counter){.tag = tag};
	return &i->counter[i->counters++];
}

static char *at(const struct instance *i, loom_ref ref, uint64_t bytes)
{
	uint32_t s = LOOM_REF_SEGMENT(ref);
	uint64_t offset = LOOM_REF_OFFSET(ref);
	if (!s || s >= i->segments.count || !i->segments.at[s] || offset > i->segments.bytes[s] ||
	    bytes > i->segments.bytes[s] - offset)
		return NULL;
	return (char *)i->segments.at[s] + offset;
}

static void add(char *to, const char *from, uint64_t bytes, uint32_t type)
{
	for (uint64_t k = 0; type == LOOM_NET_U64 && k + 8 <= bytes; k += 8)
		__atomic_fetch_add((uint64_t *)(void *)(to + k),
				   *(const uint64_t *)(const void *)(from + k), __ATOMIC_RELAXED);
	for (uint64_t k = 0; type == LOOM_NET_F32 && k + 4 <= bytes; k += 4)
		*(float *)(void *)(to + k) += *(const float *)(const void *)(from + k);
}

static int move(const struct instance *i, const struct loom_trigger_post *p, uint64_t argument)
{
	uint64_t shift = argument & 0xffffffffffffull;
	if (p->op == LOOM_NET_COUNT)
		return 0;
	char *local = at(i, p->local + (p->flags & LOOM_NET_LOCAL_FROM_FIRE ? shift : 0), p->bytes);
	char *remote =
	    at(i, p->remote + (p->flags & LOOM_NET_REMOTE_FROM_FIRE ? shift : 0), p->bytes);
	if (!local || !remote)
		return LOOM_EINVAL;
	if (p->op == LOOM_NET_PUT)
		memmove(remote, local, p->bytes);
	else if (p->op == LOOM_NET_GET)
		memmove(local, remote, p->bytes);
	else
		add(remote, local, p->bytes, p->type);
	return 0;
}

static void count_word(struct b_word *word)
{
	/* Release: the data is there; pairs with the worker's acquire. */
	__atomic_fetch_add(&word->count, 1, __ATOMIC_RELEASE);
}

static void complete(struct instance *i, struct waiting *w, uint64_t argument)
{
	struct loom_trigger_post p = w->post;
	int code = move(i, &p, argument);
	if (p.rearm)
		w->at += p.rearm;
	else
		DONE(w);
	if (code) {
		uint64_t none = 0;
		__atomic_compare_exchange_n(&i->block->failed, &none, (uint64_t)-code, 0,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		return;
	}
	if (p.notify) {
		struct counter *c = counter(i, LOOM_TAG_ARRIVAL(p.notify));
		count_word(&b_arrivals(i->block)[p.notify]);
		if (c)
			c->count++;
	}
	if (p.slot)
		count_word(&b_slots(i->block)[p.slot]);
	struct counter *chained = p.chain ? counter(i, p.chain) : NULL;
	if (chained)
		chained->count++;
}

/* The post that is due next: the lowest threshold first, then the oldest. */
static struct waiting *next_due(struct instance *i)
{
	struct waiting *best = NULL;
	for (uint32_t n = 0; n < i->opts->posts; n++) {
		struct waiting *w = &i->waiting[n];
		const struct counter *c = w->id ? counter(i, w->post.tag) : NULL;
		if (c && DUE(c->count, w->at) && (!best || BEFORE(w, best)))
			best = w;
	}
	return best;
}

static void run_due(struct instance *i)
{
	for (struct waiting *w = next_due(i); w; w = next_due(i))
		complete(i, w, counter(i, w->post.tag)->argument);
}

/* Takes what was fired. 1: there was something. */
static int drain(struct instance *i)
{
	struct block *b = i->block;
	int some = 0;
	if (!b)
		return 0;
	for (;; some = 1) {
		struct b_entry *e = &b_entries(b)[b->tail % b->entries];
		/* Acquire: pairs with the release of put(): entry, and what is to be sent. */
		if (__atomic_load_n(&e->filled, __ATOMIC_ACQUIRE) != b->tail + 1)
			return some;
		struct counter *c = counter(i, __atomic_load_n(&e->tag, __ATOMIC_RELAXED));
		if (c) {
			c->count += FIRED(__atomic_load_n(&e->count, __ATOMIC_RELAXED), b->tail);
			c->argument = __atomic_load_n(&e->argument, __ATOMIC_RELAXED);
		}
		__atomic_store_n(&b->tail, b->tail + 1, __ATOMIC_RELEASE);
		run_due(i);
	}
}

/* ---- the thread
 * ------------------------------------------------------------------------------------ */

static void *engine(void *arg)
{
	struct instance *i = arg;
	const struct timespec nap = {.tv_nsec = 20000};
	while (__atomic_load_n(&i->running, __ATOMIC_ACQUIRE)) {
		pthread_mutex_lock(&i->lock);
		int some = drain(i);
		pthread_mutex_unlock(&i->lock);
		if (!some)
			nanosleep(&nap, NULL);
	}
	return NULL;
}

static void stop(void *self)
{
	struct instance *i = self;
	__atomic_store_n(&i->running, 0, __ATOMIC_RELEASE);
	pthread_join(i->thread, NULL);
	i->host->free(i->host, (void *)(uintptr_t)i->segments.at);
	i->host->free(i->host, (void *)(uintptr_t)i->segments.bytes);
	i->segments = (struct loom_segments){0};
	i->block = NULL;
}

static int start(void *self, const struct loom_layout *layout, const struct loom_view *view,
		 const struct loom_segments *segments, struct loom_error *err)
{
	struct instance *i = self;
	void **where = i->host->alloc(i->host, segments->count * sizeof(*where));
	uint64_t *bytes = i->host->alloc(i->host, segments->count * sizeof(*bytes));
	(void)layout, (void)view;
	if (where && bytes) {
		memcpy(where, segments->at, segments->count * sizeof(*where));
		memcpy(bytes, segments->bytes, segments->count * sizeof(*bytes));
		i->segments = (struct loom_segments){.size = sizeof(i->segments),
						     .count = segments->count,
						     .at = where,
						     .bytes = bytes};
		i->running = 1;
		if (!pthread_create(&i->thread, NULL, engine, i))
			return 0;
	}
	i->running = 0;
	i->segments = (struct loom_segments){0};
	i->host->free(i->host, where);
	i->host->free(i->host, bytes);
	return LOOM_FAIL(i->host, err, LOOM_ENOMEM, NAME ": no memory or no thread for the engine");
}

/* ---- what the host calls
 * --------------------------------------------------------------------------- */

static int post(void *self, const struct loom_trigger_post *p, uint64_t *id, struct loom_error *err)
{
	struct instance *i = self;
	if (p->op < LOOM_NET_PUT || p->op > LOOM_NET_COUNT || p->op == LOOM_NET_SEND ||
	    p->op == LOOM_NET_RECV)
		return LOOM_FAIL(i->host, err, LOOM_ENOTSUP,
				 NAME ": it can PUT, GET, ADD and COUNT alone");
	if (p->target || p->slot >= i->opts->slots || p->notify >= i->opts->slots)
		return LOOM_FAIL(i->host, err, LOOM_EINVAL,
				 NAME
				 ": there is rank 0 alone, and slots and arrival words up to %u",
				 i->opts->slots - 1);
	int code = LOOM_EFULL;
	pthread_mutex_lock(&i->lock);
	for (uint32_t n = 0; n < i->opts->posts && code && counter(i, p->tag); n++)
		if (!i->waiting[n].id) {
			i->waiting[n] = (struct waiting){.post = *p,
							 .id = ++i->ids,
							 .at = p->threshold +
							       POSTED(counter(i, p->tag)->count)};
			*id = i->ids;
			code = 0;
		}
	if (!code)
		run_due(i);
	pthread_mutex_unlock(&i->lock);
	return code ? LOOM_FAIL(i->host, err, code, NAME ": all %u places for posts are taken",
				i->opts->posts)
		    : 0;
}

static int cancel(void *self, uint64_t id, struct loom_error *err)
{
	struct instance *i = self;
	int code = LOOM_ENOENT;
	pthread_mutex_lock(&i->lock);
	for (uint32_t n = 0; n < i->opts->posts && id; n++)
		if (i->waiting[n].id == id) {
			CANCEL(i->waiting[n]);
			code = 0;
		}
	pthread_mutex_unlock(&i->lock);
	return code
		   ? LOOM_FAIL(i->host, err, code, NAME ": operation %llu has run or was cancelled",
			       (unsigned long long)id)
		   : 0;
}

static int room(void *self, uint32_t *posts)
{
	struct instance *i = self;
	*posts = 0;
	pthread_mutex_lock(&i->lock);
	for (uint32_t n = 0; n < i->opts->posts; n++)
		*posts += !i->waiting[n].id;
	pthread_mutex_unlock(&i->lock);
	return 0;
}

static int count(void *self, uint64_t tag, uint64_t n, struct loom_error *err)
{
	struct instance *i = self;
	pthread_mutex_lock(&i->lock);
	struct counter *c = counter(i, tag);
	if (c)
		c->count += n;
	run_due(i);
	pthread_mutex_unlock(&i->lock);
	return c ? 0 : LOOM_FAIL(i->host, err, LOOM_EFULL, NAME ": too many tags");
}

static int flush(void *self, uint64_t timeout_ns, struct loom_error *err)
{
	struct instance *i = self;
	uint64_t failed = 0;
	(void)timeout_ns; /* copies end by themselves */
	pthread_mutex_lock(&i->lock);
	drain(i);
	failed = i->block ? i->block->failed : 0;
	pthread_mutex_unlock(&i->lock);
	return failed ? LOOM_FAIL(i->host, err, -(int)failed,
				  NAME ": an operation names memory that there is not")
		      : 0;
}

static const struct loom_trigger_ops ops = {
    .size = sizeof(ops),
    .create = create,
    .destroy = destroy,
    .need = need,
    .init = init,
    .start = start,
    .stop = stop,
    .post = post,
    .cancel = cancel,
    .flush = flush,
    .room = room,
    .count = count,
};
static const struct loom_trigger_dev cpu = {
    .size = sizeof(cpu),
    .fire = b_fire,
    .fire_with = b_fire_with,
    .completed = b_completed,
    .arrived = b_arrived,
    .boundary = b_boundary,
    .deliver = b_deliver,
    .arrived_at = b_arrived_at,
};
static const struct loom_device_code dev = {
    .size = sizeof(dev),
    .cpu = &cpu,
};

LOOM_PLUGIN_DEFINE(TRIGGER, NAME, "0.1.0", "Apache-2.0",
		   "operations within this process, by memory copies", .opts = rows,
		   .opts_size = sizeof(struct opts), .ops = &ops, .dev = &dev)

#endif
