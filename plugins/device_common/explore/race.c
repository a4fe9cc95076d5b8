/* SPDX-License-Identifier: Apache-2.0 */
#include "race.h"
#include "pct.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clock[i]: the part of fiber i that happens before. A fiber's own part grows at each of its releases. */
typedef uint32_t clock[RACE_FIBERS];

/* An access to a cell. Accesses of one fiber between two releases have equal clocks. */
struct access {
	uint32_t at;
	uint8_t by, bytes; /* the fiber; a bit for each byte of the cell; 0: there is no access */
	uint8_t scope;     /* enum race_scope; 0: a plain access */
	uint8_t is_write, is_site;
	uint32_t tag; /* of the fiber at that time: race_move() */
	const void *where; /* is_site: a struct race_site; otherwise an address of the code */
};

/* What loads acquire. of[i]: loads by device i, or by block i - RACE_DEVICES; the last one: loads of scope sys. */
enum { SYS = RACE_DEVICES + RACE_BLOCKS, DOMAINS };

/* A value of an atomic word. seen[i]: the clock of fiber i when it read or wrote this value first; 0: never. */
struct value {
	uint64_t v, step;
	uint32_t blind; /* 1: no fiber has read this value, and the add that made it has no result in the source */
	clock of[DOMAINS], seen;
};

/* The last values of a word, in modification order, which is the order of execution. */
enum { VALUES = 4 };
struct history {
	struct value value[VALUES];
	uint32_t last, count; /* index of the newest one; number of values */
	uint32_t size;
};

/* Four bytes of memory. */
enum { READS = 6, CELLS = RACE_CELLS, PROBES = 256, HISTORIES = RACE_WORDS };
struct cell {
	uintptr_t at;
	uint32_t run, reads;
	struct access write, read[READS];
	struct history *history;
};

static struct {
	uint32_t n, run, on;
	uint32_t (*now)(void);
	int stale;
	uint8_t used[DOMAINS]; /* 1: the domain has fibers */
	struct pct pct;        /* only its random numbers are used */
	uint64_t step, races;
	uint32_t histories;
	struct {
		/* seen: what loads cannot miss, although it may not happen before. acq[scope]: what relaxed loads of at
		 * least this scope have read, which a later acquire fence makes happen before. rel[scope]: what the
		 * last release fence of at least this scope releases by relaxed stores. proxy: of a fiber of the
		 * asynchronous proxy: what it sees of what others wrote by ordinary accesses. */
		clock own, seen, acq[RACE_SYS + 1], rel[RACE_SYS + 1], proxy;
		uint8_t domain[RACE_SYS + 1]; /* of each scope */
		uint8_t is_proxy;
		uint32_t tag;
	} fiber[RACE_FIBERS];
	clock fences[DOMAINS]; /* what seq_cst fences have shown */
	clock proxy; /* what a proxy fence of any fiber has covered */
	char text[1200];
} all;
static struct cell cells[CELLS];
static struct history histories[HISTORIES];

/* After so many steps, all fibers see a value. */
enum { VISIBLE_STEPS = 300 > 8 * RACE_FIBERS ? 300 : 8 * RACE_FIBERS };
/* The smallest scope. */
enum { INNER = RACE_BLOCKS ? RACE_BLOCK : RACE_DEV };

static void join(clock to, const clock from)
{
	for (uint32_t i = 0; i < all.n; i++)
		to[i] = to[i] > from[i] ? to[i] : from[i];
}

static void set(clock to, const clock from)
{
	memcpy(to, from, all.n * sizeof(to[0]));
}

static void clear(clock c)
{
	memset(c, 0, all.n * sizeof(c[0]));
}

static uint32_t running(void)
{
	return all.on ? all.now() : RACE_FIBERS;
}

static int is_recorded(void)
{
	return running() < all.n;
}

/* ---- races */

