/* SPDX-License-Identifier: Apache-2.0 */
/* Termination by a counter of idle workers per device (MGWS thesis, 6.6, as future work). Device code. Workers
 * of a device count in its memory; the link between devices carries one store when the last worker of a device
 * runs out of work, and one when the first finds some. No word is changed by two devices, so links that know
 * loads and stores only will do.
 *
 * The inner counter has in its upper half how often a worker became busy. Whoever fills it says so in the
 * device's word of the outer line, and whoever becomes busy in a full device takes that back, with another
 * number: so the word only ever grows. done() looks at all words one after the other, and once more, but for the
 * last: all full, and none changed. Its own device's word is the counter itself; so of two devices a worker
 * looks at the other's word once. Where ranks share tasks it looks at the words of their devices, too: nothing asks
 * for them to be read at the same time, or soon.
 *
 * Why it is right: suppose that it answers yes while a worker W has a task, and call seen what the first look
 * read, and what came before it. No busy() after what is seen changed a word before the second look. W's
 * idle() is seen, so W became busy after that, unseen, and took the task from a worker V before V's idle().
 * Had that idle() been seen, the second look would have seen W's busy(), which came before; or the first, if W's
 * is the word that it reads last. So V, too, became busy unseen, at an earlier time than W, having taken the task from
 * a third worker; and so on without end. */
#ifndef TERM_HCOUNTER_DEV_H
#define TERM_HCOUNTER_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/term.h>
#include <gpuloom/trigger.h>
#endif

/* The device's block. */
struct term_hcounter {
	uint64_t idle; /* how often a worker became busy << 32 | idle workers */
	uint64_t pad[7];
	uint32_t over;    /* GPU: one of its workers has seen that all is done ... */
	uint32_t looking; /* ... and looks for that */
	uint32_t pad2[14];
};

/* The stack's block: a line per device, which writes it; all read. A struct term_hcounter_far for each of other ranks
 * follows. */
struct term_hcounter_device {
	uint64_t said; /* the counter when it was last full, or when it was so no more */
	uint64_t workers;
	uint64_t far; /* devices of other ranks that share tasks */
	uint64_t pad[5];
};

struct term_hcounter_far {
	uint64_t at; /* its line: an address or, where `asks`, a reference of its rank */
	uint32_t rank, rma;
	uint64_t workers; /* `asks`: as in that line, once somebody has asked */
	uint64_t pad;
};

#define TERM_HCOUNTER_BUSY ((1ull << 32) - 1)

LOOM_FN struct term_hcounter *term_hcounter(const struct loom_ctx *c)
{
	return (struct term_hcounter *)c->on_device[LOOM_TERM];
}

LOOM_FN struct term_hcounter_device *term_hcounter_devices(const struct loom_ctx *c)
{
	return (struct term_hcounter_device *)c->global[LOOM_TERM];
}

LOOM_FN void term_hcounter_idle(struct loom_ctx *c)
{
	if (c->lane != 0)
		return;
	/* Release and acquire: the last one passes on what all did. */
	uint64_t now = loom_fetch_add_acq_rel_dev(&term_hcounter(c)->idle, (uint64_t)1) + 1;
	if ((uint32_t)now != c->count)
		return;
	/* Release: pairs with the acquire in done(). */
	loom_store_release_sys(&term_hcounter_devices(c)[c->device].said, now);
#ifdef GPULOOM_DEV_CPU_H
	/* Of devices that say so at the same time one sees all words in its next done(), after which its workers may
	 * sleep. A GPU's never do. */
	loom_fence_seq_cst_sys();
#endif
}

LOOM_FN void term_hcounter_busy(struct loom_ctx *c)
{
	if (c->lane != 0)
		return;
	uint64_t *said = &term_hcounter_devices(c)[c->device].said;
	uint64_t was = loom_fetch_add_acq_rel_dev(&term_hcounter(c)->idle, TERM_HCOUNTER_BUSY);
	if ((uint32_t)was != c->count)
		return;
	/* Whoever filled the counter is about to say so: only then can it be taken back. */
	while (loom_load_relaxed_sys(said) != was && !loom_stopped(c))
		loom_pause(c);
	/* Before the victim may call idle(): by the release of the scheduler's completion mark. */
	loom_store_relaxed_sys(said, was + TERM_HCOUNTER_BUSY);
}

/* All devices, those of other ranks too. */
LOOM_FN uint32_t term_hcounter_count(const struct loom_ctx *c)
{
#ifdef LOOM_RANKS_SHARE
	return c->devices + (uint32_t)term_hcounter_devices(c)[c->device].far;
#else
	return c->devices;
#endif
}

