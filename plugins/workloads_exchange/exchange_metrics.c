/* SPDX-License-Identifier: Apache-2.0 */
/* From the workers' logs: shares of time, overlap, timeline.
 *
 * Overlap (WIC, figure 14) is the share of the waiting that was covered by other work. Let W be the time in
 * which at least one worker of the stack waits, and K the cores that the workers run on. Within W the
 * cores could have done K * W of work; the overlap is what they did of it. Work is the processor time of the
 * kernels less that of their waits, and outside of W all of it is work, so
 *     overlap = (work - K * (T - W)) / (K * W), within 0 and 1, T the time of the sample. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "exchange.h"

static int earlier(const void *a, const void *b)
{
	const struct ex_interval *p = a, *q = b;
	return (p->begin_ns > q->begin_ns) - (p->begin_ns < q->begin_ns);
}

static uint64_t logged(const struct ex_log *log)
{
	return log->waits < EX_INTERVALS ? log->waits : EX_INTERVALS;
}

/* The time in which one or more intervals lie. */
static uint64_t covered(struct ex_interval *list, uint64_t n)
{
	uint64_t sum = 0, end = 0;
	qsort(list, n, sizeof(*list), earlier);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t from = list[i].begin_ns > end ? list[i].begin_ns : end;
		if (list[i].end_ns > from) {
			sum += list[i].end_ns - from;
			end = list[i].end_ns;
		}
	}
	return sum;
}

static void write_timeline(struct ex *x, const struct loom_layout *layout, const struct loom_view *view)
{
	FILE *f = x->o->timeline && *x->o->timeline ? fopen(x->o->timeline, "we") : NULL;
	const char *comma = "";
	if (!f)
		return;
	fputs("[", f);
	for (uint32_t w = 0; w < layout->workers; w++) {
		const struct ex_log *log = view->worker[w];
		uint32_t device = ex_device_of(layout, w);
		fprintf(f, "%s\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f}",
			comma, x->app->name, device, w, (double)log->begin_ns / 1e3,
			(double)(log->end_ns - log->begin_ns) / 1e3);
		comma = ",";
		for (uint64_t i = 0; i < logged(log); i++)
			fprintf(f, ",\n{\"name\":\"wait\",\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f}",
				device, w, (double)log->wait[i].begin_ns / 1e3,
				(double)(log->wait[i].end_ns - log->wait[i].begin_ns) / 1e3);
	}
	fputs("\n]\n", f);
	if (fclose(f) != 0)
		LOOM_LOG(x->host, LOOM_LOG_WARN, x->app->name, "the timeline could not be written");
}

void ex_metrics(struct ex *x, const struct loom_layout *layout, const struct loom_view *view,
		struct loom_report *report)
{
	uint64_t n = 0, lost = 0, wait = 0, send = 0, life = 0, work = 0, begin = UINT64_MAX, end = 0;
	for (uint32_t w = 0; w < layout->workers; w++) {
		const struct ex_log *log = view->worker[w];
		n += logged(log);
		lost += log->waits - logged(log);
		wait += log->wait_ns;
		send += log->send_ns;
		life += log->end_ns - log->begin_ns;
		work += log->cpu_ns > log->wait_cpu_ns ? log->cpu_ns - log->wait_cpu_ns : 0;
		begin = log->begin_ns < begin ? log->begin_ns : begin;
		end = log->end_ns > end ? log->end_ns : end;
	}
	if (!life)
		return;
	x->host->metric(x->host, report, "wait_share", "share", LOOM_BETTER_LESS,
			(double)wait / (double)life);
	x->host->metric(x->host, report, "transfer_share", "share", LOOM_BETTER_LESS,
			(double)send / (double)life);
	x->host->metric(x->host, report, "work_s", "s", LOOM_BETTER_NONE, (double)work / 1e9);
	write_timeline(x, layout, view);
	struct ex_interval *all = calloc(n + 1, sizeof(*all));
	if (!all || lost) { /* a share of the waits would not be a figure */
		free(all);
		return;
	}
	uint64_t at = 0;
	for (uint32_t w = 0; w < layout->workers; w++) {
		const struct ex_log *log = view->worker[w];
		for (uint64_t i = 0; i < logged(log); i++)
			all[at++] = log->wait[i];
	}
	double in_wait = (double)covered(all, n), total = (double)(end - begin);
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	double cores = layout->workers < online ? layout->workers : (double)online;
	free(all);
	if (in_wait <= 0)
		return;
	double overlap = ((double)work - cores * (total - in_wait)) / (cores * in_wait);
	x->host->metric(x->host, report, "overlap", "share", LOOM_BETTER_MORE,
			overlap < 0 ? 0 : overlap > 1 ? 1 : overlap);
}
