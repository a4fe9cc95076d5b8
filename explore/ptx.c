/* SPDX-License-Identifier: Apache-2.0 */
/* An interpreter of the PTX that communication kernels use. The rows at the end list the instructions, with their
 * operands and modifiers. The orders and defaults are those of the PTX ISA, chapter "Memory Consistency Model". */
#include "include/gpuloom/explore/ptx.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REGISTERS = 64, LABELS = 32, ARGS = 6, PARTS = 8 };
enum { WEAK = 8, VOLATILE = 16 }; /* orders, beside those of run.h */

enum { NUMBER, OPERAND, REGISTER, SPECIAL, SINK, NAME };
struct value {
	uint8_t kind;
	uint64_t bits; /* a number, or the index of an operand or register */
	const char *name;
};
struct arg {
	struct value part[PARTS]; /* of {a, b} or a|b */
	uint8_t n, address;
	int64_t offset;
};
struct type {
	char kind; /* u, s, b, f, p: a predicate */
	uint8_t size;
};
typedef uint64_t change(uint64_t old, uint64_t v);

struct insn {
	const char *name; /* with all modifiers */
	const struct row *row;
	struct value guard; /* of kind REGISTER if there is one */
	uint8_t guard_not, args, vector, compare;
	struct arg arg[ARGS];
	struct type type, source; /* source: of cvt */
	uint32_t has, target;     /* has: the classes of its modifiers */
	int order;
	enum explore_scope scope;
	change *next;
};

struct program {
	struct program *next;
	const char *key;
	char *names; /* the memory of all names */
	struct insn *insn;
	uint32_t n, regs, labels, operands;
	const char *reg[REGISTERS], *label[LABELS];
	uint32_t label_at[LABELS];
};

struct thread {
	struct explore_place at;
	struct explore_operand *operand;
	uint64_t reg[REGISTERS];
	uint32_t pc;
};

struct row {
	const char *names; /* between spaces */
	/* d: written, s: read, a: address, x: s or a, l: label; D, S: also a vector; those after ? may be missing */
	const char *args;
	uint32_t classes; /* of the modifiers that it may have */
	void (*run)(struct thread *t, const struct insn *i);
	int order;
	enum explore_scope scope; /* both without modifiers; scope 0: it must have one */
};

/* ---- values --------------------------------------------------------------------------------------------- */

static uint64_t truncated(struct type type, uint64_t v)
{
	uint32_t bits = type.kind == 'p' ? 1 : type.size * 8u;
	if (bits == 0 || bits >= 64)
		return v;
	v &= (1ull << bits) - 1;
	return type.kind == 's' && v >> (bits - 1) ? v | ~0ull << bits : v;
}

static uint64_t get(const struct thread *t, const struct value *v)
{
	if (v->kind == SPECIAL)
		return explore_special(&t->at, v->name);
	if (v->kind == REGISTER)
		return t->reg[v->bits];
	if (v->kind == NUMBER)
		return v->bits;
	const struct explore_operand *o = &t->operand[v->bits];
	char letter = o->constraint[strspn(o->constraint, "=+&")];
	return truncated((struct type){'u', letter == 'h' ? 2 : letter == 'r' || letter == 'f' ? 4 : 8}, o->bits);
}

static void put(struct thread *t, const struct value *to, uint64_t v)
{
	if (to->kind == REGISTER)
		t->reg[to->bits] = v;
	if (to->kind != OPERAND)
		return;
	struct explore_operand *o = &t->operand[to->bits];
	if (!strchr("=+", o->constraint[0]))
		explore_refuse(&t->at, "%s writes operand %%%u, which is an input; make it an output", t->at.what,
			       (unsigned)to->bits);
	o->bits = v;
}

/* Operand k, and the first operand. */
static uint64_t in(const struct thread *t, const struct insn *i, uint32_t k)
{
	return truncated(i->type, get(t, i->arg[k].part));
}

static void out(struct thread *t, const struct insn *i, uint64_t v)
{
	put(t, i->arg[0].part, truncated(i->type, v));
}

/* An address in shared memory is the pointer, whose upper 32 bits are 0. */
static char *address(const struct thread *t, const struct insn *i, uint32_t k)
{
	return (char *)(uintptr_t)(get(t, i->arg[k].part) + (uint64_t)i->arg[k].offset);
}

static double real(struct type type, uint64_t v)
{
	float f;
	double d;
	memcpy(&f, &v, sizeof(f));
	memcpy(&d, &v, sizeof(d));
	return type.size == 4 ? (double)f : d;
}

/* ---- instructions --------------------------------------------------------------------------------------- */

