/* SPDX-License-Identifier: Apache-2.0 */
/* Tests when and where tasks run (joins, newest first, affinity), and that sleeping workers wake up for tasks. */
#include "tree.h"

static struct loom_error err;
static uint64_t log_text[8192];
static uint32_t logged;
#define LEVELS 9
static struct loom_join joins[1 << LEVELS] __attribute__((aligned(64)));

static void note(struct loom_ctx *c, uint64_t what)
{
	if (c->lane == 0)
		log_text[__atomic_fetch_add(&logged, 1, __ATOMIC_RELAXED) % COUNT(log_text)] = what;
}

static const char *term; /* the detector; NULL selects term_counter */

static struct harness *open_tasks(const char *sched, const char *opts, uint32_t workers, uint32_t lanes,
				  loom_task_fn *const *task, uint32_t n, const struct loom_task *first,
				  uint32_t second_kind)
{
	struct harness *h = harness_must(&(struct harness_params){.sched = sched,
								  .sched_opts = opts,
								  .term = term,
								  .task = task,
								  .tasks = n,
								  .initial = first,
								  .initials = 1,
								  .workers = workers,
								  .lanes = lanes,
								  .second_kind = second_kind,
								  .extra = joins,
								  .seed = 1});
	logged = 0;
	return h;
}

/* ---- joins -------------------------------------------------------------------------------- */

/* A tree of tasks of depth param[1]. Task `id` spawns two children. After both, joins[id] starts a SUM task, which
 * passes the sum of their values to the parent's join. A task of the last level has no children and the value 1. So the
 * root's sum is the number of leaves. */
enum { FORK, SUM, ROOT };

static struct loom_task fork_task(uint64_t id, uint64_t level)
{
	struct loom_task t = {.tag = FORK};
	t.param[0] = id;
	t.param[1] = level;
	return t;
}

static loom_ref join_ref(uint64_t id)
{
	return LOOM_REF(2, id * sizeof(struct loom_join));
}

static void leave(uint64_t id, uint64_t value)
{
	joins[id / 2].data[id % 2] = value;
}

static void fork_node(struct loom_ctx *c, const struct loom_task *t)
{
	uint64_t id = t->param[0], level = t->param[1];
	if (level == LEVELS) {
		if (c->lane == 0)
			leave(id, 1);
		return;
	}
	if (c->lane == 0) {
		joins[id] = (struct loom_join){.pending = 2};
		joins[id].next = (struct loom_task){.tag = id == 1 ? ROOT : SUM};
		joins[id].next.param[0] = id;
		if (id > 1)
			joins[id].next.join = join_ref(id / 2);
	}
	for (uint64_t i = 0; i < 2; i++) {
		struct loom_task child = fork_task(2 * id + i, level + 1);
		if (level + 1 == LEVELS)
			child.join = join_ref(id);
		if (LOOM_CALL(sched, spawn, c, &child))
			return;
	}
}

static void sum_node(struct loom_ctx *c, const struct loom_task *t)
{
	uint64_t id = t->param[0];
	if (c->lane == 0)
		leave(id, joins[id].data[0] + joins[id].data[1]);
}

static void root_node(struct loom_ctx *c, const struct loom_task *t)
{
	(void)t;
	note(c, joins[1].data[0] + joins[1].data[1]);
}

TEST(joins)
{
	static loom_task_fn *const fns[] = {fork_node, sum_node, root_node};
	static const struct {
		const char *sched, *opts;
		uint32_t workers, lanes;
	} setup[] = {
		{"sched_mgws", "", 1, 1},
		{"sched_mgws", "", 4, 1},
		{"sched_mgws", "local_queue=2 public_queue=2 in_place_depth=2", 4, 1},
		{"sched_mgws", "local_queue=2 public_queue=1 in_place_depth=0", 3, 1},
		{"sched_mgws", "local_queue=2 public_queue=4 transfer=id owners=2", 4, 1},
		{"sched_mgws", "local_queue=2 public_queue=4", 2, 3},
		{"sched_static", "", 2, 1},
		{"sched_static", "local_queue=2 in_place_depth=3", 2, 2},
		{"sched_static", "local_queue=2 in_place_depth=0", 1, 1},
		{"sched_counter", "", 3, 1},
		{"sched_counter", "pool=5 local_queue=2 in_place_depth=3", 2, 2},
		{"sched_plan", "", 3, 1},
		{"sched_plan", "pool=5 local_queue=2 in_place_depth=0", 2, 2},
	};
	struct loom_task first = fork_task(1, 0);
	for (size_t i = 0; i < COUNT(setup); i++) {
		struct harness *h = open_tasks(setup[i].sched, setup[i].opts, setup[i].workers,
					       setup[i].lanes, fns, 3, &first, 0);
		for (int again = 0; again < 20; again++) {
			logged = 0;
			CU_ASSERT_EQUAL(harness_run(h, &err), 0);
			CU_ASSERT_EQUAL(logged, 1);
			CU_ASSERT_EQUAL(log_text[0], 1u << LEVELS);
		}
		harness_close(h);
	}
}

