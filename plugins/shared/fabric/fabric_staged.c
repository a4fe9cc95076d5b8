/* SPDX-License-Identifier: Apache-2.0 */
/* Staging of device memory that the network cannot access. The provider uses a copy in host memory, which is registered
 * once. The NIC's thread copies between device memory and this copy while workers run.
 *
 * Before a send or a put, the data are copied out of local device memory. Before a receive or a get completes, its data are
 * copied in. After a put into staged memory, the target must copy the data in. So a notice follows the data and says where they
 * are. The target copies them in, notifies its workers, and acknowledges the notice. Then the put completes. The operations GET
 * and ADD on staged memory of a target are rejected, because the target would have to copy the data out before them. */
#include "fabric_ofi.h"

#define MOST 64u /* limit on operations in flight that need a second message, or a copy at their end */

/* Bits of immediate data. Notifications of arrival words are below 2^20, so they use neither bit. */
#define NOTICE (1u << 31)
#define ACK (1u << 30)

/* The second message of a put into staged memory. It tells the target which bytes (ref, bytes) have arrived in its copy in
 * host memory, so that the target copies them in, and which notification (notify; 0: none) follows. */
struct staged_notice {
	uint64_t ref, bytes, notify, pad;
};

enum { OP_FREE, OP_INBOUND, OP_PUT, OP_NOTICE_DUE, OP_NOTICE, OP_FAILED };
struct staged_op {
	struct fabric_context context; /* first member: events carry its address */
	struct fabric_context *owner;
	struct fabric_io io;
	uint32_t state;
	uint32_t left; /* OP_NOTICE: how many of two events are missing, the end of the notice and its acknowledgement */
	int32_t status; /* OP_FAILED: a positive FI_E* code */
};

struct staged_ack { /* acknowledges a notice that another rank has sent */
	struct fabric_context context; /* first member */
	uint32_t in_flight, due;
};

struct fabric_staging {
	void *ctx; /* as in struct loom_segments */
	int (*copy)(void *ctx, uint32_t segment, uint64_t offset, void *host, uint64_t bytes, int in,
		    struct loom_error *err);
	/* [1 + ranks][MOST]: first the notices that this rank sends, then the notices that it receives from each rank.
	 * */
	struct staged_notice *notice;
	struct fid_mr *mr;
	struct fabric_remote *there; /* [ranks]: the `notice` array of each rank */
	struct staged_ack *ack;	    /* [ranks][MOST] */
	uint32_t due;		    /* number of messages for which the provider had no room */
	uint32_t failed;	    /* number of operations that failed without an event of the provider */
	int32_t ack_failed;	    /* why an acknowledgement could not be sent, a positive FI_E* code; 0: all were sent */
	struct staged_op op[MOST];
};

static int copy(struct fabric_ofi *f, loom_ref ref, uint64_t bytes, int in)
{
	struct fabric_staging *s = f->staging;
	struct loom_error err = {0};
	char *host = (char *)f->local[LOOM_REF_SEGMENT(ref)].at + LOOM_REF_OFFSET(ref);
	int rc = s->copy(s->ctx, LOOM_REF_SEGMENT(ref), LOOM_REF_OFFSET(ref), host, bytes, in, &err);
	if (rc)
		LOOM_LOG(f->is.host, LOOM_LOG_ERROR, "a copy for the network", "%s", err.text);
	return rc;
}

static int is_staged(const struct fabric_ofi *f, uint32_t rank, loom_ref ref)
{
	return f->remote[rank * f->segments + LOOM_REF_SEGMENT(ref)].staged != 0;
}

/* ---- operations of this rank ---------------------------------------------------------------------------- */

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

