/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: runs that are due go to the provider, completions and arrivals count. */
#include "nic.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FREE = 0, OPERATION, NOTIFICATION };
#define NIC_REFUSED 22 /* EINVAL, as libfabric numbers it */

static uint64_t power_of_two(uint64_t n)
{
	uint64_t p = 1;
	while (p < n)
		p *= 2;
	return p;
}

int nic_size(struct nic *nic, const struct loom_layout *layout)
{
	struct nic_table options = NIC_TABLE(nic->opts), table = nic_table(&options, layout, &nic->said);
	if (nic->list.post && !memcmp(&table, &nic->table, sizeof(table)))
		return 0;
	list_close(nic->host, &nic->list);
	nic->table = table;
	return list_open(nic->host, &nic->list, table.tags, table.posts);
}

int nic_open(struct nic *nic, const struct loom_host *host, const struct nic_opts *opts,
	     const struct nic_way *way, struct loom_error *err)
{
	*nic = (struct nic){.host = host, .opts = opts, .way = way, .first_notify = LIST_NONE};
	nic->fifo = (uint32_t)power_of_two(opts->fifo);
	pthread_mutex_init(&nic->lock, NULL);
	nic->flight = host->alloc(host, opts->flights * sizeof(*nic->flight));
	if (!nic->flight || nic_size(nic, NULL)) {
		nic_close(nic);
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", way->name);
	}
	for (uint32_t i = 0; i < opts->flights; i++)
		nic->flight[i].next = i + 1 < opts->flights ? i + 1 : LIST_NONE;
	return 0;
}

void nic_close(struct nic *nic)
{
	const struct loom_host *host = nic->host;
	/* First: the sockets provider's thread may have yet to report an operation to a counter closed below. */
	fabric_stop(nic->fabric);
	if (nic->own && nic->way->close)
		nic->way->close(nic);
	fabric_close(nic->fabric);
	nic->fabric = NULL;
	list_close(host, &nic->list);
	host->free(host, nic->flight);
	host->free(host, nic->fifos);
	host->free(host, nic->cursor);
	host->free(host, nic->record);
	host->free(host, nic->own);
	nic->flight = NULL;
	nic->fifos = NULL;
	nic->cursor = NULL;
	nic->record = NULL;
	nic->own = NULL;
	pthread_mutex_destroy(&nic->lock);
}

/* A mutex alone would starve the host: the NIC's thread takes it again at once. */
void nic_lock(struct nic *nic)
{
	__atomic_fetch_add(&nic->want, 1, __ATOMIC_RELAXED); /* only a hint: the mutex orders */
	pthread_mutex_lock(&nic->lock);
	__atomic_fetch_sub(&nic->want, 1, __ATOMIC_RELAXED);
}

void nic_unlock(struct nic *nic)
{
	pthread_mutex_unlock(&nic->lock);
}

uint64_t nic_now(const struct nic *nic)
{
	return nic->clock ? nic->clock->now_ns(nic->clock) : nic->host->now_ns(nic->host);
}

static struct nic_arrival *arrival(const struct nic *nic, uint64_t index)
{
	return (struct nic_arrival *)(nic->base + nic->shape.arrival_at) + index;
}

/* The first failure is kept, for flush() and for workers that wait. */
void nic_fail(struct nic *nic, int code, const char *fmt, ...)
{
	if (nic->status)
		return;
	nic->status = code;
	va_list args;
	va_start(args, fmt);
	vsnprintf(nic->failure, sizeof(nic->failure), fmt, args);
	va_end(args);
	/* No slot ends the waits for arrivals. Relaxed: nothing else is published with it. */
	for (uint32_t i = 0; nic->base && i < nic->shape.arrivals; i++)
		__atomic_store_n(&arrival(nic, i)->count, (int64_t)code, __ATOMIC_RELAXED);
}

void nic_count(struct nic *nic, uint64_t tag, uint64_t n, uint64_t argument)
{
	if (nic->way->count && nic->way->count(nic, tag, n))
		return;
	if (list_count(&nic->list, tag, n, argument))
		nic_fail(nic, LOOM_EFULL,
			 "tag %#llx finds no counter: %u tags are in use; %s", (unsigned long long)tag, nic->list.counters,
			 nic_raise("tags", nic_more_tags(&nic->table, &nic->said)));
}

