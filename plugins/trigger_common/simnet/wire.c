/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/random.h"

#define TRIES 7
#define RETRY_NS 20000u /* after this time a lost message is sent again */
#define LOCAL_NS 300u /* latency between ranks of one host */
#define LOCAL_BYTES_PER_NS 50u

struct wire {
	const struct simnet_model *model;
	uint32_t ranks, attached; /* number of ranks; number of attached ports, protected by `lock` */
	uint32_t dead[2]; /* ranks of sim_dead; UINT32_MAX: none */
	uint64_t messages; /* number of messages sent in this sample */
	struct links *links;
	/* This agent makes messages enter links in the order of their times, even if one rank is simulated ahead of
	 * another. NULL: ranks are simulated together, so messages are in order and wire_send() routes them. */
	struct loom_agent *agent;
	struct heap sending; /* messages that have not entered a link, by time; used by the agent */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Parses a pair of ranks like "0-3". Returns 0 or -1. */
static int parse_pair(const char *text, uint32_t dead[2])
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
	const struct simnet_model *m = w->model;
	uint32_t hosts = (w->ranks + m->sim_ranks_per_host - 1) / m->sim_ranks_per_host;
	w->dead[0] = w->dead[1] = UINT32_MAX;
	if (*m->sim_dead && parse_pair(m->sim_dead, w->dead))
		return LOOM_FAIL(host, err, LOOM_EINVAL, "sim_dead = %s: name two ranks, as in 0-3", m->sim_dead);
	w->links = links_create(m, hosts);
	return w->links
		   ? 0
		   : LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory, or a network of more than %u links", LINKS_MAX);
}

int wire_create(const struct loom_host *host, const struct simnet_model *model, struct wire **wire,
		struct loom_error *err)
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
	free(w->sending.at);
	links_destroy(w->links);
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

/* ---- events ------------------------------------------------------------------------------------------ */

static uint64_t now_of(const struct wire_port *p)
{
	return p->clock->now_ns(p->clock);
}

/* Adds a message to a heap of events. Called by the thread of port p. */
static void insert(struct wire_port *p, struct heap *h, struct wire_message *x, uint64_t due)
{
	if (heap_make_room(h, h->live + 1))
		p->lost_memory = 1;
	else
		heap_add(h, (struct heap_entry){.due = due, .turn = x->turn, .what = x});
}

void wire_put(struct wire_port *p, struct wire_message *x, uint64_t due)
{
	x->lost = 0;
	insert(p, &p->due, x, due);
}

uint64_t wire_due(const struct wire_port *p)
{
	return p->due.live ? p->due.at[0].due : LOOM_NEVER;
}

/* ---- messages ------------------------------------------------------------------------------------------ */

/* Returns the delay in ns that losses and jitter cause. Sets *lost if the message never arrives. */
static uint64_t losses(const struct wire *w, uint64_t id, uint32_t from, uint32_t to, uint8_t *lost)
{
	const struct simnet_model *m = w->model;
	uint64_t late = m->sim_jitter ? loom__mix64(id) % m->sim_jitter : 0;
	if (!(m->sim_loss > 0) && w->dead[0] == UINT32_MAX)
		return late;
	int dead = (from == w->dead[0] && to == w->dead[1]) || (from == w->dead[1] && to == w->dead[0]);
	for (int i = 1; i <= TRIES; i++) {
		double draw = (double)(loom__mix64(loom__mix64(id) + (uint64_t)i) >> 11) / 9007199254740992.0;
		if (!dead && draw >= m->sim_loss)
			return late;
		late += RETRY_NS;
	}
	*lost = 1;
	return late;
}

static void route_message(struct wire *w, struct wire_message *x)
{
	struct wire_port *to = x->to;
	uint32_t a = x->from->host, b = to->host;
	uint64_t id = ++w->messages, due, late = losses(w, id, x->from->rank, to->rank, &x->lost);
	x->turn = id;
	x->lost &= !x->sure;
	to = x->lost ? x->from : to;
	if (a == b) {
		due = x->begin + LOCAL_NS + x->bytes / LOCAL_BYTES_PER_NS;
	} else {
		struct link_route route = links_route(w->links, a, b);
		due = links_queue(w->links, &route, x->begin, x->bytes);
	}
	insert(to, &to->due, x, due + late);
	to->clock->wake(to->clock, to->agent, due + late);
}

static uint64_t send_due(void *arg, uint64_t now_ns)
{
	struct wire *w = arg;
	struct wire_message *due[32]; /* a batch of messages, which are prefetched */
	for (uint32_t all = 1; all;) {
		for (all = 0; all < 32 && w->sending.live && w->sending.at[0].due <= now_ns; all++)
			__builtin_prefetch(due[all] = heap_take(&w->sending));
		for (uint32_t i = 0; i < all; i++)
			__builtin_prefetch(due[i]->to);
		for (uint32_t i = 0; i < all; i++) {
			__builtin_prefetch(due[i]->to->agent);
			__builtin_prefetch(due[i]->to->due.at);
		}
		for (uint32_t i = 0; i < all; i++)
			route_message(w, due[i]);
	}
	return w->sending.live ? w->sending.at[0].due : LOOM_NEVER;
}

void wire_send(struct wire_port *from, struct wire_port *to, struct wire_message *x, uint64_t begin, uint64_t bytes)
{
	struct wire *w = from->wire;
	x->from = from;
	x->to = to;
	x->begin = begin;
	x->bytes = bytes;
	x->lost = 0;
	if (!w->agent) {
		route_message(w, x);
		return;
	}
	x->turn = (uint64_t)from->rank << 40 | ++from->sent; /* orders messages of the same time */
	insert(from, &w->sending, x, begin);
	from->clock->wake(from->clock, w->agent, begin);
}

struct wire_message *wire_take(struct wire_port *p)
{
	return p->due.live && p->due.at[0].due <= now_of(p) ? heap_take(&p->due) : NULL;
}

/* ---- samples ------------------------------------------------------------------------------------------- */

/* Returns the shortest time in ns that a message takes. This time is the lookahead of the simulation, by which one rank
 * may be ahead of another. */
static uint64_t lookahead(const struct wire *w)
{
	const struct simnet_model *m = w->model;
	uint64_t local = m->sim_ranks_per_host > 1 ? LOCAL_NS : LOOM_NEVER;
	return local < m->sim_latency ? local : m->sim_latency;
}

void wire_attach(struct wire_port *p, const struct loom_clock *time, struct loom_agent *agent)
{
	struct wire *w = p->wire;
	pthread_mutex_lock(&lock);
	if (!p->clock && time && !w->attached++ && lookahead(w) && LOOM_HAS(time, start_between) &&
	    time->start_between(time, "network", send_due, w, lookahead(w), &w->agent))
		w->agent = NULL; /* ranks are simulated together */
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
		e.due = 0;
		heap_rise(&p->due, i, e);
	}
	p->sent = 0;
	if (p->rank)
		return;
	w->messages = 0;
	w->sending.live = 0; /* drops the messages of a sample that failed */
	links_reset(w->links);
}
