/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, blocks, launches and memory of explored kernels: run.h. meet.c has what makes threads wait for each other.
 */
#include "run_internal.h"

#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

struct explore explore;
uint32_t explore_block_option, explore_grid_option;

/* ---- places and switches */

static struct race_site *site_of(const struct explore_place *at, const void *code, int order, int scope)
{
	enum { SITES = 1 << 12 };
	static struct race_site sites[SITES];
	uintptr_t key =
	    (uintptr_t)at->file * 31 + at->line * 1021u + (uintptr_t)at->what + (uintptr_t)code + (uint32_t)order * 7;
	for (uint32_t i = 0; i < SITES; i++) {
		struct race_site *s = &sites[(key + i) % SITES];
		if (!s->what)
			*s = (struct race_site){.file = at->file,
						.function = "",
						.what = at->what,
						.line = at->line,
						.order = (uint8_t)order,
						.scope = (uint8_t)scope,
						.code = code};
		if (s->file == at->file && s->line == at->line && s->what == at->what && s->order == order &&
		    s->scope == scope && s->code == code)
			return s;
	}
	explore_refuse(at, "more than %d different operations", SITES);
}

/* Other fibers may run before the operation. p: the word that it accesses, or NULL. A thread that accesses the same
 * word again, and changes nothing, polls. */
void explore_step(const struct explore_place *at, const void *code, const void *p, const char *does)
{
	struct fiber *f = explore_fiber();
	race_settle();
	if (!f)
		return;
	f->polls = p && p == f->last ? f->polls + 1 : 0;
	f->last = p;
	f->at = *at;
	f->code = code;
	f->does = f->polls > 1 ? "polls" : does;
	if (f->polls > 1)
		loom__explore_pause();
	else
		loom__explore_yield();
}

void explore_pause(void)
{
	race_settle();
	loom__explore_pause();
}

/* ---- memory */

/* A seq_cst access is a fence and an access (PTX ISA, "Fence-SC"). */
static void before_access(const struct explore_place *at, const void *p, uint32_t size, int order,
			  enum explore_scope scope)
{
	struct fiber *f = explore_fiber();
	explore_step(at, NULL, p, "runs");
	if (f)
		f->size = size;
	if (order == EXPLORE_SEQ_CST)
		race_fence(site_of(at, NULL, order, scope));
}

uint64_t explore_load(const struct explore_place *at, const void *p, uint32_t size, int order, enum explore_scope scope)
{
	before_access(at, p, size, order, scope);
	return race_load(site_of(at, NULL, order, scope), p, size);
}

void explore_store(const struct explore_place *at, void *p, uint32_t size, uint64_t v, int order,
		   enum explore_scope scope)
{
	before_access(at, NULL, size, order, scope);
	race_store(site_of(at, NULL, order, scope), p, size, v);
}

static void changed(uint64_t old, uint64_t now)
{
	struct fiber *f = explore_fiber();
	if (f && old != now)
		f->last = NULL;
}

uint64_t explore_change(const struct explore_place *at, void *p, uint32_t size,
			uint64_t (*next)(uint64_t old, uint64_t v), uint64_t v, int order, enum explore_scope scope)
{
	before_access(at, p, size, order, scope);
	uint64_t old = race_update(site_of(at, NULL, order, scope), p, size, next, v);
	changed(old, next(old, v));
	return old;
}

uint64_t explore_cas(const struct explore_place *at, void *p, uint32_t size, uint64_t expected, uint64_t v, int order,
		     enum explore_scope scope)
{
	before_access(at, p, size, order, scope);
	uint64_t was = expected;
	if (race_cas(site_of(at, NULL, order, scope), p, size, &was, v))
		changed(0, 1);
	return was;
}

void explore_fence(const struct explore_place *at, int order, enum explore_scope scope)
{
	explore_step(at, NULL, NULL, "runs");
	race_fence(site_of(at, NULL, order, scope));
}

void explore_proxy_fence(const struct explore_place *at)
{
	explore_step(at, NULL, NULL, "runs");
	race_proxy_fence();
}

void explore_plain(const struct explore_place *at, const void *p, size_t bytes, int is_write)
{
	race_plain_at(site_of(at, NULL, 0, 0), p, bytes, is_write);
}

