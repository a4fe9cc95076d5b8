/* SPDX-License-Identifier: Apache-2.0 */
#include "links.h"

#include <stdlib.h>
#include <string.h>

#include "platform.h"

struct link {
	double rate; /* bytes per ns */
	uint64_t free_at;
	struct member *flows;
	/* While shares are computed. */
	double left;
	uint32_t open; /* flows without a share */
	uint64_t seen;
};

struct links {
	const struct net_model *model;
	const struct platform *platform; /* NULL: what the model says */
	uint64_t hop;
	uint32_t hosts, leaves, groups; /* groups of leaves: of a dragonfly */
	uint32_t uplinks, locals, globals, count; /* the first of each sort; all */
	struct link *link; /* [count]; first a way out of each host, then a way into each */
	uint32_t *reached; /* [count]: while shares are computed */
	struct flow *moved;
	uint64_t look;
};

static uint32_t parts(uint32_t all, uint32_t of_each)
{
	return of_each ? (all + of_each - 1) / of_each : 1;
}

static struct links *make(struct links *l, uint64_t count)
{
	l->count = (uint32_t)count;
	if (count <= LINKS_MAX) {
		l->link = calloc(count, sizeof(*l->link));
		l->reached = calloc(count, sizeof(*l->reached));
	}
	if (l->link && l->reached)
		return l;
	links_destroy(l);
	return NULL;
}

struct links *links_of_platform(const struct net_model *m, const struct platform *p)
{
	struct links *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->model = m;
	l->platform = p;
	l->hosts = p->hosts;
	l = make(l, p->links);
	for (uint32_t i = 0; l && i < p->links; i++)
		l->link[i].rate = p->rate[i];
	return l;
}

struct links *links_create(const struct net_model *m, uint32_t hosts)
{
	struct links *l = calloc(1, sizeof(*l));
	uint64_t count = 2 * (uint64_t)hosts;
	if (!l)
		return NULL;
	l->model = m;
	l->hop = m->sim_hop;
	l->hosts = hosts;
	l->leaves = parts(hosts, m->sim_hosts_per_leaf);
	l->groups = parts(l->leaves, m->sim_leaves_per_group);
	l->uplinks = l->locals = (uint32_t)count;
	if (m->sim_hosts_per_leaf && !m->sim_leaves_per_group) {
		count += 2 * (uint64_t)l->leaves * m->sim_uplinks;
	} else if (m->sim_hosts_per_leaf) {
		count += (uint64_t)l->leaves * m->sim_leaves_per_group;
		l->globals = (uint32_t)count;
		count += (uint64_t)l->groups * l->groups * m->sim_uplinks;
	}
	l = make(l, count);
	for (uint32_t i = 0; l && i < l->count; i++)
		l->link[i].rate = m->sim_rate / 1e9;
	return l;
}

void links_destroy(struct links *l)
{
	if (!l)
		return;
	free(l->link);
	free(l->reached);
	free(l);
}

void links_reset(struct links *l)
{
	for (uint32_t i = 0; i < l->count; i++) {
		l->link[i].free_at = 0;
		l->link[i].flows = NULL;
	}
}

/* ---- routes ---------------------------------------------------------------------------------------------- */

static void over(struct route *r, uint32_t link)
{
	r->link[r->count++] = link;
}

/* Inside a group of a dragonfly each leaf has a link to each other one. */
static uint32_t to_leaf(const struct links *l, struct route *r, uint32_t from, uint32_t to)
{
	if (from != to)
		over(r, l->locals + from * l->model->sim_leaves_per_group + to % l->model->sim_leaves_per_group);
	return to;
}

/* From one group to another, over the link numbered `which` between the two: the leaf that it ends at. */
static uint32_t to_group(const struct links *l, struct route *r, uint32_t leaf, uint32_t to, uint32_t which)
{
	uint32_t size = l->model->sim_leaves_per_group, links = l->model->sim_uplinks, from = leaf / size;
	uint64_t here = (uint64_t)to * links + which, there = (uint64_t)from * links + which;
	uint32_t last = l->leaves - to * size; /* the last group may be small */
	uint32_t own = l->leaves - from * size;
	to_leaf(l, r, leaf, from * size + (uint32_t)(here % (own < size ? own : size)));
	over(r, l->globals + (from * l->groups + to) * links + which);
	return to * size + (uint32_t)(there % (last < size ? last : size));
}

struct route links_route(const struct links *l, uint32_t from, uint32_t to, uint64_t chance)
{
	const struct net_model *m = l->model;
	struct route r;
	r.count = 0;
	if (l->platform) {
		const struct platform_route *has = &l->platform->route[(uint64_t)from * l->hosts + to];
		r.count = has->count;
		r.latency = has->latency;
		memcpy(r.link, l->platform->over + has->first, has->count * sizeof(*r.link));
		return r;
	}
	uint32_t a = m->sim_hosts_per_leaf ? from / m->sim_hosts_per_leaf : 0;
	uint32_t b = m->sim_hosts_per_leaf ? to / m->sim_hosts_per_leaf : 0;
	uint32_t which = (from + to) % m->sim_uplinks;
	over(&r, from);
	if (a != b && !m->sim_leaves_per_group) {
		over(&r, l->uplinks + 2 * (a * m->sim_uplinks + which));
		over(&r, l->uplinks + 2 * (b * m->sim_uplinks + which) + 1);
	} else if (a != b) {
		uint32_t g = a / m->sim_leaves_per_group, h = b / m->sim_leaves_per_group, by = (uint32_t)(chance % l->groups);
		if (g != h && m->sim_routing == NET_VALIANT && by != g && by != h)
			a = to_group(l, &r, a, by, which);
		if (g != h)
			a = to_group(l, &r, a, h, which);
		to_leaf(l, &r, a, b);
	}
	over(&r, l->hosts + to);
	r.latency = m->sim_latency + (r.count - 2) * m->sim_hop;
	return r;
}