/* An access that is forgotten would be a race that does not exist. So the schedule fails. */
static void give_up(const char *what)
{
	if (!all.races)
		snprintf(all.text, sizeof(all.text), "the machine model has no room for so many %s: run a smaller job", what);
	all.races = all.races ? all.races : RACE_FULL;
}

/* Returns the cell of the address, or one that is free for it. */
static struct cell *find_cell(uintptr_t at)
{
	uint32_t first = (uint32_t)((at >> 2) * 0x9e3779b97f4a7c15ull >> 40), i = 0;
	struct cell *c = &cells[first % CELLS];
	while (i < PROBES && c->run == all.run && c->at != at)
		c = &cells[(first + ++i) % CELLS];
	return c;
}

static struct cell *cell_of(uintptr_t at)
{
	struct cell *c = find_cell(at);
	if (c->run == all.run && c->at != at)
		give_up("words");
	if (c->run != all.run || c->at != at) {
		c->at = at;
		c->run = all.run;
		c->reads = c->write.bytes = 0;
		c->history = NULL;
	}
	return c;
}

void (*race_name)(uint32_t tag, char *text, size_t room);

void race_where(const void *code, const char *file, uint32_t line, char *text, size_t room)
{
	Dl_info info = {0};
	char command[400];
	const char *slash = file ? strrchr(file, '/') : NULL;
	snprintf(text, room, !file ? "?" : line ? "%s:%u" : "%s", slash ? slash + 1 : file, line);
	if (file || !dladdr(code, &info) || !info.dli_fname || strchr(info.dli_fname, '\''))
		return;
	snprintf(command, sizeof(command), "addr2line -s -e '%s' %#lx 2>/dev/null", info.dli_fname,
		 (unsigned long)((const char *)code - (const char *)info.dli_fbase - 1));
	FILE *f = popen(command, "re");
	if (f && !fgets(text, (int)room, f))
		snprintf(text, room, "%s", command);
	if (f)
		pclose(f);
	char *end = strstr(text, " (discriminator");
	*(end ? end : text + strcspn(text, "\n")) = 0;
}

static void describe(const struct access *a, char *text, size_t room)
{
	char place[300], fiber[80];
	const struct race_site *s = a->is_site ? a->where : NULL;
	race_where(s ? s->code : a->where, s ? s->file : NULL, s ? s->line : 0, place, sizeof(place));
	if (race_name)
		race_name(a->tag, fiber, sizeof(fiber));
	else
		snprintf(fiber, sizeof(fiber), "fiber %u of device %u", a->by, all.fiber[a->by].domain[RACE_DEV]);
	snprintf(text, room, "%s%s by %s at %s%s%s%s", a->scope ? "atomic " : "", a->is_write ? "write" : "read", fiber,
		 place, s ? " (" : "", s ? s->what : "", s ? ")" : "");
}

static void report(const struct access *first, const struct access *second)
{
	char one[500], two[500];
	if (all.races++)
		return;
	describe(first, one, sizeof(one));
	describe(second, two, sizeof(two));
	snprintf(all.text, sizeof(all.text), "race: %s, after %s, which does not happen before it", two, one);
}

static void compare(const struct access *first, const struct access *second)
{
	if (!(first->bytes & second->bytes) || first->by == second->by || !(first->is_write | second->is_write))
		return;
	int by_proxy = all.fiber[second->by].is_proxy && first->is_write && !all.fiber[first->by].is_proxy;
	if (first->at <= (by_proxy ? all.fiber[second->by].proxy : all.fiber[second->by].own)[first->by])
		return;
	/* Atomic accesses do not race if the scope of each contains the other fiber. */
	uint8_t scope = first->scope < second->scope ? first->scope : second->scope;
	if (scope && all.fiber[first->by].domain[scope] == all.fiber[second->by].domain[scope])
		return;
	report(first, second);
}