/* The compiler inserts these calls before volatile accesses, which the code then performs. They have no order, and the
 * scope of the system: PTX ISA, "volatile". */
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the compiler declares these functions */
static void volatile_access(const void *p, uint32_t size, int is_write, const void *code)
{
	static const struct explore_place load = {"volatile load", NULL, 0}, store = {"volatile store", NULL, 0};
	const struct explore_place *at = is_write ? &store : &load;
	explore_step(at, code, is_write ? NULL : p, "runs");
	if (explore_fiber())
		explore_fiber()->size = size;
	struct race_site *site = site_of(at, code, EXPLORE_RELAXED, EXPLORE_SYSTEM);
	if (size != 4 && size != 8) /* without stale values */
		race_plain_at(site, p, size, is_write);
	else if (is_write)
		race_expose_store(site, (void *)(uintptr_t)p, size);
	else
		race_expose_load(site, (void *)(uintptr_t)p, size);
}
#define VOLATILE_CALLS(n)                                                                                              \
	void __tsan_volatile_read##n(const void *p)                                                                    \
	{                                                                                                              \
		volatile_access(p, n, 0, __builtin_return_address(0));                                                 \
	}                                                                                                              \
	void __tsan_volatile_write##n(const void *p)                                                                   \
	{                                                                                                              \
		volatile_access(p, n, 1, __builtin_return_address(0));                                                 \
	}
VOLATILE_CALLS(1)
VOLATILE_CALLS(2)
VOLATILE_CALLS(4)
VOLATILE_CALLS(8)
VOLATILE_CALLS(16)
/* A constructor or destructor sets the pointer to virtual functions. */
void __tsan_vptr_update(void **p, void *v)
{
	if (*p != v)
		race_plain(p, sizeof(*p), 1, __builtin_return_address(0));
}
void __tsan_vptr_read(void **p)
{
	race_plain(p, sizeof(*p), 0, __builtin_return_address(0));
}

/* ---- fibers: each has a role, or sleeps until it gets one */

static struct fiber *idle_fiber(void)
{
	for (uint32_t i = 0; i < explore.fibers; i++)
		if (explore.fiber[i].role == IDLE)
			return &explore.fiber[i];
	return NULL;
}

struct fiber *explore_take_fiber(enum role role, struct block *block)
{
	struct fiber *f = idle_fiber();
	if (!f) {
		explore.again = 1;
		explore.want += 32;
		loom__explore_stop();
	}
	f->role = role;
	f->block = block;
	f->last = NULL;
	f->does = "starts";
	f->at = (struct explore_place){0};
	f->code = NULL;
	f->groups = f->quit = 0;
	return f;
}

void explore_start_fiber(struct fiber *f)
{
	f->start = 1;
	loom__explore_wake(&f->start, 1);
}

struct explore_self *explore_self(void)
{
	struct fiber *f = explore_fiber();
	static struct explore_self none;
	return f ? &f->self : &none;
}

uint64_t explore_special(const struct explore_place *at, const char *name)
{
	const struct explore_self *s = explore_self();
	const struct {
		const char *name;
		uint64_t v;
	} known[] = {{"%tid.x", s->thread_idx.x},
		     {"%tid.y", s->thread_idx.y},
		     {"%tid.z", s->thread_idx.z},
		     {"%ntid.x", s->block_dim.x},
		     {"%ntid.y", s->block_dim.y},
		     {"%ntid.z", s->block_dim.z},
		     {"%ctaid.x", s->block_idx.x},
		     {"%ctaid.y", s->block_idx.y},
		     {"%ctaid.z", s->block_idx.z},
		     {"%nctaid.x", s->grid_dim.x},
		     {"%nctaid.y", s->grid_dim.y},
		     {"%nctaid.z", s->grid_dim.z},
		     {"%laneid", s->lane},
		     {"%warpid", s->warp},
		     {"%smid", s->block_idx.x},
		     {"%clock", loom__explore_steps()},
		     {"%clock64", loom__explore_steps()},
		     {"%globaltimer", loom__explore_steps()},
		     {"%lanemask_eq", 1u << s->lane},
		     {"%lanemask_lt", (1u << s->lane) - 1}};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].name, name))
			return known[i].v;
	explore_refuse(at, "the register %s is not modelled", name);
}

