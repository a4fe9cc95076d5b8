/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the cost of a run of ten small tasks on an open stack of two CPU workers. The peers are a plain pool of two
 * threads with a mutex and a condition variable, and oneTBB's task_arena and a loop of OpenMP, in which the caller also executes
 * tasks.
 *   BUILD/bench/embed [RUNS]
 * With devices, the program measures such a run on GPUs, with 1, 132 and all workers of each:
 *   BUILD/bench/embed RUNS "cuda:0 cuda:1"
 * Prints a table, and lines `sample FIGURE VALUE` for bench/figures.py: the median of each block of 50 runs, and the ratios of
 * the blocks that took turns. With EMBED_QUICK=1 in the environment it sets quick = yes in [device.gpu].
 * The program uses the plug-ins of BUILD. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gpuloom/gpuloom.h>
#include <gpuloom/plugin.h>

#include "bench/embed.h"
#include "bench/times.h"

#define TASKS 10
#define BLOCK 50 /* the number of consecutive runs of one kind */

static uint64_t done[TASKS];

static void work(uint64_t i)
{
	done[i]++;
}

/* ---- gpuloom ---- */

static void task(struct loom_ctx *c, const struct loom_task *t)
{
	(void)c;
	work(t->param[0]);
}

static void must(int rc, const struct loom_error *err)
{
	if (rc) {
		fprintf(stderr, "embed: %s\n", err->text);
		exit(1);
	}
}

struct ours {
	struct loom_config *cfg;
	struct loom_stack *stack;
	struct loom_task all[TASKS];
};

static void ours_open(struct ours *o, const char *build, const char *caller)
{
	struct loom_error err;
	char conf[4500];
	uint32_t tag;
	snprintf(
	    conf, sizeof(conf),
	    "[gpuloom]\nplugin_path = %s/plugins\n[run]\ndevices = cpu:0\n[device.cpu]\nworkers = 2\n"
	    "oversubscribe = yes\ncaller = %s\n[transport]\nuse = host\n[scheduler]\nuse = mgws\n[termination]\nuse = counter\n",
	    build, caller);
	must(loom_config_create(&o->cfg, &err), &err);
	must(loom_config_load_text(o->cfg, "embed", conf, &err), &err);
	must(loom_stack_open(o->cfg, NULL, &o->stack, &err), &err);
	must(loom_stack_task(o->stack, "task", task, &tag, &err), &err);
	for (uint64_t i = 0; i < TASKS; i++)
		o->all[i] = (struct loom_task){.tag = tag, .param = {i}};
}

static void ours_submit(struct ours *o)
{
	struct loom_error err;
	must(loom_stack_submit(o->stack, o->all, TASKS, &err), &err);
}

static void ours_run(void *arg)
{
	struct ours *o = arg;
	struct loom_error err;
	ours_submit(o);
	must(loom_stack_run(o->stack, NULL, &err), &err);
}

static void ours_measure(void *arg)
{
	struct ours *o = arg;
	struct loom_error err;
	struct loom_result *result;
	ours_submit(o);
	must(loom_stack_run(o->stack, &result, &err), &err);
	loom_result_destroy(result);
}

static void ours_start(void *arg)
{
	struct ours *o = arg;
	struct loom_error err;
	ours_submit(o);
	must(loom_stack_start(o->stack, &err), &err);
	must(loom_stack_wait(o->stack, UINT64_MAX, NULL, &err), &err);
}

static void ours_close(struct ours *o)
{
	loom_stack_close(o->stack);
	loom_config_destroy(o->cfg);
}

/* ---- a plain pool ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t some, none;
	uint64_t queue[TASKS];
	unsigned queued, left;
	int stop;
	pthread_t thread[2];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER, .none = PTHREAD_COND_INITIALIZER};

static void *pool_main(void *arg)
{
	pthread_mutex_lock(&pool.lock);
	for (;;) {
		while (!pool.queued && !pool.stop)
			pthread_cond_wait(&pool.some, &pool.lock);
		if (!pool.queued)
			break;
		uint64_t i = pool.queue[--pool.queued];
		pthread_mutex_unlock(&pool.lock);
		work(i);
		pthread_mutex_lock(&pool.lock);
		if (!--pool.left)
			pthread_cond_signal(&pool.none);
	}
	pthread_mutex_unlock(&pool.lock);
	return arg;
}

static void pool_open(void)
{
	for (int i = 0; i < 2; i++)
		if (pthread_create(&pool.thread[i], NULL, pool_main, NULL))
			exit(1);
}

static void pool_run(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&pool.lock);
	for (unsigned i = 0; i < TASKS; i++)
		pool.queue[i] = i;
	pool.queued = pool.left = TASKS;
	pthread_cond_broadcast(&pool.some);
	while (pool.left)
		pthread_cond_wait(&pool.none, &pool.lock);
	pthread_mutex_unlock(&pool.lock);
}

static void pool_close(void)
{
	pthread_mutex_lock(&pool.lock);
	pool.stop = 1;
	pthread_cond_broadcast(&pool.some);
	pthread_mutex_unlock(&pool.lock);
	for (int i = 0; i < 2; i++)
		pthread_join(pool.thread[i], NULL);
}

/* ---- oneTBB ---- */

