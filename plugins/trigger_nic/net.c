/* SPDX-License-Identifier: Apache-2.0 */
#include "../shared/heap.h"
#include "../shared/mix.h"
#include "links.h"
#include "net.h"
#include "platform.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 7

/* An operation, or the news of its end, on its way to a port. */
enum parcel_kind { ARRIVES, ENDS };
enum parcel_stage { WHOLE, WAITS, FLOWS }; /* for its time to come; sim_sharing = fair: for its first byte, for its last */
struct parcel {
	struct parcel *next; /* in a list */
	uint32_t kind, stage;
	int32_t status;
	uint32_t seat; /* in its heap */
	uint64_t turn;
	struct fabric_io io;
	struct port *from; /* whose operation it is */
	struct {
		struct port *from, *to;
		uint64_t begin, bytes;
	} way;
	void *local, *remote;
	struct fabric_context *context; /* of `from`; NULL: the message alone */
	struct passage *passage;	/* sim_sharing = fair */
	struct parcel *made;		/* the next one of the network's */
};

struct passage {
	struct flow flow; /* first */
	struct parcel *parcel;
	struct port *to;
};

/* A rank's endpoint. */
struct port {
	struct fabric is; /* first */
	struct net *net;
	uint32_t rank;
	const struct loom_time *time;
	struct loom_agent *agent;
	struct loom_segments memory;
	struct heap due;
	uint64_t sent;
	struct parcel *receives, *early; /* posted; come before a receive */
	struct parcel *unused;		 /* an operation's parcel comes back with its end */
	int lost_memory; /* an event found no place: the run cannot go on */
};

/* The network of a job. */
struct net {
	const void *job;
	struct net *next;
	const struct net_model *model;
	uint32_t ranks, opened;
	uint32_t dead[2];
	uint64_t messages;
	struct port **port; /* [ranks] */
	struct links *links;
	struct platform platform; /* that these are of; or nothing */
	/* Messages take their links in the order of time, whoever is played first: an agent of the network's own sees to that.
	 * NULL: they do so by themselves. */
	struct loom_agent *agent;
	struct heap leaving;
	uint32_t attached;
	struct parcel *made; /* all; under `lock`, as `attached` */
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
		free(x->passage);
		free(x);
	}
	free(n->leaving.at);
	free(n->port);
	links_destroy(n->links);
	platform_drop(&n->platform);
	free(n);
}

static int net_fill(struct net *n, const struct loom_host *host, struct loom_error *err)
{
	const struct net_model *m = n->model;
	uint32_t hosts = (n->ranks + m->sim_ranks_per_host - 1) / m->sim_ranks_per_host;
	int rc = *m->sim_platform ? platform_read(host, m->sim_platform, hosts, &n->platform, err) : 0;
	if (rc)
		return rc;
	n->port = calloc(n->ranks, sizeof(*n->port));
	n->links = *m->sim_platform ? links_of_platform(m, &n->platform) : links_create(m, hosts);
	return n->port && n->links ? 0 : LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory, or a network of more than %u links",
						   LINKS_MAX);
}

