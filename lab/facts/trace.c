/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/trace.h"

#include <gpuloom/dev/trace.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "facts/text.h"
#include "facts/write.h"

static const char *const kinds[] = {
#define LOOM__TRACE_NAME(NAME, text, more) text,
    LOOM_TRACE_MAP(LOOM__TRACE_NAME)
#undef LOOM__TRACE_NAME
};

void loom__trace_want(struct loom_stack *s, uint64_t room, uint64_t every)
{
	s->trace.room = room;
	s->trace.every = every;
}

struct scribe {
	struct loom_stack *s;
	struct loom__text out;
	uint32_t device; /* index of the device whose events are being written */
	/* [devices] time at which the first worker of a device started, on the device's clock, in ns */
	uint64_t base[LOOM_MAX_DEVICES];
	uint64_t flows;
};

/* The times at which a worker started and ended, on the clock of its device in ns. Both are 0 if the worker took no
 * part. If events were lost, the last recorded event is the end. */
struct span {
	uint64_t begin, end;
};

static struct span span_of(struct loom_stack *s, uint32_t worker)
{
	const struct loom_trace *t = loom__trace_of(s, worker);
	const struct loom_event *e = (const struct loom_event *)(t + 1);
	struct span span = {s->counters[worker].begin_ns, s->counters[worker].end_ns};
	if (t->lost && t->used)
		span.end = e[t->used - 1].end_ns;
	return span.end > span.begin ? span : (struct span){0};
}

/* Sets the zero of each device's timeline. Different clocks have different origins, so devices whose workers overlap in
 * time are assumed to share a clock, and get the same zero. */
static void find_bases(struct scribe *p)
{
	struct span ran[LOOM_MAX_DEVICES] = {0};
	uint32_t devices = p->s->layout.devices;
	for (uint32_t d = 0; d < devices; d++) {
		const struct loom_device_shape *shape = &p->s->shape[d];
		for (uint32_t w = shape->first_worker; w < shape->first_worker + shape->workers; w++) {
			struct span one = span_of(p->s, w);
			if (one.end && (!ran[d].end || one.begin < ran[d].begin))
				ran[d].begin = one.begin;
			ran[d].end = one.end > ran[d].end ? one.end : ran[d].end;
		}
		p->base[d] = ran[d].begin;
	}
	for (uint32_t again = 0; again < devices; again++)
		for (uint32_t a = 0; a < devices; a++)
			for (uint32_t b = 0; b < devices; b++)
				if (ran[a].begin < ran[b].end && ran[b].begin < ran[a].end && p->base[b] < p->base[a])
					p->base[a] = p->base[b];
}

/* Appends "key":microseconds. The text has a decimal point in every locale. */
static void add_us(struct scribe *p, const char *key, uint64_t ns)
{
	loom__text_add(&p->out, ",\"%s\":%llu.%03llu", key, (unsigned long long)(ns / 1000),
		       (unsigned long long)(ns % 1000));
}

static uint64_t since(const struct scribe *p, uint32_t device, uint64_t ns)
{
	return ns > p->base[device] ? ns - p->base[device] : 0;
}

/* Appends "key":"text". It replaces quotes and backslashes, because names of an embedding program's task functions may
 * contain any bytes. */
static void add_text(struct scribe *p, const char *key, const char *text)
{
	loom__line_add(&p->out, ",\"%s\":\"", key);
	size_t from = p->out.length;
	loom__line_add(&p->out, "%s", text);
	for (; from < p->out.length; from++)
		if (strchr("\"\\", p->out.at[from]))
			p->out.at[from] = '_';
	loom__text_add(&p->out, "\"");
}

static void open_event(struct scribe *p, char phase, uint32_t device, uint32_t worker)
{
	loom__text_add(&p->out, "%s{\"ph\":\"%c\",\"pid\":%u,\"tid\":%u", p->out.length > 20 ? ",\n" : "", phase,
		       device, worker);
}

/* Appends the name of a device or worker. `what` is the kind of name that the viewer expects. */
static void add_name(struct scribe *p, const char *what, uint32_t worker, const char *name)
{
	open_event(p, 'M', p->device, worker);
	add_text(p, "name", what);
	loom__text_add(&p->out, ",\"args\":{\"of\":\"gpuloom\"");
	add_text(p, "name", name);
	loom__text_add(&p->out, "}}");
}

static uint32_t device_of(const struct loom_stack *s, uint32_t worker)
{
	uint32_t d = 0;
	while (d + 1 < s->layout.devices && worker >= s->shape[d].first_worker + s->shape[d].workers)
		d++;
	return d;
}

/* Appends one end of the arrow from a victim to a thief. The time is clamped to the interval in which the worker ran,
 * because viewers drop arrows that end outside of a slice. */
