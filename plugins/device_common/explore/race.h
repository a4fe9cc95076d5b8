/* SPDX-License-Identifier: Apache-2.0 */
/* A machine model for concurrent code that runs on fibers: scopes, memory orders, stale loads and data races.
 * docs/races.md describes the model. A device layer passes each ordered access to this code, with its place in the
 * source; plain accesses arrive by calls that the compiler inserts (-fsanitize=thread). The program must not be linked
 * to the runtime of ThreadSanitizer. */
#ifndef GPULOOM_EXPLORE_RACE_H
#define GPULOOM_EXPLORE_RACE_H

#include <stddef.h>
#include <stdint.h>

enum { RACE_FIBERS = 16, RACE_DEVICES = 8, RACE_FULL = 1 << 30 };
/* Bits of a memory order. */
enum { RACE_RELAXED = 0, RACE_ACQUIRE = 1, RACE_RELEASE = 2, RACE_ACQ_REL = 3, RACE_SC = 4, RACE_SEQ_CST = 7 };
enum race_scope { RACE_DEV = 1, RACE_SYS = 2 };

/* An ordered access or a fence in the source. */
struct race_site {
	const char *file, *function, *what;
	uint32_t line;
	uint8_t order, scope;
	uint8_t dropped; /* bits of `order` that a test takes away */
	uint8_t blind;   /* 1: an add whose result the source does not use */
	uint64_t hits;
};

/* Starts a schedule of n fibers, of which fiber i runs on device[i]. now() returns the running fiber, or n outside of
 * fibers, where nothing is recorded. seed: decides which loads are stale; `stale` = 0: none. */
void race_begin(uint32_t n, const uint8_t *device, uint32_t (*now)(void), uint64_t seed, int stale);
uint64_t race_count(void); /* the number of races so far; RACE_FULL or more: the schedule is too long for the model */
/* Ends the schedule. Returns race_count(); *text: the first one. The text is valid until the next schedule. */
uint64_t race_end(const char **text);

/* size: 4 or 8. These functions perform the access. */
uint64_t race_load(struct race_site *site, const void *p, uint32_t size);
void race_store(struct race_site *site, void *p, uint32_t size, uint64_t v);
enum race_rmw { RACE_ADD, RACE_OR, RACE_EXCHANGE };
uint64_t race_change(struct race_site *site, void *p, uint32_t size, enum race_rmw op, uint64_t v);
/* Returns 1 if the word had the value *expected. Otherwise sets *expected. */
int race_cas(struct race_site *site, void *p, uint32_t size, uint64_t *expected, uint64_t v);
void race_fence(struct race_site *site);

/* A plain access of the running fiber, which this function does not perform. where: an address of the code. */
void race_plain(const void *p, size_t bytes, int is_write, const void *where);

/* A meeting of several fibers, such as a barrier of lanes: each calls race_arrive(), and after all have arrived,
 * race_leave(). A fiber must not arrive again before all have left. */
struct race_meeting {
	uint32_t clock[RACE_FIBERS];
};
void race_arrive(struct race_meeting *m);
void race_leave(const struct race_meeting *m);

#endif
