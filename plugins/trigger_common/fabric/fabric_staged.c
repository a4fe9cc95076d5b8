/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory that the provider cannot access. The NIC's thread copies it while workers run, and starts copies without
 * waiting for them.
 *
 * Direct. If the memory of the target is on another GPU of this host, which this rank's GPU reaches, a put is one copy
 * from GPU to GPU. When the copy has ended, a message notifies the target.
 *
 * Staged. Otherwise the provider uses a copy in host memory, which is registered once. Before a send or a put, the data are
 * copied out of local device memory. Before a receive or a get completes, its data are copied in. After a put into staged
 * memory, the target must copy the data in. So a notice follows the data and says where they are. The target copies them in,
 * notifies its workers, and acknowledges the notice. Then the put completes. A large put is split into parts, so that one
 * part is copied while another one is sent; the target's workers are notified when it has acknowledged all parts. The
 * operations GET and ADD on staged memory of a target are rejected, because the target would have to copy the data out
 * before them.
 *
 * Order. Operations that leave this rank are passed to the provider in the order in which they were started. Those without a
 * copy wait for the copies of earlier ones. */
#include "fabric_ofi.h"

#include <gpuloom/device.h>
#include <stdio.h>
#include <string.h>

#include "lib/host_mark.h"

#define MOST 64u  /* limit on operations in flight that need a second message, or a copy */
#define PARTS 8u  /* limit on the parts of a put that are in flight */
#define DRAIN_NS 1000000000ull

/* Bits of immediate data. Notifications of arrival words are below 2^20, so they use neither bit. */
#define NOTICE (1u << 31)
#define ACK (1u << 30)

/* The second message of a put into staged memory. It tells the target which bytes (ref, bytes) have arrived in its copy in
 * host memory, so that the target copies them in, and which notification (notify; 0: none) follows. */
struct staged_notice {
	uint64_t ref, bytes, notify, pad;
};

/* OP_QUEUED: in `out`. OP_LAST: the next event ends the operation. OP_INBOUND: a receive or get, whose data are then copied
 * in (OP_ENTERS). OP_PUT: its data are on their way, and the notice follows. OP_WHOLE: its parts are operations of their
 * own. */
enum { OP_FREE, OP_QUEUED, OP_LAST, OP_INBOUND, OP_ENTERS, OP_PUT, OP_NOTICE_DUE, OP_NOTICE, OP_WHOLE, OP_FAILED };
struct staged_op {
	struct fabric_context context; /* first member: events carry its address */
	struct fabric_context *owner;
	struct staged_op *whole; /* the put of which this is a part, or NULL */
	struct fabric_io io;
	uint32_t state;
	/* OP_NOTICE: how many of two events are missing, the end of the notice and its acknowledgement. OP_WHOLE: number
	 * of parts in flight. */
	uint32_t left;
	int32_t status; /* a positive FI_E* code, with which the operation ends */
	int delivered;  /* 1: the data are in device memory of the target, or will be when the copy has ended */
	uint64_t split; /* OP_WHOLE: bytes in the parts that were started */
};

struct staged_ack { /* acknowledges a notice that another rank has sent */
	struct fabric_context context; /* first member */
	uint32_t in_flight, due;
};

struct staged_copy {
	uint64_t number, began_ns; /* number: as in struct loom_segments; 0: it has ended */
	uint32_t segment, how;
	struct staged_op *op;  /* the operation that goes on when the copy has ended; NULL: a notice */
	uint32_t slot, notify; /* of a notice */
};

/* Copies, in the order in which they were started. */
struct staged_queue {
	struct staged_copy *copy;
	uint64_t first, end, most;
};

/* A segment of another rank to which this rank's GPU copies directly. */
struct staged_reach {
	uint64_t at;	 /* address of the memory that contains the segment; 0: not reached */
	uint64_t offset; /* of the segment in that memory */
};

