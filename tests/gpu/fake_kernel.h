/* SPDX-License-Identifier: Apache-2.0 */
/* The drivers without a GPU (tests/cuda/fake_driver.c, tests/hip/fake_runtime.c) share this code. "Device memory" is
 * the heap. A launched kernel is a set of threads that run the CPU code of the policies with the launch record that the
 * device wrote. The drivers test the host half of a device with the real core and real policies.
 *
 * FAKE_GPU_PLUGINS  the files of the policies that the conf selects (the core may load others, too)
 * FAKE_GPU_TASK     FILE NAME: the task function with tag 0, from a shared object made with gpuloom/dev/ir.h
 * FAKE_GPU          an error or a kind of machine: none, init, no-gpu, two-gpus, old-gpu, atomics (native with the
 *                   CPU), hang (a worker ignores the stop flag), die (the kernel fails during a sample), small
 *                   (fewer blocks are resident than promised), no-words (streams neither set nor wait for words),
 *                   mute (streams do not set words), lossy (if two devices add to a word, one addition is lost),
 *                   swapless (if two devices swap a word, one swap is lost), ranks (two GPUs, whose memory other
 *                   processes open by handles), no-peer (two GPUs that cannot access each other's memory), hopper (compute capability 9.0, to
 *                   compile programs; tasks on tiles would have too little private memory)
 * FAKE_GPU_FAIL     NAME:N: the N-th call of the driver's function NAME fails
 * FAKE_GPU_CALLS    a file to which a line "NAME COUNT" is appended at the end for each called function */
#ifndef LOOM_TEST_FAKE_KERNEL_H
#define LOOM_TEST_FAKE_KERNEL_H

#include <dlfcn.h>
#include <fcntl.h>
#include <gpuloom/dev/collective.h>
#include <gpuloom/dev/probe.h>
#include <gpuloom/sched.h>
#include <gpuloom/workload.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device_common/compose/collective.dev.h"
#include "device_common/compose/gpu.dev.h"

#define API __attribute__((visibility("default")))
#define FAKE_FN static __attribute__((unused))

/* ---- calls ---- */

static struct {
	const char *name;
	unsigned count;
} fake_calls[128];
static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

static void fake_report(void)
{
	FILE *file = fopen(getenv("FAKE_GPU_CALLS"), "a");
	for (size_t i = 0; file && fake_calls[i].name; i++)
		fprintf(file, "%s %u\n", fake_calls[i].name, fake_calls[i].count);
	if (file)
		fclose(file);
}

/* Counts a call. Returns 1 if the call must fail. */
static int fake_fails(const char *name)
{
	const char *given = getenv("FAKE_GPU_FAIL");
	size_t i = 0, n = strlen(name);
	pthread_mutex_lock(&fake_lock);
	if (!fake_calls[0].name && getenv("FAKE_GPU_CALLS"))
		atexit(fake_report);
	while (fake_calls[i].name && strcmp(fake_calls[i].name, name))
		i++;
	fake_calls[i].name = name;
	unsigned count = ++fake_calls[i].count;
	pthread_mutex_unlock(&fake_lock);
	return given && !strncmp(given, name, n) && given[n] == ':' && (unsigned)atoi(given + n + 1) == count;
}

/* Returns how often a function was called, for tests/test_embed_gpu.c. */
API unsigned fake_gpu_count(const char *name);
API unsigned fake_gpu_count(const char *name)
{
	unsigned count = 0;
	pthread_mutex_lock(&fake_lock);
	for (size_t i = 0; fake_calls[i].name; i++)
		if (!strcmp(fake_calls[i].name, name))
			count = fake_calls[i].count;
	pthread_mutex_unlock(&fake_lock);
	return count;
}

/* FAKE(name, (parameters), body) defines a function of the driver that counts its call. Without a return in the body
 * the function succeeds. Parameters may be unused. */
