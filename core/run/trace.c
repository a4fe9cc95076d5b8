/* SPDX-License-Identifier: Apache-2.0 */
#include "run/trace.h"

#include <gpuloom/dev/trace.h>
#include <stdio.h>

#include "base/base.h"

static const char *const kinds[] = {
#define LOOM__TRACE_NAME(NAME, text, more) text,
	LOOM_TRACE_MAP(LOOM__TRACE_NAME)
#undef LOOM__TRACE_NAME
};

void loom__trace_want(struct loom_stack *s, uint64_t room, uint64_t every)
{
	s->trace_room = room;
	s->trace_every = every;
}

static struct loom_trace *buffer(struct loom_stack *s, uint32_t worker)
{
	char *first = loom__host_at(s, s->trace_ref);
	return (struct loom_trace *)(first + worker * loom__trace_bytes(s));
}

void loom__trace_reset(struct loom_stack *s)
{
	for (uint32_t w = 0; s->trace_room && w < s->layout.workers; w++)
		*buffer(s, w) = (struct loom_trace){.room = s->trace_room, .every = s->trace_every};
}

struct scribe {
	struct loom_stack *s;
	struct loom__text out;
	uint32_t device;
	uint64_t base; /* when its first worker began: devices need not share a clock */
	uint64_t flows;
};

/* "key":microseconds, with a point in every locale. */
static void add_us(struct scribe *p, const char *key, uint64_t ns)
{
	loom__text_add(&p->out, ",\"%s\":%llu.%03llu", key, (unsigned long long)(ns / 1000),
		       (unsigned long long)(ns % 1000));
}

static uint64_t since(const struct scribe *p, uint64_t ns)
{
	return ns > p->base ? ns - p->base : 0;
}

/* "key":"text". Names of an embedder's task functions may hold anything. */
static void add_text(struct scribe *p, const char *key, const char *text)
{
	loom__text_add(&p->out, ",\"%s\":\"", key);
	for (; *text; text++)
		loom__text_add(&p->out, "%c",
			       (unsigned char)*text < ' ' || *text == '"' || *text == '\\' ? '_' : *text);
	loom__text_add(&p->out, "\"");
}

static void open_event(struct scribe *p, char phase, uint32_t device, uint32_t worker)
{
	loom__text_add(&p->out, "%s{\"ph\":\"%c\",\"pid\":%u,\"tid\":%u", p->out.length > 20 ? ",\n" : "",
		       phase, device, worker);
}

/* The name of a device or of a worker. */
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
	while (d + 1 < s->layout.devices &&
	       worker >= s->shape[d].first_worker + s->shape[d].workers)
		d++;
	return d;
}

/* One end of an arrow from the victim to the thief. */
static void add_arrow(struct scribe *p, char phase, uint32_t device, uint32_t worker, uint64_t ns)
{
	open_event(p, phase, device, worker);
	loom__text_add(&p->out, ",\"id\":%llu,\"name\":\"stolen\",\"cat\":\"steal\"%s",
		       (unsigned long long)p->flows, phase == 'f' ? ",\"bp\":\"e\"" : "");
	add_us(p, "ts", since(p, ns));
	loom__text_add(&p->out, "}");
}

static void add_event(struct scribe *p, uint32_t worker, const struct loom_event *e)
{
	const char *kind = e->what < LOOM_TRACE_KINDS ? kinds[e->what] : "unknown";
	int task = e->what == LOOM_TRACE_TASK && e->other < p->s->tasks;
	open_event(p, 'X', p->device, worker);
	add_text(p, "name", task ? p->s->task[e->other].name : kind);
	add_text(p, "cat", kind);
	add_us(p, "ts", since(p, e->begin_ns));
	add_us(p, "dur", since(p, e->end_ns) - since(p, e->begin_ns));
	loom__text_add(&p->out, ",\"args\":{\"tasks\":%llu", (unsigned long long)e->count);
	if (e->what == LOOM_TRACE_STEAL)
		loom__text_add(&p->out, ",\"victim\":%u", e->other);
	loom__text_add(&p->out, "}}");
	if (e->what != LOOM_TRACE_STEAL)
		return;
	p->flows++;
	add_arrow(p, 's', device_of(p->s, e->other), e->other, e->begin_ns);
	add_arrow(p, 'f', p->device, worker, e->end_ns);
}

static void add_device(struct scribe *p, uint64_t *lost)
{
	struct loom_stack *s = p->s;
	const struct loom_device_shape *shape = &s->shape[p->device];
	uint32_t first = shape->first_worker, end = first + shape->workers;
	p->base = ~0ull;
	for (uint32_t w = first; w < end; w++)
		if (s->counters[w].begin_ns < p->base)
			p->base = s->counters[w].begin_ns;
	add_name(p, "process_name", first, shape->name);
	for (uint32_t w = first; w < end; w++) {
		const struct loom_trace *t = buffer(s, w);
		const struct loom_event *e = (const struct loom_event *)(t + 1);
		char text[32];
		snprintf(text, sizeof(text), "worker %u", w);
		add_name(p, "thread_name", w, text);
		for (uint64_t k = 0; k < t->used && k < s->trace_room; k++)
			add_event(p, w, &e[k]);
		*lost += t->lost;
	}
}

int loom__trace_write(struct loom_stack *s, const char *path, uint64_t *lost, struct loom_error *err)
{
	struct scribe p = {.s = s};
	*lost = 0;
	loom__text_add(&p.out, "{\"traceEvents\":[\n");
	for (p.device = 0; p.device < s->layout.devices; p.device++)
		add_device(&p, lost);
	loom__text_add(&p.out,
		       "\n],\n\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"gpuloom\":\"%s\","
		       "\"tasks_per_event\":%llu,\"lost\":%llu}}\n",
		       LOOM_VERSION_TEXT, (unsigned long long)s->trace_every, (unsigned long long)*lost);
	int rc = loom__text_ok(&p.out) ? loom__write_file(path, p.out.at, p.out.length, err) :
					 LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	loom__text_free(&p.out);
	return rc;
}
