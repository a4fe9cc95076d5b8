/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that each workload gives the right answer under every scheduler, and that its check rejects a wrong answer. */
#include <sys/stat.h>
#include <zlib.h>

#include "harness.h"

#include "../plugins/workloads/tasks/sha1.dev.h"
#include "../plugins/workloads/tasks/workload_contains.dev.h"
#include "../plugins/workloads/tasks/workload_fib.dev.h"
#include "../plugins/workloads/tasks/workload_synthetic.dev.h"
#include "../plugins/workloads/tasks/workload_uts.dev.h"

static struct loom_error err;

static double metric(const char *name)
{
	return loom__rig_host_metric(&fake, name);
}

static struct harness *must_open(const char *sched, const char *workload, const char *opts, uint32_t workers,
				 uint32_t lanes)
{
	return harness_must(&(struct harness_params){.sched = sched,
						     .workload = workload,
						     .workload_opts = opts,
						     .workers = workers,
						     .lanes = lanes,
						     .seed = 1});
}

/* Runs a workload twice under every scheduler and number of workers. The caller checks the metrics of the last run. */
static void run_everywhere(const char *workload, const char *opts)
{
	static const char *const scheds[] = {"sched_static", "sched_mgws", "sched_host", "sched_counter", "sched_plan"};
	static const uint32_t shapes[][2] = {{1, 1}, {2, 1}, {5, 1}, {2, 4}};
	for (size_t s = 0; s < COUNT(scheds); s++)
		for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
			struct harness *h = must_open(scheds[s], workload, opts, shapes[i][0], shapes[i][1]);
			for (int sample = 0; sample < 2; sample++)
				if (harness_run(h, &err)) {
					fprintf(stderr, "%s %s, %s: %s\n", workload, opts, scheds[s], err.text);
					CU_FAIL("wrong");
				}
			harness_close(h);
		}
}

/* Opens a workload and runs it once. The caller then changes the result, which the check must notice. */
static struct harness *right(const char *workload, const char *opts)
{
	struct harness *h = must_open("sched_mgws", workload, opts, 2, 1);
	CU_ASSERT_EQUAL(harness_run(h, &err), 0);
	return h;
}

static void must_be_wrong(struct harness *h, const char *says)
{
	REFUSED(harness_verify(h, &err), LOOM_EWRONG, err, says);
}

/* ---- memset, fib ------------------------------------------------------------------------ */

TEST(memset)
{
	run_everywhere("workload_memset", "tasks=1");
	run_everywhere("workload_memset", "tasks=3001");
	struct harness *h = right("workload_memset", "tasks=1000");
	uint64_t *slot = h->rig.part[LOOM_WORKLOAD].view.global;
	slot[417] = 416;
	must_be_wrong(h, "slot 417");
	harness_init(h); /* init() poisons the slots, so none is right before a run */
	must_be_wrong(h, "1000 of 1000");
	harness_close(h);
}

/* Each device has slots of its own. */
static void memset_apart(uint32_t noncoherent, uint32_t second_kind)
{
	struct harness *h = harness_must(&(struct harness_params){.term = "term_hcounter",
								  .workload = "workload_memset",
								  .workload_opts = "tasks=1000",
								  .workers = 2,
								  .seed = 1,
								  .second_kind = second_kind,
								  .noncoherent = noncoherent});
	CU_ASSERT_EQUAL(harness_run(h, &err), 0);
	uint64_t *first = h->rig.part[LOOM_WORKLOAD].view.device[0],
		 *second = h->rig.part[LOOM_WORKLOAD].view.device[1];
	CU_ASSERT_EQUAL(first[3] & second[3],
			3); /* a slot is 3 on the device that wrote it, and all ones on the other */
	first[417] = second[417] = 417;
	must_be_wrong(h, "written on two devices");
	first[417] = second[417] = ~0ull;
	must_be_wrong(h, "never written");
	first[417] = 418;
	must_be_wrong(h, "slot 417, which holds 0x1a2");
	harness_close(h);
}

TEST(memset_apart)
{
	memset_apart(1, 0);
	memset_apart(0, LOOM_ON_GPU);
}

TEST(fib)
{
	run_everywhere("workload_fib", "n=0");
	run_everywhere("workload_fib", "n=1");
	run_everywhere("workload_fib", "n=13");
	struct harness *h = right("workload_fib", "n=20");
	CU_ASSERT_EQUAL(metric("fib"), 6765);
	CU_ASSERT_EQUAL(harness_sum(h).executed, 2 * 10946 - 1);
	((struct workload_fib_sum *)h->rig.part[LOOM_WORKLOAD].view.worker[1])->sum += 1;
	must_be_wrong(h, "6766");
	harness_close(h);
}