#define FAKE(name, parameters, ...)                                                                \
	API FAKE_RESULT name parameters                                                            \
	{                                                                                          \
		if (fake_fails(#name)) /* headers rename some functions to name_v2 */              \
			return FAKE_ERROR;                                                         \
		__VA_ARGS__                                                                        \
		return FAKE_OK;                                                                    \
	}
#pragma GCC diagnostic ignored "-Wunused-parameter"

FAKE_FN int wrong(const char *what)
{
	const char *set = getenv("FAKE_GPU");
	return set && !strcmp(set, what);
}

/* ---- the kernel ---- */

struct module {
	struct loom_gpu_launch launch;
	int is_collective; /* 1: the kernel for collectives, which has no launch record */
};

/* Returns 1 if the module has a kernel of that name. */
FAKE_FN int fake_has_kernel(struct module *m, const char *name)
{
	m->is_collective = !strcmp(name, "loom_gpu_collective");
	return m->is_collective || !strcmp(name, "loom_gpu_work");
}

struct worker {
	pthread_t thread;
	struct loom_ctx ctx;
	struct loom_lanes together;
	void *local;
	struct loom_gpu_launch *record;
	/* from the record; kernels of old graphs may run while the host writes the record of a new launch */
	struct loom_gpu_gate *gate;
	struct loom_ctl *host;
	struct stream *stream;
	uint64_t step;
	struct loom_gpu_order order;
	uint32_t heard, left, small, flags, tally; /* as in struct loom_gpu_turn of quick.dev.h */
};

/* A call in a stream launches a step of a kernel, sets a word, or waits for a word. Calls are executed in order. */
struct call {
	struct module *launch;
	uint64_t step, *word, value;
	int awaits;
	struct fake_event *event; /* the event that the call records, or NULL */
	void *to; /* where the call copies `bytes` bytes, or NULL */
	const void *from;
	size_t bytes;
	struct module *sample; /* the kernel that the call launches for one sample, or NULL */
	struct loom_gpu_order order;
	struct loom_gpu_collective_order collective; /* executed if its number of blocks is not 0 */
};

struct fake_event {
	pthread_mutex_t lock;
	pthread_cond_t happens;
	uint64_t asked, happened; /* numbers of records that were requested and that were executed; protected by the lock */
};

#define CALLS 4096

struct stream {
	struct worker *worker; /* the workers of a persistent kernel, or NULL */
	uint32_t count;
	uint32_t left;   /* the number of workers that have ended; atomic */
	uint32_t failed; /* 1 after an error of the device; atomic */
	pthread_t thread;
	uint32_t running, quit; /* 1 if `thread` was started; 1 if it must end (atomic) */
	uint64_t called, done; /* numbers of calls that were appended and that have ended; atomic */
	struct call call[CALLS];
	struct graph *kept; /* the graph that records the calls during a capture, or NULL */
};

struct graph {
	uint32_t calls;
	struct call call[CALLS];
};

/* Returns the stream of a handle. A NULL handle is the default stream. */
FAKE_FN struct stream *fake_stream(void *stream)
{
	static struct stream by_default;
	return stream ? stream : &by_default;
}

static const void *tables[LOOM_KINDS_MAX];
static loom_task_fn *task_functions[64];
static uint32_t task_count;

static void take_policy(const char *path)
{
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	const struct loom_plugin *(*entry)(void) = NULL;
	if (so)
		*(void **)&entry = dlsym(so, "loom_plugin_entry");
	if (!entry) {
		fprintf(stderr, "fake driver: %s\n", dlerror());
		exit(99);
	}
	const struct loom_plugin *p = entry();
	tables[p->kind] = p->dev->cpu;
	if (p->kind != LOOM_WORKLOAD)
		return;
	const struct loom_workload_dev *w = p->dev->cpu;
	task_count = w->count;
	for (uint32_t i = 0; i < w->count; i++)
		task_functions[i] = w->task[i].fn;
}

static void take_task(const char *given)
{
	char file[4000], name[200], symbol[300];
	if (sscanf(given, "%3999s %199s", file, name) != 2)
		exit(99);
	void *so = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	snprintf(symbol, sizeof(symbol), "loom_ir1_task_%s", name);
	*(void **)&task_functions[0] = so ? dlsym(so, symbol) : NULL;
	task_count = 1;
	if (task_functions[0])
		return;
	fprintf(stderr, "fake driver: no %s in %s\n", symbol, file);
	exit(99);
}

static void load_all(void)
{
	if (getenv("FAKE_GPU_TASK"))
		take_task(getenv("FAKE_GPU_TASK"));
	char *list = getenv("FAKE_GPU_PLUGINS"), *rest = NULL;
	list = list ? strdup(list) : NULL;
	for (char *path = list ? strtok_r(list, " ", &rest) : NULL; path;
	     path = strtok_r(NULL, " ", &rest))
		take_policy(path);
	free(list);
}

/* Loads the policies in the first call only, because kernels in other streams may use them later. Two threads may launch
 * their first kernels at once. */
static void load_policies(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, load_all);
}

static void fill(struct worker *w, uint32_t slot)
{
	struct loom_gpu_launch *l = w->record;
	struct loom_ctx *c = &w->ctx;
	*c = (struct loom_ctx){
		.worker = l->first + slot,
		.workers = l->workers,
		.device = l->device,
		.devices = l->devices,
		.first = l->first,
		.count = l->count,
		.lanes = 1,
		.flags = LOOM_CTX_OVERSUBSCRIBED,
		.random = l->seed + slot + 1,
		.ctl = &l->gate->ctl,
		.segment = l->segment,
		.together = &w->together,
		.initial = l->initial,
		.sched = tables[LOOM_SCHED],
		.term = tables[LOOM_TERM],
		.sync = tables[LOOM_SYNC],
		.barrier = tables[LOOM_BARRIER],
		.trigger = tables[LOOM_TRIGGER],
		.qos = tables[LOOM_QOS],
		.workload = tables[LOOM_WORKLOAD],
		.task = task_functions,
		.tasks = task_count,
	};
	c->counters = l->counters ? &l->counters[c->worker] : NULL;
	for (int kind = 0; kind < LOOM_KINDS_MAX; kind++) {
		c->global[kind] = l->global[kind];
		c->on_device[kind] = l->on_device[kind];
		c->registry[kind] = l->registry[kind];
		c->own[kind] = l->registry[kind] ? loom_at(c, l->registry[kind][c->worker]) : NULL;
		if (l->local_at[kind] != LOOM_GPU_NONE)
			c->local[kind] = (char *)w->local + l->local_at[kind];
	}
}

static int killed(const struct worker *w)
{
	return __atomic_load_n(&w->stream->failed, __ATOMIC_ACQUIRE) != 0;
}

/* Works like loom_gpu_poll_phase() in kernel.dev.h. The workers of a killed kernel retire. */
static uint32_t watch(struct worker *w, uint32_t old, uint32_t mask)
{
	struct loom_gpu_launch *l = w->record;
	struct loom_ctx *c = &w->ctx;
	uint32_t phase;
	if (killed(w))
		return LOOM_PHASE_RETIRE;
	if (c->worker == c->first) {
		while (((phase = loom_load_acquire_sys(&l->ctl->phase)) == old || !(phase & mask)) && !killed(w))
			loom_cpu_yield();
		c->ctl->initial_tasks = l->ctl->initial_tasks;
		c->ctl->sample = l->ctl->sample;
		loom_store_release_dev(&c->ctl->phase, phase);
	} else {
		while (((phase = loom_load_acquire_dev(&c->ctl->phase)) == old || !(phase & mask)) && !killed(w))
			loom_cpu_yield();
	}
	return killed(w) ? LOOM_PHASE_RETIRE : phase;
}

static void stage(struct worker *w, uint32_t value)
{
	loom_store_relaxed_dev(&w->record->stage[w->ctx.worker - w->ctx.first], value);
}

static void run_sample(struct worker *w)
{
	const struct loom_sched_dev *sched = tables[LOOM_SCHED];
	const struct loom_workload_dev *workload = tables[LOOM_WORKLOAD];
	struct loom_ctx *c = &w->ctx;
	if (!w->small) /* otherwise small() has run, and the sample goes on */
		memset(w->local, 0, w->record->local_bytes);
	if (wrong("hang") && c->worker == c->first + 1)
		for (;;)
			loom_cpu_yield();
	if (w->record->probe) {
		loom_probe_run(c, w->record->probe);
		struct loom_probe *p = w->record->probe;
		int last = c->device == p->b && c->worker == c->first && loom_load_relaxed_sys(&p->sum);
		if (last && wrong("lossy"))
			loom_fetch_add_relaxed_sys(&p->sum, ~0ull);
		if (last && wrong("swapless"))
			loom_fetch_add_relaxed_sys(&p->swaps, ~0u);
	} else if (LOOM_HAS(workload, kernel))
		workload->kernel(c);
	else
		sched->run(c);
}

/* Works like loom_gpu_reset() in kernel.dev.h. */
static void reset(struct worker *w)
{
	const struct loom_gpu_launch *l = w->record;
	for (uint64_t i = w->ctx.worker - l->first; i < l->resets; i += l->count) {
		uint32_t *at = loom_at(&w->ctx, l->reset[i].at);
		for (uint32_t k = 0; k < l->reset[i].words; k++)
			at[k] = l->reset[i].value;
	}
	for (uint64_t i = w->ctx.worker - l->first; w->order.tasks && i < w->order.initial_tasks; i += l->count)
		((struct loom_task *)l->initial)[i] = w->order.tasks[i];
}

/* These three work like loom_gpu_is_revoked(), loom_gpu_leave() and loom_gpu_enter() in kernel.dev.h. */
static int is_revoked(const struct worker *w)
{
	return loom_load_relaxed_dev(&w->gate->permit) >> 32 != w->order.launch;
}

static void leave(struct worker *w)
{
	if (w->order.kept == LOOM_GPU_CAPTURED)
		loom_fetch_add_release_dev(&w->gate->permit, ~(uint64_t)0);
}

static int enter(struct worker *w)
{
	if (w->order.kept != LOOM_GPU_CAPTURED)
		return 1;
	uint32_t stops = w->ctx.worker == w->ctx.first ? loom_load_relaxed_sys(&w->host->stop_graphs) : 0;
	int stays = loom_fetch_add_acquire_dev(&w->gate->permit, (uint64_t)1) >> 32 == w->order.launch;
	if (stays && stops) {
		loom_store_relaxed_dev((uint32_t *)&w->gate->permit + 1, 0u);
		stays = 0;
	}
	if (!stays)
		leave(w);
	return stays;
}

/* Works like loom_gpu_meet() and loom_gpu_await_this() in kernel.dev.h. Returns the phase, or LOOM_PHASE_RETIRE. */
static uint32_t await_this(struct worker *w, uint32_t go)
{
	struct loom_gpu_launch *l = w->record;
	struct loom_ctx *c = &w->ctx;
	int meets = LOOM_PHASE_IS_GO(w->order.phase), first = c->worker == c->first;
	const uint32_t *word = first && !meets ? &l->ctl->phase : w->order.flags ? &l->gate->met : &c->ctl->phase;
	uint32_t phase;
	int may_leave = w->order.kept == LOOM_GPU_CAPTURED;
	while ((phase = loom_load_acquire_sys(word)) != go && (phase != LOOM_PHASE_RETIRE || meets) && !killed(w)) {
		if (may_leave && is_revoked(w)) { /* works like loom_gpu_await_meeting() */
			uint32_t all = loom_load_relaxed_dev(&l->gate->arrived);
			while (all && all != c->count)
				if (loom_cas_acq_rel_dev(&l->gate->arrived, &all, all - 1))
					return LOOM_PHASE_RETIRE;
			may_leave = 0;
		}
		loom_cpu_yield();
	}
	if (killed(w))
		phase = LOOM_PHASE_RETIRE;
	if (first && !meets) {
		c->ctl->initial_tasks = l->ctl->initial_tasks;
		c->ctl->sample = l->ctl->sample;
		loom_store_release_dev(&c->ctl->phase, phase);
	}
	return phase;
}

/* Works like loom_gpu_leaves(); await_order() works like loom_gpu_await_order(). */
static int leaves(struct worker *w, uint32_t last, uint32_t seen)
{
	struct loom_gpu_words *words = w->record->words;
	loom_store_relaxed_sys(&words->leave, (uint64_t)LOOM_GPU_ASKS);
	loom_fence_seq_cst_sys();
	int leaves = (uint32_t)(loom_load_relaxed_sys(&words->order) >> 32) == seen;
	loom_store_release_sys(&words->leave, leaves ? (uint64_t)last << 32 | LOOM_GPU_LEFT : (uint64_t)LOOM_GPU_STAYS);
	return leaves;
}

static uint32_t await_order(struct worker *w, uint32_t last)
{
	struct loom_gpu_launch *l = w->record;
	struct loom_ctx *c = &w->ctx;
	uint64_t order = 0, since = loom_clock_ns(c);
	uint32_t phase = last;
	while (c->worker == c->first && !killed(w) &&
	       (phase = (uint32_t)((order = loom_load_acquire_sys(&l->words->order)) >> 32)) == last) {
		if (loom_clock_ns(c) - since > l->idle_ns && loom_load_relaxed_dev(&l->gate->settled) == last &&
		    leaves(w, last, last)) {
			phase = LOOM_PHASE_RETIRE;
			break;
		}
		loom_cpu_yield();
	}
	if (c->worker == c->first) {
		if (LOOM_PHASE_IS_GO(phase)) {
			c->ctl->initial_tasks = (uint32_t)order;
			c->ctl->sample = LOOM_PHASE_SAMPLE(phase);
		}
		loom_store_release_dev(&c->ctl->phase, killed(w) ? LOOM_PHASE_RETIRE : phase);
	}
	while (c->worker != c->first && !killed(w) && (phase = loom_load_acquire_dev(&c->ctl->phase)) != last + 2 &&
	       phase != LOOM_PHASE_RETIRE)
		loom_cpu_yield();
	return killed(w) ? LOOM_PHASE_RETIRE : phase;
}

/* Works like loom_gpu_part() in kernel.dev.h. */
static void part(struct worker *w)
{
	struct loom_gpu_gate *g = w->record->gate;
	if (loom_fetch_add_acq_rel_dev(&g->left, 1u) + 1 != w->ctx.count)
		return;
	loom_store_relaxed_dev(&g->left, 0u);
	loom_store_relaxed_dev(&g->settled, LOOM_GPU_NO_PHASE);
	loom_store_relaxed_dev(&g->ctl.phase, LOOM_GPU_NO_PHASE);
}

/* Copies a failure from the device's words to the host's words, because loom_worker_fail() in CPU code writes only the
 * device's words. */
static void pass_failure(struct worker *w)
{
	struct loom_ctl *ctl = w->ctx.ctl, *host = w->record->ctl;
	uint32_t none = 0;
	if (!loom_load_acquire_sys(&ctl->failed_ready) || !loom_cas_acq_rel_sys(&host->failed, &none, ctl->failed))
		return;
	host->failed_worker = ctl->failed_worker;
	host->failed_info = ctl->failed_info;
	loom_store_release_sys(&host->failed_ready, 1u);
	loom_store_relaxed_sys(&host->stop, 1u);
}

/* Works like loom_gpu_conclude() in kernel.dev.h. */
static void conclude(struct worker *w, uint32_t go)
{
	struct loom_gpu_gate *g = w->record->gate;
	struct loom_gpu_words *words = w->record->words;
	uint64_t tally = loom_load_relaxed_dev(&g->tally);
	loom_store_relaxed_sys(&words->tally, tally);
	loom_store_relaxed_dev(&g->tally, (uint64_t)0);
	if (w->order.kept != LOOM_GPU_RESIDENT)
		loom_store_relaxed_dev(&g->ctl.phase, LOOM_GPU_NO_PHASE);
	loom_store_relaxed_dev(&g->settled, go);
	if (w->order.kept == LOOM_GPU_ONE_RUN || w->order.kept == LOOM_GPU_RESIDENT) {
		loom_store_release_sys(&words->done, go);
		return;
	}
	if (tally != w->order.initial_tasks && !loom_load_relaxed_dev(&g->ctl.stop))
		loom_store_relaxed_sys(&words->wrong, ++g->wrong);
	loom_store_relaxed_sys(&words->initial_tasks, w->order.initial_tasks);
	if (w->order.kept == LOOM_GPU_CAPTURED)
		loom_store_release_sys(&words->replayed, ++g->replayed);
	else
		loom_store_release_sys(&words->ended, ++g->ended);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct loom_gpu_launch *l = w->record;
	struct loom_ctx *c = &w->ctx;
	int kept = (int)w->order.kept, resident = kept == LOOM_GPU_RESIDENT, enters = enter(w);
	uint32_t go = LOOM_GPU_NO_PHASE;
	do {
		if (!enters)
			break;
		stage(w, LOOM_GPU_PARKED);
		uint32_t ready = !kept				? watch(w, 0, 3)
				 : go == LOOM_GPU_NO_PHASE ? w->order.phase
							       : await_order(w, go);
		if (ready == LOOM_PHASE_RETIRE)
			break;
		fill(w, c->worker - l->first); /* again, because the host may fill the registries after the launch */
		if (kept)
			reset(w);
		stage(w, LOOM_GPU_READY);
		if (kept && LOOM_PHASE_IS_GO(ready) && c->worker == c->first) {
			c->ctl->initial_tasks = w->order.initial_tasks;
			c->ctl->sample = LOOM_PHASE_SAMPLE(ready);
		}
		if (loom_fetch_add_acq_rel_dev(&l->gate->arrived, 1u) + 1 == c->count) {
			loom_store_relaxed_dev(&l->gate->arrived, 0u);
			loom_store_relaxed_dev(&l->gate->finished, 0u);
			loom_store_relaxed_dev(&l->gate->settled, ready);
			if (LOOM_PHASE_IS_GO(ready))
				loom_store_release_dev(&c->ctl->phase, ready);
			else
				loom_store_release_sys(&l->words->ready, ready);
		}
		go = !kept			  ? watch(w, ready, ~0u)
			      : resident		  ? await_order(w, ready)
			      : LOOM_PHASE_IS_GO(ready) ? await_this(w, ready)
							: await_this(w, ready + 2);
		if (go == LOOM_PHASE_RETIRE)
			break;
		if (c->worker == c->first)
			loom_store_relaxed_sys(&l->words->began_ns, loom_clock_ns(c));
		stage(w, LOOM_GPU_WORKING);
		if (wrong("die")) {
			__atomic_store_n(&w->stream->failed, 1, __ATOMIC_RELEASE);
			break;
		}
		run_sample(w);
		pass_failure(w);
		if (c->counters)
			c->counters->end_ns = loom_clock_ns(c);
		stage(w, LOOM_GPU_FINISHED);
		if (kept)
			loom_fetch_add_relaxed_dev(&l->gate->tally, LOOM_TALLY(c->counters));
		if (loom_fetch_add_acq_rel_dev(&l->gate->finished, 1u) + 1 == c->count) {
			loom_store_relaxed_sys(&l->words->ended_ns, loom_clock_ns(c));
			if (kept)
				conclude(w, go);
			else
				loom_store_release_sys(&l->words->done, go);
		}
	} while (!kept || resident);
	if (resident)
		part(w);
	if (enters)
		leave(w);
	free(w->local);
	__atomic_fetch_add(&w->stream->left, 1, __ATOMIC_ACQ_REL);
	return NULL;
}

#include "fake_quick.h"

/* Returns the main function of a worker of this kernel. */
static void *(*main_of(const struct module *m))(void *)
{
	return m->launch.quick ? quick_worker_main : worker_main;
}

/* ---- kernels, one for each step, and the words that order them ---- */

/* Works like loom_gpu_work() in kernel.dev.h. */
static void *step_main(void *arg)
{
	struct worker *w = arg;
	struct loom_ctx *c = &w->ctx;
	const struct loom_workload_dev *workload = tables[LOOM_WORKLOAD];
	if (loom_load_relaxed_dev(&c->ctl->stop))
		return NULL;
	stage(w, LOOM_GPU_WORKING);
	if (wrong("hang") && c->worker == c->first + 1)
		for (;;)
			loom_cpu_yield();
	if (wrong("die"))
		__atomic_store_n(&w->stream->failed, 1, __ATOMIC_RELEASE);
	else
		workload->step(c, w->step);
	stage(w, w->step + 1 < w->record->steps ? (uint32_t)LOOM_GPU_WORKING + LOOM_STATE_MESSAGE
						: (uint32_t)LOOM_GPU_FINISHED);
	return NULL;
}

/* Held by copies, and while a kernel reads its record. */
static pthread_mutex_t fake_copies = PTHREAD_MUTEX_INITIALIZER;

/* Starts the workers of a kernel. */
static struct worker *start_workers(struct module *m, struct stream *s, uint64_t step, struct loom_gpu_order order,
				    void *(*run)(void *))
{
	pthread_mutex_lock(&fake_copies);
	uint32_t count = m->launch.count; /* the number of workers, several of which may share a block */
	struct worker *all = calloc(count, sizeof(*all));
	for (uint32_t i = 0; i < count; i++) {
		all[i].record = &m->launch;
		all[i].gate = m->launch.gate;
		all[i].host = m->launch.ctl;
		all[i].stream = s;
		all[i].step = step;
		all[i].order = order;
		all[i].local = calloc(1, m->launch.local_bytes + 64);
		fill(&all[i], i);
	}
	pthread_mutex_unlock(&fake_copies);
	for (uint32_t i = 0; i < count; i++)
		if (pthread_create(&all[i].thread, NULL, run, &all[i]) != 0)
			exit(99);
	return all;
}

static void run_step(struct stream *s, const struct call *call)
{
	struct worker *all = start_workers(call->launch, s, call->step, (struct loom_gpu_order){0}, step_main);
	for (uint32_t i = 0; i < call->launch->launch.count; i++) {
		pthread_join(all[i].thread, NULL);
		free(all[i].local);
	}
	free(all);
}

static void run_enqueued(struct stream *s, const struct call *call)
{
	pthread_mutex_lock(&fake_copies);
	uint32_t count = call->sample->launch.count; /* a copy, because the next launch may change the record */
	pthread_mutex_unlock(&fake_copies);
	struct worker *all = start_workers(call->sample, s, 0, call->order, main_of(call->sample));
	for (uint32_t i = 0; i < count; i++)
		pthread_join(all[i].thread, NULL);
	free(all);
}

struct block {
	pthread_t thread;
	const struct loom_gpu_collective_order *order;
	uint32_t number;
};

static void *block_main(void *arg)
{
	const struct block *b = arg;
	loom_comm_divided(&b->order->view, &b->order->call, b->number, (uint32_t)b->order->blocks, 0, 1);
	return NULL;
}

static void run_collective(const struct loom_gpu_collective_order *order)
{
	struct block *all = calloc(order->blocks, sizeof(*all));
	for (uint32_t i = 0; i < order->blocks; i++) {
		all[i] = (struct block){.order = order, .number = i};
		if (pthread_create(&all[i].thread, NULL, block_main, &all[i]) != 0)
			exit(99);
	}
	for (uint32_t i = 0; i < order->blocks; i++)
		pthread_join(all[i].thread, NULL);
	free(all);
}

static int dropped(const struct stream *s)
{
	return __atomic_load_n(&s->failed, __ATOMIC_ACQUIRE) || __atomic_load_n(&s->quit, __ATOMIC_ACQUIRE);
}

FAKE_FN void fake_copy(void *to, const void *from, size_t bytes);

static void *stream_main(void *arg)
{
	struct stream *s = arg;
	for (uint64_t n = 0; !__atomic_load_n(&s->quit, __ATOMIC_ACQUIRE);) {
		const struct call *call = &s->call[n % CALLS];
		if (n == __atomic_load_n(&s->called, __ATOMIC_ACQUIRE)) {
			usleep(20);
			continue;
		}
		if (call->launch && !dropped(s))
			run_step(s, call);
		if (call->sample && !dropped(s))
			run_enqueued(s, call);
		if (call->collective.blocks && !dropped(s))
			run_collective(&call->collective);
		if (call->to && !dropped(s))
			fake_copy(call->to, call->from, call->bytes);
		while (call->awaits && !dropped(s) &&
		       (int64_t)(__atomic_load_n(call->word, __ATOMIC_ACQUIRE) - call->value) < 0)
			loom_cpu_yield();
		if (call->word && !call->awaits && !dropped(s) && !wrong("mute"))
			__atomic_store_n(call->word, call->value, __ATOMIC_RELEASE);
		if (call->event) {
			pthread_mutex_lock(&call->event->lock);
			call->event->happened++;
			pthread_cond_broadcast(&call->event->happens);
			pthread_mutex_unlock(&call->event->lock);
		}
		__atomic_store_n(&s->done, ++n, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Appends a call to the stream, or to the graph during a capture. Waits while the stream is full, as a real driver
 * does. */
FAKE_FN void fake_call(struct stream *s, struct call call)
{
	if (call.launch)
		load_policies();
	if (s->kept) {
		s->kept->call[s->kept->calls++] = call;
		return;
	}
	while (s->called - __atomic_load_n(&s->done, __ATOMIC_ACQUIRE) == CALLS)
		loom_cpu_yield();
	s->call[s->called % CALLS] = call;
	__atomic_store_n(&s->called, s->called + 1, __ATOMIC_RELEASE);
	if (!s->running && pthread_create(&s->thread, NULL, stream_main, s) != 0)
		exit(99);
	s->running = 1;
}

/* Waits for the threads of the stream's previous kernel, whose workers have all left. Threads of the program may ask for the
 * state of a stream at once. */
static pthread_mutex_t fake_joins = PTHREAD_MUTEX_INITIALIZER;
static void join_workers(struct stream *s)
{
	pthread_mutex_lock(&fake_joins);
	for (uint32_t i = 0; s->worker && i < s->count; i++)
		pthread_join(s->worker[i].thread, NULL);
	free(s->worker);
	s->worker = NULL;
	pthread_mutex_unlock(&fake_joins);
}

FAKE_FN void fake_destroy(struct stream *s)
{
	__atomic_store_n(&s->quit, 1, __ATOMIC_RELEASE);
	if (s->running)
		pthread_join(s->thread, NULL);
	if (__atomic_load_n(&s->left, __ATOMIC_ACQUIRE) == s->count)
		join_workers(s);
	free(s);
}

/* Appends a step of a chain of kernels, or a collective. */
FAKE_FN void fake_launch_step(struct module *m, void *stream, const void *parameter)
{
	struct call call = {.launch = m};
	if (m->is_collective)
		call = (struct call){.collective = *(const struct loom_gpu_collective_order *)parameter};
	else
		call.step = *(const uint64_t *)parameter;
	fake_call(fake_stream(stream), call);
}

static int calls_left(const struct stream *s)
{
	return s->called != __atomic_load_n(&s->done, __ATOMIC_ACQUIRE);
}

/* ---- a stream ---- */

FAKE_FN int fake_launch(struct module *m, struct stream *s, const void *parameter)
{
	const struct loom_gpu_order *order = parameter;
	load_policies();
	if (order->kept == LOOM_GPU_ENQUEUED || order->kept == LOOM_GPU_CAPTURED) {
		fake_call(s, (struct call){.sample = m, .order = *order});
		return 0;
	}
	join_workers(s);
	*s = (struct stream){.count = m->launch.count};
	s->worker = start_workers(m, s, 0, *(const struct loom_gpu_order *)parameter, main_of(m));
	return 0;
}

/* Ends the kernel after an error of the device, so that the kernel does not access memory that the host then frees. */
FAKE_FN void fake_kill(struct stream *s)
{
	if (!s->worker && !s->running)
		return;
	__atomic_store_n(&s->failed, 1, __ATOMIC_RELEASE);
	while (calls_left(s))
		loom_cpu_yield();
	while (s->worker && __atomic_load_n(&s->left, __ATOMIC_ACQUIRE) != s->count) {
		/* The stop flag is set again and again, because workers in a sample poll only this flag. */
		__atomic_store_n(&s->worker[0].record->gate->ctl.stop, 1, __ATOMIC_RELAXED);
		loom_cpu_yield();
	}
}

FAKE_FN int fake_state(struct stream *s)
{
	if (__atomic_load_n(&s->failed, __ATOMIC_ACQUIRE))
		return -1;
	if (!s->worker)
		return calls_left(s);
	if (__atomic_load_n(&s->left, __ATOMIC_ACQUIRE) != s->count)
		return 1;
	join_workers(s);
	return 0;
}

/* ---- memory ---- */

/* The memory is not zeroed, as on a GPU. */
FAKE_FN void *fake_memory(size_t align, size_t bytes)
{
	void *at = aligned_alloc(align, (bytes + align - 1) & ~(align - 1));
	return at ? memset(at, 0xa5, bytes) : NULL;
}

/* Copies aligned data in words of 4 bytes, so that workers that poll such a word never see half of it. */
FAKE_FN void fake_copy(void *to, const void *from, size_t bytes)
{
	size_t i = 0;
	pthread_mutex_lock(&fake_copies);
	if (((uintptr_t)to | (uintptr_t)from) % 4 == 0)
		for (; i + 4 <= bytes; i += 4)
			__atomic_store_n((uint32_t *)to + i / 4,
					 __atomic_load_n((const uint32_t *)from + i / 4, __ATOMIC_ACQUIRE),
					 __ATOMIC_RELAXED);
	memcpy((char *)to + i, (const char *)from + i, bytes - i);
	pthread_mutex_unlock(&fake_copies);
}

static struct {
	char *at;
	size_t bytes;
	int fd; /* the descriptor of the file that other processes map, or 0 */
} fake_owned[64];

/* Protects the tables of memory, which the stacks of several threads use. FAKE_LOCKED() holds the lock until the end of
 * the function. */
static pthread_mutex_t fake_tables = PTHREAD_MUTEX_INITIALIZER;

static void fake_unlock(pthread_mutex_t **held)
{
	pthread_mutex_unlock(*held);
}
#define FAKE_LOCKED()                                                                                                  \
	pthread_mutex_lock(&fake_tables);                                                                              \
	__attribute__((cleanup(fake_unlock), unused)) pthread_mutex_t *held = &fake_tables

FAKE_FN int fake_has_ranks(void)
{
	return wrong("ranks") || wrong("no-peer") || wrong("mps");
}

/* Allocates memory in a file, so that other processes can map it. *fd is the file's descriptor. */
FAKE_FN char *fake_file(size_t bytes, int *fd)
{
	*fd = memfd_create("fake GPU", MFD_CLOEXEC);
	if (*fd < 0 || ftruncate(*fd, (off_t)bytes) != 0)
		return NULL;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	return at == MAP_FAILED ? NULL : memset(at, 0xa5, bytes);
}

FAKE_FN void *fake_device_memory(size_t bytes)
{
	FAKE_LOCKED();
	for (int i = 0; i < 64; i++)
		if (!fake_owned[i].at) {
			fake_owned[i].at =
			    fake_has_ranks() ? fake_file(bytes, &fake_owned[i].fd) : fake_memory(256, bytes);
			fake_owned[i].bytes = bytes;
			return fake_owned[i].at;
		}
	return NULL;
}

FAKE_FN void fake_device_free(void *at)
{
	FAKE_LOCKED();
	for (int i = 0; i < 64; i++)
		if (fake_owned[i].at == at && at) {
			fake_owned[i].at = NULL;
			if (!fake_has_ranks()) {
				free(at);
				return;
			}
			munmap(at, fake_owned[i].bytes);
			close(fake_owned[i].fd);
			return;
		}
}

/* A handle exports memory of the device to another process. */
struct fake_handle {
	pid_t owner;
	int fd;
	size_t bytes;
};

FAKE_FN int fake_lend(const void *at, struct fake_handle *h)
{
	FAKE_LOCKED();
	for (int i = 0; i < 64; i++)
		if (fake_owned[i].at == at && fake_has_ranks()) {
			*h = (struct fake_handle){
			    .owner = getpid(), .fd = fake_owned[i].fd, .bytes = fake_owned[i].bytes};
			return 1;
		}
	return 0;
}

static struct {
	void *at;
	size_t bytes;
} fake_borrowed[64];

FAKE_FN void *fake_borrow(const struct fake_handle *h)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)h->owner, h->fd);
	int fd = h->owner == getpid() ? -1 : open(path, O_RDWR | O_CLOEXEC); /* a process cannot open its own handle */
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	FAKE_LOCKED();
	for (int i = 0; i < 64 && at != MAP_FAILED; i++)
		if (!fake_borrowed[i].at) {
			fake_borrowed[i].at = at;
			fake_borrowed[i].bytes = h->bytes;
			return at;
		}
	return NULL;
}

FAKE_FN int fake_give_back(void *at)
{
	FAKE_LOCKED();
	for (int i = 0; i < 64; i++)
		if (fake_borrowed[i].at == at && at) {
			munmap(at, fake_borrowed[i].bytes);
			fake_borrowed[i].at = NULL;
			return 1;
		}
	return 0;
}

FAKE_FN int fake_is_ours(const void *at)
{
	FAKE_LOCKED();
	for (int i = 0; i < 64; i++)
		if (fake_owned[i].at && (size_t)((const char *)at - fake_owned[i].at) < fake_owned[i].bytes)
			return 1;
	return 0;
}

/* Returns the start of the allocation that contains `at`, and stores its size. */
FAKE_FN char *fake_range(const void *at, size_t *bytes)
{
	FAKE_LOCKED();
	for (int i = 0; i < 64; i++)
		if (fake_owned[i].at && (size_t)((const char *)at - fake_owned[i].at) < fake_owned[i].bytes) {
			if (bytes)
				*bytes = fake_owned[i].bytes;
			return fake_owned[i].at;
		}
	return NULL;
}

/* The number and the value of a device attribute. For an attribute without a row, fake_attribute() returns 0. */
struct fake_attribute {
	int which, value;
};

FAKE_FN int fake_attribute(const struct fake_attribute *rows, size_t count, int which)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].which == which)
			return rows[i].value;
	return 0;
}

static void *registered[64];

/* Returns 0 if the call registered the memory, 1 if the memory was registered before, and -1 if the table is full. */
FAKE_FN int fake_register(void *at)
{
	FAKE_LOCKED();
	for (int i = 0; i < 64; i++)
		if (registered[i] == at)
			return 1;
	for (int i = 0; i < 64; i++)
		if (!registered[i]) {
			registered[i] = at;
			return 0;
		}
	return -1;
}

FAKE_FN int fake_unregister(void *at)
{
	FAKE_LOCKED();
	for (int i = 0; i < 64; i++)
		if (registered[i] == at) {
			registered[i] = NULL;
			return 0;
		}
	return -1;
}

#endif
