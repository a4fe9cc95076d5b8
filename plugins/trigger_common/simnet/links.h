/* SPDX-License-Identifier: Apache-2.0 */
/* The links of a simulated network: the routes of messages over them, and the times at which messages pass. */
#ifndef TRIGGER_LINKS_H
#define TRIGGER_LINKS_H

#include <stdint.h>

#define LINKS_OF_ROUTE 24 /* largest number of links in a route */

/* The times, rates and topology of a simulated network: the options in simnet.h. */
struct simnet_model {
	uint64_t sim_trigger, sim_overhead, sim_latency, sim_gap, sim_hop, sim_jitter;
	double sim_rate, sim_loss;
	uint32_t sim_ranks_per_host, sim_hosts_per_leaf, sim_leaves_per_group, sim_uplinks, sim_routing, sim_sharing;
	const char *sim_dead;
};

enum simnet_routing { SIMNET_MINIMAL, SIMNET_VALIANT };
enum simnet_sharing { SIMNET_QUEUE, SIMNET_FAIR };

struct links;

/* A route from one host to another. */
struct link_route {
	uint32_t count;
	uint32_t link[LINKS_OF_ROUTE]; /* [count] */
	uint64_t latency;	    /* ns, the sum over all links and switches of the route */
};

/* A message with sim_sharing = fair, whose bytes share the links of its route with other messages. Zeroed before its
 * first use. */
struct link_flow {
	struct link_route route;
	double left, rate; /* bytes that have not passed yet; bytes per ns */
	uint64_t since;	   /* time at which `left` was computed */
	uint64_t ends;	   /* time at which the last byte passes, if no other message begins or ends before */
	struct link_member {
		struct link_flow *flow;
		struct link_member *next, **at;
	} on[LINKS_OF_ROUTE]; /* by link of the route: its place in the list of that link's flows */
	struct link_flow *moved; /* next flow in the list that links_begin() or links_end() returns */
	uint64_t seen; /* links.computed while the flow waits for a new share */
};

/* Creates the links of a network of `hosts` hosts. Returns NULL without memory, or if there are more than LINKS_MAX. */
#define LINKS_MAX (1u << 24)
struct links *links_create(const struct simnet_model *m, uint32_t hosts);
void links_destroy(struct links *l); /* NULL is legal */
/* Makes all links idle. Called when no message is in flight. */
void links_reset(struct links *l);

/* Returns the route between two hosts. chance: a random number, which selects a route of sim_routing = valiant. */
struct link_route links_route(const struct links *l, uint32_t from, uint32_t to, uint64_t chance);

/* For sim_sharing = queue. A link serves one message at a time. The next link of the route begins when the first byte
 * arrives at it. Returns the time at which the last byte of a message that is sent at `begin` arrives. */
uint64_t links_queue(struct links *l, const struct link_route *r, uint64_t begin, uint64_t bytes);

/* For sim_sharing = fair. All messages in flight on a link share its rate. If another link limits a message to less
 * than its share, the other messages share the rest (max-min fairness by progressive filling). links_enter() returns
 * when a message may begin, because the first link accepts one message per sim_gap. */
uint64_t links_enter(struct links *l, const struct link_route *r, uint64_t begin);
/* Begin or end a flow, whose `route` and `left` the caller has set. Return a list, linked by `moved`, of the flows
 * whose `ends` has changed. links_begin() returns f, too. */
struct link_flow *links_begin(struct links *l, struct link_flow *f, uint64_t now);
struct link_flow *links_end(struct links *l, struct link_flow *f, uint64_t now);

#endif
