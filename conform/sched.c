/* SPDX-License-Identifier: Apache-2.0 */
/* Schedulers: for any task tree and queue size, each task runs once with its record intact, and is counted. Joins start
 * their tasks, and tasks run only on devices of their affinity. */
#include <gpuloom/sched.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "conform/refterm.h"
#include "conform/tests.h"
#include "rig/tree.h"

/* ---- the tree of tasks: rig/tree.h -------------------------------------------------------------- */

enum { SHAPES = LOOM__OTHER };
static const char *const shape_names[] = {"wide", "deep", "binary", "comb", "random"};

enum { MOST = 100000, JOINS = 1025 }; /* tasks; joins */

struct truth {
	struct loom_join join[JOINS];  /* test_sched_joins: of each node; the last: of initial tasks */
	uint64_t fan, nodes, initials; /* test_sched_joins: children of a node, nodes of the tree, tasks before them */
	uint64_t early, early_at;      /* tasks of joins that ran too early; the number of the last such node */
	uint64_t kind[LOOM__RIG_DEVICES]; /* test_sched_affinity: LOOM_ON_* of each device */
	/* test_sched_affinity: tasks of each affinity that ran, and tasks that ran where they must not */
	uint64_t placed[3], misplaced;
	uint64_t rough;
	uint64_t naps;            /* number of tasks that begin with a nap: test_sched_once */
	uint32_t lanes, reserved; /* lanes of a worker */
	uint64_t torn, torn_at;   /* tasks whose record had changed; the last such task */
	uint64_t spawned;         /* counted by the tasks */
	struct {
		uint64_t executed, spawned, pad[6];
	} worker[LOOM__RIG_WORKERS];
	uint32_t mark[MOST]; /* lanes that ran the task */
};

static struct truth *truth_of(const struct loom_ctx *c)
{
	return c->global[LOOM_WORKLOAD];
}

/* Returns 0, or 1 if the run ends with an error. A refusal without an error would lose the task, and the user would only
 * see a wrong answer. */
static int try_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	const struct loom__refterm *term = c->global[LOOM_TERM];
	int code = c->sched->spawn(c, task);
	if (code && c->lane == 0 && !loom_stopped(c))
		loom__fault_stop(c, term->trial,
				 "spawn() returns %d (%s) to worker %u, but has not failed the run: its task is lost; "
				 "call loom_worker_fail()",
				 code, loom_strerror(code), c->worker);
	return code != 0;
}

/* Spawns, then overwrites the record, so that a scheduler that kept the pointer runs garbage. */
static int spawn(struct loom_ctx *c, struct loom_task *task)
{
	struct truth *truth = truth_of(c);
	struct loom__refterm *term = c->global[LOOM_TERM];
	if (c->lane == 0) {
		__atomic_add_fetch(&term->made, 1, __ATOMIC_ACQ_REL);
		__atomic_add_fetch(&truth->spawned, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&truth->worker[c->worker].spawned, 1, __ATOMIC_RELAXED);
		loom__note_write(&truth->mark[task->param[0]], sizeof(truth->mark[0]));
	}
	int code = try_spawn(c, task);
	memset(task, 0xee, sizeof(*task));
	task->tag = task->affinity = 0;
	task->join = 0;
	return code;
}

/* The start and the end of the task that has mark `id`. */
static void enter(struct loom_ctx *c, uint64_t id)
{
	struct truth *truth = truth_of(c);
	struct loom__refterm *term = c->global[LOOM_TERM];
	if (c->lane == 0) /* one lane writes */
		loom__note_read(&truth->mark[id], sizeof(truth->mark[0]));
	/* A lane that runs a task of its own counts as all lanes of its worker. */
	__atomic_add_fetch(&truth->mark[id], c->single_lane ? truth->lanes : 1, __ATOMIC_RELAXED);
	if (c->lane == 0 && term->worker[c->worker].idle)
		loom__fault((struct loom__trial *)(uintptr_t)term->trial,
			    "worker %u runs a task while the detector counts it as idle: busy() "
			    "was not called",
			    c->worker);
	if (c->lane == 0)
		__atomic_add_fetch(&truth->worker[c->worker].executed, 1, __ATOMIC_RELAXED);
	if (truth->rough)
		loom__dawdle(c);
}