static void touch_cell(struct cell *c, const struct access *a)
{
	compare(&c->write, a);
	if (!a->is_write) {
		uint32_t i = 0;
		while (i < c->reads && c->read[i].by != a->by)
			i++;
		if (i == READS)
			i = (uint32_t)pct_draw(&all.pct, READS);
		c->reads += i == c->reads;
		c->read[i] = *a;
		return;
	}
	for (uint32_t i = 0; i < c->reads; i++)
		compare(&c->read[i], a);
	c->reads = 0;
	c->write = *a;
	if (!a->scope)
		c->history = NULL;
}

/* site: NULL: a plain access by the code at `where` */
static void touch(const void *p, size_t bytes, int is_write, uint8_t scope, const struct race_site *site,
		  const void *where)
{
	uint32_t me = all.now();
	for (uintptr_t at = (uintptr_t)p, end = at + bytes; at < end;) {
		uintptr_t cell = at & ~(uintptr_t)3, next = cell + 4 < end ? cell + 4 : end;
		struct access a = {.at = all.fiber[me].own[me],
				   .by = (uint8_t)me,
				   .bytes = (uint8_t)(((1u << (next - at)) - 1) << (at - cell)),
				   .scope = scope,
				   .is_write = (uint8_t)is_write,
				   .is_site = site != NULL,
				   .tag = all.fiber[me].tag,
				   .where = site ? site : where};
		touch_cell(cell_of(cell), &a);
		at = next;
	}
}

/* ---- values of atomic words */

static uint64_t read_word(const void *p, uint32_t size)
{
	uint64_t v = 0;
	__builtin_memcpy(&v, p, size);
	return v;
}

static void write_word(void *p, uint32_t size, uint64_t v)
{
	if (size == 8)
		*(volatile uint64_t *)p = v;
	else if (size == 4)
		*(volatile uint32_t *)p = (uint32_t)v;
	else
		__builtin_memcpy(p, &v, size);
}

/* Copies what the value `from` releases; NULL: nothing. */
static void inherit(struct value *to, const struct value *from)
{
	for (int i = 0; i < DOMAINS; i++) {
		if (all.used[i] && from)
			set(to->of[i], from->of[i]);
		else if (all.used[i])
			clear(to->of[i]);
	}
	clear(to->seen);
	to->blind = 0;
}

/* Returns the history of the word. Its newest value is that in memory. */
static struct history *history_of(const void *p, uint32_t size)
{
	struct cell *c = cell_of((uintptr_t)p & ~(uintptr_t)3);
	struct history *h = c->history;
	uint64_t v = read_word(p, size);
	if (h && h->size == size && h->value[h->last].v == v)
		return h;
	if (!h && all.histories == HISTORIES) {
		give_up("atomic words");
		all.histories = 0;
	}
	if (!h)
		h = c->history = &histories[all.histories++];
	h->size = size;
	h->count = 1;
	h->last = 0;
	inherit(&h->value[0], NULL);
	h->value[0].v = v;
	h->value[0].step = 0;
	return h;
}

/* Returns 1 if the running fiber cannot miss the value: some fiber, itself or one that happens before, has seen it. */
static int must_see(const struct value *v, uint32_t me)
{
	if (v->step + VISIBLE_STEPS < all.step)
		return 1;
	for (uint32_t i = 0; i < all.n; i++)
		if (v->seen[i] && (v->seen[i] <= all.fiber[me].own[i] || v->seen[i] <= all.fiber[me].seen[i]))
			return 1;
	return 0;
}

/* Chooses the value that a load returns. */
static struct value *choose(struct history *h, uint32_t me)
{
	uint32_t at = h->last;
	for (uint32_t older = 1; older < h->count && all.stale && pct_draw(&all.pct, 4) == 0; older++) {
		if (must_see(&h->value[at], me))
			break;
		at = (at + VALUES - 1) % VALUES;
	}
	return &h->value[at];
}

static void see(struct value *v, uint32_t me)
{
	v->blind = 0;
	if (!v->seen[me])
		v->seen[me] = all.fiber[me].own[me];
}