#define CHANGE(name, value)                                                                                            \
	static uint64_t name(uint64_t old, uint64_t v)                                                                 \
	{                                                                                                              \
		return value;                                                                                          \
	}
CHANGE(add, old + v)
CHANGE(sub, old - v)
CHANGE(and, old &v)
CHANGE(or, old | v)
CHANGE(xor, old ^ v)
CHANGE(exch, ((void)old, v))
CHANGE(inc, old >= v ? 0 : old + 1)
CHANGE(dec, !old || old > v ? v : old - 1)
CHANGE(shl, v < 64 ? old << v : 0)
CHANGE(shr, v < 64 ? old >> v : 0)
CHANGE(sar, (uint64_t)((int64_t)old >> (v < 63 ? v : 63)))
CHANGE(min_u, old < v ? old : v)
CHANGE(max_u, old > v ? old : v)
CHANGE(min_s32, (int32_t)old < (int32_t)v ? old : v)
CHANGE(max_s32, (int32_t)old > (int32_t)v ? old : v)
CHANGE(min_s64, (int64_t)old < (int64_t)v ? old : v)
CHANGE(max_s64, (int64_t)old > (int64_t)v ? old : v)

static uint64_t add_f32(uint64_t old, uint64_t v)
{
	float sum = (float)(real((struct type){'f', 4}, old) + real((struct type){'f', 4}, v));
	v = 0;
	memcpy(&v, &sum, sizeof(sum));
	return v;
}

static uint64_t add_f64(uint64_t old, uint64_t v)
{
	double sum = real((struct type){'f', 8}, old) + real((struct type){'f', 8}, v);
	memcpy(&v, &sum, sizeof(sum));
	return v;
}

/* clang-format off */
static const struct {
	const char *name, *kinds;
	uint8_t size, atomic; /* size 0: all; atomic: also an operation of atom and red */
	change *next;
} changes[] = {
	{"add", "us", 0, 1, add}, {"add", "f", 4, 1, add_f32}, {"add", "f", 8, 1, add_f64}, {"sub", "us", 0, 0, sub},
	{"and", "bp", 0, 1, and}, {"or", "bp", 0, 1, or}, {"xor", "bp", 0, 1, xor}, {"exch", "b", 0, 1, exch},
	{"inc", "u", 4, 1, inc}, {"dec", "u", 4, 1, dec},
	{"shl", "b", 0, 0, shl}, {"shr", "ub", 0, 0, shr}, {"shr", "s", 0, 0, sar},
	{"min", "u", 0, 1, min_u}, {"min", "s", 4, 1, min_s32}, {"min", "s", 8, 1, min_s64},
	{"max", "u", 0, 1, max_u}, {"max", "s", 4, 1, max_s32}, {"max", "s", 8, 1, max_s64},
};

/* Classes of modifiers. */
enum { ORDER = 1, SCOPE = 2, SPACE = 4, GLOBAL = 8, MEMORY = 12, CLUSTER = 16, VECTOR = 32, HINT = 64, TYPE = 128 };
enum { OP = 1 << 8, CAS = 1 << 9, COMPARE = 1 << 10, PARITY = 1 << 11, EXPECT = 1 << 12, READ = 1 << 13 };
enum { COMPLETE = 1 << 14, GROUP = 1 << 15, OTHER = 1 << 16 };
static const struct {
	const char *names; /* between spaces */
	uint32_t class;
	int value;
} modifiers[] = {
	{" relaxed ", ORDER, EXPLORE_RELAXED}, {" acquire ", ORDER, EXPLORE_ACQUIRE}, {" release ", ORDER, EXPLORE_RELEASE},
	{" acq_rel ", ORDER, EXPLORE_ACQ_REL}, {" sc ", ORDER, EXPLORE_SEQ_CST}, {" weak ", ORDER, WEAK}, {" volatile ", ORDER, VOLATILE},
	{" cta ", SCOPE, EXPLORE_BLOCK}, {" gpu gl ", SCOPE, EXPLORE_DEVICE}, {" sys ", SCOPE, EXPLORE_SYSTEM}, {" cluster shared::cluster ", CLUSTER, 0},
	{" global ", GLOBAL, 0}, {" shared shared::cta local ", SPACE, 0},
	{" v2 ", VECTOR, 2}, {" v4 ", VECTOR, 4}, {" v8 ", VECTOR, 8},
	{" L1 L2 nc ca cg cs lu cv wb wt mmio ", HINT, 0}, /* the PTX ISA: no change of the memory consistency */
	{" eq ", COMPARE, 2}, {" ne ", COMPARE, 5}, {" lt lo ", COMPARE, 1}, {" le ls ", COMPARE, 3}, {" gt hi ", COMPARE, 4},
	{" ge hs ", COMPARE, 6}, {" cas ", CAS, 0}, {" parity ", PARITY, 0}, {" expect_tx ", EXPECT, 0}, {" read ", READ, 0},
	{" mbarrier::complete_tx::bytes ", COMPLETE, 0}, {" bulk_group ", GROUP, 0},
	{" uni aligned to launch_dependents wait ", OTHER, 0},
};
/* clang-format on */

