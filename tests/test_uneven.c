/* SPDX-License-Identifier: Apache-2.0 */
/* Tests uneven work: the tables of sched_plan, files of costs, distributions of lengths (ragged), skews of routing
 * (experts), and both workloads under every scheduler. Their checks must reject wrong results. */
#include <math.h>
#include <unistd.h>

#include "harness.h"
#include "lib/random.h"

#include "../plugins/sched_plan/table.c"
#include "../plugins/sched_common/costs.c"
#include "../plugins/workloads/tasks/experts_routing.c"
#include "../plugins/workloads/tasks/half.h"
#include "../plugins/workloads/tasks/ragged_lengths.c"
#include "../plugins/workloads/tasks/workload_experts.dev.h"
#include "../plugins/workloads/tasks/workload_makespan.dev.h"
#include "../plugins/workloads/tasks/workload_ragged.dev.h"

static struct loom_error err;
static const char *const scheds[] = {"sched_static", "sched_counter", "sched_host", "sched_mgws", "sched_plan"};

/* ---- tables ----------------------------------------------------------------------------------- */

/* Checks that the table has each task once. Returns the total cost of the most expensive list. */
static uint64_t check_table(const struct plan_table *t, const uint64_t *cost)
{
	uint8_t *seen = calloc(t->tasks + 1, 1);
	uint64_t longest = 0;
	CU_ASSERT_EQUAL(t->first[0], 0);
	CU_ASSERT_EQUAL(t->first[t->workers], t->tasks);
	for (uint32_t w = 0; w < t->workers; w++) {
		uint64_t sum = 0;
		CU_ASSERT_FATAL(t->first[w] <= t->first[w + 1]);
		for (uint64_t i = t->first[w]; i < t->first[w + 1]; i++) {
			CU_ASSERT_FATAL(t->order[i] < t->tasks);
			CU_ASSERT_FALSE(seen[t->order[i]]++);
			sum += cost ? cost[t->order[i]] : 1;
		}
		longest = sum > longest ? sum : longest;
	}
	free(seen);
	return longest;
}

TEST(tables)
{
	static uint64_t cost[20000];
	uint64_t seed = 5;
	for (uint32_t workers = 1; workers <= 40; workers += 13)
		for (uint64_t tasks = 0; tasks <= 20000; tasks = tasks * 3 + 1) {
			struct plan_table t;
			uint64_t sum = 0, most = 0;
			for (uint64_t i = 0; i < tasks; i++) {
				cost[i] = 1 + (uint64_t)(1000.0 / (double)(1 + loom__random(&seed) % 1000));
				sum += cost[i];
				most = cost[i] > most ? cost[i] : most;
			}
			CU_ASSERT_EQUAL_FATAL(plan_table_make(&t, tasks, cost, workers), 0);
			uint64_t longest = check_table(&t, cost), least = (sum + workers - 1) / workers;
			least = least > most ? least : most;
			CU_ASSERT_EQUAL(longest, t.longest);
			/* Few tasks are distributed by LPT, whose longest list is at most 4/3 of the optimum. Many
			 * tasks are split into contiguous shares, which exceed an equal share by at most one task. */
			CU_ASSERT_TRUE(tasks / PLAN_FINE >= workers ? longest <= least + most : 3 * longest <= 4 * least + 3);
			plan_table_free(&t);
			CU_ASSERT_EQUAL_FATAL(plan_table_make(&t, tasks, NULL, workers), 0);
			CU_ASSERT_EQUAL(check_table(&t, NULL), (tasks + workers - 1) / workers);
			for (uint64_t i = 0; i < tasks; i++)
				CU_ASSERT_EQUAL(t.order[i], i);
			plan_table_free(&t);
		}
	/* The expected table is computed by hand, for costs of 7, 6, 5, 4 and 3 on two workers. */
	struct plan_table t;
	static const uint64_t five[] = {3, 7, 4, 6, 5};
	static const uint32_t order[] = {1, 2, 0, 3, 4};
	CU_ASSERT_EQUAL_FATAL(plan_table_make(&t, 5, five, 2), 0);
	CU_ASSERT_EQUAL(t.longest, 14);
	CU_ASSERT_EQUAL(t.first[1], 3);
	CU_ASSERT_EQUAL(memcmp(t.order, order, sizeof(order)), 0);
	plan_table_free(&t);
}

