/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time of the service's threads, from the threads' own clocks, and the histogram of a tenant's latencies. */
#include <string.h>
#include <time.h>

#include "service.h"

uint64_t qos_clock(clockid_t id)
{
	struct timespec t = {0};
	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t qos_now(void)
{
	return qos_clock(CLOCK_MONOTONIC);
}

uint64_t qos_charge(struct qos_thread *t, enum qos_stage stage)
{
	uint64_t now = qos_clock(CLOCK_THREAD_CPUTIME_ID), spent = now - t->clock_ns;
	t->clock_ns = now;
	/* Relaxed, because readers accept a slightly old sum. */
	__atomic_fetch_add(&t->s->stage_ns[stage], spent, __ATOMIC_RELAXED);
	return spent;
}

uint64_t qos_cpu(const struct service *s)
{
	uint64_t sum = 0;
	for (int i = 0; i < QOS_STAGES; i++)
		sum += __atomic_load_n(&s->stage_ns[i], __ATOMIC_RELAXED);
	return sum;
}

void qos_histogram_add(struct qos_histogram *h, uint64_t ns)
{
	uint32_t power = 63 - (uint32_t)__builtin_clzll(ns | 16);
	uint32_t at = (power - 4) * 16 + (uint32_t)(ns >> (power - 4) & 15) + 16;
	if (ns < 16)
		at = (uint32_t)ns;
	h->bucket[at < QOS_HISTOGRAM ? at : QOS_HISTOGRAM - 1]++;
	h->count++;
}

/* Returns the quantile `share`, from 0 to 1, as the upper end of its bucket in ns. */
double qos_histogram_at(const struct qos_histogram *h, double share)
{
	uint64_t want = (uint64_t)(share * (double)h->count), seen = 0;
	for (uint32_t at = 0; at < QOS_HISTOGRAM; at++) {
		seen += h->bucket[at];
		if (seen <= want && seen < h->count)
			continue;
		if (at < 16)
			return at;
		uint32_t power = (at - 16) / 16 + 4, step = (at - 16) % 16;
		return (double)(1ull << power) + (double)(step + 1) * (double)(1ull << (power - 4));
	}
	return 0;
}