uint32_t explore_lanes(void)
{
	const struct fiber *f = explore_fiber();
	return f && f->block ? f->block->warp[f->self.warp].live : 1;
}

/* ---- blocks and launches */

uint32_t explore_shared_offset(size_t bytes, size_t align)
{
	uint32_t at = (uint32_t)((explore.shared_bytes + align - 1) / align * align);
	explore.shared_bytes = (uint32_t)(at + bytes);
	if (explore.shared_bytes > SHARED_STATIC)
		explore_refuse(&(struct explore_place){"__shared__", NULL, 0}, "more than %d bytes of shared variables",
			       SHARED_STATIC);
	return at;
}

static void place_thread(struct fiber *f, struct block *b, uint32_t thread)
{
	const struct launch *l = b->launch;
	struct explore_index d = l->block, g = l->grid;
	f->self = (struct explore_self){
	    .thread_idx = {thread % d.x, thread / d.x % d.y, thread / d.x / d.y},
	    .block_idx = {b->number % g.x, b->number / g.x % g.y, b->number / g.x / g.y},
	    .block_dim = d,
	    .grid_dim = g,
	    .lane = thread % 32,
	    .warp = thread / 32,
	    .device = l->rank,
	    .shared = b->shared,
	    .dynamic_shared = b->shared + SHARED_STATIC,
	};
}

/* Starts the next block of the launch. Returns 0 if there is no room now. */
static int start_block(struct launch *l)
{
	struct block *b = explore.block;
	while (b < explore.block + BLOCKS && b->launch)
		b++;
	uint32_t resident = 0;
	for (struct block *x = explore.block; x < explore.block + BLOCKS; x++)
		resident += x->launch && x->launch->rank == l->rank && !x->launch->is_copy;
	if ((resident >= explore.resident && !l->is_copy) || b == explore.block + BLOCKS - explore.ranks)
		return 0;
	/* The struct is large, so only what this block uses is cleared. */
	memset(b->warp, 0, (l->threads + 31) / 32 * sizeof(b->warp[0]));
	memset(b->barrier, 0, sizeof(b->barrier));
	for (int i = 0; i < COPIES; i++)
		b->copy[i].state = NO_COPY;
	b->launch = l;
	b->number = l->started++;
	b->live = l->threads;
	b->copier = NULL;
	char *shared = b->shared;
	/* The kernel before may have used the same memory. */
	race_forget(shared, explore.shared_bytes);
	race_forget(shared + SHARED_STATIC, l->shared);
	memset(shared, 0xcd, explore.shared_bytes);
	memset(shared + SHARED_STATIC, 0xcd, l->shared);
	struct fiber *thread[1024];
	for (uint32_t t = 0; t < l->threads; t++) {
		thread[t] = explore_take_fiber(THREAD, b);
		b->warp[t / 32].live |= 1u << t % 32;
		place_thread(thread[t], b, t);
	}
	for (uint32_t t = 0; t < l->threads; t++)
		explore_start_fiber(thread[t]);
	return 1;
}

/* Streams that wait for the default stream, and it for them. */
static int is_blocking(const struct explore_stream *s)
{
	return !s || !s->non_blocking;
}

/* Returns 1 if the launch `l` begins after the earlier one has ended. */
static int waits_for(const struct launch *l, const struct launch *earlier)
{
	return l->stream == earlier->stream ||
	       ((!l->stream || !earlier->stream) && is_blocking(l->stream) && is_blocking(earlier->stream));
}

/* Returns 1 if all launches for which `l` waits have ended. */
static int may_start(struct rank *r, struct launch *l)
{
	for (const struct launch *e = r->first; e != l; e = e->next)
		if (waits_for(l, e) && !e->done)
			return 0;
	for (const struct launch *e = r->first; e != l && !l->started; e = e->next)
		if (waits_for(l, e))
			race_merge(&l->begin, &e->finish);
	return 1;
}