static void acquire(const struct value *v, uint32_t me, int order, int scope)
{
	for (int i = INNER; i <= scope; i++)
		join(order & RACE_ACQUIRE ? all.fiber[me].own : all.fiber[me].acq[i], v->of[all.fiber[me].domain[i]]);
}

static void tick(uint32_t me)
{
	all.fiber[me].own[me]++;
}

/* The running fiber releases by the value what its order tells. */
static void release(struct value *to, uint32_t me, int order, int scope)
{
	for (int i = INNER; i <= scope; i++)
		join(to->of[all.fiber[me].domain[i]], order & RACE_RELEASE ? all.fiber[me].own : all.fiber[me].rel[i]);
}

/* Adds a value. keeps: 1: the change also releases what the value before it released, as a change in a release
 * sequence. */
static struct value *add(struct history *h, uint32_t me, int order, int scope, uint64_t v, int keeps)
{
	const struct value *old = &h->value[h->last];
	struct value *to = &h->value[h->last = (h->last + 1) % VALUES];
	h->count += h->count < VALUES;
	inherit(to, keeps ? old : NULL);
	to->v = v;
	to->step = all.step;
	see(to, me);
	release(to, me, order, scope);
	tick(me);
	return to;
}

/* A volatile access, which the code makes after it has called race_expose_load() or race_expose_store(). */
static struct {
	void *p; /* NULL: none */
	uint32_t size, by;
	struct history *stored; /* NULL: a load */
	const struct race_site *site;
	uint64_t newest;
} exposed;

void race_settle(void)
{
	void *p = exposed.p;
	exposed.p = NULL;
	if (p && exposed.stored)
		add(exposed.stored, exposed.by, exposed.site->order, exposed.site->scope, read_word(p, exposed.size),
		    0);
	else if (p)
		write_word(p, exposed.size, exposed.newest);
}

static int order_of(struct race_site *site)
{
	race_settle();
	site->hits++;
	all.step++;
	return site->order & ~site->dropped;
}

uint64_t race_load(struct race_site *site, const void *p, uint32_t size)
{
	int order = order_of(site);
	if (!is_recorded())
		return read_word(p, size);
	uint32_t me = running();
	touch(p, size, 0, site->scope, site, NULL);
	struct value *v = choose(history_of(p, size), me);
	see(v, me);
	acquire(v, me, order, site->scope);
	return v->v;
}

void race_store(struct race_site *site, void *p, uint32_t size, uint64_t v)
{
	int order = order_of(site);
	if (is_recorded()) {
		touch(p, size, 1, site->scope, site, NULL);
		add(history_of(p, size), running(), order, site->scope, size == 8 ? v : (uint32_t)v, 0);
	}
	write_word(p, size, v);
}

/* Replaces a word's value, which is the newest one. */
static void replace(struct race_site *site, void *p, uint32_t size, int order, uint64_t v)
{
	if (is_recorded()) {
		struct history *h = history_of(p, size);
		uint32_t me = running();
		touch(p, size, 1, site->scope, site, NULL);
		see(&h->value[h->last], me);
		acquire(&h->value[h->last], me, order, site->scope);
		add(h, me, order, site->scope, v, 1)->blind = site->blind;
	}
	write_word(p, size, v);
}

/* Adds to a word. The add may precede the newest one in modification order, if no fiber can tell: the newest add has no
 * result, no fiber has read its value, and it does not happen before. Returns 0 if it does not. *was: set to the value
 * before the add. */
