/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in a stream of the embedding program. The host learns of the end of such a run later, or never. */
#include "run/engine.h"

#include <stdlib.h>
#include <string.h>

enum {
	RING = 4096,    /* limit on the tasks that wait in a stream */
	KEPT = 4096,    /* limit on the tasks in graphs, which stay until the stack is closed */
	SAMPLES = 1024, /* limit on the samples that wait in a stream */
};

/* Tasks of runs that have not ended. They are in memory that the GPU reads when a run begins. */
struct loom__slots {
	loom_ref ref;          /* array of struct loom_task[RING + KEPT] */
	/* number of places of the ring that were filled since the launch; number of these that were freed */
	uint64_t put, got;
	uint64_t end[SAMPLES]; /* [sample % SAMPLES]; the value of `put` after the sample's tasks */
	uint64_t begun, ended; /* number of samples that were enqueued since the launch; number of these that have ended */
	uint64_t kept;         /* number of places after the ring that graphs use */
	/* the launch for which the counts above are valid, because devices count from 0 in each launch */
	uint64_t launch;
};

/* Returns an error with the reason if runs of this stack need the host. */
static int refuse(struct loom_stack *s, struct loom_error *err)
{
	if (s->selected[LOOM_WORKLOAD])
		return LOOM__FAIL(err, LOOM_EINVAL, "the conf selects a workload: streams take submitted tasks");
	if (s->layout.devices > 1)
		return LOOM__FAIL(err, LOOM_ENOTSUP,
				  "a run on %u devices begins when the host has seen that all are ready, which a "
				  "stream cannot order: name one GPU in [run] devices", s->layout.devices);
	if (!(s->shape[0].flags & LOOM_SHAPE_KEEPS) || !s->device[0].streams)
		return LOOM__FAIL(err, LOOM_ENOTSUP, "%s has no streams: choose a GPU in [run] devices%s",
				  s->shape[0].name,
				  s->shape[0].kind == LOOM_ON_GPU ? ", with kernels = persistent" : "");
	for (size_t i = 0; i < s->policies; i++) {
		const struct loom_plugin *p = s->policy[i].choice->plugin;
		if (LOOM_HAS(s->policy[i].ops, start))
			return LOOM__FAIL(err, LOOM_ENOTSUP, "%s has threads of the host in each run, which a "
					"stream cannot order: choose another plug-in of its kind", p->name);
		if (p->kind != LOOM_SCHED && p->kind != LOOM_TERM)
			return LOOM__FAIL(err, LOOM_ENOTSUP, "%s is prepared by the host for each run, which a "
					"stream cannot order: leave it out", p->name);
	}
	if (!loom__may_keep(s))
		return LOOM__FAIL(err, LOOM_ENOTSUP, "the host has a part in each run of this stack: ranks, a "
				"trace, or a scheduler whose starting state depends on the run before");
	return 0;
}

static int make_slots(struct loom_stack *s, struct loom_error *err)
{
	const struct loom_segment_want want = {
	    .bytes = (RING + KEPT) * sizeof(struct loom_task), .owner = -1, .flags = LOOM_MEMORY_HOST};
	uint32_t segment;
	if (s->streams.slots)
		return 0;
	int rc = loom__stack_retire(s, err); /* launched workers know only the segments of their launch */
	rc = rc ? rc : loom__segments_add(s, &want, 1, &segment, err);
	if (rc)
		return rc;
	s->streams.slots = calloc(1, sizeof(*s->streams.slots));
	if (!s->streams.slots)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	s->streams.slots->ref = LOOM_REF(segment, 0);
	return 0;
}

/* Does what a run needs but what is not allowed while a stream is being captured. */
static int prepare(struct loom_stack *s, struct loom_error *err)
{
	int rc = loom__stack_is_idle(s, err);
	rc = rc ? rc : loom__stack_prepare(s, err);
	rc = rc ? rc : make_slots(s, err);
	if (!rc)
		loom__initial_hold(s, LOOM__SMALL_SET);
	rc = rc ? rc : loom__initial_take(s, err); /* makes room, and checks that policies have enough */
	rc = rc ? rc : loom__stack_launch(s, err);
	rc = rc ? rc : refuse(s, err); /* check a second time, because the launch may give a new reason */
	if (!rc && loom__resets_by_host(s))
		rc = LOOM__FAIL(err, LOOM_ENOTSUP, "memory of the scheduler or the detector is in host memory, "
				"which the host resets: set use = p2p in [transport]");
	if (!rc && loom__resets_vary(s))
		rc = LOOM__FAIL(err, LOOM_ENOTSUP,
				"what the scheduler or the detector begins with depends on the number of tasks");
	return rc;
}

/* Frees the places of samples that have ended. `ended` is their number. */
static void free_places(struct loom__slots *q, uint64_t ended)
{
	for (; q->ended < ended; q->ended++)
		q->got = q->end[q->ended % SAMPLES];
}

/* Finds n adjacent places for tasks, and stores the index of the first in *place. `captures`: 1 if the tasks are for a
 * graph. */
static int find_place(struct loom__slots *q, uint64_t n, int captures, uint64_t *place, struct loom_error *err)
{
	if (captures) {
		if (n > KEPT - q->kept)
			return LOOM__FAIL(err, LOOM_EFULL, "graphs have %llu tasks of this stack already, of %u: "
					"open another stack", (unsigned long long)q->kept, (unsigned)KEPT);
		*place = RING + q->kept;
		return 0;
	}
	uint64_t skip = q->put % RING + n > RING ? RING - q->put % RING : 0;
	if (q->begun - q->ended == SAMPLES || q->put + skip + n - q->got > RING)
		return LOOM__FAIL(err, LOOM_EFULL, "%llu runs with %llu tasks have not ended: loom_stack_wait() first",
				  (unsigned long long)(q->begun - q->ended), (unsigned long long)(q->put - q->got));
	q->put += skip;
	*place = q->put % RING;
	return 0;
}

