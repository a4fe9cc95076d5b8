/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/engine.h"
#include "facts/must.h"

/* The cost of all visits so far. decide() derives the number of samples per visit from it. */
struct cost {
	uint64_t opening, sampling; /* total time of opening and of samples, in ns */
	uint64_t visits, samples;
};

static int runnable(const struct loom__sweep *s, const struct loom__sweep_config *c)
{
	return !c->elsewhere && !c->skipped && !c->failed && c->have < s->samples;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int add_line(struct loom__sweep *s, cJSON *line, struct loom_error *err)
{
	int rc = loom__journal_add(s->journal, line, err);
	cJSON_Delete(line);
	return rc;
}

static cJSON *line_of(const struct loom__sweep_config *c)
{
	cJSON *line = cJSON_CreateObject();
	loom__json_add_text(line, "configuration", c->id);
	loom__json_add_copy(line, "values", c->values);
	return line;
}

/* Appends the line {configuration, values, skipped|failed: text}, at most once per configuration. `status` is the
 * status of a failed run, or NULL. */
static int note(struct loom__sweep *s, struct loom__sweep_config *c, const char *key, const char *text,
		const char *status, struct loom_error *err)
{
	if (c->noted)
		return 0;
	cJSON *line = line_of(c);
	loom__json_add_text(line, key, text);
	if (status)
		loom__json_add_text(line, "status", status);
	c->noted = 1;
	return add_line(s, line, err);
}

static int note_done(struct loom__sweep *s, struct loom__sweep_config *c, struct loom_error *err)
{
	if (c->ended || c->have < s->samples)
		return 0;
	cJSON *line = cJSON_CreateObject();
	loom__json_add_text(line, "configuration", c->id);
	loom__json_add_bool(line, "done", 1);
	c->ended = 1;
	return add_line(s, line, err);
}

/* ---- resuming -------------------------------------------------------------------------------- */

static int same(const cJSON *a, const cJSON *b, const char *key)
{
	const cJSON *x = cJSON_GetObjectItemCaseSensitive(a, key);
	const cJSON *y = cJSON_GetObjectItemCaseSensitive(b, key);
	return (!x && !y) || cJSON_Compare(x, y, 1);
}

static int compare_ids(const void *a, const void *b)
{
	const struct loom__sweep_config *const *x = a, *const *y = b;
	return strcmp((*x)->id, (*y)->id);
}

static struct loom__sweep_config *find(struct loom__sweep_config **sorted, size_t n, const char *id)
{
	size_t lo = 0, hi = n;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int order = strcmp(sorted[mid]->id, id);
		if (!order)
			return sorted[mid];
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static void take_line(struct loom__sweep_config *c, const cJSON *line)
{
	double sample = loom__json_number(line, "sample");
	if (sample >= 0 && sample < UINT32_MAX && (uint32_t)sample + 1 > c->have)
		c->have = (uint32_t)sample + 1;
	if (*loom__json_text(line, "skipped"))
		c->noted = 1;
	/* A configuration that has failed is tried again, because a device may have been busy or a library missing. A
	 * wrong result is final, because a second try may hide it. */
	if (*loom__json_text(line, "failed")) {
		c->wrong = !strcmp(loom__json_text(line, "status"), loom__status_name(LOOM_EWRONG));
		c->noted = c->wrong;
		c->failed = c->wrong;
	}
	if (loom__json_true(line, "done"))
		c->ended = 1;
}

int loom__sweep_resume(struct loom__sweep *s, const cJSON *header, struct loom_error *err)
{
	static const char *const key[] = {"factors", "constraints", "seed"};
	const struct loom__doc *before = &s->journal->before;
	size_t at = 0;
	if (!before->root)
		return 0;
	for (size_t i = 0; i < LOOM__COUNT(key); i++)
		if (!same(before->root, header, key[i]))
			return LOOM__FAIL(err, LOOM_EINVAL,
					  "'%s' is from a sweep with other %s: resume with the same ones, or "
					  "start a new file",
					  s->journal->path, key[i]);
	struct loom__sweep_config **sorted = loom__must(calloc(s->configs + 1, sizeof(*sorted)));
	for (size_t i = 0; i < s->configs; i++)
		sorted[i] = &s->config[i];
	qsort(sorted, s->configs, sizeof(*sorted), compare_ids);
	size_t strangers = 0;
	for (cJSON *line; (line = loom__doc_line(before, &at)); cJSON_Delete(line)) {
		const char *id = loom__json_text(line, "configuration");
		struct loom__sweep_config *c = *id ? find(sorted, s->configs, id) : NULL;
		strangers += *id && !c && cJSON_HasObjectItem(line, "sample");
		if (s->ops->before)
			s->ops->before(s->arg, line);
		if (c)
			take_line(c, line);
	}
	free(sorted);
	return strangers ? LOOM__FAIL(err, LOOM_EINVAL,
				      "'%s' has other configurations: the conf, the environment or "
				      "--set has changed; start a new file",
				      s->journal->path)
			 : 0;
}

/* ---- running --------------------------------------------------------------------------------- */

static int interrupted(const struct loom__sweep *s, struct loom_error *err)
{
	return LOOM__FAIL(err, LOOM_EINTR, "interrupted after %zu of %zu samples", s->taken, s->wanted);
}

static int stopped(const struct loom__sweep *s)
{
	return s->progress && s->progress(s->arg, s);
}

static int over_budget(struct loom__sweep *s)
{
	if (!s->out_of_budget && s->budget_ns && loom__now_ns() - s->began_ns >= s->budget_ns)
		s->out_of_budget = 1;
	return s->out_of_budget;
}

static int fail_config(struct loom__sweep *s, struct loom__sweep_config *c, int code, const struct loom_error *why,
		       struct loom_error *err)
{
	c->failed = 1;
	c->wrong = code == LOOM_EWRONG;
	s->failures++;
	s->last_error = code;
	s->wanted -= s->samples - c->have;
	return note(s, c, "failed", why->text, loom__status_name(code), err);
}

/* Takes up to `most` samples of configuration i. */
static int visit(struct loom__sweep *s, size_t i, uint32_t most, struct cost *cost, struct loom_error *err)
{
	struct loom__sweep_config *c = &s->config[i];
	struct loom_error why = {0};
	void *run = NULL;
	uint64_t begin = loom__now_ns();
	int rc = s->ops->open(s->arg, i, &run, &why), io = 0;
	cost->opening += loom__now_ns() - begin;
	cost->visits++;
	begin = loom__now_ns();
	for (uint32_t k = 0; !rc && !io && k < most && c->have < s->samples; k++) {
		cJSON *line = line_of(c);
		loom__json_add_number(line, "sample", c->have);
		loom__json_add_number(line, "start_ns", (double)(loom__now_ns() - s->began_ns));
		rc = s->ops->sample(s->arg, run, line, &why);
		if (rc) {
			cJSON_Delete(line);
			break;
		}
		io = add_line(s, line, err);
		c->have += !io;
		s->taken += !io;
		cost->samples += !io;
		if (!io && (stopped(s) || (k + 1 < most && over_budget(s))))
			break;
	}
	if (!rc)
		cost->sampling += loom__now_ns() - begin;
	if (run)
		s->ops->close(s->arg, run);
	if (io)
		return io;
	if (rc && s->journal->failed) {
		*err = why;
		return rc;
	}
	if (rc == LOOM_EINTR)
		return interrupted(s, err);
	if (rc)
		return fail_config(s, c, rc, &why, err);
	return note_done(s, c, err);
}

/* Sets the number of samples per visit, so that they take about as long as opening the stack. Increases this number as
 * long as the remaining visits would exceed the budget. If the budget does not suffice for all samples, each
 * configuration gets an equal share of the time that is left. */
static void decide(struct loom__sweep *s, const struct cost *cost)
{
	if (!cost->samples || !cost->visits)
		return;
	double opening = (double)cost->opening / (double)cost->visits;
	double sample = (double)cost->sampling / (double)cost->samples + 1;
	double left = 0, most = s->samples, at = opening / sample;
	int fits = !s->budget_ns;
	double time = s->budget_ns ? (double)s->budget_ns - (double)(loom__now_ns() - s->began_ns) : 0;
	for (size_t i = 0; i < s->configs; i++)
		left += runnable(s, &s->config[i]);
	at = at < 1 ? 1 : at > most ? most : at;
	for (; !fits && left * (((most - 1) / at + 1) * opening + (most - 1) * sample) > time && at < most; at++)
		;
	fits = fits || at < most;
	if (!fits && left)
		at = fmin(most, fmax(1, (time / left - opening) / sample));
	s->at_a_time = (uint32_t)(at + 0.5);
}

/* Writes the configurations that lack samples to `order`, in random order, as the visits of a round. Returns their
 * number. */
static size_t draw(const struct loom__sweep *s, uint64_t round, size_t *order)
{
	struct loom__stats_rng rng = {s->seed ^ (round + 1) * 0x9e3779b97f4a7c15u};
	size_t n = 0;
	for (size_t i = 0; i < s->configs; i++)
		if (runnable(s, &s->config[i]))
			order[n++] = i;
	for (size_t i = n; i > 1; i--) {
		size_t k = loom__stats_below(&rng, i), other = order[k];
		order[k] = order[i - 1];
		order[i - 1] = other;
	}
	return n;
}

static int note_rest(struct loom__sweep *s, struct loom_error *err)
{
	int rc = 0;
	for (size_t i = 0; i < s->configs && !rc; i++) {
		struct loom__sweep_config *c = &s->config[i];
		if (c->skipped && !c->elsewhere)
			rc = note(s, c, "skipped", c->skipped, NULL, err);
		else if (!c->failed)
			rc = note_done(s, c, err);
	}
	return rc;
}

int loom__sweep_run(struct loom__sweep *s, struct loom_error *err)
{
	size_t *order = loom__must(calloc(s->configs + 1, sizeof(*order))), n;
	struct cost cost = {0};
	s->began_ns = loom__now_ns();
	s->wanted = 0;
	for (size_t i = 0; i < s->configs; i++)
		if (runnable(s, &s->config[i]))
			s->wanted += s->samples - s->config[i].have;
	int rc = note_rest(s, err);
	for (uint64_t round = 0; !rc && !over_budget(s) && (n = draw(s, round, order)); round++) {
		size_t k = 0;
		for (; k < n && !rc && !over_budget(s); k++) {
			if (stopped(s))
				rc = interrupted(s, err);
			else
				rc = visit(s, order[k], s->at_a_time ? s->at_a_time : 1, &cost, err);
		}
		s->rounds += !rc && k == n;
		if (!rc && (!s->at_a_time || s->budget_ns))
			decide(s, &cost);
	}
	for (size_t i = 0; i < s->configs; i++)
		s->wrong += s->config[i].wrong;
	free(order);
	return rc;
}

uint64_t loom__sweep_left(const struct loom__sweep *s)
{
	uint64_t spent = loom__now_ns() - s->began_ns;
	if (!s->taken || s->taken >= s->wanted)
		return 0;
	uint64_t left = (uint64_t)((double)spent / (double)s->taken * (double)(s->wanted - s->taken));
	if (s->budget_ns)
		left = spent >= s->budget_ns ? 0 : left < s->budget_ns - spent ? left : s->budget_ns - spent;
	return left;
}

void loom__sweep_free(struct loom__sweep *s)
{
	for (size_t i = 0; s->config && i < s->configs; i++) {
		cJSON_Delete(s->config[i].values);
		free(s->config[i].skipped);
	}
	free(s->config);
	s->config = NULL;
	s->configs = 0;
}
