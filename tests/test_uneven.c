/* SPDX-License-Identifier: Apache-2.0 */
/* Tests uneven work: the plans of sched_plan, files of costs and of choices, distributions of lengths (ragged), skews of routing
 * (experts), and both workloads under every scheduler. Their checks must reject wrong results. */
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness.h"
#include "lib/random.h"

#include "../plugins/sched_plan/sched_plan.dev.h"
#include "../plugins/sched_common/costs.c"
#include "../plugins/workloads/tasks/experts_routing.c"
#include "../plugins/workloads/tasks/half.h"
#include "../plugins/workloads/tasks/ragged_lengths.c"
#include "../plugins/workloads/tasks/workload_experts.dev.h"
#include "../plugins/workloads/tasks/workload_makespan.dev.h"
#include "../plugins/workloads/tasks/workload_ragged.dev.h"

static struct loom_error err;
static void everywhere(const char *workload, const char *opts);
static const char *const scheds[] = {"sched_static", "sched_counter", "sched_host", "sched_mgws", "sched_plan"};

/* ---- plans ------------------------------------------------------------------------------------ */

static void no_task(struct loom_ctx *c, const struct loom_task *t)
{
	(void)c, (void)t;
}

/* Makes the plan of these costs by several lanes, and checks that the lists have each task once, except tasks of cost 0. Returns the
 * largest sum of costs of a list. */
static uint64_t check_plan(const uint32_t *cost, uint64_t tasks, uint32_t workers, uint32_t lanes)
{
	static loom_task_fn *const fn[] = {no_task};
	struct loom_task *t = calloc(tasks + 1, sizeof(*t));
	uint8_t *seen = calloc(tasks + 1, 1);
	uint64_t longest = 0, some = 0;
	for (uint64_t i = 0; i < tasks; i++)
		t[i].data = (struct loom_data){LOOM_REF(2, i * sizeof(*cost)), 4, LOOM_COST};
	struct harness *h = harness_must(&(struct harness_params){.sched = "sched_plan",
								  .sched_opts = "steal=none",
								  .task = fn,
								  .tasks = 1,
								  .initial = t,
								  .initials = tasks,
								  .costs = LOOM_COSTS_OF_DATA,
								  .workers = workers,
								  .lanes = lanes,
								  .seed = 1,
								  .extra = (void *)cost});
	CU_ASSERT_EQUAL_FATAL(harness_run(h, &err), 0);
	struct loom_ctx *c = &h->rig.ctx[0];
	const struct plan_shape *s = plan_shape(c);
	uint32_t class = 0;
	for (uint32_t w = 0; w < workers; w++) {
		uint64_t sum = 0;
		CU_ASSERT_TRUE(plan_length(c, w) > 0 || w >= s->listed);
		for (uint32_t i = 0; i < plan_length(c, w); i++, some++) {
			uint32_t at = plan_task(c, w, i);
			CU_ASSERT_FATAL(at < tasks);
			CU_ASSERT_FALSE(seen[at]++);
			sum += cost[at];
		}
		longest = sum > longest ? sum : longest;
	}
	CU_ASSERT_EQUAL(some, s->listed);
	for (uint64_t i = 0; i < tasks; i++)
		CU_ASSERT_EQUAL(seen[i], !s->sorted || cost[i] != 0);
	for (uint32_t i = 0; s->sorted && i < s->listed; i++) {
		uint32_t next = plan_class(plan_cost_of(plan_of(c))[(plan_cost_of(plan_of(c)) + tasks)[i]]);
		CU_ASSERT_TRUE(next >= class);
		class = next;
	}
	CU_ASSERT_EQUAL(s->sorted, workers > 1 && tasks / PLAN_FINE < workers);
	harness_close(h);
	free(t);
	free(seen);
	return longest;
}

