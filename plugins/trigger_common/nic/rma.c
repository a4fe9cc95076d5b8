/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided operations of workers on the memory of other ranks (struct loom_rma). The provider executes reads. It also
 * executes atomic adds, if these are atomic with the adds of CPUs (fabric_test.c). If they are not, the NIC of the
 * target rank adds. In that case, the NIC of this rank puts a request into the target's memory with a notification. The
 * target's NIC puts a reply into this rank's memory in the same way.
 *
 * States of an operation of a worker:
 *   FREE --issued by the worker--> READY --passed to the provider--> STARTED --event--> FREE
 * With a request, the event (the put of the request is complete) and the reply may come in either order:
 *   STARTED --event--> REPLY_DUE --reply--> FREE, or STARTED --reply--> (by_request = 0) --event--> FREE
 * In state READY, serve() retries until the provider has room and a request box for the target is free.
 *
 * A box is memory for one request or reply. For each ordered pair of ranks there are SLOTS boxes of each kind. Rank A
 * puts its box OUT_REQUEST into box IN_REQUEST of rank B. B adds, fills OUT_REPLY, and puts it into IN_REPLY of A. A
 * uses these boxes again only after the reply has arrived, so nothing is overwritten before it is read.
 *
 * States of a reply of this rank: FREE --request--> READY or STARTED --event--> FREE. The other rank may send its next
 * request as soon as the reply has arrived, which may be before this rank gets the event of its put. In that case
 * `more` is set, and the event sends the next reply. */
#include <errno.h>
#include "lib/fd.h"
#include <string.h>
#include <unistd.h>

#include "nic.h"

#define SLOTS 8u
/* Bits that mark notifications of requests and replies. The other bits of the notification are the index of the box
 * among all boxes of its kind. */
#define REQUEST 0x80000000u
#define REPLY 0x40000000u

struct rma_box { /* one cache line; a reply uses only `value` */
	loom_ref at;
	uint64_t value;
	uint64_t pad[6];
};
enum box_kind { OUT_REQUEST, IN_REQUEST, OUT_REPLY, IN_REPLY, BOX_KINDS };

enum state { FREE, READY, STARTED, REPLY_DUE };
struct rma_operation { /* one for each worker */
	struct fabric_context context;
	uint32_t state;
	uint32_t taken; /* number of operations that the NIC has taken from the worker in this sample */
	uint32_t box;	/* index of the operation's OUT_REQUEST box, if by_request was set */
	int by_request; /* 1: a request was sent, and its reply has not arrived yet */
	uint64_t sample; /* value of nic.sample when the operation was taken */
};
struct rma_reply { /* one for each OUT_REPLY box */
	struct fabric_context context;
	uint32_t state;
	int more; /* 1: another request arrived while this reply was in flight; `was` is the result for this next request */
	uint64_t was; /* value of the word before the add of the next request, for the next reply */
};

struct nic_rma_state {
	uint32_t ranks, boxes; /* number of ranks; number of boxes of one kind, for all ranks */
	loom_ref own;		/* reference of this rank's RMA part of the block (shape.rma_at) */
	loom_ref *base;		/* [ranks]: `own` of each rank */
	uint32_t *box_at;	/* [ranks]: offset of the boxes in the part for RMA of each rank's block */
	char **memory;		/* [segments]: address of each segment of this rank */
	struct rma_operation *operation; /* [workers] */
	uint32_t *holder;	/* [boxes]: 1 + index of the worker whose request is in this OUT_REQUEST box; 0: free */
	struct rma_reply *reply; /* [boxes] */
	int bell;		/* the eventfd of the bell, or -1 */
	uint32_t place;		/* index of the bell in the table of bell.c */
};

static uint64_t box_at(uint32_t workers)
{
	return sizeof(struct nic_bell) + workers * sizeof(struct nic_rma);
}

/* The simulated network executes adds itself. When the size of the block is determined, it is not known whether another
 * provider can do so. */
static int needs_boxes(const struct nic *nic)
{
	return !nic_is_simulated(nic);
}

uint64_t nic_rma_bytes(const struct nic *nic, uint32_t ranks, uint32_t workers)
{
	return box_at(workers) + (needs_boxes(nic) ? (uint64_t)BOX_KINDS * ranks * SLOTS * sizeof(struct rma_box) : 0);
}

static struct nic_bell *bell_of(const struct nic *nic)
{
	return (struct nic_bell *)(nic->base + nic->shape.rma_at);
}

static struct nic_rma *issued_by(const struct nic *nic, uint32_t worker)
{
	return (struct nic_rma *)(nic->base + nic->shape.rma_at + sizeof(struct nic_bell)) + worker;
}

