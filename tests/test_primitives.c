/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the times of workload_primitives: the chains of all workers begin together, and the throughput is that of all
 * chains over the time from the first begin to the last end. */
#include "fake_host.h"
#include "rig/rig.h"

#include "../plugins/workloads/barriers/workload_primitives.dev.h"

enum { WORKERS = 3, PARTS = 20, REPEATS = 4096 };

static struct loom_error err;
static struct loom__rig rig;

static struct primitives_time *times(uint32_t worker)
{
	struct primitives_record *own = rig.part[LOOM_WORKLOAD].view.worker[worker];
	return (struct primitives_time *)(own + 1);
}

static void run(const char *opts)
{
	const struct loom_plugin *p = fake_load("workload_primitives");
	const char *what = "begin";
	loom__rig_shape(&rig, &(struct loom__rig_want){.devices = 1, .workers = WORKERS, .lanes = 1, .one_view = 1});
	fake_must(!loom__rig_add(&rig, p, &fake_host, fake_settings(p, opts), &err), "create", &err);
	fake_must(!loom__rig_need(&rig, &err) && !loom__rig_furnish(&rig), "memory", &err);
	fake_must(!loom__rig_begin(&rig, &what, &err) && !loom__rig_init(&rig, &err), what, &err);
	CU_ASSERT_EQUAL(loom__rig_run(&rig, workload_primitives_kernel, 60000000000ull), 0);
}

static double throughput(void)
{
	const struct loom__rig_part *part = &rig.part[LOOM_WORKLOAD];
	const struct loom_workload_ops *ops = part->plugin->ops;
	loom__rig_host_clear(&fake);
	CU_ASSERT_EQUAL(ops->verify(part->self, &rig.layout, &part->view, LOOM__RIG_REPORT(&fake), &err), 0);
	return loom__rig_host_metric(&fake, "operations_per_us");
}

/* With its own start, a worker would begin its next chain while a slower one is still in the last. */
TEST(start)
{
	static const char *const operation[] = {"add", "worker", "grid"};
	for (size_t i = 0; i < COUNT(operation); i++) {
		char opts[120];
		snprintf(opts, sizeof(opts), "operation=%s repeats=%d parts=%d checked=5", operation[i], REPEATS, PARTS);
		run(opts);
		for (uint32_t w = 0; w < WORKERS; w++)
			for (uint32_t v = 0; v < WORKERS; v++)
				for (uint32_t p = 1; p < PARTS; p++)
					CU_ASSERT_TRUE(times(w)[p].begin_ns >= times(v)[p - 1].end_ns);
		CU_ASSERT_TRUE(throughput() > 0);
		loom__rig_close(&rig);
	}
}

/* Chains that follow each other add up to the throughput of one. */
TEST(together)
{
	run("operation=worker repeats=4096 parts=20 checked=5");
	for (uint32_t w = 0; w < WORKERS; w++)
		for (uint32_t p = 0; p < PARTS; p++)
			times(w)[p] = (struct primitives_time){.begin_ns = 1000 * w, .end_ns = 1000 * (w + 1)};
	CU_ASSERT_DOUBLE_EQUAL(throughput(), REPEATS, 1e-9);
	for (uint32_t w = 0; w < WORKERS; w++)
		times(w)[0].begin_ns = 0, times(w)[0].end_ns = 1000; /* one of the parts does not change the median */
	CU_ASSERT_DOUBLE_EQUAL(throughput(), REPEATS, 1e-9);
	loom__rig_close(&rig);
}

TEST_MAIN("primitives", 30)