/* ---- files of costs -------------------------------------------------------------------------- */

static int parse(const char *text, struct costs *c)
{
	return costs_parse(&fake_host, "trace.json", text, strlen(text), c, &err);
}

TEST(traces)
{
	static const char *const wrong[][2] = {
	    {"{\"format\":\n\n 1", "trace.json:3: not JSON"},
	    {"[]", "trace.json: not a trace of costs"},
	    {"{\"format\": \"gpuloom-costs\", \"tasks\": []}", "not a trace of costs"},
	    {"{\"format\": \"gpuloom-costs\", \"tasks\": [{\"id\": 1, \"cost\": 1}]}", "task 0 of the list: \"id\""},
	    {"{\"format\": \"gpuloom-costs\", \"tasks\": [{\"id\": 0, \"cost\": 1}, {\"id\": 0, \"cost\": 1}]}", "no other task has"},
	    {"{\"format\": \"gpuloom-costs\", \"tasks\": [{\"id\": 0, \"cost\": -1}]}", "task 0: \"cost\""},
	    {"{\"format\": \"gpuloom-costs\", \"tasks\": [{\"id\": 0, \"cost\": 1, \"after\": 3}]}", "list of ids"},
	    {"{\"format\": \"gpuloom-costs\", \"tasks\": [{\"id\": 0, \"cost\": 1, \"after\": [0]}]}", "or itself"},
	    {"{\"format\": \"gpuloom-costs\", \"tasks\": [{\"id\": 0, \"cost\": 1, \"after\": [1]}, {\"id\": 1, \"cost\": 1, "
	     "\"after\": [0]}]}",
	     "in a circle"}};
	struct costs c;
	for (size_t i = 0; i < COUNT(wrong); i++)
		REFUSED(parse(wrong[i][0], &c), LOOM_EINVAL, err, wrong[i][1]);
	CU_ASSERT_EQUAL_FATAL(parse("{\"format\": \"gpuloom-costs\", \"tasks\": [{\"id\": 2, \"cost\": 5, \"after\": [0, 1]}, "
				    "{\"id\": 0, \"cost\": 10}, {\"id\": 1, \"cost\": 7, \"name\": \"x\"}, "
				    "{\"id\": 3, \"cost\": 1, \"after\": [2]}]}",
				    &c),
			      0);
	CU_ASSERT_TRUE(c.tasks == 4 && c.cost[0] == 10 && c.cost[2] == 5);
	CU_ASSERT_TRUE(c.first_after[2] == 0 && c.first_after[3] == 2 && c.first_after[4] == 3 && c.after[1] == 1);
	CU_ASSERT_EQUAL(costs_critical_path(&c), 16);
	costs_free(&c);
	/* costs_read() returns the costs that costs_write() has written. */
	static const uint64_t cost[] = {3, 100000000000ull, 0};
	char path[] = "/tmp/loom-costs-XXXXXX";
	int fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	CU_ASSERT_EQUAL(costs_write(&fake_host, path, cost, 3, &err), 0);
	CU_ASSERT_EQUAL_FATAL(costs_read(&fake_host, path, &c, &err), 0);
	CU_ASSERT_TRUE(c.tasks == 3 && !memcmp(c.cost, cost, sizeof(cost)));
	costs_free(&c);
	unlink(path);
	REFUSED(costs_write(&fake_host, "/nonesuch/x", cost, 3, &err), LOOM_EIO, err, "/nonesuch/x");
}

/* ---- distributions of lengths, skews of routing, and 16-bit numbers
 * ------------------------------------------------------------------------ */

static uint64_t sum_of(const uint32_t *n, uint32_t count)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < count; i++)
		sum += n[i];
	return sum;
}

