/* SPDX-License-Identifier: Apache-2.0 */
/* A platform file of SimGrid as the topology of a simulated network: its hosts, links and routes, as libsimgrid reads
 * them. */
#ifndef TRIGGER_PLATFORM_H
#define TRIGGER_PLATFORM_H

#include <gpuloom/plugin.h>

struct platform {
	uint32_t hosts, links;
	uint64_t least; /* ns: the shortest latency */
	const double *rate; /* [links]: bytes per ns */
	const struct platform_route {
		uint64_t latency; /* ns */
		uint32_t first, count; /* of `over` */
	} *route; /* [hosts * hosts], by from and to */
	const uint32_t *over;
	void *map;
	uint64_t bytes;
};

/* Of the first `hosts` hosts by name, h2 before h10. 0, or an error that says what to do. */
int platform_read(const struct loom_host *host, const char *path, uint32_t hosts, struct platform *p,
		  struct loom_error *err);
void platform_drop(struct platform *p);

#endif