static void leave(struct loom_ctx *c)
{
	struct loom__refterm *term = c->global[LOOM_TERM];
	loom_barrier_lanes(c);
	if (c->lane == 0)
		__atomic_add_fetch(&term->ended, 1, __ATOMIC_ACQ_REL);
}

static void node(struct loom_ctx *c, const struct loom_task *t)
{
	struct truth *truth = truth_of(c);
	struct loom__tree_walk walk = {0};
	struct loom_task child;
	uint64_t id = t->param[0];
	if (id >= MOST || t->param[2] >= SHAPES || !loom__tree_whole(t)) {
		__atomic_store_n(&truth->torn_at, id, __ATOMIC_RELAXED);
		__atomic_add_fetch(&truth->torn, 1, __ATOMIC_RELAXED);
		return;
	}
	enter(c, id);
	if (id < truth->naps)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	if (LOOM_HAS(c->sched, wanted) && id % 3 == 0 && c->sched->wanted(c) < 0 && !loom_stopped(c))
		loom__fault_stop(c, ((struct loom__refterm *)c->global[LOOM_TERM])->trial,
				 "wanted() is negative for worker %u, but the run was not stopped", c->worker);
	while (loom__tree_child(t, &walk, &child) && !spawn(c, &child))
		;
	leave(c);
}

/* Spawns another task without end, so that only the stop word ends the run. */
static void endless(struct loom_ctx *c, const struct loom_task *t)
{
	struct loom_task child = *t;
	if (truth_of(c)->rough)
		loom__dawdle(c);
	if (!loom_from_lane0(c, (uint64_t)loom_stopped(c)))
		c->sched->spawn(c, &child);
}

/* ---- joins ---------------------------------------------------------------------------------- */

/* Each node of a tree with children spawns them (FORK). When they have ended, their join starts the node's second task
 * (MEET). Node n has the children n * fan + 1 to n * fan + fan. The marks are those of the initial tasks, then of the
 * nodes, then of the second tasks. param: mark, node, levels below it, 1 if a join starts the task. */
enum { FORK = 3, MEET = 4, PLACED = 5 };

static loom_ref ref_of(const struct loom_ctx *c, const struct loom_join *join)
{
	return LOOM_REF(1, (const char *)join - c->segment[1]);
}

/* Counts a task that a join starts. No spawn() counts it. */
static void enter_next(struct loom_ctx *c)
{
	struct loom__refterm *term = c->global[LOOM_TERM];
	struct truth *truth = truth_of(c);
	if (c->lane == 0) {
		__atomic_add_fetch(&term->made, 1, __ATOMIC_ACQ_REL);
		__atomic_add_fetch(&truth->spawned, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&truth->worker[c->worker].spawned, 1, __ATOMIC_RELAXED);
	}
}

static void fork_children(struct loom_ctx *c, const struct loom_task *t)
{
	struct truth *truth = truth_of(c);
	uint64_t node = t->param[1], levels = t->param[2], fan = truth->fan, first = node * fan + 1;
	if (t->param[3])
		enter_next(c);
	enter(c, t->param[0]);
	if (levels) {
		struct loom_join *join = &truth->join[node];
		if (c->lane == 0) {
			loom__note_write(join, sizeof(*join));
			/* A child with children names the join twice: as a node, and by its second task. */
			*join = (struct loom_join){
			    .pending = fan * (levels > 1 ? 2 : 1),
			    .next = {.tag = MEET,
				     .join = t->join,
				     .param = {truth->initials + truth->nodes + node, node, levels, 1}}};
		}
		loom_barrier_lanes(c);
		for (uint64_t i = 0; i < fan; i++) {
			struct loom_task child = {.tag = FORK,
						  .join = ref_of(c, join),
						  .param = {truth->initials + first + i, first + i, levels - 1, 0}};
			if (spawn(c, &child))
				break;
		}
	}
	if (c->lane == 0) /* the tasks of a join precede its next task */
		loom__note_write(&truth->mark[t->param[0]], sizeof(truth->mark[0]));
	leave(c);
}

