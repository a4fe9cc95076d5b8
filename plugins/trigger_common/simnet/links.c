/* SPDX-License-Identifier: Apache-2.0 */
#include "links.h"

#include <stdlib.h>
#include <string.h>

struct link_state {
	double rate; /* bytes per ns */
	uint64_t free_at; /* time from which the link can accept the next message */
	struct link_member *flows; /* first flow in the list of the link's flows */
	/* Used while shares are computed: the part of the link's rate that is not assigned yet, in bytes per ns. */
	double left;
	uint32_t open; /* number of flows that have no share yet */
	uint64_t seen; /* links.computed if the link is in links.reached */
};

struct links {
	const struct simnet_model *model;
	uint32_t hosts, leaves, groups; /* numbers of hosts, of leaf switches, and of groups of a dragonfly */
	/* Index in `link` of the first link of each kind; number of all links. */
	uint32_t uplinks, locals, globals, count;
	/* [count]: the links out of the hosts, the links into the hosts, then links between switches. */
	struct link_state *link;
	uint32_t *reached; /* [count]: indices of the links whose flows get new shares, while shares are computed */
	struct link_flow *moved; /* list of the flows whose share has changed */
	uint64_t computed;		 /* number of computations of shares */
};

static uint32_t parts(uint32_t all, uint32_t of_each)
{
	return of_each ? (all + of_each - 1) / of_each : 1;
}

