/* SPDX-License-Identifier: Apache-2.0 */
/* The topology of a simulated network from a platform file of SimGrid: hosts, links and routes, read by libsimgrid. */
#ifndef TRIGGER_PLATFORM_H
#define TRIGGER_PLATFORM_H

#include <gpuloom/plugin.h>

struct platform {
	uint32_t hosts, links;
	uint64_t least; /* the shortest latency of a route, in ns */
	const double *rate; /* [links]: bytes per ns */
	const struct platform_route {
		uint64_t latency; /* ns */
		uint32_t first, count; /* index in `over` of the first link of the route; number of links */
	} *route; /* [from * hosts + to] */
	const uint32_t *over; /* indices of the links of all routes */
	void *map;	      /* the mapping with these arrays; NULL: none */
	uint64_t bytes;	      /* size of the mapping */
};

/* Reads the routes between the first `hosts` hosts in the order of their names, where h2 precedes h10. Returns 0, or an
 * error that says what to do. */
int platform_read(const struct loom_host *host, const char *path, uint32_t hosts, struct platform *p,
		  struct loom_error *err);
void platform_drop(struct platform *p);

#endif