/* ---- one after the other --------------------------------------------------------------------------------- */

/* When the first byte has passed. */
static uint64_t pass(struct link *l, uint64_t at, uint64_t takes)
{
	at = at > l->free_at ? at : l->free_at;
	l->free_at = at + takes;
	return at;
}

uint64_t links_enter(struct links *l, const struct route *r, uint64_t begin)
{
	return r->count ? pass(&l->link[r->link[0]], begin, l->model->sim_gap) : begin;
}

uint64_t links_queue(struct links *l, const struct route *r, uint64_t begin, uint64_t bytes)
{
	uint64_t at = begin, slowest = 0, first = r->latency - (l->hop ? (r->count - 2) * l->hop : 0);
	for (uint32_t i = 0; i < r->count; i++) {
		struct link *link = &l->link[r->link[i]];
		uint64_t takes = (uint64_t)((double)bytes / link->rate);
		slowest = takes > slowest ? takes : slowest;
		at = pass(link, at, takes + (i ? 0 : l->model->sim_gap));
		at += !i ? first : i + 1 < r->count ? l->hop : 0;
	}
	return at + slowest + (r->count ? 0 : r->latency);
}

/* ---- fair shares ----------------------------------------------------------------------------------------- */

static uint32_t reach(struct links *l, uint32_t n, const struct route *r)
{
	for (uint32_t i = 0; i < r->count; i++) {
		struct link *link = &l->link[r->link[i]];
		if (link->seen == l->look)
			continue;
		link->seen = l->look;
		link->left = link->rate;
		link->open = 0;
		l->reached[n++] = r->link[i];
	}
	return n;
}

static void settle(struct links *l, struct flow *f, double share, uint64_t now)
{
	for (uint32_t i = 0; i < f->route.count; i++) {
		l->link[f->route.link[i]].left -= share;
		l->link[f->route.link[i]].open--;
	}
	f->seen = 0;
	if (share == f->rate)
		return;
	f->left -= f->rate * (double)(now - f->since);
	f->left = f->left > 0 ? f->left : 0;
	f->since = now;
	f->rate = share;
	f->ends = now + (uint64_t)(f->left / share + 0.999);
	f->moved = l->moved;
	l->moved = f;
}

/* New shares for all flows that meet these links, or flows that meet theirs. Progressive filling: again and again the link
 * that has least for each of its flows gives it to them, and they take as much from their other links. */
static struct flow *fill(struct links *l, const struct route *first, uint64_t now)
{
	l->look++;
	l->moved = NULL;
	uint32_t links = reach(l, 0, first);
	for (uint32_t i = 0; i < links; i++) /* `links` grows */
		for (struct member *m = l->link[l->reached[i]].flows; m; m = m->next) {
			l->link[l->reached[i]].open++;
			m->flow->seen = l->look;
			links = reach(l, links, &m->flow->route);
		}
	for (;;) {
		struct link *least = NULL;
		for (uint32_t i = 0; i < links; i++) {
			struct link *link = &l->link[l->reached[i]];
			if (link->open && (!least || link->left / link->open < least->left / least->open))
				least = link;
		}
		if (!least)
			return l->moved;
		double share = least->left / least->open, some = least->rate * 1e-9;
		share = share > some ? share : some; /* rounding must leave nobody nothing */
		for (struct member *m = least->flows; m; m = m->next)
			if (m->flow->seen == l->look)
				settle(l, m->flow, share, now);
	}
}

struct flow *links_begin(struct links *l, struct flow *f, uint64_t now)
{
	uint32_t others = 0;
	double least = 0;
	for (uint32_t i = 0; i < f->route.count; i++) {
		struct link *link = &l->link[f->route.link[i]];
		others += link->flows != NULL;
		least = !i || link->rate < least ? link->rate : least;
		f->on[i] = (struct member){.flow = f, .next = link->flows, .at = &link->flows};
		if (link->flows)
			link->flows->at = &f->on[i].next;
		link->flows = &f->on[i];
	}
	f->rate = others ? 0 : least;
	f->since = now;
	if (others || !f->route.count)
		return fill(l, &f->route, now);
	f->ends = now + (uint64_t)(f->left / least + 0.999); /* as settle() has it */
	f->moved = NULL;
	return f;
}

struct flow *links_end(struct links *l, struct flow *f, uint64_t now)
{
	uint32_t others = 0;
	for (uint32_t i = 0; i < f->route.count; i++) {
		struct member *m = &f->on[i];
		*m->at = m->next;
		if (m->next)
			m->next->at = m->at;
		others += l->link[f->route.link[i]].flows != NULL;
	}
	return others ? fill(l, &f->route, now) : NULL;
}