/* The elements of a vector are accesses of their own in the PTX ISA, but hardware makes one access of each aligned 8
 * bytes, and protocols rely on it: they poll a flag of 4 bytes beside 4 bytes of data. */
static uint32_t vector(const struct thread *t, const struct insn *i, const struct arg *values, const char *p)
{
	uint32_t n = i->vector ? i->vector : 1, all = i->type.size * n;
	if (values->n != n)
		explore_refuse(&t->at, "%s has %u values, needs %u", i->name, values->n, n);
	if (!p || (uintptr_t)p % all)
		explore_refuse(&t->at, "%s: address %p is not a multiple of %u", i->name, (const void *)p, all);
	return all;
}

static void run_ld(struct thread *t, const struct insn *i)
{
	const char *p = address(t, i, 1);
	uint32_t size = i->type.size, all = vector(t, i, &i->arg[0], p), word = all < 8 ? all : 8;
	uint64_t v = 0;
	if (i->order == WEAK)
		explore_plain(&t->at, p, all, 0);
	for (uint32_t k = 0; k < all; k += size) {
		if (k % word == 0 && i->order == WEAK)
			memcpy(&v, p + k, word);
		else if (k % word == 0)
			v = explore_load(&t->at, p + k, word, i->order, i->scope);
		put(t, &i->arg[0].part[k / size], truncated(i->type, v >> k % word * 8));
	}
}

static void run_st(struct thread *t, const struct insn *i)
{
	char *p = address(t, i, 0);
	uint32_t size = i->type.size, all = vector(t, i, &i->arg[1], p), word = all < 8 ? all : 8;
	uint64_t v = 0;
	struct type raw = {'b', (uint8_t)size};
	if (i->order == WEAK)
		explore_plain(&t->at, p, all, 1);
	for (uint32_t k = 0; k < all; k += size) {
		v = (k % word ? v : 0) | truncated(raw, get(t, &i->arg[1].part[k / size])) << k % word * 8;
		if ((k + size) % word == 0 && i->order == WEAK)
			memcpy(p + k + size - word, &v, word);
		else if ((k + size) % word == 0)
			explore_store(&t->at, p + k + size - word, word, v, i->order, i->scope);
	}
}

static void run_atom(struct thread *t, const struct insn *i)
{
	uint32_t d = *i->row->args == 'd', size = i->type.size;
	struct type raw = {'b', i->type.size};
	char *p = address(t, i, d);
	uint64_t v = truncated(raw, in(t, i, d + 1)), old;
	vector(t, i, &i->arg[d], p);
	if (i->has & CAS)
		old = explore_cas(&t->at, p, size, v, truncated(raw, in(t, i, d + 2)), i->order, i->scope);
	else
		old = explore_change(&t->at, p, size, i->next, v, i->order, i->scope);
	if (d)
		out(t, i, old);
}

static void run_fence(struct thread *t, const struct insn *i)
{
	explore_fence(&t->at, i->order, i->scope);
}

static void run_proxy(struct thread *t, const struct insn *i)
{
	(void)i;
	explore_proxy_fence(&t->at);
}

static void run_nothing(struct thread *t, const struct insn *i)
{
	if (*i->row->args == 'd') /* createpolicy */
		out(t, i, 0);
}

static void run_pause(struct thread *t, const struct insn *i)
{
	(void)t, (void)i;
	explore_pause();
}

static void run_trap(struct thread *t, const struct insn *i)
{
	(void)i;
	explore_wrong(&t->at, "the kernel executed trap");
}

static void run_bar(struct thread *t, const struct insn *i)
{
	uint32_t threads = i->args > 1 ? (uint32_t)in(t, i, 1) : 0;
	explore_barrier(&t->at, (uint32_t)in(t, i, 0), threads, !strstr(i->name, "arrive"));
}

static void run_warp(struct thread *t, const struct insn *i)
{
	explore_syncwarp(&t->at, (uint32_t)in(t, i, 0));
}

/* d|p: the first lane of the mask is elected. */
static void run_elect(struct thread *t, const struct insn *i)
{
	uint32_t mask = (uint32_t)in(t, i, 1), first = mask ? (uint32_t)__builtin_ctz(mask) : 0;
	for (uint32_t k = 0; k < i->arg[0].n; k++)
		put(t, &i->arg[0].part[k], k ? explore_special(&t->at, "%laneid") == first : first);
}

