/* SPDX-License-Identifier: Apache-2.0 */
#include "../shared/mix.h"
#include "net.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 7

/* What is under way to a port. */
enum event_kind { ARRIVES, ENDS };
struct event {
	uint64_t due, turn;
	uint32_t kind;
	int32_t status;
	struct fabric_io io;
	struct port *from;
	void *local, *remote;
	struct fabric_context *context; /* of `from`; NULL: the message alone */
};

/* A receive that was posted, or a message that came before one. */
struct waiting {
	struct event event;
	struct waiting *next;
};

struct link {
	uint64_t free_at;
};

/* A rank's endpoint. */
struct port {
	struct fabric is; /* first */
	struct net *net;
	uint32_t rank;
	const struct loom_time *time;
	struct loom_agent *agent;
	struct loom_segments memory;
	struct event *event; /* [events]: a heap by (due, turn) */
	uint32_t events, room;
	struct waiting *receives, *early;
	int lost_memory; /* an event found no place: the run cannot go on */
};

/* The network of a job. */
struct net {
	const void *job;
	struct net *next;
	const struct net_model *model;
	uint32_t ranks, hosts, leaves, opened;
	uint32_t dead[2];
	uint64_t messages;
	struct port **port;	     /* [ranks] */
	struct link *out, *in;	     /* [hosts] */
	struct link *up, *down;	     /* [leaves * uplinks] */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct net *nets;

/* ---- who is there ---------------------------------------------------------------------------------- */

static void net_free(struct net *n)
{
	free(n->port);
	free(n->out);
	free(n->in);
	free(n->up);
	free(n->down);
	free(n);
}

static struct net *net_make(const void *job, uint32_t ranks, const struct net_model *model)
{
	struct net *n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->job = job;
	n->model = model;
	n->ranks = ranks;
	n->hosts = (ranks + model->sim_ranks_per_host - 1) / model->sim_ranks_per_host;
	n->leaves = model->sim_hosts_per_leaf ? (n->hosts + model->sim_hosts_per_leaf - 1) / model->sim_hosts_per_leaf : 1;
	n->port = calloc(ranks, sizeof(*n->port));
	n->out = calloc(n->hosts, sizeof(*n->out));
	n->in = calloc(n->hosts, sizeof(*n->in));
	n->up = calloc((size_t)n->leaves * model->sim_uplinks, sizeof(*n->up));
	n->down = calloc((size_t)n->leaves * model->sim_uplinks, sizeof(*n->down));
	n->dead[0] = n->dead[1] = UINT32_MAX;
	if (n->port && n->out && n->in && n->up && n->down)
		return n;
	net_free(n);
	return NULL;
}

static int join(struct port *p, const void *job, const struct net_model *model)
{
	struct net *n = nets;
	while (n && n->job != job)
		n = n->next;
	if (!n) {
		n = net_make(job, p->is.host->ranks, model);
		if (!n)
			return LOOM_ENOMEM;
		n->next = nets;
		nets = n;
	}
	n->opened++;
	n->port[p->rank] = p;
	p->net = n;
	return 0;
}

static void leave(struct port *p)
{
	struct net *n = p->net;
	n->port[p->rank] = NULL;
	if (--n->opened)
		return;
	for (struct net **at = &nets; *at; at = &(*at)->next)
		if (*at == n) {
			*at = n->next;
			break;
		}
	net_free(n);
}

/* ---- events ------------------------------------------------------------------------------------------ */

static int before(const struct event *a, const struct event *b)
{
	return a->due < b->due || (a->due == b->due && a->turn < b->turn);
}

static void insert(struct port *p, const struct event *e)
{
	if (p->events == p->room) {
		uint32_t room = p->room ? 2 * p->room : 16;
		struct event *more = realloc(p->event, room * sizeof(*more));
		if (!more) {
			p->lost_memory = 1;
			return;
		}
		p->event = more;
		p->room = room;
	}
	uint32_t at = p->events++;
	for (; at && before(e, &p->event[(at - 1) / 2]); at = (at - 1) / 2)
		p->event[at] = p->event[(at - 1) / 2];
	p->event[at] = *e;
}

static void add(struct port *p, const struct event *e)
{
	insert(p, e);
	p->time->wake(p->time, p->agent, e->due);
}

static struct event take(struct port *p)
{
	struct event first = p->event[0], last = p->event[--p->events];
	uint32_t at = 0, child;
	while ((child = 2 * at + 1) < p->events) {
		child += child + 1 < p->events && before(&p->event[child + 1], &p->event[child]);
		if (!before(&p->event[child], &last))
			break;
		p->event[at] = p->event[child];
		at = child;
	}
	p->event[at] = last;
	return first;
}

/* ---- the way of a message ------------------------------------------------------------------------------ */

static uint64_t now_of(const struct port *p)
{
	return p->time->now_ns(p->time);
}

static uint64_t wire_ns(double rate, uint64_t bytes)
{
	return (uint64_t)((double)bytes * 1e9 / rate);
}

/* Over a link that serves one after the other: when its first byte has passed. */
static uint64_t pass(struct link *l, uint64_t at, uint64_t takes)
{
	at = at > l->free_at ? at : l->free_at;
	l->free_at = at + takes;
	return at;
}

/* What losses cost; *lost: it never comes. */
static uint64_t losses(struct net *n, uint32_t from, uint32_t to, int *lost)
{
	const struct net_model *m = n->model;
	uint64_t id = ++n->messages, late = m->sim_jitter ? mix64(id) % m->sim_jitter : 0;
	int dead = (from == n->dead[0] && to == n->dead[1]) || (from == n->dead[1] && to == n->dead[0]);
	for (int i = 1; i <= TRIES; i++) {
		double draw = (double)(mix64(mix64(id) + (uint64_t)i) >> 11) / 9007199254740992.0;
		if (!dead && draw >= m->sim_loss)
			return late;
		late += m->sim_retry;
	}
	*lost = 1;
	return late;
}

/* When a message of `bytes` that begins now is whole at its target. */
static uint64_t travel(struct port *from, uint32_t to, uint64_t begin, uint64_t bytes, int *lost)
{
	struct net *n = from->net;
	const struct net_model *m = n->model;
	uint32_t a = from->rank / m->sim_ranks_per_host, b = to / m->sim_ranks_per_host;
	uint64_t late = losses(n, from->rank, to, lost);
	if (a == b)
		return begin + m->sim_local + wire_ns(m->sim_local_rate, bytes) + late;
	uint64_t takes = wire_ns(m->sim_rate, bytes), at = pass(&n->out[a], begin, m->sim_gap + takes) + m->sim_latency + late;
	if (m->sim_hosts_per_leaf && a / m->sim_hosts_per_leaf != b / m->sim_hosts_per_leaf) {
		uint32_t which = (a + b) % m->sim_uplinks;
		at = pass(&n->up[a / m->sim_hosts_per_leaf * m->sim_uplinks + which], at, takes) + m->sim_hop;
		at = pass(&n->down[b / m->sim_hosts_per_leaf * m->sim_uplinks + which], at, takes) + m->sim_hop;
	}
	return pass(&n->in[b], at, takes) + takes;
}

/* From one port to the other: an operation, or the news of its end. */
static void send(struct port *from, struct port *to, struct event *e, uint64_t begin, uint64_t bytes)
{
	int lost = 0;
	e->due = travel(from, to->rank, begin, bytes, &lost);
	e->turn = from->net->messages;
	if (lost && e->kind == ARRIVES) { /* the sender gives up */
		e->kind = ENDS;
		e->status = ETIMEDOUT;
		to = from;
	}
	add(to, e);
}

static void end(struct port *at, const struct event *e, int status, uint64_t bytes)
{
	struct event ack = *e;
	if (!e->context)
		return;
	ack.kind = ENDS;
	ack.status = status;
	send(at, e->from, &ack, now_of(at), bytes);
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

static void hang_on(struct waiting **list, const struct event *e, int *failed)
{
	struct waiting *w = malloc(sizeof(*w));
	if (!w) {
		*failed = 1;
		return;
	}
	*w = (struct waiting){.event = *e};
	while (*list)
		list = &(*list)->next;
	*list = w;
}

/* The first in the list with that match: 1 and *e. */
static int unhang(struct waiting **list, uint64_t match, struct event *e)
{
	for (; *list; list = &(*list)->next)
		if ((*list)->event.io.match == match) {
			struct waiting *w = *list;
			*e = w->event;
			*list = w->next;
			free(w);
			return 1;
		}
	return 0;
}

/* A message has met its receive, at `p`. */
static void meet(struct port *p, struct event *sent, struct event *received)
{
	int status = sent->io.bytes > received->io.bytes ? EMSGSIZE : 0;
	if (!status && sent->io.bytes)
		memcpy(received->local, sent->local, sent->io.bytes);
	end(p, sent, status, 0);
	received->kind = ENDS;
	received->status = status;
	received->due = now_of(p);
	add(p, received);
}

static int receive(struct port *p, const struct fabric_io *io, struct fabric_context *context)
{
	struct event mine = {.io = *io, .context = context, .local = at(p, io->local), .from = p}, sent;
	int failed = 0;
	if (unhang(&p->early, io->match, &sent))
		meet(p, &sent, &mine);
	else
		hang_on(&p->receives, &mine, &failed);
	return failed ? LOOM_EAGAIN : 0;
}

static int start(struct fabric *f, const struct fabric_io *io, struct fabric_context *context, int *status)
{
	struct port *p = port_of(f);
	(void)status;
	if (io->op == LOOM_NET_RECV)
		return receive(p, io, context);
	struct port *to = p->net->port[io->target];
	struct event e = {.kind = ARRIVES, .io = *io, .from = p, .context = context, .local = at(p, io->local)};
	if (io->op != LOOM_NET_SEND)
		e.remote = at(to, io->remote);
	send(p, to, &e, now_of(p) + p->net->model->sim_overhead, io->op == LOOM_NET_GET ? 0 : io->bytes);
	return 0;
}

static int notify(struct fabric *f, uint32_t target, uint32_t word, struct fabric_context *context, int *status)
{
	struct port *p = port_of(f);
	struct event e = {.kind = ARRIVES, .io = {.op = LOOM_NET_COUNT, .notify = word}, .from = p, .context = context};
	(void)status;
	send(p, p->net->port[target], &e, now_of(p) + p->net->model->sim_overhead, sizeof(uint64_t));
	return 0;
}

static void cancel(struct fabric *f, struct fabric_context *context)
{
	struct port *p = port_of(f);
	for (struct waiting **list = &p->receives; *list; list = &(*list)->next)
		if ((*list)->event.context == context) {
			struct waiting *w = *list;
			w->event.kind = ENDS;
			w->event.status = ECANCELED;
			w->event.due = 0;
			*list = w->next;
			insert(p, &w->event); /* between samples: at the begin of the next one it is found */
			free(w);
			return;
		}
}

static void sum(const struct event *e)
{
	uint64_t n = e->io.bytes / fabric_type_bytes(e->io.type);
	for (uint64_t i = 0; i < n; i++)
		if (e->io.type == LOOM_NET_F32)
			((float *)e->remote)[i] += ((const float *)e->local)[i];
		else
			((uint64_t *)e->remote)[i] += ((const uint64_t *)e->local)[i];
}

/* An operation reaches this port. */
static void arrive(struct port *p, struct event *e)
{
	struct event mine;
	int failed = 0;
	switch (e->io.op) {
	case LOOM_NET_PUT:
		memcpy(e->remote, e->local, e->io.bytes);
		end(p, e, 0, 0);
		break;
	case LOOM_NET_GET:
		memcpy(e->local, e->remote, e->io.bytes);
		end(p, e, 0, e->io.bytes);
		break;
	case LOOM_NET_ADD:
		sum(e);
		end(p, e, 0, 0);
		break;
	case LOOM_NET_SEND:
		if (unhang(&p->receives, e->io.match, &mine))
			meet(p, e, &mine);
		else
			hang_on(&p->early, e, &failed);
		p->lost_memory |= failed;
		break;
	default:
		end(p, e, 0, 0);
	}
}

static int poll(struct fabric *f, struct fabric_event *out, uint32_t room)
{
	struct port *p = port_of(f);
	uint32_t n = 0;
	while (n < room && p->events && p->event[0].due <= now_of(p)) {
		struct event e = take(p);
		if (e.kind == ARRIVES) {
			arrive(p, &e);
			if (e.io.notify)
				out[n++] = (struct fabric_event){.what = FABRIC_ARRIVED, .notify = e.io.notify};
		} else {
			out[n++] = (struct fabric_event){.what = e.status ? FABRIC_FAILED : FABRIC_DONE,
							 .status = e.status,
							 .context = e.context};
		}
	}
	return p->lost_memory ? LOOM_ENOMEM : (int)n;
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

static void attach(struct fabric *f, const struct loom_time *time, struct loom_agent *agent)
{
	struct port *p = port_of(f);
	p->time = time;
	p->agent = agent;
}

static uint64_t due(const struct fabric *f)
{
	const struct port *p = port_of(f);
	return p->events ? p->event[0].due : LOOM_NEVER;
}

static void begin(struct fabric *f)
{
	struct port *p = port_of(f);
	struct net *n = p->net;
	for (uint32_t i = 0; i < p->events; i++)
		p->event[i].due = 0;
	if (p->rank)
		return;
	n->messages = 0;
	memset(n->out, 0, n->hosts * sizeof(*n->out));
	memset(n->in, 0, n->hosts * sizeof(*n->in));
	memset(n->up, 0, (size_t)n->leaves * n->model->sim_uplinks * sizeof(*n->up));
	memset(n->down, 0, (size_t)n->leaves * n->model->sim_uplinks * sizeof(*n->down));
}

static void stop(struct fabric *f)
{
	attach(f, NULL, NULL);
}

static void drop_all(struct waiting **list)
{
	while (*list) {
		struct waiting *w = *list;
		*list = w->next;
		free(w);
	}
}

static void net_close(struct fabric *f)
{
	struct port *p = port_of(f);
	const struct loom_host *host = f->host;
	pthread_mutex_lock(&lock);
	leave(p);
	pthread_mutex_unlock(&lock);
	drop_all(&p->receives);
	drop_all(&p->early);
	free(p->event);
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

/* "0-3" */
static int read_dead(const char *text, uint32_t dead[2])
{
	char *end;
	dead[0] = (uint32_t)strtoul(text, &end, 10);
	if (end == text || *end != '-')
		return -1;
	text = end + 1;
	dead[1] = (uint32_t)strtoul(text, &end, 10);
	return end == text || *end ? -1 : 0;
}

int net_open(const struct loom_host *host, const struct fabric_want *want, struct fabric **fabric, struct loom_error *err)
{
	const struct net_model *model = want->net;
	const void *job = LOOM_HAS(host, job) ? host->job : host;
	uint32_t dead[2] = {UINT32_MAX, UINT32_MAX};
	if (want->trigger || !model)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP, "provider = sim: the simulated network triggers nothing by itself: "
				 "choose another trigger");
	if (host->ranks > 1 && job == host)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "provider = sim: the network is simulated together with the devices: choose devices = sim:0");
	if (*model->sim_dead && read_dead(model->sim_dead, dead))
		return LOOM_FAIL(host, err, LOOM_EINVAL, "sim_dead = %s: say two ranks, as in 0-3", model->sim_dead);
	struct port *p = host->alloc(host, sizeof(*p));
	if (!p)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	p->is = (struct fabric){.ops = &net_ops, .host = host, .name = "sim", .fd = -1};
	p->rank = host->rank;
	pthread_mutex_lock(&lock);
	int rc = join(p, job, model);
	if (!rc)
		memcpy(p->net->dead, dead, sizeof(dead));
	pthread_mutex_unlock(&lock);
	if (rc) {
		host->free(host, p);
		return LOOM_FAIL(host, err, rc, "out of memory");
	}
	*fabric = &p->is;
	return 0;
}
