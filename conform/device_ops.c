/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that a device may lack: copies, keys, adopted memory, and what a device reports about itself. They need no code
 * on workers, so they are tested on GPUs, too. */
#include <gpuloom/clock.h>
#include <gpuloom/interrupt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gpuloom/gpuloom.h>

#include "conform/bench.h"
#include "conform/settings.h"
#include "conform/tests.h"
#include "plugin/registry.h"

static const char *const few[] = {"workers", "2", NULL};

/* Returns 0 if a call has worked, SKIPPED after a proper refusal with LOOM_ENOTSUP or LOOM_EUNAVAIL, else FAILED. */
static int possible(struct loom__drive *b, const char *what, int code)
{
	if (code != LOOM_ENOTSUP && code != LOOM_EUNAVAIL)
		return loom__bench_must(b, what, code);
	LOOM__TRY(loom__judge_error(b->user, what, code, &b->err));
	return loom__skip(b->user, "%s", b->err.text);
}

static int alloc(struct loom__drive *b, uint64_t bytes, struct loom_memory *m)
{
	*m = (struct loom_memory){.size = sizeof(*m), .fd = -1, .device = -1};
	int code = b->ops->mem_alloc(b->self[0], bytes, 0, m, &b->err);
	m->device = 0;
	return loom__bench_must(b, "mem_alloc()", code);
}

/* ---- copies ----------------------------------------------------------------------------------- */

enum { COPIED = 3 << 16 };

static int copy(struct loom__drive *b, const struct loom_memory *m, int in, uint64_t offset, void *host, uint64_t bytes)
{
	return in ? loom__bench_must(b, "copy_in()", b->ops->copy_in(b->self[0], m, offset, host, bytes, &b->err))
		  : loom__bench_must(b, "copy_out()", b->ops->copy_out(b->self[0], m, offset, host, bytes, &b->err));
}

static int same(struct loom__drive *b, const unsigned char *is, const unsigned char *due, const char *when)
{
	for (uint64_t i = 0; i < COPIED; i++)
		if (is[i] != due[i])
			return loom__fault(b->user, "byte %llu of %d is %#x %s, where %#x is due",
					   (unsigned long long)i, COPIED, is[i], when, due[i]);
	return 0;
}

/* Copies that the device makes while workers may run: several are started, and end in order. */
static int started_copies(struct loom__drive *b, const struct loom_device_copies *copies, const struct loom_memory *m,
			  unsigned char *due, unsigned char *is)
{
	enum { PARTS = 4, PART = COPIED / PARTS };
	for (uint32_t how = LOOM_COPY_OUT; how <= LOOM_COPY_IN; how++) {
		uint64_t number = 0, before = 0;
		unsigned char *host = how == LOOM_COPY_IN ? due : is;
		int prepared = copies->copy_start(b->self[0], m, 0, 0, 0, how, &number, &b->err);
		if (prepared == LOOM_ENOTSUP)
			return loom__judge_error(b->user, "copy_start() of 0 bytes", prepared, &b->err);
		LOOM__TRY(loom__bench_must(b, "copy_start() of 0 bytes", prepared));
		memset(is, 0x77, COPIED);
		for (uint64_t i = 0; i < COPIED && how == LOOM_COPY_IN; i++)
			due[i] = (unsigned char)(i * 11 + (i >> 8));
		for (uint64_t part = 0; part < PARTS; part++, before = number) {
			int code =
			    copies->copy_start(b->self[0], m, part * PART, (uint64_t)(uintptr_t)host + part * PART,
					       PART, how, &number, &b->err);
			LOOM__TRY(loom__bench_must(b, "copy_start()", code));
			if (number != before + 1)
				return loom__fault(b->user, "copy_start() gives copy %llu the number %llu",
						   (unsigned long long)before + 1, (unsigned long long)number);
		}
		uint64_t until = loom__now_ns() + 5 * LOOM__SECOND;
		int code;
		while (!(code = copies->copy_ended(b->self[0], how, number)) && loom__now_ns() < until)
			;
		if (code != 1)
			return loom__fault(b->user, "copy_ended() returns %d, where the copy should have ended", code);
		if (how == LOOM_COPY_IN)
			LOOM__TRY(copy(b, m, 0, 0, is, COPIED));
		LOOM__TRY(same(b, is, due, "after copy_start() and copy_ended()"));
	}
	return 0;
}

