/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/fair.h"

#include <math.h>
#include <sys/resource.h>
#include <time.h>

#include "base/base.h"
#include "facts/environment.h"

#define LEAST (1.0 / 16)

static double own_seconds(pid_t child)
{
	clockid_t clock;
	struct timespec used;
	double own = loom__own_cpu_seconds();
	if (child && !clock_getcpuclockid(child, &clock) && !clock_gettime(clock, &used))
		own += (double)used.tv_sec + (double)used.tv_nsec / 1e9;
	return own;
}

void loom__fair_begin(struct loom__fair *f, pid_t child)
{
	double busy, steal;
	*f = (struct loom__fair){.ns = loom__now_ns(), .child = child, .own = own_seconds(child)};
	if (loom__cpu_seconds(&busy, &f->idle, &steal, NULL))
		f->all = NAN;
	else
		f->all = busy + f->idle + steal;
}

uint64_t loom__fair_elapsed_ns(const struct loom__fair *f)
{
	struct loom__fair now;
	loom__fair_begin(&now, f->child);
	double all = now.all - f->all, idle = now.idle - f->idle, own = now.own - f->own;
	/* `share` is the part of the CPU time that other programs have left over: idle time and the time of this
	 * program. The kernel counts in coarse ticks, so the share is taken as 1 if less than half a second of CPU time
	 * has passed. */
	double share = all >= 0.5 ? fmin(1, fmax(LEAST, (idle + own) / all)) : 1;
	return (uint64_t)((double)(now.ns - f->ns) * share);
}