/* ---- the local queue ---------------------------------------------------------------------- */

static void noting(struct loom_ctx *c, const struct loom_task *t)
{
	note(c, t->param[0]);
}

static void spawns_30(struct loom_ctx *c, const struct loom_task *t)
{
	(void)t;
	for (uint64_t i = 0; i < 30; i++) {
		struct loom_task child = {.tag = 1, .param = {i}};
		if (LOOM_CALL(sched, spawn, c, &child))
			return;
	}
}

/* The newest task runs first, and the published half of the tasks runs last. */
TEST(newest_first)
{
	static const struct loom_task first = {.tag = 0};
	static loom_task_fn *const fns[] = {spawns_30, noting};
	struct harness *h = open_tasks("sched_mgws", "", 1, 1, fns, 2, &first, 0);
	CU_ASSERT_EQUAL(harness_run(h, &err), 0);
	CU_ASSERT_EQUAL(logged, 30);
	CU_ASSERT_EQUAL(log_text[0], 29);
	harness_close(h);
}

/* ---- affinity ----------------------------------------------------------------------------- */

/* param[0] is the number of tasks that the task spawns for each kind of device. param[1] is the kind on which the task
 * must run, or 0 for any. */
static void picky(struct loom_ctx *c, const struct loom_task *t)
{
	uint32_t kind = c->device ? LOOM_ON_GPU : LOOM_ON_CPU; /* the kinds that open_tasks() sets */
	note(c, t->param[1] && t->param[1] != kind);
	for (uint64_t i = 0; i < t->param[0]; i++)
		for (uint8_t k = LOOM_ON_ANY; k <= LOOM_ON_GPU; k++) {
			struct loom_task child = {.tag = 0, .affinity = k};
			child.param[0] = t->param[0] / 2;
			child.param[1] = k;
			if (LOOM_CALL(sched, spawn, c, &child))
				return;
		}
}

static loom_task_fn *const picky_fns[] = {picky};

TEST(affinity)
{
	static const char *const opts[] = {"", "local_queue=2 public_queue=2",
					   "local_queue=2 public_queue=4 in_place_depth=0 spin=0",
					   "local_queue=4 public_queue=4 transfer=id owners=2",
					   "victim=local", "victim=none"};
	struct loom_task first = {.tag = 0};
	first.param[0] = 8; /* in all, 8 * 3 * (1 + 4 * 3 * (1 + 2 * 3 * (1 + 3))) + 1 tasks */
	for (size_t i = 0; i < 5 * COUNT(opts); i++) {
		first.affinity = (uint8_t)(i % 3);
		first.param[1] = first.affinity;
		struct harness *h = open_tasks("sched_mgws", opts[i % COUNT(opts)], 4, i % 2 ? 1 : 2,
					       picky_fns, 1, &first, LOOM_ON_GPU);
		CU_ASSERT_EQUAL(harness_run(h, &err), 0);
		CU_ASSERT_EQUAL(logged, 8 * 3 * (1 + 4 * 3 * (1 + 2 * 3 * (1 + 3))) + 1);
		for (uint32_t k = 0; k < COUNT(log_text); k++)
			CU_ASSERT_EQUAL(log_text[k], 0);
		harness_close(h);
	}
}

static void refuse_affinity(const char *sched, uint32_t second_kind, const char *says)
{
	struct loom_task first = {.tag = 0, .affinity = LOOM_ON_GPU};
	struct harness *h = open_tasks(sched, "", 2, 1, picky_fns, 1, &first, second_kind);
	int rc = harness_run(h, &err);
	REFUSED(rc, LOOM_ENOTSUP, err, says);
	harness_close(h);
}