struct fabric_staging {
	int waits; /* 1: each copy is waited for, because start_copy() is not supported */
	/* As in struct loom_segments. */
	void *ctx;
	int (*copy)(void *ctx, uint32_t segment, uint64_t offset, void *host, uint64_t bytes, int in,
		    struct loom_error *err);
	int (*start_copy)(void *ctx, uint32_t segment, uint64_t offset, uint64_t other, uint64_t bytes, uint32_t how,
			  uint64_t *number, struct loom_error *err);
	int (*copy_ended)(void *ctx, uint32_t segment, uint32_t how, uint64_t number);
	void (*close)(void *ctx, uint32_t device, uint64_t at);
	/* [1 + ranks][MOST]: first the notices that this rank sends, then the notices that it receives from each rank.
	 * */
	struct staged_notice *notice;
	struct fid_mr *mr;
	struct fabric_remote *there; /* [ranks]: the `notice` array of each rank */
	struct staged_reach *reach;  /* [ranks][segments] */
	struct staged_ack *ack;	     /* [ranks][MOST] */
	struct staged_queue out, in;
	uint32_t due;	     /* number of messages for which the provider had no room */
	uint32_t failed;     /* number of operations that failed without an event of the provider */
	int32_t ack_failed;  /* why an acknowledgement could not be sent, a positive FI_E* code; 0: all were sent */
	struct staged_op op[MOST];
};

static int is_staged(const struct fabric_ofi *f, uint32_t rank, loom_ref ref)
{
	return f->remote[rank * f->segments + LOOM_REF_SEGMENT(ref)].staged != 0;
}

/* ---- copies --------------------------------------------------------------------------------------------- */

static uint64_t now_ns(const struct fabric_ofi *f)
{
	return f->is.host->now_ns(f->is.host);
}

/* Starts a copy of the bytes at `ref`. to: their address at the target, for LOOM_COPY_TO. Fills *c, and returns 0. */
static int begin_copy(struct fabric_ofi *f, loom_ref ref, uint64_t to, uint64_t bytes, uint32_t how, struct staged_copy *c)
{
	struct fabric_staging *s = f->staging;
	struct loom_error err = {0};
	uint32_t segment = LOOM_REF_SEGMENT(ref);
	uint64_t offset = LOOM_REF_OFFSET(ref);
	char *host = (char *)f->local[segment].at + offset;
	*c = (struct staged_copy){.began_ns = now_ns(f), .segment = segment, .how = how};
	int rc = s->waits ? s->copy(s->ctx, segment, offset, host, bytes, how == LOOM_COPY_IN, &err) :
			    s->start_copy(s->ctx, segment, offset, to ? to : (uint64_t)(uintptr_t)host, bytes, how,
					  &c->number, &err);
	uint64_t took = now_ns(f) - c->began_ns;
	f->is.copies++;
	f->is.start_ns += took;
	f->is.copy_ns += s->waits ? took : 0;
	if (rc)
		LOOM_LOG(f->is.host, LOOM_LOG_ERROR, "a copy for the network", "%s", err.text);
	return rc;
}

/* Returns 1 if the copy has ended, 0 if it has not, or an error. */
static int has_ended(struct fabric_ofi *f, struct staged_copy *c)
{
	const struct fabric_staging *s = f->staging;
	int ended = c->number ? s->copy_ended(s->ctx, c->segment, c->how, c->number) : 1;
	if (ended > 0 && c->number)
		f->is.copy_ns += now_ns(f) - c->began_ns;
	if (ended > 0)
		c->number = 0;
	return ended;
}

static struct staged_copy *head(const struct staged_queue *q)
{
	return q->first == q->end ? NULL : &q->copy[q->first % q->most];
}

static void append(struct staged_queue *q, const struct staged_copy *c)
{
	q->copy[q->end++ % q->most] = *c;
}

/* ---- operations of this rank ---------------------------------------------------------------------------- */

static struct staged_op *take_op(struct fabric_staging *s, const struct fabric_io *io, struct fabric_context *owner)
{
	for (uint32_t i = 0; i < MOST; i++)
		if (s->op[i].state == OP_FREE) {
			s->op[i] = (struct staged_op){.io = *io, .owner = owner};
			return &s->op[i];
		}
	return NULL;
}

