/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of a sample: CPU time, latency, counts. CPU times come from the clocks of the threads, which include waking
 * and going to sleep. Time stamps around the service's code would miss most of the time that a throttled path takes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service.h"

/* ---- the peak 1 s window ---- */

#define SECOND 1000000000ull

static uint64_t between(const struct qos_cpu_point *a, const struct qos_cpu_point *b, uint64_t ns)
{
	if (ns <= a->ns || b->ns <= a->ns)
		return a->cpu_ns;
	if (ns >= b->ns)
		return b->cpu_ns;
	return a->cpu_ns + (uint64_t)((double)(b->cpu_ns - a->cpu_ns) * (double)(ns - a->ns) /
				      (double)(b->ns - a->ns));
}

static void peak(struct qos_cpu_series *r, uint64_t from, uint64_t to)
{
	if (to > from && to - from > r->peak_ns)
		r->peak_ns = to - from;
}

/* Adds a point to the series, and updates the peak: the most CPU time in a window of 1 s. CPU time counts as linear between
 * two points, so the window with the peak starts or ends at a point. */
void qos_cpu_point(struct service *s, uint64_t now_ns)
{
	struct qos_cpu_series *r = &s->series;
	struct qos_cpu_point p = {now_ns, qos_cpu(s)};
	struct qos_cpu_point *last = r->head ? &r->point[(r->head - 1) % QOS_POINTS] : NULL;
	if (last && last->ns >= now_ns)
		return;
	while (r->tail + 1 < r->head &&
	       r->point[(r->tail + 1) % QOS_POINTS].ns + SECOND <= now_ns) {
		const struct qos_cpu_point *first = &r->point[++r->tail % QOS_POINTS];
		peak(r, first->cpu_ns, between(last, &p, first->ns + SECOND));
	}
	if (r->head - r->tail == QOS_POINTS)
		/* If the ring is full, drops the last point and not the first point, to keep a window of a second. */
		r->head--;
	if (last) {
		const struct qos_cpu_point *a = &r->point[r->tail % QOS_POINTS];
		const struct qos_cpu_point *b = &r->point[(r->tail + 1) % QOS_POINTS];
		uint64_t begin = now_ns > SECOND ? now_ns - SECOND : 0;
		peak(r, r->tail + 1 < r->head ? between(a, b, begin) : a->cpu_ns, p.cpu_ns);
	}
	r->point[r->head++ % QOS_POINTS] = p;
}

/* ---- latency ------------------------------------------------------------------------------------- */

static uint64_t clock_of(const struct qos_thread *t)
{
	clockid_t id;
	return t->started && !pthread_getcpuclockid(t->id, &id) ? qos_clock(id) : 0;
}

/* Reads voluntary and involuntary context switches. Returns 0 or errno. */
static int switches_of(const struct qos_thread *t, uint64_t n[2])
{
	static const char *const name[2] = {"voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"};
	char path[64], line[128];
	int found = 0;
	n[0] = n[1] = 0;
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", t->tid);
	errno = 0;
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		for (int i = 0; i < 2; i++)
			if (!strncmp(line, name[i], strlen(name[i]))) {
				n[i] = strtoull(line + strlen(name[i]), NULL, 10);
				found++;
			}
	int code = found == 2 ? 0 : errno ? errno : EIO;
	if (f)
		fclose(f);
	return code;
}

/* ---- a sample ------------------------------------------------------------------------------------ */

void qos_account_begin(struct service *s)
{
	for (uint32_t i = 0; i < s->threads; i++) {
		s->thread[i].start_clock_ns = clock_of(&s->thread[i]);
		s->thread[i].start_unreadable = switches_of(&s->thread[i], s->thread[i].start_switches);
	}
	for (int i = 0; i < QOS_STAGES; i++)
		__atomic_store_n(&s->stage_ns[i], 0, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < s->tenants; i++) {
		struct qos_tenant *t = &s->tenant[i];
		t->served = t->errors = t->cpu_ns = 0;
		memset(&t->latency, 0, sizeof(t->latency));
	}
	for (uint32_t v = 0; v < s->vectors; v++)
		__atomic_store_n(&s->head->doorbell[v].interrupts, 0, __ATOMIC_RELAXED);
	s->body_ns = s->filled = s->served = s->dropped = s->errors = s->rounds = s->naps = s->woken = 0;
	s->series.head = s->series.tail = s->series.peak_ns = 0;
	qos_idle_read(s, &s->start_idle);
	s->start_ns = qos_now();
}

