/* SPDX-License-Identifier: Apache-2.0 */
/* qos_coalesce: one interrupt for several requests (HISS paper, section V-B). The interrupt comes when `count` requests wait,
 * or `window` after the first of them. With the option adaptive, the policy moves along a list of settings, similar to net DIM
 * in Linux. The policy continues in one direction while throughput rises, or while throughput stays equal and the number of
 * interrupts falls. */
#include "service.h"

struct coalesce_opts {
	uint64_t window;
	uint32_t count;
	uint8_t adaptive;
};

struct rings {
	uint32_t count;
	uint64_t window_ns;
};
static const struct rings ladder[] = {{1, 0}, {4, 8000}, {8, 16000}, {32, 64000}, {128, 128000}};
#define RUNGS ((int)(sizeof(ladder) / sizeof(ladder[0])))
#define SPAN_NS 2000000u
#define SPAN_EVENTS 64u
#define STEPS_MAX 10 /* number of steps after which the search pauses */
#define PAUSE 50	 /* length of this pause in spans */

struct span {
	uint64_t ns, served, interrupts;
};

struct coalesce {
	struct qos base;
	const struct coalesce_opts *opts;
	struct span begin;
	double rate, per_request; /* requests per ns, and interrupts per request, in the span before */
	int at, step, steps, pause; /* index in ladder[]; direction, 1 or -1; steps so far; spans left of a pause */
};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct coalesce_opts, window, LOOM_OPT_TIME, "13us",
			 "Longest time from the first waiting request to the interrupt.", .min = 1, .max = 1e9),
	LOOM_OPT(struct coalesce_opts, count, LOOM_OPT_U32, "64",
			 "Waiting requests that cause an interrupt at once.", .min = 1, .max = 1e6),
	LOOM_OPT(struct coalesce_opts, adaptive, LOOM_OPT_BOOL, "no",
			 "Whether window and count are tuned while requests come; `window` and `count` are then the "
			 "largest values tried."),
	{.name = NULL},
};

QOS_CREATE(coalesce, p->step = 1)

/* Returns 1 if `now` is larger than `before`, -1 if it is smaller, and 0 if they differ by at most 10 %, which is noise. */
static int compare(double now, double before)
{
	return now > before * 1.1 ? 1 : now < before * 0.9 ? -1 : 0;
}

static void climb(struct coalesce *p, double rate, double per_request)
{
	int verdict = compare(rate, p->rate);
	if (!verdict)
		verdict = compare(p->per_request, per_request);
	if (p->pause > 0) {
		/* The pause ends early if the load changes. */
		p->pause = compare(rate, p->rate) ? 0 : p->pause - 1;
		return;
	}
	if (verdict < 0)
		p->step = -p->step;
	if (!verdict || ++p->steps >= STEPS_MAX) {
		p->pause = PAUSE;
		p->steps = 0;
		return;
	}
	if (p->at + p->step < 0 || p->at + p->step >= RUNGS)
		p->step = -p->step;
	else
		p->at += p->step;
}

static void interrupt(void *self, const struct loom_qos_load *load, struct loom_qos_moderation *m)
{
	struct coalesce *p = self;
	struct rings want = {p->opts->count, p->opts->window};
	if (p->opts->adaptive) {
		struct span *b = &p->begin;
		uint64_t ns = load->now_ns - b->ns, served = load->served - b->served;
		if (load->served < b->served || !b->ns) {
			*b = (struct span){load->now_ns, load->served, load->interrupts};
		} else if (ns >= SPAN_NS && served >= SPAN_EVENTS) {
			double rate = (double)served / (double)ns;
			double each = (double)(load->interrupts - b->interrupts) / (double)served;
			climb(p, rate, each);
			p->rate = rate;
			p->per_request = each;
			*b = (struct span){load->now_ns, load->served, load->interrupts};
		}
		const struct rings *r = &ladder[p->at];
		want.count = r->count < want.count ? r->count : want.count;
		want.window_ns = r->window_ns < want.window_ns ? r->window_ns : want.window_ns;
	}
	if (want.window_ns > m->window_ns) {
		m->window_ns = want.window_ns;
		m->count = want.count;
	}
}

static const struct loom_qos_ops ops = {QOS_OPS_COMMON, .interrupt = interrupt};

QOS_PLUGIN(qos_coalesce, "One interrupt for several requests", rows, struct coalesce_opts, ops)
