/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a kernel of the drivers without a GPU. A block is a thread of the host, and its threads are fibers of it, which
 * run in turn. So blocks run at the same time, and a block's threads in an order that the barriers of the kernel
 * permit. */
#ifndef LOOM_TEST_FAKE_BLOCKS_H
#define LOOM_TEST_FAKE_BLOCKS_H

#include "block.h"
#include "device_common/explore/fiber.h"

#define BLOCK_YIELDS 256u /* after so many yields without a store, a block naps as if its threads paused */
#define BLOCK_STACK  (256u << 10)
enum { BLOCK_ENDED = BLOCK_ALL + 1 };

struct block {
	struct block_view view; /* first: the program passes its address */
	const struct block_program *program;
	const void *parameter;
	uint32_t *failed; /* the stream's word: 1 ends all blocks of the kernel */
	pthread_t thread;
	uint32_t ended;                   /* number of threads that have ended */
	uint32_t room;                    /* number of fibers */
	unsigned char *waits;             /* [room]: 0; the kind of barrier at which the thread waits; or BLOCK_ENDED */
	uint32_t *arrived[BLOCK_ALL + 1]; /* [kind][first thread]: number of threads at the barrier */
	struct fiber home, *fiber, *from; /* from: the fiber that has switched last */
	struct block *next;
};

static __thread struct block *own_block;

static void block_go(struct block *b, struct fiber *me, struct fiber *to)
{
	b->from = me;
	fiber_switch(me, to);
	fiber_arrive(me, b->from);
}

static struct fiber *block_fiber(struct block *b)
{
	return &b->fiber[b->view.thread.x];
}

/* Ends the block if its kernel has failed. */
static void block_check(struct block *b)
{
	if (__atomic_load_n(b->failed, __ATOMIC_ACQUIRE))
		block_go(b, block_fiber(b), &b->home);
}

/* All threads have had their turn, and those that do not wait at a barrier poll. A block that has stored nothing for a
 * while sleeps, so that it takes little time of its core. */
static void block_nap(struct block *b)
{
	uint32_t quiet = b->view.quiet;
	if (quiet < BLOCK_YIELDS)
		return;
	b->view.quiet++;
	if (quiet < BLOCK_YIELDS + 4)
		loom_cpu_yield();
	else
		usleep(quiet < BLOCK_YIELDS + 20 ? 20 : quiet < BLOCK_YIELDS + 200 ? 300 : 1000);
}

/* Runs the next thread that does not wait. Naps when all threads have had their turn. */
static void block_next(struct block *b)
{
	uint32_t me = b->view.thread.x, n = b->view.size.x, to = me;
	do
		to = to + 1 < n ? to + 1 : 0;
	while (b->waits[to] && to != me);
	if (b->waits[to]) {
		fprintf(stderr, "fake driver: all threads of a block wait at barriers\n");
		abort();
	}
	if (to <= me)
		block_nap(b);
	if (to == me)
		return;
	b->view.thread.x = to;
	block_go(b, &b->fiber[me], &b->fiber[to]);
}

static void block_pause(struct block_view *view)
{
	struct block *b = (struct block *)view;
	block_check(b);
	if (view->quiet < BLOCK_YIELDS)
		view->quiet = BLOCK_YIELDS;
	block_next(b);
}

/* The thread may poll without a pause. */
static void block_yield(struct block_view *view)
{
	struct block *b = (struct block *)view;
	block_check(b);
	if (view->quiet < BLOCK_YIELDS)
		view->quiet++;
	block_next(b);
}

static void block_meet(struct block_view *view, int kind, uint32_t first, uint32_t count)
{
	struct block *b = (struct block *)view;
	uint32_t me = view->thread.x;
	block_check(b);
	if (++b->arrived[kind][first] < count) {
		b->waits[me] = (unsigned char)kind;
		block_next(b);
		return;
	}
	b->arrived[kind][first] = 0;
	for (uint32_t i = first; i < first + count; i++)
		if (b->waits[i] == kind)
			b->waits[i] = 0;
}

static void block_begin(struct block_view *view, uint32_t worker)
{
	struct block *b = (struct block *)view;
	if (wrong("die"))
		__atomic_store_n(b->failed, 1, __ATOMIC_RELEASE);
	block_check(b);
	while (wrong("hang") && worker == 1)
		block_pause(view);
}

static void block_end(int small, struct loom_probe *probe, int last)
{
	if (small)
		(void)fake_fails("SmallSample"); /* counts it */
	if (probe && last && __atomic_load_n(&probe->sum, __ATOMIC_RELAXED)) {
		if (wrong("lossy"))
			__atomic_fetch_add(&probe->sum, ~0ull, __ATOMIC_RELAXED);
		if (wrong("swapless"))
			__atomic_fetch_add(&probe->swaps, ~0u, __ATOMIC_RELAXED);
	}
}

