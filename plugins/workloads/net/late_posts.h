/* SPDX-License-Identifier: Apache-2.0 */
/* Relaxed synchronisation (GPU-TN, 3.2) as an option of workloads: an operation may be fired before it is posted. */
#ifndef WORKLOAD_NET_POSTER_H
#define WORKLOAD_NET_POSTER_H

#include "../collective/net.dev.h"
#include "net.h"

enum { NET_POST_FIRST, NET_FIRE_FIRST, NET_RANDOM };
extern const char *const late_orders[];
#define NET_ORDER_ROW(type, field)                                                                 \
	LOOM_OPT(type, field, LOOM_OPT_ENUM, "post-first",                                         \
		 "Order of post and fire. post-first: all operations are posted before the workers start. " \
		 "fire-first: each operation is posted after it was fired. random: posts and fires race.",           \
		 .choices = late_orders)

/* The posts of a sample, in the order in which workers fire them. Post i belongs to worker i % workers. */
struct late_posts;
struct late_workload { /* the instance of a workload with the option above */
	struct workload workload;
	struct late_posts *poster;
};
/* Ends the previous sample and begins one with at most `posts` posts. Returns 0, or why a post of the previous sample
 * failed. */
int late_workload_wire(struct late_workload *i, const struct loom_layout *layout, const struct loom_trigger *trigger,
		      uint32_t order, uint32_t posts, uint32_t workers, struct loom_error *err);
void late_workload_stop(void *self);
void late_workload_destroy(void *self);
/* Posts immediately if `order` is post-first. Otherwise stores the post for the thread that posts late. */
int late_posts_add(void *poster, const struct loom_trigger_post *post, struct loom_error *err);
/* Starts the thread that posts late, if `order` needs it. late[w].fired is the number of fires of worker w. */
int late_posts_start(struct late_posts *p, struct loom_net_late *late, struct loom_error *err);

#endif