static void run_init(struct thread *t, const struct insn *i)
{
	explore_mbarrier_init(&t->at, address(t, i, 0), (uint32_t)in(t, i, 1));
}

/* arrive [count], arrive.expect_tx bytes, and expect_tx bytes, which does not arrive and returns nothing. */
static void run_arrive(struct thread *t, const struct insn *i)
{
	uint32_t d = *i->row->args == 'd', n = i->args > d + 1 ? (uint32_t)in(t, i, d + 1) : 1,
		 expects = !d || i->has & EXPECT;
	uint64_t state =
	    explore_mbarrier_arrive(&t->at, address(t, i, d), expects ? d : n, expects ? n : 0, i->order, i->scope);
	if (d)
		out(t, i, state);
}

/* The state of a phase is its parity. */
static void run_wait(struct thread *t, const struct insn *i)
{
	int ended = explore_mbarrier_test(&t->at, address(t, i, 1), (uint32_t)in(t, i, 2) & 1, i->order, i->scope);
	if (!ended && strstr(i->name, "try")) /* the instruction waits for a time */
		explore_pause();
	out(t, i, (uint64_t)ended);
}

static void run_bulk(struct thread *t, const struct insn *i)
{
	int counts = (i->has & COMPLETE) != 0, groups = (i->has & GROUP) != 0;
	if (!(i->has & GLOBAL) || counts == groups || counts != i->arg[3].address)
		explore_refuse(
		    &t->at,
		    "%s is not modelled; only copies from or to global memory, with an mbarrier or a bulk group",
		    i->name);
	explore_bulk(&t->at, address(t, i, 0), address(t, i, 1), (uint32_t)in(t, i, 2),
		     counts ? address(t, i, 3) : NULL);
}

static void run_commit(struct thread *t, const struct insn *i)
{
	(void)i;
	explore_bulk_commit(&t->at);
}

static void run_bulk_wait(struct thread *t, const struct insn *i)
{
	explore_bulk_wait(&t->at, (uint32_t)in(t, i, 0), (i->has & READ) != 0);
}

static void run_binary(struct thread *t, const struct insn *i)
{
	out(t, i, i->next(in(t, i, 1), in(t, i, 2)));
}

/* mul and mad, of integers */
static void run_mul(struct thread *t, const struct insn *i)
{
	struct type to = {i->type.kind, (uint8_t)(i->type.size * (strstr(i->name, ".wide") ? 2 : 1))};
	put(t, i->arg[0].part, truncated(to, in(t, i, 1) * in(t, i, 2) + (i->args > 3 ? get(t, i->arg[3].part) : 0)));
}

/* mov, also of the parts of a vector, and conversions of integers. */
static void run_mov(struct thread *t, const struct insn *i)
{
	const struct arg *to = &i->arg[0], *from = &i->arg[1];
	uint32_t bits = i->type.size * 8u / (to->n > from->n ? to->n : from->n);
	struct type part = {'b', (uint8_t)(bits / 8)};
	uint64_t v = 0;
	if (from->n == 1)
		v = truncated(i->source, get(t, from->part));
	for (uint32_t k = 0; from->n > 1 && k < from->n; k++)
		v |= truncated(part, get(t, &from->part[k])) << k * bits;
	for (uint32_t k = 0; k < to->n; k++)
		put(t, &to->part[k], truncated(to->n > 1 ? part : i->type, v >> k * bits));
}

static void run_setp(struct thread *t, const struct insn *i)
{
	uint64_t a = in(t, i, 1), b = in(t, i, 2);
	int less = i->type.kind == 's' ? (int64_t)a < (int64_t)b : a < b, equal = a == b, unordered = 0;
	if (i->type.kind == 'f') {
		less = real(i->type, a) < real(i->type, b);
		equal = real(i->type, a) == real(i->type, b);
		unordered = __builtin_isunordered(real(i->type, a), real(i->type, b));
	}
	int holds = !unordered && i->compare & (less ? 1 : equal ? 2 : 4);
	for (uint32_t k = 0; k < i->arg[0].n; k++)
		put(t, &i->arg[0].part[k], k ? !holds : !!holds);
}

static void run_selp(struct thread *t, const struct insn *i)
{
	out(t, i, in(t, i, get(t, i->arg[3].part) ? 1 : 2));
}

static void run_bra(struct thread *t, const struct insn *i)
{
	if (i->target < t->pc)
		explore_pause(); /* a poll loop */
	t->pc = i->target;
}

