/* SPDX-License-Identifier: Apache-2.0 */
#include "rig/host.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/align.h"

enum { GUARD = 64, LIVE = 0x6c697665, GONE = 0x676f6e65, PATTERN = 0x5c };

/* Precedes the memory that the plug-in gets; a guard follows that memory. */
struct loom__block {
	struct loom__block *next, **link;
	void *whole; /* from calloc(): aligned_alloc() would leave fragments that leak checkers report */
	size_t bytes;
	uint32_t state;
	char pad[64 - 4 * sizeof(void *) - sizeof(uint32_t)];
};
_Static_assert(sizeof(struct loom__block) == 64, "keeps the alignment of what follows");

static struct loom__rig_host *of(const struct loom_host *host)
{
	return host->ctx;
}

LOOM_PRINTF(2, 3)
static void misuse(struct loom__rig_host *h, const char *fmt, ...)
{
	va_list args;
	if (h->misuse[0])
		return;
	va_start(args, fmt);
	vsnprintf(h->misuse, sizeof(h->misuse), fmt, args);
	va_end(args);
}

static void check_guard(struct loom__rig_host *h, const struct loom__block *b)
{
	const unsigned char *end = (const unsigned char *)(b + 1) + b->bytes;
	for (int i = 0; i < GUARD; i++)
		if (end[i] != PATTERN) {
			misuse(h, "it wrote behind the %zu bytes that it got from host->alloc()", b->bytes);
			return;
		}
}

static void *watch_alloc(const struct loom_host *host, size_t bytes)
{
	struct loom__rig_host *h = of(host);
	void *p = NULL;
	pthread_mutex_lock(&h->lock);
	if (++h->allocations == h->refuse_at || bytes > (size_t)1 << 40) {
		h->refused++;
	} else {
		size_t room = sizeof(struct loom__block) + bytes + GUARD;
		char *whole = calloc(1, room + 63);
		if (whole) {
			struct loom__block *b = (void *)loom__align((uintptr_t)whole, 64);
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
	struct loom__rig_host *h = of(host);
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
	return 1; /* formats every message, so that a bad format shows */
}

static void watch_log(const struct loom_host *host, int level, const char *label, const char *fmt, ...)
{
	struct loom__rig_host *h = of(host);
	char text[1000];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	pthread_mutex_lock(&h->lock);
	if (level < LOOM_LOG_ERROR || level > LOOM_LOG_DEBUG)
		misuse(h, "it logs at the level %d, which does not exist", level);
	else if (!label || !*label)
		misuse(h, "it logs without its name");
	else if (strchr(text, '\n'))
		misuse(h, "it logs a text of several lines: %.60s", text);
	size_t used = strlen(h->log);
	if (level <= LOOM_LOG_WARN)
		snprintf(h->log + used, sizeof(h->log) - used, "%s: %s", label ? label : "", text);
	pthread_mutex_unlock(&h->lock);
}

static int watch_fail(const struct loom_host *host, struct loom_error *err, int code, const char *file, int line,
		      const char *fmt, ...)
{
	va_list args;
	(void)host;
	if (!err)
		return code;
	*err = (struct loom_error){.code = code, .line = line, .file = file};
	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	return code;
}

static uint64_t watch_now(const struct loom_host *host)
{
	struct timespec t;
	(void)host;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double loom__rig_host_metric(const struct loom__rig_host *h, const char *name)
{
	for (uint32_t i = 0; i < h->metrics; i++)
		if (!strcmp(h->metric[i].name, name))
			return h->metric[i].value;
	return -1;
}

static int watch_metric(const struct loom_host *host, struct loom_report *report, const char *name, const char *unit,
			enum loom_better better, double value)
{
	struct loom__rig_host *h = of(host);
	(void)unit, (void)better;
	if (report != LOOM__RIG_REPORT(h)) {
		misuse(h, "it gave metric() another report than it received");
		return LOOM_EINVAL;
	}
	if (!name || !*name || isnan(value)) {
		misuse(h, "it gave metric() %s", name && *name ? "a value that is no number" : "no name");
		return LOOM_EINVAL;
	}
	for (uint32_t i = 0; i < h->metrics; i++)
		if (!strcmp(h->metric[i].name, name)) {
			misuse(h, "it reports the metric '%.60s' twice in one sample", name);
			return LOOM_EPLUGIN;
		}
	if (h->metrics == sizeof(h->metric) / sizeof(h->metric[0]))
		return LOOM_EFULL;
	struct loom__rig_host_metric *m = &h->metric[h->metrics++];
	snprintf(m->name, sizeof(m->name), "%s", name);
	m->value = value;
	return 0;
}

const char *loom__rig_host_fact(const struct loom__rig_host *h, const char *name)
{
	for (uint32_t i = 0; i < h->facts; i++)
		if (!strcmp(h->choice[i].name, name))
			return h->choice[i].text;
	return NULL;
}

static void watch_fact(const struct loom_host *host, const char *name, const char *text)
{
	struct loom__rig_host *h = of(host);
	uint32_t i = 0;
	if (!name || !strchr(name, '.') || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.:")] || !text ||
	    !*text) {
		misuse(h, "it calls choice() without a name as in section.choice, or without a text");
		return;
	}
	while (i < h->facts && strcmp(h->choice[i].name, name))
		i++;
	if (i == sizeof(h->choice) / sizeof(h->choice[0]))
		return;
	h->facts += i == h->facts;
	snprintf(h->choice[i].name, sizeof(h->choice[i].name), "%s", name);
	snprintf(h->choice[i].text, sizeof(h->choice[i].text), "%s", text);
}

/* For a job of one rank. */
static int watch_allgather(const struct loom_host *host, const void *mine, void *all, size_t bytes,
			   struct loom_error *err)
{
	(void)host, (void)err;
	memmove(all, mine, bytes);
	return 0;
}

void loom__rig_host_init(struct loom__rig_host *h)
{
	*h = (struct loom__rig_host){
	    .table = {.size = sizeof(struct loom_host),
		      .abi = LOOM_ABI,
		      .ctx = h,
		      .log_on = watch_log_on,
		      .log = watch_log,
		      .fail = watch_fail,
		      .alloc = watch_alloc,
		      .free = watch_free,
		      .now_ns = watch_now,
		      .metric = watch_metric,
		      .ranks = 1,
		      .allgather = watch_allgather,
		      .choice = watch_fact},
	    .lock = PTHREAD_MUTEX_INITIALIZER,
	};
}

void loom__rig_host_refuse(struct loom__rig_host *h, uint64_t at)
{
	pthread_mutex_lock(&h->lock);
	h->allocations = h->refused = 0;
	h->refuse_at = at;
	pthread_mutex_unlock(&h->lock);
}

const char *loom__rig_host_misuse(struct loom__rig_host *h)
{
	pthread_mutex_lock(&h->lock);
	for (const struct loom__block *b = h->blocks; b; b = b->next)
		check_guard(h, b);
	pthread_mutex_unlock(&h->lock);
	return h->misuse[0] ? h->misuse : NULL;
}

void loom__rig_host_clear(struct loom__rig_host *h)
{
	h->metrics = 0;
}