/* Starts what can start on the rank. */
static void dispatch(struct rank *r)
{
	for (struct launch *l = r->first; l; l = l->next)
		while (l->started < l->blocks && may_start(r, l) && start_block(l)) {
		}
}

static void end_block(struct block *b)
{
	struct launch *l = b->launch;
	b->launch = NULL;
	if (++l->ended == l->blocks) {
		l->end(l->arg);
		l->done = 1;
		loom__explore_wake(&l->done, UINT32_MAX);
	}
	dispatch(l->owner);
}

static void run_thread(struct fiber *f)
{
	struct block *b = f->block;
	struct launch *l = b->launch;
	race_move((uint8_t)l->rank, (uint8_t)(b - explore.block), explore_name(f));
	race_leave(&l->begin);
	race_reset_proxy();
	l->body(l->arg);
	race_arrive(&l->finish);
	uint32_t left = --b->live;
	explore_leave_block(f);
	if (!left && b->copier) {
		explore_end_copier(b);
		race_arrive(&l->finish);
	}
	f->role = IDLE;
	if (!left)
		end_block(b);
}

/* A source with main() in place of explore_rank() is one host thread, which uses the GPUs of all ranks. The command
 * names it explore_main(); these are the names of both its forms in C++. */
int explore_main(int argc, char **argv) __asm__("_Z12explore_mainiPPc") __attribute__((weak));
int explore_main_of_none(void) __asm__("_Z12explore_mainv") __attribute__((weak));
__attribute__((weak)) void explore_rank(int rank, int ranks)
{
	static char name[] = "explored", *argv[] = {name, NULL};
	struct explore_place at = {"main", "main", 0};
	(void)ranks;
	if (!explore_main && !explore_main_of_none)
		explore_refuse(&at, "the source has neither explore_rank() nor main()");
	if (!rank && (explore_main ? explore_main(1, argv) : explore_main_of_none()))
		explore_wrong(&at, "main() did not return 0");
}

static void finish_host(void)
{
	struct fiber *f = explore_fiber();
	for (f->self.device = 0; f->self.device < explore.ranks; f->self.device++)
		explore_stream_wait(&(struct explore_place){"", "the end of its host code", 0}, NULL, 1);
	f->role = IDLE;
	if (!--explore.hosts) {
		explore.over = 1;
		for (uint32_t i = 0; i < explore.fibers; i++)
			explore_start_fiber(&explore.fiber[i]);
	}
}

static void run_host(struct fiber *f, uint32_t rank)
{
	f->self.device = rank;
	race_move((uint8_t)rank, (uint8_t)(BLOCKS - explore.ranks + rank), explore_name(f));
	explore_rank((int)rank, (int)explore.ranks);
	finish_host();
}

static void body(uint32_t i)
{
	struct fiber *f = &explore.fiber[i];
	if (i < explore.ranks)
		run_host(f, i);
	for (;;) {
		while (!f->start)
			loom__explore_sleep(&f->start, 0);
		f->start = 0;
		if (f->role == THREAD)
			run_thread(f);
		else if (f->role == COPIER)
			explore_run_copier(f);
		else if (explore.over)
			return;
	}
}

static struct rank *my_rank(void)
{
	return &explore.rank[explore_self()->device];
}

/* Adds a launch of the shape to the stream. The caller sets what it runs, and calls dispatch(). */
static struct launch *new_launch(const struct explore_place *at, const struct explore_index *grid,
				 const struct explore_index *block, struct explore_stream *stream)
{
	struct rank *r = my_rank();
	struct fiber *f = explore_fiber();
	explore_step(at, NULL, NULL, "runs");
	if (!f || f->role != HOST)
		explore_refuse(at, "a kernel launches a kernel");
	struct launch *l = explore_alloc(sizeof(*l)), **end_of = &r->first;
	*l = (struct launch){.owner = r,
			     .rank = f->self.device,
			     .stream = stream,
			     .at = *at,
			     .grid = *grid,
			     .block = *block,
			     .blocks = grid->x * grid->y * grid->z,
			     .threads = block->x * block->y * block->z};
	if (!l->blocks || !l->threads || l->threads > 1024)
		explore_fault(at, "a grid of %u blocks of %u threads", l->blocks, l->threads);
	while (*end_of)
		end_of = &(*end_of)->next;
	*end_of = l;
	race_arrive(&l->begin);
	return l;
}

