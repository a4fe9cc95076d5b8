/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_ofi: the provider's own counters and deferred work (fi_trigger(3)): it compares thresholds and runs
 * operations, and this engine only adds to its counters. Oracle and baseline of the other plug-ins. Host half.
 *
 * The sockets provider departs from fi_trigger(3) where a counter jumps: it runs what waits as it was posted.
 * So a counter is raised in steps that stop at each threshold. COUNT, which has no operation, waits in the
 * list of nic.c. Work that arms itself again is given to the provider anew each time it is complete. */
#include <errno.h>

#include "../shared/nic/nic.h"
#include "trigger_ofi.dev.h"

#define OFI_MOST INT32_MAX /* what the provider counts to */
#define WAKE 1024u

enum { WORK_FREE = 0, WORK_WAITS, WORK_AGAIN, WORK_RUNS, WORK_NOTIFIES, WORK_LOST };

struct work {
	struct fabric_work given; /* first: events name its address */
	struct loom_trigger_post what;
	struct fabric_counter *done;
	uint64_t threshold;         /* of this run */
	uint64_t completed, failed; /* runs before */
	uint32_t counter;                /* in nic->list.counter */
	uint32_t state;
	uint32_t generation, next; /* next: in the list of its state */
	int status;                /* of the run under way */
};

struct ofi {
	struct work *work;              /* [list.posts] */
	struct fabric_counter **fired;  /* [list.mask + 1], made when something waits for them */
	uint32_t *waits;                /* [list.mask + 1]: works of a counter, as they were posted */
	uint32_t free, runs, again, notifies; /* lists of works */
	uint32_t running, receiving, idle;
};

static struct ofi *ofi_of(const struct nic *nic)
{
	return nic->own;
}

/* ---- to the provider -------------------------------------------------------------------------------- */

static void append(struct ofi *o, uint32_t *head, uint32_t i, uint32_t state)
{
	while (*head != LIST_NONE)
		head = &o->work[*head].next;
	*head = i;
	o->work[i].next = LIST_NONE;
	o->work[i].state = state;
}

static void push(struct ofi *o, uint32_t *head, uint32_t i, uint32_t state)
{
	o->work[i].next = *head;
	o->work[i].state = state;
	*head = i;
}

static void give_back(struct nic *nic, uint32_t i)
{
	struct ofi *o = ofi_of(nic);
	o->work[i].generation++;
	push(o, &o->free, i, WORK_FREE);
	nic->list.room++;
}

static void starts(struct ofi *o, uint32_t i)
{
	push(o, &o->runs, i, WORK_RUNS);
	o->running++;
	o->receiving += o->work[i].what.op == LOOM_NET_RECV;
}

/* LOOM_EAGAIN: its counter has passed the threshold, and the provider has no room. */
static int defer(struct nic *nic, uint32_t i)
{
	struct ofi *o = ofi_of(nic);
	struct work *w = &o->work[i];
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
	int rc = fabric_defer(nic->fabric, &io, w->threshold, o->fired[w->counter], w->done, &w->given, &status);
	if (rc == LOOM_EAGAIN)
		return rc;
	if (rc) {
		nic_fail(nic, LOOM_EIO, "provider %s refuses deferred work: %s", fabric_name(nic->fabric),
			 fabric_strerror(status));
		nic_complete(nic, p->slot, 0, status);
		give_back(nic, i);
	} else if (w->threshold <= nic->list.counter[w->counter].value) {
		starts(o, i);
	} else {
		append(o, &o->waits[w->counter], i, WORK_WAITS);
	}
	return 0;
}

static void run_again(struct nic *nic, uint32_t i)
{
	struct ofi *o = ofi_of(nic);
	if (o->again != LIST_NONE || defer(nic, i))
		append(o, &o->again, i, WORK_AGAIN);
}

/* Raises the provider's counter by n, one threshold after the other. */
static void raise_counter(struct nic *nic, uint32_t counter, uint64_t n)
{
	struct ofi *o = ofi_of(nic);
	uint64_t value = nic->list.counter[counter].value;
	if (n > OFI_MOST - value || value > OFI_MOST) {
		nic_fail(nic, LOOM_EFULL, "tag %#llx: provider %s counts to 2^31 - 1",
			 (unsigned long long)nic->list.counter[counter].tag, fabric_name(nic->fabric));
		return;
	}
	while (n) {
		uint64_t step = n;
		for (uint32_t i = o->waits[counter]; i != LIST_NONE; i = o->work[i].next)
			if (o->work[i].threshold - value < step)
				step = o->work[i].threshold - value;
		value += step;
		n -= step;
		for (uint32_t *at = &o->waits[counter]; *at != LIST_NONE;) {
			uint32_t i = *at;
			if (o->work[i].threshold > value) {
				at = &o->work[i].next;
				continue;
			}
			*at = o->work[i].next;
			starts(o, i);
		}
		fabric_counter_add(o->fired[counter], step);
	}
}