TEST(laws)
{
	enum { N = 400 };
	uint32_t a[N], b[N], longest = 0, few = 0;
	for (uint32_t law = RAGGED_EQUAL; law < RAGGED_TRACE; law++) {
		ragged_draw(law, 1000, 1, 3, N, a);
		ragged_draw(law, 1000, 1, 3, N, b);
		CU_ASSERT_EQUAL(memcmp(a, b, sizeof(a)), 0);
		ragged_draw(law, 1000, 1, 4, N, b);
		CU_ASSERT_TRUE(law == RAGGED_EQUAL || memcmp(a, b, sizeof(a)));
		double mean = (double)sum_of(a, N) / N;
		CU_ASSERT_TRUE(mean > 900 && mean < 1100);
		for (uint32_t i = 0; i < N; i++)
			CU_ASSERT_TRUE(a[i] >= 1 && a[i] <= RAGGED_LONGEST);
	}
	ragged_draw(RAGGED_ZIPF, 1000, 1, 3, N, a);
	for (uint32_t i = 0; i < N; i++)
		longest = a[i] > longest ? a[i] : longest;
	CU_ASSERT_TRUE(longest > 60000 && longest < 62000); /* the expected value is 400,000 / the sum of 1 / i */
	ragged_draw(RAGGED_TWO, 1000, 1, 3, N, a);
	for (uint32_t i = 0; i < N; i++) {
		CU_ASSERT_TRUE(a[i] == 4500 || a[i] == 500);
		few += a[i] == 4500;
	}
	CU_ASSERT_EQUAL(few, N / 8);
}

TEST(lengths)
{
	static const char *const wrong[][2] = {{"1\nx\n", ":2: expected a length"}, {"1 2\n", ":1: expected"}, {"0", ":1: expected"},
					       {"4194305", ":1: expected"},	   {"", "has no lengths"},   {"# 5\n", "has no lengths"}};
	uint32_t *length, n;
	for (size_t i = 0; i < COUNT(wrong); i++)
		REFUSED(ragged_parse(&fake_host, "lengths", wrong[i][0], &length, &n, &err), LOOM_EINVAL, err, wrong[i][1]);
	CU_ASSERT_EQUAL_FATAL(ragged_parse(&fake_host, "lengths", "\n 7 # seven\r\n\n#\n4194304", &length, &n, &err), 0);
	CU_ASSERT_TRUE(n == 2 && length[0] == 7 && length[1] == 4194304);
	free(length);
}

/* Counts in of[e] how often expert e was chosen. */
static void count(const uint32_t *choice, uint32_t n, uint32_t experts, uint32_t *of)
{
	memset(of, 0, experts * sizeof(*of));
	for (uint32_t i = 0; i < n; i++) {
		CU_ASSERT_FATAL(choice[i] < experts);
		of[choice[i]]++;
	}
}

TEST(skews)
{
	enum { E = 16, T = 512, TOP = 2 };
	static uint32_t a[T * TOP], b[T * TOP], of[E], other[E];
	for (uint32_t skew = EXPERTS_EQUAL; skew <= EXPERTS_DRIFT; skew++) {
		experts_route(skew, 1, 3, E, T, TOP, a);
		experts_route(skew, 1, 3, E, T, TOP, b);
		CU_ASSERT_EQUAL(memcmp(a, b, sizeof(a)), 0);
		for (uint32_t t = 0; t < T; t++)
			CU_ASSERT_NOT_EQUAL(a[2 * t], a[2 * t + 1]);
		count(a, T * TOP, E, of);
		CU_ASSERT_EQUAL(sum_of(of, E), T * TOP);
		experts_route(skew, 1, 4, E, T, TOP, b);
		CU_ASSERT_TRUE((memcmp(a, b, sizeof(a)) != 0) == (skew == EXPERTS_DRIFT));
		count(b, T * TOP, E, other);
		uint32_t hot = of[0] + of[1];
		switch (skew) {
		case EXPERTS_EQUAL:
			for (uint32_t e = 0; e < E; e++)
				CU_ASSERT_EQUAL(of[e], T * TOP / E);
			break;
		case EXPERTS_UNIFORM:
			CU_ASSERT_TRUE(of[0] > 30 && of[0] < 100);
			break;
		case EXPERTS_SQRT:
		case EXPERTS_ZIPF:
			CU_ASSERT_TRUE(of[0] > of[E / 2] && of[0] > of[E - 1]);
			break;
		case EXPERTS_HOT_EIGHTH: /* two of the sixteen experts are hot */
			CU_ASSERT_TRUE(hot > 450 && hot < 650);
			break;
		case EXPERTS_HOT_ONE:
			CU_ASSERT_EQUAL(of[0], T);
			break;
		case EXPERTS_HOT_TOP:
			CU_ASSERT_TRUE(of[0] == T && of[1] == T);
			break;
		default: /* drift: the hot experts of the second call are shifted by one */
			CU_ASSERT_TRUE(of[3] > of[2] && other[4] > other[3]);
		}
	}
	experts_route(EXPERTS_HOT_TOP, 1, 0, 4, 10, 4, a); /* a token chooses 4 of 4 experts, so it gets all */
	for (uint32_t k = 0; k < 4; k++)
		CU_ASSERT_EQUAL(a[k], k);
	experts_route(EXPERTS_ZIPF, 1, 0, 4, 10, 4, a);
	count(a, 40, 4, of);
	CU_ASSERT_TRUE(of[0] == 10 && of[3] == 10);
}

