/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of trigger_ofi: the provider's own counters and deferred work (fi_trigger(3)). The provider compares
 * thresholds and runs operations. This engine only adds to the provider's counters. The other plug-ins are tested and
 * measured against trigger_ofi.
 *
 * When a counter jumps over several thresholds, the sockets provider runs pending work in the order of posting, unlike
 * fi_trigger(3). So the engine raises a counter in steps that stop at each threshold. LOOM_NET_COUNT has no operation
 * for the provider, and uses the NIC's list. Work that re-arms is deferred again each time it completes. */
#include <errno.h>

#include "../trigger_common/nic/nic.h"
#include "trigger_ofi.dev.h"

#define COUNTER_MOST INT32_MAX /* the largest value of the provider's counters */
#define NUDGE_EVERY 1024u /* polls without success between two calls of nudge() */

/* States of work. AGAIN: to be deferred. RUNS: the threshold is reached. NOTIFIES: the run has ended, its notification
 * is to be sent. LOST: still in flight from an earlier sample. */
enum { WORK_FREE = 0, WORK_WAITS, WORK_AGAIN, WORK_RUNS, WORK_NOTIFIES, WORK_LOST };

struct ofi_work {
	struct fabric_work deferred; /* first member: events carry its address */
	struct loom_trigger_post what;
	struct fabric_counter *done; /* the provider's counter of completions of this work */
	uint64_t threshold;         /* threshold of the present run */
	uint64_t completed, failed; /* values of `done` that were read last */
	uint32_t counter;                /* index in nic->list.counter */
	uint32_t state;
	uint32_t generation, next; /* next: index of the next work of the same list */
	int status;                /* 0, or the error of the present run */
};

struct ofi_state {
	struct ofi_work *work;              /* [list.posts] */
	struct fabric_counter **fired;  /* [list.mask + 1]: the provider's counter of a tag; NULL: no work was posted */
	/* [list.mask + 1]: first pending work of a counter, in the order of posting. */
	uint32_t *waiting;
	uint32_t free, runs, again, notifies; /* first work of each list, or LIST_NONE */
	/* Number of works in `runs`; number of works in `runs` that are receives; number of successive polls that found
	 * nothing. */
	uint32_t running, receiving, idle;
};

static struct ofi_state *state_of(const struct nic *nic)
{
	return nic->own;
}

/* ---- deferring work --------------------------------------------------------------------------------- */

static void append(struct ofi_state *o, uint32_t *head, uint32_t i, uint32_t state)
{
	while (*head != LIST_NONE)
		head = &o->work[*head].next;
	*head = i;
	o->work[i].next = LIST_NONE;
	o->work[i].state = state;
}

static void push(struct ofi_state *o, uint32_t *head, uint32_t i, uint32_t state)
{
	o->work[i].next = *head;
	o->work[i].state = state;
	*head = i;
}

static void give_back(struct nic *nic, uint32_t i)
{
	struct ofi_state *o = state_of(nic);
	o->work[i].generation++;
	push(o, &o->free, i, WORK_FREE);
	nic->list.room++;
}

static void mark_running(struct ofi_state *o, uint32_t i)
{
	push(o, &o->runs, i, WORK_RUNS);
	o->running++;
	o->receiving += o->work[i].what.op == LOOM_NET_RECV;
}

/* Passes work to the provider. Returns 0, or LOOM_EAGAIN if the work is due and the provider has no room. */
static int defer(struct nic *nic, uint32_t i)
{
	struct ofi_state *o = state_of(nic);
	struct ofi_work *w = &o->work[i];
	const struct loom_trigger_post *p = &w->what;
	struct fabric_io io = {.op = p->op,
			       .target = p->target,
			       .local = p->local,
			       .remote = p->remote,
			       .bytes = p->bytes,
			       .match = p->match,
			       .type = p->type,
			       .notify = p->op == LOOM_NET_PUT ? p->notify : 0};
	int status = 0;
	int rc = fabric_defer(nic->fabric, &io, w->threshold, o->fired[w->counter], w->done, &w->deferred, &status);
	if (rc == LOOM_EAGAIN)
		return rc;
	if (rc) {
		nic_fail(nic, LOOM_EIO, "provider %s rejects deferred work: %s", nic->fabric->name,
			 fabric_strerror(status));
		nic_complete(nic, p->slot, 0, status);
		give_back(nic, i);
	} else if (w->threshold <= nic->list.counter[w->counter].value) {
		mark_running(o, i);
	} else {
		append(o, &o->waiting[w->counter], i, WORK_WAITS);
	}
	return 0;
}