void explore_launch(const struct explore_place *at, const struct explore_index *grid, const struct explore_index *block,
		    size_t shared, struct explore_stream *stream, void (*body_)(void *arg), void (*end)(void *arg),
		    void *arg)
{
	if (shared > SHARED_BYTES - SHARED_STATIC)
		explore_refuse(at, "%zu bytes of shared memory: the most is %d", shared, SHARED_BYTES - SHARED_STATIC);
	struct launch *l = new_launch(at, grid, block, stream);
	l->shared = shared;
	l->body = body_;
	l->end = end;
	l->arg = arg;
	dispatch(l->owner);
}

/* A copy of the host, or a memset if `from` is NULL. */
struct host_copy {
	struct explore_place at;
	void *to;
	const void *from;
	int value;
	size_t bytes;
};

static void run_copy(void *arg)
{
	const struct host_copy *c = arg;
	explore_step(&c->at, NULL, NULL, "copies");
	if (c->from)
		explore_plain(&c->at, c->from, c->bytes, 0);
	explore_plain(&c->at, c->to, c->bytes, 1);
	if (c->from)
		memcpy(c->to, c->from, c->bytes);
	else
		memset(c->to, c->value, c->bytes);
}

static void nothing(void *arg)
{
	(void)arg;
}

void explore_copy(const struct explore_place *at, void *to, const void *from, int value, size_t bytes,
		  struct explore_stream *stream)
{
	const struct explore_index one = {1, 1, 1};
	struct launch *l = new_launch(at, &one, &one, stream);
	struct host_copy *c = explore_alloc(sizeof(*c));
	*c = (struct host_copy){*at, to, from, value, bytes};
	l->is_copy = 1;
	l->body = run_copy;
	l->end = nothing;
	l->arg = c;
	dispatch(l->owner);
}

void explore_set_device(const struct explore_place *at, int d)
{
	if (d < 0 || (uint32_t)d >= explore.ranks)
		explore_refuse(at, "there is no GPU %d: --ranks gives their number", d);
	explore_self()->device = (uint32_t)d;
}

int explore_device_count(void)
{
	return (int)explore.ranks;
}

struct explore_stream *explore_stream_create(int non_blocking)
{
	struct explore_stream *s = explore_alloc(sizeof(*s));
	s->non_blocking = non_blocking;
	return s;
}

void explore_stream_wait(const struct explore_place *at, struct explore_stream *stream, int all)
{
	explore_step(at, NULL, NULL, "waits for its kernels");
	for (struct launch *l = my_rank()->first; l; l = l->next) {
		if (!all && l->stream != stream && (stream || !is_blocking(l->stream)))
			continue;
		while (!l->done)
			loom__explore_sleep(&l->done, 0);
		race_leave(&l->finish);
	}
}

/* ---- memory of a schedule */

static void *remember(void *p)
{
	if (!p || explore.allocations == ALLOCATIONS)
		explore_refuse(&(struct explore_place){"memory", NULL, 0}, "no room for another allocation");
	return explore.allocation[explore.allocations++] = p;
}

void *explore_alloc(size_t bytes)
{
	size_t all = (bytes + 127) / 128 * 128;
	return memset(remember(aligned_alloc(128, all)), 0xcd, all);
}

/* The next owner of this memory does not race with this one. */
void __libc_free(void *p);
void free(void *p)
{
	if (p)
		race_forget(p, malloc_usable_size(p));
	__libc_free(p);
}