/* Compares the conversion of each 16-bit value with the definition of its type, and tests powers of 2. */
TEST(numbers)
{
	for (uint32_t bits = 0; bits < 65536; bits++) {
		int negative = bits >> 15 != 0;
		int e = bits >> 10 & 31, m = bits & 1023;
		double half = e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
		int f = bits >> 7 & 255, n = bits & 127;
		double bfloat = f ? ldexp(128 + n, f - 134) : ldexp(n, -133);
		if (e < 31)
			CU_ASSERT_EQUAL(tile_half(bits), (float)(negative ? -half : half));
		if (f < 255)
			CU_ASSERT_EQUAL(tile_bfloat(bits), (float)(negative ? -bfloat : bfloat));
	}
	for (double x = 0; x > -126; x -= 0.00731)
		CU_ASSERT_TRUE(fabs(tile_exp2((float)x) / exp2((float)x) - 1) < 0x1p-21);
	CU_ASSERT_TRUE(tile_exp2(-1e30f) > 0 && tile_exp2(-1e30f) < 1e-37);
	for (uint32_t b = 0; b < 2; b++)
		for (uint64_t i = 0; i < 1000; i++) {
			double v = fabs(half_value(half_random(1, i, b), b));
			CU_ASSERT_TRUE(v >= 1.0 / 16 && v < 1);
		}
}

/* ---- workloads under every scheduler ---------------------------------------------------------------- */

static void everywhere(const char *workload, const char *opts)
{
	static const uint32_t shapes[][2] = {{1, 1}, {3, 1}, {2, 4}};
	for (size_t s = 0; s < COUNT(scheds); s++)
		for (size_t i = 0; i < COUNT(shapes); i++) {
			struct harness *h = harness_must(&(struct harness_params){.sched = scheds[s],
										  .workload = workload,
										  .workload_opts = opts,
										  .workers = shapes[i][0],
										  .lanes = shapes[i][1],
										  .seed = 1 + i});
			for (int sample = 0; sample < 3; sample++)
				if (harness_run(h, &err)) {
					fprintf(stderr, "%s %s, %s: %s\n", workload, opts, scheds[s], err.text);
					CU_FAIL("wrong");
				}
			harness_close(h);
		}
}

TEST(ragged)
{
	static const char *const opts[] = {
	    "law=equal length=100",
	    "law=uniform length=60 real=bfloat16 page=32 dim=40",
	    "law=zipf length=200 chunk=16 heads=16 kv_heads=1 dim=8",
	    "law=two length=50 chunk=8388608 heads=4 kv_heads=4 tile=8",
	    "law=uniform length=40 known=device chunk=32",
	    "sequences=1 length=1",
	    "sequences=3 law=equal length=700 chunk=256 page=256 tile=256 dim=128",
	};
	for (size_t i = 0; i < COUNT(opts); i++)
		everywhere("workload_ragged", opts[i]);
}

