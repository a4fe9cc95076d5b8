/* SPDX-License-Identifier: Apache-2.0 */
/* The links of a simulated network: which of them a message takes, and how they serve several at once. */
#ifndef TRIGGER_LINKS_H
#define TRIGGER_LINKS_H

#include <stdint.h>

#define ROUTE_LINKS 24 /* the longest */

/* What a simulated network costs: the options of net.h. */
struct net_model {
	uint64_t sim_trigger, sim_overhead, sim_latency, sim_gap, sim_local, sim_hop, sim_jitter, sim_retry;
	double sim_rate, sim_local_rate, sim_loss;
	uint32_t sim_ranks_per_host, sim_hosts_per_leaf, sim_leaves_per_group, sim_uplinks, sim_routing, sim_sharing;
	const char *sim_dead, *sim_platform;
};

enum net_routing { NET_MINIMAL, NET_VALIANT };
enum net_sharing { NET_QUEUE, NET_FAIR };

struct platform;
struct links;

/* The way from one host to another. */
struct route {
	uint32_t count;
	uint32_t link[ROUTE_LINKS]; /* [count] */
	uint64_t latency;	    /* ns, all links and switches together */
};

/* A message whose bytes share the links of its way with others. Zeroed before its first use. */
struct flow {
	struct route route;
	double left, rate; /* bytes; bytes per ns */
	uint64_t since;	   /* when `left` was right */
	uint64_t ends;	   /* if no other message comes or goes */
	struct member {
		struct flow *flow;
		struct member *next, **at;
	} on[ROUTE_LINKS]; /* in the lists of its links */
	struct flow *moved; /* the next in the list that links_begin() gives */
	uint64_t seen;
};

/* NULL: no memory, or more links than LINKS_MAX. */
#define LINKS_MAX (1u << 24)
struct links *links_create(const struct net_model *m, uint32_t hosts);
/* The same with the links and routes of a platform, which stays the caller's. */
struct links *links_of_platform(const struct net_model *m, const struct platform *p);
void links_destroy(struct links *l); /* NULL is legal */
/* All links are free, and no message is under way. */
void links_reset(struct links *l);

/* Between two hosts. `chance` chooses among the ways of sim_routing = valiant. */
struct route links_route(const struct links *l, uint32_t from, uint32_t to, uint64_t chance);

/* sim_sharing = queue: each link serves one message after the other, and the next link begins with the first byte. When
 * the last byte has come of a message that begins now. */
uint64_t links_queue(struct links *l, const struct route *r, uint64_t begin, uint64_t bytes);

/* sim_sharing = fair: all that are under way on a link share its rate, and who cannot use his share because of another link
 * leaves it to the others (max-min fairness, by progressive filling). The first link takes one more in every sim_gap. */
uint64_t links_enter(struct links *l, const struct route *r, uint64_t begin); /* when it may begin */
/* f->route and f->left are set. Give the flows whose end has changed, f among them when it begins: a list by `moved`. */
struct flow *links_begin(struct links *l, struct flow *f, uint64_t now);
struct flow *links_end(struct links *l, struct flow *f, uint64_t now);

#endif
