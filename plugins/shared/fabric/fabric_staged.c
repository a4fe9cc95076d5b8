/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of GPUs, which the host's network does not reach: the provider has a copy of it in host memory, registered once, and
 * the NIC's thread copies to and fro beside the workers.
 *
 * What is sent is copied out before. What a receive or a get brings is copied in before it is complete. What a put brings only
 * the target can copy in: when the data are in its copy, a second message says where, the target copies, tells its workers,
 * and answers; then the put is complete. A get from there, or an addition, would need the target to act first: refused. */
#include "fabric_inside.h"

#define MOST 64u /* operations under way that need more than one message or a copy at their end */

/* Immediate data beside those of notifications, which are below 2^20. */
#define LANDED (1u << 31)
#define ANSWER (1u << 30)

/* What a target is told. */
struct landing {
	uint64_t ref, bytes, notify, pad;
};

enum { OP_FREE, OP_BRINGS, OP_PUTS, OP_DUE, OP_TELLS, OP_FAILED };
struct staged_op {
	struct fabric_context context; /* first: events give its address */
	struct fabric_context *owner;
	struct fabric_io io;
	uint32_t state;
	uint32_t left; /* OP_TELLS: of the message's end and the answer */
	int32_t status; /* OP_FAILED */
};

struct answer { /* to one operation of another rank */
	struct fabric_context context; /* first */
	uint32_t under_way, due;
};

struct fabric_staging {
	void *ctx; /* as struct loom_segments has it */
	int (*copy)(void *ctx, uint32_t segment, uint64_t offset, void *host, uint64_t bytes, int in, struct loom_error *err);
	struct landing *landing; /* [1 + ranks][MOST]: what this rank tells, and is told */
	struct fid_mr *mr;
	struct fabric_there *there; /* [ranks]: of the others */
	struct answer *answer;	    /* [ranks][MOST] */
	uint32_t due;		    /* messages that the provider had no room for */
	uint32_t failed;	    /* operations that are over without an event of the provider's */
	int32_t unanswered;	    /* why an answer could not be sent; 0: there is none */
	struct staged_op op[MOST];
};

static int copy(struct ofi *f, loom_ref ref, uint64_t bytes, int in)
{
	struct fabric_staging *s = f->staging;
	struct loom_error err = {0};
	char *host = (char *)f->mine[LOOM_REF_SEGMENT(ref)].at + LOOM_REF_OFFSET(ref);
	int rc = s->copy(s->ctx, LOOM_REF_SEGMENT(ref), LOOM_REF_OFFSET(ref), host, bytes, in, &err);
	if (rc)
		LOOM_LOG(f->is.host, LOOM_LOG_ERROR, "a copy for the network", "%s", err.text);
	return rc;
}

static int is_staged(const struct ofi *f, uint32_t rank, loom_ref ref)
{
	return f->theirs[rank * f->segments + LOOM_REF_SEGMENT(ref)].staged != 0;
}

/* ---- operations of this rank ---------------------------------------------------------------------------- */

static void tell(struct ofi *f, struct staged_op *op)
{
	struct fabric_staging *s = f->staging;
	uint32_t i = (uint32_t)(op - s->op), rank = f->is.host->rank;
	const struct fabric_there *to = &s->there[op->io.target];
	uint64_t at = ((1 + (uint64_t)rank) * MOST + i) * sizeof(struct landing);
	s->landing[i] = (struct landing){.ref = op->io.remote, .bytes = op->io.bytes, .notify = op->io.notify};
	s->due -= op->state == OP_DUE;
	ssize_t code = fi_writedata(f->ep, &s->landing[i], sizeof(s->landing[i]), fi_mr_desc(s->mr), LANDED | (rank * MOST + i),
				    f->peer[op->io.target], to->base + at, to->key, &op->context);
	op->state = !code ? OP_TELLS : code == -FI_EAGAIN ? OP_DUE : OP_FAILED;
	op->left = 2;
	op->status = (int32_t)-code;
	s->due += op->state == OP_DUE;
	s->failed += op->state == OP_FAILED;
}

