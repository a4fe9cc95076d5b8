/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the error text of a sample that failed: the fault, and the state of all workers. */
#include <stdarg.h>
#include <stdio.h>

#include "simulation.h"

static const char *const state_text[] = {
#define STATE_TEXT(NAME, text) text,
    LOOM_STATE_MAP(STATE_TEXT)
#undef STATE_TEXT
};

static void add(struct simulation *s, size_t *at, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(s->why + *at, sizeof(s->why) - *at, fmt, args);
	va_end(args);
	*at = n > 0 && *at + (size_t)n < sizeof(s->why) ? *at + (size_t)n : sizeof(s->why) - 1;
}

static void add_member(struct simulation *s, size_t *at, const struct sim_group *g, const struct sim_member *m)
{
	if (s->shared)
		add(s, at, "; rank %u %s:", g->host->rank, m->name);
	else
		add(s, at, "; %s:", m->name);
	for (uint32_t what = 0, any = 0; what < LOOM_STATES; what++) {
		uint32_t n = 0, first = 0;
		for (uint32_t i = m->workers; i-- > 0;)
			if (m->worker[i].ctx.counters->state == what) {
				first = m->worker[i].ctx.worker;
				n++;
			}
		if (n)
			add(s, at, "%s %u %s (worker %u%s)", any++ ? "," : "", n, state_text[what], first,
			    n > 1 ? " first" : "");
	}
	for (uint32_t i = 0; s->weak && i < m->workers; i++) {
		char where[200];
		if (m->worker[i].ctx.counters->state != LOOM_STATE_DONE && model_where(&m->worker[i], where, sizeof(where)))
			add(s, at, ", worker %u at %s", m->worker[i].ctx.worker, where);
	}
}

void simulation_describe(struct simulation *s, enum fault fault)
{
	size_t at = 0;
	if (fault == FAULT_ENDED_EARLY)
		add(s, &at, "worker %u starts a task after others have left: termination was detected too early",
		    s->running->ctx.worker);
	else if (fault == FAULT_STALL)
		add(s, &at, "deadlock: all workers wait, and none has changed anything for %.6g ms of virtual time",
		    (double)s->stall_ns / 1e6);
	else if (fault == FAULT_HALTED)
		add(s, &at, "the sample was aborted");
	else
		add(s, &at, "no end after %.6g ms of virtual time, the limit", (double)s->limit_ns / 1e6);
	for (const struct sim_group *g = s->group; g; g = g->next)
		for (uint32_t i = 0; i < g->members; i++)
			if (g->member[i] && g->member[i]->launched && g->member[i]->left)
				add_member(s, &at, g, g->member[i]);
}
