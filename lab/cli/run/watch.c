/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run.h"

#include <stdio.h>
#include <time.h>

/* The minimum time between redraws. */
#define REDRAW_NS 200000000ull
/* The interval between progress lines during a long sample. */
#define BEAT_NS 1000000000ull
/* The same for a verification where stderr is no terminal: a log gets few lines, but a long verification is not silent. */
#define LOG_BEAT_NS 10000000000ull

static uint64_t cpu_time_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Starts a progress line with "sample 2/5". Returns 0 if it is too early for another line. */
static int begin_beat(struct loom__watch *w, const struct loom_stack *s, uint64_t every_ns, uint64_t since_ns, uint64_t now)
{
	uint32_t warmups = s->plan.run.warmup;
	int warm = w->executions < warmups;
	if (since_ns < every_ns || now - w->beat_ns < every_ns)
		return 0;
	fprintf(stderr, "%s%s %zu/%u", w->cli->err_is_tty ? "\r\033[K" : "", warm ? "warm-up" : "sample",
		(warm ? w->executions : w->executions - warmups) + 1, warm ? warmups : s->plan.run.samples);
	return 1;
}

/* Redraws the line. It shows no counters of workers, because these are available only at the end of a sample. It shows
 * how many cores are busy. The number of busy cores is wrong if workers are separate processes. */
void loom__watch_beat(void *arg, const struct loom_stack *s, uint64_t since_ns)
{
	struct loom__watch *w = arg;
	uint64_t now = loom__now_ns(), cpu = cpu_time_ns();
	int shown = w->beat_ns > now - since_ns;
	if (!w->line || !begin_beat(w, s, BEAT_NS, since_ns, now))
		return;
	fprintf(stderr, "  in progress for %.0f s of at most %.4g s", (double)since_ns / 1e9,
		(double)s->plan.run.timeout / 1e9);
	if (shown)
		fprintf(stderr, "  %.1f cores busy", (double)(cpu - w->beat_cpu_ns) / (double)(now - w->beat_ns));
	w->beat_ns = now;
	w->beat_cpu_ns = cpu;
}

void loom__watch_verifying(void *arg, const struct loom_stack *s, uint64_t since_ns, double done)
{
	struct loom__watch *w = arg;
	uint64_t now = loom__now_ns();
	double seconds = (double)since_ns / 1e9;
	if (w->silent || !begin_beat(w, s, w->line ? BEAT_NS : LOG_BEAT_NS, since_ns, now))
		return;
	fprintf(stderr, "  verifying for %.0f s, %.0f %% done", seconds, 100 * done);
	if (done > 0)
		fprintf(stderr, ", about %.0f s left", seconds / done - seconds);
	fputs(w->cli->err_is_tty ? "" : "\n", stderr);
	w->beat_ns = now;
}

void loom__watch_sample(void *arg, const struct loom_stack *s, const struct loom_result *r)
{
	struct loom__watch *w = arg;
	uint64_t now = loom__now_ns();
	int last = r->samples == s->plan.run.warmup + s->plan.run.samples;
	w->executions = r->samples;
	if (!w->line || !r->samples || (now - w->drawn_ns < REDRAW_NS && !last))
		return;
	w->drawn_ns = now;
	fprintf(stderr, "\r\033[K%zu/%u executions", r->samples, s->plan.run.warmup + s->plan.run.samples);
}

void loom__watch_end(struct loom__watch *w)
{
	if (w->line)
		fputs("\r\033[K", stderr);
}