int fabric_staged_start(struct fabric_ofi *f, const struct fabric_io *io, struct fabric_context *context, int *status)
{
	struct fabric_staging *s = f->staging;
	int inbound = io->op == LOOM_NET_GET || io->op == LOOM_NET_RECV,
	    here = f->local[LOOM_REF_SEGMENT(io->local)].staged;
	int there = io->op != LOOM_NET_SEND && io->op != LOOM_NET_RECV && is_staged(f, io->target, io->remote);
	struct staged_op *op = NULL;
	*status = FI_EIO;
	if (there && io->op != LOOM_NET_PUT)
		return LOOM_EIO; /* The worker that fired chose this target. Other targets were checked at the post. */
	for (uint32_t i = 0; (there || (here && inbound)) && i < MOST && !op; i++)
		op = s->op[i].state == OP_FREE ? &s->op[i] : NULL;
	if (!op && (there || (here && inbound)))
		return LOOM_EAGAIN;
	if (here && !inbound && copy(f, io->local, io->bytes, 0))
		return LOOM_EIO;
	if (!op)
		return fabric_result(fabric_issue(f, io, context), status);
	struct fabric_io plain = *io;
	plain.notify = there ? 0 : io->notify;
	ssize_t code = fabric_issue(f, &plain, &op->context);
	if (!code) {
		op->owner = context;
		op->io = *io;
		op->state = inbound ? OP_INBOUND : OP_PUT;
	}
	return fabric_result(code, status);
}

struct fabric_context *fabric_staged_context(struct fabric_ofi *f, struct fabric_context *owner)
{
	for (uint32_t i = 0; i < MOST; i++)
		if (f->staging->op[i].state != OP_FREE && f->staging->op[i].owner == owner)
			return &f->staging->op[i].context;
	return owner;
}

/* Handles an event of an operation. In state OP_NOTICE, the second event ends the operation. Returns 1 if *e is an
 * event for the caller. */
static int op_ended(struct staged_op *op, int status, struct fabric_event *e)
{
	if (op->state == OP_NOTICE && !status && --op->left)
		return 0;
	*e =
	    (struct fabric_event){.what = status ? FABRIC_FAILED : FABRIC_DONE, .status = status, .context = op->owner};
	op->state = OP_FREE;
	return 1;
}

static int op_event(struct fabric_ofi *f, struct staged_op *op, struct fabric_event *e)
{
	int status = e->what == FABRIC_FAILED ? e->status : 0;
	if (op->state == OP_PUT && !status) {
		send_notice(f, op);
		return 0;
	}
	if (op->state == OP_INBOUND && !status && copy(f, op->io.local, op->io.bytes, 1))
		status = FI_EIO;
	return op_ended(op, status, e);
}

/* ---- what other ranks put here ---------------------------------------------------------------------------- */

static void ack(struct fabric_ofi *f, struct staged_ack *a)
{
	struct fabric_staging *s = f->staging;
	uint32_t slot = (uint32_t)(a - s->ack), rank = slot / MOST;
	const struct fabric_remote *to = &f->scratch_remote[rank];
	ssize_t code = fi_writedata(f->ep, f->scratch, sizeof(uint64_t), fi_mr_desc(f->scratch_mr), ACK | slot % MOST,
				    f->peer[rank], to->base + FABRIC_SCRATCH_SINK, to->key, &a->context);
	s->due -= a->due;
	a->due = code == -FI_EAGAIN;
	s->due += a->due;
	a->in_flight = !code;
	s->ack_failed = code && !a->due ? (int32_t)-code : s->ack_failed;
}

/* Handles a notice. Checks the notice first, because another rank has written it. Returns 1 if *e is an event for the
 * caller. */