TEST(plans)
{
	static uint32_t cost[10000];
	uint64_t seed = 5;
	for (uint32_t workers = 1; workers <= 40; workers += 13)
		for (uint64_t tasks = 0; tasks <= 4000; tasks = tasks * 3 + 1) {
			uint64_t sum = 0, most = 0;
			for (uint64_t i = 0; i < tasks; i++) {
				cost[i] = i % 7 == 6 ? 0 : 1 + (uint32_t)(100000.0 / (double)(1 + loom__random(&seed) % 1000));
				sum += cost[i];
				most = cost[i] > most ? cost[i] : most;
			}
			uint64_t longest = check_plan(cost, tasks, workers, tasks % 2 ? 1 : 3);
			uint64_t least = (sum + workers - 1) / workers > most ? (sum + workers - 1) / workers : most;
			CU_ASSERT_TRUE(tasks / PLAN_FINE >= workers || longest <= 2 * least);
		}
	/* A few long tasks have lists for themselves, and the others are shared evenly. */
	for (uint32_t i = 0; i < 100; i++)
		cost[i] = i % 25 ? 10 : 1000000000;
	CU_ASSERT_EQUAL(check_plan(cost, 100, 8, 1), 1000000000);
	for (uint32_t i = 0; i < 100; i++)
		cost[i] = 1 + i;
	CU_ASSERT_TRUE(check_plan(cost, 100, 8, 4) <= 5050 / 8 * 11 / 10);
	cost[0] = 0xffffffff;
	CU_ASSERT_TRUE(check_plan(cost, 100, 8, 4) >= 0xffffffff);
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
	REFUSED(costs_write(&fake_host, "/nonesuch/x", cost, 3, &err), LOOM_ENOENT, err, "/nonesuch/x");
	/* A failure, as on a full disk, leaves the old file as it was. */
	struct rlimit limit;
	getrlimit(RLIMIT_FSIZE, &limit);
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){60, limit.rlim_max});
	REFUSED(costs_write(&fake_host, path, cost, 3, &err), LOOM_EIO, err, "File too large");
	setrlimit(RLIMIT_FSIZE, &limit);
	CU_ASSERT_EQUAL(costs_read(&fake_host, path, &c, &err), 0);
	costs_free(&c);
	unlink(path);
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
		ragged_draw(law, 1000, 3, N, a);
		ragged_draw(law, 1000, 3, N, b);
		CU_ASSERT_EQUAL(memcmp(a, b, sizeof(a)), 0);
		ragged_draw(law, 1000, 4, N, b);
		CU_ASSERT_TRUE(law == RAGGED_EQUAL || memcmp(a, b, sizeof(a)));
		double mean = (double)sum_of(a, N) / N;
		CU_ASSERT_TRUE(mean > 900 && mean < 1100);
		for (uint32_t i = 0; i < N; i++)
			CU_ASSERT_TRUE(a[i] >= 1 && a[i] <= RAGGED_LONGEST);
	}
	ragged_draw(RAGGED_ZIPF, 1000, 3, N, a);
	for (uint32_t i = 0; i < N; i++)
		longest = a[i] > longest ? a[i] : longest;
	CU_ASSERT_TRUE(longest > 60000 && longest < 62000); /* the expected value is 400,000 / the sum of 1 / i */
	ragged_draw(RAGGED_TWO, 1000, 3, N, a);
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