static uint64_t offset(const struct nic_rma_state *a, uint32_t rank, uint32_t kind, uint32_t i)
{
	return a->box_at[rank] + ((uint64_t)kind * a->boxes + i) * sizeof(struct rma_box);
}

static struct rma_box *box(const struct nic *nic, uint32_t kind, uint32_t i)
{
	return (struct rma_box *)(nic->base + nic->shape.rma_at + offset(nic->rma, nic->host->rank, kind, i));
}

/* ---- samples --------------------------------------------------------------------------------------- */

void nic_rma_close(struct nic *nic)
{
	const struct loom_host *host = nic->host;
	struct nic_rma_state *a = nic->rma;
	if (!a)
		return;
	nic_bell_remove(a->place);
	if (a->bell >= 0)
		close(a->bell);
	host->free(host, a->base);
	host->free(host, a->box_at);
	host->free(host, a->memory);
	host->free(host, a->operation);
	host->free(host, a->holder);
	host->free(host, a->reply);
	host->free(host, a);
	nic->rma = NULL;
}

int nic_rma_bell(const struct nic *nic)
{
	return nic->rma->bell;
}

void nic_rma_begin(struct nic *nic)
{
	*bell_of(nic) = (struct nic_bell){.place = nic->rma->place};
	for (uint32_t w = 0; w < nic->workers; w++)
		nic->rma->operation[w].taken = 0;
}

void nic_rma_drain_bell(struct nic *nic)
{
	eventcount_fd_drain(nic->rma->bell);
}

/* ---- operations of this rank --------------------------------------------------------------------------- */

static void finish(struct nic *nic, uint32_t w, int status)
{
	struct rma_operation *k = &nic->rma->operation[w];
	struct nic_rma *l = issued_by(nic, w);
	k->state = FREE;
	if (k->sample != nic->sample)
		return;
	if (status)
		nic_fail(nic, LOOM_EIO, "an operation with rank %u failed: %s", l->rank, fabric_strerror(status));
	l->status = status;
	/* Release: pairs with the acquire in nic_rma_await(). */
	__atomic_store_n(&l->completed, k->taken, __ATOMIC_RELEASE);
	eventcount_notify(NULL, &l->completed, &l->sleeps);
}

static int is_possible(const struct nic *nic, const struct nic_rma *l)
{
	if (l->rank >= nic->host->ranks)
		return 0;
	if (l->op == LOOM_NET_GET)
		return !nic_fabric_check(nic, nic->host->rank, l->local, l->bytes) &&
		       !nic_fabric_check(nic, l->rank, l->remote, l->bytes);
	return l->op == LOOM_NET_ADD && l->remote % 8 == 0 && !nic_fabric_check(nic, l->rank, l->remote, 8);
}

/* Puts box `mine` of kind `from` of this rank into box `remote` of kind `kind` of rank `to`, and notifies that rank. */
static int put(struct nic *nic, uint32_t from, uint32_t mine, uint32_t to, uint32_t kind, uint32_t remote,
	       uint32_t notify, struct fabric_context *context, int *status)
{
	const struct nic_rma_state *a = nic->rma;
	struct fabric_io io = {.op = LOOM_NET_PUT,
			       .target = to,
			       .local = a->own + offset(a, nic->host->rank, from, mine),
			       .remote = a->base[to] + offset(a, to, kind, remote),
			       .bytes = 2 * sizeof(uint64_t),
			       .notify = notify};
	return nic->fabric->ops->start(nic->fabric, &io, context, status);
}

/* Sends an add of worker w to the NIC of the target, as a request. Returns LOOM_EAGAIN if no box is free. */
static int send_request(struct nic *nic, uint32_t w, int *status)
{
	struct nic_rma_state *a = nic->rma;
	struct rma_operation *k = &a->operation[w];
	const struct nic_rma *l = issued_by(nic, w);
	uint32_t slot = 0, first = l->rank * SLOTS, me = nic->host->rank * SLOTS;
	while (slot < SLOTS && a->holder[first + slot])
		slot++;
	if (slot == SLOTS)
		return LOOM_EAGAIN;
	*box(nic, OUT_REQUEST, first + slot) = (struct rma_box){.at = l->remote, .value = l->value};
	int rc = put(nic, OUT_REQUEST, first + slot, l->rank, IN_REQUEST, me + slot, REQUEST | (me + slot), &k->context,
		     status);
	if (rc)
		return rc;
	k->box = first + slot;
	k->by_request = 1;
	a->holder[k->box] = w + 1;
	return 0;
}