static void must_be_refused(const char *workload, const char *opts, int code, const char *says)
{
	harness_refused(&(struct harness_params){.workload = workload, .workload_opts = opts, .workers = 1}, code,
			says);
}

/* ---- synthetic ----------------------------------------------------------------------------- */

TEST(synthetic)
{
	run_everywhere("workload_synthetic", "tasks=1 depth=0 length=0");
	run_everywhere("workload_synthetic", "tasks=7 spawn=3 depth=5 length=20 variance=1");
	run_everywhere("workload_synthetic", "tasks=500 spawn=0 depth=3 length=10 variance=0.5");
	run_everywhere("workload_synthetic", "tasks=3 spawn=1 depth=200 length=0");
	struct harness *h = right("workload_synthetic", "tasks=10 spawn=2 depth=3");
	CU_ASSERT_EQUAL(harness_sum(h).executed, 150);
	struct synthetic_count *n = h->rig.part[LOOM_WORKLOAD].view.worker[0];
	n->squares++; /* the error of two values that are replaced by two others with the same sum */
	must_be_wrong(h, "150 tasks were expected");
	n->squares--;
	n->misplaced++;
	must_be_wrong(h, "exclude");
	harness_close(h);
}

/* Some tasks may run only on the CPU, others only on the device that behaves like a GPU. */
TEST(synthetic_affinity)
{
	static const char *const opts[] = {"tasks=1000 spawn=2 depth=2 length=10 on_cpu=0.3 on_gpu=0.3",
					   "tasks=1000 spawn=0 depth=0 length=10 on_cpu=0.5 on_gpu=0.5",
					   "tasks=1000 spawn=2 depth=2 length=10 on_cpu=0.3",
					   "tasks=1000 spawn=0 depth=0 length=10 on_gpu=0.5"};
	/* The lists are shorter than the number of tasks for a kind of device. A worker that finds a list full waits
	 * until the other device takes tasks from it. */
	static const struct {
		const char *name, *opts;
		uint32_t lanes;
	} scheds[] = {{"sched_mgws", "", 1},
		      {"sched_mgws", "overflow_list=4", 1},
		      {"sched_mgws", "overflow_list=1", 1},
		      {"sched_mgws", "overflow_list=4", 2},
		      {"sched_mgws", "granularity=lane", 2},
		      {"sched_host", "", 1},
		      {"sched_host", "granularity=lane returns=1024", 2}};
	for (size_t i = 0; i < 4 * COUNT(scheds); i++) {
		struct harness *h = harness_must(&(struct harness_params){.sched = scheds[i / 4].name,
									  .sched_opts = scheds[i / 4].opts,
									  .lanes = scheds[i / 4].lanes,
									  .term = "term_hcounter",
									  .workload = "workload_synthetic",
									  .workload_opts = opts[i % 4],
									  .workers = 4,
									  .second_kind = LOOM_ON_GPU,
									  .noncoherent = i % 4 / 2,
									  .seed = 1});
		for (int sample = 0; sample < 3; sample++) {
			int rc = harness_run(h, &err);
			if (rc)
				printf("%s %s %s: %s\n", scheds[i / 4].name, scheds[i / 4].opts, opts[i % 4], err.text);
			CU_ASSERT_EQUAL(rc, 0);
		}
		harness_close(h);
	}
}

/* ---- uts -------------------------------------------------------------------------------- */

TEST(sha1)
{
	/* the SHA-1 values of "" and "abcd", as sha1sum prints them */
	static const uint32_t none[5] = {0xda39a3ee, 0x5e6b4b0d, 0x3255bfef, 0x95601890, 0xafd80709};
	static const uint32_t abcd[5] = {0x81fe8bfe, 0x87576c3e, 0xcb22426f, 0x8e578473, 0x82917acf};
	uint32_t digest[5], message[6] = {0x61626364};
	sha1_block(digest, message, 0);
	CU_ASSERT_EQUAL(memcmp(digest, none, sizeof(none)), 0);
	sha1_block(digest, message, 1);
	CU_ASSERT_EQUAL(memcmp(digest, abcd, sizeof(abcd)), 0);
}