#ifdef LOOM_RANKS_RMA
/* A word of another rank, by an addition of nothing: what is copied may come in halves. 0: the run has ended. */
LOOM_FN uint64_t term_hcounter_ask_word(struct loom_ctx *c, const struct term_hcounter_far *far, uint64_t offset)
{
	struct loom_rma ask = {.op = LOOM_NET_ADD, .rank = far->rank, .remote = far->at + offset};
	uint64_t was = 0;
	return LOOM_CALL(trigger, rma, c, &ask, &was) ? 0 : was;
}
#endif

/* What the i-th of them said, those of this rank first; *full: that it is full. Acquire: pairs with the release of who
 * said so. */
LOOM_FN uint64_t term_hcounter_said(struct loom_ctx *c, uint32_t i, uint32_t *full)
{
	const struct term_hcounter_device *device = &term_hcounter_devices(c)[i];
#ifdef LOOM_RANKS_SHARE
	if (i >= c->devices) {
		struct term_hcounter_far *far = (struct term_hcounter_far *)&term_hcounter_devices(c)[c->devices] + (i - c->devices);
		device = (const struct term_hcounter_device *)(uintptr_t)far->at;
#ifdef LOOM_RANKS_RMA
		if (far->rma) {
			uint64_t workers = loom_load_relaxed_dev(&far->workers), said;
			if (!workers) {
				workers = term_hcounter_ask_word(c, far, offsetof(struct term_hcounter_device, workers));
				loom_store_relaxed_dev(&far->workers, workers);
			}
			said = term_hcounter_ask_word(c, far, offsetof(struct term_hcounter_device, said));
			*full = workers && (uint32_t)said == workers;
			return said;
		}
#endif
	}
#endif
	uint64_t said = loom_load_acquire_sys(&device->said);
#ifdef GPULOOM_DEV_CPU_H
	*full = (uint32_t)said == loom_load_relaxed_sys(&device->workers); /* to which others add nothing */
#else
	*full = (uint32_t)said == device->workers;
#endif
	return said;
}

/* Lane 0: the sum of the words of this device and of others behind it, `devices` of `all`. Each only grows. ~0: not all of
 * them are full. */
LOOM_FN uint64_t term_hcounter_look(struct loom_ctx *c, uint32_t devices, uint32_t all)
{
	uint64_t sum = loom_load_acquire_dev(&term_hcounter(c)->idle);
	uint32_t d = c->device, full = (uint32_t)sum == c->count;
	LOOM_NO_UNROLL
	for (uint32_t i = 1; i < devices && full; i++) {
		d = d + 1 < all ? d + 1 : 0;
		uint64_t said = term_hcounter_said(c, d, &full);
		sum += i + 1 < all ? said : 0;
	}
	return full ? sum : ~0ull;
}

LOOM_FN int term_hcounter_all(struct loom_ctx *c)
{
	uint32_t all = term_hcounter_count(c);
	uint64_t first = term_hcounter_look(c, all, all);
	return first != ~0ull && term_hcounter_look(c, all - 1, all) == first;
}

/* Thousands of workers that read a line over a link wait for each other for milliseconds: one of a GPU's
 * looks for all. A CPU's may sleep, and each has to look for itself before it does. */
LOOM_FN int term_hcounter_ask(struct loom_ctx *c)
{
#ifdef GPULOOM_DEV_CPU_H
	return term_hcounter_all(c);
#else
	struct term_hcounter *mine = term_hcounter(c);
	uint32_t free = 0;
	/* Acquire: pairs with the release below; who leaves has seen all work. */
	if (loom_load_acquire_dev(&mine->over))
		return 1;
	if (loom_load_relaxed_dev(&mine->looking) || !loom_cas_acq_rel_dev(&mine->looking, &free, 1u))
		return 0;
	int all = term_hcounter_all(c);
	if (all)
		loom_store_release_dev(&mine->over, 1u);
	loom_store_release_dev(&mine->looking, 0u);
	return all;
#endif
}

#ifdef LOOM_DEVICE_COMPILE
#define LOOM_TERM_COUNTS /* done() has no use for `stolen_out` */
#endif
LOOM_FN int term_hcounter_done(struct loom_ctx *c, uint64_t stolen_out)
{
	(void)stolen_out;
	int all = 0;
	/* The device's own counter first: while it is not full there is no need to ask the others. */
	if (c->lane == 0 && (uint32_t)loom_load_relaxed_dev(&term_hcounter(c)->idle) == c->count)
		all = term_hcounter_ask(c);
	return (int)loom_from_lane0(c, (uint64_t)all);
}

#endif
