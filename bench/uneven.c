/* SPDX-License-Identifier: Apache-2.0 */
#include "uneven.h"

#include <stdlib.h>

#include "tests/harness.h"
#include "times.h"

enum { WORKERS = 2 };

/* The tasks that the tasks of this loop spawn. They are the iterations of the next loop. */
static struct {
	struct loom_task *task;
	uint64_t n, room;
	uint32_t lock;
} next;

static int collect(struct loom_ctx *c, const struct loom_task *task)
{
	(void)c;
	while (__atomic_exchange_n(&next.lock, 1, __ATOMIC_ACQUIRE))
		loom_cpu_yield();
	if (next.n == next.room) {
		next.room = next.room ? 2 * next.room : 1024;
		next.task = realloc(next.task, next.room * sizeof(*next.task));
		if (!next.task)
			abort();
	}
	next.task[next.n++] = *task;
	__atomic_store_n(&next.lock, 0, __ATOMIC_RELEASE);
	return 0;
}

static void no_run(struct loom_ctx *c)
{
	(void)c;
}

static int none_wanted(struct loom_ctx *c)
{
	(void)c;
	return 0;
}

static const struct loom_sched_dev loops = {sizeof(loops), no_run, collect, none_wanted, NULL};

struct job {
	struct harness *h;
	const struct loom_task *task;
};

static void body(void *arg, uint64_t i, uint32_t thread)
{
	struct job *job = arg;
	const struct loom_task *t = &job->task[i];
	job->h->task[t->tag](&job->h->rig.ctx[thread], t);
}

static double sample(struct harness *h)
{
	struct job job = {h, h->rig.initial};
	uint64_t n = h->rig.layout.initial_tasks, begin;
	struct loom_task *mine = NULL;
	harness_init(h);
	begin = now_ns();
	while (n) {
		next.n = 0;
		uneven_loop(n, body, &job);
		free(mine);
		job.task = mine = next.task;
		n = next.n;
		next.task = NULL;
		next.room = 0;
	}
	free(mine);
	return (double)(now_ns() - begin) / 1e9;
}

struct harness *uneven_open(const char *workload, const char *options, uint32_t warps, struct uneven_memory *memory)
{
	struct loom_error err = {0};
	struct harness *h = harness_open(&(struct harness_params){.sched = "sched_static",
								  .sched_dev = &loops,
								  .workload = workload,
								  .workload_opts = options,
								  .workers = WORKERS,
								  .lanes = 32 * warps,
								  .products = warps > 0,
								  .seed = 1},
					 &err);
	if (!h) {
		fprintf(stderr, "%s\n", err.text);
		return NULL;
	}
	harness_init(h);
	const struct loom__rig_part *part = &h->rig.part[LOOM_WORKLOAD];
	*memory = (struct uneven_memory){part->view.global, h->rig.initial, part->need.global, h->rig.layout.initial_tasks};
	return h;
}

int uneven_verify(struct harness *h)
{
	struct loom_error err = {0};
	if (!harness_verify(h, &err))
		return 0;
	fprintf(stderr, "%s\n", err.text);
	return 3;
}

int uneven_main(int argc, char **argv)
{
	int samples = argc > 4 ? atoi(argv[4]) : 0;
	if (samples < 1) {
		fprintf(stderr, "usage: %s WORKLOAD OPTIONS SCHEDULE SAMPLES\n", argv[0]);
		return 2;
	}
	struct uneven_memory memory;
	struct harness *h = uneven_open(argv[1], argv[2], 0, &memory);
	if (!h)
		return 1;
	uneven_begin(WORKERS, argv[3]);
	for (int i = -1; i < samples; i++) { /* the first sample is a warm-up */
		double seconds = sample(h);
		if (uneven_verify(h))
			return 3;
		if (i >= 0)
			printf("%s%.9f", i ? ", " : "{\"seconds\": [", seconds);
	}
	printf("]}\n");
	harness_close(h);
	return 0;
}
