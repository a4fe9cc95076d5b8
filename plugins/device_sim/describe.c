/* SPDX-License-Identifier: Apache-2.0 */
/* In words, who waits where. */
#include <stdarg.h>
#include <stdio.h>

#include "world.h"

static const char *const state_text[] = {
#define STATE_TEXT(NAME, text) text,
	LOOM_STATE_MAP(STATE_TEXT)
#undef STATE_TEXT
};

static void add(struct world *w, size_t *at, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(w->why + *at, sizeof(w->why) - *at, fmt, args);
	va_end(args);
	*at = n > 0 && *at + (size_t)n < sizeof(w->why) ? *at + (size_t)n : sizeof(w->why) - 1;
}

static void add_member(struct world *w, size_t *at, const struct sim_crew *c, const struct sim_member *m)
{
	if (w->shared)
		add(w, at, "; rank %u %s:", c->host->rank, m->name);
	else
		add(w, at, "; %s:", m->name);
	for (uint32_t what = 0, any = 0; what < LOOM_STATES; what++) {
		uint32_t n = 0, first = 0;
		for (uint32_t i = m->workers; i-- > 0;)
			if (m->worker[i].ctx.counters->state == what) {
				first = m->worker[i].ctx.worker;
				n++;
			}
		if (n)
			add(w, at, "%s %u %s (worker %u%s)", any++ ? "," : "", n, state_text[what], first,
			    n > 1 ? " first" : "");
	}
}

void world_describe(struct world *w, enum world_fault fault)
{
	size_t at = 0;
	if (fault == WORLD_ENDED_EARLY)
		add(w, &at, "worker %u begins a task when others have left: the end was seen too early",
		    w->running->ctx.worker);
	else if (fault == WORLD_STANDS_STILL)
		add(w, &at, "all workers wait for each other: none has changed anything for %.6g ms of virtual time",
		    (double)w->stall_ns / 1e6);
	else if (fault == WORLD_HALTED)
		add(w, &at, "the sample was ended by force");
	else
		add(w, &at, "no end after %.6g ms of virtual time, the limit", (double)w->limit_ns / 1e6);
	for (const struct sim_crew *c = w->crew; c; c = c->next)
		for (uint32_t i = 0; i < c->members; i++)
			if (c->member[i] && c->member[i]->launched && c->member[i]->left)
				add_member(w, &at, c, c->member[i]);
}
