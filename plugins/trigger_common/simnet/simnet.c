/* SPDX-License-Identifier: Apache-2.0 */
#include "simnet.h"
#include "wire.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The state of an operation in the network: it travels to its target (ARRIVES), or its completion travels back (ENDS).
 * */
enum parcel_kind { ARRIVES, ENDS };
struct simnet_op {
	struct wire_message message; /* first member */
	struct simnet_op *next;	 /* next operation in a list of its port */
	uint32_t kind;
	int32_t status;
	struct fabric_io io; /* what start() was called with */
	struct simnet_port *from; /* the port that started the operation */
	void *local, *remote; /* addresses of io.local at `from` and of io.remote at the target */
	struct fabric_context *context; /* the caller's context; NULL: no completion is reported */
	struct simnet_op *all;		/* next operation in simnet.all */
};

/* A rank's endpoint. */
struct simnet_port {
	struct fabric is;      /* first member */
	struct wire_port wire; /* state of this port in wire.c */
	struct simnet *net;
	struct loom_segments memory; /* segments of this rank */
	/* Posted receives without a message; arrived messages without a receive. */
	struct simnet_op *receives, *unmatched;
	/* Free operations of this port; an operation is freed at the port that its completion reaches. */
	struct simnet_op *free;
	uint64_t busy; /* time until which the host is busy with messages (sim_host) */
};