/* pieces_row() finds the row of each number, for any number of rows, some of which are empty. */
TEST(pieces)
{
	uint64_t state = 1;
	uint32_t start[202] = {0};
	for (uint32_t rows = 1; rows <= 200; rows++) {
		uint32_t most = 1 + (uint32_t)(loom__random(&state) % 40), first = 0;
		for (uint32_t row = 0; row < rows; row++)
			start[row + 1] = start[row] + (uint32_t)(loom__random(&state) % 3 ? loom__random(&state) % 100 : 0);
		start[rows / 2 + 1] = start[rows]; /* a long one, and empty ones */
		for (uint32_t row = rows / 2 + 1; row < rows; row++)
			start[row + 1] = start[rows];
		for (uint32_t row = 0; row < rows; row++)
			for (uint32_t end = row + 1 < rows ? pieces_first(start, row + 1, most) : pieces_room(start[rows], rows, most); first < end; first++)
				CU_ASSERT_EQUAL(pieces_row(start, rows, most, first), row);
	}
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
	enum { E = 16, T = 512, TOP = 2, R = 4 };
	static uint32_t a[T * TOP], b[T * TOP], source[T], of[E], other[E], from[R];
	const struct routing shape = {.experts = E, .tokens = T, .top = TOP, .ranks = R, .steps = 1};
	for (uint32_t skew = EXPERTS_EQUAL; skew < EXPERTS_TRACE; skew++) {
		routing_draw(skew, 1, 3, &shape, a, source);
		routing_draw(skew, 1, 3, &shape, b, NULL);
		CU_ASSERT_EQUAL(memcmp(a, b, sizeof(a)), 0);
		for (uint32_t t = 0; t < T; t++)
			CU_ASSERT_NOT_EQUAL(a[2 * t], a[2 * t + 1]);
		count(a, T * TOP, E, of);
		CU_ASSERT_EQUAL(sum_of(of, E), T * TOP);
		count(source, T, R, from);
		routing_draw(skew, 1, 4, &shape, b, NULL);
		int same = skew == EXPERTS_EQUAL || skew == EXPERTS_HOT_TOP;
		CU_ASSERT_TRUE((memcmp(a, b, sizeof(a)) != 0) != same);
		count(b, T * TOP, E, other);
		uint32_t hot = of[0] + of[1], rank = hot + of[2] + of[3], most = 0, set = 0;
		for (uint32_t e = 0; e < E; e++) {
			most = of[e] > most ? of[e] : most;
			set += of[e] > 100;
		}
		if (skew != EXPERTS_RAGGED_SOURCE)
			CU_ASSERT_TRUE(from[0] == T / R && from[R - 1] == T / R);
		switch (skew) {
		case EXPERTS_EQUAL:
			CU_ASSERT_EQUAL(most, T * TOP / E);
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
		case EXPERTS_HOT_SET: /* four of the sixteen experts are hot, as in the next two cases */
			CU_ASSERT_TRUE(set == 4 && rank < 450);
			break;
		case EXPERTS_HOT_RANK:
			CU_ASSERT_TRUE(set == 4 && rank > 500 && rank < 750);
			break;
		case EXPERTS_HOT_SPREAD:
			CU_ASSERT_TRUE(set == 4 && of[0] > 100 && of[4] > 100 && of[8] > 100 && of[12] > 100);
			break;
		case EXPERTS_RAGGED_SOURCE:
			CU_ASSERT_TRUE(most < 100 && from[0] == 246 && from[0] > from[1] && from[1] > from[2] && from[2] > from[3]);
			break;
		case EXPERTS_IDLE_RANK:
			CU_ASSERT_TRUE(of[11] > 0 && of[12] + of[13] + of[14] + of[15] == 0);
			break;
		case EXPERTS_ROTATING: /* the fourth rank is hot in step 3, and the first in step 4 */
			CU_ASSERT_TRUE(of[12] > 100 && of[15] > 100 && other[0] > 100 && other[3] > 100);
			break;
		default: /* burst: in step 4 */
			CU_ASSERT_TRUE(most == T * TOP / E && other[0] > 100 && other[3] > 100);
		}
	}
	/* A token that chooses 4 of 4 experts gets all. */
	const struct routing four = {.experts = 4, .tokens = 10, .top = 4, .ranks = 2, .steps = 1};
	routing_draw(EXPERTS_HOT_TOP, 1, 0, &four, a, NULL);
	for (uint32_t k = 0; k < 4; k++)
		CU_ASSERT_EQUAL(a[k], k);
	routing_draw(EXPERTS_ZIPF, 1, 0, &four, a, NULL);
	count(a, 40, 4, of);
	CU_ASSERT_TRUE(of[0] == 10 && of[3] == 10);
}