int loom__test_device_copies(struct loom__trial *t)
{
	static const struct {
		uint64_t offset, bytes;
	} part[] = {{0, COPIED}, {0, 1}, {COPIED - 1, 1}, {4095, 2}, {4097, 8191}, {12345, 65537}, {100, 0}};
	static unsigned char due[COPIED], is[COPIED];
	struct loom__drive b;
	struct loom_memory m;
	LOOM__TRY(loom__bench_open(&b, t, 1, few));
	LOOM__TRY(alloc(&b, COPIED, &m));
	if (m.host)
		return loom__skip(t, "the host can access all memory of this device");
	if (!LOOM_HAS(b.ops, copy_in) || !LOOM_HAS(b.ops, copy_out))
		return loom__fault(
		    t, "mem_alloc() gives memory without a host address, but there is no copy_in() and copy_out()");
	memset(is, 1, sizeof(is));
	LOOM__TRY(copy(&b, &m, 0, 0, is, COPIED));
	LOOM__TRY(same(&b, is, due, "in new memory"));
	for (size_t i = 0; i < LOOM__COUNT(part); i++) {
		unsigned char *at = due + part[i].offset;
		for (uint64_t k = 0; k < part[i].bytes; k++)
			at[k] = (unsigned char)(k * 7 + i + 1);
		LOOM__TRY(copy(&b, &m, 1, part[i].offset, at, part[i].bytes));
		memset(is, 0x55, sizeof(is));
		LOOM__TRY(copy(&b, &m, 0, 0, is, COPIED));
		LOOM__TRY(same(&b, is, due, "after copy_in() and copy_out()"));
		memset(is, 0x55, sizeof(is));
		LOOM__TRY(copy(&b, &m, 0, part[i].offset, is, part[i].bytes));
		if (memcmp(is, at, part[i].bytes) || (part[i].bytes < COPIED && is[part[i].bytes] != 0x55))
			return loom__fault(t, "copy_out() of %llu bytes from %llu on writes others",
					   (unsigned long long)part[i].bytes, (unsigned long long)part[i].offset);
	}
	const struct loom_device_copies *copies = LOOM_EXTENSION_OF(b.ops, copies);
	if (copies)
		LOOM__TRY(started_copies(&b, copies, &m, due, is));
	b.ops->mem_free(b.self[0], &m);
	loom__drive_close(&b);
	return 0;
}

/* ---- memory of others ------------------------------------------------------------------------- */

int loom__test_device_keys(struct loom__trial *t)
{
	struct loom_memory_key key = {.maker = ""}, wrong = {.maker = "none of ours"};
	struct loom__drive b;
	struct loom_memory m;
	uint64_t at = 0;
	LOOM__TRY(loom__bench_open(&b, t, 1, few));
	const struct loom_device_sharing *sharing = LOOM_EXTENSION_OF(b.ops, sharing);
	if (!sharing)
		return loom__skip(t, "it shares no memory (extension sharing)");
	LOOM__TRY(alloc(&b, 1 << 16, &m));
	LOOM__TRY(possible(&b, "mem_key()", sharing->mem_key(b.self[0], &m, &key, &b.err)));
	if (!key.maker[0] || !memchr(key.maker, 0, sizeof(key.maker)))
		return loom__fault(t, "mem_key() gives a key whose `maker` is empty or does not end");
	LOOM__TRY(possible(&b, "mem_open()", sharing->mem_open(b.self[0], &key, &at, &b.err)));
	if (!at)
		return loom__fault(t, "mem_open() gives no address");
	sharing->mem_close(b.self[0], at);
	int code = sharing->mem_open(b.self[0], &wrong, &at, &b.err);
	if (!code)
		return loom__fault(t, "mem_open() accepts a key of another kind of device");
	LOOM__TRY(loom__judge_error(t, "mem_open()", code, &b.err));
	b.ops->mem_free(b.self[0], &m);
	loom__drive_close(&b);
	return 0;
}