/* clang-format off */
enum {
	ACCESS = ORDER | SCOPE | MEMORY | VECTOR | HINT | TYPE,
	ATOMIC = ORDER | SCOPE | MEMORY | HINT | TYPE | OP | CAS,
	MBARRIER = ORDER | SCOPE | SPACE | TYPE,
};
static const struct row rows[] = {
	{" ld ", "Da?s", ACCESS, run_ld, WEAK, 0}, /* ?s: a cache policy */
	{" st ", "aS?s", ACCESS, run_st, WEAK, 0},
	{" atom ", "das?ss", ATOMIC, run_atom, EXPLORE_RELAXED, EXPLORE_DEVICE},
	{" red ", "as?s", ATOMIC, run_atom, EXPLORE_RELAXED, EXPLORE_DEVICE},
	{" fence ", "", ORDER | SCOPE, run_fence, EXPLORE_ACQ_REL, 0},
	{" membar ", "", SCOPE, run_fence, EXPLORE_SEQ_CST, 0},
	{" fence.proxy.async ", "", MEMORY | CLUSTER, run_proxy, 0, 0},
	{" fence.proxy.alias fence.mbarrier_init griddepcontrol ", "", ORDER | CLUSTER | OTHER, run_nothing, 0, 0},
	{" bar.sync bar.cta.sync barrier.sync barrier.cta.sync ", "s?s", OTHER, run_bar, 0, 0},
	{" bar.arrive bar.cta.arrive barrier.arrive barrier.cta.arrive ", "ss", OTHER, run_bar, 0, 0},
	{" bar.warp.sync ", "s", 0, run_warp, 0, 0},
	{" elect.sync ", "Ds", 0, run_elect, 0, 0},
	{" mbarrier.init ", "as", SPACE | TYPE, run_init, 0, 0},
	{" mbarrier.inval ", "a", SPACE | TYPE, run_nothing, 0, 0},
	{" mbarrier.expect_tx ", "as", MBARRIER, run_arrive, EXPLORE_RELAXED, EXPLORE_BLOCK},
	{" mbarrier.arrive ", "da?s", MBARRIER | EXPECT, run_arrive, EXPLORE_RELEASE, EXPLORE_BLOCK},
	{" mbarrier.test_wait ", "das", MBARRIER | PARITY, run_wait, EXPLORE_ACQUIRE, EXPLORE_BLOCK},
	{" mbarrier.try_wait ", "das?s", MBARRIER | PARITY, run_wait, EXPLORE_ACQUIRE, EXPLORE_BLOCK}, /* ?s: a time */
	{" cp.async.bulk ", "aas?xs", MEMORY | CLUSTER | COMPLETE | GROUP | HINT, run_bulk, 0, 0},
	{" cp.async.bulk.commit_group ", "", 0, run_commit, 0, 0},
	{" cp.async.bulk.wait_group ", "s", READ, run_bulk_wait, 0, 0},
	{" prefetch prefetchu discard applypriority cp.async.bulk.prefetch ", "a?ss", MEMORY | HINT, run_nothing, 0, 0},
	{" createpolicy.fractional ", "d?ss", HINT | TYPE, run_nothing, 0, 0},
	{" setmaxnreg.inc.sync setmaxnreg.dec.sync ", "s", TYPE | OTHER, run_nothing, 0, 0},
	{" nanosleep ", "s", TYPE, run_pause, 0, 0},
	{" trap ", "", 0, run_trap, 0, 0},
	{" mov ", "DS", TYPE, run_mov, 0, 0},
	{" cvt cvta ", "ds", MEMORY | TYPE | OTHER, run_mov, 0, 0},
	{" add sub and or xor shl shr min max ", "dss", TYPE, run_binary, 0, 0},
	{" mul.lo mul.wide ", "dss", TYPE, run_mul, 0, 0},
	{" mad.lo mad.wide ", "dsss", TYPE, run_mul, 0, 0},
	{" setp ", "Dss", TYPE | COMPARE, run_setp, 0, 0},
	{" selp ", "dsss", TYPE, run_selp, 0, 0},
	{" bra ", "l", OTHER, run_bra, 0, 0},
};
/* clang-format on */

/* ---- the parser ------------------------------------------------------------------------------------------ */

struct parser {
	const struct explore_place *at;
	struct program *p;
	const char *text;
	char *names; /* the next free byte */
};

static void skip(struct parser *q)
{
	for (;; q->text++) {
		if (!strncmp(q->text, "//", 2))
			q->text += strcspn(q->text, "\n");
		const char *end = strncmp(q->text, "/*", 2) ? NULL : strstr(q->text + 2, "*/");
		q->text = end ? end + 1 : q->text;
		if (!end && !isspace((unsigned char)*q->text))
			return;
	}
}