void *explore_buffer(const char *name, int rank, size_t bytes)
{
	struct buffer *b = explore.buffer;
	if (rank < 0 || (uint32_t)rank >= explore.ranks)
		explore_refuse(&(struct explore_place){"buffer", NULL, 0},
			       "\"%s\" of rank %d: there are %u ranks (--ranks)", name, rank, explore.ranks);
	while (b < explore.buffer + explore.buffers && (b->rank != rank || strcmp(b->name, name)))
		b++;
	if (b == explore.buffer + explore.buffers) {
		if (explore.buffers++ == BUFFERS)
			explore_refuse(&(struct explore_place){"buffer", NULL, 0}, "more than %d buffers", BUFFERS);
		*b = (struct buffer){strcpy(explore_alloc(strlen(name) + 1), name), rank, bytes, explore_alloc(bytes)};
		memset(b->p, 0, bytes);
	}
	if (b->bytes < bytes)
		explore_refuse(&(struct explore_place){"buffer", NULL, 0}, "\"%s\" has %zu bytes, not %zu", name,
			       b->bytes, bytes);
	return b->p;
}

/* ---- schedules and messages */

/* assert() in host code and in kernels */
void __assert_fail(const char *text, const char *file, unsigned line, const char *function)
{
	(void)function;
	explore_fault(&(struct explore_place){"assert", file, line}, "assert(%s)", text);
}

static void put_index(const char *what, struct explore_index i, char *text, size_t room)
{
	size_t n = strlen(text);
	snprintf(text + n, room - n, i.y || i.z ? ", %s (%u,%u,%u)" : ", %s %u", what, i.x, i.y, i.z);
}

/* Writes the name with this tag. */
static void name_tag(uint32_t tag, char *text, size_t room)
{
	const struct name *n = &explore.name[tag];
	snprintf(text, room,
		 n->role == HOST     ? "the host code of rank %u"
		 : n->role == COPIER ? "bulk copies of rank %u"
				     : "rank %u",
		 n->rank);
	if (n->role != HOST)
		put_index("block", n->block, text, room);
	if (n->role == THREAD)
		put_index("thread", n->thread, text, room);
}

uint32_t explore_name(const struct fiber *f)
{
	uint32_t tag = explore.names < NAMES - 1 ? explore.names++ : NAMES - 1;
	uint32_t rank = f->role == HOST ? (uint32_t)(f - explore.fiber) : f->self.device;
	explore.name[tag] = (struct name){f->role, rank, f->self.block_idx, f->self.thread_idx};
	return tag;
}

static void name_fiber(uint32_t i, char *text, size_t room)
{
	uint32_t names = explore.names, tag = explore_name(&explore.fiber[i]);
	name_tag(tag, text, room);
	explore.names = names;
}

void explore_wrong(const struct explore_place *at, const char *text)
{
	char who[80];
	name_fiber(loom__explore_now(), who, sizeof(who));
	if (!*explore.fault)
		snprintf(explore.fault, sizeof(explore.fault), "wrong result: %s, found by %s at %s:%u", text, who,
			 at->file, at->line);
}

void explore_fault(const struct explore_place *at, const char *format, ...)
{
	char text[300];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	explore_wrong(at, text);
	loom__explore_stop();
	abort();
}

/* exit() in host code ends it, and all code after it. */
static void finish_host(void);
void exit(int status)
{
	struct fiber *f = explore_fiber();
	if (f && status)
		explore_fault(&f->at, "the program called exit(%d)", status);
	if (f) {
		finish_host();
		loom__explore_leave();
	}
	fflush(NULL);
	_exit(status);
}

void explore_refuse(const struct explore_place *at, const char *format, ...)
{
	va_list list;
	if (at->file)
		fprintf(stderr, "%s:%u: ", at->file, at->line);
	fprintf(stderr, "%s: ", at->what);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fprintf(stderr, "\n");
	_exit(4);
}

static int same_state(const struct fiber *a, const struct fiber *b)
{
	return a->role == b->role && a->block == b->block && a->self.device == b->self.device &&
	       a->self.block_idx.x == b->self.block_idx.x && a->does == b->does && a->at.line == b->at.line &&
	       a->at.file == b->at.file && a->code == b->code;
}

/* Prints the word on which a thread polls, and its value. */
static void print_word(FILE *out, const struct fiber *f)
{
	const char *p = f->last;
	uint64_t v = 0;
	if (!p || !f->size || f->size > 8)
		return;
	memcpy(&v, p, f->size);
	for (const struct buffer *b = explore.buffer; b < explore.buffer + explore.buffers; b++)
		if (p >= (const char *)b->p && p < (const char *)b->p + b->bytes) {
			fprintf(out, ": \"%s\" of rank %d, byte %zu, is %llu", b->name, b->rank,
				(size_t)(p - (const char *)b->p), (unsigned long long)v);
			return;
		}
	fprintf(out, ": the word is %#llx", (unsigned long long)v);
}