int loom__test_device_adopt(struct loom__trial *t)
{
	struct loom_memory mine = {.size = sizeof(mine), .fd = -1, .device = -1}, m;
	struct loom__drive b;
	char *heap = malloc(4096);
	LOOM__TRY(loom__bench_open(&b, t, 1, few));
	const struct loom_device_sharing *sharing = LOOM_EXTENSION_OF(b.ops, sharing);
	if (!sharing)
		return loom__skip(t, "it shares no memory (extension sharing)");
	int code = sharing->adopt(b.self[0], heap, 4096, &mine, &b.err);
	if (code != LOOM_ENOENT)
		return loom__fault(
		    t, "adopt() of memory that is not on the device returns %d, where LOOM_ENOENT is due", code);
	LOOM__TRY(alloc(&b, 1 << 16, &m));
	void *at = (void *)(uintptr_t)m.handle;
	code = sharing->adopt(b.self[0], at, 1 << 16, &mine, &b.err);
	if (!code && mine.bytes != 1 << 16)
		return loom__fault(t, "adopt() of %d bytes gives a memory of %llu", 1 << 16,
				   (unsigned long long)mine.bytes);
	if (!code)
		sharing->disown(b.self[0], &mine);
	else if (code != LOOM_ENOENT)
		LOOM__TRY(loom__judge_error(t, "adopt()", code, &b.err));
	b.ops->mem_free(b.self[0], &m);
	free(heap);
	loom__drive_close(&b);
	return 0;
}

/* ---- reports ---------------------------------------------------------------------------------- */

static void row(struct loom_doctor *out, const char *topic, const char *state, const char *found, const char *fix)
{
	struct loom__trial *t = out->ctx;
	int ok = state && !strcmp(state, "ok");
	if (!topic || !*topic || !found || !*found)
		loom__fault(t, "doctor() reports a row without a topic, or without what was found");
	else if (!state || (!ok && strcmp(state, "limited") != 0 && strcmp(state, "no") != 0))
		loom__fault(t, "doctor() reports the state '%.20s' of '%.60s', which is none of ok, limited, no",
			    state ? state : "", topic);
	else if (!fix || (!ok && !*fix))
		loom__fault(t, "doctor() reports '%.60s' as '%s', but not how to get what is missing", topic, state);
}

static int check_energy(struct loom__drive *b, const struct loom_device_hardware *hardware)
{
	uint64_t source[2];
	double joules[2];
	for (int i = 0; i < 2; i++) {
		int code = hardware->energy(b->self[0], &source[i], &joules[i], &b->err);
		if (code == LOOM_EUNAVAIL)
			return loom__judge_error(b->user, "energy()", code, &b->err);
		LOOM__TRY(loom__bench_must(b, "energy()", code));
	}
	if (source[0] != source[1] || !isfinite(joules[0]) || joules[0] < 0 || !(joules[1] >= joules[0]))
		return loom__fault(b->user, "energy() gives %g J of counter %llu, and then %g J of counter %llu",
				   joules[0], (unsigned long long)source[0], joules[1], (unsigned long long)source[1]);
	return 0;
}

