/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of tasks that several ranks share. Each rank has its own harness, and all are in one address space, like ranks
 * of a host that share memory. With the trigger ranks_network they are like ranks that access each other's memory by
 * RMA. Then references are addresses, and posted operations are executed as late as possible. */
#ifndef LOOM_TEST_RANKS_H
#define LOOM_TEST_RANKS_H

#include "tree.h"

enum { RANKS_MOST = 4 };

struct ranks {
	uint32_t n;
	struct harness *h[RANKS_MOST];
	struct loom_remote_blocks remote[LOOM_KINDS][RANKS_MOST];
	uint64_t crossed; /* the number of tasks that moved from rank to rank, in all samples */
};

struct ranks_post {
	uint64_t *at, value;
};

/* Reads tasks of a remote ring. A read across the end of the ring reads the whole ring. Tasks that the thief has not
 * claimed may change meanwhile, but it does not use them. So ThreadSanitizer must ignore this function. */
__attribute__((no_sanitize("thread"))) static void ranks_read(struct loom_task *to, const struct loom_task *from,
							      uint64_t n)
{
	for (uint64_t i = 0; i < n * sizeof(*to) / sizeof(uint64_t); i++) {
		if (i % 8 == 0)
			LOOM_YIELD();
		((volatile uint64_t *)to)[i] = ((const volatile uint64_t *)from)[i];
	}
}

/* Executes an RMA operation. An addition whose result is not wanted is executed at the worker's next call. With rma NULL the
 * call only does this. */
static int ranks_rma(struct loom_ctx *c, const struct loom_rma *rma, uint64_t *was)
{
	struct ranks_post *post = (struct ranks_post *)c->global[LOOM_TRIGGER] + c->worker;
	if (post->at)
		loom_fetch_add_release_sys(post->at, post->value);
	post->at = NULL;
	if (!rma)
		return 0;
	const struct loom_task *from = (const struct loom_task *)(uintptr_t)rma->remote;
	if (loom_stopped(c))
		return LOOM_EINTR;
	if (rma->op == LOOM_NET_GET) {
		ranks_read((struct loom_task *)(c->segment[LOOM_REF_SEGMENT(rma->local)] + LOOM_REF_OFFSET(rma->local)),
			   from, rma->bytes / sizeof(*from));
	} else if (was) {
		*was = loom_fetch_add_acq_rel_sys((uint64_t *)(uintptr_t)rma->remote, rma->value);
	} else {
		*post = (struct ranks_post){(uint64_t *)(uintptr_t)rma->remote, rma->value};
	}
	return 0;
}

static const struct loom_trigger_dev ranks_network = {.size = sizeof(ranks_network), .rma = ranks_rma};

static uint32_t ranks_now; /* the number of ranks that ranks_open() opens */

/* All ranks are assumed to give the same data as the caller. */
static int ranks_allgather(const struct loom_host *host, const void *mine, void *all, size_t bytes,
			   struct loom_error *err)
{
	(void)host, (void)err;
	for (uint32_t r = 0; r < ranks_now; r++)
		memcpy((char *)all + r * bytes, mine, bytes);
	return 0;
}

static void ranks_connect(struct ranks *ranks)
{
	struct loom_error err;
	for (uint32_t r = 0; r < ranks->n; r++) {
		const struct loom__rig *rig = &ranks->h[r]->rig;
		for (int k = 0; k < LOOM_KINDS; k++)
			ranks->remote[k][r] = (struct loom_remote_blocks){.size = sizeof(struct loom_remote_blocks),
									  .workers = rig->layout.workers,
									  .devices = rig->layout.devices,
									  .global = rig->part[k].view.global,
									  .worker = rig->part[k].view.worker};
	}
	for (uint32_t r = 0; r < ranks->n; r++) {
		const struct loom__rig *rig = &ranks->h[r]->rig;
		const struct loom_sched_ops *sched = rig->part[LOOM_SCHED].plugin->ops;
		const struct loom_term_ops *term = rig->part[LOOM_TERM].plugin->ops;
		fake_must(!sched->connect(rig->part[LOOM_SCHED].self, &rig->layout, ranks->remote[LOOM_SCHED], &err),
			  "connect", &err);
		fake_must(!term->connect(rig->part[LOOM_TERM].self, &rig->layout, ranks->remote[LOOM_TERM], &err),
			  "connect", &err);
	}
}

/* Opens n ranks. Rank r has workers[r] workers, which are on two devices if there are several. All ranks have the same
 * initial set. */
FAKE_FN void ranks_open(struct ranks *ranks, const struct harness_params *p, uint32_t n, const uint32_t *workers)
{
	uint32_t all = 0, devices = 0;
	*ranks = (struct ranks){.n = n};
	ranks_now = n;
	fake_host.allgather = ranks_allgather;
	for (uint32_t r = 0; r < n; r++) {
		all += workers[r];
		devices += workers[r] > 1 ? 2 : 1;
	}
	for (uint32_t r = 0; r < n; r++) {
		struct harness_params own = *p;
		own.workers = workers[r];
		own.rank = r;
		own.ranks = n;
		own.remote_workers = all - workers[r];
		own.remote_devices = devices - (workers[r] > 1 ? 2 : 1);
		own.seed += r;
		ranks->h[r] = harness_must(&own);
	}
	ranks_connect(ranks);
}

FAKE_FN void ranks_close(struct ranks *ranks)
{
	for (uint32_t r = 0; r < ranks->n; r++)
		harness_close(ranks->h[r]);
}

FAKE_FN void ranks_init(struct ranks *ranks)
{
	tree_reset();
	for (uint32_t r = 0; r < ranks->n; r++)
		harness_init(ranks->h[r]);
}

/* Checks after a sample that each of `size` ids was run once, on any rank, and that no worker left early. */
FAKE_FN int ranks_check(struct ranks *ranks, uint32_t size, struct loom_error *err)
{
	struct loom_counters sum = {0};
	int rc = 0;
	for (uint32_t r = 0; r < ranks->n && !rc; r++) {
		rc = harness_failure(ranks->h[r], err);
		harness_add_counters(ranks->h[r], &sum);
	}
	if (!rc)
		rc = harness_compare(&sum, ranks->h[0]->rig.layout.initial_tasks, err);
	for (uint32_t r = 0; r < ranks->n && !rc; r++)
		for (uint32_t q = 0; q < ranks->n && !rc; q++)
			rc = harness_left_late(ranks->h[r], ranks->h[q], err);
	for (uint32_t r = 0; r < ranks->n && !rc; r++) {
		rc = harness_collect(ranks->h[r], err);
		ranks->crossed +=
		    rc || ranks->n == 1 ? 0 : (uint64_t)loom__rig_host_metric(&fake, "remote_stolen") / ranks->n;
	}
	return rc ? rc : tree_check(size, 1, err);
}

#endif
