/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics from the workers' logs: shares of time, overlap. wait_share is the share of waiting in the time of
 * the workers that wait. transfer_share is the share of sending in the time of the workers that send (WIC, figure
 * 2).
 *
 * Overlap (WIC, figure 14) is the share of the waiting that other work on the same device hides. Let W be the time in
 * which at least one worker of the device waits. Let T be the time from the first start to the last end of its
 * workers. Let K be the number of its cores. Work is the CPU time of the kernels without that of their waits. Outside
 * of W, workers do at most K * (T - W) of the work. So at least work - K * (T - W) is within W, and hides the waiting
 * up to one core's worth:
 *     overlap = sum over devices of min(W, work - K * (T - W)) / sum of W,    each term at least 0
 *
 * The polls of a waiter are not work, but take CPU time from it. Warps of a GPU have no CPU time, so with a GPU no work
 * is reported, and its overlap is the share of W in which another worker of the device computes: the paper calls time
 * unnecessary waiting if no task is active in it (6.2). */
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "exchange.h"

static int earlier(const void *a, const void *b)
{
	const struct ex_interval *p = a, *q = b;
	return (p->begin_ns > q->begin_ns) - (p->begin_ns < q->begin_ns);
}

/* Returns the total length of the union of the intervals. */
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

/* Sums over the workers of a device. */
struct total {
	uint64_t waits, lost, wait_ns, send_ns, work_ns, begin_ns, end_ns;
	uint64_t consumers_ns, producers_ns; /* time of the workers that wait, and of those that send */
};

static struct total add_up(const struct loom_device_shape *shape, const struct loom_view *view)
{
	struct total t = {.begin_ns = UINT64_MAX};
	for (uint32_t w = shape->first_worker; w < shape->first_worker + shape->workers; w++) {
		const struct ex_log *log = view->worker[w];
		if (!log->end_ns)
			continue; /* the worker takes no part in the job */
		t.waits += ex_logged(log);
		t.lost += log->waits - ex_logged(log);
		t.wait_ns += log->wait_ns;
		t.send_ns += log->send_ns;
		t.consumers_ns += log->waits ? log->end_ns - log->begin_ns : 0;
		t.producers_ns += log->send_ns ? log->end_ns - log->begin_ns : 0;
		t.work_ns += log->cpu_ns > log->wait_cpu_ns ? log->cpu_ns - log->wait_cpu_ns : 0;
		t.begin_ns = log->begin_ns < t.begin_ns ? log->begin_ns : t.begin_ns;
		t.end_ns = log->end_ns > t.end_ns ? log->end_ns : t.end_ns;
	}
	return t;
}

/* What workers of a device do: wait; compute, which is the time between waits; or either. */
enum doing { WAITING, COMPUTING, BOTH };

/* Returns the time in which at least one worker of the device does this. `list` has room for all intervals. */
static double time_of(const struct loom_device_shape *shape, const struct loom_view *view, enum doing doing,
		      struct ex_interval *list)
{
	uint64_t n = 0;
	for (uint32_t w = shape->first_worker; w < shape->first_worker + shape->workers; w++) {
		const struct ex_log *log = view->worker[w];
		uint64_t from = log->begin_ns;
		for (uint64_t i = 0; i < ex_logged(log) && doing != BOTH; i++) {
			list[n++] = doing == WAITING ? log->wait[i]
						     : (struct ex_interval){from, log->wait[i].begin_ns};
			from = log->wait[i].end_ns;
		}
		if (doing != WAITING && log->end_ns)
			list[n++] = (struct ex_interval){from, log->end_ns};
	}
	return (double)covered(list, n);
}

/* Adds to *waiting the time in which at least one worker of the device waits. Adds to *overlapped the part of this
 * time that work hides at least. Returns 0 or LOOM_ENOMEM. */
static int device_overlap(const struct loom_device_shape *shape, const struct loom_view *view,
			  const struct total *t, double cores, double *waiting, double *overlapped)
{
	struct ex_interval *list = calloc(t->waits + shape->workers, sizeof(*list));
	if (!list)
		return LOOM_ENOMEM;
	double in_wait = time_of(shape, view, WAITING, list), total = t->waits ? (double)(t->end_ns - t->begin_ns) : 0;
	double hidden = (double)t->work_ns - cores * (total - in_wait);
	if (shape->kind == LOOM_ON_GPU) /* what is in both unions */
		hidden = in_wait + time_of(shape, view, COMPUTING, list) - time_of(shape, view, BOTH, list);
	free(list);
	*waiting += in_wait;
	*overlapped += hidden < 0 ? 0 : hidden > in_wait ? in_wait : hidden;
	return 0;
}

/* Returns the number of cores that this process may use, which may be fewer than the machine has. */
static double usable_cores(void)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	return sched_getaffinity(getpid(), sizeof(set), &set) ? (double)sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);
}

void ex_metrics(struct ex *x, const struct loom_view *view)
{
	struct total sum = {0};
	double waiting = 0, overlapped = 0, usable = usable_cores();
	int rc = 0, gpu = 0;
	for (uint32_t d = 0; d < x->layout->devices; d++) {
		const struct loom_device_shape *shape = &x->layout->device[d];
		struct total t = add_up(shape, view);
		gpu |= shape->kind == LOOM_ON_GPU;
		double cores = usable / x->layout->devices; /* the devices share the cores equally */
		cores = cores < 1 ? 1 : cores > shape->workers ? shape->workers : cores;
		sum.lost += t.lost;
		sum.wait_ns += t.wait_ns;
		sum.send_ns += t.send_ns;
		sum.consumers_ns += t.consumers_ns;
		sum.producers_ns += t.producers_ns;
		sum.work_ns += t.work_ns;
		rc = rc ? rc : device_overlap(shape, view, &t, cores, &waiting, &overlapped);
	}
	if (!sum.consumers_ns || !sum.producers_ns)
		return;
	x->host->metric(x->host, x->report, "wait_share", "share", LOOM_BETTER_LESS,
			(double)sum.wait_ns / (double)sum.consumers_ns);
	x->host->metric(x->host, x->report, "transfer_share", "share", LOOM_BETTER_LESS,
			(double)sum.send_ns / (double)sum.producers_ns);
	if (!gpu)
		x->host->metric(x->host, x->report, "work_s", "s", LOOM_BETTER_NONE, (double)sum.work_ns / 1e9);
	if (x->o->times)
		ex_times(x, view);
	/* If some waits are not in the log, the overlap would be wrong. */
	if (!rc && !sum.lost && waiting > 0)
		x->host->metric(x->host, x->report, "overlap", "share", LOOM_BETTER_MORE, overlapped / waiting);
}