TEST(uts_custom)
{
	run_everywhere("workload_uts", "tree=custom depth=4 seed=2");
	run_everywhere("workload_uts", "tree=custom shape=linear depth=6 seed=34");
	run_everywhere("workload_uts", "tree=custom shape=cyclic depth=4 b0=3 seed=5");
	run_everywhere("workload_uts", "tree=custom type=binomial b0=300 q=0.1 m=8 seed=42");
	run_everywhere("workload_uts", "tree=custom type=hybrid shape=linear depth=8 b0=4 q=0.2 m=4 seed=1");
	run_everywhere("workload_uts", "create=eager tree=custom depth=5 seed=3");
	/* The tree is deeper than the nodes that a worker may keep. Then spawn() runs tasks inside of other tasks, in
	 * the remaining places. */
	run_everywhere("workload_uts", "keep=1 tree=custom depth=5 seed=3");
	run_everywhere("workload_uts", "keep=9 tree=custom type=binomial b0=300 q=0.11 m=9 seed=6");
}

/* A worker creates tasks only when other workers want tasks. With equal shares this never happens. It is rare if there
 * is only one worker. */
TEST(uts_lazy)
{
	struct harness *h = must_open("sched_static", "workload_uts", "tree=custom depth=7", 2, 1);
	CU_ASSERT_EQUAL(harness_run(h, &err), 0);
	CU_ASSERT_EQUAL(harness_sum(h).executed, 1);
	harness_close(h);
	h = must_open("sched_mgws", "workload_uts", "tree=custom depth=7", 1, 1);
	CU_ASSERT_EQUAL(harness_run(h, &err), 0);
	CU_ASSERT_TRUE(harness_sum(h).executed > 1 && harness_sum(h).executed < metric("nodes") / 10);
	harness_close(h);
	h = must_open("sched_mgws", "workload_uts", "tree=custom depth=7 create=eager", 2, 1);
	CU_ASSERT_EQUAL(harness_run(h, &err), 0);
	CU_ASSERT_EQUAL((double)harness_sum(h).executed, metric("nodes"));
	harness_close(h);
}

TEST(uts_wrong)
{
	struct harness *h = right("workload_uts", "tree=custom depth=5 seed=7");
	struct uts_count *n = h->rig.part[LOOM_WORKLOAD].view.worker[0];
	n->nodes++;
	must_be_wrong(h, "nodes");
	n->nodes--;
	n->leaves--;
	must_be_wrong(h, "leaves");
	n->leaves++;
	n->depth = 99;
	must_be_wrong(h, "depth");
	harness_close(h);
	must_be_refused("workload_uts", "tree=custom type=binomial q=0.25 m=4", LOOM_EINVAL, "does not end");
}

/* Every tree of four million nodes has the published number of nodes. */
TEST(uts_published)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	static const char *const trees[] = {NULL};
#else
	static const char *const trees[] = {"tree=T1", "tree=T2", "tree=T3", "tree=T4", "tree=T5", NULL};
#endif
	for (size_t i = 0; trees[i]; i++) {
		struct harness *h = right("workload_uts", trees[i]);
		CU_ASSERT_TRUE(metric("nodes") > 4e6);
		harness_close(h);
	}
}

/* ---- contains --------------------------------------------------------------------------- */

static char folder[TEST_FOLDER];

static const char *at(const char *name)
{
	static char path[4][128];
	static int turn;
	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
	return path[turn];
}

static void write_file(const char *name, const char *text, size_t bytes, int packed)
{
	/* with "T" zlib writes the text without compression */
	gzFile f = gzopen(at(name), packed ? "wb" : "wbT");
	fake_must(f && (!bytes || gzwrite(f, text, (unsigned)bytes) == (int)bytes) && gzclose(f) == Z_OK, name, NULL);
}

#define TEXT(name, text, packed) write_file(name, text, strlen(text), packed)

/* Writes a file in which a word is across a boundary between two pieces that a task reads. */
static void write_across(const char *name, size_t where, const char *word)
{
	static char text[200000];
	memset(text, '.', sizeof(text));
	memcpy(text + where, word, strlen(word));
	write_file(name, text, sizeof(text), 1);
}

static void make_folder(void)
{
	test_folder(folder);
	fake_must(!mkdir(at("sub"), 0700), "mkdir", NULL);
}

static const char *opts(const char *more)
{
	static char text[4][512];
	static int turn;
	turn = (turn + 1) % 4;
	snprintf(text[turn], sizeof(text[turn]), "path=%s %s", folder, more);
	return text[turn];
}

