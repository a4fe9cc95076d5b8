/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics with times = yes. They compare the moments at which consumers begin to wait (WIC's Tc) with the moments at
 * which their items are ready (Tp).
 *
 * tp_after_tc (WIC, figure 4) is the mean of (Tp - Tc) / T over the waits. T begins at the end of the worker's
 * previous wait, or at the worker's start, and ends with this wait. An item that was ready before T counts as ready
 * at the start of T, so all values are between -1 and 1. unready_share (figure 5) is the share of the waiting before
 * Tp. The rest of the waiting is resumption and copy.
 *
 * before_tc and independent_left (figures 6, 7 and 13) are taken at one moment (option `progress`) of each wait whose
 * item was not ready at Tc. before_tc is a share of the device's workers that wait: those whose wait of the same
 * number has not begun. independent_left is a share of the device's workers that never wait: those that have not
 * ended. Both metrics are means over these waits. */
#include <math.h>
#include <stdlib.h>

#include "exchange.h"

static const uint64_t *ready_of(const struct ex_log *log)
{
	return (const uint64_t *)(log + 1);
}

struct lags {
	double sum, squares, waits, unready_ns, wait_ns;
};

static void add_lags(const struct ex_log *log, struct lags *t)
{
	uint64_t task = log->begin_ns;
	for (uint64_t i = 0; i < ex_logged(log); i++) {
		const struct ex_interval *w = &log->wait[i];
		uint64_t ready = ready_of(log)[i] > task ? ready_of(log)[i] : task;
		if (ready_of(log)[i] && w->end_ns > task) {
			double share = ((double)ready - (double)w->begin_ns) / (double)(w->end_ns - task);
			t->sum += share;
			t->squares += share * share;
			t->waits++;
			t->unready_ns += ready > w->begin_ns ? (double)(ready - w->begin_ns) : 0;
			t->wait_ns += (double)(w->end_ns - w->begin_ns);
		}
		task = w->end_ns;
	}
}

/* Sums over waits, and the number of these waits. */
struct moments {
	double before_tc, independent_left;
	uint64_t waits, beside; /* number of waits; number of those on devices with independent workers */
};

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Returns the share of the n sorted times that are after `at`. */
static double share_after(const uint64_t *time, uint64_t n, uint64_t at)
{
	uint64_t low = 0, high = n;
	while (low < high) {
		uint64_t middle = (low + high) / 2;
		if (time[middle] > at)
			high = middle;
		else
			low = middle + 1;
	}
	return (double)(n - low) / (double)n;
}

/* Adds wait number `round` of each worker of a device. Returns the number of workers with such a wait. `ends` are the
 * ends of the device's independent workers, sorted. `room` has a word for each worker. */
static uint64_t add_round(const struct ex *x, const struct loom_device_shape *shape, const struct loom_view *view,
			  uint64_t round, const uint64_t *ends, uint64_t independent, uint64_t *room, struct moments *m)
{
	uint64_t n = 0;
	uint32_t end = shape->first_worker + shape->workers;
	for (uint32_t w = shape->first_worker; w < end; w++) {
		const struct ex_log *log = view->worker[w];
		if (round < ex_logged(log))
			room[n++] = log->wait[round].begin_ns;
	}
	qsort(room, n, sizeof(*room), ascending);
	for (uint32_t w = shape->first_worker; w < end; w++) {
		const struct ex_log *log = view->worker[w];
		const struct ex_interval *wait = &log->wait[round];
		if (round >= ex_logged(log) || ready_of(log)[round] <= wait->begin_ns)
			continue;
		uint64_t at = wait->begin_ns + (uint64_t)(x->o->progress * (double)(wait->end_ns - wait->begin_ns));
		m->before_tc += share_after(room, n, at);
		m->waits++;
		if (independent) {
			m->independent_left += share_after(ends, independent, at);
			m->beside++;
		}
	}
	return n;
}

static int add_device(const struct ex *x, const struct loom_device_shape *shape, const struct loom_view *view,
		      struct moments *m)
{
	uint64_t *room = calloc(2ull * shape->workers + 1, sizeof(*room)), *ends = room + shape->workers;
	uint64_t independent = 0;
	if (!room)
		return LOOM_ENOMEM;
	for (uint32_t w = shape->first_worker; w < shape->first_worker + shape->workers; w++) {
		const struct ex_log *log = view->worker[w];
		if (!log->waits && !log->send_ns && log->end_ns)
			ends[independent++] = log->end_ns;
	}
	qsort(ends, independent, sizeof(*ends), ascending);
	for (uint64_t round = 0; round < EX_INTERVALS; round++)
		if (!add_round(x, shape, view, round, ends, independent, room, m))
			break;
	free(room);
	return 0;
}

#define SHARE(name, value) x->host->metric(x->host, x->report, name, "share", LOOM_BETTER_NONE, value)

void ex_times(struct ex *x, const struct loom_view *view)
{
	struct lags lag = {0};
	struct moments m = {0};
	int rc = 0;
	for (uint32_t w = 0; w < x->layout->workers; w++)
		add_lags(view->worker[w], &lag);
	for (uint32_t d = 0; d < x->layout->devices && !rc; d++)
		rc = add_device(x, &x->layout->device[d], view, &m);
	if (lag.waits > 0) {
		double mean = lag.sum / lag.waits, variance = lag.squares / lag.waits - mean * mean;
		SHARE("tp_after_tc", mean);
		SHARE("tp_after_tc_deviation", variance > 0 ? sqrt(variance) : 0);
	}
	if (lag.wait_ns > 0)
		SHARE("unready_share", lag.unready_ns / lag.wait_ns);
	if (!rc && m.waits)
		SHARE("before_tc", m.before_tc / (double)m.waits);
	if (!rc && m.beside)
		SHARE("independent_left", m.independent_left / (double)m.beside);
}