/* ---- completion ---------------------------------------------------------------------------------- */

void nic_complete(struct nic *nic, uint32_t slot, uint64_t chain, int status)
{
	if (slot) {
		struct nic_slot *s = (struct nic_slot *)(nic->base + nic->shape.slot_at) + slot;
		if (nic->opts->stamp)
			__atomic_store_n(&s->at_ns, nic_now(nic), __ATOMIC_RELAXED);
		/* Release: pairs with the acquire in nic_see; for a get, the data are before it. */
		if (s->completed >= 0)
			__atomic_store_n(&s->completed, status ? (int64_t)LOOM_EIO : s->completed + 1,
					 __ATOMIC_RELEASE);
	}
	if (chain && !status)
		nic_count(nic, chain, 1, 0);
}

static struct nic_flight *take_flight(struct nic *nic, uint32_t state)
{
	if (nic->free_flight == LIST_NONE)
		return NULL;
	struct nic_flight *f = &nic->flight[nic->free_flight];
	nic->free_flight = f->next;
	f->state = state;
	f->epoch = nic->epoch;
	f->next = LIST_NONE;
	nic->flying++;
	return f;
}

static void give_flight(struct nic *nic, struct nic_flight *f)
{
	/* Those of a sample before are counted as receives, whatever they are: see nic_policy_init(). */
	if (f->epoch != nic->epoch || f->io.op == LOOM_NET_RECV)
		nic->receiving--;
	f->state = FREE;
	f->next = nic->free_flight;
	nic->free_flight = (uint32_t)(f - nic->flight);
	nic->flying--;
}

static void land(struct nic *nic, struct nic_flight *f, int status)
{
	if (f->epoch == nic->epoch) {
		if (status)
			nic_fail(nic, LOOM_EIO, "an operation with rank %u failed: %s", f->io.target,
				 fabric_strerror(status));
		nic_complete(nic, f->slot, f->chain, status);
		if (f->post != LIST_NONE)
			list_landed(&nic->list, f->post);
	}
	give_flight(nic, f);
}

/* An operation without immediate data of its own is over: the notification follows it. */
static void notify(struct nic *nic)
{
	while (nic->first_notify != LIST_NONE) {
		struct nic_flight *f = &nic->flight[nic->first_notify];
		int status = 0;
		if (f->epoch != nic->epoch) { /* nobody waits for it any more */
			nic->first_notify = f->next;
			give_flight(nic, f);
			continue;
		}
		int rc = fabric_notify(nic->fabric, f->io.target, f->notify, &f->context, &status);
		if (rc == LOOM_EAGAIN)
			return;
		nic->first_notify = f->next;
		if (rc)
			land(nic, f, status);
	}
}

int nic_notify(struct nic *nic, const struct loom_trigger_post *what)
{
	struct nic_flight *f = take_flight(nic, NOTIFICATION);
	if (!f)
		return LOOM_EAGAIN;
	f->io = (struct fabric_io){.op = what->op, .target = what->target};
	f->chain = what->chain;
	f->slot = what->slot;
	f->notify = what->notify;
	f->post = LIST_NONE;
	f->next = nic->first_notify;
	nic->first_notify = (uint32_t)(f - nic->flight);
	return 0;
}

static void done(struct nic *nic, struct nic_flight *f, int status)
{
	if (f < nic->flight || f >= nic->flight + nic->opts->flights || f->state == FREE) {
		nic_fail(nic, LOOM_EIO, "provider %s ended an operation that was not under way: choose another one by provider",
			 fabric_name(nic->fabric));
		return;
	}
	if (f->state == OPERATION && f->notify && !status && f->epoch == nic->epoch) {
		f->state = NOTIFICATION;
		f->next = nic->first_notify;
		nic->first_notify = (uint32_t)(f - nic->flight);
		notify(nic);
		return;
	}
	land(nic, f, status);
}

