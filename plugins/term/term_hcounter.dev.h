/* SPDX-License-Identifier: Apache-2.0 */
/* Termination by a counter of idle workers per device (MGWS thesis, 6.6, as future work). Device code. Workers count in
 * their device's memory. A device is called full while all of its workers are idle. The link between devices carries one
 * store when a device becomes full, and one when it stops being full. No word has two devices as writers, so links without
 * atomic operations suffice.
 *
 * The upper half of the counter is the number of times that a worker became busy. The worker that makes the device full
 * stores the counter into the device's word in the stack's block. If there is only one device, the counter alone decides. A worker that becomes busy in a full device stores a
 * larger number there, so the value of the word only grows. done() reads the words of all devices one after the other, and
 * then all but the last word again. No task is left if all devices are full and no word has changed. For its own device a
 * worker reads the counter in place of the word, so with two devices it reads the other device's word once. done() reads
 * the words of other ranks' devices in the same way. No two words need be read at the same time.
 *
 * Proof: suppose that done() returns 1 while a worker W has a task. An operation is called seen if the first scan read its
 * effect or the effect of a later operation. No unseen busy() changed a word before the second scan. W's idle() is seen, so
 * W became busy after that, unseen, and took the task from a worker V before V's idle(). Suppose that V's idle() were seen.
 * Then the second scan would have seen W's busy(), which is earlier; or the first scan would have, if W's word is the last
 * that it reads. This holds because busy() returns only after the word says that the device is not full, also in a worker
 * that is not the first. So V, too, became busy unseen, earlier than W, with a task of a third worker, and so on without end. */
#ifndef TERM_HCOUNTER_DEV_H
#define TERM_HCOUNTER_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/term.h>
#include <gpuloom/trigger.h>
#endif

/* The block of a device. */
struct term_hcounter {
	uint64_t idle; /* number of times that a worker became busy << 32 | number of idle workers */
	uint64_t pad[7];
	uint32_t done_seen; /* on a GPU: 1: a worker of this device has found that no task is left */
	uint32_t scanning;  /* on a GPU: 1: a worker of this device is scanning */
	uint32_t pad2[14];
};

/* The stack's block is an array of these, one for each device, which this device writes. Behind the array is a struct
 * term_hcounter_remote for each device of other ranks. */
struct term_hcounter_device {
	uint64_t reported; /* the device's word: its counter when the device last became full or stopped being full */
	uint64_t workers;  /* number of workers of the device */
	uint64_t remote; /* number of devices of other ranks that share tasks */
	uint64_t pad[5];
};

struct term_hcounter_remote {
	uint64_t at; /* the device's struct term_hcounter_device: an address or, with `rma`, a loom_ref of its rank */
	uint32_t rank, rma; /* the device's rank; 1: its memory is reached by RMA */
	uint64_t workers;   /* used with `rma`: the device's number of workers; 0: not read yet */
	uint64_t pad;
};

#define TERM_HCOUNTER_BUSY ((1ull << 32) - 1) /* adds 1 to the upper half of a counter, subtracts 1 from the lower half */
/* A bit of the counter, which the device's word never has. The worker that makes the device full sets it before it stores
 * the word. The first worker that becomes busy after that clears it after it has stored a larger number there. */
#define TERM_HCOUNTER_FULL (1ull << 31)
#define TERM_HCOUNTER_WORKERS(counter) ((uint32_t)(counter) & ~(uint32_t)TERM_HCOUNTER_FULL)

LOOM_FN struct term_hcounter *term_hcounter(const struct loom_ctx *c)
{
	return (struct term_hcounter *)c->on_device[LOOM_TERM];
}

LOOM_FN struct term_hcounter_device *term_hcounter_devices(const struct loom_ctx *c)
{
	return (struct term_hcounter_device *)c->global[LOOM_TERM];
}