static void add_arrow(struct scribe *p, char phase, uint32_t worker, uint64_t at)
{
	uint32_t device = device_of(p->s, worker);
	struct span ran = span_of(p->s, worker);
	uint64_t first = since(p, device, ran.begin), last = since(p, device, ran.end);
	open_event(p, phase, device, worker);
	loom__text_add(&p->out, ",\"id\":%llu,\"name\":\"stolen\",\"cat\":\"steal\"%s", (unsigned long long)p->flows,
		       phase == 'f' ? ",\"bp\":\"e\"" : "");
	add_us(p, "ts", at < first ? first : at > last ? last : at);
	loom__text_add(&p->out, "}");
}

static void add_slice(struct scribe *p, uint32_t worker, const char *name, const char *kind, struct span at)
{
	uint64_t begin = since(p, p->device, at.begin);
	open_event(p, 'X', p->device, worker);
	add_text(p, "name", name);
	add_text(p, "cat", kind);
	add_us(p, "ts", begin);
	add_us(p, "dur", since(p, p->device, at.end) - begin);
}

static void add_event(struct scribe *p, uint32_t worker, const struct loom_event *e)
{
	const char *kind = e->what < LOOM_TRACE_KINDS ? kinds[e->what] : "unknown";
	int task = e->what == LOOM_TRACE_TASK && e->other < p->s->code.tasks;
	add_slice(p, worker, task ? p->s->code.task[e->other].name : kind, kind, (struct span){e->begin_ns, e->end_ns});
	loom__text_add(&p->out, ",\"args\":{\"tasks\":%llu", (unsigned long long)e->count);
	if (e->what == LOOM_TRACE_STEAL)
		loom__text_add(&p->out, ",\"victim\":%u", e->other);
	loom__text_add(&p->out, "}}");
	/* A victim in another rank has no timeline in this file, so no arrow can start there. */
	if (e->what != LOOM_TRACE_STEAL || e->other >= p->s->layout.workers)
		return;
	p->flows++;
	add_arrow(p, 's', e->other, since(p, p->device, e->begin_ns));
	add_arrow(p, 'f', worker, since(p, p->device, e->end_ns));
}

/* Appends a slice "busy". A worker counts as busy except while it is idle or detects termination, so the slices do not
 * depend on which tasks were recorded. */
static void add_busy(struct scribe *p, uint32_t worker, uint64_t begin, uint64_t end)
{
	if (end <= begin)
		return;
	add_slice(p, worker, "busy", "busy", (struct span){begin, end});
	loom__text_add(&p->out, "}");
}

static void add_worker(struct scribe *p, uint32_t worker, struct loom__traced *traced)
{
	const struct loom_trace *t = loom__trace_of(p->s, worker);
	const struct loom_event *e = (const struct loom_event *)(t + 1);
	struct span ran = span_of(p->s, worker);
	uint64_t from = ran.begin;
	for (uint64_t k = 0; k < t->used && k < p->s->trace.room; k++)
		if (e[k].what == LOOM_TRACE_IDLE || e[k].what == LOOM_TRACE_END) {
			add_busy(p, worker, from, e[k].begin_ns);
			from = e[k].end_ns > from ? e[k].end_ns : from;
		}
	add_busy(p, worker, from, ran.end);
	for (uint64_t k = 0; k < t->used && k < p->s->trace.room; k++) {
		add_event(p, worker, &e[k]);
		traced->tasks += e[k].what == LOOM_TRACE_TASK;
	}
	traced->lost += t->lost;
}

static void add_device(struct scribe *p, struct loom__traced *traced)
{
	struct loom_stack *s = p->s;
	const struct loom_device_shape *shape = &s->shape[p->device];
	uint32_t first = shape->first_worker, end = first + shape->workers;
	add_name(p, "process_name", first, shape->name);
	for (uint32_t w = first; w < end; w++) {
		char text[32];
		snprintf(text, sizeof(text), "worker %u", w);
		add_name(p, "thread_name", w, text);
		add_worker(p, w, traced);
	}
}

int loom__trace_write(struct loom_stack *s, const char *path, struct loom__traced *traced, struct loom_error *err)
{
	struct scribe p = {.s = s};
	*traced = (struct loom__traced){0};
	find_bases(&p);
	loom__text_add(&p.out, "{\"traceEvents\":[\n");
	for (p.device = 0; p.device < s->layout.devices; p.device++)
		add_device(&p, traced);
	loom__text_add(&p.out,
		       "\n],\n\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"gpuloom\":\"%s\","
		       "\"tasks_per_event\":%llu,\"lost\":%llu}}\n",
		       LOOM_VERSION_TEXT, (unsigned long long)s->trace.every, (unsigned long long)traced->lost);
	int rc = loom__text_ok(&p.out) ? loom__write_file(path, p.out.at, p.out.length, err)
				       : LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	loom__text_free(&p.out);
	return rc;
}
