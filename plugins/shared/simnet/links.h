/* SPDX-License-Identifier: Apache-2.0 */
/* The links of a simulated network: routes of messages, and how a link serves several messages. */
#ifndef TRIGGER_LINKS_H
#define TRIGGER_LINKS_H

#include <stdint.h>

#define LINKS_OF_ROUTE 24 /* the longest route */

/* What a simulated network costs: the options in simnet.h. */
struct simnet_model {
	uint64_t sim_trigger, sim_overhead, sim_latency, sim_gap, sim_local, sim_hop, sim_jitter, sim_retry;
	double sim_rate, sim_local_rate, sim_loss;
	uint32_t sim_ranks_per_host, sim_hosts_per_leaf, sim_leaves_per_group, sim_uplinks, sim_routing, sim_sharing;
	const char *sim_dead, *sim_platform;
};

enum simnet_routing { SIMNET_MINIMAL, SIMNET_VALIANT };
enum simnet_sharing { SIMNET_QUEUE, SIMNET_FAIR };

struct platform;
struct links;

/* A route from one host to another. */
struct link_route {
	uint32_t count;
	uint32_t link[LINKS_OF_ROUTE]; /* [count] */
	uint64_t latency;	    /* ns, the sum over all links and switches */
};

/* A message whose bytes share the links of its route with other messages. Zeroed before its first use. */
struct link_flow {
	struct link_route route;
	double left, rate; /* in bytes; in bytes per ns */
	uint64_t since;	   /* the time to which `left` refers */
	uint64_t ends;	   /* the end, unless another message begins or ends */
	struct link_member {
		struct link_flow *flow;
		struct link_member *next, **at;
	} on[LINKS_OF_ROUTE]; /* neighbours in the lists of its links */
	struct link_flow *moved; /* next in the list that links_begin() returns */
	uint64_t seen;
};

/* Returns NULL if there is no memory, or there are more links than LINKS_MAX. */
#define LINKS_MAX (1u << 24)
struct links *links_create(const struct simnet_model *m, uint32_t hosts);
/* Creates links with the links and routes of a platform, which the caller keeps. */
struct links *links_of_platform(const struct simnet_model *m, const struct platform *p);
void links_destroy(struct links *l); /* NULL is legal */
/* Frees all links. No message is in flight. */
void links_reset(struct links *l);

/* Returns the route between two hosts. chance: selects a route of sim_routing = valiant. */
struct link_route links_route(const struct links *l, uint32_t from, uint32_t to, uint64_t chance);

/* sim_sharing = queue: a link serves one message at a time, and the next link begins with the first byte. Returns when
 * the last byte of a message that begins now arrives. */
uint64_t links_queue(struct links *l, const struct link_route *r, uint64_t begin, uint64_t bytes);

/* sim_sharing = fair: all messages in flight on a link share its rate. A message that another link limits leaves its
 * remainder to the others (max-min fairness by progressive filling). The first link accepts one message per sim_gap. */
uint64_t links_enter(struct links *l, const struct link_route *r, uint64_t begin); /* returns when it may begin */
/* Returns the flows whose end has changed, with f if it begins, as a list by `moved`. f->route and f->left are set. */
struct link_flow *links_begin(struct links *l, struct link_flow *f, uint64_t now);
struct link_flow *links_end(struct links *l, struct link_flow *f, uint64_t now);

#endif