TEST(experts)
{
#define NAME(name, text, what) text,
	static const char *const skews[] = {EXPERTS_SKEWS(NAME)};
	for (size_t i = 0; i < COUNT(skews); i++) {
		char opts[100];
		snprintf(opts, sizeof(opts), "skew=%s tokens=20 dim=32 hidden=48 rows=16", skews[i]);
		everywhere("workload_experts", opts);
	}
	everywhere("workload_experts", "known=device real=float16 tokens=33 top=3 experts=5 block=7 rows=32 dim=40 hidden=72");
	everywhere("workload_experts", "tokens=1 top=1 experts=1 dim=8 hidden=8 rows=131072");
}

/* Runs the workloads on two non-coherent devices. */
TEST(noncoherent)
{
	static const char *const jobs[][2] = {{"workload_ragged", "length=300 chunk=32"},
					      {"workload_ragged", "length=100 chunk=16 known=device"},
					      {"workload_experts", "tokens=40 dim=32 hidden=64 rows=8 block=4"}};
	static const char *const apart[] = {"sched_mgws", "sched_plan"};
	for (size_t i = 0; i < COUNT(jobs) * COUNT(apart); i++) {
		struct harness *h = harness_must(&(struct harness_params){.sched = apart[i % 2],
									  .term = "term_hcounter",
									  .workload = jobs[i / 2][0],
									  .workload_opts = jobs[i / 2][1],
									  .workers = 4,
									  .noncoherent = 1,
									  .seed = 2});
		for (int sample = 0; sample < 3; sample++) {
			int rc = harness_run(h, &err);
			if (rc)
				printf("%s %s: %s\n", apart[i % 2], jobs[i / 2][0], err.text);
			CU_ASSERT_EQUAL(rc, 0);
		}
		harness_close(h);
	}
}

static struct harness *right(const char *workload, const char *opts)
{
	struct harness *h = harness_must(
	    &(struct harness_params){.workload = workload, .workload_opts = opts, .workers = 2, .seed = 1});
	CU_ASSERT_EQUAL(harness_run(h, &err), 0);
	return h;
}

static void must_be_wrong(struct harness *h, const char *says)
{
	REFUSED(harness_verify(h, &err), LOOM_EWRONG, err, says);
}

TEST(wrong_results)
{
	struct harness *h = right("workload_ragged", "length=100 heads=8 dim=64");
	struct ragged *r = h->rig.part[LOOM_WORKLOAD].view.global;
	float *out = RAGGED_AT(r, float, out) + (3 * 8 + 5) * 64 + 17, was = *out;
	*out = was + 0.001f;
	must_be_wrong(h, "sequence 3&head 5, number 17");
	*out = NAN;
	must_be_wrong(h, "sequence 3");
	*out = was;
	CU_ASSERT_EQUAL(harness_verify(h, &err), 0);
	r->chunk++;
	must_be_wrong(h, "overwritten");
	harness_close(h);
	h = right("workload_experts", "tokens=20 dim=32 hidden=48");
	struct experts *e = h->rig.part[LOOM_WORKLOAD].view.global;
	out = EXPERTS_AT(e, float, out) + 7 * 32 + 3, was = *out;
	*out = was * 1.001f + 0.001f;
	must_be_wrong(h, "number 3 of token 7");
	*out = NAN;
	must_be_wrong(h, "token 7 has no output");
	*out = was;
	EXPERTS_AT(e, float, hidden)[50] += 1e-3f;
	must_be_wrong(h, "output of token");
	EXPERTS_AT(e, float, hidden)[50] -= 1e-3f;
	EXPERTS_AT(e, float, result)[5] = NAN;
	must_be_wrong(h, "no result for number 5");
	harness_close(h);
}