static int enqueue(struct loom_stack *s, void *stream, int captures, struct loom_error *err)
{
	struct loom__slots *q = s->streams.slots;
	struct loom__device *d = &s->device[0];
	uint64_t n = s->initial.count, place = 0;
	struct loom_enqueued seen;
	if (q->launch != s->launch.number)
		*q = (struct loom__slots){.ref = q->ref, .kept = q->kept, .launch = s->launch.number};
	int rc = d->streams->drain(d->self, 0, &seen, err);
	if (rc && rc != LOOM_EAGAIN)
		return rc;
	free_places(q, seen.ended);
	rc = find_place(q, n, captures, &place, err);
	if (rc)
		return rc;
	loom_ref ref = LOOM_REF(LOOM_REF_SEGMENT(q->ref), LOOM_REF_OFFSET(q->ref) + place * sizeof(struct loom_task));
	if (n)
		memcpy(loom__host_at(s, ref), s->initial.submitted, n * sizeof(struct loom_task));
	rc = d->streams->enqueue(d->self, stream, ref, n, err);
	if (rc)
		return rc;
	if (captures) {
		q->kept += n;
		loom__launch_captures(s);
	} else {
		q->put += n;
		q->end[q->begun++ % SAMPLES] = q->put;
		s->streams.enqueued++;
	}
	loom__initial_begun(s);
	return 0;
}

int loom_stack_enqueue(struct loom_stack *s, void *stream, struct loom_error *err)
{
	int captures = 0;
	if (loom__stack_own(s, err))
		return LOOM_EBUSY;
	if (s->run.running)
		return LOOM__FAIL(err, LOOM_EBUSY, "a run is in progress: loom_stack_wait() first");
	int rc = refuse(s, err);
	if (!rc && s->initial.count > LOOM__SMALL_SET)
		rc = LOOM__FAIL(err, LOOM_EINVAL, "%zu tasks, but a run in a stream begins with %u at most: let "
				"them spawn the others", s->initial.count, LOOM__SMALL_SET);
	rc = rc ? rc : s->device[0].streams->captures(s->device[0].self, stream, &captures, err);
	/* loom_stack_wait() returns the request, and retires the launch. */
	rc = rc ? rc : loom__graphs_stopped(s, err);
	if (rc)
		return rc;
	int ready = s->streams.slots && s->launch.launched && s->composed && s->initial.count <= s->initial.held;
	if (!ready && captures)
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "the stream is being captured, and this stack has not run %zu tasks or more in a "
				  "stream before: enqueue them once before the capture", s->initial.count);
	if (!ready && s->streams.enqueued)
		return LOOM__FAIL(err, LOOM_EBUSY, "%llu runs are in a stream, and this one has more tasks than "
				"any before: loom_stack_wait() first", (unsigned long long)s->streams.enqueued);
	if (!s->streams.enqueued) /* a stop request from before this call belongs to no run */
		__atomic_store_n(&s->stop_requests, 0, __ATOMIC_RELAXED);
	if (!ready)
		rc = prepare(s, err);
	return rc ? rc : enqueue(s, stream, captures, err);
}

int loom__graphs_stopped(struct loom_stack *s, struct loom_error *err)
{
	if (!s->launch.launched || !s->launch.captured || !__atomic_load_n(&s->ctl->stop_graphs, __ATOMIC_ACQUIRE))
		return 0;
	__atomic_store_n(&s->ctl->stop, 1u, __ATOMIC_RELAXED);
	return LOOM__FAIL(err, LOOM_EINTR, "loom_stack_stop() has ended the runs of graphs: capture new graphs");
}

/* Reports the first error of samples that have ended. */
static int judge(struct loom_stack *s, const struct loom_enqueued *seen, struct loom_error *err)
{
	int rc = loom__worker_failure(s, err);
	if (rc || !seen->wrong)
		return rc;
	return LOOM__FAIL(err, LOOM_EWRONG,
	    "in %llu of %llu runs of streams and graphs tasks that were made or stolen and tasks that were "
	    "run differ", (unsigned long long)seen->wrong, (unsigned long long)(seen->ended + seen->replayed));
}

int loom__enqueued_wait(struct loom_stack *s, uint64_t until, uint64_t *ns, struct loom_error *err)
{
	struct loom__device *d = &s->device[0];
	struct loom_enqueued seen = {0};
	int rc;
	for (;;) {
		uint64_t now = loom__now_ns();
		rc = d->streams->drain(d->self, now < until ? until - now : 0, &seen, err);
		int stops = __atomic_load_n(&s->stop_requests, __ATOMIC_ACQUIRE) != 0;
		if (rc == LOOM_EAGAIN && stops) {
			rc = LOOM__FAIL(err, LOOM_EINTR, "interrupted in a stream");
			/* If the stream lets the runs begin, they end at once. retire() waits one second for that. */
			__atomic_store_n(&s->ctl->stop, 1u, __ATOMIC_RELAXED);
			break;
		}
		if (rc != LOOM_EAGAIN || loom__now_ns() >= until)
			break;
	}
	if (rc == LOOM_EAGAIN)
		return rc;
	free_places(s->streams.slots, seen.ended);
	s->streams.enqueued = 0;
	*ns = seen.ns;
	s->layout.initial_tasks = seen.initial_tasks; /* the result is about this run */
	return rc ? rc : judge(s, &seen, err);
}