static int start(struct nic *nic, uint32_t w)
{
	struct rma_operation *k = &nic->rma->operation[w];
	const struct nic_rma *l = issued_by(nic, w);
	int status = EINVAL, rc = LOOM_EINVAL;
	k->by_request = 0;
	if (is_possible(nic, l) && l->op == LOOM_NET_ADD && !nic->fabric->fetches) {
		rc = send_request(nic, w, &status);
	} else if (is_possible(nic, l)) {
		struct fabric_io io = {
		    .op = l->op, .target = l->rank, .local = l->local, .remote = l->remote, .bytes = l->bytes};
		if (l->op == LOOM_NET_ADD) {
			io.local =
			    nic->rma->own + sizeof(struct nic_bell) + w * sizeof(*l) + offsetof(struct nic_rma, value);
			io.bytes = 8;
			io.fetch = 1;
		}
		rc = nic->fabric->ops->start(nic->fabric, &io, &k->context, &status);
	}
	if (rc == LOOM_EAGAIN)
		return 0;
	k->state = STARTED;
	if (rc)
		finish(nic, w, status);
	return 1;
}

/* ---- requests of other ranks ---------------------------------------------------------------------------- */

static void send_reply(struct nic *nic, uint32_t i)
{
	struct rma_reply *r = &nic->rma->reply[i];
	uint32_t to = i / SLOTS, remote = nic->host->rank * SLOTS + i % SLOTS;
	int status = 0;
	box(nic, OUT_REPLY, i)->value = r->was;
	int rc = put(nic, OUT_REPLY, i, to, IN_REPLY, remote, REPLY | remote, &r->context, &status);
	r->state = rc == LOOM_EAGAIN ? READY : rc ? FREE : STARTED;
	r->more = 0;
	if (r->state == FREE)
		nic_fail(nic, LOOM_EIO, "an operation with rank %u failed: %s", to, fabric_strerror(status));
}

/* Executes request i and replies. The request is checked first, because another rank has written it. */
static void serve_request(struct nic *nic, uint32_t i)
{
	struct nic_rma_state *a = nic->rma;
	const struct rma_box *q = box(nic, IN_REQUEST, i);
	struct rma_reply *r = &a->reply[i];
	if (q->at % 8 || nic_fabric_check(nic, nic->host->rank, q->at, 8)) {
		nic_fail(nic, LOOM_EINVAL, "rank %u requests memory that does not exist", i / SLOTS);
		return;
	}
	/* Acquire and release: the same memory order as in an add by a worker of this rank. */
	r->was = __atomic_fetch_add((uint64_t *)(a->memory[LOOM_REF_SEGMENT(q->at)] + LOOM_REF_OFFSET(q->at)), q->value,
				    __ATOMIC_ACQ_REL);
	if (r->state == FREE)
		send_reply(nic, i);
	else
		r->more = 1;
}

/* ---- events ---------------------------------------------------------------------------------------------- */

static int arrive(struct nic *nic, uint64_t notify)
{
	struct nic_rma_state *a = nic->rma;
	uint32_t i = (uint32_t)notify & (REPLY - 1), w;
	if (!(notify & (REQUEST | REPLY)) || i >= a->boxes)
		return 0;
	if (notify & REQUEST) {
		serve_request(nic, i);
		return 1;
	}
	w = a->holder[i];
	if (!w--)
		return 1;
	a->holder[i] = 0;
	issued_by(nic, w)->was = box(nic, IN_REPLY, i)->value;
	if (a->operation[w].state == REPLY_DUE)
		finish(nic, w, 0);
	else /* the put's event has not come yet */
		a->operation[w].by_request = 0;
	return 1;
}

static int event(struct nic *nic, const void *context, int status)
{
	struct nic_rma_state *a = nic->rma;
	const char *what = context;
	if (what >= (const char *)a->operation && what < (const char *)&a->operation[nic->workers]) {
		uint32_t w = (uint32_t)((uint64_t)(what - (const char *)a->operation) / sizeof(*a->operation));
		struct rma_operation *k = &a->operation[w];
		if (!k->by_request || status)
			finish(nic, w, status);
		else
			k->state = REPLY_DUE;
		return 1;
	}
	if (what < (const char *)a->reply || what >= (const char *)&a->reply[a->boxes])
		return 0;
	uint32_t i = (uint32_t)((uint64_t)(what - (const char *)a->reply) / sizeof(*a->reply));
	struct rma_reply *r = &a->reply[i];
	r->state = FREE;
	if (status)
		nic_fail(nic, LOOM_EIO, "an operation with rank %u failed: %s", i / SLOTS, fabric_strerror(status));
	else if (r->more)
		send_reply(nic, i);
	return 1;
}

/* Acquire: pairs with the release in nic_rma_do(). */
static uint32_t issued(const struct nic *nic, uint32_t w)
{
	return __atomic_load_n(&issued_by(nic, w)->issued, __ATOMIC_ACQUIRE);
}