/* Starts the copy of an operation that leaves this rank, and appends the operation to the queue. to: as for
 * begin_copy(). */
static int queue_op(struct fabric_ofi *f, struct staged_op *op, uint64_t to)
{
	struct staged_copy c = {.number = 0};
	if (f->local[LOOM_REF_SEGMENT(op->io.local)].staged &&
	    begin_copy(f, op->io.local, to, op->io.bytes, to ? LOOM_COPY_TO : LOOM_COPY_OUT, &c)) {
		op->state = OP_FREE;
		return LOOM_EIO;
	}
	c.op = op;
	op->delivered = to != 0;
	op->state = OP_QUEUED;
	append(&f->staging->out, &c);
	return 0;
}

/* Starts parts of a put, until enough are in flight. When all parts are in device memory of the target, or one has failed,
 * the put itself is queued, so that it notifies the target and ends. */
static void split(struct fabric_ofi *f, struct staged_op *whole)
{
	struct fabric_staging *s = f->staging;
	struct staged_op *part = NULL;
	while (!whole->status && whole->split < whole->io.bytes && whole->left < PARTS &&
	       (part = take_op(s, &whole->io, NULL)) != NULL) {
		uint64_t rest = whole->io.bytes - whole->split;
		part->io.local += whole->split;
		part->io.remote += whole->split;
		part->io.bytes = rest < f->piece ? rest : f->piece;
		part->io.notify = 0;
		part->whole = whole;
		whole->split += part->io.bytes;
		if (queue_op(f, part, 0))
			whole->status = FI_EIO;
		else
			whole->left++;
	}
	if (whole->left || (!whole->status && whole->split < whole->io.bytes))
		return;
	whole->delivered = 1;
	whole->state = OP_QUEUED;
	append(&s->out, &(struct staged_copy){.op = whole});
}

int fabric_staged_start(struct fabric_ofi *f, const struct fabric_io *io, struct fabric_context *context, int *status)
{
	struct fabric_staging *s = f->staging;
	int inbound = io->op == LOOM_NET_GET || io->op == LOOM_NET_RECV,
	    here = f->local[LOOM_REF_SEGMENT(io->local)].staged;
	int there = io->op != LOOM_NET_SEND && io->op != LOOM_NET_RECV && is_staged(f, io->target, io->remote);
	*status = FI_EIO;
	if (there && io->op != LOOM_NET_PUT)
		return LOOM_EIO; /* The worker that fired chose this target. Other targets were checked at the post. */
	if (!here && (inbound || (!there && !head(&s->out))))
		return fabric_result(fabric_issue(f, io, context), status);
	struct staged_op *op = take_op(s, io, context);
	if (!op)
		return LOOM_EAGAIN;
	if (inbound) {
		ssize_t code = fabric_issue(f, io, &op->context);
		op->state = code ? OP_FREE : OP_INBOUND;
		return fabric_result(code, status);
	}
	const struct staged_reach *to = &s->reach[io->target * f->segments + LOOM_REF_SEGMENT(io->remote)];
	if (here && there && to->at)
		return queue_op(f, op, to->at + to->offset + LOOM_REF_OFFSET(io->remote));
	if (!there || io->bytes <= f->piece)
		return queue_op(f, op, 0);
	op->state = OP_WHOLE;
	split(f, op);
	if (op->state == OP_WHOLE && !op->left) { /* no operation is free for a part */
		op->state = OP_FREE;
		return LOOM_EAGAIN;
	}
	return 0;
}

struct fabric_context *fabric_staged_context(struct fabric_ofi *f, struct fabric_context *owner)
{
	for (uint32_t i = 0; i < MOST; i++)
		if (f->staging->op[i].state != OP_FREE && f->staging->op[i].owner == owner)
			return &f->staging->op[i].context;
	return owner;
}