static int take(struct parser *q, char c)
{
	skip(q);
	return *q->text == c && *q->text++;
}

static void expect(struct parser *q, char c)
{
	if (!take(q, c))
		explore_refuse(q->at, "PTX: %c is missing before \"%.20s\"", c, q->text);
}

/* Returns a name, without the escapes of %% and the unique number of %=. */
static const char *word(struct parser *q)
{
	skip(q);
	char *name = q->names;
	for (; isalnum((unsigned char)*q->text) || (*q->text && strchr("_.$%", *q->text)) ||
	       (!strncmp(q->text, "::", 2) && isalnum((unsigned char)q->text[2]));
	     q->text++) {
		if (!strncmp(q->text, "%=", 2)) {
			q->text++;
			continue;
		}
		if (!strncmp(q->text, "::", 2) || !strncmp(q->text, "%%", 2)) {
			*q->names = *q->text++;
			q->names += *q->names == ':';
		}
		*q->names++ = *q->text;
	}
	if (q->names == name)
		explore_refuse(q->at, "PTX: a name is missing before \"%.20s\"", q->text);
	*q->names++ = 0;
	return name;
}

static uint32_t find(const char *const *list, uint32_t n, const char *name)
{
	uint32_t i = 0;
	while (i < n && strcmp(list[i], name))
		i++;
	return i;
}

static struct value value(struct parser *q)
{
	struct value v = {.kind = NUMBER};
	int negative = take(q, '-');
	skip(q);
	if (isdigit((unsigned char)*q->text)) {
		int is_bits = q->text[0] == '0' && q->text[1] && strchr("fFdD", q->text[1]); /* 0f3F800000 */
		v.bits = strtoull(q->text + 2 * is_bits, (char **)&q->text, is_bits ? 16 : 0);
		v.bits = negative ? -v.bits : v.bits;
		q->text += *q->text == '.' ? 1 + strspn(q->text + 1, "0123456789") : *q->text == 'U';
		return v;
	}
	if (q->text[0] == '%' && isdigit((unsigned char)q->text[1])) {
		v.kind = OPERAND;
		v.bits = strtoul(q->text + 1, (char **)&q->text, 10);
		if (v.bits >= q->p->operands)
			explore_refuse(q->at, "PTX: %%%u has no operand; the statement has %u", (unsigned)v.bits,
				       q->p->operands);
		return v;
	}
	v.name = word(q);
	v.bits = find(q->p->reg, q->p->regs, v.name);
	v.kind = v.bits < q->p->regs ? REGISTER : *v.name == '%' ? SPECIAL : strcmp(v.name, "_") ? NAME : SINK;
	return v;
}

static void parse_arg(struct parser *q, struct arg *a)
{
	char close = take(q, '[') ? ']' : take(q, '{') ? '}' : 0;
	a->address = close == ']';
	do {
		if (a->n == PARTS)
			explore_refuse(q->at, "PTX: a vector has more than %d elements before \"%.20s\"", PARTS,
				       q->text);
		a->part[a->n++] = value(q);
	} while (!a->address && take(q, close ? ',' : '|'));
	if (a->address && (take(q, '+') || *q->text == '-'))
		a->offset = (int64_t)value(q).bits;
	if (close)
		expect(q, close);
}

/* Checks the operands of an instruction against its row. */
static void check_args(struct parser *q, const struct insn *i)
{
	uint32_t k = 0, needed = (uint32_t)strcspn(i->row->args, "?") + !!(i->has & (CAS | EXPECT));
	for (const char *want = i->row->args; *want && k < i->args; want++) {
		const struct arg *a = &i->arg[k];
		char kind = (char)tolower((unsigned char)*want);
		if (kind == '?')
			continue;
		int fits = (kind == 'x' || (kind == 'a') == a->address) && (a->n == 1 || isupper((unsigned char)*want));
		for (uint32_t p = 0; p < a->n; p++) {
			uint8_t v = a->part[p].kind;
			if (v == NAME && kind != 'l')
				explore_refuse(q->at, "PTX: %s: %s is not declared; declare it with .reg", i->name,
					       a->part[p].name);
			fits &= kind == 'd' ? v == OPERAND || v == REGISTER || v == SINK
					    : (kind == 'l') == (v == NAME) && v != SINK;
		}
		k++;
		if (!fits)
			explore_refuse(q->at, "PTX: %s: operand %u has a wrong form", i->name, k);
	}
	if (k < needed || k < i->args)
		explore_refuse(q->at, "PTX: %s has %u operands, which are too %s", i->name, i->args,
			       k < needed ? "few" : "many");
}