static void run_again(struct nic *nic, uint32_t i)
{
	struct ofi_state *o = state_of(nic);
	if (o->again != LIST_NONE || defer(nic, i))
		append(o, &o->again, i, WORK_AGAIN);
}

/* Raises the provider's counter by n, in steps that stop at each threshold of pending work. */
static void raise_counter(struct nic *nic, uint32_t counter, uint64_t n)
{
	struct ofi_state *o = state_of(nic);
	uint64_t value = nic->list.counter[counter].value;
	if (n > COUNTER_MOST - value || value > COUNTER_MOST) {
		nic_fail(nic, LOOM_EFULL, "tag %#llx: provider %s counts only to 2^31 - 1",
			 (unsigned long long)nic->list.counter[counter].tag, nic->fabric->name);
		return;
	}
	while (n) {
		uint64_t step = n;
		for (uint32_t i = o->waiting[counter]; i != LIST_NONE; i = o->work[i].next)
			if (o->work[i].threshold - value < step)
				step = o->work[i].threshold - value;
		value += step;
		n -= step;
		for (uint32_t *at = &o->waiting[counter]; *at != LIST_NONE;) {
			uint32_t i = *at;
			if (o->work[i].threshold > value) {
				at = &o->work[i].next;
				continue;
			}
			*at = o->work[i].next;
			mark_running(o, i);
		}
		fabric_counter_add(o->fired[counter], step);
	}
}

static void ofi_count(struct nic *nic, uint64_t tag, uint64_t n)
{
	uint32_t counter = list_find(&nic->list, tag);
	if (counter != LIST_NONE && state_of(nic)->fired[counter])
		raise_counter(nic, counter, n);
}

/* ---- runs that end ----------------------------------------------------------------------------------- */

/* Called when a run has ended and its notification was sent. */
static void finish_run(struct nic *nic, uint32_t i)
{
	struct ofi_work *w = &state_of(nic)->work[i];
	if (w->what.rearm && w->threshold + w->what.rearm <= COUNTER_MOST) {
		w->threshold += w->what.rearm;
		run_again(nic, i);
	} else {
		give_back(nic, i);
	}
}

/* Ends a run. Returns 0, or LOOM_EAGAIN if there is no free request for the run's notification. */
static int end_run(struct nic *nic, uint32_t i)
{
	struct ofi_work *w = &state_of(nic)->work[i];
	if (w->what.op == LOOM_NET_ADD && w->what.notify && !w->status) {
		if (nic_notify(nic, &w->what))
			return LOOM_EAGAIN;
	} else {
		if (w->status)
			nic_fail(nic, LOOM_EIO, "an operation with rank %u failed: %s", w->what.target,
				 fabric_strerror(w->status));
		nic_complete(nic, w->what.slot, w->what.chain, w->status);
	}
	finish_run(nic, i);
	return 0;
}

static uint32_t poll_ends(struct nic *nic)
{
	struct ofi_state *o = state_of(nic);
	uint32_t work = 0, i = o->runs;
	o->runs = LIST_NONE; /* finish_run() may add runs to the front of this list */
	while (i != LIST_NONE) {
		struct ofi_work *w = &o->work[i];
		uint32_t next = w->next;
		uint64_t failed, completed = fabric_counter_read(w->done, &failed);
		if (completed == w->completed && failed == w->failed) {
			push(o, &o->runs, i, WORK_RUNS);
		} else {
			if (failed != w->failed && !w->status)
				w->status = EIO; /* if an event with the cause comes, it replaces this status */
			w->completed = completed;
			w->failed = failed;
			o->running--;
			o->receiving -= w->what.op == LOOM_NET_RECV;
			if (o->notifies != LIST_NONE || end_run(nic, i))
				append(o, &o->notifies, i, WORK_NOTIFIES);
			work++;
		}
		i = next;
	}
	return work;
}