/* Prints what each fiber does. Threads of one block that do the same get one line. */
static void print_states(FILE *out)
{
	for (uint32_t i = 0, end; i < explore.fibers; i = end) {
		const struct fiber *f = &explore.fiber[i];
		char who[80], where[300];
		for (end = i + 1; end < explore.fibers && same_state(f, &explore.fiber[end]); end++) {
		}
		if (f->role == IDLE)
			continue;
		name_fiber(i, who, sizeof(who));
		race_where(f->code, f->at.file, f->at.line, where, sizeof(where));
		fprintf(out, "  %s", who);
		if (end - i > 1)
			fprintf(out, " to %u", explore.fiber[end - 1].self.thread_idx.x);
		fprintf(out, ": %s%s%s at %s", f->does, f->at.what && *f->at.what ? ", " : "",
			f->at.what ? f->at.what : "", where);
		if (!strcmp(f->does, "polls"))
			print_word(out, f);
		if (f->role == THREAD) {
			race_where(NULL, f->block->launch->at.file, f->block->launch->at.line, where, sizeof(where));
			fprintf(out, "; launched at %s", where);
		}
		fprintf(out, "\n");
	}
	for (uint32_t r = 0; r < explore.ranks; r++)
		for (const struct launch *l = explore.rank[r].first; l; l = l->next)
			if (l->started && l->started < l->blocks)
				fprintf(out, "  rank %u: %u of %u blocks have started, for --resident=%u\n", r,
					l->started, l->blocks, explore.resident);
}

static void prepare(void)
{
	for (; explore.allocations; explore.allocations--)
		free(explore.allocation[explore.allocations - 1]);
	explore.buffers = explore.over = explore.again = 0;
	explore.want = explore.names = 0;
	explore.hosts = explore.ranks;
	*explore.fault = 0;
	memset(explore.rank, 0, sizeof(explore.rank));
	memset(explore.fiber, 0, sizeof(explore.fiber));
	for (uint32_t i = 0; i < BLOCKS; i++)
		explore.block[i].launch = NULL;
	for (uint32_t i = 0; i < explore.ranks; i++)
		explore.fiber[i].role = HOST;
}

/* Runs a schedule. Returns the fault in words, or NULL. */
static const char *run_schedule(uint64_t seed)
{
	static const char *const kinds[] = {"random", "PCT", "random, with one thread delayed"};
	enum loom__explore_mode mode = (enum loom__explore_mode)(seed % 3);
	static const uint8_t device[FIBERS];
	const char *race;
	int stuck;
	explore.kind = kinds[mode];
	do {
		prepare();
		race_begin(explore.fibers, device, loom__explore_now, seed, 1);
		race_use(explore.ranks, BLOCKS);
		stuck = loom__explore(explore.fibers, body, mode, seed,
				      64u << (seed / 3 * 0x9e3779b97f4a7c15ull >> 32) % 12, explore.steps);
		uint64_t races = race_end(&race);
		if (explore.again && explore.fibers + explore.want > FIBERS)
			explore_refuse(&(struct explore_place){"launch", NULL, 0},
				       "more than %d threads at a time: choose a smaller grid or block",
				       FIBERS - (int)explore.ranks);
		explore.fibers += explore.want;
		race = races ? race : NULL;
	} while (explore.again);
	return race ? race : *explore.fault ? explore.fault : stuck ? "hang" : NULL;
}

/* Kernels that print do not print in each schedule. Returns the real standard output. */
static FILE *mute(int is)
{
	FILE *out = is ? fdopen(dup(STDOUT_FILENO), "w") : stdout;
	if (is && (!out || !freopen("/dev/null", "w", stdout)))
		explore_refuse(&(struct explore_place){"stdout", NULL, 0}, "it cannot be redirected");
	return out;
}

/* ---- crashes, and code that never calls the runtime */

static struct {
	FILE *out;
	uint64_t seed, ran, steps, stood; /* stood: seconds without a step */
} watch;

