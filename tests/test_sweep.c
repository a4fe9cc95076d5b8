/* SPDX-License-Identifier: Apache-2.0 */
/* Tests sweeps without plug-ins. Designs must cover the promised pairs of levels, and constraints must exclude the
 * configurations that they name. A sweep that is killed after any byte of its journal and resumed must end with the
 * same configurations, without a sample twice. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sweep/design.h"
#include "sweep/spec.h"
#include "sweep/sweep.h"

/* ---- configurations
 * -----------------------------------------------------------------------------*/

static void make_factors(struct loom__factor *f, const char *const *text, size_t n)
{
	struct loom_error err;
	for (size_t i = 0; i < n; i++)
		CU_ASSERT_EQUAL_FATAL(loom__factor_parse(text[i], &f[i], &err), 0);
}

static void free_factors(struct loom__factor *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		loom__factor_free(&f[i]);
}

static const char *const few[] = {"a.x=1,2,3", "a.y=p,q", "a.z=u,v,w,t"};

TEST(all_combinations)
{
	struct loom__factor f[3];
	struct loom__configs configs;
	struct loom_error err;
	make_factors(f, few, 3);
	CU_ASSERT_EQUAL_FATAL(loom__configs_make(f, 3, &configs, &err), 0);
	CU_ASSERT_EQUAL_FATAL(configs.count, 24);
	for (size_t i = 0; i < configs.count; i++)
		for (size_t k = 0; k < i; k++)
			CU_ASSERT(memcmp(configs.pick + 3 * i, configs.pick + 3 * k, 3 * sizeof(*configs.pick)) != 0);
	loom__configs_free(&configs);
	free_factors(f, 3);
}

TEST(too_many)
{
	static const char text[] = "a.x=1,2,3,4,5,6,7,8,9,10";
	struct loom__factor f[8];
	struct loom__configs configs;
	struct loom_error err;
	for (size_t i = 0; i < 8; i++)
		make_factors(&f[i], (const char *const[]){text}, 1);
	REFUSED(loom__configs_make(f, 8, &configs, &err), LOOM_EINVAL, err, "100000000&vary less");
	free_factors(f, 8);
}

/* ---- constraints
 * --------------------------------------------------------------------------------*/

TEST(constraints)
{
	static const char *const text[] = {"run.devices=cpu:0,cpu:0 cpu:1", "s.use=mgws,static",
					   "s.n=\"a,b\",c"};
	struct loom__factor f[3];
	struct loom__constraint c = {0};
	struct loom_error err;
	make_factors(f, text, 3);
	CU_ASSERT_EQUAL_FATAL(
	    loom__constraint_parse("run.devices=cpu:0 cpu:1, s.use=static: one: reason", NULL, 0, f, 3,
				   &c, &err),
	    0);
	CU_ASSERT_STRING_EQUAL(c.reason, "one: reason");
	CU_ASSERT_PTR_NOT_NULL(loom__constraint_of(&c, 1, (size_t[]){1, 1, 0}));
	CU_ASSERT_PTR_NULL(loom__constraint_of(&c, 1, (size_t[]){0, 1, 0}));
	CU_ASSERT_PTR_NULL(loom__constraint_of(&c, 1, (size_t[]){1, 0, 0}));
	loom__constraint_free(&c);
	CU_ASSERT_EQUAL_FATAL(loom__constraint_parse("s.n=\"a,b\"", NULL, 1, f, 3, &c, &err), 0);
	CU_ASSERT_STRING_EQUAL(c.reason, "--only s.n=\"a,b\"");
	CU_ASSERT_PTR_NULL(loom__constraint_of(&c, 1, (size_t[]){0, 0, 0}));
	CU_ASSERT_PTR_NOT_NULL(loom__constraint_of(&c, 1, (size_t[]){0, 0, 1}));
	loom__constraint_free(&c);
	static const struct {
		const char *text, *says;
	} bad[] = {{"", "form"},
		   {"s.use", "form"},
		   {"s.us=mgws", "not varied"},
		   {"s.use=sttic", "static"},
		   {"s.use=mgws,: x", "form"},
		   {": reason", "form"}};
	for (size_t i = 0; i < LOOM__COUNT(bad); i++) {
		CU_ASSERT(loom__constraint_parse(bad[i].text, NULL, 0, f, 3, &c, &err) != 0);
		CU_ASSERT(test_says(err.text, bad[i].says));
	}
	free_factors(f, 3);
}

