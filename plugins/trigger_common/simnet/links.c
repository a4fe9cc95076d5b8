/* SPDX-License-Identifier: Apache-2.0 */
#include "links.h"

#include <stdlib.h>
#include <string.h>

struct links {
	const struct simnet_model *model;
	uint32_t hosts, count; /* numbers of hosts and of links */
	/* [count]: the time from which a link can accept the next message. First are the links out of the hosts, then
	 * the links into the hosts, and then, for each uplink of a leaf switch, the link up and the link down. */
	uint64_t *free_at;
};

struct links *links_create(const struct simnet_model *m, uint32_t hosts)
{
	struct links *l = calloc(1, sizeof(*l));
	uint64_t count = 2 * (uint64_t)hosts;
	if (!l)
		return NULL;
	l->model = m;
	l->hosts = hosts;
	if (m->sim_hosts_per_leaf)
		count += 2 * (((uint64_t)hosts + m->sim_hosts_per_leaf - 1) / m->sim_hosts_per_leaf) * m->sim_uplinks;
	l->count = (uint32_t)count;
	if (count <= LINKS_MAX)
		l->free_at = calloc(count, sizeof(*l->free_at));
	if (!l->free_at) {
		free(l);
		return NULL;
	}
	return l;
}

void links_destroy(struct links *l)
{
	if (!l)
		return;
	free(l->free_at);
	free(l);
}

void links_reset(struct links *l)
{
	memset(l->free_at, 0, l->count * sizeof(*l->free_at));
}

static void add_link(struct link_route *r, uint32_t link)
{
	r->link[r->count++] = link;
}

struct link_route links_route(const struct links *l, uint32_t from, uint32_t to)
{
	const struct simnet_model *m = l->model;
	struct link_route r;
	r.count = 0;
	uint32_t a = m->sim_hosts_per_leaf ? from / m->sim_hosts_per_leaf : 0;
	uint32_t b = m->sim_hosts_per_leaf ? to / m->sim_hosts_per_leaf : 0;
	uint32_t which = (from + to) % m->sim_uplinks, uplinks = 2 * l->hosts;
	add_link(&r, from);
	if (a != b) {
		add_link(&r, uplinks + 2 * (a * m->sim_uplinks + which));
		add_link(&r, uplinks + 2 * (b * m->sim_uplinks + which) + 1);
	}
	add_link(&r, l->hosts + to);
	return r;
}

/* Occupies a link for `takes` ns. The time begins at `at`, or when the link becomes free, if that is later. Returns
 * the time at which it begins. */
static uint64_t pass(uint64_t *free_at, uint64_t at, uint64_t takes)
{
	at = at > *free_at ? at : *free_at;
	*free_at = at + takes;
	return at;
}

uint64_t links_queue(struct links *l, const struct link_route *r, uint64_t begin, uint64_t bytes)
{
	const struct simnet_model *m = l->model;
	uint64_t at = begin, takes = (uint64_t)((double)bytes / (m->sim_rate / 1e9));
	for (uint32_t i = 0; i < r->count; i++) {
		at = pass(&l->free_at[r->link[i]], at, takes + (i ? 0 : m->sim_gap));
		at += !i ? m->sim_latency : i + 1 < r->count ? m->sim_hop : 0;
	}
	return at + takes;
}