/* Returns the number of devices, including those of other ranks. */
LOOM_FN uint32_t term_hcounter_count(const struct loom_ctx *c)
{
#ifdef LOOM_RANKS_SHARE
	return c->devices + (uint32_t)term_hcounter_devices(c)[c->device].remote;
#else
	return c->devices;
#endif
}

LOOM_FN void term_hcounter_idle(struct loom_ctx *c)
{
	if (c->lane != 0)
		return;
	/* Release and acquire: the last worker to become idle acquires all earlier writes of the device's other workers. */
	uint64_t now = loom_fetch_add_acq_rel_dev(&term_hcounter(c)->idle, (uint64_t)1) + 1, full = now;
	/* If there is no other device, none reads the word. If another worker has become busy in the meantime, the word stays as
	 * it is. */
	if ((uint32_t)now != c->count || term_hcounter_count(c) == 1 ||
	    !loom_cas_acq_rel_dev(&term_hcounter(c)->idle, &full, now | TERM_HCOUNTER_FULL))
		return;
	/* Release: pairs with the acquire in term_hcounter_reported(). */
	loom_store_release_sys(&term_hcounter_devices(c)[c->device].reported, now);
#ifdef GPULOOM_DEV_CPU_H
	/* With this fence, if devices become full at the same time, at least one of them sees all words in its next done().
	 * Otherwise all workers could sleep after done(). Workers of GPUs never sleep, so they need no fence. */
	loom_fence_seq_cst_sys();
#endif
}

LOOM_FN void term_hcounter_busy(struct loom_ctx *c)
{
	if (c->lane != 0)
		return;
	uint64_t *idle = &term_hcounter(c)->idle, *reported = &term_hcounter_devices(c)[c->device].reported;
	uint64_t was = loom_fetch_add_acq_rel_dev(idle, TERM_HCOUNTER_BUSY);
	if (!(was & TERM_HCOUNTER_FULL))
		return;
	if (TERM_HCOUNTER_WORKERS(was) != c->count) {
		/* Another worker is about to store that the device is not full. Before that, this one must not take a task.
		 * Acquire: pairs with the release below. */
		while (loom_load_acquire_dev(idle) & TERM_HCOUNTER_FULL && !loom_stopped(c))
			loom_pause(c);
		return;
	}
	was &= ~TERM_HCOUNTER_FULL;
	/* The worker that made the device full is about to store the word. This worker must not change the word before. */
	while (loom_load_relaxed_sys(reported) != was && !loom_stopped(c))
		loom_pause(c);
	/* After this store the scheduler marks the steal as complete, with a release. So it precedes the victim's idle(). */
	loom_store_relaxed_sys(reported, was + TERM_HCOUNTER_BUSY);
	loom_fetch_add_release_dev(idle, ~TERM_HCOUNTER_FULL + 1);
}

#ifdef LOOM_RANKS_RMA
/* Reads a word of another rank by adding 0, because a get is not atomic. Returns 0 if the run has ended. */
LOOM_FN uint64_t term_hcounter_rma_add(struct loom_ctx *c, const struct term_hcounter_remote *remote, uint64_t offset)
{
	struct loom_rma add = {.op = LOOM_NET_ADD, .rank = remote->rank, .remote = remote->at + offset};
	uint64_t was = 0;
	return LOOM_CALL(trigger, rma, c, &add, &was) ? 0 : was;
}
#endif

/* Returns the word of device i; the devices of other ranks follow those of this rank. *full: set to whether the device is
 * full. Acquire: pairs with the release in term_hcounter_idle(). */
