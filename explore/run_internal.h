/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOOM_EXPLORE_RUN_INTERNAL_H
#define LOOM_EXPLORE_RUN_INTERNAL_H

#include "../plugins/device_common/explore/race.h"
#include "rig/explore.h"
#include "run.h"

enum {
	FIBERS = RACE_FIBERS,
	BLOCKS = RACE_BLOCKS, /* of all ranks; the last ones stand for the hosts */
	RANKS = RACE_DEVICES,
	SHARED_STATIC = 64 << 10, /* room for shared variables; dynamic shared memory follows */
	SHARED_BYTES = 256 << 10,
	ALLOCATIONS = 1 << 14,
	NAMES = 1 << 16,
	BUFFERS = 256,
	COPIES = 16, /* bulk copies of a block at a time */
};

/* The round of a meeting. A thread of the next round may arrive before all of this one have left. */
struct round {
	uint32_t number, arrived;
	struct race_meeting meeting[2];
};

struct warp {
	uint32_t live; /* lanes that have not ended */
	struct lanes {
		uint32_t mask, here; /* mask: 0: free; here: lanes that have arrived */
		struct round round;
		uint64_t value[2][32];
	} lanes[32];
};

struct block {
	struct launch *launch; /* NULL: free */
	uint32_t number, live; /* live: threads that have not ended */
	char *shared;
	struct {
		struct round round;
		uint32_t all; /* 1: all threads of the block meet */
		uint32_t sum[2];
	} barrier[16];
	struct warp warp[32];
	struct fiber *copier; /* the fiber that makes bulk copies; NULL: there are none yet */
	uint32_t changes;     /* number of changes of states of copies: the copier and threads sleep on it */
	struct copy {
		struct explore_place at;
		char *to;
		const char *from;
		void *bar;
		uint32_t bytes;
		enum { NO_COPY, WAITING, READ, WRITTEN } state;
		uint32_t thread, group; /* fiber; number of the bulk group */
		struct race_order order;
		struct race_meeting done;
	} copy[COPIES];
};

struct launch {
	struct launch *next;
	struct rank *owner;
	uint32_t rank, blocks, threads, started, ended, done;
	struct explore_stream *stream;
	struct explore_place at;
	uint32_t is_copy; /* 1: a copy of the host, which takes no room on the GPU */
	struct explore_index grid, block;
	size_t shared;
	void (*body)(void *arg), (*end)(void *arg);
	void *arg;
	struct race_meeting begin, finish;
	struct round all; /* of explore_grid_barrier() */
};

struct explore_stream {
	int non_blocking;
};

enum role { IDLE, HOST, THREAD, COPIER };
struct fiber {
	struct explore_self self;
	enum role role;
	struct block *block;
	uint32_t start;          /* the fiber sleeps on it until it gets a role */
	struct explore_place at; /* its last operation */
	const void *code, *last; /* last: the word that it accessed last */
	uint32_t size;           /* of this word */
	uint32_t polls;
	const char *does;
	uint32_t groups, quit; /* number of bulk groups so far; 1: the copier must end */
};

struct explore {
	uint32_t ranks, fibers, hosts, resident;
	uint32_t over, again, want; /* again: the schedule is repeated with `want` more fibers */
	uint64_t steps;             /* after so many, the schedule hangs */
	uint32_t shared_bytes;
	const char *kind;
	char fault[600];
	struct rank {
		struct launch *first;
	} rank[RANKS];
	/* What has run on fibers in this schedule, for messages: the tags of race_move(). */
	struct name {
		enum role role;
		uint32_t rank;
		struct explore_index block, thread;
	} name[NAMES];
	uint32_t names;
	struct fiber fiber[FIBERS];
	struct block block[BLOCKS];
	struct buffer {
		const char *name;
		int rank;
		size_t bytes;
		void *p;
	} buffer[BUFFERS];
	uint32_t buffers, allocations;
	void *allocation[ALLOCATIONS];
};
extern struct explore explore;

static inline struct fiber *explore_fiber(void)
{
	uint32_t i = loom__explore_now();
	return i < FIBERS ? &explore.fiber[i] : NULL;
}

void explore_step(const struct explore_place *at, const void *code, const void *p, const char *does);
/* The calling code breaks a rule of CUDA. Ends the schedule. */
void explore_fault(const struct explore_place *at, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));
/* Gives the running fiber a name in messages. */
uint32_t explore_name(const struct fiber *f);
/* Gives a role to an idle fiber. If there is none, the schedule ends, and is repeated with more fibers. */
struct fiber *explore_take_fiber(enum role role, struct block *block);
void explore_start_fiber(struct fiber *f);
void explore_leave_block(struct fiber *f);
void explore_run_copier(struct fiber *f);
void explore_end_copier(struct block *b);

#endif
