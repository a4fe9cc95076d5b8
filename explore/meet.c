/* SPDX-License-Identifier: Apache-2.0 */
/* What makes threads wait for each other: barriers, lanes that meet, mbarrier objects, bulk copies. */
#include "run_internal.h"

#include <string.h>

/* ---- rounds */

static void join_round(struct round *r, int ordered)
{
	if (ordered)
		race_arrive(&r->meeting[r->number % 2]);
	r->arrived++;
}

static void end_round_quietly(struct round *r)
{
	r->arrived = 0;
	r->meeting[(r->number + 1) % 2] = (struct race_meeting){0}; /* all have left it */
	r->number++;
}

static void end_round(struct round *r)
{
	end_round_quietly(r);
	loom__explore_wake(&r->number, UINT32_MAX);
}

static void await_round(struct round *r, uint32_t number, const char *does)
{
	explore_fiber()->does = does;
	while (r->number == number)
		loom__explore_sleep(&r->number, number);
	explore_fiber()->does = "runs";
}

static struct fiber *thread(const struct explore_place *at)
{
	struct fiber *f = explore_fiber();
	if (!f || f->role != THREAD)
		explore_refuse(at, "host code uses it");
	explore_step(at, NULL, NULL, "runs");
	return f;
}

void explore_barrier(const struct explore_place *at, uint32_t id, uint32_t threads, int waits)
{
	struct block *b = thread(at)->block;
	if (id >= 16 || threads % 32)
		explore_fault(at, "barrier %u of %u threads: there are 16 barriers, of warps", id, threads);
	struct round *r = &b->barrier[id].round;
	uint32_t number = r->number;
	b->barrier[id].all = !threads;
	join_round(r, 1);
	if (r->arrived == (threads ? threads : b->live))
		end_round(r);
	else if (waits)
		await_round(r, number, "waits at a barrier of the block");
	if (waits)
		race_leave(&r->meeting[number % 2]);
}

uint32_t explore_barrier_count(const struct explore_place *at, uint32_t is)
{
	struct block *b = thread(at)->block;
	uint32_t number = b->barrier[0].round.number;
	if (!b->barrier[0].round.arrived)
		b->barrier[0].sum[number % 2] = 0;
	b->barrier[0].sum[number % 2] += is;
	explore_barrier(at, 0, 0, 1);
	return b->barrier[0].sum[number % 2];
}

void explore_grid_barrier(const struct explore_place *at)
{
	struct launch *l = thread(at)->block->launch;
	uint32_t number = l->all.number;
	join_round(&l->all, 1);
	if (l->all.arrived == l->blocks * l->threads)
		end_round(&l->all);
	else
		await_round(&l->all, number, "waits at a barrier of the grid");
	race_leave(&l->all.meeting[number % 2]);
}

static struct lanes *lanes_of(const struct explore_place *at, struct warp *w, uint32_t mask)
{
	struct lanes *free = NULL;
	for (struct lanes *l = w->lanes; l < w->lanes + 32; l++) {
		if (l->mask == mask)
			return l;
		free = !l->mask || (!l->here && !free) ? l : free;
	}
	if (!free)
		explore_refuse(at, "lanes of a warp meet in more than 32 groups at a time");
	memset(free, 0, sizeof(*free));
	free->mask = mask;
	return free;
}

static int is_complete(const struct lanes *l, const struct warp *w)
{
	return l->here && (l->here & w->live) == (l->mask & w->live);
}