/* ---- what a conf says
 * ---------------------------------------------------------------------------*/

static int read_spec(const char *text, struct loom_config **cfg, struct loom__sweep_spec *spec, char *said,
		     size_t size)
{
	struct loom__diag diag = {0};
	struct loom__text t = {0};
	CU_ASSERT_EQUAL_FATAL(loom_config_create(cfg, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(loom__config_read_text(*cfg, "t.ini", text, strlen(text), &diag), 0);
	int rc = loom__sweep_spec_read(*cfg, spec, &diag);
	loom__diag_text(&diag, &t);
	snprintf(said, size, "%s", t.at ? t.at : "");
	loom__text_free(&t);
	loom__diag_free(&diag);
	return rc;
}

static const char *value_of(const struct loom_config *cfg, const char *section, const char *key)
{
	const struct loom__entry *e = loom__config_get(cfg, section, key);
	return e ? e->value : "none";
}

TEST(spec)
{
	static const char text[] =
	    "[sweep]\nseed = 7\n[sweep.a.b]\nc = 1, x y\n[sweep.points]\n"
	    "Fast = s.k = v,s.l=\"p,q\"\nplain =\n[sweep.only]\nthese = point=Fast|plain, a.b.c=1\n";
	struct loom_config *cfg, *config;
	struct loom__sweep_spec spec;
	struct loom__diag diag = {0};
	char said[500];
	/* A list that begins with a quote is quoted as a whole. */
	CU_ASSERT_EQUAL_FATAL(read_spec("[sweep.a.b]\nc = '\"2,3\", 1'\n", &cfg, &spec, said, sizeof(said)), 0);
	CU_ASSERT_STRING_EQUAL(spec.factor[0].value[0], "2,3");
	loom__sweep_spec_free(&spec);
	loom_config_destroy(cfg);
	CU_ASSERT_EQUAL_FATAL(read_spec(text, &cfg, &spec, said, sizeof(said)), 0);
	CU_ASSERT_EQUAL(spec.opts.seed, 7);
	CU_ASSERT_EQUAL_FATAL(spec.factors, 2);
	CU_ASSERT_STRING_EQUAL(spec.factor[0].key, "a.b.c");
	CU_ASSERT_STRING_EQUAL(spec.factor[1].key, LOOM__SWEEP_POINT);
	CU_ASSERT_STRING_EQUAL(spec.factor[1].value[0], "Fast"); /* the label keeps the spelling of the conf */
	CU_ASSERT_STRING_EQUAL(spec.constraint[0].reason, "these");
	/* Applying a configuration sets its values, each with its position in the conf. */
	CU_ASSERT_EQUAL_FATAL(loom_config_create(&config, NULL), 0);
	loom__sweep_spec_apply(&spec, (size_t[]){0, 0}, config, &diag);
	CU_ASSERT_EQUAL(diag.errors, 0);
	CU_ASSERT_STRING_EQUAL(value_of(config, "s", "k"), "v");
	CU_ASSERT_STRING_EQUAL(value_of(config, "s", "l"), "p,q");
	CU_ASSERT_STRING_EQUAL(value_of(config, "a.b", "c"), "1");
	CU_ASSERT_EQUAL(loom__config_get(config, "s", "k")->line, 6);
	loom__sweep_spec_overruled(&spec, (size_t[]){0, 0}, config, &diag);
	CU_ASSERT_EQUAL(diag.errors, 0);
	loom__config_set_at(config, "s.k=w", &(struct loom__entry){.source = LOOM_FROM_COMMAND_LINE, .file = "--set"}, &diag);
	loom__sweep_spec_overruled(&spec, (size_t[]){0, 0}, config, &diag);
	CU_ASSERT_EQUAL(diag.errors, 1);
	loom__sweep_spec_overruled(&spec, (size_t[]){0, 1}, config, &diag); /* this point does not set the value */
	CU_ASSERT_EQUAL(diag.errors, 1);
	loom__diag_free(&diag);
	loom_config_destroy(config);
	loom__sweep_spec_free(&spec);
	loom_config_destroy(cfg);
}

TEST(spec_mistakes)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
	    {"[sweep]\nshow = valu\n", "t.ini:2:8: error: show in [sweep]: 'valu'"},
	    {"[sweep.s]\nk = 1,1\n", "t.ini:2:5: error: s.k=1,1: the same value twice"},
	    {"[sweep.points]\na = k=1\n", "t.ini:2:5: error: 'k=1' is not of the form"},
	    {"[sweep.points]\na = s.k\n", "t.ini:2:5: error: 's.k' is not of the form"},
	    {"[sweep.points]\na = s.k=1, S.K =2\n", "t.ini:2:5: error: point 'a' sets S.K twice"},
	    {"[sweep.points]\na = s.k=1\n[sweep.s]\nk = 2\n", "t.ini:4:5: error: s.k is varied by a list, and set by"},
	    {"[sweep.s]\nk = 1, 2\n[sweep.skip]\nno = s.k=3\n", "t.ini:4:6: error: constraint 's.k=3'"},
	    {"[sweep]\npareto = a\n", "t.ini:2:10: error: 'a': a front needs two metrics"},
	    {"[sweep]\nreport = x\n", "t.ini:2:10: error: 'x': the name of a report"},
	    {"[sweep]\nplot = forest,hat\n", "t.ini:2:8: error: no plot 'hat'"},
	};
	for (size_t i = 0; i < LOOM__COUNT(bad); i++) {
		struct loom_config *cfg;
		struct loom__sweep_spec spec;
		char said[500];
		CU_ASSERT_EQUAL(read_spec(bad[i].text, &cfg, &spec, said, sizeof(said)), LOOM_EINVAL);
		CU_ASSERT(test_says(said, bad[i].says));
		loom_config_destroy(cfg);
	}
}