/* Passes an operation from the queue to the provider. Returns 0 or libfabric's error. */
static ssize_t issue(struct fabric_ofi *f, struct staged_op *op)
{
	struct fabric_io io = op->io;
	int notice = io.op == LOOM_NET_PUT && !op->delivered && is_staged(f, io.target, io.remote);
	io.notify = notice ? 0 : io.notify;
	ssize_t code = op->delivered ? fabric_issue_notify(f, io.target, io.notify, &op->context) :
			       fabric_issue(f, &io, &op->context);
	if (!code)
		op->state = notice ? OP_PUT : OP_LAST;
	return code;
}

static void send_notice(struct fabric_ofi *f, struct staged_op *op)
{
	struct fabric_staging *s = f->staging;
	uint32_t i = (uint32_t)(op - s->op), rank = f->is.host->rank;
	const struct fabric_remote *to = &s->there[op->io.target];
	uint64_t at = ((1 + (uint64_t)rank) * MOST + i) * sizeof(struct staged_notice);
	s->notice[i] = (struct staged_notice){.ref = op->io.remote, .bytes = op->io.bytes, .notify = op->io.notify};
	s->due -= op->state == OP_NOTICE_DUE;
	ssize_t code =
	    fi_writedata(f->ep, &s->notice[i], sizeof(s->notice[i]), fi_mr_desc(s->mr), NOTICE | (rank * MOST + i),
			 f->peer[op->io.target], to->base + at, to->key, &op->context);
	op->state = !code ? OP_NOTICE : code == -FI_EAGAIN ? OP_NOTICE_DUE : OP_FAILED;
	op->left = 2;
	op->status = (int32_t)-code;
	s->due += op->state == OP_NOTICE_DUE;
	s->failed += op->state == OP_FAILED;
}

/* Handles an event of an operation. In state OP_NOTICE, the second event ends the operation. Returns 1 if *e is an
 * event for the caller. */
static int op_ended(struct fabric_ofi *f, struct staged_op *op, int status, struct fabric_event *e)
{
	struct staged_op *whole = op->whole;
	if (op->state == OP_NOTICE && !status && --op->left)
		return 0;
	op->state = OP_FREE;
	if (whole) {
		whole->left--;
		whole->status = whole->status ? whole->status : status;
		split(f, whole);
		return 0;
	}
	*e =
	    (struct fabric_event){.what = status ? FABRIC_FAILED : FABRIC_DONE, .status = status, .context = op->owner};
	return 1;
}

static int op_event(struct fabric_ofi *f, struct staged_op *op, struct fabric_event *e)
{
	int status = e->what == FABRIC_FAILED ? e->status : 0;
	struct staged_copy c;
	if (op->state == OP_PUT && !status) {
		send_notice(f, op);
		return 0;
	}
	if (op->state == OP_INBOUND && !status) {
		if (!begin_copy(f, op->io.local, 0, op->io.bytes, LOOM_COPY_IN, &c)) {
			c.op = op;
			op->state = OP_ENTERS;
			append(&f->staging->in, &c);
			return 0;
		}
		status = FI_EIO;
	}
	return op_ended(f, op, status, e);
}

/* ---- what other ranks put here ---------------------------------------------------------------------------- */

static void ack(struct fabric_ofi *f, struct staged_ack *a)
{
	struct fabric_staging *s = f->staging;
	uint32_t slot = (uint32_t)(a - s->ack), rank = slot / MOST;
	ssize_t code = fabric_issue_notify(f, rank, ACK | slot % MOST, &a->context);
	s->due -= a->due;
	a->due = code == -FI_EAGAIN;
	s->due += a->due;
	a->in_flight = !code;
	s->ack_failed = code && !a->due ? (int32_t)-code : s->ack_failed;
}

/* Handles a notice, and starts to copy its data in. Checks the notice first, because another rank has written it. Returns 1
 * if *e is an event for the caller. */