#define METRIC(name, unit, better, value)                                                          \
	s->host->metric(s->host, report, name, unit, LOOM_BETTER_##better, (double)(value))

static int report_cpu(struct service *s, struct loom_report *report, double seconds)
{
	static const char *const name[QOS_STAGES] = {"qos_cpu_top", "qos_cpu_bottom", "qos_cpu_worker",
						     "qos_cpu_controller"};
	uint64_t used = 0, switches[2] = {0};
	double machine = seconds * 1e9 * s->machine;
	for (uint32_t i = 0; i < s->threads; i++) {
		uint64_t now[2];
		used += clock_of(&s->thread[i]) - s->thread[i].start_clock_ns;
		int code = switches_of(&s->thread[i], now);
		if (code || s->thread[i].start_unreadable)
			return code ? code : s->thread[i].start_unreadable;
		for (int k = 0; k < 2; k++)
			switches[k] += now[k] - s->thread[i].start_switches[k];
	}
	for (int i = 0; i < QOS_STAGES; i++)
		METRIC(name[i], "ns", LESS, __atomic_load_n(&s->stage_ns[i], __ATOMIC_RELAXED));
	METRIC("qos_cpu", "ns", LESS, used);
	METRIC("qos_cpu_share", "", LESS, (double)used / machine);
	/* If the sample is shorter than 1 s, the window is the sample. */
	double window = seconds < 1 ? seconds : 1;
	METRIC("qos_cpu_share_peak_1s", "", LESS,
	       (double)s->series.peak_ns / (window * 1e9 * s->machine));
	METRIC("qos_cpu_per_request", "ns", LESS, s->served ? (double)used / (double)s->served : 0.0);
	uint64_t rounds = 0;
	for (uint32_t i = 0; i < s->tenants; i++)
		rounds += s->tenant[i].cpu_ns;
	METRIC("qos_cpu_rounds", "ns", LESS, rounds);
	METRIC("qos_wakeups", "", LESS, switches[0]);
	METRIC("qos_preempted", "", LESS, switches[1]);
	return 0;
}

static void report_tenants(struct service *s, struct loom_report *report, double seconds)
{
	char name[48];
	for (uint32_t i = 0; s->tenants > 1 && i < s->tenants; i++) {
		const struct qos_tenant *t = &s->tenant[i];
#define OF_TENANT(what, unit, better, value)                                                       \
	snprintf(name, sizeof(name), "qos_" what ":%s", t->is.name);                               \
	METRIC(name, unit, better, value)
		OF_TENANT("per_s", "requests/s", MORE, (double)t->served / seconds);
		OF_TENANT("p50", "ns", LESS, qos_histogram_at(&t->latency, 0.5));
		OF_TENANT("p99", "ns", LESS, qos_histogram_at(&t->latency, 0.99));
		OF_TENANT("cpu", "ns", LESS, t->cpu_ns);
#undef OF_TENANT
	}
}

static int unreadable(const struct service *s, const char *what, int code, struct loom_error *err)
{
	return LOOM_FAIL(s->host, err, code == ENOMEM ? LOOM_ENOMEM : LOOM_EIO, "%s: %s: %s", s->name, what, strerror(code));
}

int qos_account_report(struct service *s, struct loom_report *report, struct loom_error *err)
{
	double seconds = (double)(qos_now() - s->start_ns) / 1e9;
	struct qos_histogram *all = calloc(1, sizeof(*all));
	uint64_t interrupts = 0, posted = 0;
	if (!all)
		return LOOM_FAIL(s->host, err, LOOM_ENOMEM, "%s: out of memory", s->name);
	for (uint32_t i = 0; i < s->tenants; i++)
		for (uint32_t b = 0; b < QOS_HISTOGRAM; b++) {
			all->bucket[b] += s->tenant[i].latency.bucket[b];
			all->count += s->tenant[i].latency.bucket[b];
		}
	for (uint32_t v = 0; v < s->vectors; v++)
		interrupts += __atomic_load_n(&s->head->doorbell[v].interrupts, __ATOMIC_RELAXED);
	for (uint32_t w = 0; w < s->workers; w++)
		posted += s->ring[w].taken;
	METRIC("qos_requests", "requests", MORE, s->served);
	METRIC("qos_posted", "requests", NONE, posted);
	METRIC("qos_per_s", "requests/s", MORE, (double)s->served / seconds);
	METRIC("qos_dropped", "requests", NONE, s->dropped);
	METRIC("qos_errors", "requests", LESS, s->errors);
	METRIC("qos_p50", "ns", LESS, qos_histogram_at(all, 0.5));
	METRIC("qos_p99", "ns", LESS, qos_histogram_at(all, 0.99));
	METRIC("qos_p999", "ns", LESS, qos_histogram_at(all, 0.999));
	METRIC("qos_interrupts", "", LESS, interrupts);
	METRIC("qos_rounds", "", NONE, s->rounds);
	METRIC("qos_naps", "", NONE, s->naps);
	METRIC("qos_woken", "", NONE, s->woken);
	free(all);
	int code = report_cpu(s, report, seconds);
	if (code)
		return unreadable(s, "the context switches of its threads cannot be read from /proc", code, err);
	report_tenants(s, report, seconds);
	code = qos_idle_report(s, report, seconds);
	return code ? unreadable(s, "the idle times of its cores cannot be read from /sys", code, err) : 0;
}