static int ofi_count(struct nic *nic, uint64_t tag, uint64_t n)
{
	uint32_t counter = list_counter(&nic->list, tag);
	if (counter != LIST_NONE && ofi_of(nic)->fired[counter])
		raise_counter(nic, counter, n);
	return 0; /* the list counts too */
}

/* ---- back from it ------------------------------------------------------------------------------------ */

/* A run is over, and its target knows. */
static void over(struct nic *nic, uint32_t i)
{
	struct work *w = &ofi_of(nic)->work[i];
	if (w->what.rearm && w->threshold + w->what.rearm <= OFI_MOST) {
		w->threshold += w->what.rearm;
		run_again(nic, i);
	} else {
		give_back(nic, i);
	}
}

/* LOOM_EAGAIN: no place to notify from. */
static int end(struct nic *nic, uint32_t i)
{
	struct work *w = &ofi_of(nic)->work[i];
	if (w->what.op == LOOM_NET_ADD && w->what.notify && !w->status) {
		if (nic_notify(nic, &w->what))
			return LOOM_EAGAIN;
	} else {
		if (w->status)
			nic_fail(nic, LOOM_EIO, "an operation with rank %u failed: %s", w->what.target,
				 fabric_strerror(w->status));
		nic_complete(nic, w->what.slot, w->what.chain, w->status);
	}
	over(nic, i);
	return 0;
}

static uint32_t look_for_ends(struct nic *nic)
{
	struct ofi *o = ofi_of(nic);
	uint32_t work = 0, i = o->runs;
	o->runs = LIST_NONE; /* what ends may start others: they get in front */
	while (i != LIST_NONE) {
		struct work *w = &o->work[i];
		uint32_t next = w->next;
		uint64_t failed, completed = fabric_counter_read(w->done, &failed);
		if (completed == w->completed && failed == w->failed) {
			push(o, &o->runs, i, WORK_RUNS);
		} else {
			if (failed != w->failed && !w->status)
				w->status = EIO; /* the event that says more is on its way */
			w->completed = completed;
			w->failed = failed;
			o->running--;
			o->receiving -= w->what.op == LOOM_NET_RECV;
			if (o->notifies != LIST_NONE || end(nic, i))
				append(o, &o->notifies, i, WORK_NOTIFIES);
			work++;
		}
		i = next;
	}
	return work;
}

/* The provider looks again at what is due when its counter is raised, be it by nothing. */
static void nudge(struct nic *nic)
{
	struct ofi *o = ofi_of(nic);
	for (uint32_t i = o->runs; i != LIST_NONE; i = o->work[i].next)
		fabric_counter_add(o->fired[o->work[i].counter], 0);
}

