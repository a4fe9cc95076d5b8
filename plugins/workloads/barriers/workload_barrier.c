/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_barrier. A barrier takes (time of many rounds - time of few rounds) / (difference of the numbers). */
#include "workload_barrier.dev.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/host.h"
#include "lib/hash.h"
#include "lib/host_mark.h"

struct rounds_opts {
	uint64_t few, difference, checked, parts, deadline;
	int64_t absent;
	uint32_t scope, work, teams, leave;
};

/* `group`: team of each worker with scope = group, else NULL. */
struct rounds_job {
	struct workload workload;
	struct loom_barrier_scopes barrier_scopes;
	uint32_t *group;
};

static const char *const rounds_scopes[] = {"worker", "device", "stack", "job", "group", NULL}; /* as enum loom_scope */

static const struct loom_opt rounds_rows[] = {
	LOOM_OPT(struct rounds_opts, scope, LOOM_OPT_ENUM, "stack",
			 "Scope of the barrier: the lanes of a worker, the workers of a device, of all devices "
			 "(stack), of all ranks (job), or of a team (group).", .choices = rounds_scopes),
	LOOM_OPT(struct rounds_opts, few, LOOM_OPT_U64, "512", "Rounds of a short timed part.", .min = 1, .max = 1e9),
	LOOM_OPT(struct rounds_opts, difference, LOOM_OPT_U64, "5120",
			 "Additional rounds of a long timed part. The barrier's cost is the difference in time divided "
			 "by this number.", .min = 1, .max = 1e9),
	LOOM_OPT(struct rounds_opts, parts, LOOM_OPT_U64, "5",
			 "Timed parts of each length in a sample.", .min = 2, .max = 10000),
	LOOM_OPT(struct rounds_opts, checked, LOOM_OPT_U64, "500",
			 "Rounds before the timed parts in which workers verify that all others have arrived.",
			 .min = 1, .max = 1e9),
	LOOM_OPT(struct rounds_opts, work, LOOM_OPT_U32, "0",
			 "Steps of a computation, about 1 ns each, with which rounds are also timed. A worker is late "
			 "in every second round, and computes between arrive and await. 0: none.", .max = 1e9),
	LOOM_OPT(struct rounds_opts, teams, LOOM_OPT_U32, "2",
			 "scope = group: number of teams; worker i is in team i modulo this "
			 "number.", .min = 1, .max = 1e6),
	LOOM_OPT(struct rounds_opts, leave, LOOM_OPT_U32, "0",
			 "Number of workers, from the last one on, that leave for good after half of the checked "
			 "rounds. Worker 0 stays.", .max = 1e6),
	LOOM_OPT(struct rounds_opts, deadline, LOOM_OPT_TIME, "0",
			 "Longest time that a worker waits for the others; then the run fails. 0: no limit."),
	LOOM_OPT(struct rounds_opts, absent, LOOM_OPT_I64, "-1",
			 "A worker that never arrives, to test how that ends. -1: none.", .min = -1, .max = 1e6),
	{.name = NULL},
};

static const struct rounds_opts *opts_of(const void *self)
{
	return ((const struct workload *)self)->opts;
}

static int rounds_create(const struct loom_host *host, const void *opts, void **self,
		       struct loom_error *err)
{
	return workload_create(host, opts, sizeof(struct rounds_job), self, err);
}

static void rounds_destroy(void *self)
{
	struct rounds_job *m = self;
	if (m)
		m->workload.host->free(m->workload.host, m->group);
	workload_destroy(self);
}

static uint32_t leavers(const struct rounds_opts *o, const struct loom_layout *layout)
{
	return o->leave < layout->workers ? o->leave : layout->workers - 1;
}

static const struct loom_barrier_scopes *rounds_barrier_scopes(void *self, const struct loom_layout *layout)
{
	struct rounds_job *m = self;
	const struct rounds_opts *o = m->workload.opts;
	const struct loom_host *host = m->workload.host;
	host->free(host, m->group);
	m->group = o->scope == LOOM_SCOPE_GROUP ? host->alloc(host, (layout->workers + 1) * sizeof(*m->group)) : NULL;
	for (uint32_t w = 0; m->group && w < layout->workers; w++)
		m->group[w] = w % o->teams;
	m->barrier_scopes = (struct loom_barrier_scopes){
		.scopes = 1u << o->scope, .drops = o->leave > 0, .groupings = m->group != NULL, .group = m->group};
	return &m->barrier_scopes;
}