static int on_notice(struct fabric_ofi *f, uint32_t slot, struct fabric_event *e)
{
	struct fabric_staging *s = f->staging;
	uint32_t ranks = f->is.host->ranks, rank = f->is.host->rank;
	struct staged_notice l = slot < ranks * MOST ? s->notice[MOST + slot] : (struct staged_notice){0};
	struct staged_copy c;
	if (f->is.ops->check(&f->is, rank, l.ref, l.bytes) || !is_staged(f, rank, l.ref) ||
	    s->in.end - s->in.first >= ranks * MOST || begin_copy(f, l.ref, 0, l.bytes, LOOM_COPY_IN, &c)) {
		*e = (struct fabric_event){.what = FABRIC_FAILED, .status = FI_EIO};
		return 1;
	}
	c.slot = slot;
	c.notify = (uint32_t)l.notify;
	append(&s->in, &c);
	return 0;
}

/* Called when the data of a notice are in device memory. Returns 1 if *e is an event for the caller. */
static int entered(struct fabric_ofi *f, const struct staged_copy *c, struct fabric_event *e)
{
	struct fabric_staging *s = f->staging;
	struct staged_ack *a = &s->ack[c->slot];
	/* The sender reuses the notice after the acknowledgement arrives. So the next notice may come before this rank
	 * gets the end event of the last acknowledgement. */
	if (!a->in_flight) {
		ack(f, a);
	} else {
		s->due += !a->due;
		a->due = 1;
	}
	*e = (struct fabric_event){.what = FABRIC_ARRIVED, .notify = c->notify};
	return c->notify != 0;
}

/* ---- events ------------------------------------------------------------------------------------------------- */

int fabric_staged_event(struct fabric_ofi *f, struct fabric_event *e)
{
	struct fabric_staging *s = f->staging;
	if (e->what == FABRIC_ARRIVED) {
		uint32_t i = (uint32_t)e->notify & (ACK - 1);
		return e->notify & NOTICE ? on_notice(f, i, e) :
		       !(e->notify & ACK) ? 1 :
		       i < MOST && s->op[i].state == OP_NOTICE ? op_ended(f, &s->op[i], 0, e) : 0;
	}
	const char *context = (const char *)e->context, *ops = (const char *)s->op, *acks = (const char *)s->ack;
	if (context >= ops && context < ops + sizeof(s->op))
		return op_event(f, (struct staged_op *)e->context, e);
	if (context < acks || context >= acks + sizeof(*s->ack) * f->is.host->ranks * MOST)
		return 1;
	((struct staged_ack *)e->context)->in_flight = 0;
	e->context = NULL;
	return e->what == FABRIC_FAILED;
}

/* Passes operations to the provider, in order, as far as their copies have ended. */
static uint32_t go_out(struct fabric_ofi *f, struct fabric_event *event, uint32_t room)
{
	struct staged_queue *q = &f->staging->out;
	struct staged_copy *c;
	uint32_t events = 0;
	int ended;
	while (events < room && (c = head(q)) != NULL && (ended = has_ended(f, c)) != 0) {
		struct staged_op *op = c->op;
		int status = ended < 0 ? FI_EIO : op->status, sends = !status && (!op->delivered || op->io.notify);
		ssize_t code = sends ? issue(f, op) : -status;
		if (sends && code == -FI_EAGAIN)
			break;
		q->first++;
		if (code || !sends)
			events += (uint32_t)op_ended(f, op, (int)-code, &event[events]);
	}
	return events;
}

static uint32_t come_in(struct fabric_ofi *f, struct fabric_event *event, uint32_t room)
{
	struct staged_queue *q = &f->staging->in;
	struct staged_copy *c;
	uint32_t events = 0;
	int ended;
	while (events < room && (c = head(q)) != NULL && (ended = has_ended(f, c)) != 0) {
		q->first++;
		if (c->op)
			events += (uint32_t)op_ended(f, c->op, ended < 0 ? FI_EIO : 0, &event[events]);
		else if (ended < 0)
			event[events++] = (struct fabric_event){.what = FABRIC_FAILED, .status = FI_EIO};
		else
			events += (uint32_t)entered(f, c, &event[events]);
	}
	return events;
}

