/* SPDX-License-Identifier: Apache-2.0 */
#include "conform/stand.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform/footprint.h"

/* Keeps the reason of a refusal for messages. An improper refusal is a fault. */
static int refused(struct loom__trial *t, const char *what, int code, const struct loom_error *err)
{
	LOOM__TRY(loom__judge_error(t, what, code, err));
	snprintf(t->refusal, sizeof(t->refusal), "%s refuses: %.200s", what, err->text);
	return LOOM__REFUSED;
}

static int create(struct loom__rig *r, struct loom__trial *t, int own)
{
	struct loom_error err = {0};
	int code = loom__rig_add(r, t->plugin, &t->host.table, r->opts, &err);
	if (!code)
		return 0;
	LOOM__TRY(loom__judge_error(t, "create()", code, &err));
	if (own)
		return code == LOOM_EUNAVAIL || code == LOOM_ENOTSUP
			   ? loom__skip(t, "not available here: %s", err.text)
			   : loom__fault(t, "create() refuses the default options: %s", err.text);
	return refused(t, "create()", code, &err);
}

static int furnish(struct loom__rig *r, struct loom__trial *t)
{
	struct loom_error err = {0};
	const char *what;
	int code = loom__rig_need(r, &err);
	if (code)
		return refused(t, "need()", code, &err);
	uint64_t all = loom__rig_asked(r);
	if (all == ~0ull)
		return loom__fault(t, "need() requests an impossible amount of memory");
	snprintf(t->refusal, sizeof(t->refusal), "need() requests %llu MiB", (unsigned long long)(all >> 20));
	t->too_large = all > LOOM__STAND_MEMORY;
	if (t->too_large)
		return LOOM__REFUSED;
	if (loom__rig_furnish(r))
		return loom__skip(t, "not enough memory for the test");
	if (r->want.hidden)
		loom__say_hidden(r->host, r->bytes);
	code = loom__rig_begin(r, &what, &err);
	if (!code)
		return 0;
	LOOM__TRY(loom__judge_error(t, what, code, &err));
	return code == LOOM_EUNAVAIL || code == LOOM_ENOTSUP || what[0] == 'a'
		   ? loom__skip(t, "not available here: %s", err.text)
		   : loom__fault(t, "%s fails: %s", what, err.text);
}

static void stuck(struct loom__rig *r, const char *sentence)
{
	char text[900], about[500];
	struct loom__trial *t = loom__trial_of(r);
	snprintf(text, sizeof(text), "%s (%s)", sentence, loom__stand_text(r, about, sizeof(about)));
	loom__fault_now(t, loom__faulted(t) ? t->why : text); /* A fault from before explains more than the hang. */
}

int loom__stand_try(struct loom__rig *r, struct loom__trial *t, const struct loom__rig_want *want,
		    struct loom__settings *settings)
{
	struct loom__settings mine;
	int sanitized = dlsym(RTLD_DEFAULT, "__tsan_init") != NULL; /* the sanitizer is loaded by LD_PRELOAD */
	t->too_large = 0;
#ifndef __SANITIZE_THREAD__
	if (sanitized && want->lanes > 1)
		return loom__skip(t, "the thread sanitizer does not see the order of the suite's barrier of lanes");
#endif
	if (!settings && loom__settings_create(t, &mine))
		return loom__skip(t, "out of memory");
	loom__rig_shape(r, want);
	r->opts = settings ? settings->opts : mine.opts;
	r->about = settings ? settings->text.at : mine.text.at;
	r->want.user = t;
	r->want.stuck = stuck;
	r->want.rough = t->rough;
	/* With a short --timeout, workers that hang are found and named before the whole test is ended. */
	r->want.most_ns = t->limit_ms * 500000ull;
	r->want.stack = sanitized ? 8 << 20 : 1 << 20; /* the frames of code for a sanitizer are larger */
	r->want.one_view |= sanitized;
	int verdict = create(r, t, !settings);
	if (!verdict)
		verdict = furnish(r, t);
	if (verdict)
		loom__stand_close(r);
	return verdict;
}

int loom__stand_open(struct loom__rig *r, struct loom__trial *t, const struct loom__rig_want *want,
		     struct loom__settings *settings)
{
	if (t->plugin->dev && !t->plugin->dev->cpu)
		return loom__skip(t, "it has no code for the CPU");
	int verdict = loom__stand_try(r, t, want, settings);
	return verdict == LOOM__REFUSED && !settings ? loom__fault(t, "it refuses its default options: %s", t->refusal)
						     : verdict;
}

void loom__stand_close(struct loom__rig *r)
{
	void *opts = r->opts;
	char *about = r->about;
	loom__say_hidden(NULL, 0);
	loom__rig_close(r);
	free(opts);
	free(about);
}

int loom__stand_reset(struct loom__rig *r)
{
	struct loom_error err = {0};
	struct loom__trial *t = loom__trial_of(r);
	int code = loom__rig_init(r, &err);
	if (!code)
		return 0;
	LOOM__TRY(loom__judge_error(t, "init()", code, &err));
	return loom__fault(t, "init() fails: %s", err.text);
}

