/* SPDX-License-Identifier: Apache-2.0 */
#include "simnet.h"
#include "wire.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* An operation, or the news of its end, on its way to a port. */
enum parcel_kind { ARRIVES, ENDS };
struct parcel {
	struct wire_message way; /* first */
	struct parcel *next;	 /* in a list */
	uint32_t kind;
	int32_t status;
	struct fabric_io io;
	struct port *from; /* whose operation it is */
	void *local, *remote;
	struct fabric_context *context; /* of `from`; NULL: the message alone */
	struct parcel *made;		/* the next one of the network's */
};

/* A rank's endpoint. */
struct port {
	struct fabric is;      /* first */
	struct wire_port wire; /* its end of the network */
	struct net *net;
	struct loom_segments memory;
	struct parcel *receives, *early; /* posted; come before a receive */
	struct parcel *unused;		 /* an operation's parcel comes back with its end */
};

/* What the ranks of a job have in common. */
struct net {
	const void *job;
	struct net *next;
	uint32_t ranks, opened;
	uint64_t overhead;
	struct port **port; /* [ranks] */
	struct wire *wire;
	struct parcel *made; /* all; under `lock` */
};

const char *const net_routings[] = {"minimal", "valiant", NULL};
const char *const net_sharings[] = {"queue", "fair", NULL};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct net *nets;

/* ---- who is there ---------------------------------------------------------------------------------- */

static void net_free(struct net *n)
{
	while (n->made) {
		struct parcel *x = n->made;
		n->made = x->made;
		wire_forget(&x->way);
		free(x);
	}
	free(n->port);
	wire_destroy(n->wire);
	free(n);
}

static int net_make(const struct loom_host *host, const void *job, const struct net_model *model, struct net **net,
		    struct loom_error *err)
{
	struct net *n = calloc(1, sizeof(*n));
	if (n)
		*n = (struct net){.job = job, .ranks = host->ranks, .overhead = model->sim_overhead,
				  .port = calloc(host->ranks, sizeof(*n->port))};
	int rc = n && n->port ? wire_create(host, model, &n->wire, err) : LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	if (!rc)
		*net = n;
	else if (n)
		net_free(n);
	return rc;
}

static int join(struct port *p, const void *job, const struct net_model *model, struct loom_error *err)
{
	struct net *n = nets;
	while (n && n->job != job)
		n = n->next;
	if (!n) {
		int rc = net_make(p->is.host, job, model, &n, err);
		if (rc)
			return rc;
		n->next = nets;
		nets = n;
	}
	n->opened++;
	n->port[p->is.host->rank] = p;
	p->net = n;
	wire_join(n->wire, p->is.host->rank, &p->wire);
	return 0;
}

static void leave(struct port *p)
{
	struct net *n = p->net;
	n->port[p->wire.rank] = NULL;
	if (--n->opened)
		return;
	for (struct net **at = &nets; *at; at = &(*at)->next)
		if (*at == n) {
			*at = n->next;
			break;
		}
	net_free(n);
}

/* ---- parcels ------------------------------------------------------------------------------------------- */

static struct parcel *pack(struct port *p)
{
	struct parcel *x = p->unused;
	if (x) {
		p->unused = x->next;
	} else {
		x = calloc(1, sizeof(*x));
		if (!x)
			return NULL;
		pthread_mutex_lock(&lock);
		x->made = p->net->made;
		p->net->made = x;
		pthread_mutex_unlock(&lock);
	}
	*x = (struct parcel){.from = p, .way.passage = x->way.passage, .made = x->made};
	return x;
}

static void unpack(struct port *p, struct parcel *x)
{
	x->next = p->unused;
	p->unused = x;
}

static void append(struct parcel **list, struct parcel *x)
{
	x->next = NULL;
	while (*list)
		list = &(*list)->next;
	*list = x;
}

/* Takes the first one with that match out of the list; NULL: none. */
static struct parcel *matching(struct parcel **list, uint64_t match)
{
	for (; *list; list = &(*list)->next)
		if ((*list)->io.match == match) {
			struct parcel *x = *list;
			*list = x->next;
			return x;
		}
	return NULL;
}

static uint64_t now_of(const struct port *p)
{
	return p->wire.clock->now_ns(p->wire.clock);
}

static void send(struct port *from, struct port *to, struct parcel *x, uint64_t begin, uint64_t bytes)
{
	wire_send(&from->wire, &to->wire, &x->way, begin, bytes);
}

/* An operation has ended at `p`: its parcel goes back with the news. */
static void end(struct port *p, struct parcel *x, int status, uint64_t bytes)
{
	if (!x->context) {
		unpack(p, x);
		return;
	}
	x->kind = ENDS;
	x->status = status;
	x->way.sure = 1;
	send(p, x->from, x, now_of(p), bytes);
}

/* ---- operations ------------------------------------------------------------------------------------------ */

static struct port *port_of(const struct fabric *f)
{
	return (struct port *)(uintptr_t)f;
}

