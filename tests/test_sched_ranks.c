/* SPDX-License-Identifier: Apache-2.0 */
/* Stresses ranks that share tasks. Ranks are threads in place of processes, so that ThreadSanitizer sees all of them.
 * Every task runs once, on any rank, and no rank ends early. */
#include "ranks.h"
#include "lib/random.h"

static const struct setup {
	const char *opts;
	uint32_t n, workers[RANKS_MOST];
	int rma; /* 1 if ranks access each other's memory by RMA, 0 for loads and stores */
	const char *term;
} setups[] = {
    {"", 2, {1, 1}, 0, "term_hcounter"},
    {"local_queue=2 public_queue=1", 3, {1, 1, 1}, 0, "term_hcounter"},
    {"local_queue=2 public_queue=2 in_place_depth=0", 2, {2, 1}, 0, "term_hcounter"},
    {"local_queue=2 public_queue=8 attempts=damping claim=fixed claim_size=3", 2, {2, 2}, 0, "term_hcounter"},
    {"local_queue=8 public_queue=8 spin=0", 4, {1, 1, 1, 1}, 0, "term_hcounter"},
    {"local_queue=4 public_queue=4 wait=spin victim=neighbour", 2, {2, 2}, 0, "term_hcounter"},
    {"local_queue=4 public_queue=4 wait=yield victim=biased", 3, {1, 2, 1}, 0, "term_hcounter"},
    {"local_queue=4 public_queue=2 victim=local backlog=8", 2, {2, 2}, 0, "term_hcounter"},
    {"local_queue=4 public_queue=4", 2, {1, 2}, 0, "term_hcounter"},
    {"local_queue=4 public_queue=4", 4, {1, 2, 1, 1}, 0, "term_tree"},
    {"", 2, {1, 1}, 1, "term_hcounter"},
    {"local_queue=2 public_queue=1", 3, {1, 1, 1}, 1, "term_tree"},
    {"local_queue=4 public_queue=4 wait=spin", 4, {2, 1, 1, 2}, 1, "term_hcounter"},
    {"local_queue=2 public_queue=8 claim=fixed claim_size=3 wait=yield", 3, {1, 2, 1}, 1, "term_tree"},
    {"local_queue=4 public_queue=4 victim=local backlog=8", 2, {2, 2}, 1, "term_tree"},
    {"local_queue=4 public_queue=16 spin=0 victim=biased", 4, {1, 1, 1, 1}, 1, "term_hcounter"},
};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SEEDS 100u
#define SIZE  600u
#else
#define SEEDS 540u
#define SIZE  3000u
#endif

static const struct ranks *job; /* the ranks of the running job */

/* Runs a rank. If the rank fails, it stops the other ranks, as a launcher would. */
static void *run_rank(void *rank)
{
	struct harness *h = *(struct harness **)rank;
	loom__rig_run(&h->rig, harness_body, 3600000000000ull);
	for (uint32_t r = 0; h->rig.ctl->failed && r < job->n; r++)
		__atomic_store_n(&job->h[r]->rig.ctl->stop, 1, __ATOMIC_RELAXED);
	return NULL;
}

static int run_ranks(struct ranks *ranks, uint32_t size, struct loom_error *err)
{
	ranks_init(ranks);
	job = ranks;
	in_threads(run_rank, ranks->h, sizeof(*ranks->h), ranks->n);
	return ranks_check(ranks, size, err);
}

/* Runs the same ranks twice. Returns the number of tasks that moved between ranks. */
static uint64_t grow(const struct setup *s, uint32_t initials, uint32_t size, enum loom__shape shape, uint64_t seed)
{
	struct harness_params p = tree_params(initials, size, shape, seed);
	struct ranks ranks;
	struct loom_error err = {0};
	int rc = 0;
	p.sched_opts = s->opts;
	p.term = s->term;
	p.trigger_dev = s->rma ? &ranks_network : NULL;
	ranks_open(&ranks, &p, s->n, s->workers);
	for (int sample = 0; sample < 2 && !rc; sample++)
		rc = run_ranks(&ranks, size, &err);
	if (rc)
		fprintf(stderr, "%s, %u ranks, seed %llu: %s\n", s->opts, s->n, (unsigned long long)seed, err.text);
	CU_ASSERT_EQUAL(rc, 0);
	ranks_close(&ranks);
	return ranks.crossed;
}

TEST(seeds)
{
	uint64_t crossed = 0;
	/* On a busy machine a rank may finish all tasks before another rank runs, so more seeds follow until a task crosses. */
	for (uint64_t seed = 0; seed < SEEDS || (!crossed && seed < 20 * SEEDS); seed++) {
		uint32_t size = SIZE + (uint32_t)(loom__mix64(seed) % 100);
		uint32_t initials = 1 + (uint32_t)(seed % 3 == 0 ? loom__mix64(seed) % size : seed % 2);
		crossed += grow(&setups[seed % COUNT(setups)], initials, size,
				(enum loom__shape)(seed / COUNT(setups) % SHAPES), seed);
	}
	CU_ASSERT_TRUE(crossed > 0);
}

/* Ranks cannot share tasks that have a join. Such a run is rejected with a message. */
static void joined(struct loom_ctx *c, const struct loom_task *t)
{
	(void)c, (void)t;
}

TEST(joins)
{
	static loom_task_fn *const one[] = {joined};
	static struct loom_join join[2]; /* the first is unused, because a reference of 0 means no join */
	struct loom_task initial[2] = {{.join = LOOM_REF(2, sizeof(join[0]))}, {.tag = 0}};
	struct loom_error err = {0};
	struct ranks ranks;
	ranks_open(
	    &ranks,
	    &(struct harness_params){
		.term = "term_hcounter", .task = one, .tasks = 1, .initial = initial, .initials = 2, .extra = join},
	    2, (uint32_t[]){1, 1});
	REFUSED(run_ranks(&ranks, 0, &err), LOOM_EUNAVAIL, err, "with a join&tasks = own");
	ranks_close(&ranks);
}

TEST(refused)
{
	static const struct {
		const char *opts;
		int code;
		const char *words;
	} wrong[] = {{"transfer=id", LOOM_ENOTSUP, "transfer = body"}, {"owners=2", LOOM_ENOTSUP, "owners = 1"}};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct harness_params p = tree_params(1, 1, STAR, 1);
		p.sched_opts = wrong[i].opts;
		p.term = "term_hcounter";
		p.workers = p.ranks = p.remote_workers = p.remote_devices = 2;
		harness_refused(&p, wrong[i].code, wrong[i].words);
	}
}

TEST_MAIN("sched_ranks", 300)