static void tbb_run(void *arg)
{
	embed_tbb_run(arg, work, TASKS);
}

/* ---- OpenMP ---- */

static void omp_run(void *arg)
{
	(void)arg;
	embed_omp_run(work, TASKS);
}

/* ---- the runs ---- */

static struct kind {
	const char *key, *name;
	void (*run)(void *arg);
	void *arg;
	uint64_t *ns;	  /* the time of each run in ns */
	double *block; /* the median of each block in us */
} kinds[] = {
	{"caller", "gpuloom, caller = yes", ours_run, NULL, NULL, NULL},
	{"run", "gpuloom", ours_run, NULL, NULL, NULL},
	{"start", "gpuloom, start and wait", ours_start, NULL, NULL, NULL},
	{"measured", "gpuloom, with a result", ours_measure, NULL, NULL, NULL},
	{"omp", "a loop of OpenMP", omp_run, NULL, NULL, NULL},
	{"pool", "mutex and condition variable", pool_run, NULL, NULL, NULL},
	{"tbb", "oneTBB's task_arena", tbb_run, NULL, NULL, NULL},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void execute(unsigned runs)
{
	for (unsigned at = 0; at <= runs; at += BLOCK) /* the first block is a warm-up */
		for (struct kind *k = kinds; k < kinds + KINDS; k++)
			for (unsigned i = 0; i < BLOCK && k->run; i++) {
				uint64_t begin = now_ns();
				k->run(k->arg);
				if (at)
					k->ns[at - BLOCK + i] = now_ns() - begin;
			}
}

static void make_room(struct kind *k, unsigned runs)
{
	k->ns = calloc(runs, sizeof(*k->ns));
	k->block = calloc(runs / BLOCK, sizeof(*k->block));
	if (!k->ns || !k->block)
		exit(1);
}

/* Prints the row of the table, and the samples: embed_PREFIX_KEY_us. */
static void describe(struct kind *k, unsigned runs, const char *prefix)
{
	for (unsigned i = 0; i < runs / BLOCK; i++) {
		sort_ns(k->ns + (size_t)i * BLOCK, BLOCK);
		k->block[i] = (double)k->ns[i * BLOCK + BLOCK / 2] / 1e3;
		printf("sample embed_%s%s_us %.3f\n", prefix, k->key, k->block[i]);
	}
	sort_ns(k->ns, runs);
	printf("%30s %10.3f %10.3f %10.3f\n", k->name, (double)k->ns[runs / 10] / 1e3, (double)k->ns[runs / 2] / 1e3,
	       (double)k->ns[runs * 9ull / 10] / 1e3);
	free(k->ns);
}

static void ratios(const char *figure, const struct kind *of, const struct kind *by, unsigned runs)
{
	for (unsigned i = 0; i < runs / BLOCK; i++)
		printf("sample %s %.4f\n", figure, of->block[i] / by->block[i]);
}

/* ---- GPUs ---- */

/* Each task stores the number of the run in a word of its own. The words are in host memory. An atomic addition there takes
 * more than a microsecond, and additions to one cache line wait for each other, so they would hide the cost of the run. */
static const char gpu_task[] = "LOOM_FN void task(struct loom_ctx *c, const struct loom_task *t)\n"
			       "{\n"
			       "	if (c->lane == 0)\n"
			       "		loom_store_relaxed_sys((uint64_t *)loom_at(c, t->data.ref) + t->param[0], t->param[1]);\n"
			       "}\n";

static uint64_t *gpu_open(struct ours *o, const char *build, const char *devices, const char *workers, int resident)
{
	static const char *const name[] = {"task"};
	struct loom_error err;
	char conf[5000];
	uint32_t tag;
	loom_ref ref;
	void *host;
	snprintf(conf, sizeof(conf),
		 "[gpuloom]\nplugin_path = %s/plugins\n[run]\ndevices = %s\n[device.gpu]\nworkers = %s\nresident = %s\nquick = %s\n"
		 "[device.cpu]\n"
		 "workers = 1\n[transport]\nuse = p2p\n[scheduler]\nuse = mgws\n[termination]\nuse = hcounter\n",
		 build, devices, workers, resident ? "yes" : "no", getenv("EMBED_QUICK") ? "yes" : "no");
	must(loom_config_create(&o->cfg, &err), &err);
	must(loom_config_load_text(o->cfg, "embed", conf, &err), &err);
	must(loom_stack_open(o->cfg, NULL, &o->stack, &err), &err);
	must(loom_stack_source(o->stack, "task", gpu_task, name, 1, &tag, &err), &err);
	must(loom_stack_alloc(o->stack, TASKS * sizeof(uint64_t), &ref, &host, &err), &err);
	for (uint64_t i = 0; i < TASKS; i++)
		o->all[i] = (struct loom_task){.tag = tag, .param = {i}, .data = {.ref = ref}};
	return host;
}

/* Executes run `number`, and returns its time. Exits if a task did not run. */
static uint64_t gpu_run(struct ours *o, const uint64_t *words, uint64_t number)
{
	for (uint64_t i = 0; i < TASKS; i++)
		o->all[i].param[1] = number;
	uint64_t begin = now_ns();
	ours_run(o);
	uint64_t ns = now_ns() - begin;
	for (uint64_t i = 0; i < TASKS; i++)
		if (words[i] != number) {
			fprintf(stderr, "embed: task %llu of run %llu did not run\n", (unsigned long long)i,
				(unsigned long long)number);
			exit(1);
		}
	return ns;
}

static void gpu_measure(struct kind *k, unsigned runs, const char *build, const char *devices, const char *workers,
			int resident)
{
	struct ours ours;
	const uint64_t *words = gpu_open(&ours, build, devices, workers, resident);
	make_room(k, runs);
	for (unsigned i = 0; i < BLOCK; i++) /* a warm-up */
		gpu_run(&ours, words, i + 1);
	for (unsigned i = 0; i < runs; i++)
		k->ns[i] = gpu_run(&ours, words, BLOCK + i + 1);
	ours_close(&ours);
}

static void gpu_main(unsigned runs, const char *build, const char *devices)
{
	static struct {
		const char *workers;
		int resident;
		struct kind kind;
	} rows[] = {
	    {"1", 0, {.key = "launched_1", .name = "launched, 1 worker"}},
	    {"132", 0, {.key = "launched_132", .name = "launched, 132 workers"}},
	    {"auto", 0, {.key = "launched_all", .name = "launched, all workers"}},
	    {"1", 1, {.key = "resident_1", .name = "resident, 1 worker"}},
	    {"132", 1, {.key = "resident_132", .name = "resident, 132 workers"}},
	    {"auto", 1, {.key = "resident_all", .name = "resident, all workers"}},
	};
	char prefix[16];
	snprintf(prefix, sizeof(prefix), "%s%s", getenv("EMBED_QUICK") ? "quick_" : "", strchr(devices, ' ') ? "two_" : "");
	printf("%u tasks on %s, %u runs; us\n%30s %10s %10s %10s\n", TASKS, devices, runs, "", "10 %", "median", "90 %");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		/* Beside a CPU, a GPU needs two workers, because one of them is its proxy worker. */
		int two = strstr(devices, "cpu") && !strcmp(rows[i].workers, "1");
		gpu_measure(&rows[i].kind, runs, build, devices, two ? "2" : rows[i].workers, rows[i].resident);
		describe(&rows[i].kind, runs, prefix);
		free(rows[i].kind.block);
	}
}

