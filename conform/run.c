/* SPDX-License-Identifier: Apache-2.0 */
/* The parent process: starts a process per test, several at a time, and reports the outcomes in order. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "inspect/child.h"
#include "plugin/identity.h"
#include "conform/trial.h"

struct job {
	const struct loom__test *test;
	struct loom__outcome outcome;
	int done;
};

struct work {
	const struct loom__validation *v;
	struct job *job;
	size_t jobs, next, reported;
	pthread_mutex_t lock;
};

const char *loom__ending_name(enum loom__ending ending)
{
	static const char *const name[] = {"passed", "failed", "skipped", "crashed", "timeout"};
	return ending < LOOM__ENDINGS ? name[ending] : "?";
}

/* ---- selection ------------------------------------------------------------------------------- */

int loom__test_suits(const struct loom__test *test, enum loom_kind kind)
{
	if (kind == LOOM_KIND_NONE)
		return 1;
	if (test->flags & LOOM__TEST_POLICY)
		return kind != LOOM_DEVICE && kind != LOOM_TRANSPORT;
	return test->kind == LOOM_KIND_NONE || test->kind == kind;
}

/* Both "sched" and "sched.stop" name sched.stop. */
static int named(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t length = strlen(list[i]);
		if (!strncmp(name, list[i], length) && (!name[length] || name[length] == '.'))
			return 1;
	}
	return 0;
}

static int wanted(const struct loom__validation *v, const struct loom__test *test, enum loom_kind kind)
{
	if (!loom__test_suits(test, kind) || named(test->name, v->skip, v->skips))
		return 0;
	if (v->onlys)
		return named(test->name, v->only, v->onlys);
	return test->level <= v->level || (v->fuzz_ns && test->flags & LOOM__TEST_FUZZ);
}

void loom__validate_each(enum loom_kind kind, loom__test_fn *fn, void *arg)
{
	size_t n;
	const struct loom__test *test = loom__suite(&n);
	for (size_t i = 0; i < n; i++)
		if (loom__test_suits(&test[i], kind))
			fn(arg, test[i].name, test[i].what, test[i].level);
}

/* ---- one test -------------------------------------------------------------------------------- */

enum { ARGS = 16 };

static const char **arguments(const struct loom__validation *v, const struct loom__test *test, unsigned limit_ms,
			      char number[4][24])
{
	const char **argv = calloc(ARGS + 2 * v->sets, sizeof(*argv));
	size_t n = 0;
	if (!argv)
		return NULL;
	uint64_t fuzz = v->fuzz_ns ? v->fuzz_ns : 10 * LOOM__SECOND;
	snprintf(number[0], sizeof(number[0]), "%d", CHILD_ANSWER);
	snprintf(number[1], sizeof(number[1]), "%llu", (unsigned long long)v->seed);
	snprintf(number[2], sizeof(number[2]), "%llu", (unsigned long long)fuzz);
	snprintf(number[3], sizeof(number[3]), "%u", limit_ms);
	const char *const head[] = {v->self,   "validate-test", test->name, number[0], v->path,  "--seed",
				    number[1], "--fuzz",        number[2],  "--limit", number[3]};
	for (; n < LOOM__COUNT(head); n++)
		argv[n] = head[n];
	if (v->with) {
		argv[n++] = "--with";
		argv[n++] = v->with;
	}
	for (size_t i = 0; i < v->sets; i++) {
		argv[n++] = "--set";
		argv[n++] = v->set[i];
	}
	return argv;
}

/* The lines of an answer before its verdict, each "" if there is none. */
struct head {
	const char *of, *crash, *at; /* the case; how the process crashed; offset and file of the code */
};

/* Reads the lines "seed N", "case TEXT", "crash TEXT" and "at OFFSET FILE". Returns the rest. The case comes twice if
 * the alarm before the time limit came, and then the verdict after all. */
static char *take_head(char *text, uint64_t *seed, struct head *h)
{
	static const char *const word[] = {"seed ", "case ", "crash ", "at "};
	const char *given[] = {"", "", "", ""};
	for (size_t i = 0; text && i < LOOM__COUNT(word); i++)
		if (!strncmp(text, word[i], strlen(word[i]))) {
			given[i] = text + strlen(word[i]);
			text += strcspn(text, "\n");
			if (*text)
				*text++ = 0;
			i = SIZE_MAX; /* looks for all words again */
		}
	*seed = *given[0] ? strtoull(given[0], NULL, 10) : *seed;
	*h = (struct head){given[1], given[2], given[3]};
	return text;
}

/* Appends the function and the line of "OFFSET FILE", if the program addr2line is there and finds them in the file. */
static void add_line(struct loom__outcome *o, const char *at)
{
	char offset[24], function[80], line[120];
	int n = 0;
	if (sscanf(at, "%23s %n", offset, &n) != 1)
		return;
	const char *const argv[] = {"addr2line", "-fse", at + n, offset, NULL};
	struct loom__child c;
	struct loom_error err;
	size_t used = strlen(o->why);
	if (!loom__child_run(argv, 10000, &c, &err) && !c.timed_out && !c.status && c.noise.at &&
	    sscanf(c.noise.at, "%79s %119s", function, line) == 2 && *function != '?' && used < sizeof(o->why))
		snprintf(o->why + used, sizeof(o->why) - used, *line == '?' ? " (%s)" : " (%s, %s)", function, line);
	loom__child_free(&c);
}