static void expect(const char *more, double documents, double matches, double unreadable)
{
	static const char *const loads[] = {"load=task", "load=ahead"};
	for (int i = 0; i < 2; i++) {
		char all[256];
		snprintf(all, sizeof(all), "%s %s", more, loads[i]);
		run_everywhere("workload_contains", opts(all));
		CU_ASSERT_EQUAL(metric("documents"), documents);
		CU_ASSERT_EQUAL(metric("matches"), matches);
		CU_ASSERT_EQUAL(metric("unreadable"), unreadable);
	}
}

TEST(contains)
{
	make_folder();
	TEXT("a.txt", "hier und dort", 0);
	TEXT("b.gz", "unter der Hand", 1);
	TEXT("sub/c.gz", "und", 1);
	TEXT("sub/d.gz", "\xc3\xbcund und_ 1und", 1); /* here "und" is never a word of its own */
	TEXT("sub/e.gz", "rund, (und)", 1);
	TEXT("sub/empty", "", 0);
	expect("word=und", 6, 4, 0);
	expect("word=und match=word", 6, 3, 0);
	expect("word=und glob=*.gz", 4, 3, 0);
	expect("word=und limit=2", 2, 1, 0);
	expect("word=nirgends", 6, 0, 0);
	/* A symbolic link to a file is a document. Links to folders and broken links are left out. */
	fake_must(!symlink("sub/c.gz", at("f.gz")) && !symlink("sub", at("g.gz")) && !symlink("nowhere", at("h.gz")),
		  "symlink", NULL);
	expect("word=und", 7, 5, 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(fake.log, "left out"));
	fake.log[0] = 0;
	test_remove(folder);
}

/* The word is at every position around the boundaries between pieces. Similar words must not match. */
TEST(contains_pieces)
{
	make_folder();
	char name[32];
	for (size_t i = 0; i < 24; i++) {
		snprintf(name, sizeof(name), "%02zu.gz", i);
		write_across(name, 65536 - 12 + i, i % 2 ? "zwischen" : "xzwischen");
	}
	expect("word=zwischen", 24, 24, 0);
	expect("word=zwischen match=word", 24, 12, 0);
	test_remove(folder);
}

TEST(contains_damaged)
{
	make_folder();
	write_across("a.gz", 10, "Wort");
	write_across("b.gz", 199000, "Wort");
	fake_must(!truncate(at("a.gz"), 150) && !truncate(at("b.gz"), 150), "truncate", NULL);
	struct harness *h = right("workload_contains", opts("word=Wort"));
	CU_ASSERT_TRUE(metric("unreadable") >= 1 && metric("matches") <= 1);
	harness_close(h);
	test_remove(folder);
}

TEST(contains_index)
{
	make_folder();
	TEXT("text", "erstens ja|zweitens nein|drittens ja", 0);
	TEXT("text.gz", "erstens ja|zweitens nein|drittens ja", 1);
	TEXT("index", "# two of three\n0 10\n11 13\n\n25 11\n", 0);
	for (int i = 0; i < 4; i++) {
		char all[256];
		snprintf(all, sizeof(all), "path=%s index=%s word=ja load=%s", at(i & 1 ? "text.gz" : "text"),
			 at("index"), i & 2 ? "ahead" : "task");
		run_everywhere("workload_contains", all);
		CU_ASSERT_EQUAL(metric("documents"), 3);
		CU_ASSERT_EQUAL(metric("matches"), 2);
	}
	test_remove(folder);
}

/* The document is at such a large offset in its file that the reader must seek. Reading up to the document would take
 * hours. */
TEST(contains_far)
{
	make_folder();
	TEXT("text", "", 0);
	TEXT("index", "4398046511104 2\n4398046511106 2\n", 0);
	FILE *f = fopen(at("text"), "r+");
	fake_must(f != NULL, "fopen", NULL);
	if (fseeko(f, (off_t)1 << 42, SEEK_SET) || fputs("jane", f) < 0 || fclose(f)) {
		fprintf(stderr, "left out: this folder holds no sparse file of 4 TiB\n");
		test_remove(folder);
		return;
	}
	for (int ahead = 0; ahead < 2; ahead++) {
		char all[256];
		snprintf(all, sizeof(all), "path=%s index=%s word=ja load=%s", at("text"), at("index"),
			 ahead ? "ahead" : "task");
		run_everywhere("workload_contains", all);
		CU_ASSERT_EQUAL(metric("documents"), 2);
		CU_ASSERT_EQUAL(metric("matches"), 1);
	}
	test_remove(folder);
}

static void contains_refused(const char *more, int code, const char *says)
{
	must_be_refused("workload_contains", opts(more), code, says);
}

