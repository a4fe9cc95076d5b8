/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads: the initial set is as announced, a right execution is accepted, a wrong one is rejected. A plain loop runs
 * the tasks in order, as the simplest reference. */
#include <gpuloom/barrier.h>
#include <gpuloom/sched.h>
#include <gpuloom/workload.h>
#include <stdlib.h>
#include <string.h>

#include "conform/stand.h"
#include "conform/tests.h"
#include "lib/random.h"

/* ---- the plain loop ------------------------------------------------------------------------- */

/* Pending tasks. The newest runs first, which keeps the list short. */
struct heap {
	struct loom_task *list;
	size_t count, room;
	uint64_t ran, skip_at, tags; /* skip_at: the number of the task that is not run; 0: none */
	struct loom__trial *t;
};

struct loop_block {
	uint64_t heap; /* the address of the struct heap, in whose process the suite's workers run */
	uint32_t lock, pad;
	uint64_t left; /* unfinished tasks, when threads run them */
};

static struct loop_block *loop_of(const struct loom_ctx *c)
{
	return c->global[LOOM_SCHED];
}

static void push(struct heap *h, const struct loom_task *task)
{
	if (task->tag >= h->tags) {
		loom__fault(h->t, "a task has the tag %u, but there are only %llu task functions", task->tag,
			    (unsigned long long)h->tags);
		return;
	}
	if (h->count == h->room) {
		h->room = h->room ? 2 * h->room : 1024;
		struct loom_task *list = realloc(h->list, h->room * sizeof(*list));
		if (!list)
			loom__fault_now(h->t, "out of memory for the tasks that it spawns");
		h->list = list;
	}
	h->list[h->count++] = *task;
}

