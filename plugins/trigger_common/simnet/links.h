/* SPDX-License-Identifier: Apache-2.0 */
/* The links of a simulated network: the routes of messages over them, and the times at which messages pass. */
#ifndef TRIGGER_LINKS_H
#define TRIGGER_LINKS_H

#include <stdint.h>

#define LINKS_OF_ROUTE 4 /* largest number of links in a route */

/* The times, rates and topology of a simulated network: the options in simnet.h. */
struct simnet_model {
	uint64_t sim_trigger, sim_host, sim_overhead, sim_latency, sim_gap, sim_hop, sim_jitter;
	double sim_rate, sim_loss;
	uint32_t sim_ranks_per_host, sim_hosts_per_leaf, sim_uplinks;
	const char *sim_dead;
};

struct links;

/* A route from one host to another. */
struct link_route {
	uint32_t count;
	uint32_t link[LINKS_OF_ROUTE]; /* [count] */
};

/* Creates the links of a network of `hosts` hosts. Returns NULL without memory, or if there are more than LINKS_MAX. */
#define LINKS_MAX (1u << 24)
struct links *links_create(const struct simnet_model *m, uint32_t hosts);
void links_destroy(struct links *l); /* NULL is legal */
/* Makes all links idle. Called when no message is in flight. */
void links_reset(struct links *l);

/* Returns the route between two hosts. */
struct link_route links_route(const struct links *l, uint32_t from, uint32_t to);

/* A link serves one message at a time. The next link of the route begins when the first byte arrives at it. Returns the
 * time at which the last byte of a message that is sent at `begin` arrives. */
uint64_t links_queue(struct links *l, const struct link_route *r, uint64_t begin, uint64_t bytes);

#endif