static uint64_t record_bytes(const struct rounds_opts *o)
{
	return sizeof(struct rounds_record) + o->parts * ROUNDS_PARTS * sizeof(uint64_t) +
	       (o->scope == LOOM_SCOPE_JOB ? ROUNDS_STAMPS * sizeof(struct rounds_stamp) : 0);
}

static int rounds_need(void *self, const struct loom_layout *layout, struct loom_need *need,
		     struct loom_error *err)
{
	(void)err;
	need->global = sizeof(struct rounds_head);
	need->worker = record_bytes(opts_of(self));
	need->worker_place = layout->noncoherent ? LOOM_PLACE_HOST : LOOM_PLACE_ANY;
	return 0;
}

/* Returns the number of rounds that a worker completes in a sample. */
static uint64_t rounds_of(const struct rounds_opts *o)
{
	return o->checked + o->parts * (2 + 2 * o->few + o->difference) + (o->work ? o->parts * (3 + 2 * o->few) : 0);
}

#define ROUNDS_SLICED_MAX 1000u /* upper limit on rounds that each take a time slice of about 2 ms */

/* Rejects many rounds between ranks that share a GPU in time slices. Each round takes a time slice, so many rounds
 * would take minutes and would measure only the slices. */
static int check_time_slices(const struct workload *w, const struct loom_layout *layout, struct loom_error *err)
{
	const struct rounds_opts *o = w->opts;
	uint32_t sliced = 0;
	for (uint32_t d = 0; d < layout->devices; d++)
		sliced |= layout->device[d].flags & LOOM_SHAPE_TIME_SLICED;
	if (!sliced || o->scope != LOOM_SCOPE_JOB || rounds_of(o) <= ROUNDS_SLICED_MAX)
		return 0;
	return LOOM_FAIL(
	    w->host, err, LOOM_ENOTSUP,
	    "ranks share a device in time slices of milliseconds, and each of %llu rounds of the job would take a time "
	    "slice: "
	    "give each rank its own device, or let the driver run them concurrently (MPS); or set few = 5, "
	    "difference = 10, checked = 40 in [workload.barrier]",
	    (unsigned long long)rounds_of(o));
}

static int rounds_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		     struct loom_error *err)
{
	const struct rounds_opts *o = opts_of(self);
	int rc = check_time_slices(self, layout, err);
	if (rc)
		return rc;
	*(struct rounds_head *)view->global = (struct rounds_head){.few = o->few,
							       .difference = o->difference,
							       .checked = o->checked,
							       .parts = o->parts,
							       .deadline_ns = o->deadline,
							       .scope = o->scope,
							       .work = o->work,
							       .absent = (uint32_t)o->absent,
							       .stay = layout->workers - leavers(o, layout),
							       .leave = o->leave ? o->checked / 2 : ~0ull,
							       .teams = o->teams};
	for (uint32_t w = 0; w < layout->workers; w++)
		memset(view->worker[w], 0, record_bytes(o));
	return 0;
}

static int rounds_constants(void *self, const struct loom_layout *layout, char *text, size_t room,
			    struct loom_error *err)
{
	const struct rounds_opts *o = opts_of(self);
	(void)layout, (void)err;
	snprintf(text, room,
		 "#define ROUNDS_CONSTANTS 1\n#define ROUNDS_IS_scope %u\n#define ROUNDS_IS_deadline_ns "
		 "%lluull\n#define ROUNDS_IS_work %u\n"
		 "#define ROUNDS_IS_teams %u\n#define ROUNDS_IS_leave %u\n",
		 o->scope, (unsigned long long)o->deadline, o->work, o->teams, o->leave);
	return 0;
}