/* Raises the counters of due work by 0, because the provider retries such work only when its counter is raised. */
static void nudge(struct nic *nic)
{
	struct ofi_state *o = state_of(nic);
	for (uint32_t i = o->runs; i != LIST_NONE; i = o->work[i].next)
		fabric_counter_add(o->fired[o->work[i].counter], 0);
}

static uint32_t ofi_poll(struct nic *nic)
{
	struct ofi_state *o = state_of(nic);
	uint32_t work = nic_poll_fifo(nic) + poll_ends(nic);
	while (o->notifies != LIST_NONE) {
		uint32_t i = o->notifies;
		o->notifies = o->work[i].next;
		if (end_run(nic, i)) {
			push(o, &o->notifies, i, WORK_NOTIFIES);
			break;
		}
	}
	while (o->again != LIST_NONE) {
		uint32_t i = o->again;
		o->again = o->work[i].next;
		if (defer(nic, i)) {
			push(o, &o->again, i, WORK_AGAIN);
			break;
		}
	}
	o->idle = work ? 0 : o->idle + 1;
	if (o->running > o->receiving && o->idle % NUDGE_EVERY == NUDGE_EVERY - 1)
		nudge(nic);
	return work;
}

/* Handles the failure of an operation. The counter `done` also reports that the run has ended. */
static int ofi_event(struct nic *nic, const void *context, int status)
{
	struct ofi_state *o = state_of(nic);
	if (!o || (const char *)context < (const char *)o->work ||
	    (const char *)context >= (const char *)(o->work + nic->list.posts))
		return 0;
	uint32_t i = (uint32_t)((size_t)((const char *)context - (const char *)o->work) / sizeof(*o->work));
	if (o->work[i].state == WORK_LOST)
		give_back(nic, i); /* a cancelled receive of an earlier sample */
	else
		o->work[i].status = status;
	return 1;
}

static int ofi_busy(struct nic *nic)
{
	const struct ofi_state *o = state_of(nic);
	return o->running != o->receiving || o->again != LIST_NONE || o->notifies != LIST_NONE;
}

/* ---- posts ------------------------------------------------------------------------------------------- */

static int new_counter(struct nic *nic, const struct loom_trigger_post *p, uint32_t counter, struct loom_error *err)
{
	struct ofi_state *o = state_of(nic);
	uint64_t value = nic->list.counter[counter].value;
	if (p->threshold > COUNTER_MOST || value > COUNTER_MOST)
		return LOOM_FAIL(nic->host, err, LOOM_ENOTSUP,
				 "trigger_ofi: threshold %llu: provider %s counts only to 2^31 - 1",
				 (unsigned long long)(p->threshold > value ? p->threshold : value),
				 nic->fabric->name);
	if (o->fired[counter])
		return 0;
	o->fired[counter] = fabric_counter_open(nic->fabric);
	if (!o->fired[counter])
		return LOOM_FAIL(nic->host, err, LOOM_EFULL, "trigger_ofi: provider %s has no more counters",
				 nic->fabric->name);
	if (value)
		fabric_counter_add(o->fired[counter], value);
	return 0;
}

