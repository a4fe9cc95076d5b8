/* SPDX-License-Identifier: Apache-2.0 */
/* The other ranks of the job: checks that all ranks agree, and finds the blocks of schedulers and detectors that share
 * tasks. */
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "stack/stack.h"

/* The blocks of a policy, as a rank announces them to the other ranks. */
struct blocks {
	loom_ref global;                     /* the block for the stack */
	uint64_t global_bytes, worker_bytes; /* size of the block for the stack; size of the block of each worker */
};

/* Limit on the workers of a rank. No rank has so many, so a larger number from another rank is an error. */
#define MOST_WORKERS (LOOM_MAX_DEVICES * 65536u)

int loom__ranks_share(struct loom_stack *s, struct loom_error *err)
{
	static const char fix[] = "choose another one, or set tasks = own in [run]";
	const struct loom_host *host = &s->host.table;
	const struct loom_plugin *workload = s->selected[LOOM_WORKLOAD], *trigger = s->selected[LOOM_TRIGGER];
	const struct loom_trigger_ops *ops = trigger ? trigger->ops : NULL;
	const struct loom_trigger_dev *dev = trigger ? trigger->dev->cpu : NULL;
	if (s->plan.run.tasks != LOOM__TASKS_SHARED || host->ranks == 1)
		return 0;
	if (workload && !(workload->caps & LOOM_CAP_WORKLOAD_IS_SHARED))
		return LOOM__FAIL(err, LOOM_ENOTSUP, "tasks = shared: the tasks of %s are bound to memory of their own rank: %s",
				  workload->name, fix);
	for (size_t i = 0; i < s->policies; i++) {
		enum loom_kind kind = s->policy[i].choice->kind;
		if ((kind == LOOM_SCHED || kind == LOOM_TERM) && !LOOM_HAS(s->policy[i].ops, connect))
			return LOOM__FAIL(err, LOOM_ENOTSUP, "tasks = shared: %s serves the workers of one rank only: %s",
					  s->policy[i].choice->plugin->name, fix);
	}
	if (!LOOM_HAS(ops, reach) && !LOOM_HAS(dev, rma))
		return LOOM__FAIL(err, LOOM_ENOTSUP, "tasks = shared: no trigger is selected that lets workers reach the memory of "
				  "other ranks: name one in [trigger], or set tasks = own in [run]");
	s->layout.rank = host->rank;
	s->layout.ranks = host->ranks;
	s->layout.rma = !LOOM_HAS(ops, reach);
	return 0;
}

int loom__ranks_size(struct loom_stack *s, struct loom_error *err)
{
	const struct loom_host *host = &s->host.table;
	struct loom__rank_size mine = {.workers = s->layout.workers, .devices = s->layout.devices};
	if (s->layout.ranks < 2)
		return 0;
	s->ranks.most_workers = 0; /* an earlier call may have set it */
	free(s->ranks.size);
	s->ranks.size = calloc(s->layout.ranks, sizeof(*s->ranks.size));
	int rc = s->ranks.size ? host->allgather(host, &mine, s->ranks.size, sizeof(mine), err) :
			   LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	uint64_t workers = 0, devices = 0;
	for (uint32_t r = 0; !rc && r < s->layout.ranks; r++) {
		if (!s->ranks.size[r].workers || s->ranks.size[r].workers > MOST_WORKERS || !s->ranks.size[r].devices ||
		    s->ranks.size[r].devices > LOOM_MAX_DEVICES)
			rc = LOOM__FAIL(err, LOOM_EINVAL, "rank %u announces %u workers on %u devices, which is impossible", r,
					s->ranks.size[r].workers, s->ranks.size[r].devices);
		workers += s->ranks.size[r].workers;
		devices += s->ranks.size[r].devices;
		s->ranks.most_workers = s->ranks.size[r].workers > s->ranks.most_workers ? s->ranks.size[r].workers : s->ranks.most_workers;
	}
	if (!rc && workers > UINT32_MAX / 2)
		rc = LOOM__FAIL(err, LOOM_EINVAL, "too many workers in all ranks");
	s->layout.remote_workers = (uint32_t)(workers - mine.workers);
	s->layout.remote_devices = (uint32_t)(devices - mine.devices);
	return rc;
}

/* Fills *out with the policy's blocks in rank r, as this rank addresses them. `refs` are the references of the workers'
 * blocks in rank r; worker[] receives their addresses. With s->layout.rma, all addresses are references. */
static int reach(struct loom_stack *s, uint32_t r, const struct blocks *place, const loom_ref *refs, void **worker,
		 struct loom_remote_blocks *out, struct loom_error *err)
{
	const struct loom__policy *t = loom__policy_of(s, LOOM_TRIGGER);
	const struct loom_trigger_ops *trigger = t->choice->plugin->ops;
	uint64_t at = place->global;
	int rc = 0, by_rma = (int)s->layout.rma;
	*out = (struct loom_remote_blocks){.size = sizeof(*out), .workers = s->ranks.size[r].workers, .devices = s->ranks.size[r].devices};
	if (place->global_bytes && !by_rma)
		rc = trigger->reach(t->self, r, place->global, place->global_bytes, &at, err);
	out->global = (void *)(uintptr_t)at;
	for (uint32_t w = 0; !rc && place->worker_bytes && w < out->workers; w++) {
		at = refs[w];
		rc = by_rma ? 0 : trigger->reach(t->self, r, refs[w], place->worker_bytes, &at, err);
		worker[w] = (void *)(uintptr_t)at;
	}
	out->worker = place->worker_bytes ? worker : NULL;
	return rc;
}