uint32_t explore_collect(const struct explore_place *at, uint32_t mask, uint64_t v, uint64_t *all)
{
	struct fiber *f = thread(at);
	struct warp *w = &f->block->warp[f->self.warp];
	if (!(mask >> f->self.lane & 1))
		explore_fault(at, "the mask %#x does not have the calling lane, %u", mask, f->self.lane);
	struct lanes *l = lanes_of(at, w, mask);
	uint32_t number = l->round.number, lanes = mask & w->live;
	l->value[number % 2][f->self.lane] = v;
	l->here |= 1u << f->self.lane;
	join_round(&l->round, !all);
	if (is_complete(l, w)) {
		l->here = 0;
		end_round(&l->round);
	}
	if (l->round.number == number)
		await_round(&l->round, number, "waits for lanes of its warp");
	if (all)
		memcpy(all, l->value[number % 2], sizeof(l->value[0]));
	else
		race_leave(&l->round.meeting[number % 2]);
	return lanes;
}

void explore_syncwarp(const struct explore_place *at, uint32_t mask)
{
	explore_collect(at, mask, 0, NULL);
}

/* The others do not wait for a thread that has ended. Other fibers run only at the end of this function. */
void explore_leave_block(struct fiber *f)
{
	struct block *b = f->block;
	struct warp *w = &b->warp[f->self.warp];
	struct round *ended[16 + 32];
	uint32_t n = 0;
	w->live &= ~(1u << f->self.lane);
	for (struct lanes *l = w->lanes; l < w->lanes + 32; l++)
		if (is_complete(l, w)) {
			l->here = 0;
			end_round_quietly(ended[n++] = &l->round);
		}
	for (int i = 0; i < 16; i++)
		if (b->barrier[i].all && b->barrier[i].round.arrived && b->barrier[i].round.arrived == b->live)
			end_round_quietly(ended[n++] = &b->barrier[i].round);
	while (n)
		loom__explore_wake(&ended[--n]->number, UINT32_MAX);
}

/* ---- mbarrier objects: the word has the parity (1 bit), the number of arrivals of a phase (20), those to come (20),
 * and the bytes to come (23, may be below 0) */

static uint64_t pack(uint64_t parity, uint64_t count, uint64_t left, int64_t bytes)
{
	if (!left && !bytes) {
		parity ^= 1;
		left = count;
	}
	return parity | count << 1 | left << 21 | (uint64_t)bytes << 41;
}

static uint64_t mbarrier_next(uint64_t old, uint64_t v)
{
	uint64_t parity = old & 1, count = old >> 1 & 0xfffff, left = old >> 21 & 0xfffff;
	uint64_t arrivals = v >> 32;
	return pack(parity, count, left - (arrivals < left ? arrivals : left), ((int64_t)old >> 41) + (int32_t)v);
}

void explore_mbarrier_init(const struct explore_place *at, void *bar, uint32_t count)
{
	if (!count || count > 0xfffff)
		explore_fault(at, "an mbarrier of %u arrivals", count);
	explore_store(at, bar, 8, (uint64_t)count << 1 | (uint64_t)count << 21, EXPLORE_RELAXED, EXPLORE_BLOCK);
}

uint64_t explore_mbarrier_arrive(const struct explore_place *at, void *bar, uint32_t count, uint32_t bytes, int order,
				 enum explore_scope scope)
{
	return explore_change(at, bar, 8, mbarrier_next, (uint64_t)count << 32 | bytes, order, scope) & 1;
}

int explore_mbarrier_test(const struct explore_place *at, void *bar, uint32_t parity, int order,
			  enum explore_scope scope)
{
	return (explore_load(at, bar, 8, order, scope) & 1) != (parity & 1);
}

/* ---- bulk copies: a fiber of the block makes them, in any order */

static void copies_changed(struct block *b)
{
	b->changes++;
	loom__explore_wake(&b->changes, UINT32_MAX);
}

/* Waits until the copy's source has been read and, if not `reads`, the data has been written. */
static void await_copy(struct block *b, const struct copy *c, int reads)
{
	for (;;) {
		uint32_t changes = b->changes;
		if (c->state != WAITING && (reads || c->state != READ))
			return;
		loom__explore_sleep(&b->changes, changes);
	}
}

