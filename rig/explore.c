/* SPDX-License-Identifier: Apache-2.0 */
#include "rig/explore.h"

#include <stdio.h>
#include <stdlib.h>

#include "../plugins/device_common/explore/fiber.h"
#include "../plugins/device_common/explore/pct.h"

#define STACK_BYTES (256u * 1024)

struct worker {
	struct fiber fiber;
	uint32_t *asleep; /* the word on which the fiber sleeps; NULL: the fiber runs */
	int ended;
	uint64_t priority;
};

static struct {
	struct worker worker[LOOM__EXPLORE_MAX];
	struct fiber caller, *from; /* from: the fiber that made the last switch */
	uint32_t n, now;
	uint64_t resumed_at; /* pct.step when the running worker began to run */
	int on, stuck;
	enum loom__explore_mode mode;
	struct pct pct;
	uint32_t starved; /* the worker that does not run from one step to another, if others can run */
	uint64_t starved_from, starved_for;
	uint64_t limit;
	void (*body)(uint32_t worker);
} all;

/* Returns the worker that runs next, or LOOM__EXPLORE_MAX when none can run. */
static uint32_t choose(void)
{
	uint32_t best = LOOM__EXPLORE_MAX, count = 0;
	uint32_t starved = all.pct.step - all.starved_from < all.starved_for ? all.starved : LOOM__EXPLORE_MAX;
	for (uint32_t i = 0; i < all.n; i++) {
		const struct worker *w = &all.worker[i];
		if (w->ended || w->asleep || i == starved)
			continue;
		count++;
		if (all.mode != LOOM__EXPLORE_PCT
			? pct_draw(&all.pct, count) == 0
			: best == LOOM__EXPLORE_MAX || w->priority > all.worker[best].priority)
			best = i;
	}
	if (best == LOOM__EXPLORE_MAX && starved < all.n && !all.worker[starved].ended && !all.worker[starved].asleep)
		best = starved;
	return best;
}

static void switch_to(struct fiber *from, struct fiber *to)
{
	all.from = from;
	fiber_switch(from, to);
	fiber_arrive(from, all.from);
}

void loom__explore_stop(void)
{
	all.stuck = 1;
	switch_to(&all.worker[all.now].fiber, &all.caller);
}

static void reschedule(void)
{
	struct worker *was = &all.worker[all.now];
	uint32_t next = choose();
	if (next == all.now)
		return;
	if (next == LOOM__EXPLORE_MAX) {
		all.stuck = !was->ended; /* all others sleep or have ended, and this one sleeps */
		switch_to(&was->fiber, &all.caller);
		return;
	}
	all.now = next;
	all.resumed_at = all.pct.step;
	switch_to(&was->fiber, &all.worker[next].fiber);
}

static void lower(void)
{
	all.worker[all.now].priority = pct_lower(&all.pct);
}

void loom__explore_yield(void)
{
	if (!all.on)
		return;
	if (++all.pct.step >= all.limit)
		loom__explore_stop();
	if (all.mode != LOOM__EXPLORE_PCT) {
		if (pct_draw(&all.pct, 3) == 0)
			reschedule();
		return;
	}
	if (pct_is_change(&all.pct) || all.pct.step - all.resumed_at >= PCT_ROW)
		lower();
	reschedule();
}

void loom__explore_pause(void)
{
	if (!all.on)
		return;
	lower();
	loom__explore_yield();
}

void loom__explore_sleep(uint32_t *word, uint32_t seen)
{
	loom__explore_pause();
	if (!all.on || *word != seen)
		return;
	all.worker[all.now].asleep = word;
	reschedule();
}

void loom__explore_wake(uint32_t *word, uint32_t most)
{
	loom__explore_yield();
	for (uint32_t i = 0; i < all.n && most; i++) {
		struct worker *w = &all.worker[i];
		if (w->asleep != word)
			continue;
		w->asleep = NULL;
		most--;
	}
}

uint32_t loom__explore_now(void)
{
	return all.on ? all.now : LOOM__EXPLORE_MAX;
}

uint64_t loom__explore_steps(void)
{
	return all.pct.step;
}

void loom__explore_leave(void)
{
	all.worker[all.now].ended = 1;
	reschedule();
}

static void worker_main(void)
{
	struct worker *me = &all.worker[all.now];
	fiber_arrive(&me->fiber, all.from);
	all.body(all.now);
	loom__explore_leave();
}

int loom__explore(uint32_t n, void (*body)(uint32_t), enum loom__explore_mode mode, uint64_t seed, uint64_t length,
		  uint64_t limit)
{
	all.n = n;
	all.mode = mode;
	all.limit = limit;
	all.stuck = 0;
	all.resumed_at = 0;
	all.body = body;
	pct_start(&all.pct, (seed + 1) * 0x9e3779b97f4a7c15ull);
	for (int i = 0; i < PCT_CHANGES; i++)
		all.pct.change[i] = 1 + pct_draw(&all.pct, length);
	all.starved_for = 0;
	if (mode == LOOM__EXPLORE_STARVE) {
		all.starved = (uint32_t)pct_draw(&all.pct, n);
		all.starved_from = pct_draw(&all.pct, length);
		all.starved_for = length;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct worker *w = &all.worker[i];
		if (fiber_make(&w->fiber, STACK_BYTES, worker_main)) {
			fprintf(stderr, "explore: no memory for the stack of worker %u\n", i);
			abort();
		}
		w->ended = 0;
		w->asleep = NULL;
		w->priority = pct_priority(&all.pct);
	}
	all.on = 1;
	all.now = (uint32_t)pct_draw(&all.pct, n);
	fiber_home(&all.caller);
	switch_to(&all.caller, &all.worker[all.now].fiber);
	all.on = 0;
	return all.stuck ? -1 : 0;
}