static void fact(struct loom_facts *out, const char *name, uint32_t flags, const char *text, double number)
{
	struct loom__trial *t = out->ctx;
	if (!name || !*name)
		loom__fault(t, "facts() reports a fact without a name");
	else if (flags & ~(uint32_t)(LOOM_FACT_FIXED | LOOM_FACT_UNKNOWN))
		loom__fault(t, "facts() reports '%.60s' with the unknown flags %#x", name, flags);
	else if (text ? !*text : flags & LOOM_FACT_UNKNOWN || !isfinite(number))
		loom__fault(t, "facts() reports '%.60s' without a %s", name, flags & LOOM_FACT_UNKNOWN ? "reason" : "value");
}

static int check_facts(struct loom__drive *b, const struct loom_device_hardware *hardware)
{
	struct loom_facts out = {.size = sizeof(out), .ctx = b->user, .row = fact};
	if (LOOM_HAS(hardware, facts))
		hardware->facts(b->self[0], &out);
	LOOM__TRY(loom__faulted(b->user));
	int before = LOOM_HAS(hardware, throttled) ? hardware->throttled(b->self[0], 0) : 0;
	int after = LOOM_HAS(hardware, throttled) ? hardware->throttled(b->self[0], 1000) : 0;
	if (before || (after != 0 && after != 1))
		return loom__fault(b->user, "throttled() returns %d before a sample and %d after it", before, after);
	return 0;
}

static int check_clock(struct loom__drive *b)
{
	const struct loom_clock *clock = b->ops->clock(b->self[0]);
	int is_virtual = (b->plugin->caps & LOOM_CAP_DEVICE_IS_VIRTUAL) != 0;
	if (is_virtual != (clock != NULL))
		return loom__fault(b->user, "LOOM_CAP_DEVICE_IS_VIRTUAL and clock() disagree");
	if (clock && (clock != b->ops->clock(b->self[0]) || clock->now_ns(clock) != clock->now_ns(clock)))
		return loom__fault(b->user,
				   "the virtual clock is another one in a second call, or runs between samples");
	return 0;
}

int loom__test_device_reports(struct loom__trial *t)
{
	struct loom__drive b;
	char name[64];
	const struct loom_device_ops *ops = t->plugin->ops;
	const struct loom_device_hardware *hardware = LOOM_EXTENSION_OF(ops, hardware);
	struct loom_doctor out = {.size = sizeof(out), .ctx = t, .row = row};
	if (LOOM_HAS(ops, doctor))
		ops->doctor(&t->host.table, &out);
	LOOM__TRY(loom__faulted(t));
	LOOM__TRY(loom__bench_open(&b, t, 1, few));
	if (LOOM_HAS(hardware, energy))
		LOOM__TRY(check_energy(&b, hardware));
	LOOM__TRY(check_facts(&b, hardware));
	if (LOOM_HAS(ops, clock))
		LOOM__TRY(check_clock(&b));
	memset(name, 'x', sizeof(name));
	const char *words = LOOM_HAS(hardware, time_slicing) ? hardware->time_slicing(b.self[0], name, sizeof(name)) : NULL;
	if (words && (!*words || !memchr(name, 0, sizeof(name)) || !*name))
		return loom__fault(t, "time_slicing() returns words, but no name of the hardware");
	loom__drive_close(&b);
	return 0;
}

/* ---- streams and interrupts --------------------------------------------------------------------- */

/* The word is below the threshold, so only wake() ends the wait. */
static int check_interrupt(struct loom__drive *b, const struct loom_device_interrupts *interrupts, const struct loom_memory *m)
{
	const struct loom_segment segment = {.memory = m, .bytes = m->bytes, .flags = LOOM_MEMORY_PRIVATE};
	struct loom_interrupt *interrupt = NULL;
	int code = interrupts->interrupt(b->self[0], &segment, 64, &interrupt, &b->err);
	if (code)
		return code == LOOM_ENOTSUP ? loom__judge_error(b->user, "interrupt()", code, &b->err)
					    : loom__bench_must(b, "interrupt()", code);
	if (!interrupt)
		return loom__fault(b->user, "interrupt() gives no interrupt");
	interrupt->wake(interrupt);
	code = interrupt->wait(interrupt, 1, &b->err);
	interrupt->close(interrupt);
	return code == LOOM_EINTR || code == 0
		   ? 0
		   : loom__fault(b->user, "wait() of an interrupt returns %d after wake(), where LOOM_EINTR is due",
				 code);
}