/* Tests generated documents. The share of documents with the word is that of the thesis. The same seed gives the same
 * documents. Tasks that generate their text find as many matches as tasks that read it from memory. The first documents
 * are the longest. On a machine with two cores, two threads load and check 600 documents. */
TEST(contains_generated)
{
	static const char *const loads[] = {"task", "ahead"}, *const seeds[] = {"1", "2"};
	double matches[2][2], bytes[2];
	char all[200];
	for (int seed = 0; seed < 2; seed++)
		for (int load = 0; load < 2; load++) {
			snprintf(all, sizeof(all), "word=zwischen documents=600 drift=8 seed=%s load=%s", seeds[seed],
				 loads[load]);
			run_everywhere("workload_contains", all);
			CU_ASSERT_EQUAL(metric("documents"), 600);
			CU_ASSERT_EQUAL(metric("unreadable"), 0);
			matches[seed][load] = metric("matches");
			bytes[seed] = metric("bytes");
		}
	for (int seed = 0; seed < 2; seed++) {
		CU_ASSERT_EQUAL(matches[seed][0], matches[seed][1]);
		CU_ASSERT(matches[seed][0] > 600 * 0.34 && matches[seed][0] < 600 * 0.46);
	}
	CU_ASSERT_NOT_EQUAL(bytes[0], bytes[1]);
	run_everywhere("workload_contains", "word=zwischen documents=600 drift=8 limit=300");
	CU_ASSERT(metric("bytes") < bytes[0]);
	static const char *const words[] = {"x", "ee", "n", "ü"}; /* inside of words they must not match */
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		snprintf(all, sizeof(all), "documents=200 load=ahead word=%s", words[i]);
		run_everywhere("workload_contains", all);
		CU_ASSERT(metric("matches") > 200 * 0.25 && metric("matches") < 200 * 0.55);
	}
	must_be_refused("workload_contains", "word=x", LOOM_EINVAL, "no documents");
}

TEST(contains_refusals)
{
	make_folder();
	char path[256];
	TEXT("text", "text", 0);
	TEXT("index", "0 1\n1 x\n", 0);
	contains_refused("word=x glob=*.gz", LOOM_ENOENT, "no file in");
	contains_refused("word=", LOOM_EINVAL, "0 bytes");
	snprintf(path, sizeof(path), "word=x path=%s", at("none"));
	contains_refused(path, LOOM_ENOENT, "No such file");
	snprintf(path, sizeof(path), "word=x index=%s", at("index"));
	contains_refused(path, LOOM_EINVAL, "is for one file");
	snprintf(path, sizeof(path), "word=x index=%s path=%s", at("index"), at("text"));
	contains_refused(path, LOOM_EINVAL, "index:2:");
	test_remove(folder);
}

/* Returns the address of a document's result, on the device that searched the document. */
static uint32_t *contains_found_at(struct harness *h, size_t document)
{
	uint32_t *first = h->rig.part[LOOM_WORKLOAD].view.device[0],
		 *second = h->rig.part[LOOM_WORKLOAD].view.device[1];
	return first[document] != ~0u ? &first[document] : &second[document];
}

TEST(contains_wrong)
{
	make_folder();
	TEXT("a", "ein Wort", 0);
	TEXT("b", "kein Wort", 0);
	TEXT("c", "nichts", 0);
	struct harness *h = right("workload_contains", opts("word=Wort"));
	*contains_found_at(h, 2) = CONTAINS_YES;
	must_be_wrong(h, "expected 2 documents, found 3");
	*contains_found_at(h, 2) = CONTAINS_NO;
	*contains_found_at(h, 1) = ~0u;
	must_be_wrong(h, "was not searched");
	for (uint32_t d = 0; d < 2; d++)
		((uint32_t *)h->rig.part[LOOM_WORKLOAD].view.device[d])[1] = CONTAINS_YES;
	must_be_wrong(h, "was searched twice");
	harness_close(h);
	/* The texts are changed after loading. The check reads them again. */

	h = right("workload_contains", opts("word=Wort load=ahead"));
	struct contains_job *job = h->rig.part[LOOM_WORKLOAD].view.global;
	struct contains_document *d = (struct contains_document *)((char *)job + job->list);
	memset((char *)job + d[0].text, '-', d[0].text_bytes);
	CU_ASSERT_EQUAL(harness_run(h, &err), LOOM_EWRONG);
	harness_close(h);
	test_remove(folder);
}

TEST_MAIN("workloads", 120)