static void fiber_main(void)
{
	struct block *b = own_block;
	struct fiber *me = block_fiber(b);
	fiber_arrive(me, b->from);
	b->program->run(&b->view, b->parameter);
	b->waits[b->view.thread.x] = BLOCK_ENDED;
	if (++b->ended == b->view.size.x)
		block_go(b, me, &b->home);
	block_next(b);
	abort();
}

/* Blocks that are not in use. They keep their stacks. */
static struct block *spare_blocks;

static struct block *take_block(uint32_t threads)
{
	pthread_mutex_lock(&fake_lock);
	struct block **at = &spare_blocks, *b;
	while (*at && (*at)->room < threads)
		at = &(*at)->next;
	b = *at;
	if (b)
		*at = b->next;
	pthread_mutex_unlock(&fake_lock);
	if (b)
		return b;
	b = calloc(1, sizeof(*b));
	b->room = threads;
	b->view.pause = block_pause;
	b->view.yield = block_yield;
	b->view.meet = block_meet;
	b->view.begin = block_begin;
	b->view.end = block_end;
	b->fiber = calloc(threads, sizeof(*b->fiber));
	b->waits = calloc(threads, 1);
	b->view.slot = calloc(threads, sizeof(*b->view.slot));
	b->view.turn = calloc(threads, 1);
	for (int kind = BLOCK_WAVE; kind <= BLOCK_ALL; kind++)
		b->arrived[kind] = calloc(threads, sizeof(uint32_t));
	return b;
}

static void give_block(struct block *b)
{
	pthread_mutex_lock(&fake_lock);
	b->next = spare_blocks;
	spare_blocks = b;
	pthread_mutex_unlock(&fake_lock);
}

static void *block_main(void *arg)
{
	struct block *b = arg;
	own_block = b;
	fiber_home(&b->home);
	for (uint32_t i = 0; i < b->view.size.x; i++)
		if (fiber_make(&b->fiber[i], BLOCK_STACK, fiber_main) != 0)
			exit(99);
	block_go(b, &b->home, &b->fiber[0]);
	return NULL;
}

/* With FAKE_ROOM in the environment a kernel starts when its blocks fit beside those of other kernels, which may never be, and
 * a call that frees memory waits until no kernel runs, as on a GPU. The GPUs of the fake driver share their room. */
static uint32_t resident_blocks;
enum { FAKE_MULTIPROCESSORS = 2, FAKE_BLOCKS = 4 }; /* FAKE_BLOCKS: most blocks of a multiprocessor */

static uint32_t fake_room(void)
{
	return FAKE_MULTIPROCESSORS * FAKE_BLOCKS * (wrong("two-gpus") || fake_has_ranks() ? 2 : 1);
}

/* Called before memory is freed. */
static void await_kernels(void)
{
	while (getenv("FAKE_ROOM") && __atomic_load_n(&resident_blocks, __ATOMIC_ACQUIRE))
		usleep(50);
}

static void await_room(uint32_t blocks, const uint32_t *failed)
{
	while (!__atomic_load_n(failed, __ATOMIC_ACQUIRE)) {
		uint32_t now = __atomic_load_n(&resident_blocks, __ATOMIC_ACQUIRE);
		if (now && now + blocks > fake_room() && getenv("FAKE_ROOM"))
			usleep(50);
		else if (__atomic_compare_exchange_n(&resident_blocks, &now, now + blocks, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return;
	}
	__atomic_fetch_add(&resident_blocks, blocks, __ATOMIC_ACQ_REL);
}

/* Runs the kernel, and returns when all its blocks have ended. */
static void blocks_run(const struct block_program *program, uint32_t blocks, uint32_t threads, const void *parameter,
		       uint32_t *failed)
{
	struct block *all = NULL, *b;
	await_room(blocks, failed);
	for (uint32_t i = 0; i < blocks; i++) {
		b = take_block(threads);
		b->view.index.x = i;
		b->view.size.x = threads;
		b->view.blocks.x = blocks;
		b->view.thread.x = b->view.accesses = b->view.quiet = b->ended = 0;
		b->program = program;
		b->parameter = parameter;
		b->failed = failed;
		memset(b->waits, 0, threads);
		memset(b->view.turn, 0, threads); /* threads of a kernel that has failed may have ended in any turn */
		for (int kind = BLOCK_WAVE; kind <= BLOCK_ALL; kind++)
			memset(b->arrived[kind], 0, threads * sizeof(uint32_t));
		b->next = all;
		all = b;
		if (pthread_create(&b->thread, NULL, block_main, b) != 0)
			exit(99);
	}
	while ((b = all) != NULL) {
		all = b->next;
		pthread_join(b->thread, NULL);
		give_block(b);
	}
	__atomic_fetch_sub(&resident_blocks, blocks, __ATOMIC_ACQ_REL);
}

#endif
