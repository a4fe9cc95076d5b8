/* SPDX-License-Identifier: Apache-2.0 */
/* One worker runs a long task while the other worker is idle. The program measures the share of a core that the idle
 * worker takes, and the delay with which the idle worker starts a task that the long task spawns.
 *   BUILD/bench/tasks_idle [TURNS]
 * Prints `sample FIGURE VALUE` for each turn, for bench/figures.py. The program uses the plug-ins of BUILD. */
#include "../tests/harness.h"
#include "times.h"

#define ROUND_NS 5000000u
#define ROUNDS 40u /* tasks that the long task spawns in a turn */

static uint64_t turns, made_at, waits[ROUNDS];
static uint32_t taken;

static void compute(uint64_t until)
{
	while (now_ns() < until)
		;
}

static void begun(struct loom_ctx *c, const struct loom_task *t)
{
	(void)c;
	waits[t->param[0]] = now_ns() - __atomic_load_n(&made_at, __ATOMIC_ACQUIRE);
	__atomic_store_n(&taken, (uint32_t)t->param[0] + 1, __ATOMIC_RELEASE); /* pairs with the acquire in turn() */
}

static void turn(struct loom_ctx *c)
{
	/* In the first phase, the task spawns nothing, and the other worker is idle. */
	uint64_t wall = now_ns(), all = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t own = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	compute(wall + 60 * (uint64_t)ROUND_NS);
	all = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - all;
	own = clock_ns(CLOCK_THREAD_CPUTIME_ID) - own;
	printf("sample idle_cpu_share %.5f\n", ((double)all - (double)own) / (double)(now_ns() - wall));
	/* In the second phase, the task spawns a child every ROUND_NS. */
	__atomic_store_n(&taken, 0, __ATOMIC_RELAXED); /* the other worker has no task, so nothing else writes it */
	for (uint64_t i = 0; i < ROUNDS; i++) {
		struct loom_task child = {.tag = 1};
		child.param[0] = i;
		compute(now_ns() + ROUND_NS);
		__atomic_store_n(&made_at, now_ns(), __ATOMIC_RELEASE);
		LOOM_CALL(sched, spawn, c, &child);
		while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) <= i)
			if (now_ns() - made_at > 2000000000u)
				exit(3);
	}
	sort_ns(waits, ROUNDS);
	printf("sample new_task_us %.2f\n", (double)waits[ROUNDS / 2] / 1e3);
}

static void long_task(struct loom_ctx *c, const struct loom_task *t)
{
	(void)t;
	for (uint64_t i = 0; i < turns; i++)
		turn(c);
}

int main(int argc, char **argv)
{
	static loom_task_fn *const fns[] = {long_task, begun};
	static const struct loom_task first = {.tag = 0};
	struct loom_error err;
	turns = argc > 1 ? strtoull(argv[1], NULL, 10) : 12;
	struct harness *h = harness_open(&(struct harness_params){.sched_opts = "wait=sleep",
								  .task = fns,
								  .tasks = 2,
								  .initial = &first,
								  .initials = 1,
								  .workers = 2,
								  .seed = 1},
					 &err);
	fake_must(h && !harness_run(h, &err), "run", &err);
	harness_close(h);
	return 0;
}