/* ---- running
 * ------------------------------------------------------------------------------------*/

#define CONFIGS   5
#define SAMPLES 3

struct fake {
	int visits, opened, taken;
	int order[256];
};

static int fake_open(void *arg, size_t config, void **run, struct loom_error *err)
{
	struct fake *k = arg;
	k->order[k->visits++ % 256] = (int)config;
	(void)err;
	k->opened++;
	*run = &k->opened;
	return 0;
}

static int fake_sample(void *arg, void *run, cJSON *line, struct loom_error *err)
{
	struct fake *k = arg;
	(void)run, (void)err;
	k->taken++;
	cJSON_AddNumberToObject(line, "seconds", 0.1);
	cJSON_AddNumberToObject(cJSON_AddObjectToObject(line, "metrics"), "seconds", 0.1);
	return 0;
}

static void fake_close(void *arg, void *run)
{
	(void)arg;
	--*(int *)run;
}

static const struct loom__sweep_ops fake_ops = {fake_open, fake_sample, fake_close, NULL};

static void make_sweep(struct loom__sweep *s, struct loom__journal *j, struct fake *k)
{
	*s = (struct loom__sweep){.config = calloc(CONFIGS + 1, sizeof(*s->config)),
				  .configs = CONFIGS + 1,
				  .samples = SAMPLES,
				  .seed = 3,
				  .journal = j,
				  .ops = &fake_ops,
				  .arg = k};
	for (int i = 0; i <= CONFIGS; i++) {
		struct loom__sweep_config *c = &s->config[i];
		snprintf(c->id, sizeof(c->id), "configuration%d", i);
		c->values = cJSON_CreateObject();
		cJSON_AddNumberToObject(c->values, "a.b", i);
	}
	s->config[CONFIGS].skipped = strdup("left out");
}