TEST(routing)
{
#define ROUTING "gpuloom-routing 1 experts 4 tokens 2 top 2 ranks 2 steps 1 checksum "
	static const char *const wrong[][2] = {{"", "x:1: expected 'gpuloom-routing 1"},
					       {"gpuloom-routing 1 experts 4 tokens 2 top 5 ranks 2 steps 1 checksum 0\n", "x:1: expected"},
					       {"gpuloom-routing 1 experts 4 tokens 9999 top 2 ranks 2 steps 9 checksum 0\n0 1 2", "fewer than 9"},
					       {ROUTING "0\n0 1 2\n1 3 3\n", "x:3: expected a rank below 2 and 2 different experts below 4"},
					       {ROUTING "0\n0 1 2\n1 3 4\n", "x:3:"},
					       {ROUTING "0\n0 1 2\n2 3 1\n", "x:3:"},
					       {ROUTING "0\n0 1 2\n1 3\n\n\n\n", "x:3:"},
					       {ROUTING "0\n0 1 2\n1 3 1\n0", "more than 1 steps"},
					       {ROUTING "12\n0 1 2\n1 3 1\n", "checksum is 0000000000000012"}};
	struct routing r, back;
	for (size_t i = 0; i < COUNT(wrong); i++)
		REFUSED(routing_parse(&fake_host, "x", wrong[i][0], &r, &err), LOOM_EINVAL, err, wrong[i][1]);
	/* routing_read() returns what routing_write() has written. */
	uint32_t choice[] = {3, 1, 0, 2, 1, 0, 2, 3, 0, 1, 3, 2}, source[] = {0, 1, 1, 0, 0, 1};
	char path[] = "/tmp/loom-routing-XXXXXX";
	int fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	r = (struct routing){4, 3, 2, 2, 2, choice, source};
	CU_ASSERT_EQUAL(routing_write(&fake_host, path, &r, &err), 0);
	CU_ASSERT_EQUAL_FATAL(routing_read(&fake_host, path, &back, &err), 0);
	CU_ASSERT_EQUAL(memcmp(&r, &back, offsetof(struct routing, choice)), 0);
	CU_ASSERT_FALSE(memcmp(choice, back.choice, sizeof(choice)) || memcmp(source, back.source, sizeof(source)));
	source[5] = 0;
	CU_ASSERT_NOT_EQUAL(routing_checksum(&r), routing_checksum(&back));
	routing_free(&back);
	/* The workload runs a file, and refuses one of another shape. */
	char opts[100];
	snprintf(opts, sizeof(opts), "skew=trace trace=%s experts=4 tokens=3 top=2 dim=32 hidden=48 redraw=sample", path);
	everywhere("workload_experts", opts);
	snprintf(opts, sizeof(opts), "skew=trace trace=%s experts=5", path);
	harness_refused(&(struct harness_params){.workload = "workload_experts", .workload_opts = opts, .workers = 1}, LOOM_EINVAL,
			"set experts = 4, tokens = 3 and top = 2");
	unlink(path);
	REFUSED(routing_read(&fake_host, path, &r, &err), LOOM_ENOENT, err, path);
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
	    "law=two length=50 chunk=8388608 heads=4 kv_heads=4",
	    "law=uniform length=60 redraw=sample chunk=32 page=32",
	    "law=zipf length=200 redraw=sample chunk=64",
	    "sequences=1 length=1",
	    "sequences=3 law=equal length=700 chunk=256 page=256 dim=128",
	};
	for (size_t i = 0; i < COUNT(opts); i++)
		everywhere("workload_ragged", opts[i]);
}

TEST(experts)
{
#define NAME(name, text, what) text,
	static const char *const skews[] = {EXPERTS_SKEWS(NAME)};
	for (size_t i = 0; i < EXPERTS_TRACE; i++) {
		char opts[100];
		snprintf(opts, sizeof(opts), "skew=%s tokens=20 dim=32 hidden=48 rows=16 redraw=%s", skews[i], i % 2 ? "sample" : "run");
		everywhere("workload_experts", opts);
	}
	everywhere("workload_experts", "redraw=sample real=float16 tokens=33 top=3 experts=5 block=7 rows=32 dim=40 hidden=72");
	everywhere("workload_experts", "tokens=1 top=1 experts=1 dim=8 hidden=8 rows=131072");
}

