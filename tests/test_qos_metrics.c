/* SPDX-License-Identifier: Apache-2.0 */
/* Tests metrics of the service path: the peak of CPU time over windows of 1 s, from more rounds than the path keeps
 * points, and the shares of idle states, from counters that the test writes. Tests which cores the interrupts of GPUs reach. */
#include "../plugins/qos/metrics.c"
#undef METRIC
#define QOS_CPU_FOLDER "cpus"
#include "../plugins/qos/cpuidle.c"
#include "../plugins/qos/cpu_time.c"
#include "../plugins/qos/event.c"
#include "../plugins/qos/interrupt.c"
#include "qos_rig.h"

/* Simulates `turns` rounds per second for three seconds. The path is busy for `busy` of each 1,000 ns in the middle
 * second, and for 100 of each 1,000 ns in the first and last. */
static double dearest(uint64_t turns, uint64_t busy)
{
	static struct service s;
	uint64_t now = 1, step = SECOND / turns;
	memset(&s, 0, sizeof(s));
	for (uint64_t i = 0; i < 3 * turns; i++) {
		uint64_t share = i / turns == 1 ? busy : 100;
		s.stage_ns[QOS_WORKER] += step * share / 1000;
		qos_cpu_point(&s, now += step);
	}
	return (double)s.series.peak_ns / SECOND;
}

TEST(dearest_second)
{
	static const uint64_t turns[] = {1000, 10000, QOS_POINTS, 20000, 100000, 1000000};
	for (size_t i = 0; i < COUNT(turns); i++) {
		double found = dearest(turns[i], 800);
		CU_ASSERT(found > 0.795 && found < 0.805);
	}
}

/* ---- idle states ---------------------------------------------------------------------------------- */

static void put(unsigned core, unsigned state, const char *what, const char *text)
{
	char path[80];
	snprintf(path, sizeof(path), "mkdir -p cpus/cpu%u/cpuidle/state%u", core, state);
	CU_ASSERT_EQUAL_FATAL(system(path), 0);
	snprintf(path, sizeof(path), "cpus/cpu%u/cpuidle/state%u/%s", core, state, what);
	FILE *f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fprintf(f, "%s\n", text);
	fclose(f);
}

static struct {
	char name[48];
	double value;
} seen[32];
static unsigned metrics;

static int note(const struct loom_host *host, struct loom_report *report, const char *name, const char *unit,
		 enum loom_better better, double value)
{
	(void)host, (void)report, (void)unit, (void)better;
	snprintf(seen[metrics].name, sizeof(seen[0].name), "%s", name);
	seen[metrics++].value = value;
	return 0;
}

static double value_of(const char *name)
{
	for (unsigned i = 0; i < metrics; i++)
		if (!strcmp(seen[i].name, name))
			return seen[i].value;
	return -1;
}

/* Two cores are observed for 2 s. Of these 4 core-seconds, 0.2 s are in POLL, 1 s in C1 and 2 s in C6. */
TEST(idle_states)
{
	static const char *const state[] = {"POLL", "C1 ACPI", "C6"};
	static const struct loom_host host = {.metric = note};
	static struct service s = {.host = &host, .vectors = 2, .core = {0, 1}};
	char folder[] = "/tmp/loom-idle-XXXXXX", clean[80];
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	CU_ASSERT_EQUAL_FATAL(chdir(folder), 0);
	for (unsigned core = 0; core < 2; core++)
		for (unsigned i = 0; i < 3; i++) {
			put(core, i, "name", state[i]);
			put(core, i, "time", "1000000");
			put(core, i, "usage", "5");
		}
	qos_idle_read(&s, &s.start_idle);
	CU_ASSERT_EQUAL(s.start_idle.states, 3);
	put(0, 0, "time", "1200000");
	put(1, 1, "time", "2000000");
	put(0, 2, "time", "1500000");
	put(1, 2, "time", "2500000");
	put(1, 2, "usage", "9");
	CU_ASSERT_EQUAL(qos_idle_report(&s, NULL, 2), 0);
	CU_ASSERT_DOUBLE_EQUAL(value_of("idle_share:POLL"), 0.05, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(value_of("idle_share:C1_ACPI"), 0.25, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(value_of("idle_share:C6"), 0.5, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(value_of("idle_share_deepest"), 0.5, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(value_of("idle_share"), 0.8, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(value_of("idle_entries_per_s"), 2, 1e-9);
	/* A counter or a name that cannot be read is an error, and no metric is missing in silence. */
	CU_ASSERT_EQUAL(unlink("cpus/cpu1/cpuidle/state1/time"), 0);
	CU_ASSERT_EQUAL(symlink("time", "cpus/cpu1/cpuidle/state1/time"), 0);
	CU_ASSERT_EQUAL(qos_idle_report(&s, NULL, 2), ELOOP);
	CU_ASSERT_EQUAL(unlink("cpus/cpu1/cpuidle/state1/time"), 0);
	put(1, 1, "time", "2000000");
	CU_ASSERT_EQUAL(unlink("cpus/cpu0/cpuidle/state2/name"), 0);
	CU_ASSERT_EQUAL(symlink("name", "cpus/cpu0/cpuidle/state2/name"), 0);
	CU_ASSERT_EQUAL(qos_idle_report(&s, NULL, 2), ELOOP);
	/* A core without counters gives no metric. */
	metrics = 0;
	s.vectors = 1;
	s.core[0] = 7;
	qos_idle_read(&s, &s.start_idle);
	CU_ASSERT_EQUAL(qos_idle_report(&s, NULL, 2), 0);
	CU_ASSERT_EQUAL(metrics, 0);
	CU_ASSERT_EQUAL(chdir("/"), 0);
	snprintf(clean, sizeof(clean), "rm -r %s", folder);
	CU_ASSERT_EQUAL(system(clean), 0);
}

static struct service gpu;

/* An interrupt that comes at once, and is armed again, eight times. */
static int comes(struct loom_interrupt *interrupt, uint64_t least, struct loom_error *err)
{
	static int times;
	(void)interrupt, (void)least, (void)err;
	qos_event_notify(&gpu.interrupt[0].armed);
	if (++times % 8 == 0)
		__atomic_store_n(&gpu.stop, 1, __ATOMIC_RELEASE);
	return 0;
}

static void must_ring(uint32_t notify, uint64_t route, uint32_t first, uint32_t second, uint32_t third)
{
	static struct qos_head head;
	static struct loom_interrupt interrupt = {.size = sizeof(interrupt), .wait = comes};
	const uint32_t want[] = {first, second, third};
	struct qos_thread t = {.s = &gpu};
	memset(&head, 0, sizeof(head));
	head.vectors = COUNT(want);
	head.route = route;
	gpu = (struct service){.head = &head, .path.notify = notify, .interrupt[0].interrupt = &interrupt};
	qos_event_notify(&gpu.interrupt[0].armed);
	qos_controller(&t);
	for (size_t v = 0; v < COUNT(want); v++)
		CU_ASSERT_EQUAL(head.doorbell[v].rings, want[v]);
}

/* Interrupts reach all cores that take them in turn, and with steering one core. A host that also polls has one poller. */
TEST(interrupts_in_turn)
{
	must_ring(LOOM_QOS_INTERRUPT, 7, 3, 3, 2);
	must_ring(LOOM_QOS_INTERRUPT, 4, 0, 0, 8);
	must_ring(LOOM_QOS_HYBRID, 6, 0, 8, 0);
}

TEST_MAIN("qos_metrics", 60)