static void meet(struct loom_ctx *c, const struct loom_task *t)
{
	struct truth *truth = truth_of(c);
	uint64_t node = t->param[1], levels = t->param[2], first = truth->initials + node * truth->fan + 1;
	enter_next(c);
	enter(c, t->param[0]);
	for (uint64_t i = first; c->lane == 0 && i < first + truth->fan; i++) {
		loom__note_read(&truth->mark[i], sizeof(truth->mark[0]));
		if (__atomic_load_n(&truth->mark[i], __ATOMIC_RELAXED) < truth->lanes ||
		    (levels > 1 && __atomic_load_n(&truth->mark[i + truth->nodes], __ATOMIC_RELAXED) < truth->lanes)) {
			__atomic_store_n(&truth->early_at, node, __ATOMIC_RELAXED);
			__atomic_add_fetch(&truth->early, 1, __ATOMIC_RELAXED);
			break;
		}
	}
	leave(c);
}

/* ---- affinity ------------------------------------------------------------------------------- */

/* Notes where it runs. param[1]: number of tasks to spawn. Each spawned task has an affinity. */
static void placed(struct loom_ctx *c, const struct loom_task *t)
{
	struct truth *truth = truth_of(c);
	uint64_t kind = truth->kind[c->device];
	if (c->lane == 0) {
		__atomic_add_fetch(&truth->placed[t->affinity], 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&truth->misplaced, t->affinity && t->affinity != kind, __ATOMIC_RELAXED);
	}
	for (uint64_t i = 0; i < t->param[1]; i++) {
		struct loom_task child = {.tag = PLACED, .affinity = (uint8_t)(i % 3)};
		if (try_spawn(c, &child))
			break;
	}
}

static loom_task_fn *const tree_tasks[] = {node, node, endless, fork_children, meet, placed};

/* ---- a run ---------------------------------------------------------------------------------- */

struct tree {
	uint32_t devices, workers, lanes, initials, size, naps;
	enum loom__shape shape;
	uint64_t seed;
	int samples;
	uint32_t fan, levels; /* not 0: a tree of joins, which the initial tasks start by a join; `size` is ignored */
};

/* Number of nodes on the first `levels` levels of a tree of joins. */
static uint32_t nodes_of(const struct tree *tree, uint32_t levels)
{
	uint32_t n = 0, width = 1;
	for (uint32_t i = 0; i < levels; i++, width *= tree->fan)
		n += width;
	return n;
}

static int open_tree(struct loom__rig *r, struct loom__trial *t, const struct tree *tree,
		     struct loom__settings *settings)
{
	struct loom__rig_want want = {.devices = tree->devices,
				      .workers = tree->workers,
				      .lanes = tree->lanes,
				      .seed = tree->seed,
				      .initial_tasks = tree->initials,
				      .task = tree_tasks,
				      .tasks = LOOM__COUNT(tree_tasks),
				      /* A thread of the host reads the block while workers run, which rules out hiding
				       * it. */
				      .hidden = !LOOM_HAS((const struct loom_sched_ops *)t->plugin->ops, start)};
	want.bytes[LOOM_WORKLOAD] = sizeof(struct truth);
	want.bytes[LOOM_TERM] = sizeof(struct loom__refterm);
	want.table[LOOM_TERM] = &loom__refterm_dev;
	return loom__stand_open(r, t, &want, settings);
}

static void plant_joins(struct loom__rig *r, const struct tree *tree, struct truth *truth)
{
	struct loom_join *join = &truth->join[JOINS - 1];
	truth->fan = tree->fan;
	truth->nodes = nodes_of(tree, tree->levels + 1);
	truth->initials = tree->initials;
	*join = (struct loom_join){.pending = tree->initials,
				   .next = {.tag = FORK, .param = {tree->initials, 0, tree->levels, 1}}};
	for (uint32_t i = 0; i < tree->initials; i++)
		r->initial[i] =
		    (struct loom_task){.tag = FORK, .join = LOOM_REF(1, (char *)join - r->host), .param = {i}};
}