int loom__test_device_streams(struct loom__trial *t)
{
	struct loom__drive b;
	struct loom_memory m;
	int is = -1;
	LOOM__TRY(loom__bench_open(&b, t, 1, few));
	const struct loom_device_interrupts *interrupts = LOOM_EXTENSION_OF(b.ops, interrupts);
	const struct loom_device_streams *streams = LOOM_EXTENSION_OF(b.ops, streams);
	if (!interrupts && !streams)
		return loom__skip(t, "it has neither interrupts nor streams");
	LOOM__TRY(alloc(&b, 1 << 16, &m));
	if (interrupts)
		LOOM__TRY(check_interrupt(&b, interrupts, &m));
	if (streams)
		LOOM__TRY(loom__bench_must(&b, "captures()", streams->captures(b.self[0], NULL, &is, &b.err)));
	if (streams && is != 0)
		return loom__fault(t, "captures() sets %d for a stream that is not being captured", is);
	b.ops->mem_free(b.self[0], &m);
	loom__drive_close(&b);
	return 0;
}

/* ---- a program that embeds the device ------------------------------------------------------------- */

/* The task adds param[0] to a word of the stack. Devices that run functions get the function, others its source. */
static void validate_task(struct loom_ctx *c, const struct loom_task *t)
{
	if (c->lane == 0)
		loom_fetch_add_relaxed_sys((uint64_t *)loom_at(c, t->data.ref), t->param[0]);
}
static const char embed_source[] =
    "LOOM_FN void validate_task(struct loom_ctx *c, const struct loom_task *t)\n"
    "{\n"
    "	if (c->lane == 0)\n"
    "		loom_fetch_add_relaxed_sys((uint64_t *)loom_at(c, t->data.ref), t->param[0]);\n"
    "}\n";

struct program {
	struct loom__trial *t;
	struct loom_config *cfg;
	struct loom_stack *stack;
	struct loom_error err;
	uint32_t tag;
	loom_ref ref;
	uint64_t *sum, due;
	uint32_t devices;
};

/* Sets the options of the trial, which are texts "option=value", in the conf. */
static int set_options(struct program *p, const char *section)
{
	int code = 0;
	for (size_t i = 0; i < p->t->sets && !code; i++) {
		char *key = strdup(p->t->set[i]), *value = key ? strchr(key, '=') : NULL;
		if (value) {
			*value++ = 0;
			code = loom_config_set(p->cfg, section, key, value, &p->err);
		}
		free(key);
	}
	return code;
}

static int configure(struct program *p)
{
	static const char *const fixed[][3] = {{"run", "timeout", "20s"},
					       {"transport", "use", "p2p"},
					       {"scheduler", "use", "mgws"},
					       {"termination", "use", "hcounter"}};
	static const char *const small[][2] = {{"workers", "2"}, {"oversubscribe", "yes"}};
	char section[80], devices[8400], *real = realpath(p->t->path, NULL);
	int code = loom_config_create(&p->cfg, &p->err);
	snprintf(section, sizeof(section), "device.%s", loom__plugin_short(p->t->plugin));
	snprintf(devices, sizeof(devices), p->devices > 1 ? "%s:0 %s:1" : "%s:0", real ? real : p->t->path,
		 real ? real : p->t->path);
	free(real);
	if (!code)
		code = loom_config_set(p->cfg, "run", "devices", devices, &p->err);
	for (size_t i = 0; i < LOOM__COUNT(fixed) && !code; i++)
		code = loom_config_set(p->cfg, fixed[i][0], fixed[i][1], fixed[i][2], &p->err);
	for (size_t i = 0; i < LOOM__COUNT(small) && !code; i++)
		if (loom__row(p->t->plugin, small[i][0]))
			code = loom_config_set(p->cfg, section, small[i][0], small[i][1], &p->err);
	return code ? code : set_options(p, section);
}