int fabric_staged_start(struct ofi *f, const struct fabric_io *io, struct fabric_context *context, int *status)
{
	struct fabric_staging *s = f->staging;
	int brings = io->op == LOOM_NET_GET || io->op == LOOM_NET_RECV, here = f->mine[LOOM_REF_SEGMENT(io->local)].staged;
	int there = io->op != LOOM_NET_SEND && io->op != LOOM_NET_RECV && is_staged(f, io->target, io->remote);
	struct staged_op *op = NULL;
	*status = FI_EIO;
	if (there && io->op != LOOM_NET_PUT)
		return LOOM_EIO; /* a fire chose that rank: posts are checked */
	for (uint32_t i = 0; (there || (here && brings)) && i < MOST && !op; i++)
		op = s->op[i].state == OP_FREE ? &s->op[i] : NULL;
	if (!op && (there || (here && brings)))
		return LOOM_EAGAIN;
	if (here && !brings && copy(f, io->local, io->bytes, 0))
		return LOOM_EIO;
	if (!op)
		return fabric_verdict(fabric_issue(f, io, context), status);
	struct fabric_io plain = *io;
	plain.notify = there ? 0 : io->notify;
	ssize_t code = fabric_issue(f, &plain, &op->context);
	if (!code) {
		op->owner = context;
		op->io = *io;
		op->state = brings ? OP_BRINGS : OP_PUTS;
	}
	return fabric_verdict(code, status);
}

struct fabric_context *fabric_staged_context(struct ofi *f, struct fabric_context *owner)
{
	for (uint32_t i = 0; i < MOST; i++)
		if (f->staging->op[i].state != OP_FREE && f->staging->op[i].owner == owner)
			return &f->staging->op[i].context;
	return owner;
}

/* An operation is over, or one of the two things that it waits for. */
static int over(struct staged_op *op, int status, struct fabric_event *e)
{
	if (op->state == OP_TELLS && !status && --op->left)
		return 0;
	*e = (struct fabric_event){.what = status ? FABRIC_FAILED : FABRIC_DONE, .status = status, .context = op->owner};
	op->state = OP_FREE;
	return 1;
}

static int op_event(struct ofi *f, struct staged_op *op, struct fabric_event *e)
{
	int status = e->what == FABRIC_FAILED ? e->status : 0;
	if (op->state == OP_PUTS && !status) {
		tell(f, op);
		return 0;
	}
	if (op->state == OP_BRINGS && !status && copy(f, op->io.local, op->io.bytes, 1))
		status = FI_EIO;
	return over(op, status, e);
}

/* ---- what others put here --------------------------------------------------------------------------------- */

static void answer(struct ofi *f, struct answer *a)
{
	struct fabric_staging *s = f->staging;
	uint32_t slot = (uint32_t)(a - s->answer), rank = slot / MOST;
	const struct fabric_there *to = &f->scratch_there[rank];
	ssize_t code = fi_writedata(f->ep, f->scratch, sizeof(uint64_t), fi_mr_desc(f->scratch_mr), ANSWER | slot % MOST,
				    f->peer[rank], to->base + FABRIC_SCRATCH_SINK, to->key, &a->context);
	s->due -= a->due;
	a->due = code == -FI_EAGAIN;
	s->due += a->due;
	a->under_way = !code;
	s->unanswered = code && !a->due ? (int32_t)-code : s->unanswered;
}

/* Another rank wrote it: believe nothing. */
static int landed(struct ofi *f, uint32_t slot, struct fabric_event *e)
{
	struct fabric_staging *s = f->staging;
	uint32_t ranks = f->is.host->ranks, rank = f->is.host->rank;
	struct landing l = slot < ranks * MOST ? s->landing[MOST + slot] : (struct landing){0};
	if (f->is.ops->check(&f->is, rank, l.ref, l.bytes) || !is_staged(f, rank, l.ref) || copy(f, l.ref, l.bytes, 1)) {
		*e = (struct fabric_event){.what = FABRIC_FAILED, .status = FI_EIO};
		return 1;
	}
	struct answer *a = &s->answer[slot];
	/* The other's place is free as soon as it has the answer, which may be before this rank knows that it was sent. */
	if (!a->under_way) {
		answer(f, a);
	} else {
		s->due += !a->due;
		a->due = 1;
	}
	e->notify = l.notify;
	return l.notify != 0;
}