TEST(affinity_refused)
{
	refuse_affinity("sched_mgws", 0, "does not have");
	refuse_affinity("sched_static", LOOM_ON_GPU, "tasks do not move");
	refuse_affinity("sched_counter", 0, "tasks do not move");
	refuse_affinity("sched_plan", 0, "tasks do not move");
}

/* ---- sleep ------------------------------------------------------------------------------- */

static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The task sleeps in place of a long computation, so that only other workers use processor time. */
static void long_task(struct loom_ctx *c, const struct loom_task *t)
{
	struct timespec pause = {.tv_nsec = 20000000};
	(void)c;
	for (uint64_t i = 0; i < t->param[0]; i++)
		nanosleep(&pause, NULL);
	note(c, 1);
	for (uint64_t i = 0; i < t->param[1]; i++) {
		struct loom_task child = {.tag = 0};
		child.param[0] = 3;
		if (LOOM_CALL(sched, spawn, c, &child))
			return;
	}
}

static loom_task_fn *const long_fns[] = {long_task};

/* Seven of eight workers have no tasks for 400 ms. Together they may use at most a seventh of their time, 0.4 s. They
 * need far less, but the machine may be busy. */
TEST(sleepers_rest)
{
	static const struct {
		const char *sched, *term;
	} pairs[] = {{"sched_mgws", "term_counter"},
		   {"sched_mgws", "term_hcounter"},
		   {"sched_mgws", "term_tree"},
		   {"sched_static", "term_counter"},
		   {"sched_counter", "term_counter"},
		   {"sched_plan", "term_hcounter"}};
	struct loom_task first = {.tag = 0};
	first.param[0] = 20;
	for (size_t i = 0; i < COUNT(pairs); i++) {
		term = pairs[i].term;
		struct harness *h = open_tasks(pairs[i].sched, "", 8, 1, long_fns, 1, &first, 0);
		double before = cpu_seconds();
		CU_ASSERT_EQUAL(harness_run(h, &err), 0);
		CU_ASSERT_TRUE(cpu_seconds() - before < 0.4);
		harness_close(h);
	}
	term = NULL;
}

/* Sleeping workers wake up and take new tasks. */
TEST(sleepers_wake)
{
	struct loom_task first = {.tag = 0};
	first.param[0] = 5;
	first.param[1] = 16;
	struct harness *h = open_tasks("sched_mgws", "spin=1us", 4, 1, long_fns, 1, &first, 0);
	CU_ASSERT_EQUAL(harness_run(h, &err), 0);
	CU_ASSERT_EQUAL(logged, 17);
	uint32_t took_part = 0;
	for (uint32_t w = 0; w < 4; w++)
		took_part += h->rig.counters[w].executed > 0;
	CU_ASSERT_EQUAL(took_part, 4); /* the 16 tasks take 60 ms each, so every worker gets some */
	harness_close(h);
}

/* A long task spawns so few tasks that they do not fill its worker's queue. A sleeping worker must still get one. */
static uint32_t taken;

static void maker(struct loom_ctx *c, const struct loom_task *t)
{
	struct timespec pause = {.tv_nsec = 1000000};
	if (t->tag) {
		__atomic_store_n(&taken, 1, __ATOMIC_RELEASE);
		return;
	}
	for (int i = 0; i < 16; i++) {
		struct loom_task child = {.tag = 1};
		if (LOOM_CALL(sched, spawn, c, &child))
			return;
		for (int k = 0; k < 300 && !__atomic_load_n(&taken, __ATOMIC_ACQUIRE); k++)
			nanosleep(&pause, NULL);
	}
	note(c, __atomic_load_n(&taken, __ATOMIC_ACQUIRE));
}

TEST(sleepers_fed)
{
	static loom_task_fn *const fns[] = {maker, maker};
	static const char *const opts[] = {"spin=0", "spin=0 owners=2 transfer=id", "spin=0 public_queue=1"};
	struct loom_task first = {.tag = 0};
	for (size_t i = 0; i < COUNT(opts); i++) {
		struct harness *h = open_tasks("sched_mgws", opts[i], 4, 1, fns, 2, &first, 0);
		taken = 0;
		CU_ASSERT_EQUAL(harness_run(h, &err), 0);
		CU_ASSERT_EQUAL(logged, 1);
		CU_ASSERT_EQUAL(log_text[0], 1);
		harness_close(h);
	}
}

TEST_MAIN("sched_order", 120)