static void plant(struct loom__rig *r, const struct tree *tree)
{
	struct truth *truth = loom__rig_block(r, LOOM_WORKLOAD);
	struct loom__refterm *term = loom__rig_block(r, LOOM_TERM);
	memset(truth, 0, sizeof(*truth));
	memset(term, 0, sizeof(*term));
	truth->rough = term->rough = (uint64_t)loom__trial_of(r)->rough;
	truth->naps = tree->naps;
	truth->lanes = tree->lanes;
	term->trial = (uint64_t)(uintptr_t)loom__trial_of(r);
	term->made = tree->initials;
	if (tree->fan) {
		plant_joins(r, tree, truth);
		return;
	}
	loom__tree_roots(r->initial, tree->initials, tree->size, tree->shape, tree->seed);
}

static void run_body(struct loom_ctx *c)
{
	c->sched->run(c);
}

#define SUM(r, field) sum((r), offsetof(struct loom_counters, field))
static uint64_t sum(const struct loom__rig *r, size_t offset)
{
	uint64_t total = 0;
	for (uint32_t w = 0; w < r->layout.workers; w++)
		total += *(const uint64_t *)((const char *)&r->counters[w] + offset);
	return total;
}

static int check_counters(struct loom__rig *r, const struct tree *tree)
{
	const struct truth *truth = loom__rig_block(r, LOOM_WORKLOAD);
	struct loom__trial *t = loom__trial_of(r);
	uint64_t executed = SUM(r, executed), spawned = SUM(r, spawned);
	for (uint32_t w = 0; w < r->layout.workers; w++)
		if (r->counters[w].executed != truth->worker[w].executed)
			return loom__fault(t, "worker %u counts %llu executed tasks, but ran %llu", w,
					   (unsigned long long)r->counters[w].executed,
					   (unsigned long long)truth->worker[w].executed);
	if (spawned != truth->spawned)
		return loom__fault(t, "the workers count %llu spawned tasks, but %llu were spawned",
				   (unsigned long long)spawned, (unsigned long long)truth->spawned);
	if (executed != spawned + tree->initials)
		return loom__fault(t, "the counter of executed tasks says %llu, where %llu were made",
				   (unsigned long long)executed, (unsigned long long)(spawned + tree->initials));
	if (SUM(r, claimed) > tree->initials)
		return loom__fault(t, "the workers count %llu tasks claimed from an initial set of %u",
				   (unsigned long long)SUM(r, claimed), tree->initials);
	if (SUM(r, stolen_in) != SUM(r, stolen_out))
		return loom__fault(t, "%llu tasks were stolen, but %llu were given",
				   (unsigned long long)SUM(r, stolen_in), (unsigned long long)SUM(r, stolen_out));
	if (SUM(r, overflowed) != SUM(r, refilled))
		return loom__fault(t, "%llu tasks were overflowed, but %llu were taken back",
				   (unsigned long long)SUM(r, overflowed), (unsigned long long)SUM(r, refilled));
	if (SUM(r, steals) > SUM(r, steal_attempts))
		return loom__fault(t, "it counts more steals than attempts");
	return 0;
}