static int add_before(struct race_site *site, void *p, uint32_t size, int order, uint64_t v, uint64_t *was)
{
	if (!is_recorded() || !all.stale)
		return 0;
	struct history *h = history_of(p, size);
	uint32_t me = running();
	struct value *newest = &h->value[h->last], *before = &h->value[(h->last + VALUES - 1) % VALUES];
	if (h->count < 2 || !newest->blind || must_see(newest, me) || pct_draw(&all.pct, 2))
		return 0;
	touch(p, size, 1, site->scope, site, NULL);
	struct value late = *newest;
	h->last = (h->last + VALUES - 1) % VALUES;
	h->count--;
	*was = before->v;
	see(before, me);
	acquire(before, me, order, site->scope);
	struct value *mine = add(h, me, order, site->scope, size == 8 ? *was + v : (uint32_t)(*was + v), 1);
	late.v = size == 8 ? late.v + v : (uint32_t)(late.v + v);
	for (int i = 0; i < DOMAINS; i++)
		if (all.used[i])
			join(late.of[i], mine->of[i]);
	h->last = (h->last + 1) % VALUES;
	h->count += h->count < VALUES;
	h->value[h->last] = late;
	write_word(p, size, late.v);
	return 1;
}

uint64_t race_change(struct race_site *site, void *p, uint32_t size, enum race_rmw op, uint64_t v)
{
	int order = order_of(site);
	uint64_t was = read_word(p, size), next = op == RACE_ADD ? was + v : op == RACE_OR ? was | v : v;
	if (op != RACE_ADD || !add_before(site, p, size, order, v, &was))
		replace(site, p, size, order, size == 8 ? next : (uint32_t)next);
	return was;
}

uint64_t race_update(struct race_site *site, void *p, uint32_t size, uint64_t (*next)(uint64_t old, uint64_t v),
		     uint64_t v)
{
	int order = order_of(site);
	uint64_t was = read_word(p, size);
	replace(site, p, size, order, next(was, v));
	return was;
}

void race_expose_load(struct race_site *site, void *p, uint32_t size)
{
	uint64_t v = race_load(site, p, size), newest = read_word(p, size);
	if (v == newest || !is_recorded())
		return;
	exposed.p = p;
	exposed.size = size;
	exposed.stored = NULL;
	exposed.newest = newest;
	write_word(p, size, v);
}

void race_expose_store(struct race_site *site, void *p, uint32_t size)
{
	(void)order_of(site);
	if (!is_recorded())
		return;
	touch(p, size, 1, site->scope, site, NULL);
	exposed.p = p;
	exposed.size = size;
	exposed.by = running();
	exposed.site = site;
	exposed.stored = history_of(p, size);
}

int race_cas(struct race_site *site, void *p, uint32_t size, uint64_t *expected, uint64_t v)
{
	int order = order_of(site);
	uint64_t was = read_word(p, size);
	if (was == *expected) {
		replace(site, p, size, order, v);
		return 1;
	}
	*expected = was;
	if (is_recorded()) {
		struct history *h = history_of(p, size);
		touch(p, size, 0, site->scope, site, NULL);
		see(&h->value[h->last], running());
		acquire(&h->value[h->last], running(), order, site->scope);
	}
	return 0;
}

void race_fence(struct race_site *site)
{
	int order = order_of(site);
	uint32_t me = running();
	if (me >= all.n)
		return;
	for (int i = INNER; i <= site->scope && order & RACE_ACQUIRE; i++)
		join(all.fiber[me].own, all.fiber[me].acq[i]);
	for (int i = INNER; i <= site->scope && order & RACE_SC; i++) {
		clock *shown = &all.fences[all.fiber[me].domain[i]];
		join(all.fiber[me].seen, *shown);
		if (RACE_BLOCKS) /* PTX ISA, "Fence-SC": these fences synchronise */
			join(all.fiber[me].own, *shown);
		join(*shown, all.fiber[me].own);
	}
	for (int i = INNER; i <= site->scope && order & RACE_RELEASE; i++)
		join(all.fiber[me].rel[i], all.fiber[me].own);
	tick(me);
}

void race_arrive(struct race_meeting *m)
{
	race_settle();
	uint32_t me = running();
	if (me >= all.n)
		return;
	join(m->clock, all.fiber[me].own);
	tick(me);
}

void race_leave(const struct race_meeting *m)
{
	uint32_t me = running();
	if (me < all.n)
		join(all.fiber[me].own, m->clock);
}

void race_merge(struct race_meeting *to, const struct race_meeting *from)
{
	join(to->clock, from->clock);
}