/* Returns whether `list`, with spaces around each name, has the name of n characters. */
static int listed(const char *list, const char *name, size_t n)
{
	for (const char *p = list; (p = strchr(p, ' ')); p++)
		if (n && !strncmp(p + 1, name, n) && p[n + 1] == ' ')
			return 1;
	return 0;
}

/* Returns the class of a modifier, or 0. */
static uint32_t modifier(struct insn *i, const char *m, size_t n)
{
	if (listed(" u8 u16 u32 u64 s8 s16 s32 s64 b8 b16 b32 b64 f32 f64 pred ", m, n)) {
		i->source = (struct type){*m, *m == 'p' ? 1 : (uint8_t)(atoi(m + 1) / 8)};
		i->type = i->type.size ? i->type : i->source;
		return TYPE;
	}
	if (!strncmp(m, "L1::", 4) || !strncmp(m, "L2::", 4))
		n = 2;
	for (uint32_t k = 0; k < sizeof(modifiers) / sizeof(*modifiers); k++) {
		int v = modifiers[k].value;
		if (!listed(modifiers[k].names, m, n))
			continue;
		if (modifiers[k].class == ORDER)
			i->order = v == VOLATILE ? EXPLORE_RELAXED : v;
		if (modifiers[k].class == SCOPE || v == VOLATILE)
			i->scope = v == VOLATILE ? EXPLORE_SYSTEM : (enum explore_scope)v;
		if (modifiers[k].class == VECTOR)
			i->vector = (uint8_t)v;
		if (modifiers[k].class == COMPARE)
			i->compare = (uint8_t)v;
		return modifiers[k].class;
	}
	return 0;
}

/* The operation of atom.OP or of an instruction of that name, for the type. */
static change *operation(const struct insn *i, const char *name)
{
	size_t n = strcspn(name, ".");
	for (uint32_t k = 0; k < sizeof(changes) / sizeof(*changes); k++)
		if (strlen(changes[k].name) == n && !memcmp(changes[k].name, name, n) && i->type.kind &&
		    strchr(changes[k].kinds, i->type.kind) && (!changes[k].size || changes[k].size == i->type.size) &&
		    (changes[k].atomic || i->row->run == run_binary))
			return changes[k].next;
	return NULL;
}

/* Returns whether an instruction has the modifiers that it needs, and no wrong order. */
static int is_whole(const struct insn *i)
{
	uint32_t needs = i->row->classes & (i->row->run == run_nothing ? 0 : TYPE | COMPARE);
	int is_load = i->row->run == run_ld, is_store = i->row->run == run_st, weak = i->order == WEAK;
	if (weak)
		return (is_load || is_store) && (i->has & needs) == needs;
	return (i->has & needs) == needs && (i->scope || !(i->row->classes & SCOPE)) &&
	       !(is_load && i->order & ~EXPLORE_ACQUIRE) && !(is_store && i->order & ~EXPLORE_RELEASE) &&
	       !(i->row->classes & OP && !i->next && !(i->has & CAS)) &&
	       !(i->row->run == run_mov && i->type.kind != i->source.kind &&
		 (i->type.kind == 'f' || i->source.kind == 'f'));
}

static void parse_name(struct parser *q, struct insn *i)
{
	const char *op = NULL, *unknown = NULL;
	size_t n = strlen(i->name);
	for (; n && !i->row; n -= !i->row) /* the longest name of a row that it begins with */
		for (uint32_t k = 0; (!i->name[n] || i->name[n] == '.') && k < sizeof(rows) / sizeof(*rows); k++)
			if (listed(rows[k].names, i->name, n))
				i->row = &rows[k];
	if (!i->row)
		explore_refuse(q->at, "PTX instruction %s is not modelled", i->name);
	i->order = i->row->order;
	i->scope = i->row->scope;
	for (const char *end, *m = i->name + n; *m; m = end) {
		end = ++m;
		end += strcspn(m, ".");
		uint32_t class = modifier(i, m, (size_t)(end - m));
		if (!class && i->row->classes & OP && !op)
			op = m;
		else if (!(class & i->row->classes))
			unknown = unknown ? unknown : m;
		i->has |= class;
	}
	op = i->row->run == run_binary ? i->name : op;
	i->next = op ? operation(i, op) : NULL;
	unknown = op && !i->next && !unknown ? op : unknown;
	if (unknown)
		explore_refuse(q->at, "PTX instruction %s is not modelled: %.*s", i->name, (int)strcspn(unknown, "."),
			       unknown);
	if (!is_whole(i))
		explore_refuse(q->at, "PTX instruction %s is not modelled: its type, order or scope", i->name);
}