static int check_once(struct loom__rig *r, const struct tree *tree, const char *about)
{
	const struct truth *truth = loom__rig_block(r, LOOM_WORKLOAD);
	const struct loom__refterm *term = loom__rig_block(r, LOOM_TERM);
	if (truth->torn)
		return loom__fault(loom__trial_of(r),
				   "%llu tasks ran with a changed record: spawn() must copy the record, "
				   "which need not outlive the call (%s)",
				   (unsigned long long)truth->torn, about);
	uint64_t lost = 0, twice = 0, some = 0, first = 0;
	for (uint32_t i = 0; i < tree->size; i++) {
		uint32_t n = truth->mark[i];
		lost += n == 0;
		some += n % tree->lanes != 0;
		if (n > tree->lanes && !twice++)
			first = i;
	}
	if (some)
		return loom__fault(loom__trial_of(r), "%llu tasks were not entered by every lane of their worker (%s)",
				   (unsigned long long)some, about);
	if (twice)
		return loom__fault(loom__trial_of(r),
				   "%llu of %u tasks ran more than once, the first is task %llu, %u times (%s)",
				   (unsigned long long)twice, tree->size, (unsigned long long)first,
				   truth->mark[first] / tree->lanes, about);
	if (lost)
		return loom__fault(loom__trial_of(r), "%llu of %u tasks were never run (%s)", (unsigned long long)lost,
				   tree->size, about);
	for (uint32_t w = 0; w < r->layout.workers; w++)
		if (!term->worker[w].saw_done)
			return loom__fault(loom__trial_of(r),
					   "worker %u left its loop before the detector reported the end (%s)", w,
					   about);
	return 0;
}

/* Finds joins whose tasks have ended but whose next task did not run, and the reverse. */
static int check_joins(struct loom__rig *r)
{
	const struct truth *truth = loom__rig_block(r, LOOM_WORKLOAD);
	struct loom__trial *t = loom__trial_of(r);
	uint64_t waits = truth->join[JOINS - 1].pending;
	int ran = truth->mark[truth->initials] != 0;
	if (truth->early)
		return loom__fault(t, "%llu joins started their next task before all of their tasks had ended",
				   (unsigned long long)truth->early);
	for (uint64_t node = 0; ran && node < truth->nodes; node++) {
		uint64_t first = node * truth->fan + 1;
		if (first >= truth->nodes)
			return 0;
		ran = truth->mark[truth->initials + truth->nodes + node] != 0;
		waits = truth->join[node].pending;
	}
	return ran ? 0
		   : loom__fault(t,
				 "all workers left, but the `next` of a join did not run, and its `pending` is %llu: a "
				 "scheduler decrements `pending` when a task with a join has ended, also one that ran "
				 "inside spawn(), and runs `next` at 0",
				 (unsigned long long)waits);
}

/* LOOM_EFULL is legal with tiny queues, as long as it fails the run. The user then needs to know which option to raise.
 */
static int run_tree(struct loom__rig *r, const struct tree *tree, int full_is_legal)
{
	char about[400], text[300], late[200];
	struct loom__trial *t = loom__trial_of(r);
	loom__stand_text(r, text, sizeof(text));
	snprintf(about, sizeof(about), "a %s tree of %u tasks, %u of them initial; %s",
		 tree->fan ? "fork-join" : shape_names[tree->shape], tree->size, tree->initials, text);
	snprintf(late, sizeof(late),
		 "no end: some of %u tasks were not run, or a worker waits for a lock or a task that never comes",
		 tree->size);
	loom__say_case(t, tree->seed, "%s", about);
	for (int n = 0; n < tree->samples; n++) {
		plant(r, tree);
		LOOM__TRY(loom__stand_run(r, run_body, 10 * LOOM__SECOND, late));
		LOOM__TRY(loom__stand_guards(r));
		struct loom_error err;
		if (full_is_legal && loom__stand_failure(r, &err) == LOOM_EFULL) {
			snprintf(t->note, sizeof(t->note), "full queues end a run with the error: %.250s", err.text);
			return 0;
		}
		LOOM__TRY(loom__stand_failed(r, 0));
		if (tree->fan)
			LOOM__TRY(check_joins(r));
		LOOM__TRY(check_once(r, tree, about));
		LOOM__TRY(check_counters(r, tree));
		LOOM__TRY(loom__stand_check(r));
	}
	return 0;
}

static int grow(struct loom__trial *t, const struct tree *tree, struct loom__settings *s)
{
	struct loom__rig r;
	LOOM__TRY(open_tree(&r, t, tree, s));
	LOOM__TRY(run_tree(&r, tree, s != NULL));
	loom__stand_close(&r);
	return 0;
}

#define GROW(...) grow(t, &(struct tree){__VA_ARGS__}, NULL)

