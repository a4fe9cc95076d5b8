/* SPDX-License-Identifier: Apache-2.0 */
/* Relaxed synchronisation (GPU-TN, 3.2) as an option of workloads: who is first, the host that posts an
 * operation or the worker that fires it. */
#ifndef WORKLOAD_NET_POSTER_H
#define WORKLOAD_NET_POSTER_H

#include "../../shared/collective/net.dev.h"
#include "net.h"

enum { NET_POST_FIRST, NET_FIRE_FIRST, NET_RANDOM };
extern const char *const net_orders[];
#define NET_ORDER_ROW(type, field)                                                                 \
	LOOM_OPT(type, field, LOOM_OPT_ENUM, "post-first",                                         \
		 "Order of posts and fires. post-first: all is posted before the workers start. fire-first: each operation is " \
		 "posted once it was fired. random: posts and fires race.",           \
		 .choices = net_orders)

/* One sample's posts, in the order in which they are fired: number i is worker i % workers' next one. */
struct net_poster;
struct net_instance { /* of a workload with the option above */
	struct workload workload;
	struct net_poster *poster;
};
/* A poster for a new sample, the one before ended: 0, or why a post of that failed. */
int net_instance_wire(struct net_instance *i, const struct loom_layout *layout, const struct loom_trigger *trigger,
		      uint32_t order, uint32_t posts, uint32_t workers, struct loom_error *err);
void net_instance_stop(void *self);
void net_instance_destroy(void *self);
/* Takes a post: it is posted at once (post-first), or kept for the thread. */
int net_poster_add(void *poster, const struct loom_trigger_post *post, struct loom_error *err);
/* Starts the thread, where there is one: turn[w].fired says how often worker w has fired. */
int net_poster_start(struct net_poster *p, struct loom_net_turn *turn, struct loom_error *err);

#endif