/* ---- events ------------------------------------------------------------------------------------------------- */

int fabric_staged_event(struct ofi *f, struct fabric_event *e)
{
	struct fabric_staging *s = f->staging;
	if (e->what == FABRIC_ARRIVED) {
		uint32_t i = (uint32_t)e->notify & (ANSWER - 1);
		return e->notify & LANDED ? landed(f, i, e) :
		       !(e->notify & ANSWER) ? 1 :
		       i < MOST && s->op[i].state == OP_TELLS ? over(&s->op[i], 0, e) : 0;
	}
	const char *context = (const char *)e->context, *ops = (const char *)s->op, *answers = (const char *)s->answer;
	if (context >= ops && context < ops + sizeof(s->op))
		return op_event(f, (struct staged_op *)e->context, e);
	if (context < answers || context >= answers + sizeof(*s->answer) * f->is.host->ranks * MOST)
		return 1;
	((struct answer *)e->context)->under_way = 0;
	e->context = NULL;
	return e->what == FABRIC_FAILED;
}

static int failures(struct fabric_staging *s, struct fabric_event *event, uint32_t room)
{
	uint32_t events = 0;
	for (uint32_t i = 0; s->failed && i < MOST && events < room; i++)
		if (s->op[i].state == OP_FAILED) {
			over(&s->op[i], s->op[i].status, &event[events++]);
			s->failed--;
		}
	if (s->unanswered && events < room) {
		event[events++] = (struct fabric_event){.what = FABRIC_FAILED, .status = s->unanswered};
		s->unanswered = 0;
	}
	return (int)events;
}

int fabric_staged_retry(struct ofi *f, struct fabric_event *event, uint32_t room)
{
	struct fabric_staging *s = f->staging;
	for (uint32_t i = 0; s->due && i < MOST; i++)
		if (s->op[i].state == OP_DUE)
			tell(f, &s->op[i]);
	for (uint32_t i = 0; s->due && i < f->is.host->ranks * MOST; i++)
		if (s->answer[i].due && !s->answer[i].under_way)
			answer(f, &s->answer[i]);
	return failures(s, event, room);
}

/* ---- opening ------------------------------------------------------------------------------------------------- */

int fabric_staged_open(struct ofi *f, const struct loom_segments *segments, struct loom_error *err)
{
	const struct loom_host *host = f->is.host;
	struct fabric_staging *s = f->staging = host->alloc(host, sizeof(*s));
	uint64_t bytes = (1 + (uint64_t)host->ranks) * MOST * sizeof(*s->landing);
	struct fabric_there mine = {0};
	if (s) {
		s->ctx = segments->ctx;
		s->copy = segments->copy;
		s->landing = host->alloc(host, bytes);
		s->there = host->alloc(host, host->ranks * sizeof(*s->there));
		s->answer = host->alloc(host, (uint64_t)host->ranks * MOST * sizeof(*s->answer));
	}
	if (!s || !s->landing || !s->there || !s->answer)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	int code = fabric_register_host(f, s->landing, bytes, &s->mr);
	if (code)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL, "%s: cannot register memory: %s", f->is.name, fi_strerror(-code));
	mine = fabric_there(f, &(struct fabric_here){.at = s->landing, .bytes = bytes, .mr = s->mr});
	return host->allgather(host, &mine, s->there, sizeof(mine), err);
}

void fabric_staged_close(struct ofi *f)
{
	struct fabric_staging *s = f->staging;
	const struct loom_host *host = f->is.host;
	if (!s)
		return;
	if (s->mr)
		fi_close(&s->mr->fid);
	host->free(host, s->landing);
	host->free(host, s->there);
	host->free(host, s->answer);
	host->free(host, s);
	f->staging = NULL;
}