/* Runs the workloads on two non-coherent devices. */
TEST(noncoherent)
{
	static const char *const jobs[][2] = {{"workload_ragged", "length=300 chunk=32"},
					      {"workload_ragged", "length=100 chunk=16 redraw=sample"},
					      {"workload_experts", "tokens=40 dim=32 hidden=64 rows=16 block=4"}};
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
					       {"workload_ragged", "chunk=24", "multiple of page"},
					       {"workload_ragged", "law=trace", "trace = FILE"},
					       {"workload_experts", "top=5 experts=4", "among 4 experts"},
					       {"workload_experts", "dim=12", "multiple of 8"},
					       {"workload_experts", "rows=24", "power of two"},
					       {"workload_experts", "skew=trace", "trace = FILE"},
					       {"workload_experts", "skew=idle_rank experts=4 top=4", "among 3 experts"}};
	for (size_t i = 0; i < COUNT(wrong); i++)
		harness_refused(
		    &(struct harness_params){.workload = wrong[i][0], .workload_opts = wrong[i][1], .workers = 1},
		    LOOM_EINVAL, wrong[i][2]);
	harness_refused(&(struct harness_params){.sched = "sched_plan", .sched_opts = "save=x", .workers = 1}, LOOM_EINVAL,
			"costs = measured");
	harness_refused(&(struct harness_params){.sched = "sched_plan",
						 .sched_opts = "costs=declared",
						 .workload = "workload_memset",
						 .workload_opts = "tasks=3",
						 .workers = 2},
			LOOM_EINVAL, "declares none");
}

/* With declared costs and steal = none, each worker runs exactly its list, also if each sample has other lengths. Measured costs are
 * saved to a file. The next sample runs lists by them. */
TEST(lists)
{
	char path[] = "/tmp/loom-costs-XXXXXX", opts[140];
	struct costs c;
	for (int redraw = 0; redraw < 2; redraw++) {
		uint64_t listed[3], others = 0;
		struct harness *h = harness_must(&(struct harness_params){
		    .sched = "sched_plan",
		    .sched_opts = "steal=none",
		    .workload = "workload_ragged",
		    .workload_opts = redraw ? "length=200 chunk=64 law=uniform redraw=sample" : "length=200 chunk=64",
		    .workers = 3,
		    .seed = 1});
		for (int sample = 0; sample < 3; sample++) {
			CU_ASSERT_EQUAL(harness_run(h, &err), 0);
			const struct plan_shape *s = plan_shape(&h->rig.ctx[0]);
			for (uint32_t w = 0; w < 3; w++)
				CU_ASSERT_EQUAL(h->rig.counters[w].executed,
						plan_length(&h->rig.ctx[0], w) +
						    (w ? 0 : h->rig.layout.initial_tasks - s->listed));
			CU_ASSERT_TRUE(loom__rig_host_metric(&fake, "plan_imbalance") < 1.34);
			listed[sample] = s->listed;
			others += sample && listed[sample] != listed[sample - 1];
		}
		CU_ASSERT_TRUE(!others == !redraw);
		CU_ASSERT_TRUE((listed[0] < h->rig.layout.initial_tasks) == redraw);
		harness_close(h);
	}
	int fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	snprintf(opts, sizeof(opts), "costs=measured save=%s", path);
	struct harness *h = harness_must(&(struct harness_params){.sched = "sched_plan",
								  .sched_opts = opts,
								  .workload = "workload_synthetic",
								  .workload_opts = "tasks=50 spawn=0 depth=0 length=3000 variance=1",
								  .workers = 2,
								  .seed = 1});
	for (uint32_t sample = 0; sample < 2; sample++) {
		CU_ASSERT_EQUAL(harness_run(h, &err), 0);
		CU_ASSERT_EQUAL(plan_shape(&h->rig.ctx[0])->sorted, sample);
	}
	harness_close(h);
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
