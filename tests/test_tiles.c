/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the task functions of `ragged` and `experts` whose warps multiply matrices. Lanes are threads, and tile_rig.h
 * has the instructions. The workloads check the results. */
#include "harness.h"
#include "tile_rig.h"

#define RAGGED_PRODUCTS 1
#define EXPERTS_PRODUCTS 1
#include "../plugins/workloads/tasks/workload_experts.dev.h"
#include "../plugins/workloads/tasks/workload_ragged.dev.h"

#define WORKERS 2u
#define PRIVATE (1u << 20)

static struct loom_error err;
static char private[WORKERS][PRIVATE] __attribute__((aligned(64)));

/* Private memory of the CPU's task functions has other parts, so tasks get memory of this test. */
static void enter(struct loom_ctx *c)
{
	tile_rig_enter(c);
	c->local[LOOM_WORKLOAD] = private[c->worker];
}

static void ragged_chunk(struct loom_ctx *c, const struct loom_task *t)
{
	const struct ragged *r = ragged_of(c);
	CU_ASSERT_FATAL(ragged_scratch_of_warps(c->lanes, r->dim, r->group).bytes <= PRIVATE);
	enter(c);
	workload_ragged_chunk(c, t);
}

static void experts_tile(struct loom_ctx *c, const struct loom_task *t)
{
	enter(c);
	workload_experts_tile(c, t);
}

/* Runs a workload with this function for the tasks with tag 0. */
static void run(const char *workload, const char *opts, loom_task_fn *with, uint32_t workers, uint32_t lanes)
{
	struct harness *h = harness_must(&(struct harness_params){.sched = "sched_counter",
								  .workload = workload,
								  .workload_opts = opts,
								  .workers = workers,
								  .lanes = lanes,
								  .products = 1,
								  .seed = 3});
	h->task[0] = with;
	for (int sample = 0; sample < 2; sample++)
		if (harness_run(h, &err)) {
			fprintf(stderr, "%s %s, %u lanes: %s\n", workload, opts, lanes, err.text);
			CU_FAIL("wrong");
		}
	harness_close(h);
}

TEST(elements)
{
	for (uint32_t bfloat = 0; bfloat < 2; bfloat++)
		for (uint32_t bits = 0; bits < 0x8000; bits++) {
			uint32_t most = bfloat ? 0x7f80 : 0x7c00;
			if (bits >= most)
				continue;
			float value = tile_number(bits, bfloat);
			CU_ASSERT_EQUAL(tile_rig_element(bits, 0, bfloat), value);
			CU_ASSERT_EQUAL(tile_pair(value, -value, bfloat), bits | (bits | 0x8000) << 16);
		}
}

TEST(ragged)
{
	static const struct {
		const char *opts;
		uint32_t workers, lanes;
	} jobs[] = {
	    {"sequences=1 length=1", 1, 32},
	    {"sequences=2 law=equal length=37 dim=64", 1, 64},
	    {"sequences=3 law=uniform length=60 real=bfloat16 page=32 dim=40", 2, 64},
	    {"sequences=2 law=two length=90 chunk=64 heads=32 kv_heads=2 dim=8", 1, 128},
	    {"sequences=1 law=equal length=300 chunk=8388608 heads=4 kv_heads=1 dim=128", 1, 192},
	    {"sequences=1 law=equal length=40 heads=12 kv_heads=1 dim=256 redraw=sample", 1, 64},
	    {"sequences=1 law=equal length=200 heads=8 kv_heads=1 dim=256", 1, 192}, /* rings for three of the six warps */
	};
	tile_rig_start();
	for (size_t i = 0; i < COUNT(jobs); i++)
		run("workload_ragged", jobs[i].opts, ragged_chunk, jobs[i].workers, jobs[i].lanes);
}

TEST(experts)
{
	static const struct {
		const char *opts;
		uint32_t workers, lanes;
	} jobs[] = {
	    {"tokens=1 top=1 experts=1 dim=8 hidden=8 rows=16", 1, 32},
	    {"tokens=9 top=2 experts=3 dim=72 hidden=136 rows=32", 2, 64},
	    {"tokens=33 top=1 experts=2 block=7 dim=40 hidden=72 rows=64 real=float16", 1, 128},
	    {"tokens=40 top=1 experts=1 block=32 dim=64 hidden=136 rows=131072 real=float16", 1, 192},
	    {"tokens=12 top=1 experts=1 dim=512 hidden=256 rows=128 redraw=sample", 1, 128},
	};
	tile_rig_start();
	for (size_t i = 0; i < COUNT(jobs); i++)
		run("workload_experts", jobs[i].opts, experts_tile, jobs[i].workers, jobs[i].lanes);
}

TEST_MAIN("tiles", 120)
