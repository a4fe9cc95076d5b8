/* SPDX-License-Identifier: Apache-2.0 */
/* Opens two stacks in one process, each in a thread of its own, runs each stack twice, and closes it. The first run of
 * the first stack is stopped after MS milliseconds. The second run of this stack must still give the right result.
 *
 *   soak_two MS SECTION.KEY=VALUE... -- SECTION.KEY=VALUE...      MS < 0: no run is stopped
 *
 * If a conf has a workload, the workload runs. Otherwise a tree of tasks runs, each of which writes a word.
 * The exit status is 0 (right), 2 (rejected), 3 (wrong), 124 (timed out) or 1 (other). If it is not 0, a message names the stack. */
#include <gpuloom/dev/dev.h>
#include <gpuloom/gpuloom.h>
#include <gpuloom/sched.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TASKS = 2000, RUNS = 3, PATIENCE = 100 };

struct side {
	const char *name;
	char **option;
	int options, status;
	long stop_ms;
	struct loom_stack *stack; /* not NULL while stop_one() may stop the stack; protected by `lock` */
	pthread_mutex_t lock;
	pthread_cond_t opened;
	int ready;
};

/* Task i writes i + 1 at word i, and spawns 2i + 1 and 2i + 2. */
static void leaf(struct loom_ctx *c, const struct loom_task *t)
{
	uint64_t *words = loom_at(c, t->data.ref), i = t->param[0];
	for (uint64_t k = 2 * i + 1; k <= 2 * i + 2 && k < TASKS; k++) {
		struct loom_task child = *t;
		child.param[0] = k;
		if (LOOM_CALL(sched, spawn, c, &child))
			return;
	}
	if (c->lane == 0)
		words[i] = i + 1;
}

static int exit_of(int rc)
{
	switch (rc) {
	case 0:
		return 0;
	case LOOM_EINVAL:
	case LOOM_ENOENT:
	case LOOM_ENOTSUP:
	case LOOM_EUNAVAIL:
		return 2;
	case LOOM_EWRONG:
		return 3;
	case LOOM_ETIMEDOUT:
		return 124;
	default:
		return 1;
	}
}

static int say(const struct side *s, int rc, const struct loom_error *err)
{
	if (rc)
		fprintf(stderr, "soak_two: stack %s: %d: %s\n", s->name, rc, err->text);
	return exit_of(rc);
}

static int once(struct side *s, uint64_t *words, const struct loom_task *root, struct loom_error *err)
{
	if (words) {
		memset(words, 0, TASKS * sizeof(*words));
		int rc = loom_stack_submit(s->stack, root, 1, err);
		if (rc)
			return rc;
	}
	int rc = loom_stack_run(s->stack, NULL, err);
	for (uint64_t i = 0; !rc && words && i < TASKS; i++)
		if (words[i] != i + 1) {
			snprintf(err->text, sizeof(err->text), "word %llu is %llu", (unsigned long long)i,
				 (unsigned long long)words[i]);
			rc = LOOM_EWRONG;
		}
	return rc;
}

/* Runs a stack twice. After a stopped run, some workers may not have left yet. Then the next run is rejected, and is
 * repeated until it is accepted. */
static int runs(struct side *s, uint64_t *words, const struct loom_task *root)
{
	struct loom_error err = {0};
	int rc = 0, stopped = 0;
	for (int i = 0, busy = 0; i < RUNS && !rc; i++) {
		rc = once(s, words, root, &err);
		if (rc == LOOM_EINTR && s->stop_ms >= 0 && !stopped) {
			stopped = 1;
			rc = 0;
		} else if (rc == LOOM_EBUSY && stopped && busy++ < PATIENCE) {
			nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
			rc = 0;
			i--;
		}
	}
	return say(s, rc, &err);
}

static void *live(void *arg)
{
	struct side *s = arg;
	struct loom_config *cfg = NULL;
	struct loom_stack *stack = NULL;
	struct loom_error err = {0};
	struct loom_task root = {0};
	void *words = NULL;
	int rc = loom_config_create(&cfg, &err), job = 1;
	for (int i = 0; !rc && i < s->options; i++) {
		char *key = strdup(s->option[i]), *value = key ? strchr(key, '=') : NULL;
		if (value)
			*value++ = 0;
		char *dot = key ? strrchr(key, '.') : NULL;
		if (!value || !dot) {
			fprintf(stderr, "soak_two: '%s' is not SECTION.KEY=VALUE\n", s->option[i]);
			exit(2);
		}
		*dot = 0;
		if (!strcmp(key, "run") && !strcmp(dot + 1, "workload"))
			job = !*value;
		rc = loom_config_set(cfg, key, dot + 1, value, &err);
		free(key);
	}
	if (!rc)
		rc = loom_stack_open(cfg, NULL, &stack, &err);
	if (!rc && job)
		rc = loom_stack_task(stack, "leaf", leaf, &root.tag, &err);
	if (!rc && job)
		rc = loom_stack_alloc(stack, TASKS * sizeof(uint64_t), &root.data.ref, &words, &err);
	root.data.bytes = TASKS * sizeof(uint64_t);
	s->status = say(s, rc, &err);
	pthread_mutex_lock(&s->lock);
	s->stack = rc ? NULL : stack;
	s->ready = 1;
	pthread_cond_signal(&s->opened);
	pthread_mutex_unlock(&s->lock);
	if (!rc)
		s->status = runs(s, words, &root);
	pthread_mutex_lock(&s->lock);
	s->stack = NULL;
	pthread_mutex_unlock(&s->lock);
	loom_stack_close(stack);
	loom_config_destroy(cfg);
	return NULL;
}

static void stop_one(struct side *s)
{
	pthread_mutex_lock(&s->lock);
	while (!s->ready)
		pthread_cond_wait(&s->opened, &s->lock);
	pthread_mutex_unlock(&s->lock);
	nanosleep(&(struct timespec){.tv_nsec = s->stop_ms * 1000000}, NULL);
	pthread_mutex_lock(&s->lock);
	for (int i = 0; s->stack && i < 2; i++) /* a second stop ends the run at once */
		loom_stack_stop(s->stack);
	pthread_mutex_unlock(&s->lock);
}

int main(int argc, char **argv)
{
	struct side a = {.name = "a", .option = argv + 2}, b = {.name = "b", .stop_ms = -1};
	pthread_t thread[2];
	if (argc < 3)
		return 2;
	a.stop_ms = strtol(argv[1], NULL, 10);
	while (2 + a.options < argc && strcmp(argv[2 + a.options], "--"))
		a.options++;
	b.option = a.option + a.options + 1;
	b.options = argc - 2 > a.options ? argc - 3 - a.options : 0;
	struct side *side[] = {&a, &b};
	for (int i = 0; i < 2; i++) {
		pthread_mutex_init(&side[i]->lock, NULL);
		pthread_cond_init(&side[i]->opened, NULL);
		if (pthread_create(&thread[i], NULL, live, side[i]))
			return 1;
	}
	if (a.stop_ms >= 0)
		stop_one(&a);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	static const int worst[] = {3, 1, 124, 2};
	for (int i = 0; i < 4; i++)
		if (a.status == worst[i] || b.status == worst[i])
			return worst[i];
	return 0;
}