LOOM_FN uint64_t term_hcounter_reported(struct loom_ctx *c, uint32_t i, uint32_t *full)
{
	const struct term_hcounter_device *device = &term_hcounter_devices(c)[i];
#ifdef LOOM_RANKS_SHARE
	if (i >= c->devices) {
		struct term_hcounter_remote *remote =
		    (struct term_hcounter_remote *)&term_hcounter_devices(c)[c->devices] + (i - c->devices);
		device = (const struct term_hcounter_device *)(uintptr_t)remote->at;
#ifdef LOOM_RANKS_RMA
		if (remote->rma) {
			uint64_t workers = loom_load_relaxed_dev(&remote->workers), reported;
			if (!workers) {
				workers =
				    term_hcounter_rma_add(c, remote, offsetof(struct term_hcounter_device, workers));
				loom_store_relaxed_dev(&remote->workers, workers);
			}
			reported = term_hcounter_rma_add(c, remote, offsetof(struct term_hcounter_device, reported));
			*full = workers && (uint32_t)reported == workers;
			return reported;
		}
#endif
	}
#endif
	uint64_t reported = loom_load_acquire_sys(&device->reported);
#ifdef GPULOOM_DEV_CPU_H
	*full = (uint32_t)reported == loom_load_relaxed_sys(&device->workers); /* constant while workers run */
#else
	*full = (uint32_t)reported == device->workers;
#endif
	return reported;
}

/* Called by lane 0. Checks this device and the next ones, `devices` of `all` devices. Returns ~0 if one of them is not full.
 * Else returns the sum of their words, without the word of the last of all devices. Each word only grows, so the sum is the
 * same in two scans only if no word has changed. */
LOOM_FN uint64_t term_hcounter_scan(struct loom_ctx *c, uint32_t devices, uint32_t all)
{
	uint64_t sum = loom_load_acquire_dev(&term_hcounter(c)->idle) & ~TERM_HCOUNTER_FULL;
	uint32_t d = c->device, full = (uint32_t)sum == c->count;
	LOOM_NO_UNROLL
	for (uint32_t i = 1; i < devices && full; i++) {
		d = d + 1 < all ? d + 1 : 0;
		uint64_t reported = term_hcounter_reported(c, d, &full);
		sum += i + 1 < all ? reported : 0;
	}
	return full ? sum : ~0ull;
}

LOOM_FN int term_hcounter_all(struct loom_ctx *c)
{
	uint32_t all = term_hcounter_count(c);
	uint64_t first = term_hcounter_scan(c, all, all);
	return first != ~0ull && term_hcounter_scan(c, all - 1, all) == first;
}

/* On a GPU one worker at a time scans for all workers. Thousands of workers that read a line over a link would delay each
 * other by milliseconds. A CPU's workers may sleep, so each of them scans before it sleeps. */
LOOM_FN int term_hcounter_check(struct loom_ctx *c)
{
#ifdef GPULOOM_DEV_CPU_H
	return term_hcounter_all(c);
#else
	struct term_hcounter *mine = term_hcounter(c);
	uint32_t free = 0;
	/* Acquire: pairs with the release of done_seen below. */
	if (loom_load_acquire_dev(&mine->done_seen))
		return 1;
	if (loom_load_relaxed_dev(&mine->scanning) || !loom_cas_acq_rel_dev(&mine->scanning, &free, 1u))
		return 0;
	int all = term_hcounter_all(c);
	if (all)
		loom_store_release_dev(&mine->done_seen, 1u);
	loom_store_release_dev(&mine->scanning, 0u);
	return all;
#endif
}

#ifdef LOOM_DEVICE_COMPILE
#define LOOM_TERM_COUNTS /* done() does not use `stolen_out` */
#endif
LOOM_FN int term_hcounter_done(struct loom_ctx *c, uint64_t stolen_out)
{
	(void)stolen_out;
	int all = 0;
	const uint64_t *idle = &term_hcounter(c)->idle;
	/* Reads the device's own counter first, because a scan is needed only if the device is full. Acquire: pairs with the
	 * release in term_hcounter_idle(). */
	if (c->lane == 0 && TERM_HCOUNTER_WORKERS(loom_load_relaxed_dev(idle)) == c->count)
		all = term_hcounter_count(c) == 1 ? (uint32_t)loom_load_acquire_dev(idle) == c->count : term_hcounter_check(c);
	return (int)loom_from_lane0(c, (uint64_t)all);
}

#endif
