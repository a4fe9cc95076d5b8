/* SPDX-License-Identifier: Apache-2.0 */
/* A machine model for concurrent code that runs on fibers: scopes, memory orders, stale loads and data races.
 * docs/races.md describes the model. A device layer passes each ordered access to this code, with its place in the
 * source; plain accesses arrive by calls that the compiler inserts (-fsanitize=thread). The program must not be linked
 * to the runtime of ThreadSanitizer. */
#ifndef GPULOOM_EXPLORE_RACE_H
#define GPULOOM_EXPLORE_RACE_H

#include <stddef.h>
#include <stdint.h>

/* The Makefile sets other sizes for kernels of other people (explore/). */
#ifndef RACE_FIBERS
#define RACE_FIBERS 16
#endif
#ifndef RACE_BLOCKS
#define RACE_BLOCKS 0 /* blocks in all; 0: no scope is smaller than a device */
#endif
#ifndef RACE_WORDS
#define RACE_WORDS (1 << 13) /* atomic words in a schedule */
#endif
#ifndef RACE_CELLS
#define RACE_CELLS (1 << 16) /* a power of 2: four bytes of memory each, in a schedule */
#endif
enum { RACE_DEVICES = 8, RACE_FULL = 1 << 30 };
/* Bits of a memory order. */
enum { RACE_RELAXED = 0, RACE_ACQUIRE = 1, RACE_RELEASE = 2, RACE_ACQ_REL = 3, RACE_SC = 4, RACE_SEQ_CST = 7 };
/* A larger number is a larger scope. */
enum race_scope { RACE_BLOCK = 1, RACE_DEV, RACE_SYS };

/* An ordered access or a fence in the source. */
struct race_site {
	const char *file, *function, *what;
	uint32_t line;
	uint8_t order, scope;
	uint8_t dropped; /* bits of `order` that a test takes away */
	uint8_t blind;   /* 1: an add whose result the source does not use */
	uint64_t hits;
	const void *code; /* address of the code, if `file` is NULL */
};

/* Writes a place in the source. file: NULL: the place of this address of the code. */
void race_where(const void *code, const char *file, uint32_t line, char *text, size_t room);
/* Writes the name of the fiber with this tag (race_move()), for messages. NULL: its number and that of its device. */
extern void (*race_name)(uint32_t tag, char *text, size_t room);

/* Starts a schedule of n fibers, of which fiber i runs on device[i]. now() returns the running fiber, or n outside of
 * fibers, where nothing is recorded. seed: decides which loads are stale; `stale` = 0: none. */
void race_begin(uint32_t n, const uint8_t *device, uint32_t (*now)(void), uint64_t seed, int stale);
/* Says how many devices and blocks race_move() will name. Call it after race_begin(). */
void race_use(uint32_t devices, uint32_t blocks);
/* From now on, the running fiber runs on this device, in this block. tag: names it in messages. */
void race_move(uint8_t device, uint8_t block, uint32_t tag);
/* No access to this memory has been made. */
void race_forget(const void *p, size_t bytes);
/* Returns the number of races so far. RACE_FULL or more: the schedule is too long for the model. */
uint64_t race_count(void);
/* Ends the schedule. Returns race_count(); *text: the first one. The text is valid until the next schedule. */
uint64_t race_end(const char **text);

/* size: 4 or 8. These functions perform the access. */
uint64_t race_load(struct race_site *site, const void *p, uint32_t size);
void race_store(struct race_site *site, void *p, uint32_t size, uint64_t v);
enum race_rmw { RACE_ADD, RACE_OR, RACE_EXCHANGE };
uint64_t race_change(struct race_site *site, void *p, uint32_t size, enum race_rmw op, uint64_t v);
/* next: a function of the old value and v. */
uint64_t race_update(struct race_site *site, void *p, uint32_t size, uint64_t (*next)(uint64_t old, uint64_t v),
		     uint64_t v);
/* Returns 1 if the word had the value *expected. Otherwise sets *expected. */
int race_cas(struct race_site *site, void *p, uint32_t size, uint64_t *expected, uint64_t v);
void race_fence(struct race_site *site);

/* A meeting of several fibers, such as a barrier of lanes: each calls race_arrive(), and after all have arrived,
 * race_leave(). A fiber must not arrive again before all have left. */
struct race_meeting {
	uint32_t clock[RACE_FIBERS];
};
void race_arrive(struct race_meeting *m);
void race_leave(const struct race_meeting *m);
/* A fiber that leaves `to` then also leaves `from`. */
void race_merge(struct race_meeting *to, const struct race_meeting *from);

/* A plain access by the running fiber, which the caller performs. where: an address of the code. */
void race_plain(const void *p, size_t bytes, int is_write, const void *where);
void race_plain_at(struct race_site *site, const void *p, size_t bytes, int is_write);
/* The code performs the access itself, as its next access to memory: a volatile one, of 4 or 8 bytes. */
void race_expose_load(struct race_site *site, void *p, uint32_t size);
void race_expose_store(struct race_site *site, void *p, uint32_t size);
/* Ends such an access. The other functions call it, too. */
void race_settle(void);

/* ---- the asynchronous proxy: a fiber that copies for others. It sees what was written by ordinary accesses only if
 * a fiber for which that happened before has called race_proxy_fence(). */
struct race_order {
	uint32_t all[RACE_FIBERS], written[RACE_FIBERS];
};
void race_proxy_fence(void);
/* Records what the running fiber has seen. */
void race_give(struct race_order *order);
/* Makes the running fiber one of the asynchronous proxy, which sees what *order says. */
void race_take_as_proxy(const struct race_order *order);
/* The running fiber begins something new: it is of the generic proxy, and the asynchronous one sees what it has seen.
 */
void race_reset_proxy(void);

#endif