static void arrive(struct nic *nic, uint64_t index)
{
	if (index == 0 || index >= nic->shape.arrivals) {
		nic_fail(nic, LOOM_EINVAL, "a notification for arrival word %llu of %u",
			 (unsigned long long)index, nic->shape.arrivals);
		return;
	}
	struct nic_arrival *a = arrival(nic, index);
	if (nic->opts->stamp)
		__atomic_store_n(&a->at_ns, nic_now(nic), __ATOMIC_RELAXED);
	/* A device that gives up raises it, too: see chain_release(). */
	int64_t count = __atomic_load_n(&a->count, __ATOMIC_RELAXED);
	/* Release: pairs with the acquire in nic_see. */
	if (count >= 0)
		__atomic_store_n(&a->count, count + 1, __ATOMIC_RELEASE);
	nic->arrivals++;
	if (nic->counts_arrivals || nic->way->count)
		nic_count(nic, LOOM_TAG_ARRIVAL(index), 1, 0);
}

/* Each counter is a line of memory more: without a post the arrival words are enough. */
void nic_count_arrivals(struct nic *nic)
{
	for (uint64_t i = 1; !nic->counts_arrivals && !nic->way->count && i < nic->shape.arrivals; i++) {
		int64_t n = __atomic_load_n(&arrival(nic, i)->count, __ATOMIC_RELAXED);
		if (n > 0)
			nic_count(nic, LOOM_TAG_ARRIVAL(i), (uint64_t)n, 0);
	}
	nic->counts_arrivals = 1;
}

/* ---- what is posted -------------------------------------------------------------------------------- */

static int reaches(const void *of, uint32_t rank, loom_ref ref, uint64_t bytes)
{
	return !fabric_check(((const struct nic *)of)->fabric, rank, ref, bytes);
}

static int adds(const void *of, const struct loom_trigger_post *what)
{
	return !fabric_can_add(((const struct nic *)of)->fabric, what->type, what->bytes);
}

int nic_check(const struct nic *nic, const struct loom_trigger_post *what, struct loom_error *err)
{
	struct nic_bounds b = {.host = nic->host,
			       .name = nic->way->name,
			       .adder = fabric_name(nic->fabric),
			       .table = nic->table,
			       .said = nic->said,
			       .of = nic,
			       .reaches = reaches,
			       .adds = adds};
	int rc = nic_check_bounds(&b, what, err);
	if (rc || (what->op != LOOM_NET_GET && what->op != LOOM_NET_ADD) ||
	    !fabric_staged(nic->fabric, what->target, what->remote))
		return rc;
	return LOOM_FAIL(nic->host, err, LOOM_ENOTSUP,
			 "%s: the network reaches a copy of the memory of rank %u's GPU, which %s would need as it is: put or send, or "
			 "say memory = host", nic->way->name, what->target, what->op == LOOM_NET_GET ? "a get" : "an addition");
}

int nic_no_place(const struct nic *nic, struct loom_error *err)
{
	const char *more = nic->list.room ? nic_raise("tags", nic_more_tags(&nic->table, &nic->said)) :
					    nic_raise("posts", nic_more_posts(&nic->table, &nic->said));
	return LOOM_FAIL(nic->host, err, LOOM_EFULL, "%s: no place for another post: %u of %u posts are free, %u tags are in use; %s",
			 nic->way->name, nic->list.room, nic->list.posts, nic->list.counters, more);
}

/* ---- runs ---------------------------------------------------------------------------------------- */

/* What the fire supplied (3.4), within the window that the post allows. */
static int apply(const struct nic *nic, const struct loom_trigger_post *what, uint64_t argument,
		 struct fabric_io *io)
{
	uint64_t offset = argument & 0xffffffffffffull;
	if (what->flags & (LOOM_NET_LOCAL_FROM_FIRE | LOOM_NET_REMOTE_FROM_FIRE) && offset > what->window)
		return LOOM_EINVAL;
	if (what->flags & LOOM_NET_TARGET_FROM_FIRE) {
		io->target = (uint32_t)(argument >> 48);
		if (io->target >= nic->host->ranks)
			return LOOM_EINVAL;
	}
	if (what->flags & LOOM_NET_LOCAL_FROM_FIRE)
		io->local += offset;
	if (what->flags & LOOM_NET_REMOTE_FROM_FIRE)
		io->remote += offset;
	/* Another target may have less memory than the one that was checked. */
	return what->flags && io->op != LOOM_NET_SEND ?
		       fabric_check(nic->fabric, io->target, io->remote, io->bytes) :
		       0;
}