void explore_bulk(const struct explore_place *at, void *to, const void *from, uint32_t bytes, void *bar)
{
	struct fiber *f = thread(at);
	struct block *b = f->block;
	if (bytes % 16 || (uintptr_t)to % 16 || (uintptr_t)from % 16)
		explore_fault(at, "a bulk copy of %u bytes from %p to %p: all three must be multiples of 16", bytes,
			      from, to);
	if (!b->copier)
		explore_start_fiber(b->copier = explore_take_fiber(COPIER, b));
	struct copy *c = b->copy;
	while (c < b->copy + COPIES && c->state != NO_COPY)
		c++;
	if (c == b->copy + COPIES)
		explore_refuse(at, "more than %d bulk copies of a block that have not been waited for", COPIES);
	*c = (struct copy){.at = *at,
			   .to = to,
			   .from = from,
			   .bar = bar,
			   .bytes = bytes,
			   .state = WAITING,
			   .thread = loom__explore_now(),
			   .group = bar ? UINT32_MAX : f->groups};
	race_give(&c->order);
	copies_changed(b);
}

void explore_bulk_commit(const struct explore_place *at)
{
	thread(at)->groups++;
}

void explore_bulk_wait(const struct explore_place *at, uint32_t most, int reads)
{
	struct fiber *f = thread(at);
	struct block *b = f->block;
	for (struct copy *c = b->copy; c < b->copy + COPIES; c++) {
		if (c->state == NO_COPY || c->bar || c->thread != loom__explore_now() || c->group + most >= f->groups)
			continue;
		f->does = "waits for bulk copies";
		await_copy(b, c, reads);
		race_leave(&c->done);
		if (!reads)
			c->state = NO_COPY;
	}
}

static void copy_one(struct block *b, struct copy *c)
{
	char data[1 << 14];
	struct fiber *f = explore_fiber();
	race_take_as_proxy(&c->order);
	f->at = c->at;
	f->does = "copies";
	if (c->bytes > sizeof(data))
		explore_fault(&c->at, "a bulk copy of more than %zu bytes", sizeof(data));
	explore_plain(&c->at, c->from, c->bytes, 0);
	memcpy(data, c->from, c->bytes);
	race_arrive(&c->done);
	c->state = READ;
	copies_changed(b);
	explore_step(&c->at, NULL, NULL, "copies");
	explore_plain(&c->at, c->to, c->bytes, 1);
	memcpy(c->to, data, c->bytes);
	race_arrive(&c->done);
	if (c->bar)
		explore_change(&c->at, c->bar, 8, mbarrier_next, (uint32_t) - (int32_t)c->bytes, EXPLORE_RELEASE,
			       EXPLORE_BLOCK);
	c->state = c->bar ? NO_COPY : WRITTEN;
	copies_changed(b);
}

void explore_run_copier(struct fiber *f)
{
	struct block *b = f->block;
	f->self = (struct explore_self){.device = b->launch->rank, .block_idx = {b->number, 0, 0}};
	race_move((uint8_t)b->launch->rank, (uint8_t)(b - explore.block), explore_name(f));
	while (!f->quit) {
		struct copy *todo = NULL;
		uint32_t changes = b->changes;
		for (struct copy *c = b->copy; c < b->copy + COPIES; c++)
			if (c->state == WAITING && (!todo || loom__explore_steps() % 2))
				todo = c;
		if (todo) {
			copy_one(b, todo);
			continue;
		}
		f->does = "waits for copies";
		loom__explore_sleep(&b->changes, changes);
	}
	f->role = IDLE;
}

void explore_end_copier(struct block *b)
{
	for (struct copy *c = b->copy; c < b->copy + COPIES; c++) {
		if (c->state == WAITING || (c->state == READ && c->bar))
			explore_wrong(&c->at, "the block ended before its bulk copy");
		await_copy(b, c, 0);
		race_leave(&c->done);
	}
	b->copier->quit = 1;
	copies_changed(b);
}