static uint32_t ofi_poll(struct nic *nic)
{
	struct ofi *o = ofi_of(nic);
	uint32_t work = nic_poll_fifo(nic) + look_for_ends(nic);
	while (o->notifies != LIST_NONE) {
		uint32_t i = o->notifies;
		o->notifies = o->work[i].next;
		if (end(nic, i)) {
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
	if (o->running > o->receiving && o->idle % WAKE == WAKE - 1)
		nudge(nic);
	return work;
}

/* A failure: the completion counter says too that the run is over. */
static int ofi_event(struct nic *nic, const void *context, int status)
{
	struct ofi *o = ofi_of(nic);
	if (!o || (const char *)context < (const char *)o->work ||
	    (const char *)context >= (const char *)(o->work + nic->list.posts))
		return 0;
	uint32_t i = (uint32_t)((size_t)((const char *)context - (const char *)o->work) / sizeof(*o->work));
	if (o->work[i].state == WORK_LOST)
		give_back(nic, i); /* a receive of a sample before, cancelled */
	else
		o->work[i].status = status;
	return 1;
}

static int ofi_busy(struct nic *nic)
{
	const struct ofi *o = ofi_of(nic);
	return o->running != o->receiving || o->again != LIST_NONE || o->notifies != LIST_NONE;
}

/* ---- posts ------------------------------------------------------------------------------------------- */

static int new_counter(struct nic *nic, const struct loom_trigger_post *p, uint32_t counter,
		       struct loom_error *err)
{
	struct ofi *o = ofi_of(nic);
	uint64_t value = nic->list.counter[counter].value;
	if (p->threshold > OFI_MOST || value > OFI_MOST)
		return LOOM_FAIL(nic->host, err, LOOM_ENOTSUP,
				 "trigger_ofi: threshold %llu: provider %s counts to 2^31 - 1",
				 (unsigned long long)(p->threshold > value ? p->threshold : value),
				 fabric_name(nic->fabric));
	if (o->fired[counter])
		return 0;
	o->fired[counter] = fabric_counter_open(nic->fabric);
	if (!o->fired[counter])
		return LOOM_FAIL(nic->host, err, LOOM_EFULL, "trigger_ofi: provider %s has no more counters",
				 fabric_name(nic->fabric));
	if (value)
		fabric_counter_add(o->fired[counter], value);
	return 0;
}

static int ofi_post(struct nic *nic, const struct loom_trigger_post *p, uint64_t *id, int *taken,
		    struct loom_error *err)
{
	struct ofi *o = ofi_of(nic);
	if (p->flags)
		return LOOM_FAIL(nic->host, err, LOOM_ENOTSUP,
				 "trigger_ofi: the provider's work is fixed when it is posted");
	if (p->op == LOOM_NET_COUNT && nic->list.room)
		return 0;
	uint32_t counter = nic->list.room ? list_counter(&nic->list, p->tag) : LIST_NONE;
	if (counter == LIST_NONE)
		return nic_no_place(nic, err);
	uint32_t i = o->free;
	struct work *w = &o->work[i];
	int rc = new_counter(nic, p, counter, err);
	if (!rc && !w->done && !(w->done = fabric_counter_open(nic->fabric)))
		rc = LOOM_FAIL(nic->host, err, LOOM_EFULL, "trigger_ofi: provider %s has no more counters",
			       fabric_name(nic->fabric));
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

static int ofi_cancel(struct nic *nic, uint64_t id)
{
	struct ofi *o = ofi_of(nic);
	uint32_t i = (uint32_t)id;
	if (!(id >> 63))
		return list_cancel(&nic->list, id);
	if (i >= nic->list.posts || o->work[i].state == WORK_FREE ||
	    (o->work[i].generation & INT32_MAX) != (id >> 32 & INT32_MAX))
		return LOOM_ENOENT;
	if (o->work[i].state != WORK_WAITS)
		return LOOM_EBUSY;
	int rc = fabric_undefer(nic->fabric, &o->work[i].given);
	uint32_t *at = &o->waits[o->work[i].counter];
	while (!rc && *at != i)
		at = &o->work[*at].next;
	if (!rc) {
		*at = o->work[i].next;
		give_back(nic, i);
	}
	return rc;
}

/* ---- samples ----------------------------------------------------------------------------------------- */

static int ofi_start(struct nic *nic, struct loom_error *err)
{
	if (nic->own)
		return 0;
	const struct loom_host *host = nic->host;
	uint32_t posts = nic->list.posts;
	uint64_t counters = (uint64_t)nic->list.mask + 1;
	struct ofi *o = host->alloc(host, sizeof(*o) + posts * sizeof(*o->work) +
						  counters * (sizeof(*o->fired) + sizeof(*o->waits)));
	if (!o)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "trigger_ofi: out of memory");
	o->work = (struct work *)(o + 1);
	o->fired = (struct fabric_counter **)(o->work + posts);
	o->waits = (uint32_t *)(o->fired + counters);
	o->free = o->runs = o->again = o->notifies = LIST_NONE;
	for (uint32_t i = posts; i > 0; i--)
		push(o, &o->free, i - 1, WORK_FREE);
	for (uint64_t c = 0; c < counters; c++)
		o->waits[c] = LIST_NONE;
	nic->own = o;
	return 0;
}

/* Work that waits goes with its counter. What still runs, receives mostly, keeps its place until it ends. */
static void ofi_reset(struct nic *nic)
{
	struct ofi *o = ofi_of(nic);
	for (uint32_t c = 0; c <= nic->list.mask; c++) {
		fabric_counter_close(o->fired[c]);
		o->fired[c] = NULL;
		o->waits[c] = LIST_NONE;
	}
	o->free = o->runs = o->again = o->notifies = LIST_NONE;
	o->running = o->receiving = 0;
	for (uint32_t i = nic->list.posts; i > 0; i--) {
		struct work *w = &o->work[i - 1];
		if (w->state == WORK_RUNS || w->state == WORK_LOST) {
			if (w->what.op == LOOM_NET_RECV && w->state == WORK_RUNS)
				fabric_cancel(nic->fabric, (struct fabric_context *)&w->given);
			w->state = WORK_LOST;
			nic->list.room--;
			continue;
		}
		w->generation += w->state != WORK_FREE;
		push(o, &o->free, i - 1, WORK_FREE);
	}
}

static void ofi_close(struct nic *nic)
{
	struct ofi *o = ofi_of(nic);
	for (uint32_t c = 0; c <= nic->list.mask; c++)
		fabric_counter_close(o->fired[c]);
	for (uint32_t i = 0; i < nic->list.posts; i++)
		fabric_counter_close(o->work[i].done);
}

static const struct nic_way ofi = {.name = "trigger_ofi",
				   .counter = "the provider counts",
				   .has_fifo = 1,
				   .needs_trigger = 1,
				   .reset = ofi_reset,
				   .post = ofi_post,
				   .cancel = ofi_cancel,
				   .count = ofi_count,
				   .poll = ofi_poll,
				   .drained = nic_drained_fifo,
				   .event = ofi_event,
				   .busy = ofi_busy,
				   .start = ofi_start,
				   .close = ofi_close};

NIC_PLUGIN(trigger_ofi, "The provider's own deferred work queue: counters and thresholds of libfabric", ofi)
