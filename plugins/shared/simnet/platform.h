/* SPDX-License-Identifier: Apache-2.0 */
/* The topology of a simulated network from a platform file of SimGrid: hosts, links and routes, read by libsimgrid. */
#ifndef TRIGGER_PLATFORM_H
#define TRIGGER_PLATFORM_H

#include <gpuloom/plugin.h>

struct platform {
	uint32_t hosts, links;
	uint64_t least; /* the shortest latency, ns */
	const double *rate; /* [links]: bytes per ns */
	const struct platform_route {
		uint64_t latency; /* ns */
		uint32_t first, count; /* links of the route in `over` */
	} *route; /* [hosts * hosts], by from and to */
	const uint32_t *over;
	void *map;
	uint64_t bytes;
};

/* Reads the routes of the first `hosts` hosts by name, h2 before h10. Returns 0, or an error that says what to do. */
int platform_read(const struct loom_host *host, const char *path, uint32_t hosts, struct platform *p,
		  struct loom_error *err);
void platform_drop(struct platform *p);

#endif