static cJSON *make_header(double seed)
{
	cJSON *o = cJSON_CreateObject();
	cJSON_AddStringToObject(o, "schema", LOOM__SWEEP_SCHEMA);
	cJSON_AddNumberToObject(o, "seed", seed);
	return o;
}

static int part(const char *path, int resume, struct fake *k, struct loom_error *err)
{
	struct loom__journal j;
	struct loom__sweep s;
	cJSON *head = make_header(1);
	make_sweep(&s, &j, k);
	int rc = loom__journal_open(path, NULL, resume, &j, err);
	if (!rc) {
		rc = loom__sweep_resume(&s, head, err);
		if (!rc && !j.before.root)
			rc = loom__journal_add(&j, head, err);
		if (!rc)
			rc = loom__sweep_run(&s, err);
		loom__journal_close(&j);
	}
	cJSON_Delete(head);
	loom__sweep_free(&s);
	return rc;
}

/* Checks that every sample of every configuration, the end of each configuration, and the skipped configuration occur
 * once. */
static int is_complete(const char *path)
{
	struct loom__doc doc;
	struct loom_error err;
	int seen[CONFIGS][SAMPLES] = {{0}}, done[CONFIGS] = {0}, skipped = 0, good = 1;
	size_t at = 0;
	if (loom__doc_read(path, &doc, &err))
		return 0;
	for (cJSON *line; (line = loom__doc_line(&doc, &at)); cJSON_Delete(line)) {
		int config = atoi(loom__json_text(line, "configuration") + strlen("configuration"));
		double sample = loom__json_number(line, "sample");
		if (config < CONFIGS && sample >= 0 && sample < SAMPLES)
			seen[config][(int)sample]++;
		if (config < CONFIGS && loom__json_true(line, "done"))
			done[config]++;
		skipped += *loom__json_text(line, "skipped") != 0;
	}
	for (int i = 0; i < CONFIGS; i++) {
		good = good && done[i] == 1;
		for (int k = 0; k < SAMPLES; k++)
			good = good && seen[i][k] == 1;
	}
	good = good && skipped == 1 && !doc.torn;
	loom__doc_free(&doc);
	return good;
}

static char path[64];

static void fresh(void)
{
	strcpy(path, "/tmp/gpuloom-sweep-XXXXXX");
	int fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
}

static void write_prefix(const char *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_TRUNC);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_FATAL(write(fd, bytes, n) == (ssize_t)n);
	close(fd);
}

TEST(run)
{
	struct fake k = {0};
	struct loom_error err = {0};
	fresh();
	CU_ASSERT_EQUAL_FATAL(part(path, 0, &k, &err), 0);
	CU_ASSERT(is_complete(path));
	CU_ASSERT_EQUAL(k.taken, CONFIGS * SAMPLES);
	CU_ASSERT_EQUAL(k.opened, 0);
	/* The sweep runs in rounds. The first round visits every configuration once. */
	int seen[CONFIGS] = {0};
	for (int i = 0; i < CONFIGS; i++)
		seen[k.order[i]]++;
	for (int i = 0; i < CONFIGS; i++)
		CU_ASSERT_EQUAL(seen[i], 1);
	/* A second call is rejected without --resume. With --resume no work is left. */
	REFUSED(part(path, 0, &k, &err), LOOM_EINVAL, err, "--resume");
	CU_ASSERT_EQUAL(part(path, 1, &k, &err), 0);
	CU_ASSERT_EQUAL(k.taken, CONFIGS * SAMPLES);
	CU_ASSERT(is_complete(path));
	unlink(path);
}