static int ofi_post(struct nic *nic, const struct loom_trigger_post *p, uint64_t *id, int *taken,
		    struct loom_error *err)
{
	struct ofi_state *o = state_of(nic);
	if (p->op == LOOM_NET_COUNT && nic->list.room)
		return 0;
	uint32_t counter = nic->list.room ? list_find(&nic->list, p->tag) : LIST_NONE;
	if (counter == LIST_NONE)
		return nic_full(nic, err);
	uint32_t i = o->free;
	struct ofi_work *w = &o->work[i];
	int rc = new_counter(nic, p, counter, err);
	if (!rc && !w->done && !(w->done = fabric_counter_open(nic->fabric)))
		rc = LOOM_FAIL(nic->host, err, LOOM_EFULL, "trigger_ofi: provider %s has no more counters",
			       nic->fabric->name);
	if (rc)
		return rc;
	o->free = w->next;
	nic->list.room--;
	w->what = *p;
	w->threshold = p->threshold;
	w->counter = counter;
	w->status = 0;
	*id = 1ull << 63 | (uint64_t)(w->generation & INT32_MAX) << 32 | i;
	*taken = 1;
	run_again(nic, i);
	return 0;
}

/* ---- samples ----------------------------------------------------------------------------------------- */

static int ofi_engine_start(struct nic *nic, struct loom_error *err)
{
	if (nic->own)
		return 0;
	const struct loom_host *host = nic->host;
	uint32_t posts = nic->list.posts;
	uint64_t counters = (uint64_t)nic->list.mask + 1;
	struct ofi_state *o = host->alloc(host, sizeof(*o) + posts * sizeof(*o->work) +
						  counters * (sizeof(*o->fired) + sizeof(*o->waiting)));
	if (!o)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "trigger_ofi: out of memory");
	o->work = (struct ofi_work *)(o + 1);
	o->fired = (struct fabric_counter **)(o->work + posts);
	o->waiting = (uint32_t *)(o->fired + counters);
	o->free = o->runs = o->again = o->notifies = LIST_NONE;
	for (uint32_t i = posts; i > 0; i--)
		push(o, &o->free, i - 1, WORK_FREE);
	for (uint64_t c = 0; c < counters; c++)
		o->waiting[c] = LIST_NONE;
	nic->own = o;
	return 0;
}

/* Begins a sample. Pending work ends when its counter is closed. Work in flight, usually receives, cannot be reused
 * before it ends, so it becomes WORK_LOST. */
static void ofi_reset(struct nic *nic)
{
	struct ofi_state *o = state_of(nic);
	for (uint32_t c = 0; c <= nic->list.mask; c++) {
		fabric_counter_close(o->fired[c]);
		o->fired[c] = NULL;
		o->waiting[c] = LIST_NONE;
	}
	o->free = o->runs = o->again = o->notifies = LIST_NONE;
	o->running = o->receiving = 0;
	for (uint32_t i = nic->list.posts; i > 0; i--) {
		struct ofi_work *w = &o->work[i - 1];
		if (w->state == WORK_RUNS || w->state == WORK_LOST) {
			if (w->what.op == LOOM_NET_RECV && w->state == WORK_RUNS)
				nic->fabric->ops->cancel(nic->fabric, (struct fabric_context *)&w->deferred);
			w->state = WORK_LOST;
			nic->list.room--;
			continue;
		}
		w->generation += w->state != WORK_FREE;
		push(o, &o->free, i - 1, WORK_FREE);
	}
}

static void ofi_engine_close(struct nic *nic)
{
	struct ofi_state *o = state_of(nic);
	for (uint32_t c = 0; c <= nic->list.mask; c++)
		fabric_counter_close(o->fired[c]);
	for (uint32_t i = 0; i < nic->list.posts; i++)
		fabric_counter_close(o->work[i].done);
}

static const struct nic_ops ofi = {.name = "trigger_ofi",
				   .counter = "the provider counts",
				   .has_fifo = 1,
				   .needs_trigger = 1,
				   .reset = ofi_reset,
				   .post = ofi_post,
				   .no_argument =
				       "the provider's work is fixed when it is posted, so a fire carries no argument",
				   .count = ofi_count,
				   .poll = ofi_poll,
				   .drained = nic_drained_fifo,
				   .event = ofi_event,
				   .busy = ofi_busy,
				   .start = ofi_engine_start,
				   .close = ofi_engine_close};

NIC_PLUGIN(trigger_ofi, "The provider's own deferred work queue: counters and thresholds of libfabric", ofi)