int nic_rma_pending(const struct nic *nic)
{
	for (uint32_t w = 0; w < nic->workers; w++)
		if (issued(nic, w) != nic->rma->operation[w].taken)
			return 1;
	return 0;
}

static uint32_t serve(struct nic *nic)
{
	struct nic_rma_state *a = nic->rma;
	uint32_t work = 0;
	for (uint32_t w = 0; w < nic->workers; w++) {
		struct rma_operation *k = &a->operation[w];
		if (k->state == FREE && issued(nic, w) != k->taken) {
			k->taken++;
			k->state = READY;
			k->sample = nic->sample;
		}
		if (k->state == READY)
			work += (uint32_t)start(nic, w);
	}
	for (uint32_t p = 0; !nic->fabric->fetches && p < a->boxes; p++)
		if (a->reply[p].state == READY)
			send_reply(nic, p);
	return work;
}

static int busy(const struct nic *nic)
{
	const struct nic_rma_state *a = nic->rma;
	for (uint32_t w = 0; w < nic->workers; w++)
		if (a->operation[w].state != FREE)
			return 1;
	for (uint32_t p = 0; p < a->boxes; p++)
		if (a->reply[p].state != FREE)
			return 1;
	return 0;
}

static const struct nic_rma_ops ops = {.serve = serve, .busy = busy, .event = event, .arrive = arrive};

/* ---- start ----------------------------------------------------------------------------------------- */

static loom_ref find(const struct loom_segments *s, const char *what)
{
	for (uint32_t i = 1; i < s->count; i++) {
		const char *from = s->at[i];
		if (from && what >= from && (uint64_t)(what - from) < s->bytes[i])
			return LOOM_REF(i, what - from);
	}
	return 0;
}

int nic_rma_start(struct nic *nic, const struct loom_segments *segments, struct loom_error *err)
{
	const struct loom_host *host = nic->host;
	struct {
		loom_ref own;
		uint64_t box_at;
	} mine = {find(segments, nic->base + nic->shape.rma_at), box_at(nic->workers)}, *all;
	struct nic_rma_state *a;
	/* Provider shm of libfabric 1.17 reads wrong memory, or crashes, when three or more ranks read from each other
	 * and put at the same time. Ranks of one host can use trigger peer instead, which maps the memory of the other
	 * ranks. */
	if (!strcmp(nic->fabric->name, "shm"))
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "%s: provider shm reads wrong memory where ranks steal from each other: set provider "
				 "= auto or tcp in [trigger], or choose trigger peer if all ranks are on one host",
				 nic->ops->name);
	all = host->alloc(host, host->ranks * sizeof(*all));
	a = nic->rma = host->alloc(host, sizeof(*a));
	nic->rma_ops = &ops;
	if (a) {
		a->bell = nic->fabric->fd < 0 ? -1 : eventcount_fd_open();
		a->place = nic_bell_add(nic, bell_of(nic), a->bell);
		a->ranks = host->ranks;
		a->boxes = needs_boxes(nic) ? host->ranks * SLOTS : 0;
		a->own = mine.own;
		a->base = host->alloc(host, host->ranks * sizeof(*a->base));
		a->box_at = host->alloc(host, host->ranks * sizeof(*a->box_at));
		a->memory = host->alloc(host, segments->count * sizeof(*a->memory));
		a->operation = host->alloc(host, nic->workers * sizeof(*a->operation));
		a->holder = host->alloc(host, a->boxes * sizeof(*a->holder));
		a->reply = host->alloc(host, a->boxes * sizeof(*a->reply));
	}
	if (!all || !a || !a->base || !a->box_at || !a->memory || !a->operation || !a->holder || !a->reply) {
		host->free(host, all);
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", nic->ops->name);
	}
	memcpy(a->memory, segments->at, segments->count * sizeof(*a->memory));
	int rc = host->allgather(host, &mine, all, sizeof(mine), err);
	for (uint32_t r = 0; !rc && r < host->ranks; r++) {
		uint64_t bytes = (uint64_t)BOX_KINDS * a->boxes * sizeof(struct rma_box);
		if (a->boxes && (all[r].box_at > UINT32_MAX - bytes || all[r].own % 8 || all[r].box_at % 8 ||
				  nic_fabric_check(nic, r, all[r].own, all[r].box_at + bytes)))
			rc = LOOM_FAIL(host, err, LOOM_EINVAL,
				       "%s: rank %u names a place for requests outside its memory: start all ranks "
				       "with the same conf", nic->ops->name, r);
		a->base[r] = all[r].own;
		a->box_at[r] = (uint32_t)all[r].box_at;
	}
	host->free(host, all);
	return rc;
}