/* Appends the most informative line of the output: that of a sanitizer or an assertion. */
static void add_noise(struct loom__outcome *o, const struct loom__text *noise)
{
	const char *text = noise->at ? noise->at : "";
	const char *best = strstr(text, "ERROR: ");
	if (!best)
		best = strstr(text, "WARNING: ThreadSanitizer");
	if (!best)
		best = text + strspn(text, "\r\n\t =");
	size_t used = strlen(o->why), n = strcspn(best, "\r\n");
	if (!n || used + 20 >= sizeof(o->why))
		return;
	snprintf(o->why + used, sizeof(o->why) - used, ", saying '%.*s'", (int)(n > 300 ? 300 : n), best);
	loom__clean(o->why, sizeof(o->why));
}

static void judge(const struct loom__child *c, unsigned limit_ms, struct loom__outcome *o)
{
	static const enum loom__ending known[] = {LOOM__PASSED, LOOM__FAILED, LOOM__SKIPPED};
	struct head head;
	char *text = take_head(c->answer.at, &o->seed, &head);
	const char *of = head.of;
	int ended = !c->timed_out && (c->status == -1 || (WIFEXITED(c->status) && !WEXITSTATUS(c->status)));
	for (size_t i = 0; text && ended && i < LOOM__COUNT(known); i++) {
		const char *name = loom__ending_name(known[i]);
		size_t n = strlen(name);
		if (strncmp(text, name, n) || text[n] != '\n')
			continue;
		o->ending = known[i];
		o->why[0] = 0;
		snprintf(o->why, sizeof(o->why), "%s%s%s%s", text + n + 1, *of && o->ending == LOOM__FAILED ? " [" : "",
			 o->ending == LOOM__FAILED ? of : "", *of && o->ending == LOOM__FAILED ? "]" : "");
		loom__clean(o->why, sizeof(o->why));
		return;
	}
	o->ending = c->timed_out ? LOOM__TIMEOUT : LOOM__CRASHED;
	if (*head.crash && !c->timed_out) {
		snprintf(o->why, sizeof(o->why), "%s", head.crash);
		add_line(o, head.at);
	} else {
		loom__child_fate(c, limit_ms, o->why, sizeof(o->why));
	}
	add_noise(o, &c->noise);
	size_t used = strlen(o->why);
	if (*of && used < sizeof(o->why))
		snprintf(o->why + used, sizeof(o->why) - used, " [%s]", of);
	loom__clean(o->why, sizeof(o->why));
}

static int run_one(const struct loom__validation *v, struct job *j)
{
	char number[4][24];
	struct loom_error err;
	struct loom__child child;
	struct loom__outcome *o = &j->outcome;
	unsigned limit = v->limit_ms ? v->limit_ms : j->test->limit_ms;
	if (j->test->flags & LOOM__TEST_FUZZ)
		limit += (unsigned)((v->fuzz_ns ? v->fuzz_ns : 10 * LOOM__SECOND) / 1000000u);
	const char **argv = arguments(v, j->test, limit, number);
	if (!argv)
		return LOOM_ENOMEM;
	uint64_t begin = loom__now_ns();
	o->seed = v->seed;
	int rc = loom__child_run(argv, limit, &child, &err);
	if (rc) {
		o->ending = LOOM__CRASHED;
		snprintf(o->why, sizeof(o->why), "%s", err.text);
	} else {
		judge(&child, limit, o);
	}
	o->seconds = (double)(loom__now_ns() - begin) / 1e9;
	loom__child_free(&child);
	free(argv);
	return 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void report(struct work *w)
{
	for (; w->reported < w->jobs && w->job[w->reported].done; w->reported++)
		if (w->v->ended)
			w->v->ended(w->v->arg, &w->job[w->reported].outcome);
}

static void *worker(void *arg)
{
	struct work *w = arg;
	pthread_mutex_lock(&w->lock);
	while (w->next < w->jobs) {
		struct job *j = &w->job[w->next++];
		pthread_mutex_unlock(&w->lock);
		run_one(w->v, j);
		pthread_mutex_lock(&w->lock);
		j->done = 1;
		report(w);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int loom__validate(const struct loom__validation *v, enum loom_kind kind, struct loom__outcome **list, size_t *n,
		   struct loom_error *err)
{
	size_t all;
	const struct loom__test *test = loom__suite(&all);
	struct work w = {.v = v, .lock = PTHREAD_MUTEX_INITIALIZER};
	pthread_t thread[64];
	unsigned threads = 0, most = v->jobs ? v->jobs : 1;
	w.job = calloc(all, sizeof(*w.job));
	*list = calloc(all, sizeof(**list));
	if (!w.job || !*list) {
		free(w.job);
		free(*list);
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < all; i++)
		if (wanted(v, &test[i], kind))
			w.job[w.jobs++] = (struct job){.test = &test[i],
						       .outcome = {.test = test[i].name,
								   .what = test[i].what,
								   .level = test[i].level,
								   /* CRASHED, until a child answers */
								   .ending = LOOM__CRASHED,
								   .why = "it was not run"}};
	most = most > LOOM__COUNT(thread) ? LOOM__COUNT(thread) : most;
	/* The calling thread starts the children, because a child dies with the thread that started it. */
	while (threads + 1 < most && !pthread_create(&thread[threads], NULL, worker, &w))
		threads++;
	worker(&w);
	while (threads > 0)
		pthread_join(thread[--threads], NULL);
	for (size_t i = 0; i < w.jobs; i++)
		(*list)[i] = w.job[i].outcome;
	*n = w.jobs;
	free(w.job);
	return 0;
}
