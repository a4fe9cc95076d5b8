/* SPDX-License-Identifier: Apache-2.0 */
#include "validate/watchhost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { GUARD = 64, LIVE = 0x6c697665, GONE = 0x676f6e65, PATTERN = 0x5c };

/* Stands in front of what the plug-in gets; a guard stands behind it. */
struct loom__block {
	struct loom__block *next, **link;
	void *
	    whole; /* what malloc() gave: aligned_alloc() would leave crumbs that look like leaks */
	size_t bytes;
	uint32_t state;
	char pad[64 - 4 * sizeof(void *) - sizeof(uint32_t)];
};
_Static_assert(sizeof(struct loom__block) == 64, "keeps the alignment of what follows");

static struct loom__watchhost *of(const struct loom_host *host)
{
	return host->ctx;
}

LOOM_PRINTF(2, 3)
static void misuse(struct loom__watchhost *h, const char *fmt, ...)
{
	va_list args;
	if (h->misuse[0])
		return;
	va_start(args, fmt);
	vsnprintf(h->misuse, sizeof(h->misuse), fmt, args);
	va_end(args);
}

static void check_guard(struct loom__watchhost *h, const struct loom__block *b)
{
	const unsigned char *end = (const unsigned char *)(b + 1) + b->bytes;
	for (int i = 0; i < GUARD; i++)
		if (end[i] != PATTERN) {
			misuse(h, "it wrote behind the %zu bytes that it got from host->alloc()",
			       b->bytes);
			return;
		}
}

static void *watch_alloc(const struct loom_host *host, size_t bytes)
{
	struct loom__watchhost *h = of(host);
	void *p = NULL;
	pthread_mutex_lock(&h->lock);
	if (++h->allocations == h->refuse_at || bytes > (size_t)1 << 40) {
		h->refused++;
	} else {
		size_t room = sizeof(struct loom__block) + bytes + GUARD;
		char *whole = calloc(1, room + 63);
		if (whole) {
			struct loom__block *b = (void *)(((uintptr_t)whole + 63) & ~(uintptr_t)63);
			b->whole = whole;
			b->bytes = bytes;
			b->state = LIVE;
			memset((char *)(b + 1) + bytes, PATTERN, GUARD);
			b->next = h->blocks;
			b->link = &h->blocks;
			if (b->next)
				b->next->link = &b->next;
			h->blocks = b;
			h->live++;
			p = b + 1;
		}
	}
	pthread_mutex_unlock(&h->lock);
	return p;
}

static void watch_free(const struct loom_host *host, void *p)
{
	struct loom__watchhost *h = of(host);
	if (!p)
		return;
	pthread_mutex_lock(&h->lock);
	struct loom__block *b = h->blocks;
	while (b && b + 1 != p)
		b = b->next;
	if (!b) {
		misuse(h, "it freed an address that it did not get from host->alloc(), or freed it "
			  "twice");
	} else {
		check_guard(h, b);
		*b->link = b->next;
		if (b->next)
			b->next->link = b->link;
		b->state = GONE;
		h->live--;
		free(b->whole);
	}
	pthread_mutex_unlock(&h->lock);
}

static int watch_log_on(const struct loom_host *host, int level)
{
	(void)host, (void)level;
	return 1; /* every message is made, so that a bad format shows */
}

static void watch_log(const struct loom_host *host, int level, const char *who, const char *fmt,
		      ...)
{
	struct loom__watchhost *h = of(host);
	char text[1000];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	pthread_mutex_lock(&h->lock);
	if (level < LOOM_LOG_ERROR || level > LOOM_LOG_DEBUG)
		misuse(h, "it logs at the level %d, which does not exist", level);
	else if (!who || !*who)
		misuse(h, "it logs without saying who it is");
	else if (strchr(text, '\n'))
		misuse(h, "it logs a text of several lines: %.60s", text);
	pthread_mutex_unlock(&h->lock);
}

static int watch_fail(const struct loom_host *host, struct loom_error *err, int code,
		      const char *file, int line, const char *fmt, ...)
{
	struct loom__watchhost *h = of(host);
	va_list args;
	pthread_mutex_lock(&h->lock);
	h->errors++;
	pthread_mutex_unlock(&h->lock);
	va_start(args, fmt);
	loom__vfail(err, code, file, line, fmt, args);
	va_end(args);
	return code;
}

static uint64_t watch_now(const struct loom_host *host)
{
	(void)host;
	return loom__now_ns();
}

static int watch_metric(const struct loom_host *host, struct loom_report *report, const char *name,
			const char *unit, enum loom_better better, double value)
{
	struct loom__watchhost *h = of(host);
	if (report != &h->report) {
		misuse(h, "it gave metric() another report than the one that it received");
		return LOOM_EINVAL;
	}
	if (!name || !*name || isnan(value))
		misuse(h, "it gave metric() %s",
		       name && *name ? "a value that is no number" : "no name");
	int code = loom__report_add(report, name, unit, better, value);
	if (code == LOOM_EPLUGIN)
		misuse(h, "it reports the metric '%.60s' twice in one sample", name);
	return code;
}

/* A job of one rank. */
static int watch_allgather(const struct loom_host *host, const void *mine, void *all, size_t bytes,
			   struct loom_error *err)
{
	(void)host, (void)err;
	memcpy(all, mine, bytes);
	return 0;
}

void loom__watchhost_init(struct loom__watchhost *h)
{
	*h = (struct loom__watchhost){
	    .table = {.size = sizeof(struct loom_host),
		      .abi = LOOM_ABI_CURRENT,
		      .ctx = h,
		      .log_on = watch_log_on,
		      .log = watch_log,
		      .fail = watch_fail,
		      .alloc = watch_alloc,
		      .free = watch_free,
		      .now_ns = watch_now,
		      .metric = watch_metric,
		      .ranks = 1,
		      .allgather = watch_allgather},
	    .lock = PTHREAD_MUTEX_INITIALIZER,
	};
}

void loom__watchhost_refuse(struct loom__watchhost *h, uint64_t at)
{
	pthread_mutex_lock(&h->lock);
	h->allocations = h->refused = 0;
	h->refuse_at = at;
	pthread_mutex_unlock(&h->lock);
}

const char *loom__watchhost_misuse(struct loom__watchhost *h)
{
	pthread_mutex_lock(&h->lock);
	for (const struct loom__block *b = h->blocks; b; b = b->next)
		check_guard(h, b);
	pthread_mutex_unlock(&h->lock);
	return h->misuse[0] ? h->misuse : NULL;
}

void loom__watchhost_clear_report(struct loom__watchhost *h)
{
	loom__report_clear(&h->report);
}