static int open_program(struct program *p)
{
	static const char *const name[] = {"validate_task"};
	int code = configure(p);
	void *at = NULL;
	if (!code)
		code = loom_stack_open(p->cfg, NULL, &p->stack, &p->err);
	if (!code)
		code = p->t->plugin->caps & LOOM_CAP_DEVICE_IS_CPU
			   ? loom_stack_task(p->stack, name[0], validate_task, &p->tag, &p->err)
			   : loom_stack_source(p->stack, "validate.dev.h", embed_source, name, 1, &p->tag, &p->err);
	if (!code)
		code = loom_stack_alloc(p->stack, 64, &p->ref, &at, &p->err);
	p->sum = at;
	return code;
}

enum way { RUN, START, ENQUEUE };

/* One run with n tasks, and the sum after it. */
static int run_program(struct program *p, uint64_t number, enum way way)
{
	static const char *const call[] = {"loom_stack_run()", "loom_stack_start()", "loom_stack_enqueue()"};
	struct loom_task task = {.tag = p->tag, .param = {number + 1}, .data = {.ref = p->ref}};
	uint64_t n = 1 + number * 7 % 12;
	int code = 0;
	for (uint64_t i = 0; i < n && !code; i++)
		code = loom_stack_submit(p->stack, &task, 1, &p->err);
	p->due += n * task.param[0];
	if (!code && way == ENQUEUE && (code = loom_stack_enqueue(p->stack, NULL, &p->err)) == LOOM_ENOTSUP)
		way = RUN, code = 0;
	if (!code && way == START)
		code = loom_stack_start(p->stack, &p->err);
	if (!code)
		code = way == RUN ? loom_stack_run(p->stack, NULL, &p->err)
				  : loom_stack_wait(p->stack, 20 * LOOM__SECOND, NULL, &p->err);
	if (code == LOOM_EUNAVAIL)
		return loom__skip(p->t, "%s", p->err.text);
	if (code)
		return loom__fault(p->t, "run %llu, by %s, fails: %s", (unsigned long long)number, call[way],
				   p->err.text);
	uint64_t is = __atomic_load_n(p->sum, __ATOMIC_ACQUIRE);
	return is == p->due
		   ? 0
		   : loom__fault(p->t, "after run %llu, by %s, of %llu tasks the sum is %llu, where %llu is due",
				 (unsigned long long)number, call[way], (unsigned long long)n, (unsigned long long)is,
				 (unsigned long long)p->due);
}

static int embed(struct loom__trial *t, uint32_t devices)
{
	struct program p = {.t = t, .devices = devices};
	int code = open_program(&p);
	if (code == LOOM_EUNAVAIL || code == LOOM_ENOTSUP || code == LOOM_ENOENT)
		return loom__skip(t, "no stack with %u such devices: %s", devices, p.err.text);
	if (code)
		return loom__fault(t, "a program cannot open a stack with this device: %s", p.err.text);
	static const enum way ways[] = {RUN, START, RUN, ENQUEUE, ENQUEUE, RUN};
	for (uint64_t n = 0; n < LOOM__COUNT(ways); n++)
		LOOM__TRY(run_program(&p, n, ways[n]));
	loom_stack_close(p.stack);
	loom_config_destroy(p.cfg);
	return 0;
}

/* In runs after the first, the launch stays, as far as the device supports it. This uses rest(), tally(), enqueue() and
 * drain(), and with several devices muster(). */
int loom__test_device_embeds(struct loom__trial *t)
{
	LOOM__TRY(embed(t, 1));
	return LOOM_EXTENSION_OF((const struct loom_device_ops *)t->plugin->ops, kept) ? embed(t, 2) : 0;
}