static int on_notice(struct fabric_ofi *f, uint32_t slot, struct fabric_event *e)
{
	struct fabric_staging *s = f->staging;
	uint32_t ranks = f->is.host->ranks, rank = f->is.host->rank;
	struct staged_notice l = slot < ranks * MOST ? s->notice[MOST + slot] : (struct staged_notice){0};
	if (f->is.ops->check(&f->is, rank, l.ref, l.bytes) || !is_staged(f, rank, l.ref) ||
	    copy(f, l.ref, l.bytes, 1)) {
		*e = (struct fabric_event){.what = FABRIC_FAILED, .status = FI_EIO};
		return 1;
	}
	struct staged_ack *a = &s->ack[slot];
	/* The sender reuses the notice after the acknowledgement arrives. So the next notice may come before this rank
	 * gets the end event of the last acknowledgement. */
	if (!a->in_flight) {
		ack(f, a);
	} else {
		s->due += !a->due;
		a->due = 1;
	}
	e->notify = l.notify;
	return l.notify != 0;
}

/* ---- events ------------------------------------------------------------------------------------------------- */

int fabric_staged_event(struct fabric_ofi *f, struct fabric_event *e)
{
	struct fabric_staging *s = f->staging;
	if (e->what == FABRIC_ARRIVED) {
		uint32_t i = (uint32_t)e->notify & (ACK - 1);
		return e->notify & NOTICE ? on_notice(f, i, e) :
		       !(e->notify & ACK) ? 1 :
		       i < MOST && s->op[i].state == OP_NOTICE ? op_ended(&s->op[i], 0, e) : 0;
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

static int failures(struct fabric_staging *s, struct fabric_event *event, uint32_t room)
{
	uint32_t events = 0;
	for (uint32_t i = 0; s->failed && i < MOST && events < room; i++)
		if (s->op[i].state == OP_FAILED) {
			op_ended(&s->op[i], s->op[i].status, &event[events++]);
			s->failed--;
		}
	if (s->ack_failed && events < room) {
		event[events++] = (struct fabric_event){.what = FABRIC_FAILED, .status = s->ack_failed};
		s->ack_failed = 0;
	}
	return (int)events;
}

int fabric_staged_retry(struct fabric_ofi *f, struct fabric_event *event, uint32_t room)
{
	struct fabric_staging *s = f->staging;
	for (uint32_t i = 0; s->due && i < MOST; i++)
		if (s->op[i].state == OP_NOTICE_DUE)
			send_notice(f, &s->op[i]);
	for (uint32_t i = 0; s->due && i < f->is.host->ranks * MOST; i++)
		if (s->ack[i].due && !s->ack[i].in_flight)
			ack(f, &s->ack[i]);
	return failures(s, event, room);
}

/* ---- opening ------------------------------------------------------------------------------------------------- */

int fabric_staged_open(struct fabric_ofi *f, const struct loom_segments *segments, struct loom_error *err)
{
	const struct loom_host *host = f->is.host;
	struct fabric_staging *s = f->staging = host->alloc(host, sizeof(*s));
	uint64_t bytes = (1 + (uint64_t)host->ranks) * MOST * sizeof(*s->notice);
	struct fabric_remote mine = {0};
	if (s) {
		s->ctx = segments->ctx;
		s->copy = segments->copy;
		s->notice = host->alloc(host, bytes);
		s->there = host->alloc(host, host->ranks * sizeof(*s->there));
		s->ack = host->alloc(host, (uint64_t)host->ranks * MOST * sizeof(*s->ack));
	}
	if (!s || !s->notice || !s->there || !s->ack)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	int code = fabric_register_host(f, s->notice, bytes, &s->mr);
	if (code)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL, "%s: cannot register memory: %s", f->is.name,
				 fi_strerror(-code));
	mine = fabric_remote(f, &(struct fabric_local){.at = s->notice, .bytes = bytes, .mr = s->mr});
	return host->allgather(host, &mine, s->there, sizeof(mine), err);
}

void fabric_staged_close(struct fabric_ofi *f)
{
	struct fabric_staging *s = f->staging;
	const struct loom_host *host = f->is.host;
	if (!s)
		return;
	if (s->mr)
		fi_close(&s->mr->fid);
	host->free(host, s->notice);
	host->free(host, s->there);
	host->free(host, s->ack);
	host->free(host, s);
	f->staging = NULL;
}