static uint32_t failures(struct fabric_ofi *f, struct fabric_event *event, uint32_t room)
{
	struct fabric_staging *s = f->staging;
	uint32_t events = 0;
	for (uint32_t i = 0; s->failed && i < MOST && events < room; i++)
		if (s->op[i].state == OP_FAILED) {
			events += (uint32_t)op_ended(f, &s->op[i], s->op[i].status, &event[events]);
			s->failed--;
		}
	if (s->ack_failed && events < room) {
		event[events++] = (struct fabric_event){.what = FABRIC_FAILED, .status = s->ack_failed};
		s->ack_failed = 0;
	}
	return events;
}

int fabric_staged_go_on(struct fabric_ofi *f, struct fabric_event *event, uint32_t room)
{
	struct fabric_staging *s = f->staging;
	uint32_t events = come_in(f, event, room);
	for (uint32_t i = 0; s->due && i < MOST; i++)
		if (s->op[i].state == OP_NOTICE_DUE)
			send_notice(f, &s->op[i]);
	for (uint32_t i = 0; s->due && i < f->is.host->ranks * MOST; i++)
		if (s->ack[i].due && !s->ack[i].in_flight)
			ack(f, &s->ack[i]);
	events += go_out(f, event + events, room - events);
	return (int)(events + failures(f, event + events, room - events));
}

int fabric_staged_busy(const struct fabric_ofi *f)
{
	const struct fabric_staging *s = f->staging;
	return head(&s->out) || head(&s->in) || s->due || s->failed || s->ack_failed;
}

/* ---- opening ------------------------------------------------------------------------------------------------- */

/* What a rank tells the other ranks about a segment. */
struct lent {
	struct host_mark mark; /* identifies the host */
	struct loom_memory_key key;
	uint64_t offset; /* of the segment in the memory of the key */
	uint64_t is;	 /* 0: the segment is not device memory that other ranks may copy to */
};

/* Returns 1 if copies of all staged segments of this rank can be started without waiting for them. */
static int starts_copies(struct fabric_ofi *f, const struct loom_segments *segments)
{
	struct loom_error err = {0};
	uint64_t number = 0;
	if (!LOOM_HAS(segments, start_copy) || !LOOM_HAS(segments, copy_ended))
		return 0;
	for (uint32_t i = 1; i < segments->count; i++)
		for (uint32_t how = LOOM_COPY_OUT; f->local[i].staged && how <= LOOM_COPY_IN; how++)
			if (segments->start_copy(segments->ctx, i, 0, 0, 0, how, &number, &err)) {
				LOOM_LOG(f->is.host, LOOM_LOG_INFO, "fabric", "copies are made one at a time: %s", err.text);
				return 0;
			}
	return 1;
}

/* Opens the memory of another rank, if every staged segment of this rank can be copied there. */
static uint64_t reach(struct fabric_ofi *f, const struct loom_segments *segments, const struct lent *there)
{
	uint64_t at = 0, number = 0;
	int rc = segments->open(segments->ctx, 0, &there->key, &at, NULL);
	for (uint32_t i = 1; !rc && i < segments->count; i++)
		if (f->local[i].staged && segments->start_copy(segments->ctx, i, 0, at, 0, LOOM_COPY_TO, &number, NULL)) {
			segments->close(segments->ctx, 0, at);
			rc = LOOM_ENOTSUP;
		}
	return rc ? 0 : at;
}