/* ---- tests ---------------------------------------------------------------------------------- */

/* The first tasks nap, so that some workers report idle before they find work, on a busy machine as well. */
int loom__test_sched_once(struct loom__trial *t)
{
	static const uint32_t workers[] = {1, 2, 3, 5};
	for (uint32_t i = 0; i < LOOM__COUNT(workers); i++)
		for (int shape = 0; shape < SHAPES; shape++)
			LOOM__TRY(GROW(.devices = workers[i] > 1 ? 2 : 1, .workers = workers[i], .lanes = 1,
				       .initials = 1,
				       .size = shape == LOOM__STAR || shape == LOOM__RANDOM ? 20000 : 3000,
				       .naps = workers[i] > 1 ? 16 : 0, .shape = (enum loom__shape)shape,
				       .seed = t->seed + i, .samples = 2));
	return 0;
}

int loom__test_sched_initial(struct loom__trial *t)
{
	static const uint32_t initials[] = {0, 1, 2, 7, 63, 64, 65, 1000, 4097, 60000};
	for (size_t i = 0; i < LOOM__COUNT(initials); i++)
		for (uint32_t workers = 1; workers < 5; workers += 3)
			LOOM__TRY(GROW(.devices = workers > 1 ? 2 : 1, .workers = workers, .lanes = 1,
				       .initials = initials[i], .size = initials[i] + initials[i] / 4,
				       .shape = LOOM__RANDOM, .seed = t->seed + i, .samples = 2));
	return 0;
}

/* True for rows with the usual names of queue sizes. */
static int sizes_queue(const struct loom_opt *row)
{
	static const char *const usual[] = {"queue", "slots", "ring",  "buffer",   "depth",
					    "claim", "batch", "chunk", "capacity", "deque"};
	if (row->type != LOOM_OPT_U32 && row->type != LOOM_OPT_U64)
		return 0;
	for (size_t i = 0; i < LOOM__COUNT(usual); i++)
		if (strstr(row->name, usual[i]))
			return 1;
	return 0;
}

/* Sets the queues whose bit is set in `which` to their minimum, or to twice that. */
static void shrink(const struct loom__trial *t, struct loom__settings *s, unsigned which, int twice)
{
	unsigned n = 0;
	for (const struct loom_opt *row = t->plugin->opts; row && row->name; row++) {
		char text[32];
		if (!sizes_queue(row) || !(which >> n++ & 1))
			continue;
		snprintf(text, sizeof(text), "%lld", (long long)(twice && row->min > 0 ? 2 * row->min : row->min));
		loom__settings_put(t, s, row, text);
	}
}

int loom__test_sched_tiny(struct loom__trial *t)
{
	unsigned rows = 0, ran = 0;
	for (const struct loom_opt *row = t->plugin->opts; row && row->name; row++)
		rows += (unsigned)sizes_queue(row);
	if (!rows)
		return loom__skip(t, "no option has a usual name for the size of a queue");
	for (unsigned which = 1; which < 1u << (rows > 4 ? 4 : rows); which++)
		for (int turn = 0; turn < 2 * SHAPES; turn++) {
			struct loom__settings s;
			if (loom__settings_create(t, &s))
				return loom__skip(t, "out of memory");
			shrink(t, &s, which, turn / SHAPES);
			int verdict = grow(t,
					   &(struct tree){.devices = 2,
							  .workers = 3,
							  .lanes = 1,
							  .initials = 1 + which % 3,
							  .size = 1500,
							  .shape = (enum loom__shape)(turn % SHAPES),
							  .seed = t->seed + which,
							  .samples = 1},
					   &s);
			if (verdict && verdict != LOOM__REFUSED)
				return verdict;
			ran += !verdict;
		}
	return ran ? 0 : loom__skip(t, "it refuses small queues");
}

int loom__test_sched_lanes(struct loom__trial *t)
{
	for (int shape = 0; shape < SHAPES; shape++)
		LOOM__TRY(GROW(.devices = 1, .workers = 2, .lanes = 4, .initials = 3, .size = 200,
			       .shape = (enum loom__shape)shape, .seed = t->seed, .samples = 2));
	return 0;
}