int nic_run(struct nic *nic, const struct loom_trigger_post *what, uint32_t post, uint64_t argument)
{
	if (what->op == LOOM_NET_COUNT) {
		nic->runs++;
		nic_complete(nic, what->slot, what->chain, 0);
		if (post != LIST_NONE)
			list_landed(&nic->list, post);
		return 0;
	}
	struct nic_flight *f = take_flight(nic, OPERATION);
	if (!f)
		return LOOM_EAGAIN;
	int native = what->op == LOOM_NET_PUT; /* its notification travels with it */
	f->io = (struct fabric_io){.op = what->op,
				   .target = what->target,
				   .local = what->local,
				   .remote = what->remote,
				   .bytes = what->bytes,
				   .match = what->match,
				   .type = what->type,
				   .notify = native ? what->notify : 0};
	f->chain = what->chain;
	f->slot = what->slot;
	f->notify = native ? 0 : what->notify;
	f->post = post;
	/* What was posted next is mostly due next, and was not seen since. */
	uintptr_t behind = (uintptr_t)what + sizeof(*what); /* of the last there is none: as a number it may be */
	for (uint32_t i = 0; i < 192; i += 64)
		__builtin_prefetch((const void *)(behind + i));
	if (what->op == LOOM_NET_RECV)
		nic->receiving++;
	int status = NIC_REFUSED;
	int rc = what->flags ? apply(nic, what, argument, &f->io) : 0;
	if (!rc)
		rc = fabric_start(nic->fabric, &f->io, &f->context, &status);
	if (rc == LOOM_EAGAIN) {
		give_flight(nic, f);
		return rc;
	}
	nic->runs++;
	if (rc)
		land(nic, f, status);
	return 0;
}

int nic_backlog(const struct nic *nic)
{
	return nic->holding || list_waiting(&nic->list);
}

uint32_t nic_run_due(struct nic *nic)
{
	uint32_t work = 0;
	for (;;) {
		if (!nic->holding && !list_next(&nic->list, &nic->held))
			return work;
		nic->holding = 1;
		if (nic_run(nic, &nic->list.post[nic->held.post].what, nic->held.post,
			    nic->held.argument))
			return work;
		nic->holding = 0;
		if (++work == 256) /* a long chain must not keep completions waiting */
			return work;
	}
}

static uint32_t reap(struct nic *nic)
{
	struct fabric_event e[16];
	int n = fabric_poll(nic->fabric, e, 16);
	if (n < 0) {
		nic_fail(nic, LOOM_EIO, "the completion queue of provider %s failed",
			 fabric_name(nic->fabric));
		return 0;
	}
	for (int i = 0; i < n; i++) {
		int status = e[i].what == FABRIC_FAILED ? e[i].status : 0;
		if (nic->rma && (e[i].what == FABRIC_ARRIVED ? nic->asker->arrive(nic, e[i].notify) :
								nic->asker->event(nic, e[i].context, status)))
			continue;
		if (e[i].what == FABRIC_ARRIVED)
			arrive(nic, e[i].notify);
		else if (nic->way->event && nic->way->event(nic, e[i].context, status))
			continue;
		else if (e[i].context)
			done(nic, (struct nic_flight *)e[i].context, status);
		else
			nic_fail(nic, LOOM_EIO, "provider %s: %s", fabric_name(nic->fabric),
				 fabric_strerror(e[i].status));
	}
	return (uint32_t)n;
}

uint32_t nic_step(struct nic *nic)
{
	/* Triggers come after what is due: the argument of a fire then finds the queue empty. */
	uint32_t work = nic_run_due(nic);
	if (!nic_backlog(nic))
		work += nic->way->poll(nic);
	work += nic_run_due(nic);
	if (nic->first_notify != LIST_NONE)
		notify(nic);
	if (nic->rma)
		work += nic->asker->serve(nic);
	return work + reap(nic);
}

int nic_idle(struct nic *nic)
{
	return !nic_backlog(nic) && nic->flying == nic->receiving && nic->first_notify == LIST_NONE &&
	       !(nic->rma && nic->asker->busy(nic)) &&
	       !(nic->way->busy && nic->way->busy(nic));
}
