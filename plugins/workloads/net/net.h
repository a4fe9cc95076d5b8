/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of the host halves of the network workloads. */
#ifndef WORKLOAD_NET_H
#define WORKLOAD_NET_H

#include <gpuloom/barrier.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../collective/net.h"
#include "../common/host.h"

/* Returns quantile p, from 0 to 1, of `n` sorted values. */
static inline double net_quantile(const uint64_t *sorted, uint64_t n, double p)
{
	uint64_t i = (uint64_t)(p * (double)(n - 1) + 0.5);
	return (double)sorted[i < n ? i : n - 1];
}

/* Explains why a fire or a poll was rejected. A fire may precede its post, so wire() cannot check its tag in
 * advance. */
static inline int net_explain(void *self, uint32_t worker, int code, uint64_t info, struct loom_error *err)
{
	const struct workload *w = self;
	if (code != LOOM_EINVAL)
		return 0;
	return LOOM_FAIL(w->host, err, code,
			 "worker %u used the tag, slot or arrival %llu, for which the trigger has no room: "
			 "raise tags, slots or arrivals in its section",
			 worker, (unsigned long long)info);
}

/* Returns the barrier scopes of a workload whose workers synchronise within the stack. */
static inline const struct loom_barrier_scopes *net_barrier_scopes(void *self, const struct loom_layout *layout)
{
	static const struct loom_barrier_scopes scopes = {.scopes = 1u << LOOM_SCOPE_STACK};
	(void)self, (void)layout;
	return &scopes;
}

/* A sequential result that all ranks and samples of this process share. The last of its users frees it. */
struct net_reference {
	pthread_mutex_t lock;
	uint32_t users;
	void *result; /* NULL: not computed yet */
};

static inline int net_reference_create(struct net_reference *r, const struct loom_host *host, const void *opts,
				       void **self, struct loom_error *err)
{
	int rc = workload_create_plain(host, opts, self, err);
	pthread_mutex_lock(&r->lock);
	r->users += !rc;
	pthread_mutex_unlock(&r->lock);
	return rc;
}

static inline void net_reference_destroy(struct net_reference *r, void *self)
{
	if (!self)
		return;
	pthread_mutex_lock(&r->lock);
	if (!--r->users) {
		free(r->result);
		r->result = NULL;
	}
	pthread_mutex_unlock(&r->lock);
	workload_destroy(self);
}

/* Defines NAME_code, the device half of a workload: function NAME_kernel, in FILES. The further arguments initialise
 * other device ops. */
#define NET_CODE_IN(NAME, FILES, ...)                                                              \
	static const struct loom_workload_dev NAME##_cpu = {                                       \
		.size = sizeof(struct loom_workload_dev), .kernel = NAME##_kernel, __VA_ARGS__};   \
	LOOM_DEVICE_CODE(NAME##_code, NAME##_cpu, #NAME ".dev.h", FILES)
#define NET_CODE(NAME, ...) \
	NET_CODE_IN(NAME, LOOM_CODE_FILE("collective/net.dev.h") LOOM_CODE_FILE(#NAME ".dev.h"), __VA_ARGS__)

#endif