/* A wide tree, whose tasks also run inside their spawners, a binary tree, and a chain of joins. */
int loom__test_sched_joins(struct loom__trial *t)
{
	static const struct tree shapes[] = {
	    {.fan = 8000, .levels = 1}, {.fan = 2, .levels = 10}, {.fan = 1, .levels = 500}};
	static const uint32_t workers[] = {1, 2, 5, 2};
	for (uint32_t i = 0; i < LOOM__COUNT(workers); i++)
		for (size_t k = 0; k < LOOM__COUNT(shapes); k++) {
			struct tree tree = shapes[k];
			tree.lanes = i == 3 ? 4 : 1;
			if (tree.lanes > 1) { /* barriers of the suite's lanes take long, so these trees are small */
				tree.fan = tree.fan > 100 ? 100 : tree.fan;
				tree.levels = tree.levels > 5 ? 5 : tree.levels;
			}
			tree.devices = i == 2 ? 2 : 1;
			tree.workers = workers[i];
			tree.initials = 1 + 30 * i;
			tree.size = tree.initials + nodes_of(&tree, tree.levels + 1) + nodes_of(&tree, tree.levels);
			tree.seed = t->seed;
			tree.samples = 2;
			LOOM__TRY(grow(t, &tree, NULL));
		}
	return 0;
}

/* Tasks of each affinity, initial or spawned. No task may run on a device of another kind. If tasks of an affinity do
 * not run, the run must end with an error. */
static int place(struct loom__trial *t, int mixed, int spawned)
{
	enum { TASKS = 12 };
	struct loom__rig r;
	struct truth *truth;
	struct loom__refterm *term;
	struct loom_error err = {0};
	char text[300];
	struct loom__rig_want want = {.devices = mixed ? 2 : 1,
				      .workers = 4,
				      .lanes = 1,
				      .kind = {LOOM_ON_CPU, LOOM_ON_GPU},
				      .seed = t->seed,
				      .initial_tasks = TASKS,
				      .task = tree_tasks,
				      .tasks = LOOM__COUNT(tree_tasks)};
	want.bytes[LOOM_WORKLOAD] = sizeof(struct truth);
	want.bytes[LOOM_TERM] = sizeof(struct loom__refterm);
	want.table[LOOM_TERM] = &loom__refterm_dev;
	int code = (mixed ? loom__stand_try : loom__stand_open)(&r, t, &want, NULL);
	if (code)
		return code == LOOM__REFUSED ? 0 : code;
	loom__stand_text(&r, text, sizeof(text));
	loom__say_case(t, t->seed, "%s tasks for any device, CPUs and GPUs, on %s; %s", spawned ? "spawned" : "initial",
		       mixed ? "a CPU and a GPU" : "a CPU", text);
	truth = loom__rig_block(&r, LOOM_WORKLOAD);
	term = loom__rig_block(&r, LOOM_TERM);
	memset(truth, 0, sizeof(*truth));
	memset(term, 0, sizeof(*term));
	term->trial = (uint64_t)(uintptr_t)t;
	memcpy(truth->kind, (const uint64_t[]){LOOM_ON_CPU, LOOM_ON_GPU}, 2 * sizeof(uint64_t));
	for (uint32_t i = 0; i < TASKS; i++)
		r.initial[i] = (struct loom_task){.tag = PLACED,
						  .affinity = spawned ? LOOM_ON_ANY : (uint8_t)(i % 3),
						  .param = {i, spawned ? TASKS : 0}};
	LOOM__TRY(loom__stand_init(&r));
	int late = loom__rig_run(&r, run_body, 20 * LOOM__SECOND);
	LOOM__TRY(loom__faulted(t));
	LOOM__TRY(loom__stand_guards(&r));
	if (truth->misplaced)
		return loom__fault(t, "%llu tasks ran on a device that their affinity excludes",
				   (unsigned long long)truth->misplaced);
	if (late)
		return loom__fault(t, "no end: a task whose affinity no device has must end the run with an error");
	LOOM__TRY(loom__stand_failed(&r, LOOM_ENOTSUP));
	loom__rig_host_clear(&t->host);
	code = loom__stand_failure(&r, &err);
	code = code ? code : loom__rig_collect(&r, LOOM__RIG_REPORT(&t->host), &err);
	for (int kind = 0; kind < 3 && !code; kind++) {
		uint64_t due = spawned ? TASKS * TASKS / 3 + (kind ? 0 : TASKS) : TASKS / 3;
		if (truth->placed[kind] != due)
			return loom__fault(t, "%llu of %llu tasks with affinity %d ran, but the run has no error",
					   (unsigned long long)truth->placed[kind], (unsigned long long)due, kind);
	}
	loom__stand_close(&r);
	return 0;
}