void race_proxy_fence(void)
{
	uint32_t me = running();
	race_settle();
	if (me >= all.n)
		return;
	join(all.proxy, all.fiber[me].own);
	tick(me);
}

void race_give(struct race_order *order)
{
	uint32_t me = running();
	race_settle();
	if (me >= all.n)
		return;
	set(order->all, all.fiber[me].own);
	set(order->written, all.proxy);
	tick(me);
}

void race_take_as_proxy(const struct race_order *order)
{
	uint32_t me = running();
	all.fiber[me].is_proxy = 1;
	join(all.fiber[me].own, order->all);
	join(all.fiber[me].proxy, order->written);
}

void race_reset_proxy(void)
{
	uint32_t me = running();
	all.fiber[me].is_proxy = 0;
	race_proxy_fence();
}

void race_use(uint32_t devices, uint32_t blocks)
{
	memset(all.used, 1, devices);
	memset(all.used + RACE_DEVICES, 1, blocks);
}

void race_move(uint8_t device, uint8_t block, uint32_t tag)
{
	uint8_t *domain = all.fiber[running()].domain;
	domain[RACE_BLOCK] = (uint8_t)(RACE_DEVICES + block);
	domain[RACE_DEV] = device;
	all.fiber[running()].tag = tag;
}

void race_forget(const void *p, size_t bytes)
{
	race_settle();
	for (uintptr_t at = (uintptr_t)p & ~(uintptr_t)3; all.on && at < (uintptr_t)p + bytes; at += 4) {
		struct cell *c = find_cell(at);
		if (c->run == all.run && c->at == at) {
			c->reads = c->write.bytes = 0;
			c->history = NULL;
		}
	}
}

void race_begin(uint32_t n, const uint8_t *device, uint32_t (*now)(void), uint64_t seed, int stale)
{
	all.n = n;
	all.now = now;
	all.stale = stale;
	pct_start(&all.pct, (seed + 1) * 0x9e3779b97f4a7c15ull);
	all.races = all.histories = 0;
	all.step = VISIBLE_STEPS;
	all.run++;
	*all.text = 0;
	for (int i = 0; i < DOMAINS; i++)
		clear(all.fences[i]);
	clear(all.proxy);
	memset(all.used, 0, sizeof(all.used));
	all.used[SYS] = 1;
	for (uint32_t i = 0; i < n; i++) {
		clear(all.fiber[i].own);
		clear(all.fiber[i].seen);
		clear(all.fiber[i].proxy);
		for (int scope = 0; scope <= RACE_SYS; scope++) {
			clear(all.fiber[i].acq[scope]);
			clear(all.fiber[i].rel[scope]);
		}
		all.fiber[i].is_proxy = 0;
		all.fiber[i].domain[RACE_DEV] = device[i];
		all.fiber[i].domain[RACE_SYS] = SYS;
		all.used[device[i]] = 1;
		all.fiber[i].own[i] = 1;
	}
	all.on = 1;
}

uint64_t race_count(void)
{
	return all.races;
}

uint64_t race_end(const char **text)
{
	race_settle();
	all.on = 0;
	*text = all.text;
	return all.races;
}

void race_plain(const void *p, size_t bytes, int is_write, const void *where)
{
	race_settle();
	if (is_recorded())
		touch(p, bytes, is_write, 0, NULL, where);
}

void race_plain_at(struct race_site *site, const void *p, size_t bytes, int is_write)
{
	(void)order_of(site);
	if (is_recorded())
		touch(p, bytes, is_write, site->scope, site, NULL);
}

#ifndef RACE_NO_CALLS
/* ---- calls that the compiler inserts */

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the compiler declares these functions */
#define HERE __builtin_return_address(0)

void __tsan_init(void)
{
}
void __tsan_func_entry(void *at)
{
	(void)at;
}
void __tsan_func_exit(void)
{
}
#define PLAIN_CALL(name, bytes, is_write)                                                                              \
	void __tsan_##name(const void *p)                                                                              \
	{                                                                                                              \
		race_plain(p, bytes, is_write, HERE);                                                                  \
	}
