/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run.h"
#include "report/text/table.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* The minimum time between redraws. */
#define REDRAW_NS 200000000ull
/* The interval between progress lines during a long sample. */
#define BEAT_NS 1000000000ull
/* The same for a verification where stderr is no terminal: a log gets few lines, but a long verification is not silent. */
#define LOG_BEAT_NS 10000000000ull

static void rewind_lines(struct loom__watch *w)
{
	if (w->lines)
		fprintf(stderr, "\r\033[%uA\033[J", w->lines); /* w->lines includes the progress line */
	w->lines = 0;
}

static void head(const struct loom_stack *s, const struct loom_result *r, char end)
{
	const struct loom__sample *now = &r->sample[r->samples - 1];
	uint64_t executed = 0;
	char text[160];
	for (uint32_t w = 0; w < r->workers; w++)
		executed += now->counters[w].executed;
	fprintf(stderr, "%s %zu/%u  %.4g s  %llu tasks  %s%c",
		now->warmup ? "warm-up" : "sample",
		now->warmup
		    ? r->samples
		    : r->samples - (s->plan.run.warmup < r->samples ? s->plan.run.warmup : 0),
		now->warmup ? s->plan.run.warmup : s->plan.run.samples, now->seconds,
		(unsigned long long)executed,
		loom__figure(text, now->seconds > 0 ? (double)executed / now->seconds : 0, "tasks/s"),
		end);
}

/* Prints what one worker did in a sample: tasks, rate, idle time. `most` is the largest number of tasks of a worker. */
static void worker_line(const struct loom__sample *now, uint32_t w, uint64_t most)
{
	const struct loom_counters *k = &now->counters[w];
	char bar[21] = "", text[160];
	unsigned n = most ? (unsigned)(20 * k->executed / most) : 0;
	memset(bar, '#', n);
	bar[n] = 0;
	double span = k->end_ns > k->begin_ns ? (double)(k->end_ns - k->begin_ns) / 1e9 : 0;
	fprintf(stderr, "  %5u  %-20s %12llu  %16s  %5.1f%% idle\n", w, bar,
		(unsigned long long)k->executed,
		loom__figure(text, span > 0 ? (double)k->executed / span : 0, "tasks/s"),
		span > 0 ? (double)k->idle_ns / 1e7 / span : 0);
}

static void draw(struct loom__watch *w, const struct loom_stack *s, const struct loom_result *r)
{
	const struct loom__sample *now = &r->sample[r->samples - 1];
	struct winsize size = {0};
	uint64_t most = 0;
	rewind_lines(w);
	head(s, r, '\n');
	ioctl(2, TIOCGWINSZ, &size);
	uint32_t room = size.ws_row > 6 ? size.ws_row - 4u : 20,
		 shown = r->workers < room ? r->workers : room;
	for (uint32_t i = 0; i < r->workers; i++)
		most = now->counters[i].executed > most ? now->counters[i].executed : most;
	for (uint32_t i = 0; i < shown; i++)
		worker_line(now, i, most);
	w->lines = 1 + shown;
	if (shown < r->workers) {
		fprintf(stderr, "  ... and %u more workers\n", r->workers - shown);
		w->lines++;
	}
}

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

/* On a terminal, redraws the line below the last sample; otherwise prints a new line each time. The line shows no
 * counters of workers, because these are available only at the end of a sample. It shows how many cores are busy. The
 * number of busy cores is wrong if workers are separate processes. */
void loom__watch_beat(void *arg, const struct loom_stack *s, uint64_t since_ns)
{
	struct loom__watch *w = arg;
	uint64_t now = loom__now_ns(), cpu = cpu_time_ns();
	int shown = w->beat_ns > now - since_ns;
	if (!(w->workers || w->line) || !begin_beat(w, s, BEAT_NS, since_ns, now))
		return;
	fprintf(stderr, "  in progress for %.0f s of at most %.4g s", (double)since_ns / 1e9,
		(double)s->plan.run.timeout / 1e9);
	if (shown)
		fprintf(stderr, "  %.1f cores busy", (double)(cpu - w->beat_cpu_ns) / (double)(now - w->beat_ns));
	fputs(w->cli->err_is_tty ? "" : "\n", stderr);
	w->beat_ns = now;
	w->beat_cpu_ns = cpu;
}

void loom__watch_verifying(void *arg, const struct loom_stack *s, uint64_t since_ns, double done)
{
	struct loom__watch *w = arg;
	uint64_t now = loom__now_ns();
	double seconds = (double)since_ns / 1e9;
	if (w->silent || !begin_beat(w, s, w->workers || w->line ? BEAT_NS : LOG_BEAT_NS, since_ns, now))
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
	if (!r->samples)
		return;
	if (now - w->drawn_ns < REDRAW_NS && !last)
		return;
	w->drawn_ns = now;
	if (w->workers && w->cli->err_is_tty)
		draw(w, s, r);
	else if (w->workers)
		head(s, r, '\n');
	else if (w->line)
		fprintf(stderr, "\r\033[K%zu/%u executions", r->samples,
			s->plan.run.warmup + s->plan.run.samples);
}

void loom__watch_end(struct loom__watch *w)
{
	if (w->line && !w->workers)
		fputs("\r\033[K", stderr);
	if (w->workers && w->cli->err_is_tty)
		rewind_lines(w);
}