struct links *links_create(const struct simnet_model *m, uint32_t hosts)
{
	struct links *l = calloc(1, sizeof(*l));
	uint64_t count = 2 * (uint64_t)hosts;
	if (!l)
		return NULL;
	l->model = m;
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
	l->count = (uint32_t)count;
	if (count <= LINKS_MAX) {
		l->link = calloc(count, sizeof(*l->link));
		l->reached = calloc(count, sizeof(*l->reached));
	}
	if (!l->link || !l->reached) {
		links_destroy(l);
		return NULL;
	}
	for (uint32_t i = 0; i < l->count; i++)
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

static void add_link(struct link_route *r, uint32_t link)
{
	r->link[r->count++] = link;
}

/* Adds the link from leaf switch `from` to leaf switch `to` of the same group of a dragonfly, if they differ. Returns
 * `to`. */
static uint32_t to_leaf(const struct links *l, struct link_route *r, uint32_t from, uint32_t to)
{
	if (from != to)
		add_link(r, l->locals + from * l->model->sim_leaves_per_group + to % l->model->sim_leaves_per_group);
	return to;
}

/* Adds the links from a leaf switch to another group, over link `which` between the two groups. Returns the leaf switch
 * at the end of that link. */
static uint32_t to_group(const struct links *l, struct link_route *r, uint32_t leaf, uint32_t to, uint32_t which)
{
	uint32_t size = l->model->sim_leaves_per_group, links = l->model->sim_uplinks, from = leaf / size;
	uint64_t here = (uint64_t)to * links + which, there = (uint64_t)from * links + which;
	/* Leaf switches of group `to`, if it is the last group, which may be smaller. */
	uint32_t last = l->leaves - to * size;
	uint32_t own = l->leaves - from * size;
	to_leaf(l, r, leaf, from * size + (uint32_t)(here % (own < size ? own : size)));
	add_link(r, l->globals + (from * l->groups + to) * links + which);
	return to * size + (uint32_t)(there % (last < size ? last : size));
}

struct link_route links_route(const struct links *l, uint32_t from, uint32_t to, uint64_t chance)
{
	const struct simnet_model *m = l->model;
	struct link_route r;
	r.count = 0;
	uint32_t a = m->sim_hosts_per_leaf ? from / m->sim_hosts_per_leaf : 0;
	uint32_t b = m->sim_hosts_per_leaf ? to / m->sim_hosts_per_leaf : 0;
	uint32_t which = (from + to) % m->sim_uplinks;
	add_link(&r, from);
	if (a != b && !m->sim_leaves_per_group) {
		add_link(&r, l->uplinks + 2 * (a * m->sim_uplinks + which));
		add_link(&r, l->uplinks + 2 * (b * m->sim_uplinks + which) + 1);
	} else if (a != b) {
		uint32_t g = a / m->sim_leaves_per_group, h = b / m->sim_leaves_per_group,
			 by = (uint32_t)(chance % l->groups);
		if (g != h && m->sim_routing == SIMNET_VALIANT && by != g && by != h)
			a = to_group(l, &r, a, by, which);
		if (g != h)
			a = to_group(l, &r, a, h, which);
		to_leaf(l, &r, a, b);
	}
	add_link(&r, l->hosts + to);
	r.latency = m->sim_latency + (r.count - 2) * m->sim_hop;
	return r;
}

/* ---- sim_sharing = queue --------------------------------------------------------------------------------- */

/* Occupies the link for `takes` ns. The time begins at `at`, or when the link becomes free, if that is later. Returns
 * the time at which it begins. */
static uint64_t pass(struct link_state *l, uint64_t at, uint64_t takes)
{
	at = at > l->free_at ? at : l->free_at;
	l->free_at = at + takes;
	return at;
}

uint64_t links_enter(struct links *l, const struct link_route *r, uint64_t begin)
{
	return r->count ? pass(&l->link[r->link[0]], begin, l->model->sim_gap) : begin;
}

uint64_t links_queue(struct links *l, const struct link_route *r, uint64_t begin, uint64_t bytes)
{
	uint64_t at = begin, slowest = 0, first = r->latency - (l->model->sim_hop ? (r->count - 2) * l->model->sim_hop : 0);
	for (uint32_t i = 0; i < r->count; i++) {
		struct link_state *link = &l->link[r->link[i]];
		uint64_t takes = (uint64_t)((double)bytes / link->rate);
		slowest = takes > slowest ? takes : slowest;
		at = pass(link, at, takes + (i ? 0 : l->model->sim_gap));
		at += !i ? first : i + 1 < r->count ? l->model->sim_hop : 0;
	}
	return at + slowest + (r->count ? 0 : r->latency);
}

/* ---- sim_sharing = fair ---------------------------------------------------------------------------------- */

static uint32_t reach(struct links *l, uint32_t n, const struct link_route *r)
{
	for (uint32_t i = 0; i < r->count; i++) {
		struct link_state *link = &l->link[r->link[i]];
		if (link->seen == l->computed)
			continue;
		link->seen = l->computed;
		link->left = link->rate;
		link->open = 0;
		l->reached[n++] = r->link[i];
	}
	return n;
}

static void set_rate(struct links *l, struct link_flow *f, double share, uint64_t now)
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

/* Recomputes the shares of all flows that use the links of route `first`, and of all flows that these flows affect, by
 * progressive filling. In each round, the link with the least capacity per flow sets the share of its flows. The share
 * is subtracted from the capacity of the other links of these flows. Rounds continue until every flow has a share. */
static struct link_flow *share_links(struct links *l, const struct link_route *first, uint64_t now)
{
	l->computed++;
	l->moved = NULL;
	uint32_t links = reach(l, 0, first);
	for (uint32_t i = 0; i < links; i++) /* `links` grows in the loop */
		for (struct link_member *m = l->link[l->reached[i]].flows; m; m = m->next) {
			l->link[l->reached[i]].open++;
			m->flow->seen = l->computed;
			links = reach(l, links, &m->flow->route);
		}
	for (;;) {
		struct link_state *least = NULL;
		for (uint32_t i = 0; i < links; i++) {
			struct link_state *link = &l->link[l->reached[i]];
			if (link->open && (!least || link->left / link->open < least->left / least->open))
				least = link;
		}
		if (!least)
			return l->moved;
		double share = least->left / least->open, least_share = least->rate * 1e-9;
		share = share > least_share ? share : least_share; /* rounding must not give a share of zero */
		for (struct link_member *m = least->flows; m; m = m->next)
			if (m->flow->seen == l->computed)
				set_rate(l, m->flow, share, now);
	}
}

struct link_flow *links_begin(struct links *l, struct link_flow *f, uint64_t now)
{
	uint32_t others = 0;
	double least = 0;
	for (uint32_t i = 0; i < f->route.count; i++) {
		struct link_state *link = &l->link[f->route.link[i]];
		others += link->flows != NULL;
		least = !i || link->rate < least ? link->rate : least;
		f->on[i] = (struct link_member){.flow = f, .next = link->flows, .at = &link->flows};
		if (link->flows)
			link->flows->at = &f->on[i].next;
		link->flows = &f->on[i];
	}
	f->rate = others ? 0 : least;
	f->since = now;
	if (others || !f->route.count)
		return share_links(l, &f->route, now);
	f->ends = now + (uint64_t)(f->left / least + 0.999); /* rounded up, as in set_rate() */
	f->moved = NULL;
	return f;
}

struct link_flow *links_end(struct links *l, struct link_flow *f, uint64_t now)
{
	uint32_t others = 0;
	for (uint32_t i = 0; i < f->route.count; i++) {
		struct link_member *m = &f->on[i];
		*m->at = m->next;
		if (m->next)
			m->next->at = m->at;
		others += l->link[f->route.link[i]].flows != NULL;
	}
	return others ? share_links(l, &f->route, now) : NULL;
}