/* Exchanges announcements with all ranks, and fills p->remote from them. `places` and `refs` have room for one part
 * more than there are ranks: the last part is what this rank announces. */
static int find(struct loom_stack *s, struct loom__policy *p, struct blocks *places, loom_ref *refs, struct loom_error *err)
{
	const struct loom_host *host = &s->host.table;
	uint32_t ranks = s->layout.ranks, most = s->ranks.most_workers;
	struct blocks *mine = &places[ranks];
	loom_ref *own = &refs[(uint64_t)ranks * most];
	*mine = (struct blocks){.global = p->global, .global_bytes = p->need.global, .worker_bytes = p->need.worker};
	/* All devices have the same registry, so send the first one. */
	if (p->need.worker)
		memcpy(own, loom__host_at(s, p->registry[0]), s->layout.workers * sizeof(*own));
	int rc = host->allgather(host, mine, places, sizeof(*mine), err);
	for (uint32_t r = 0; !rc && r < ranks; r++)
		if (!places[r].worker_bytes != !mine->worker_bytes || !places[r].global_bytes != !mine->global_bytes)
			rc = LOOM__FAIL(err, LOOM_EINVAL, "%s: rank %u has other options than rank %u: start all ranks with the same conf",
					p->choice->plugin->name, r, s->layout.rank);
	if (!rc)
		rc = host->allgather(host, own, refs, most * sizeof(*own), err);
	for (uint32_t r = 0; !rc && r < ranks; r++)
		if (r != s->layout.rank)
			rc = reach(s, r, &places[r], &refs[(uint64_t)r * most], &p->remote_worker[(uint64_t)r * most], &p->remote[r],
				   err);
	return rc;
}

static int connect_policy(struct loom_stack *s, struct loom__policy *p, struct loom_error *err)
{
	uint64_t ranks = s->layout.ranks, most = s->ranks.most_workers;
	struct blocks *places = calloc(ranks + 1, sizeof(*places));
	loom_ref *refs = calloc((ranks + 1) * most, sizeof(*refs));
	p->remote = calloc(ranks, sizeof(*p->remote));
	p->remote_worker = calloc(ranks * most, sizeof(*p->remote_worker));
	int rc = places && refs && p->remote && p->remote_worker ? find(s, p, places, refs, err) :
							     LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	free(places);
	free(refs);
	return rc ? rc : LOOM__OP(p->choice, "connect", p->ops->connect(p->self, &s->layout, p->remote, err), err);
}

int loom__ranks_reach(struct loom_stack *s, struct loom_error *err)
{
	int rc = 0;
	if (s->layout.ranks < 2 || s->ranks.connected)
		return 0;
	for (size_t i = 0; i < s->policies && !rc; i++)
		if (LOOM_HAS(s->policy[i].ops, connect))
			rc = connect_policy(s, &s->policy[i], err);
	s->ranks.connected = !rc;
	return rc;
}

uint64_t loom__ranks_digest(const struct loom_stack *s, const struct loom_task *tasks, uint64_t n)
{
	return loom__fnv1a(LOOM__FNV1A, tasks, s->layout.ranks > 1 ? n * sizeof(*tasks) : 0);
}

/* Returns a digest of the names of the selected plug-ins. Devices are left out, because they may differ between
 * ranks. */
uint64_t loom__ranks_conf(const struct loom_stack *s)
{
	uint64_t digest = LOOM__FNV1A;
	for (size_t i = 0; i < s->plan.choices; i++) {
		const struct loom__choice *c = &s->plan.choice[i];
		if (c->kind != LOOM_DEVICE)
			digest = loom__fnv1a(digest, c->plugin->name, strlen(c->plugin->name) + 1);
	}
	return digest;
}

int loom__ranks_agree(struct loom_stack *s, struct loom__agreed *mine, struct loom_error *err)
{
	const struct loom_host *host = &s->host.table;
	if (host->ranks == 1)
		return 0;
	struct loom__agreed *all = calloc(host->ranks, sizeof(*all));
	int rc = all ? host->allgather(host, mine, all, sizeof(*mine), err) : LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	for (uint32_t i = 0; !rc && i < host->ranks; i++) {
		mine->stop |= all[i].stop;
		mine->ns = all[i].ns > mine->ns ? all[i].ns : mine->ns;
		if (all[i].tasks != all[0].tasks)
			rc = LOOM__FAIL(err, LOOM_EINVAL, "tasks = shared: the initial tasks of rank %u are not "
					"those of rank 0: all ranks begin with the same tasks, which hold no "
					"addresses", i);
	}
	free(all);
	return rc;
}

int loom__ranks_counters(struct loom_stack *s, const struct loom_counters **all, struct loom_error *err)
{
	const struct loom_host *host = &s->host.table;
	uint64_t ranks = s->layout.ranks, most = s->ranks.most_workers, at = 0;
	*all = s->counters;
	if (ranks < 2)
		return 0;
	/* The last part is the contribution of this rank to the allgather. */
	if (!s->ranks.counters)
		s->ranks.counters = calloc((ranks + 1) * most, sizeof(*s->ranks.counters));
	if (!s->ranks.counters)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	struct loom_counters *mine = &s->ranks.counters[ranks * most];
	memcpy(mine, s->counters, s->layout.workers * sizeof(*mine));
	int rc = host->allgather(host, mine, s->ranks.counters, most * sizeof(*mine), err);
	for (uint64_t r = 0; !rc && r < ranks; at += s->ranks.size[r++].workers)
		memmove(&s->ranks.counters[at], &s->ranks.counters[r * most], s->ranks.size[r].workers * sizeof(*mine));
	*all = s->ranks.counters;
	return rc;
}
