/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#include <pthread.h>
#include <stdlib.h>

#include "../mix.h"
#include "platform.h"

#define TRIES 7

enum stage { WHOLE, WAITS, FLOWS }; /* for its time to come; sim_sharing = fair: for its first byte, for its last */

struct passage {
	struct flow flow; /* first */
	struct wire_message *message;
	struct wire_port *to;
};

struct wire {
	const struct net_model *model;
	uint32_t ranks, attached; /* attached: under `lock` */
	uint32_t dead[2];
	uint64_t messages;
	struct links *links;
	struct platform platform; /* that these are of; or nothing */
	/* Messages take their links in the order of time, whoever is played first: an agent of the network's own sees to that.
	 * NULL: they do so by themselves. */
	struct loom_agent *agent;
	struct heap leaving;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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

static int fill(struct wire *w, const struct loom_host *host, struct loom_error *err)
{
	const struct net_model *m = w->model;
	uint32_t hosts = (w->ranks + m->sim_ranks_per_host - 1) / m->sim_ranks_per_host;
	w->dead[0] = w->dead[1] = UINT32_MAX;
	if (*m->sim_dead && read_dead(m->sim_dead, w->dead))
		return LOOM_FAIL(host, err, LOOM_EINVAL, "sim_dead = %s: say two ranks, as in 0-3", m->sim_dead);
	if (m->sim_leaves_per_group && !m->sim_hosts_per_leaf)
		return LOOM_FAIL(host, err, LOOM_EINVAL, "sim_leaves_per_group = %u: say sim_hosts_per_leaf, too",
				 m->sim_leaves_per_group);
	int rc = *m->sim_platform ? platform_read(host, m->sim_platform, hosts, &w->platform, err) : 0;
	if (rc)
		return rc;
	w->links = *m->sim_platform ? links_of_platform(m, &w->platform) : links_create(m, hosts);
	return w->links ? 0 : LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory, or a network of more than %u links", LINKS_MAX);
}

int wire_create(const struct loom_host *host, const struct net_model *model, struct wire **wire, struct loom_error *err)
{
	struct wire *w = calloc(1, sizeof(*w));
	if (!w)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	w->model = model;
	w->ranks = host->ranks;
	int rc = fill(w, host, err);
	if (rc)
		wire_destroy(w);
	else
		*wire = w;
	return rc;
}

void wire_destroy(struct wire *w)
{
	if (!w)
		return;
	free(w->leaving.at);
	links_destroy(w->links);
	platform_drop(&w->platform);
	free(w);
}

void wire_join(struct wire *w, uint32_t rank, struct wire_port *p)
{
	*p = (struct wire_port){.wire = w, .rank = rank, .host = rank / w->model->sim_ranks_per_host};
}

void wire_close(struct wire_port *p)
{
	free(p->due.at);
	p->due = (struct heap){0};
}

void wire_forget(struct wire_message *x)
{
	free(x->passage);
}

/* ---- events ------------------------------------------------------------------------------------------ */

static uint64_t now_of(const struct wire_port *p)
{
	return p->clock->now_ns(p->clock);
}

/* On behalf of p. */
static void insert(struct wire_port *p, struct heap *h, struct wire_message *x, uint64_t due, uint32_t *seat)
{
	if (heap_make_room(h, h->live + 1))
		p->lost_memory = 1;
	else
		heap_add(h, (struct heap_entry){.due = due, .turn = x->turn, .what = x, .seat = seat});
}

void wire_put(struct wire_port *p, struct wire_message *x, uint64_t due)
{
	x->stage = WHOLE;
	x->lost = 0;
	insert(p, &p->due, x, due, NULL);
}

uint64_t wire_due(const struct wire_port *p)
{
	return p->due.live ? p->due.at[0].due : LOOM_NEVER;
}

/* ---- the way of a message ------------------------------------------------------------------------------ */

/* What losses cost; *lost: it never comes. */
static uint64_t losses(const struct wire *w, uint64_t id, uint32_t from, uint32_t to, uint8_t *lost)
{
	const struct net_model *m = w->model;
	uint64_t late = m->sim_jitter ? mix64(id) % m->sim_jitter : 0;
	if (!(m->sim_loss > 0) && w->dead[0] == UINT32_MAX)
		return late;
	int dead = (from == w->dead[0] && to == w->dead[1]) || (from == w->dead[1] && to == w->dead[0]);
	for (int i = 1; i <= TRIES; i++) {
		double draw = (double)(mix64(mix64(id) + (uint64_t)i) >> 11) / 9007199254740992.0;
		if (!dead && draw >= m->sim_loss)
			return late;
		late += m->sim_retry;
	}
	*lost = 1;
	return late;
}

/* New ends for these flows: their messages come earlier or later. */
static void reschedule(struct flow *f)
{
	for (; f; f = f->moved) {
		struct wire_port *to = ((struct passage *)f)->to;
		heap_move(&to->due, ((struct passage *)f)->message->seat, f->ends);
		to->clock->wake(to->clock, to->agent, f->ends);
	}
}

/* The first byte leaves: from now on the message shares its links. */
static void depart(struct wire_port *to, struct wire_message *x, uint64_t now)
{
	x->stage = FLOWS;
	x->passage->to = to;
	x->passage->message = x;
	insert(to, &to->due, x, LOOM_NEVER, &x->seat);
	if (to->lost_memory)
		return;
	reschedule(links_begin(to->wire->links, &x->passage->flow, now));
}

/* Between hosts. When it comes; where links are shared, when its first byte does. */
static uint64_t over_links(struct wire *w, struct wire_message *x, uint32_t a, uint32_t b, uint64_t id)
{
	struct route route = links_route(w->links, a, b, w->model->sim_routing == NET_VALIANT ? mix64(~id) : 0);
	if (w->model->sim_sharing == NET_QUEUE)
		return links_queue(w->links, &route, x->begin, x->bytes);
	if (x->bytes && !x->passage)
		x->passage = calloc(1, sizeof(*x->passage));
	x->from->lost_memory |= x->bytes && !x->passage;
	if (x->bytes && x->passage) {
		x->stage = WAITS;
		x->passage->flow.route = route;
		x->passage->flow.left = (double)x->bytes;
	}
	return links_enter(w->links, &route, x->begin) + route.latency;
}

static void pass(struct wire *w, struct wire_message *x)
{
	const struct net_model *m = w->model;
	struct wire_port *to = x->to;
	uint32_t a = x->from->host, b = to->host;
	uint64_t id = ++w->messages, due, late = losses(w, id, x->from->rank, to->rank, &x->lost);
	x->turn = id;
	x->lost &= !x->sure;
	to = x->lost ? x->from : to;
	due = a == b ? x->begin + m->sim_local + (uint64_t)((double)x->bytes * 1e9 / m->sim_local_rate) :
		       over_links(w, x, a, b, id);
	insert(to, &to->due, x, due + late, NULL);
	to->clock->wake(to->clock, to->agent, due + late);
}

static uint64_t let_leave(void *arg, uint64_t now_ns)
{
	struct wire *w = arg;
	struct wire_message *some[32]; /* whose memory is asked for in time */
	for (uint32_t all = 1; all;) {
		for (all = 0; all < 32 && w->leaving.live && w->leaving.at[0].due <= now_ns; all++)
			__builtin_prefetch(some[all] = heap_take(&w->leaving));
		for (uint32_t i = 0; i < all; i++)
			__builtin_prefetch(some[i]->to);
		for (uint32_t i = 0; i < all; i++) {
			__builtin_prefetch(some[i]->to->agent);
			__builtin_prefetch(some[i]->to->due.at);
		}
		for (uint32_t i = 0; i < all; i++)
			pass(w, some[i]);
	}
	return w->leaving.live ? w->leaving.at[0].due : LOOM_NEVER;
}

void wire_send(struct wire_port *from, struct wire_port *to, struct wire_message *x, uint64_t begin, uint64_t bytes)
{
	struct wire *w = from->wire;
	x->from = from;
	x->to = to;
	x->begin = begin;
	x->bytes = bytes;
	x->stage = WHOLE;
	x->lost = 0;
	if (!w->agent) {
		pass(w, x);
		return;
	}
	x->turn = (uint64_t)from->rank << 40 | ++from->sent; /* whose time is the same */
	insert(from, &w->leaving, x, begin, NULL);
	from->clock->wake(from->clock, w->agent, begin);
}

struct wire_message *wire_take(struct wire_port *p)
{
	while (p->due.live && p->due.at[0].due <= now_of(p)) {
		struct wire_message *x = heap_take(&p->due);
		if (x->stage == WAITS) {
			depart(p, x, now_of(p));
			continue;
		}
		if (x->stage == FLOWS)
			reschedule(links_end(p->wire->links, &x->passage->flow, now_of(p)));
		return x;
	}
	return NULL;
}

/* ---- samples ------------------------------------------------------------------------------------------- */

/* What a message needs at least. Where messages share links the end of one changes when others end, at once. */
static uint64_t distance(const struct wire *w)
{
	const struct net_model *m = w->model;
	uint64_t local = m->sim_ranks_per_host > 1 ? m->sim_local : LOOM_NEVER;
	uint64_t least = w->platform.map ? w->platform.least : m->sim_latency;
	return m->sim_sharing == NET_FAIR ? 0 : local < least ? local : least;
}

void wire_attach(struct wire_port *p, const struct loom_clock *time, struct loom_agent *agent)
{
	struct wire *w = p->wire;
	pthread_mutex_lock(&lock);
	if (!p->clock && time && !w->attached++ && distance(w) && LOOM_HAS(time, start_between) &&
	    time->start_between(time, "network", let_leave, w, distance(w), &w->agent))
		w->agent = NULL; /* then ranks are played together */
	if (p->clock && !time && !--w->attached) {
		p->clock->stop(p->clock, w->agent);
		w->agent = NULL;
	}
	pthread_mutex_unlock(&lock);
	p->clock = time;
	p->agent = agent;
}

void wire_begin(struct wire_port *p)
{
	struct wire *w = p->wire;
	for (uint32_t i = 0, had = p->due.live; i < had; i++) {
		struct heap_entry e = p->due.at[i];
		((struct wire_message *)e.what)->stage = WHOLE;
		e.due = 0;
		heap_rise(&p->due, i, e);
	}
	p->sent = 0;
	if (p->rank)
		return;
	w->messages = 0;
	w->leaving.live = 0; /* of a sample that failed */
	links_reset(w->links);
}