static int net_make(const struct loom_host *host, const void *job, const struct net_model *model, struct net **net,
		    struct loom_error *err)
{
	struct net *n = calloc(1, sizeof(*n));
	if (!n)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	n->job = job;
	n->model = model;
	n->ranks = host->ranks;
	n->dead[0] = n->dead[1] = UINT32_MAX;
	int rc = net_fill(n, host, err);
	if (rc)
		net_free(n);
	else
		*net = n;
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

/* On behalf of p. */
static void insert(struct port *p, struct heap *h, struct parcel *x, uint64_t due)
{
	if (heap_make_room(h, h->live + 1))
		p->lost_memory = 1;
	else
		heap_add(h, (struct heap_entry){.due = due, .turn = x->turn, .what = x, .seat = &x->seat});
}

static void add(struct port *p, struct parcel *x, uint64_t due)
{
	insert(p, &p->due, x, due);
	p->time->wake(p->time, p->agent, due);
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
	*x = (struct parcel){.from = p, .passage = x->passage, .made = x->made};
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

/* ---- the way of a message ------------------------------------------------------------------------------ */

static uint64_t now_of(const struct port *p)
{
	return p->time->now_ns(p->time);
}

/* What losses cost; *lost: it never comes. */
static uint64_t losses(struct net *n, uint64_t id, uint32_t from, uint32_t to, int *lost)
{
	const struct net_model *m = n->model;
	uint64_t late = m->sim_jitter ? mix64(id) % m->sim_jitter : 0;
	if (!(m->sim_loss > 0) && n->dead[0] == UINT32_MAX)
		return late;
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

/* New ends for these flows: their parcels come earlier or later. */
static void reschedule(struct flow *f)
{
	for (; f; f = f->moved) {
		struct port *to = ((struct passage *)f)->to;
		heap_move(&to->due, ((struct passage *)f)->parcel->seat, f->ends);
		to->time->wake(to->time, to->agent, f->ends);
	}
}

/* The first byte leaves: from now on the parcel shares its links. */
static void depart(struct port *to, struct parcel *x, uint64_t now)
{
	x->stage = FLOWS;
	x->passage->to = to;
	x->passage->parcel = x;
	insert(to, &to->due, x, LOOM_NEVER);
	if (to->lost_memory)
		return;
	reschedule(links_begin(to->net->links, &x->passage->flow, now));
}

static void pass(struct net *n, struct parcel *x)
{
	const struct net_model *m = n->model;
	struct port *from = x->way.from, *to = x->way.to;
	uint32_t a = from->rank / m->sim_ranks_per_host, b = to->rank / m->sim_ranks_per_host;
	int lost = 0;
	uint64_t begin = x->way.begin, bytes = x->way.bytes;
	uint64_t id = ++n->messages, due, late = losses(n, id, from->rank, to->rank, &lost);
	x->turn = id;
	x->stage = WHOLE;
	if (lost && x->kind == ARRIVES) { /* the sender gives up */
		x->kind = ENDS;
		x->status = ETIMEDOUT;
		to = from;
	}
	if (a == b) {
		due = begin + m->sim_local + (uint64_t)((double)bytes * 1e9 / m->sim_local_rate);
	} else {
		struct route route = links_route(n->links, a, b, m->sim_routing == NET_VALIANT ? mix64(~id) : 0);
		if (m->sim_sharing == NET_QUEUE) {
			due = links_queue(n->links, &route, begin, bytes);
		} else {
			due = links_enter(n->links, &route, begin) + route.latency;
			if (bytes && !x->passage)
				x->passage = calloc(1, sizeof(*x->passage));
			from->lost_memory |= bytes && !x->passage;
			if (bytes && x->passage) {
				x->stage = WAITS;
				x->passage->flow.route = route;
				x->passage->flow.left = (double)bytes;
			}
		}
	}
	add(to, x, due + late);
}

static uint64_t let_leave(void *arg, uint64_t now_ns)
{
	struct net *n = arg;
	struct parcel *some[32]; /* whose memory is asked for in time */
	for (uint32_t all = 1; all;) {
		for (all = 0; all < 32 && n->leaving.live && n->leaving.at[0].due <= now_ns; all++)
			__builtin_prefetch(&(some[all] = heap_take(&n->leaving))->way);
		for (uint32_t i = 0; i < all; i++) {
			__builtin_prefetch(&some[i]->way.to->net);
			__builtin_prefetch(&some[i]->way.to->due);
		}
		for (uint32_t i = 0; i < all; i++) {
			__builtin_prefetch(some[i]->way.to->agent);
			__builtin_prefetch(some[i]->way.to->due.at);
		}
		for (uint32_t i = 0; i < all; i++)
			pass(n, some[i]);
	}
	return n->leaving.live ? n->leaving.at[0].due : LOOM_NEVER;
}

/* From one port to the other, `bytes` that begin then. */
static void send(struct port *from, struct port *to, struct parcel *x, uint64_t begin, uint64_t bytes)
{
	struct net *n = from->net;
	x->way.from = from;
	x->way.to = to;
	x->way.begin = begin;
	x->way.bytes = bytes;
	if (!n->agent) {
		pass(n, x);
		return;
	}
	x->turn = (uint64_t)from->rank << 40 | ++from->sent; /* whose time is the same */
	insert(from, &n->leaving, x, begin);
	from->time->wake(from->time, n->agent, begin);
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
	received->stage = WHOLE;
	received->status = status;
	received->turn = sent->turn;
	add(p, received, now_of(p));
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
	send(p, to, x, now_of(p) + p->net->model->sim_overhead, io->op == LOOM_NET_GET ? 0 : io->bytes);
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
	send(p, p->net->port[target], x, now_of(p) + p->net->model->sim_overhead, sizeof(uint64_t));
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
			insert(p, &p->due, x, 0); /* between samples: at the begin of the next one it is found */
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

/* An event whose time has come. 1: it is one of the caller's, *out. */
static uint32_t happen(struct port *p, struct parcel *x, struct fabric_event *out)
{
	if (x->stage == WAITS) {
		depart(p, x, now_of(p));
		return 0;
	}
	if (x->stage == FLOWS)
		reschedule(links_end(p->net->links, &x->passage->flow, now_of(p)));
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
	uint32_t n = 0;
	while (n < room && p->due.live && p->due.at[0].due <= now_of(p))
		n += happen(p, heap_take(&p->due), &out[n]);
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

/* What a message needs at least. Where messages share links the end of one changes when others end, at once. */
static uint64_t distance(const struct net *n)
{
	const struct net_model *m = n->model;
	uint64_t local = m->sim_ranks_per_host > 1 ? m->sim_local : LOOM_NEVER;
	uint64_t least = n->platform.map ? n->platform.least : m->sim_latency;
	return m->sim_sharing == NET_FAIR ? 0 : local < least ? local : least;
}

static void attach(struct fabric *f, const struct loom_time *time, struct loom_agent *agent)
{
	struct port *p = port_of(f);
	struct net *n = p->net;
	pthread_mutex_lock(&lock);
	if (!p->time && time && !n->attached++ && distance(n) && LOOM_HAS(time, start_between) &&
	    time->start_between(time, "network", let_leave, n, distance(n), &n->agent))
		n->agent = NULL; /* then ranks are played together */
	if (p->time && !time && !--n->attached) {
		p->time->stop(p->time, n->agent);
		n->agent = NULL;
	}
	pthread_mutex_unlock(&lock);
	p->time = time;
	p->agent = agent;
}

static uint64_t due(const struct fabric *f)
{
	const struct port *p = port_of(f);
	return p->due.live ? p->due.at[0].due : LOOM_NEVER;
}

static void begin(struct fabric *f)
{
	struct port *p = port_of(f);
	struct net *n = p->net;
	for (uint32_t i = 0, had = p->due.live; i < had; i++) {
		struct heap_entry e = p->due.at[i];
		((struct parcel *)e.what)->stage = WHOLE;
		e.due = 0;
		heap_rise(&p->due, i, e);
	}
	p->sent = 0;
	if (p->rank)
		return;
	n->messages = 0;
	n->leaving.live = 0; /* of a sample that failed */
	links_reset(n->links);
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
	free(p->due.at);
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
	if (model->sim_leaves_per_group && !model->sim_hosts_per_leaf)
		return LOOM_FAIL(host, err, LOOM_EINVAL, "sim_leaves_per_group = %u: say sim_hosts_per_leaf, too",
				 model->sim_leaves_per_group);
	struct port *p = host->alloc(host, sizeof(*p));
	if (!p)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	p->is = (struct fabric){.ops = &net_ops, .host = host, .name = "sim", .fetches = 1, .fd = -1};
	p->rank = host->rank;
	pthread_mutex_lock(&lock);
	int rc = join(p, job, model, err);
	if (!rc)
		memcpy(p->net->dead, dead, sizeof(dead));
	pthread_mutex_unlock(&lock);
	if (rc) {
		host->free(host, p);
		return rc;
	}
	*fabric = &p->is;
	return 0;
}