static int check(const struct fabric *f, uint32_t rank, loom_ref ref, uint64_t bytes)
{
	const struct net *n = port_of(f)->net;
	const struct port *p = rank < n->ranks ? n->port[rank] : NULL;
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

static void *at(const struct port *p, loom_ref ref)
{
	return (char *)p->memory.at[LOOM_REF_SEGMENT(ref)] + LOOM_REF_OFFSET(ref);
}

/* A message has met its receive, at `p`. */
static void meet(struct port *p, struct parcel *sent, struct parcel *received)
{
	int status = sent->io.bytes > received->io.bytes ? EMSGSIZE : 0;
	if (!status && sent->io.bytes)
		memcpy(received->local, sent->local, sent->io.bytes);
	received->kind = ENDS;
	received->status = status;
	received->way.turn = sent->way.turn;
	wire_put(&p->wire, &received->way, now_of(p));
	p->wire.clock->wake(p->wire.clock, p->wire.agent, now_of(p));
	end(p, sent, status, 0);
}

static int start(struct fabric *f, const struct fabric_io *io, struct fabric_context *context, int *status)
{
	struct port *p = port_of(f);
	struct parcel *x = pack(p), *sent;
	(void)status;
	if (!x)
		return LOOM_EAGAIN;
	x->io = *io;
	x->context = context;
	x->local = at(p, io->local);
	if (io->op == LOOM_NET_RECV) {
		if ((sent = matching(&p->early, io->match)))
			meet(p, sent, x);
		else
			append(&p->receives, x);
		return 0;
	}
	struct port *to = p->net->port[io->target];
	if (io->op != LOOM_NET_SEND)
		x->remote = at(to, io->remote);
	send(p, to, x, now_of(p) + p->net->overhead, io->op == LOOM_NET_GET ? 0 : io->bytes);
	return 0;
}

static int notify(struct fabric *f, uint32_t target, uint32_t word, struct fabric_context *context, int *status)
{
	struct port *p = port_of(f);
	struct parcel *x = pack(p);
	(void)status;
	if (!x)
		return LOOM_EAGAIN;
	x->io = (struct fabric_io){.op = LOOM_NET_COUNT, .notify = word};
	x->context = context;
	send(p, p->net->port[target], x, now_of(p) + p->net->overhead, sizeof(uint64_t));
	return 0;
}

static void cancel(struct fabric *f, struct fabric_context *context)
{
	struct port *p = port_of(f);
	for (struct parcel **list = &p->receives; *list; list = &(*list)->next)
		if ((*list)->context == context) {
			struct parcel *x = *list;
			*list = x->next;
			x->kind = ENDS;
			x->status = ECANCELED;
			wire_put(&p->wire, &x->way, 0); /* between samples: at the begin of the next one it is found */
			return;
		}
}

static void sum(const struct parcel *x)
{
	uint64_t n = x->io.bytes / fabric_type_bytes(x->io.type);
	for (uint64_t i = 0; i < n; i++)
		if (x->io.type == LOOM_NET_F32)
			((float *)x->remote)[i] += ((const float *)x->local)[i];
		else
			((uint64_t *)x->remote)[i] += ((const uint64_t *)x->local)[i];
}

/* An operation reaches this port. */
static void arrive(struct port *p, struct parcel *x)
{
	struct parcel *mine;
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
		if ((mine = matching(&p->receives, x->io.match)))
			meet(p, x, mine);
		else
			append(&p->early, x);
		return;
	default:;
	}
	end(p, x, 0, x->io.op == LOOM_NET_GET || x->io.fetch ? x->io.bytes : 0);
}

/* What has come. 1: it is an event of the caller's, *out. */
static uint32_t happen(struct port *p, struct parcel *x, struct fabric_event *out)
{
	if (x->way.lost) { /* the sender gives up */
		x->kind = ENDS;
		x->status = ETIMEDOUT;
	}
	if (x->kind == ARRIVES) {
		*out = (struct fabric_event){.what = FABRIC_ARRIVED, .notify = x->io.notify};
		arrive(p, x);
		return out->notify != 0;
	}
	*out = (struct fabric_event){.what = x->status ? FABRIC_FAILED : FABRIC_DONE, .status = x->status, .context = x->context};
	unpack(p, x);
	return 1;
}

static int poll(struct fabric *f, struct fabric_event *out, uint32_t room)
{
	struct port *p = port_of(f);
	struct wire_message *x;
	uint32_t n = 0;
	while (n < room && (x = wire_take(&p->wire)))
		n += happen(p, (struct parcel *)x, &out[n]);
	return p->wire.lost_memory ? LOOM_ENOMEM : (int)n;
}

/* ---- opening -------------------------------------------------------------------------------------------- */

static int share(struct fabric *f, const struct loom_segments *s, struct loom_error *err)
{
	struct port *p = port_of(f);
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
	int rc = host->allgather(host, &mine, all, sizeof(mine), err); /* now all ranks have */
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
	wire_begin(&port_of(f)->wire);
}

static void stop(struct fabric *f)
{
	attach(f, NULL, NULL);
}

static void net_close(struct fabric *f)
{
	struct port *p = port_of(f);
	const struct loom_host *host = f->host;
	pthread_mutex_lock(&lock);
	leave(p);
	pthread_mutex_unlock(&lock);
	wire_close(&p->wire);
	host->free(host, (void *)p->memory.at);
	host->free(host, (void *)p->memory.bytes);
	host->free(host, p);
}

static const struct fabric_ops net_ops = {.stop = stop,
					  .close = net_close,
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

int net_open(const struct loom_host *host, const struct fabric_want *want, struct fabric **fabric, struct loom_error *err)
{
	const struct net_model *model = want->net;
	const void *job = LOOM_HAS(host, job) ? host->job : host;
	if (want->trigger || !model)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP, "provider = sim: the simulated network triggers nothing by itself: "
				 "choose another trigger");
	if (host->ranks > 1 && job == host)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "provider = sim: the network is simulated together with the devices: choose devices = sim:0");
	struct port *p = host->alloc(host, sizeof(*p));
	if (!p)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	p->is = (struct fabric){.ops = &net_ops, .host = host, .name = "sim", .fetches = 1, .fd = -1};
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