TEST(refusals)
{
	static const char *const wrong[][3] = {{"workload_ragged", "heads=8 kv_heads=3", "kv_heads = 3"},
					       {"workload_ragged", "heads=32 kv_heads=1", "at most 16"},
					       {"workload_ragged", "dim=12", "multiple of 8"},
					       {"workload_ragged", "page=48", "power of two"},
					       {"workload_ragged", "tile=48", "power of two"},
					       {"workload_ragged", "chunk=24", "multiple of page"},
					       {"workload_ragged", "law=trace", "trace = FILE"},
					       {"workload_experts", "top=5 experts=4", "there are 4 experts"},
					       {"workload_experts", "dim=12", "multiple of 8"},
					       {"workload_experts", "rows=24", "power of two"},
					       {"workload_experts", "skew=drift known=host", "known = device"}};
	for (size_t i = 0; i < COUNT(wrong); i++)
		harness_refused(
		    &(struct harness_params){.workload = wrong[i][0], .workload_opts = wrong[i][1], .workers = 1},
		    LOOM_EINVAL, wrong[i][2]);
	/* sched_plan rejects a file with the costs of another job, and costs=declared if the workload declares no
	 * costs. */
	char path[] = "/tmp/loom-costs-XXXXXX", opts[100];
	static const uint64_t cost[] = {1, 2};
	int fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	CU_ASSERT_EQUAL(costs_write(&fake_host, path, cost, 2, &err), 0);
	snprintf(opts, sizeof(opts), "load=%s", path);
	for (int declared = 0; declared < 2; declared++) {
		struct harness *h = harness_must(
		    &(struct harness_params){.sched = "sched_plan",
					     .sched_opts = declared ? "costs=declared" : opts,
					     .workload = "workload_memset",
					     .workload_opts = "tasks=3",
					     .workers = 2});
		const struct loom__rig_part *part = &h->rig.part[LOOM_SCHED];
		const struct loom_sched_ops *ops = part->plugin->ops;
		REFUSED(ops->init(part->self, &h->rig.layout, &part->view, &err), LOOM_EINVAL, err,
			declared ? "declares none" : "has the costs of 2 tasks");
		harness_close(h);
	}
	unlink(path);
}

/* With declared costs and steal = none, each worker runs exactly its list. Then measured costs are saved to a file and
 * loaded from it. */
TEST(plans)
{
	char path[] = "/tmp/loom-costs-XXXXXX", opts[140];
	struct costs c;
	struct harness *h = harness_must(&(struct harness_params){.sched = "sched_plan",
								  .sched_opts = "steal=none",
								  .workload = "workload_ragged",
								  .workload_opts = "length=200 chunk=64",
								  .workers = 3,
								  .seed = 1});
	struct plan_table t;
	CU_ASSERT_EQUAL_FATAL(plan_table_make(&t, h->rig.layout.initial_tasks, h->costs, 3), 0);
	CU_ASSERT_EQUAL(harness_run(h, &err), 0);
	for (uint32_t w = 0; w < 3; w++)
		CU_ASSERT_EQUAL(h->rig.counters[w].executed, t.first[w + 1] - t.first[w]);
	CU_ASSERT_TRUE(loom__rig_host_metric(&fake, "plan_imbalance") < 1.34);
	plan_table_free(&t);
	harness_close(h);
	int fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	for (int load = 0; load < 2; load++) {
		snprintf(opts, sizeof(opts), "costs=measured %s=%s", load ? "load" : "save", path);
		h = harness_must(&(struct harness_params){.sched = "sched_plan",
							  .sched_opts = opts,
							  .workload = "workload_synthetic",
							  .workload_opts = "tasks=50 spawn=0 depth=0 length=3000 variance=1",
							  .workers = 2,
							  .seed = 1});
		/* The costs are written after the sample that measured them. */
		for (int sample = 0; sample <= load; sample++)
			CU_ASSERT_EQUAL(harness_run(h, &err), 0);
		harness_close(h);
	}
	CU_ASSERT_EQUAL_FATAL(costs_read(&fake_host, path, &c, &err), 0);
	CU_ASSERT_EQUAL(c.tasks, 50);
	uint64_t sum = 0;
	for (uint64_t i = 0; i < c.tasks; i++)
		sum += c.cost[i];
	CU_ASSERT_TRUE(sum > 0);
	costs_free(&c);
	unlink(path);
}