int main(int argc, char **argv)
{
	unsigned runs = argc > 1 ? (unsigned)atoi(argv[1]) / BLOCK * BLOCK : 1000;
	struct kind *calling = kinds, *run = kinds + 1, *omp = kinds + KINDS - 3, *pool_kind = omp + 1, *tbb = omp + 2;
	char build[4000];
	struct ours ours, by_caller;
	uint64_t executed = 0;
	if (!runs) {
		fprintf(stderr, "usage: embed [RUNS [DEVICES]]\n");
		return 2;
	}
	snprintf(build, sizeof(build), "%s", argv[0]);
	for (int i = 0; i < 2; i++) /* two levels up from BUILD/bench/embed */
		*(strrchr(build, '/') ? strrchr(build, '/') : build) = 0;
	if (argc > 2) {
		gpu_main(runs, build, argv[2]);
		return 0;
	}
	ours_open(&ours, build, "no");
	ours_open(&by_caller, build, "yes");
	pool_open();
	tbb->arg = embed_tbb_open(2);
	if (!tbb->arg)
		tbb->run = NULL;
	for (struct kind *k = kinds; k < kinds + KINDS; k++) {
		if (k < omp)
			k->arg = k == calling ? &by_caller : &ours;
		make_room(k, runs);
	}
	execute(runs);
	printf("%u tasks on 2 workers, %u runs of each kind in turns of %d; us\n%30s %10s %10s %10s\n", TASKS, runs,
	       BLOCK, "", "10 %", "median", "90 %");
	for (struct kind *k = kinds; k < kinds + KINDS; k++) {
		if (!k->run)
			continue;
		executed += runs + BLOCK;
		describe(k, runs, "");
	}
	for (int i = 0; i < TASKS; i++)
		if (done[i] != executed) {
			fprintf(stderr, "embed: task %d ran %llu times, not %llu\n", i, (unsigned long long)done[i],
				(unsigned long long)executed);
			return 1;
		}
	ratios("embed_run_over_pool", run, pool_kind, runs);
	ratios("embed_caller_over_omp", calling, omp, runs);
	if (tbb->run)
		ratios("embed_caller_over_tbb", calling, tbb, runs);
	for (struct kind *k = kinds; k < kinds + KINDS; k++)
		free(k->block);
	ours_close(&ours);
	ours_close(&by_caller);
	pool_close();
	embed_tbb_close(tbb->arg);
	return 0;
}