static void tell(FILE *out, const char *fault, uint64_t seed, uint64_t ran, double took);

static void on_signal(int number, siginfo_t *info, void *context)
{
	const ucontext_t *u = context;
	char who[80] = "?", where[300], text[500];
	(void)info;
	if (number == SIGALRM) {
		uint64_t steps = loom__explore_steps();
		watch.stood = steps == watch.steps && explore_fiber() ? watch.stood + 1 : 0;
		watch.steps = steps;
		if (watch.stood < 5)
			return;
	}
	if (explore_fiber())
		name_fiber(loom__explore_now(), who, sizeof(who));
#ifdef __x86_64__
	race_where((const char *)u->uc_mcontext.gregs[REG_RIP] + 1, NULL, 0, where, sizeof(where));
#else
	(void)u, snprintf(where, sizeof(where), "?");
#endif
	if (number == SIGALRM)
		snprintf(text, sizeof(text), "%s runs for 5 s without an atomic or volatile access or a barrier, at %s",
			 who, where);
	else
		snprintf(text, sizeof(text), "crash, %s, by %s at %s", strsignal(number), who, where);
	tell(watch.out, text, watch.seed, watch.ran, 0);
	_exit(3);
}

static void watch_signals(FILE *out)
{
	static char stack[1 << 16];
	const stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
	static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
	const struct itimerval second = {{1, 0}, {1, 0}};
	watch.out = out;
	sigaltstack(&other, NULL);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
	setitimer(ITIMER_REAL, &second, NULL);
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t number(char **argv, const char *name, uint64_t otherwise)
{
	size_t n = strlen(name);
	for (; *argv; argv++)
		if (!strncmp(*argv, name, n) && (*argv)[n] == '=')
			return strtoull(*argv + n + 1, NULL, 0);
	return otherwise;
}

static void tell(FILE *out, const char *fault, uint64_t seed, uint64_t ran, double took)
{
	fprintf(out, "found: %s\n", fault);
	if (!strcmp(fault, "hang"))
		print_states(out);
	fprintf(out, "schedule %llu (%s)", (unsigned long long)ran + 1, explore.kind);
	if (took > 0)
		fprintf(out, ", after %.2f s", took);
	fprintf(out, "\nagain: --replay %llu\n", (unsigned long long)seed);
	fflush(out);
}

/* Arguments: NAME=NUMBER. `gpuloom explore` has checked them. */
int main(int argc, char **argv)
{
	(void)argc;
	uint64_t first = number(argv, "first", 0), count = number(argv, "seeds", 1000), ran = 0;
	double begin = seconds(), limit = (double)number(argv, "time", 60);
	const char *fault = NULL;
	explore.ranks = (uint32_t)number(argv, "ranks", 1);
	explore.resident = (uint32_t)number(argv, "resident", BLOCKS);
	explore.steps = number(argv, "steps", 1000000);
	explore_grid_option = (uint32_t)number(argv, "grid", 0);
	explore_block_option = (uint32_t)number(argv, "block", 0);
	explore.fibers = explore.ranks;
	FILE *out = mute(count > 1);
	race_name = name_tag;
	char *shared = mmap(NULL, (size_t)BLOCKS * SHARED_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_32BIT, -1, 0);
	if (shared == MAP_FAILED)
		explore_refuse(&(struct explore_place){"shared memory", NULL, 0}, "no memory below 2 GiB");
	for (uint32_t i = 0; i < BLOCKS; i++)
		explore.block[i].shared = shared + (size_t)i * SHARED_BYTES;
	uint64_t seed = first;
	watch_signals(out);
	for (; ran < count && !fault && (ran == 0 || seconds() - begin < limit); ran += !fault) {
		watch.seed = seed;
		watch.ran = ran;
		if (!(fault = run_schedule(seed)))
			seed++;
	}
	double took = seconds() - begin;
	if (!fault) {
		fprintf(out, "nothing found: %llu schedules, %.0f per second\n", (unsigned long long)ran,
			(double)ran / took);
		fclose(out);
		return 0;
	}
	tell(out, fault, seed, ran, took);
	_exit(3);
}