/* Costs and dependencies come from a trace. The expected bound of the makespan is computed by hand. */
TEST(makespan)
{
	char path[] = "/tmp/loom-costs-XXXXXX", opts[100];
	int fd = mkstemp(path);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fprintf(f, "{\"format\": \"gpuloom-costs\", \"tasks\": [{\"id\": 0, \"cost\": 30000}, {\"id\": 1, \"cost\": 10000}, "
		   "{\"id\": 2, \"cost\": 20000, \"after\": [0, 1]}, {\"id\": 3, \"cost\": 5000, \"after\": [1]}]}");
	fclose(f);
	snprintf(opts, sizeof(opts), "law=trace trace=%s", path);
	for (size_t s = 0; s < COUNT(scheds); s++) {
		struct harness *h = harness_must(&(struct harness_params){.sched = scheds[s],
									  .workload = "workload_makespan",
									  .workload_opts = opts,
									  .workers = 2,
									  .lanes = 1 + (uint32_t)(s % 2),
									  .seed = 1});
		CU_ASSERT_EQUAL(h->rig.layout.initial_tasks, 2);
		for (int sample = 0; sample < 3; sample++)
			CU_ASSERT_EQUAL(harness_run(h, &err), 0);
		CU_ASSERT_EQUAL(harness_sum(h).executed, 4);
		CU_ASSERT_EQUAL(loom__rig_host_metric(&fake, "bound_ns"), 50000);
		CU_ASSERT_TRUE(loom__rig_host_metric(&fake, "over_bound") >= 1);
		harness_close(h);
	}
	unlink(path);
	struct harness *h = right("workload_makespan", "law=two tasks=100 mean=1us");
	struct makespan *m = h->rig.part[LOOM_WORKLOAD].view.global;
	MAKESPAN_AT(m, uint64_t, ran)[7]++;
	must_be_wrong(h, "task 7 was run 2 times");
	harness_close(h);
	harness_refused(&(struct harness_params){.workload = "workload_makespan", .workload_opts = "law=trace", .workers = 1},
			LOOM_EINVAL, "trace = FILE");
}

/* Writes a trace of a lattice of SIDE * SIDE tasks to a new file. Each task waits for its neighbours with lower
 * coordinates. */
enum { SIDE = 20 };
static void write_lattice(char *path)
{
	int fd = mkstemp(path);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fprintf(f, "{\"format\": \"gpuloom-costs\", \"tasks\": [{\"id\": 0, \"cost\": 100}");
	for (int i = 1; i < SIDE * SIDE; i++) {
		fprintf(f, ", {\"id\": %d, \"cost\": 100, \"after\": [", i);
		if (i % SIDE)
			fprintf(f, "%d%s", i - 1, i > SIDE ? ", " : "");
		if (i >= SIDE)
			fprintf(f, "%d", i - SIDE);
		fprintf(f, "]}");
	}
	fprintf(f, "]}");
	fclose(f);
}

/* Runs tasks with two predecessors each with small queues. A task that becomes ready is then published, stolen, moved
 * to the overflow list, or run in place, like other tasks. With `noncoherent` the devices are two CPUs, or a CPU and a
 * device that behaves like a GPU. */
static void run_lattice(const char *const *opts, size_t n, int noncoherent)
{
	char path[] = "/tmp/loom-costs-XXXXXX", job[100];
	write_lattice(path);
	snprintf(job, sizeof(job), "law=trace trace=%s", path);
	for (size_t i = 0; i < n << noncoherent; i++) {
		struct harness *h = harness_must(&(struct harness_params){.sched_opts = opts[i % n],
									  .term = noncoherent ? "term_hcounter" : NULL,
									  .workload = "workload_makespan",
									  .workload_opts = job,
									  .workers = 4,
									  .lanes = i % n == n - 1 ? 3 : 1,
									  .second_kind = i < n ? 0 : LOOM_ON_GPU,
									  .seed = 1,
									  .noncoherent = (uint32_t)noncoherent});
		for (int sample = 0; sample < 5; sample++)
			CU_ASSERT_EQUAL(harness_run(h, &err), 0);
		CU_ASSERT_EQUAL(harness_sum(h).executed, SIDE * SIDE);
		harness_close(h);
	}
	unlink(path);
}

TEST(lattice)
{
	static const char *const opts[] = {"local_queue=2 public_queue=1",
					   "local_queue=2 public_queue=4 in_place_depth=0",
					   "local_queue=4 public_queue=4 transfer=id owners=2", "granularity=lane"};
	run_lattice(opts, 4, 0);
}

TEST(lattice_noncoherent)
{
	static const char *const opts[] = {"", "local_queue=2 public_queue=4", "granularity=lane"};
	run_lattice(opts, 3, 1);
}

TEST_MAIN("uneven", 120)