/* Returns the median of worker 0's times of one part, and computes their standard deviation. */
static double median_of(const struct rounds_opts *o, const uint64_t *time, enum rounds_part part,
			uint64_t *room, double *deviation)
{
	double mean = 0, sum = 0;
	for (uint64_t i = 0; i < o->parts; i++) {
		room[i] = time[i * ROUNDS_PARTS + part];
		mean += (double)room[i] / (double)o->parts;
	}
	for (uint64_t i = 0; i < o->parts; i++)
		sum += ((double)room[i] - mean) * ((double)room[i] - mean);
	*deviation = sqrt(sum / (double)(o->parts - 1));
	qsort(room, o->parts, sizeof(*room), workload_ascending);
	return ((double)room[o->parts / 2] + (double)room[(o->parts - 1) / 2]) / 2;
}

static int report_times(const struct workload *w, const uint64_t *time, struct loom_report *report,
			struct loom_error *err)
{
	const struct rounds_opts *o = w->opts;
	double median[ROUNDS_PARTS] = {0}, deviation[ROUNDS_PARTS] = {0};
	uint64_t *room = w->host->alloc(w->host, o->parts * sizeof(*room));
	if (!room)
		return LOOM_FAIL(w->host, err, LOOM_ENOMEM, "out of memory");
	for (uint32_t part = 0; part < (o->work ? ROUNDS_PARTS : ROUNDS_WAIT); part++)
		median[part] = median_of(o, time, (enum rounds_part)part, room, &deviation[part]);
	w->host->free(w->host, room);
	/* Formulas 1 and 2 of the study of GPU barriers (docs/barriers.md). */
	w->host->metric(w->host, report, "latency", "ns", LOOM_BETTER_LESS,
			(median[ROUNDS_LONG] - median[ROUNDS_SHORT]) / (double)o->difference);
	w->host->metric(w->host, report, "latency_error", "ns", LOOM_BETTER_NONE,
			hypot(deviation[ROUNDS_LONG], deviation[ROUNDS_SHORT]) / (double)o->difference);
	/* Share of the barrier's cost that is hidden if a worker computes between arrive and await. */
	double added = median[ROUNDS_WAIT] - median[ROUNDS_WORK];
	if (o->work && added > 0)
		w->host->metric(w->host, report, "overlap", "", LOOM_BETTER_MORE,
				(median[ROUNDS_WAIT] - median[ROUNDS_SPLIT]) / added);
	return 0;
}

/* What a rank sends to the other ranks: the stamps of its checked rounds, at most ROUNDS_STAMPS. */
struct rounds_of_rank {
	uint64_t clock; /* ranks with the same number share a clock; 0: this clock is not shared */
	struct rounds_stamp stamp[];
};

/* Returns an identifier of the clock that this rank reads. Ranks with the same identifier can compare times. Virtual time has 1,
 * CPUs have a hash of the boot id, and other devices have 0, which equals no other clock. */
static uint64_t clock_of(const struct loom_layout *layout)
{
	struct host_mark mark;
	if (LOOM_HAS(layout, clock))
		return 1;
	for (uint32_t d = 0; d < layout->devices; d++)
		if (layout->device[d].kind != LOOM_ON_CPU)
			return 0;
	host_mark_read(&mark);
	return *mark.boot ? loom__fnv1a(LOOM__FNV1A, mark.boot, strlen(mark.boot)) : 0;
}

static int check_ranks(const struct workload *w, const struct loom_layout *layout, const struct rounds_stamp *own,
		       struct loom_error *err)
{
	const struct rounds_opts *o = w->opts;
	uint32_t ranks = workload_ranks(w->host);
	uint64_t rounds = o->checked < ROUNDS_STAMPS ? o->checked : ROUNDS_STAMPS;
	uint64_t bytes = sizeof(struct rounds_of_rank) + rounds * sizeof(*own);
	char *all = w->host->alloc(w->host, (ranks + 1ull) * bytes);
	struct rounds_of_rank *mine = (struct rounds_of_rank *)(all + ranks * bytes);
	int rc = 0;
	if (!all)
		return LOOM_FAIL(w->host, err, LOOM_ENOMEM, "out of memory");
	mine->clock = clock_of(layout);
	memcpy(mine->stamp, own, rounds * sizeof(*own));
	if (ranks > 1)
		rc = w->host->allgather(w->host, mine, all, bytes, err);
	for (uint32_t r = 0; r < ranks && ranks > 1 && !rc; r++) {
		const struct rounds_of_rank *other = (const struct rounds_of_rank *)(all + r * bytes);
		for (uint64_t i = 0; i < rounds && mine->clock && other->clock == mine->clock && !rc; i++)
			if (mine->stamp[i].left < other->stamp[i].arrived)
				rc = LOOM_FAIL(
				    w->host, err, LOOM_EWRONG,
				    "barrier: early release: rank %u left round %llu %llu ns before rank %u arrived",
				    w->host->rank, (unsigned long long)i + 1,
				    (unsigned long long)(other->stamp[i].arrived - mine->stamp[i].left), r);
	}
	w->host->free(w->host, all);
	return rc;
}