static void directive(struct parser *q, const char *name)
{
	struct program *p = q->p;
	if (strcmp(name, ".reg"))
		explore_refuse(q->at, "PTX directive %s is not modelled", name);
	word(q); /* the type */
	do {
		const char *reg = word(q);
		uint32_t n = take(q, '<') ? (uint32_t)value(q).bits : 0;
		if (n)
			expect(q, '>');
		for (uint32_t k = 0; k < (n ? n : 1); k++) {
			if (p->regs == REGISTERS)
				explore_refuse(q->at, "PTX: more than %d registers", REGISTERS);
			p->reg[p->regs++] = reg;
			if (n) { /* NAME<N> declares NAME0 to NAME(N - 1) */
				p->reg[p->regs - 1] = q->names;
				q->names += 1 + sprintf(q->names, "%s%u", reg, k);
			}
		}
	} while (take(q, ','));
}

static void statement(struct parser *q)
{
	struct program *p = q->p;
	struct insn i = {0};
	if (take(q, '@')) {
		i.guard_not = (uint8_t)take(q, '!');
		i.guard = value(q);
		if (i.guard.kind != REGISTER)
			explore_refuse(q->at, "PTX: the guard @ is no register that .reg declares, before \"%.20s\"",
				       q->text);
	}
	const char *name = word(q);
	if (take(q, ':')) {
		if (p->labels == LABELS)
			explore_refuse(q->at, "PTX: more than %d labels", LABELS);
		p->label[p->labels] = name;
		p->label_at[p->labels++] = p->n;
		return;
	}
	if (*name == '.') {
		directive(q, name);
	} else {
		i.name = name;
		parse_name(q, &i);
		for (skip(q); *q->text && *q->text != ';'; i.args++) {
			if (i.args == ARGS)
				explore_refuse(q->at, "PTX: %s has more than %d operands", name, ARGS);
			parse_arg(q, &i.arg[i.args]);
			skip(q);
			if (*q->text != ';' && *q->text)
				expect(q, ',');
		}
		check_args(q, &i);
		struct insn *more = realloc(p->insn, (p->n + 1) * sizeof(i));
		if (!more)
			abort();
		p->insn = more;
		p->insn[p->n++] = i;
	}
	skip(q);
	if (*q->text && *q->text != '}')
		expect(q, ';');
}

static void parse(struct program *p, const struct explore_place *at)
{
	struct parser q = {at, p, p->key, p->names};
	for (skip(&q); *q.text; skip(&q))
		if (!take(&q, ';') && !take(&q, '{') && !take(&q, '}'))
			statement(&q);
	for (uint32_t k = 0; k < p->n; k++) {
		struct insn *i = &p->insn[k];
		if (i->row->run != run_bra)
			continue;
		uint32_t label = find(p->label, p->labels, i->arg[0].part[0].name);
		if (label == p->labels)
			explore_refuse(at, "PTX: bra to %s, which is no label of the statement",
				       i->arg[0].part[0].name);
		i->target = p->label_at[label];
	}
}

static struct program *cache[1024];

/* The program of a template. The same text may belong to statements with different numbers of operands. */
static const struct program *program(const struct explore_place *at, const char *text, uint32_t operands)
{
	struct program **slot = &cache[((uintptr_t)text >> 3) % (sizeof(cache) / sizeof(*cache))];
	for (struct program *p = *slot; p; p = p->next)
		if (p->key == text && p->operands == operands)
			return p;
	struct program *p = calloc(1, sizeof(*p));
	/* A name has a byte more than its text; those of NAME<N> have up to 4. */
	size_t room = strlen(text) * 2 + 1;
	if (!p || !(p->names = malloc(room + REGISTERS * (room + 4))))
		abort();
	*p = (struct program){.next = *slot, .key = text, .names = p->names, .operands = operands};
	*slot = p;
	parse(p, at);
	return p;
}

void explore_ptx(const struct explore_place *at, const char *text, struct explore_operand *operand, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (!strchr("hrlfdn", operand[k].constraint[strspn(operand[k].constraint, "=+&")]))
			explore_refuse(at, "PTX: constraint \"%s\" is not modelled", operand[k].constraint);
	const struct program *p = program(at, text, n);
	struct thread t = {.at = *at, .operand = operand};
	while (t.pc < p->n) {
		const struct insn *i = &p->insn[t.pc++];
		t.at.what = i->name;
		if (i->guard.kind != REGISTER || (t.reg[i->guard.bits] != 0) != i->guard_not)
			i->row->run(&t, i);
	}
}