/* The sweep is killed after every possible byte of the file, then resumed. */
TEST(killed_at_every_byte)
{
	struct fake k = {0};
	struct loom_error err = {0};
	char *bytes;
	size_t n, bad = 0;
	fresh();
	CU_ASSERT_EQUAL_FATAL(part(path, 0, &k, &err), 0);
	CU_ASSERT_EQUAL_FATAL(loom__read_file(path, 1 << 20, &bytes, &n, &err), 0);
	for (size_t cut = 0; cut <= n; cut++) {
		write_prefix(bytes, cut);
		k.taken = 0;
		if (part(path, 1, &k, &err) || !is_complete(path)) {
			if (!bad++)
				fprintf(stderr, "cut at %zu: %s\n", cut, err.text);
		}
	}
	CU_ASSERT_EQUAL(bad, 0);
	free(bytes);
	unlink(path);
}

TEST(refusals)
{
	struct fake k = {0};
	struct loom_error err = {0};
	static const struct {
		const char *text, *says;
	} given[] = {
	    {"{\"schema\":\"gpuloom.sweep/1\",\"seed\":2}\n", "other seed"},
	    {"{\"schema\":\"gpuloom.sweep/"
	     "1\",\"seed\":1}\n{\"configuration\":\"other\",\"sample\":0}\n",
	     "has other configurations"},
	    {"{\"schema\":\"gpuloom.result/1\"}\n", "not the file of a sweep"},
	    {"a text that must not be lost, without any newline at all, longer than "
	     "a line",
	     "not the file of a sweep"},
	    {"notes\n", "not JSON"},
	};
	for (size_t i = 0; i < LOOM__COUNT(given); i++) {
		char *bytes;
		size_t n;
		fresh();
		write_prefix(given[i].text, strlen(given[i].text));
		CU_ASSERT(part(path, 1, &k, &err) != 0);
		CU_ASSERT(test_says(err.text, given[i].says));
		CU_ASSERT_EQUAL_FATAL(loom__read_file(path, 1 << 20, &bytes, &n, &err), 0);
		CU_ASSERT_STRING_EQUAL(bytes, given[i].text); /* the file is unchanged */
		free(bytes);
		unlink(path);
	}
	CU_ASSERT_EQUAL(part("/tmp", 1, &k, &err), LOOM_EIO);
}

static int slow_sample(void *arg, void *run, cJSON *line, struct loom_error *err)
{
	usleep(2000);
	return fake_sample(arg, run, line, err);
}

static int slow_open(void *arg, size_t config, void **run, struct loom_error *err)
{
	usleep(100000);
	return fake_open(arg, config, run, err);
}

/* It is expensive to open a stack, so later visits to a configuration take several samples each. A budget ends the
 * sweep without an error. */
/* A line of which the disk has taken only a part is cut before the next line. */
TEST(part_of_a_line)
{
	struct loom__journal j;
	struct loom_error err = {0};
	struct rlimit room, little;
	cJSON *head = make_header(1);
	char *bytes, *line = loom__json_print(head, 0);
	size_t length, each = strlen(line) + 1;
	fresh();
	signal(SIGXFSZ, SIG_IGN);
	CU_ASSERT_EQUAL_FATAL(loom__journal_open(path, NULL, 0, &j, &err), 0);
	CU_ASSERT_EQUAL(loom__journal_add(&j, head, &err), 0);
	getrlimit(RLIMIT_FSIZE, &room);
	little = room;
	little.rlim_cur = each + 5;
	setrlimit(RLIMIT_FSIZE, &little);
	REFUSED(loom__journal_add(&j, head, &err), LOOM_EIO, err, "No space left");
	setrlimit(RLIMIT_FSIZE, &room);
	CU_ASSERT_EQUAL(loom__journal_add(&j, head, &err), 0);
	loom__journal_close(&j);
	CU_ASSERT_EQUAL_FATAL(loom__read_file(path, 1 << 20, &bytes, &length, &err), 0);
	CU_ASSERT(length == 2 * each && !memcmp(bytes, line, each - 1) && !memcmp(bytes + each, line, each - 1));
	free(bytes);
	cJSON_free(line);
	cJSON_Delete(head);
	unlink(path);
}