#define PLAIN_CALLS(n)                                                                                                 \
	PLAIN_CALL(read##n, n, 0)                                                                                      \
	PLAIN_CALL(write##n, n, 1)                                                                                     \
	PLAIN_CALL(unaligned_read##n, n, 0)                                                                            \
	PLAIN_CALL(unaligned_write##n, n, 1)
PLAIN_CALLS(1)
PLAIN_CALLS(2)
PLAIN_CALLS(4)
PLAIN_CALLS(8)
PLAIN_CALLS(16)
void __tsan_read_range(const void *p, size_t bytes)
{
	race_plain(p, bytes, 0, HERE);
}
void __tsan_write_range(const void *p, size_t bytes)
{
	race_plain(p, bytes, 1, HERE);
}
/* clang replaces calls of memcpy() and so on by these. */
void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
	race_plain(from, bytes, 0, HERE);
	race_plain(to, bytes, 1, HERE);
	return memcpy(to, from, bytes);
}
void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
	race_plain(from, bytes, 0, HERE);
	race_plain(to, bytes, 1, HERE);
	return memmove(to, from, bytes);
}
void *__tsan_memset(void *to, int c, size_t bytes)
{
	race_plain(to, bytes, 1, HERE);
	return memset(to, c, bytes);
}

/* Atomic accesses of code that does not use the device layer. They have the scope sys and the order that the code
 * states. */
static struct race_site *anonymous(int order)
{
	static struct race_site site[] = {{"a builtin", "", "relaxed", 0, RACE_RELAXED, RACE_SYS, 0, 0, 0, NULL},
					  {"a builtin", "", "acquire", 0, RACE_ACQUIRE, RACE_SYS, 0, 0, 0, NULL},
					  {"a builtin", "", "release", 0, RACE_RELEASE, RACE_SYS, 0, 0, 0, NULL},
					  {"a builtin", "", "acq_rel", 0, RACE_ACQ_REL, RACE_SYS, 0, 0, 0, NULL}};
	return &site[order == __ATOMIC_RELAXED ? 0 : order <= __ATOMIC_ACQUIRE ? 1 : order == __ATOMIC_RELEASE ? 2 : 3];
}
#define ATOMIC_CALL(bits, op, body, ...)                                                                               \
	uint##bits##_t __tsan_atomic##bits##_##op(__VA_ARGS__, int order)                                              \
	{                                                                                                              \
		return (uint##bits##_t)(body);                                                                         \
	}
#define CHANGE(op, v) race_change(anonymous(order), p, sizeof(*p), op, v)
#define ATOMIC_CALLS(bits)                                                                                             \
	ATOMIC_CALL(bits, load, race_load(anonymous(order), p, sizeof(*p)), const uint##bits##_t *p)                   \
	ATOMIC_CALL(bits, store, (race_store(anonymous(order), p, sizeof(*p), v), 0), uint##bits##_t *p,               \
		    uint##bits##_t v)                                                                                  \
	ATOMIC_CALL(bits, fetch_add, CHANGE(RACE_ADD, v), uint##bits##_t *p, uint##bits##_t v)                         \
	ATOMIC_CALL(bits, fetch_sub, CHANGE(RACE_ADD, (uint64_t)0 - v), uint##bits##_t *p, uint##bits##_t v)           \
	ATOMIC_CALL(bits, fetch_or, CHANGE(RACE_OR, v), uint##bits##_t *p, uint##bits##_t v)                           \
	ATOMIC_CALL(bits, exchange, CHANGE(RACE_EXCHANGE, v), uint##bits##_t *p, uint##bits##_t v)
ATOMIC_CALLS(32)
ATOMIC_CALLS(64)
void __tsan_atomic_thread_fence(int order)
{
	race_fence(anonymous(order));
}
#endif