/* Finds the memory of other ranks to which the GPU of this rank can copy directly. */
static int find_direct(struct fabric_ofi *f, const struct loom_segments *segments, struct loom_error *err)
{
	const struct loom_host *host = f->is.host;
	struct fabric_staging *s = f->staging;
	uint32_t n = f->segments, reached = 0, own = 0;
	struct lent *all = host->alloc(host, (1 + (uint64_t)host->ranks) * n * sizeof(*all)), *mine;
	if (!all)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	mine = all + (uint64_t)host->ranks * n;
	for (uint32_t i = 1; i < segments->count; i++) {
		host_mark_read(&mine[i].mark);
		mine[i].offset = segments->offset[i];
		mine[i].is = !s->waits && !f->always_staged && f->local[i].staged &&
			     !segments->key(segments->ctx, i, &mine[i].key, NULL);
		own += mine[i].is != 0;
	}
	int rc = host->allgather(host, mine, all, n * sizeof(*mine), err);
	for (uint32_t k = 0; !rc && own && k < host->ranks * n; k++) {
		const struct lent *there = &all[k];
		/* Another host may have a GPU with the same PCI address. */
		if (k / n == host->rank || !there->is || !*there->mark.boot || strcmp(there->mark.boot, mine[1].mark.boot))
			continue;
		s->reach[k] = (struct staged_reach){.at = reach(f, segments, there), .offset = there->offset};
		reached += s->reach[k].at != 0;
	}
	host->free(host, all);
	if (!rc)
		LOOM_CHOICE(host, "trigger.copies", "%s", reached ? "direct" : s->waits ? "waiting" : "staged");
	return rc;
}

int fabric_staged_open(struct fabric_ofi *f, const struct loom_segments *segments, struct loom_error *err)
{
	const struct loom_host *host = f->is.host;
	struct fabric_staging *s = f->staging = host->alloc(host, sizeof(*s));
	uint64_t bytes = (1 + (uint64_t)host->ranks) * MOST * sizeof(*s->notice);
	struct fabric_remote mine = {0};
	if (s) {
		s->waits = !starts_copies(f, segments);
		s->ctx = segments->ctx;
		s->copy = segments->copy;
		s->start_copy = s->waits ? NULL : segments->start_copy;
		s->copy_ended = s->waits ? NULL : segments->copy_ended;
		s->close = segments->close;
		s->notice = host->alloc(host, bytes);
		s->there = host->alloc(host, host->ranks * sizeof(*s->there));
		s->reach = host->alloc(host, (uint64_t)host->ranks * f->segments * sizeof(*s->reach));
		s->ack = host->alloc(host, (uint64_t)host->ranks * MOST * sizeof(*s->ack));
		s->out.most = MOST;
		s->out.copy = host->alloc(host, s->out.most * sizeof(*s->out.copy));
		s->in.most = (1 + (uint64_t)host->ranks) * MOST;
		s->in.copy = host->alloc(host, s->in.most * sizeof(*s->in.copy));
	}
	if (!s || !s->notice || !s->there || !s->reach || !s->ack || !s->out.copy || !s->in.copy)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	int code = fabric_register_host(f, s->notice, bytes, &s->mr);
	if (code)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL, "%s: cannot register memory: %s", f->is.name,
				 fi_strerror(-code));
	mine = fabric_remote(f, &(struct fabric_local){.at = s->notice, .bytes = bytes, .mr = s->mr});
	int rc = host->allgather(host, &mine, s->there, sizeof(mine), err);
	return rc ? rc : find_direct(f, segments, err);
}

/* Waits for copies, so that none writes to memory that is closed afterwards. */
static void drain(struct fabric_ofi *f, struct staged_queue *q)
{
	uint64_t until = now_ns(f) + DRAIN_NS;
	while (head(q) && now_ns(f) < until)
		if (has_ended(f, head(q)))
			q->first++;
}

void fabric_staged_close(struct fabric_ofi *f)
{
	struct fabric_staging *s = f->staging;
	const struct loom_host *host = f->is.host;
	if (!s)
		return;
	drain(f, &s->out);
	drain(f, &s->in);
	for (uint32_t k = 0; s->reach && k < host->ranks * f->segments; k++)
		if (s->reach[k].at)
			s->close(s->ctx, 0, s->reach[k].at);
	if (s->mr)
		fi_close(&s->mr->fid);
	host->free(host, s->notice);
	host->free(host, s->there);
	host->free(host, s->reach);
	host->free(host, s->ack);
	host->free(host, s->out.copy);
	host->free(host, s->in.copy);
	host->free(host, s);
	f->staging = NULL;
}