int loom__stand_init(struct loom__rig *r)
{
	LOOM__TRY(loom__stand_reset(r));
	loom__rig_ready(r);
	return 0;
}

int loom__stand_run(struct loom__rig *r, void (*body)(struct loom_ctx *c), uint64_t limit_ns, const char *late)
{
	struct loom__trial *t = loom__trial_of(r);
	LOOM__TRY(loom__stand_init(r));
	int code = loom__rig_run(r, body, limit_ns);
	LOOM__TRY(loom__faulted(t));
	return code ? loom__fault(t, "%s", late) : 0;
}

int loom__stand_guards(struct loom__rig *r)
{
	char text[300], about[300];
	const char *found = loom__rig_guards(r, text, sizeof(text));
	if (found)
		loom__fault(loom__trial_of(r), "%s (%s)", found, loom__stand_text(r, about, sizeof(about)));
	return loom__faulted(loom__trial_of(r));
}

int loom__stand_failure(struct loom__rig *r, struct loom_error *err)
{
	*err = (struct loom_error){0};
	/* Acquire: pairs with the release in loom_worker_fail(). After it, worker, code and info are valid. */
	if (!__atomic_load_n(&r->ctl->failed_ready, __ATOMIC_ACQUIRE))
		return 0;
	int code = -(int)r->ctl->failed, said = 0;
	for (size_t k = 0; k < LOOM__COUNT(r->part) && !said; k++) {
		const struct loom__rig_part *p = &r->part[k];
		said = p->ops && LOOM_HAS(p->ops, explain)
			   ? p->ops->explain(p->self, r->ctl->failed_worker, code, r->ctl->failed_info, err)
			   : 0;
	}
	return said ? said : LOOM__FAIL(err, code, "%s", loom_strerror(code));
}

int loom__stand_failed(struct loom__rig *r, int legal)
{
	struct loom_error err;
	int failed = loom__stand_failure(r, &err);
	if (!failed || failed == legal)
		return 0;
	LOOM__TRY(loom__judge_error(loom__trial_of(r), "explain()", failed, &err));
	return loom__fault(loom__trial_of(r), "worker %u failed the run: %s", r->ctl->failed_worker, err.text);
}

int loom__stand_check(struct loom__rig *r)
{
	struct loom_error err = {0};
	struct loom__trial *t = loom__trial_of(r);
	LOOM__TRY(loom__stand_guards(r));
	LOOM__TRY(loom__stand_failed(r, 0));
	loom__rig_host_clear(&t->host);
	int code = loom__rig_collect(r, LOOM__RIG_REPORT(&t->host), &err);
	if (!code)
		return 0;
	LOOM__TRY(loom__judge_error(t, "collect()", code, &err));
	return loom__fault(t, "collect() fails after a right sample: %s", err.text);
}

int loom__fuzz(struct loom__trial *t, loom__fuzz_fn *one, uint64_t draws)
{
	uint64_t until = loom__now_ns() + t->fuzz_ns;
	for (uint64_t n = 0; loom__now_ns() < until && (!draws || n < draws); n++) {
		uint64_t seed = t->seed + n;
		struct loom__chance chance = loom__chance(seed);
		struct loom__settings s;
		if (loom__settings_create(t, &s))
			return loom__skip(t, "out of memory");
		loom__settings_random(t, &s, &chance);
		loom__say_case(t, seed, "%s", s.text.length ? s.text.at : "defaults");
		t->rough = loom__one_in(&chance, 3);
		int verdict = one(t, seed, &chance, &s);
		if (verdict && verdict != LOOM__REFUSED)
			return verdict;
	}
	return 0;
}

const char *loom__stand_text(const struct loom__rig *r, char *text, size_t room)
{
	const struct loom__rig_want *w = &r->want;
	snprintf(text, room, "%u device%s, %u worker%s, %u lane%s%s%s", w->devices, w->devices == 1 ? "" : "s",
		 w->workers, w->workers == 1 ? "" : "s", w->lanes, w->lanes == 1 ? "" : "s",
		 r->about && *r->about ? ", " : "", r->about ? r->about : "");
	return text;
}

int loom__judge_footprint(struct loom__trial *t, const struct loom__footprint *before, size_t rounds, const char *when)
{
	char text[200];
	const char *differs = loom__footprint_settles(before, rounds, text, sizeof(text));
	const char *known = differs ? loom__footprint_known(before, rounds) : NULL;
	if (known) {
		struct loom__footprint now, all_else = *before;
		loom__footprint_take(&now);
		all_else.heap = now.heap;
		differs = loom__footprint_settles(&all_else, rounds, text, sizeof(text));
		snprintf(t->note, sizeof(t->note), "known: %s", known);
	}
	return differs ? loom__fault(t, "%s: %s", when, differs) : 0;
}
