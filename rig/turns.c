/* SPDX-License-Identifier: Apache-2.0 */
#include "rig/turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* ThreadSanitizer keeps the calls of each stack apart only when it is told of them: else those that a game leaves
 * behind add up until its record of calls is full. */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define TURNS_FIBER() __tsan_create_fiber(0)
#define TURNS_FIBER_HERE() __tsan_get_current_fiber()
#define TURNS_FIBER_TO(fiber) __tsan_switch_to_fiber(fiber, 0)
#define TURNS_FIBER_END(fiber) __tsan_destroy_fiber(fiber)
#else
#define TURNS_FIBER() NULL
#define TURNS_FIBER_HERE() NULL
#define TURNS_FIBER_TO(fiber) ((void)(fiber))
#define TURNS_FIBER_END(fiber) ((void)(fiber))
#endif

#define TURNS_STACK (256u * 1024)
#define TURNS_CHANGES 4

struct turns_player {
	ucontext_t at;
	char *stack;
	void *fiber;
	uint32_t *asleep; /* sleeps on this word */
	uint32_t seen;
	int over;
	uint64_t priority;
};

static struct {
	struct turns_player player[LOOM__TURNS_MAX];
	struct turns_player table; /* who plays no worker */
	uint32_t n, now;
	int on, stuck;
	enum loom__turns_mode mode;
	uint64_t random, step, limit, low;
	uint64_t change[TURNS_CHANGES]; /* steps at which the running player falls back */
} turns;

static uint64_t turns_draw(uint64_t below)
{
	turns.random ^= turns.random << 13;
	turns.random ^= turns.random >> 7;
	turns.random ^= turns.random << 17;
	return (turns.random >> 11) % below;
}

static int turns_can(uint32_t i)
{
	const struct turns_player *p = &turns.player[i];
	return !p->over && !p->asleep;
}

/* Who goes on; LOOM__TURNS_MAX: nobody can. */
static uint32_t turns_next(void)
{
	uint32_t best = LOOM__TURNS_MAX, count = 0;
	for (uint32_t i = 0; i < turns.n; i++) {
		if (!turns_can(i))
			continue;
		count++;
		if (turns.mode == LOOM__TURNS_RANDOM ? turns_draw(count) == 0 :
						 best == LOOM__TURNS_MAX ||
							 turns.player[i].priority > turns.player[best].priority)
			best = i;
	}
	return best;
}

static void turns_to(struct turns_player *from, struct turns_player *to)
{
	TURNS_FIBER_TO(to->fiber);
	swapcontext(&from->at, &to->at);
}

static void turns_switch(void)
{
	uint32_t was = turns.now, next = turns_next();
	if (next == was)
		return;
	if (next == LOOM__TURNS_MAX) {
		turns.stuck = !turns.player[was].over; /* all others sleep or are over, and so does this */
		turns_to(&turns.player[was], &turns.table);
		return;
	}
	turns.now = next;
	turns_to(&turns.player[was], &turns.player[next]);
}

/* A worker waits for what others do. */
static void turns_behind(void)
{
	turns.player[turns.now].priority = --turns.low;
}

static void turns_yield(void)
{
	if (!turns.on)
		return;
	if (++turns.step >= turns.limit) { /* nobody gets anywhere */
		turns.stuck = 1;
		turns_to(&turns.player[turns.now], &turns.table);
	}
	if (turns.mode == LOOM__TURNS_RANDOM) {
		if (turns_draw(3) == 0)
			turns_switch();
		return;
	}
	for (int i = 0; i < TURNS_CHANGES; i++)
		if (turns.change[i] == turns.step)
			turns_behind();
	turns_switch();
}

void loom__turns_yield(void)
{
	turns_yield();
}

void loom__turns_pause(void)
{
	if (!turns.on)
		return;
	turns_behind();
	turns_yield();
}

void loom__turns_sleep(uint32_t *word, uint32_t seen)
{
	loom__turns_pause();
	if (!turns.on || *word != seen)
		return;
	turns.player[turns.now].asleep = word;
	turns_switch();
}

void loom__turns_wake(uint32_t *word, uint32_t most)
{
	turns_yield();
	for (uint32_t i = 0; i < turns.n && most; i++) {
		struct turns_player *p = &turns.player[i];
		if (p->asleep != word)
			continue;
		p->asleep = NULL;
		most--;
	}
}

uint64_t loom__turns_steps(void)
{
	return turns.step;
}

static void (*turns_body)(uint32_t player);

static void turns_main(void)
{
	turns_body(turns.now);
	turns.player[turns.now].over = 1;
	turns_switch();
}

int loom__turns_play(uint32_t n, void (*body)(uint32_t), enum loom__turns_mode mode, uint64_t seed, uint64_t length,
		     uint64_t limit)
{
	turns.n = n;
	turns.mode = mode;
	turns.random = (seed + 1) * 0x9e3779b97f4a7c15ull | 1;
	turns.step = 0;
	turns.limit = limit;
	turns.low = 1ull << 32;
	turns.stuck = 0;
	turns_body = body;
	for (int i = 0; i < TURNS_CHANGES; i++)
		turns.change[i] = 1 + turns_draw(length);
	for (uint32_t i = 0; i < n; i++) {
		struct turns_player *p = &turns.player[i];
		if (!p->stack && !(p->stack = malloc(TURNS_STACK))) {
			fprintf(stderr, "turns: no memory for the stack of player %u\n", i);
			abort();
		}
		p->over = 0;
		p->asleep = NULL;
		p->priority = (1ull << 33) + turns_draw(1u << 20);
		getcontext(&p->at);
		p->at.uc_stack.ss_sp = p->stack;
		p->at.uc_stack.ss_size = TURNS_STACK;
		p->at.uc_link = NULL;
		makecontext(&p->at, turns_main, 0);
		p->fiber = TURNS_FIBER();
	}
	turns.on = 1;
	turns.now = (uint32_t)turns_draw(n);
	turns.table.fiber = TURNS_FIBER_HERE();
	turns_to(&turns.table, &turns.player[turns.now]);
	turns.on = 0;
	for (uint32_t i = 0; i < n; i++)
		TURNS_FIBER_END(turns.player[i].fiber);
	return turns.stuck ? -1 : 0;
}