int loom__test_sched_affinity(struct loom__trial *t)
{
	for (int i = 0; i < 4; i++)
		LOOM__TRY(place(t, i / 2, i % 2));
	return 0;
}

/* Stops the run after 30 ms; the workers must end soon after. */
static int stop(struct loom__trial *t, int never_done, uint32_t initials)
{
	struct loom__rig r;
	struct tree tree = {.devices = 2,
			    .workers = 4,
			    .lanes = 1,
			    .initials = initials,
			    .size = initials,
			    .seed = t->seed,
			    .samples = 1};
	LOOM__TRY(open_tree(&r, t, &tree, NULL));
	for (int n = 0; n < 3; n++) {
		plant(&r, &tree);
		struct loom__refterm *term = loom__rig_block(&r, LOOM_TERM);
		for (uint32_t i = 0; i < initials && !never_done; i++)
			r.initial[i].tag = 2;
		term->never = 1;
		LOOM__TRY(loom__stand_init(&r));
		int stopped = loom__rig_run(&r, run_body, LOOM__SECOND * 3 / 100);
		LOOM__TRY(loom__faulted(t));
		if (!stopped)
			return loom__fault(t, "its workers leave although done() never returned 1 and nothing "
					      "stopped them");
		LOOM__TRY(loom__stand_guards(&r));
	}
	loom__stand_close(&r);
	return 0;
}

int loom__test_sched_stop(struct loom__trial *t)
{
	return stop(t, 0, 4);
}

int loom__test_sched_idle_stop(struct loom__trial *t)
{
	LOOM__TRY(stop(t, 1, 0));
	return stop(t, 1, 50);
}

int loom__test_sched_rough(struct loom__trial *t)
{
	for (uint32_t i = 0; i < 30; i++)
		LOOM__TRY(GROW(.devices = 1 + i % 3, .workers = 3 + i % 14, .lanes = i % 7 == 6 ? 2 : 1,
			       .initials = i % 2 ? 1 : 40, .size = i % 7 == 6 ? 150 : 1200,
			       .shape = (enum loom__shape)(i % SHAPES), .seed = t->seed + i, .samples = 1));
	return 0;
}

static int fuzz(struct loom__trial *t, uint64_t seed, struct loom__chance *chance, struct loom__settings *s)
{
	uint32_t lanes = loom__one_in(chance, 8) ? 3 : 1;
	uint32_t size = 1 + (uint32_t)loom__draw_below(chance, lanes > 1 ? 200 : 5000);
	struct tree tree = {.devices = 1 + (uint32_t)loom__draw_below(chance, 4),
			    .lanes = lanes,
			    .size = size,
			    .shape = (enum loom__shape)loom__draw_below(chance, SHAPES),
			    .seed = seed,
			    .samples = 1};
	tree.workers = tree.devices + (uint32_t)loom__draw_below(chance, lanes > 1 ? 3 : 12);
	tree.initials = loom__one_in(chance, 2) ? 1 : 1 + (uint32_t)loom__draw_below(chance, size);
	return grow(t, &tree, s);
}

int loom__test_sched_fuzz(struct loom__trial *t)
{
	return loom__fuzz(t, fuzz, 0);
}