static int rounds_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
		       struct loom_report *report, struct loom_error *err)
{
	const struct workload *w = self;
	const struct rounds_opts *o = w->opts;
	uint64_t rounds = rounds_of(o);
	for (uint32_t i = 0; i < layout->workers; i++) {
		const struct rounds_record *n = view->worker[i];
		if (n->early)
			return LOOM_FAIL(
			    w->host, err, LOOM_EWRONG,
			    "barrier: early release: worker %u left round %llu before worker %llu "
			    "had arrived; %llu "
			    "times in %llu rounds",
			    i, (unsigned long long)n->early_round, (unsigned long long)n->early_by,
			    (unsigned long long)n->early, (unsigned long long)o->checked);
		if (i >= layout->workers - leavers(o, layout)) {
			if (n->rounds != o->checked / 2 || n->round != ROUNDS_LEFT)
				return LOOM_FAIL(w->host, err, LOOM_EWRONG,
						 "barrier: worker %u left in round %llu instead of %llu", i,
						 (unsigned long long)n->rounds, (unsigned long long)o->checked / 2);
			continue;
		}
		if (n->round != o->checked || n->rounds != rounds)
			return LOOM_FAIL(w->host, err, LOOM_EWRONG,
					 "barrier: worker %u completed %llu rounds, %llu of "
					 "them checked, instead of %llu and %llu",
					 i, (unsigned long long)n->rounds,
					 (unsigned long long)n->round, (unsigned long long)rounds,
					 (unsigned long long)o->checked);
	}
	const uint64_t *times = (const uint64_t *)((const struct rounds_record *)view->worker[0] + 1);
	if (o->scope == LOOM_SCOPE_JOB) {
		int rc = check_ranks(w, layout, (const struct rounds_stamp *)(times + o->parts * ROUNDS_PARTS), err);
		if (rc)
			return rc;
	}
	w->host->metric(w->host, report, "barriers", "", LOOM_BETTER_NONE, (double)rounds);
	return report_times(w, times, report, err);
}

static int rounds_explain(void *self, uint32_t worker, int code, uint64_t info,
			struct loom_error *err)
{
	const struct workload *w = self;
	if (code != LOOM_ETIMEDOUT)
		return 0;
	if (info == ROUNDS_OTHER_RANK)
		return LOOM_FAIL(w->host, err, code,
				 "another rank has not arrived at the barrier: worker %u, and all others of this rank, "
				 "have waited for it "
				 "for %.3g ms (workload.barrier.deadline)",
				 worker, (double)opts_of(self)->deadline / 1e6);
	return LOOM_FAIL(w->host, err, code,
			 "worker %llu has not arrived at the barrier: worker %u has waited for it for "
			 "%.3g ms (workload.barrier.deadline)",
			 (unsigned long long)info, worker, (double)opts_of(self)->deadline / 1e6);
}

WORKLOAD_OPS(rounds, .create = rounds_create, .destroy = rounds_destroy, .tasks = workload_no_tasks,
	     .explain = rounds_explain, .needs = 1u << LOOM_BARRIER, .work = "barriers",
	     .constants = rounds_constants, .barrier_scopes = rounds_barrier_scopes);

WORKLOAD_KERNEL(workload_barrier, LOOM_CODE_FILE("workload_barrier.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_barrier", "0.1.0", "Apache-2.0",
		   "Rounds of a barrier, checked and timed", .opts = rounds_rows,
		   .opts_size = sizeof(struct rounds_opts), .ops = &rounds_ops, .dev = &workload_barrier_code)