/* The network of a job. */
struct simnet {
	const void *job; /* identifies the job */
	struct simnet *next; /* next network in `networks` */
	uint32_t ranks, opened; /* number of ranks; number of ports that are open */
	const struct simnet_model *model;
	struct simnet_port **port; /* [ranks] */
	struct wire *wire;
	struct simnet_op *all; /* all operations, protected by `lock` */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct simnet *networks;

/* ---- networks and ports ---------------------------------------------------------------------------- */

static void simnet_free(struct simnet *n)
{
	while (n->all) {
		struct simnet_op *x = n->all;
		n->all = x->all;
		free(x);
	}
	free(n->port);
	wire_destroy(n->wire);
	free(n);
}

static int simnet_create(const struct loom_host *host, const void *job, const struct simnet_model *model,
			 struct simnet **net, struct loom_error *err)
{
	struct simnet *n = calloc(1, sizeof(*n));
	if (n)
		*n = (struct simnet){.job = job, .ranks = host->ranks, .model = model,
				  .port = calloc(host->ranks, sizeof(*n->port))};
	int rc =
	    n && n->port ? wire_create(host, model, &n->wire, err) : LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	if (!rc)
		*net = n;
	else if (n)
		simnet_free(n);
	return rc;
}

static int join(struct simnet_port *p, const void *job, const struct simnet_model *model, struct loom_error *err)
{
	struct simnet *n = networks;
	while (n && n->job != job)
		n = n->next;
	if (!n) {
		int rc = simnet_create(p->is.host, job, model, &n, err);
		if (rc)
			return rc;
		n->next = networks;
		networks = n;
	}
	n->opened++;
	n->port[p->is.host->rank] = p;
	p->net = n;
	wire_join(n->wire, p->is.host->rank, &p->wire);
	return 0;
}

static void leave(struct simnet_port *p)
{
	struct simnet *n = p->net;
	n->port[p->wire.rank] = NULL;
	if (--n->opened)
		return;
	for (struct simnet **at = &networks; *at; at = &(*at)->next)
		if (*at == n) {
			*at = n->next;
			break;
		}
	simnet_free(n);
}

/* ---- parcels ------------------------------------------------------------------------------------------- */

static struct simnet_op *take_op(struct simnet_port *p)
{
	struct simnet_op *x = p->free;
	if (x) {
		p->free = x->next;
	} else {
		x = calloc(1, sizeof(*x));
		if (!x)
			return NULL;
		pthread_mutex_lock(&lock);
		x->all = p->net->all;
		p->net->all = x;
		pthread_mutex_unlock(&lock);
	}
	*x = (struct simnet_op){.from = p, .all = x->all};
	return x;
}

static void free_op(struct simnet_port *p, struct simnet_op *x)
{
	x->next = p->free;
	p->free = x;
}

static void append(struct simnet_op **list, struct simnet_op *x)
{
	x->next = NULL;
	while (*list)
		list = &(*list)->next;
	*list = x;
}

/* Removes the first operation with that match from the list. Returns NULL if there is none. */
static struct simnet_op *remove_match(struct simnet_op **list, uint64_t match)
{
	for (; *list; list = &(*list)->next)
		if ((*list)->io.match == match) {
			struct simnet_op *x = *list;
			*list = x->next;
			return x;
		}
	return NULL;
}

static uint64_t now_of(const struct simnet_port *p)
{
	return p->wire.clock->now_ns(p->wire.clock);
}

/* Returns the time at which the host has handled one more message. It handles one at a time. */
static uint64_t busy_until(struct simnet_port *p)
{
	uint64_t now = now_of(p);
	p->busy = (p->busy > now ? p->busy : now) + p->net->model->sim_host;
	return p->busy;
}

static void send_op(struct simnet_port *from, struct simnet_port *to, struct simnet_op *x, uint64_t begin,
		    uint64_t bytes)
{
	wire_send(&from->wire, &to->wire, &x->message, begin, bytes);
}

/* Ends an operation at port p: sends its completion with `bytes` bytes back to the port that started it. */
static void end(struct simnet_port *p, struct simnet_op *x, int status, uint64_t bytes)
{
	if (!x->context) {
		free_op(p, x);
		return;
	}
	x->kind = ENDS;
	x->status = status;
	x->message.sure = 1;
	send_op(p, x->from, x, now_of(p), bytes);
}

/* ---- operations ------------------------------------------------------------------------------------------ */

static struct simnet_port *port_of(const struct fabric *f)
{
	return (struct simnet_port *)(uintptr_t)f;
}

static int check(const struct fabric *f, uint32_t rank, loom_ref ref, uint64_t bytes)
{
	const struct simnet *n = port_of(f)->net;
	const struct simnet_port *p = rank < n->ranks ? n->port[rank] : NULL;
	uint32_t segment = LOOM_REF_SEGMENT(ref);
	if (!p || !segment || segment >= p->memory.count || !p->memory.at[segment])
		return LOOM_EINVAL;
	uint64_t size = p->memory.bytes[segment];
	return LOOM_REF_OFFSET(ref) > size || bytes > size - LOOM_REF_OFFSET(ref) ? LOOM_EINVAL : 0;
}

static int can_add(const struct fabric *f, uint32_t type, uint64_t bytes)
{
	uint64_t size = fabric_type_bytes(type);
	(void)f;
	return !size || bytes % size ? LOOM_ENOTSUP : 0;
}

static void *at(const struct simnet_port *p, loom_ref ref)
{
	return (char *)p->memory.at[LOOM_REF_SEGMENT(ref)] + LOOM_REF_OFFSET(ref);
}

/* Copies the data of a message that has arrived at port p to a receive that p has posted, and ends both operations. */
static void match_receive(struct simnet_port *p, struct simnet_op *sent, struct simnet_op *received)
{
	int status = sent->io.bytes > received->io.bytes ? EMSGSIZE : 0;
	if (!status && sent->io.bytes)
		memcpy(received->local, sent->local, sent->io.bytes);
	received->kind = ENDS;
	received->status = status;
	received->message.turn = sent->message.turn;
	uint64_t due = busy_until(p);
	wire_put(&p->wire, &received->message, due);
	p->wire.clock->wake(p->wire.clock, p->wire.agent, due);
	end(p, sent, status, 0);
}

static int start(struct fabric *f, const struct fabric_io *io, struct fabric_context *context, int *status)
{
	struct simnet_port *p = port_of(f);
	struct simnet_op *x = take_op(p), *sent;
	(void)status;
	if (!x)
		return LOOM_EAGAIN;
	x->io = *io;
	x->context = context;
	x->local = at(p, io->local);
	if (io->op == LOOM_NET_RECV) {
		if ((sent = remove_match(&p->unmatched, io->match)))
			match_receive(p, sent, x);
		else
			append(&p->receives, x);
		return 0;
	}
	struct simnet_port *to = p->net->port[io->target];
	if (io->op != LOOM_NET_SEND)
		x->remote = at(to, io->remote);
	send_op(p, to, x, busy_until(p) + p->net->model->sim_overhead, io->op == LOOM_NET_GET ? 0 : io->bytes);
	return 0;
}

static int notify(struct fabric *f, uint32_t target, uint32_t word, struct fabric_context *context, int *status)
{
	struct simnet_port *p = port_of(f);
	struct simnet_op *x = take_op(p);
	(void)status;
	if (!x)
		return LOOM_EAGAIN;
	x->io = (struct fabric_io){.op = LOOM_NET_COUNT, .notify = word};
	x->context = context;
	send_op(p, p->net->port[target], x, now_of(p) + p->net->model->sim_overhead, sizeof(uint64_t));
	return 0;
}

static void cancel(struct fabric *f, struct fabric_context *context)
{
	struct simnet_port *p = port_of(f);
	for (struct simnet_op **list = &p->receives; *list; list = &(*list)->next)
		if ((*list)->context == context) {
			struct simnet_op *x = *list;
			*list = x->next;
			x->kind = ENDS;
			x->status = ECANCELED;
			/* Called between samples: poll() returns the completion of the receive when the next sample
			 * begins. */
			wire_put(&p->wire, &x->message, 0);
			return;
		}
}

static void sum(const struct simnet_op *x)
{
	uint64_t n = x->io.bytes / fabric_type_bytes(x->io.type);
	for (uint64_t i = 0; i < n; i++)
		if (x->io.type == LOOM_NET_F32)
			((float *)x->remote)[i] += ((const float *)x->local)[i];
		else
			((uint64_t *)x->remote)[i] += ((const uint64_t *)x->local)[i];
}

/* Executes an operation that arrives at port p. */
static void arrive(struct simnet_port *p, struct simnet_op *x)
{
	struct simnet_op *mine;
	switch (x->io.op) {
	case LOOM_NET_PUT:
		memcpy(x->remote, x->local, x->io.bytes);
		break;
	case LOOM_NET_GET:
		memcpy(x->local, x->remote, x->io.bytes);
		break;
	case LOOM_NET_ADD:
		if (x->io.fetch)
			memcpy((char *)x->local + sizeof(uint64_t), x->remote, sizeof(uint64_t));
		sum(x);
		break;
	case LOOM_NET_SEND:
		if ((mine = remove_match(&p->receives, x->io.match)))
			match_receive(p, x, mine);
		else
			append(&p->unmatched, x);
		return;
	default:;
	}
	end(p, x, 0, x->io.op == LOOM_NET_GET || x->io.fetch ? x->io.bytes : 0);
}

/* Processes an operation or a completion that has arrived at port p. Returns 1 if *out is an event for the caller. */
static uint32_t process(struct simnet_port *p, struct simnet_op *x, struct fabric_event *out)
{
	if (x->message.lost) { /* the message was lost too often, so the operation fails at its sender */
		x->kind = ENDS;
		x->status = ETIMEDOUT;
	}
	if (x->kind == ARRIVES) {
		*out = (struct fabric_event){.what = FABRIC_ARRIVED, .notify = x->io.notify};
		arrive(p, x);
		return out->notify != 0;
	}
	*out = (struct fabric_event){
	    .what = x->status ? FABRIC_FAILED : FABRIC_DONE, .status = x->status, .context = x->context};
	free_op(p, x);
	return 1;
}

static int poll(struct fabric *f, struct fabric_event *out, uint32_t room)
{
	struct simnet_port *p = port_of(f);
	struct wire_message *x;
	uint32_t n = 0;
	while (n < room && (x = wire_take(&p->wire)))
		n += process(p, (struct simnet_op *)x, &out[n]);
	return p->wire.lost_memory ? LOOM_ENOMEM : (int)n;
}

/* ---- opening -------------------------------------------------------------------------------------------- */

static int share(struct fabric *f, const struct loom_segments *s, struct loom_error *err)
{
	struct simnet_port *p = port_of(f);
	const struct loom_host *host = f->host;
	uint8_t mine = 1, *all = host->alloc(host, host->ranks);
	void **to = host->alloc(host, s->count * sizeof(*to));
	uint64_t *bytes = host->alloc(host, s->count * sizeof(*bytes));
	if (!all || !to || !bytes) {
		host->free(host, all);
		host->free(host, to);
		host->free(host, bytes);
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	}
	memcpy(to, s->at, s->count * sizeof(*to));
	memcpy(bytes, s->bytes, s->count * sizeof(*bytes));
	p->memory = (struct loom_segments){.size = sizeof(p->memory), .count = s->count, .at = to, .bytes = bytes};
	/* A barrier: all ranks have stored their segments afterwards. */
	int rc = host->allgather(host, &mine, all, sizeof(mine), err);
	host->free(host, all);
	return rc;
}

static void attach(struct fabric *f, const struct loom_clock *time, struct loom_agent *agent)
{
	wire_attach(&port_of(f)->wire, time, agent);
}

static uint64_t due(const struct fabric *f)
{
	return wire_due(&port_of(f)->wire);
}

static void begin(struct fabric *f)
{
	port_of(f)->busy = 0;
	wire_begin(&port_of(f)->wire);
}

static void simnet_close(struct fabric *f)
{
	struct simnet_port *p = port_of(f);
	const struct loom_host *host = f->host;
	attach(f, NULL, NULL);
	pthread_mutex_lock(&lock);
	leave(p);
	pthread_mutex_unlock(&lock);
	wire_close(&p->wire);
	host->free(host, (void *)p->memory.at);
	host->free(host, (void *)p->memory.bytes);
	host->free(host, p);
}

static const struct fabric_ops simnet_ops = {.close = simnet_close,
					     .share = share,
					     .check = check,
					     .can_add = can_add,
					     .start = start,
					     .notify = notify,
					     .cancel = cancel,
					     .poll = poll,
					     .attach = attach,
					     .due = due,
					     .begin = begin};

int simnet_open(const struct loom_host *host, const struct simnet_model *model, struct fabric **fabric,
		struct loom_error *err)
{
	const void *job = LOOM_HAS(host, job) ? host->job : host;
	if (host->ranks > 1 && job == host)
		return LOOM_FAIL(
		    host, err, LOOM_ENOTSUP,
		    "provider = sim: the network is simulated together with the devices: choose devices = sim:0");
	struct simnet_port *p = host->alloc(host, sizeof(*p));
	if (!p)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	p->is = (struct fabric){.ops = &simnet_ops, .host = host, .name = "sim", .fetches = 1, .fd = -1};
	pthread_mutex_lock(&lock);
	int rc = join(p, job, model, err);
	pthread_mutex_unlock(&lock);
	if (rc) {
		host->free(host, p);
		return rc;
	}
	*fabric = &p->is;
	return 0;
}
