/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of the host halves of workloads. */
#ifndef WORKLOAD_HOST_H
#define WORKLOAD_HOST_H

#include <gpuloom/plugin.h>
#include <gpuloom/workload.h>
#include <string.h>

#include "lib/align.h"

/* The first member of a workload's instance. Then workload_destroy() suits most workloads. */
struct workload {
	const struct loom_host *host;
	const void *opts;
};

static inline int workload_create(const struct loom_host *host, const void *opts, size_t bytes, void **self,
				  struct loom_error *err)
{
	struct workload *w = host->alloc(host, bytes);
	if (!w)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	w->host = host;
	w->opts = opts;
	*self = w;
	return 0;
}

/* For loops of n steps that may take more than a second, in create(), need() and tasks(). Returns 0, or the error with
 * which the op must end because the run was stopped. */
static inline int workload_goes_on(const struct loom_host *host, uint64_t i, uint64_t n, struct loom_error *err)
{
	return i % 65536 || !LOOM_HAS(host, progress) ? 0 : host->progress(host, (double)i / (double)n, err);
}

/* Return the number of ranks of the job, and that of this rank. */
static inline uint32_t workload_ranks(const struct loom_host *host)
{
	return LOOM_HAS(host, allgather) ? host->ranks : 1;
}
static inline uint32_t workload_rank(const struct loom_host *host)
{
	return workload_ranks(host) > 1 ? host->rank : 0;
}

/* Returns the offset of an array in a block, from `*at` on, and sets *at to the end of the array. The block begins at such an offset of
 * the memory, too. Large arrays begin a page, because a GPU reads them faster if a row does not begin in the middle of a line. */
static inline uint64_t workload_place(uint64_t *at, uint64_t bytes)
{
	uint64_t from = loom__align(*at, bytes < 64 << 10 ? 64 : 4096);
	*at = from + bytes;
	return from;
}

/* create() of workloads without state. */
static inline int workload_create_plain(const struct loom_host *host, const void *opts, void **self,
					struct loom_error *err)
{
	return workload_create(host, opts, sizeof(struct workload), self, err);
}

static inline void workload_destroy(void *self)
{
	struct workload *w = self;
	if (w)
		w->host->free(w->host, w);
}

/* task_count() of workloads with one initial task. */
static inline uint64_t workload_one_task(void *self, const struct loom_layout *layout)
{
	(void)self, (void)layout;
	return 1;
}

/* tasks() of workloads that have a kernel and no tasks. The op is mandatory. */
static inline int workload_no_tasks(void *self, const struct loom_layout *layout, const struct loom_view *view,
				    loom_ref global, struct loom_task *tasks, struct loom_error *err)
{
	(void)self, (void)layout, (void)view, (void)global, (void)tasks, (void)err;
	return 0;
}

/* Compares two uint64_t, for qsort(). */
static inline int workload_ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Gathers `bytes` bytes at `mine` from each rank that shares tasks. *all is set to an array of *ranks such elements,
 * which the caller frees. If ranks do not share tasks, the array has one element. */
static inline int workload_gather(const struct loom_host *host, const struct loom_layout *layout, const void *mine,
				  size_t bytes, void **all, uint32_t *ranks, struct loom_error *err)
{
	int shared = LOOM_HAS(layout, ranks) && layout->ranks > 1;
	*ranks = shared ? layout->ranks : 1;
	*all = host->alloc(host, *ranks * bytes);
	if (!*all)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	if (!shared)
		memcpy(*all, mine, bytes);
	int rc = shared ? host->allgather(host, mine, *all, bytes, err) : 0;
	if (rc)
		host->free(host, *all);
	return rc;
}

/* Replaces each of `n` values by its sum over the ranks that share tasks. */
static inline int workload_sum(const struct loom_host *host, const struct loom_layout *layout, uint64_t *value,
			       uint32_t n, struct loom_error *err)
{
	uint32_t ranks;
	void *all;
	int rc = workload_gather(host, layout, value, n * sizeof(*value), &all, &ranks, err);
	if (rc)
		return rc;
	memset(value, 0, n * sizeof(*value));
	for (uint32_t i = 0; i < ranks * n; i++)
		value[i % n] += ((const uint64_t *)all)[i];
	host->free(host, all);
	return 0;
}

/* Defines the table prefix_ops with prefix_need(), prefix_init() and prefix_verify(). `...`: additional ops. */
#define WORKLOAD_OPS(prefix, ...)                                                                                      \
	static const struct loom_workload_ops prefix##_ops = {.size = sizeof(struct loom_workload_ops),                \
							      .need = prefix##_need,                                   \
							      .init = prefix##_init,                                   \
							      .verify = prefix##_verify,                               \
							      __VA_ARGS__}

/* Defines the device half of a workload: its table of task functions, and its files, each as a LOOM_CODE_FILE(). `...`: additional
 * ops. */
#define WORKLOAD_CODE(symbol, table, files, ...)                                                                          \
	static const struct loom_workload_dev symbol##_cpu = {                                                         \
	    .size = sizeof(struct loom_workload_dev),                                                                  \
	    .count = sizeof(table) / sizeof((table)[0]),                                                               \
	    .task = table,                                                                                             \
	    __VA_ARGS__                                                                                                \
	};                                                                                                             \
	LOOM_DEVICE_CODE(symbol##_code, symbol##_cpu, #symbol ".dev.h", files)
/* Defines the device half of a workload with a kernel instead of tasks. */
#define WORKLOAD_KERNEL(symbol, files)                                                             \
	static const struct loom_workload_dev symbol##_cpu = {                                     \
		.size = sizeof(struct loom_workload_dev),                                          \
		.kernel = symbol##_kernel,                                                         \
	};                                                                                         \
	LOOM_DEVICE_CODE(symbol##_code, symbol##_cpu, #symbol ".dev.h", files)

#endif