static void lock(struct loop_block *b)
{
	while (__atomic_exchange_n(&b->lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void unlock(struct loop_block *b)
{
	__atomic_store_n(&b->lock, 0, __ATOMIC_RELEASE);
}

static int loop_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	struct loop_block *b = loop_of(c);
	if (c->lane == 0) {
		lock(b);
		push((struct heap *)(uintptr_t)b->heap, task);
		b->left++;
		unlock(b);
	}
	loom_barrier_lanes(c); /* the caller may change the record */
	return 0;
}

/* Each worker runs tasks until none is left. */
static void loop_run(struct loom_ctx *c)
{
	struct loop_block *b = loop_of(c);
	struct heap *h = (struct heap *)(uintptr_t)b->heap;
	struct loom_task task;
	for (;;) {
		uint64_t got = 0, dropped = 0;
		if (c->lane == 0) {
			lock(b);
			got = h->count ? 1 : b->left ? 2 : 0;
			if (got == 1) {
				task = h->list[--h->count];
				dropped = ++h->ran == h->skip_at;
			}
			unlock(b);
		}
		got = loom_from_lane0(c, got | dropped << 8);
		dropped = got >> 8;
		got &= 0xff;
		if (!got || loom_from_lane0(c, (uint64_t)loom_stopped(c)))
			return;
		if (got == 2) {
			loom_pause(c);
			continue;
		}
		if (c->lanes > 1) { /* copies the record to all lanes, a word at a time */
			uint64_t *word = (uint64_t *)(void *)&task;
			for (size_t i = 0; i < sizeof(task) / sizeof(*word); i++)
				word[i] = loom_from_lane0(c, word[i]);
		}
		if (!dropped)
			c->task[task.tag](c, &task);
		loom_barrier_lanes(c);
		if (c->lane == 0) {
			lock(b);
			c->counters->executed++; /* a worker's counters also serve lanes that run tasks of their own */
			b->left--;
			unlock(b);
		}
	}
}

static const struct loom_sched_dev loop_dev = {.size = sizeof(loop_dev), .run = loop_run, .spawn = loop_spawn};

/* ---- a job ---------------------------------------------------------------------------------- */

enum { MOST_TASKS = 1 << 22, MOST_TAGS = 256 };

struct job {
	struct loom__rig rig;
	void *self;
	const struct loom_workload_ops *ops;
	const struct loom_workload_dev *dev;
	loom_task_fn *task[MOST_TAGS];
	struct loom_task *tasks;
	uint64_t count;
	struct heap heap;
};

static int is_kernel(const struct job *j)
{
	return LOOM_HAS(j->dev, kernel);
}

static int ask_count(struct job *j, uint64_t *count)
{
	struct loom__trial *t = loom__trial_of(&j->rig);
	int has = LOOM_HAS(j->ops, task_count);
	*count = has ? j->ops->task_count(j->self, &j->rig.layout) : 0;
	if (has && *count != j->ops->task_count(j->self, &j->rig.layout))
		return loom__fault(t, "task_count() gives another answer in a second call");
	if (!*count && !is_kernel(j))
		return loom__fault(t, "it has neither an initial task nor a kernel");
	if (*count > MOST_TASKS)
		return loom__skip(t, "%llu initial tasks are too many for the suite; make the job smaller with --set",
				  (unsigned long long)*count);
	return 0;
}

static int write_tasks(struct job *j)
{
	enum { GUARD = 4 };
	struct loom_error err = {0};
	struct loom__rig *r = &j->rig;
	struct loom__trial *t = loom__trial_of(r);
	r->layout.initial_tasks = j->count;
	j->tasks = calloc(j->count + GUARD, sizeof(*j->tasks));
	if (!j->tasks)
		return loom__skip(t, "out of memory for %llu tasks", (unsigned long long)j->count);
	memset(j->tasks + j->count, 0x5c, GUARD * sizeof(*j->tasks));
	const struct loom__rig_part *p = &r->part[LOOM_WORKLOAD];
	loom_ref global = p->global ? LOOM_REF(1, p->global) : 0;
	int code = j->ops->tasks(j->self, &r->layout, &p->view, global, j->tasks, &err);
	if (code) {
		LOOM__TRY(loom__judge_error(t, "tasks()", code, &err));
		return loom__fault(t, "tasks() fails: %s", err.text);
	}
	const unsigned char *end = (const void *)(j->tasks + j->count);
	for (size_t i = 0; i < GUARD * sizeof(*j->tasks); i++)
		if (end[i] != 0x5c)
			return loom__fault(t, "tasks() writes more than the %llu tasks that task_count() announced",
					   (unsigned long long)j->count);
	for (uint64_t i = 0; i < j->count; i++)
		if (j->tasks[i].tag >= j->dev->count && !is_kernel(j))
			return loom__fault(t,
					   "initial task %llu has the tag %u, but there are only "
					   "%u task functions",
					   (unsigned long long)i, j->tasks[i].tag, j->dev->count);
	return 0;
}

/* ---- a barrier, for kernels that use one ------------------------------------------------------- */

struct meeting {
	uint32_t arrived[LOOM__RIG_DEVICES + 1], round[LOOM__RIG_DEVICES + 1];
};

static int meeting_wait(struct loom_ctx *c, enum loom_scope scope)
{
	struct meeting *m = c->global[LOOM_BARRIER];
	uint32_t at = scope == LOOM_SCOPE_STACK ? LOOM__RIG_DEVICES : c->device;
	uint32_t all = scope == LOOM_SCOPE_STACK ? c->workers : c->count;
	uint64_t stopped = 0;
	loom_barrier_lanes(c);
	if (c->lane == 0 && scope != LOOM_SCOPE_WORKER) {
		uint32_t round = __atomic_load_n(&m->round[at], __ATOMIC_RELAXED);
		if (__atomic_add_fetch(&m->arrived[at], 1, __ATOMIC_ACQ_REL) == all) {
			__atomic_store_n(&m->arrived[at], 0, __ATOMIC_RELAXED);
			__atomic_store_n(&m->round[at], round + 1, __ATOMIC_RELEASE);
		}
		while (__atomic_load_n(&m->round[at], __ATOMIC_ACQUIRE) == round && !stopped) {
			loom_pause(c);
			stopped = (uint64_t)loom_stopped(c);
		}
	}
	return loom_from_lane0(c, stopped) ? LOOM_EINTR : 0;
}

static const struct loom_barrier_dev meeting_dev = {.size = sizeof(meeting_dev), .wait = meeting_wait};

/* ---- open and close ---------------------------------------------------------------------------- */

/* True for kinds of which the suite has no reference implementation. */
static int needs_companions(struct loom__trial *t, const struct loom_workload_ops *ops)
{
	const char *what = LOOM_HAS(ops, channels)         ? "synchronisation"
			   : LOOM_HAS(ops, wire)           ? "a network"
			   : LOOM_HAS(ops, tenants)        ? "services of the host"
			   : LOOM_HAS(ops, barrier_scopes) ? "a barrier"
							   : NULL;
	return what ? loom__skip(t, "it uses %s: validate it in a stack, with --with CONF", what) : 0;
}

static int open_job(struct job *j, struct loom__trial *t, uint32_t workers, uint32_t lanes)
{
	struct loom__rig_want want = {
	    .devices = workers > 1 ? 2 : 1, .workers = workers, .lanes = lanes, .seed = t->seed, .hidden = 1};
	LOOM__TRY(needs_companions(t, t->plugin->ops));
	*j = (struct job){.ops = t->plugin->ops, .dev = t->plugin->dev->cpu};
	if (j->dev->count > MOST_TAGS)
		return loom__skip(t, "more than %d task functions", MOST_TAGS);
	for (uint32_t i = 0; i < j->dev->count; i++)
		j->task[i] = j->dev->task[i].fn;
	want.bytes[LOOM_SCHED] = sizeof(struct loop_block);
	want.bytes[LOOM_BARRIER] = sizeof(struct meeting);
	want.table[LOOM_BARRIER] = &meeting_dev;
	want.table[LOOM_SCHED] = &loop_dev;
	want.task = j->task;
	want.tasks = j->dev->count;
	int verdict = loom__stand_try(&j->rig, t, &want, NULL);
	if (verdict == LOOM__REFUSED)
		return loom__skip(t, "%s; give it other options with --set", t->refusal);
	LOOM__TRY(verdict);
	j->self = loom__stand_self(&j->rig);
	LOOM__TRY(ask_count(j, &j->count));
	return j->count ? write_tasks(j) : 0;
}

static void close_job(struct job *j)
{
	free(j->tasks);
	free(j->heap.list);
	loom__stand_close(&j->rig);
}

static void kernel_body(struct loom_ctx *c)
{
	c->workload->kernel(c);
}

/* Executes one sample. `skip_at`: the number, in order of execution, of a task that is not run; 0: none. `alone`: each
 * lane runs tasks of its own, as if it were the worker. */
static int execute_so(struct job *j, uint64_t skip_at, int alone)
{
	struct loom__rig *r = &j->rig;
	struct loom__trial *t = loom__trial_of(r);
	LOOM__TRY(loom__stand_init(r));
	struct loop_block *b = loom__rig_block(r, LOOM_SCHED);
	j->heap.t = t;
	j->heap.count = 0;
	j->heap.ran = 0;
	j->heap.skip_at = skip_at;
	j->heap.tags = j->dev->count;
	for (uint64_t i = j->count; i-- > 0 && !is_kernel(j);)
		push(&j->heap, &j->tasks[i]);
	for (uint32_t i = 0; is_kernel(j) && i < r->layout.workers; i++)
		r->ctx[i].initial = j->tasks;
	for (uint32_t i = 0; alone && i < r->layout.workers * r->want.lanes; i++) {
		r->ctx[i].single_lane = 1 + r->ctx[i].lane;
		r->ctx[i].lane = 0;
		r->ctx[i].lanes = 1;
	}
	memset(loom__rig_block(r, LOOM_BARRIER), 0, sizeof(struct meeting));
	r->ctl->initial_tasks = j->count;
	*b = (struct loop_block){.heap = (uint64_t)(uintptr_t)&j->heap, .left = j->count};
	int late = loom__rig_run(r, is_kernel(j) ? kernel_body : loop_run, 60 * LOOM__SECOND);
	LOOM__TRY(loom__faulted(t));
	if (late)
		return loom__skip(t, "the job is not done within 60 s; make it smaller with --set");
	return loom__stand_guards(r);
}

static int execute(struct job *j, uint64_t skip_at)
{
	return execute_so(j, skip_at, 0);
}

static int verify(struct job *j, struct loom_error *err)
{
	struct loom__rig_host *host = &loom__trial_of(&j->rig)->host;
	*err = (struct loom_error){0};
	loom__rig_host_clear(host);
	return j->ops->verify(j->self, &j->rig.layout, &j->rig.part[LOOM_WORKLOAD].view, LOOM__RIG_REPORT(host), err);
}

static int must_accept(struct job *j, const char *what)
{
	struct loom_error err;
	struct loom__trial *t = loom__trial_of(&j->rig);
	int code = verify(j, &err);
	if (!code)
		return 0;
	LOOM__TRY(loom__judge_error(t, "verify()", code, &err));
	return loom__fault(t, "verify() rejects %s: %s", what, err.text);
}

static int run_right(struct job *j, const char *what)
{
	LOOM__TRY(execute(j, 0));
	LOOM__TRY(loom__stand_failed(&j->rig, 0)); /* explain() tells the cause, verify() only sees the result */
	return must_accept(j, what);
}

/* Returns 1 when verify() rejects the answer as wrong, 0 when it accepts it. Any other error is FAILED in *verdict. */
static int rejects(struct job *j, int *verdict)
{
	struct loom_error err;
	int code = verify(j, &err);
	*verdict = 0;
	if (code && code != LOOM_EWRONG)
		*verdict = loom__fault(loom__trial_of(&j->rig),
				       "verify() answers a wrong result with %d (%s) in place of LOOM_EWRONG", code,
				       loom_strerror(code));
	else if (code)
		*verdict = loom__judge_error(loom__trial_of(&j->rig), "verify()", code, &err);
	return code == LOOM_EWRONG;
}

/* ---- tests ---------------------------------------------------------------------------------- */

int loom__test_workload_tasks(struct loom__trial *t)
{
	struct job j, again;
	LOOM__TRY(open_job(&j, t, 3, 1));
	LOOM__TRY(open_job(&again, t, 3, 1));
	if (j.count != again.count)
		return loom__fault(t, "two instances with the same options announce %llu and %llu tasks",
				   (unsigned long long)j.count, (unsigned long long)again.count);
	if (j.count && memcmp(j.tasks, again.tasks, j.count * sizeof(*j.tasks)))
		return loom__fault(t, "two instances with the same options write different tasks");
	close_job(&j);
	close_job(&again);
	return 0;
}

int loom__test_workload_verify(struct loom__trial *t)
{
	struct job j;
	for (uint32_t workers = 1; workers <= 3; workers += 2) {
		LOOM__TRY(open_job(&j, t, workers, 1));
		for (int n = 0; n < 2; n++) {
			LOOM__TRY(run_right(&j, n ? "the second right execution" : "a right execution"));
			LOOM__TRY(loom__stand_check(&j.rig));
		}
		close_job(&j);
	}
	return 0;
}

/* Flips words that the execution changed, one at a time: verify() must reject at least one flip. */
static int corrupt(struct job *j, const char *before, uint64_t *tried, uint64_t *noticed)
{
	struct loom__rig *r = &j->rig;
	const struct loom__rig_part *own = &r->part[LOOM_SCHED];
	uint64_t changed = 0, *word = (uint64_t *)(void *)r->host;
	int verdict = 0;
	*tried = *noticed = 0;
	for (uint64_t i = 0; i < r->bytes / 8; i++)
		changed += memcmp(before + 8 * i, &word[i], 8) != 0;
	uint64_t every = 1 + changed / 24, seen = 0;
	for (uint64_t i = 0; i < r->bytes / 8 && !verdict; i++) {
		if (!memcmp(before + 8 * i, &word[i], 8) || seen++ % every ||
		    (8 * i >= own->global && 8 * i < own->global + sizeof(struct loop_block)))
			continue;
		uint64_t was = word[i];
		word[i] ^= 1ull << loom__mix64(i) % 32;
		++*tried;
		*noticed += (uint64_t)rejects(j, &verdict);
		word[i] = was;
	}
	return verdict;
}

int loom__test_workload_rejects(struct loom__trial *t)
{
	struct job j;
	int verdict = 0;
	LOOM__TRY(open_job(&j, t, 1, 1));
	LOOM__TRY(loom__stand_init(&j.rig));
	int rejected = is_kernel(&j) || rejects(&j, &verdict); /* A kernel that did not run may have any result. */
	LOOM__TRY(verdict);
	if (!rejected)
		return loom__fault(t, "verify() accepts a sample in which no task was run");
	char *before = malloc(j.rig.bytes), *after = malloc(j.rig.bytes);
	if (!before || !after)
		return loom__skip(t, "out of memory");
	memcpy(before, j.rig.host, j.rig.bytes);
	uint64_t tried, noticed;
	LOOM__TRY(run_right(&j, "a right execution"));
	memcpy(after, j.rig.host, j.rig.bytes);
	LOOM__TRY(corrupt(&j, before, &tried, &noticed));
	if (tried && !noticed)
		return loom__fault(t,
				   "verify() accepts a corrupted result: %llu words that the tasks wrote were changed, "
				   "one at a time, and no change was rejected",
				   (unsigned long long)tried);
	/* When one task is not run, verify() must reject the answer, unless the task has no effect on memory. */
	uint64_t ran = j.heap.ran, missed = 0, caught = 0;
	for (uint64_t k = 0; k < 4 && !is_kernel(&j) && ran; k++) {
		uint64_t at = 1 + k * (ran - 1) / 3;
		loom__say_case(t, t->seed, "task %llu of %llu is not run", (unsigned long long)at,
			       (unsigned long long)ran);
		LOOM__TRY(execute(&j, at));
		struct loop_block *b = loom__rig_block(&j.rig, LOOM_SCHED);
		memcpy(b, after + ((char *)b - j.rig.host), sizeof(*b));
		if (rejects(&j, &verdict))
			caught++;
		else if (memcmp(after, j.rig.host, j.rig.bytes))
			missed++;
		LOOM__TRY(verdict);
	}
	if (missed && !caught)
		return loom__fault(t, "verify() accepts samples in which a task was not run");
	free(before);
	free(after);
	close_job(&j);
	return 0;
}

int loom__test_workload_repeat(struct loom__trial *t)
{
	struct job j;
	for (int n = 0; n < 20; n++) {
		LOOM__TRY(open_job(&j, t, 2, 1));
		if (n < 2)
			LOOM__TRY(run_right(&j, "a right execution of a second instance"));
		close_job(&j);
		if (t->host.live)
			return loom__fault(t, "an instance leaves %llu blocks of host->alloc() behind",
					   (unsigned long long)t->host.live);
	}
	return 0;
}

int loom__test_workload_parallel(struct loom__trial *t)
{
	struct job j;
	LOOM__TRY(open_job(&j, t, 8, 1));
	for (int n = 0; n < 3; n++) {
		LOOM__TRY(run_right(&j, "an execution by 8 workers that take tasks in any order"));
		LOOM__TRY(loom__stand_check(&j.rig));
	}
	close_job(&j);
	return 0;
}

/* As in schedulers of single lanes, several lanes may add to a worker's block, so additions must be atomic. */
int loom__test_workload_alone(struct loom__trial *t)
{
	struct job j;
	LOOM__TRY(open_job(&j, t, 1, 4));
	if (is_kernel(&j))
		return loom__skip(t, "it has a kernel in place of tasks");
	for (int n = 0; n < 3; n++) {
		LOOM__TRY(execute_so(&j, 0, 1));
		LOOM__TRY(must_accept(&j, "an execution by lanes that run tasks of their own: "
					  "to their worker's block they add with loom_own_add() alone"));
	}
	close_job(&j);
	return 0;
}

static int fuzz(struct loom__trial *t, uint64_t seed, struct loom__chance *chance, struct loom__settings *s)
{
	uint32_t workers = 1 + (uint32_t)loom__draw_below(chance, 9);
	struct job j;
	loom__settings_free(s); /* keeps the given options: random ones may make endless jobs */
	loom__say_case(t, seed, "%u workers", workers);
	LOOM__TRY(open_job(&j, t, workers, 1));
	LOOM__TRY(run_right(&j, "a right execution"));
	close_job(&j);
	return 0;
}

int loom__test_workload_fuzz(struct loom__trial *t)
{
	return loom__fuzz(t, fuzz, 0);
}