TEST(visits_and_budget)
{
	static const struct loom__sweep_ops slow = {slow_open, slow_sample, fake_close, NULL};
	struct fake k = {0};
	struct loom__journal j;
	struct loom__sweep s;
	struct loom_error err = {0};
	fresh();
	CU_ASSERT_EQUAL_FATAL(loom__journal_open(path, NULL, 1, &j, &err), 0);
	make_sweep(&s, &j, &k);
	s.ops = &slow;
	s.samples = 20;
	CU_ASSERT_EQUAL(loom__sweep_run(&s, &err), 0);
	CU_ASSERT(s.at_a_time > 1);
	CU_ASSERT(k.visits < CONFIGS * 20);
	CU_ASSERT_EQUAL(k.taken, CONFIGS * 20);
	loom__sweep_free(&s);
	make_sweep(&s, &j, &k);
	s.ops = &slow;
	s.samples = 1000000;
	s.budget_ns = 1000000000;
	CU_ASSERT_EQUAL(loom__sweep_run(&s, &err), 0);
	CU_ASSERT(s.out_of_budget);
	CU_ASSERT(s.at_a_time <= 500); /* one visit must not use up the budget: a sample takes at least 2 ms */
	loom__sweep_free(&s);
	loom__journal_close(&j);
	unlink(path);
}

/* Takes the place of the function of the C library. Fails with this errno, if it is not 0. */
static int flock_errno;
int flock(int fd, int operation)
{
	if (!flock_errno)
		return (int)syscall(SYS_flock, fd, operation);
	errno = flock_errno;
	return -1;
}

/* Only a lock that is held is the sign of another gpuloom. A file system without locks can be used. */
TEST(file_systems_without_locks)
{
	static const int none[] = {ENOSYS, ENOLCK, EOPNOTSUPP, EINVAL};
	struct loom__journal j;
	struct loom_error err = {0};
	fresh();
	for (size_t i = 0; i < COUNT(none); i++) {
		flock_errno = none[i];
		CU_ASSERT_EQUAL(loom__journal_open(path, NULL, LOOM__JOURNAL_NEW, &j, &err), 0);
		CU_ASSERT(j.unlocked);
		loom__journal_close(&j);
	}
	flock_errno = EIO;
	REFUSED(loom__journal_open(path, NULL, LOOM__JOURNAL_NEW, &j, &err), LOOM_EIO, err, "cannot lock");
	flock_errno = EWOULDBLOCK;
	REFUSED(loom__journal_open(path, NULL, LOOM__JOURNAL_NEW, &j, &err), LOOM_EBUSY, err,
		"another gpuloom is writing");
	flock_errno = 0;
	CU_ASSERT_EQUAL(loom__journal_open(path, NULL, LOOM__JOURNAL_NEW, &j, &err), 0);
	CU_ASSERT(!j.unlocked);
	loom__journal_close(&j);
	unlink(path);
}

/* If memory is too short for a line of the journal, the journal reports an error. */
TEST(broken_line_D4)
{
	struct loom__journal j;
	struct loom_error err = {0};
	CU_ASSERT_EQUAL_FATAL(loom__journal_open(NULL, NULL, LOOM__JOURNAL_NEW, &j, &err), 0);
	cJSON *line = cJSON_CreateObject();
	loom__json_miss(line);
	REFUSED(loom__journal_add(&j, line, &err), LOOM_ENOMEM, err, "no memory for a line");
	CU_ASSERT(j.failed);
	cJSON_Delete(line);
	loom__journal_close(&j);
}

TEST_MAIN("sweep", 120)
