/* SPDX-License-Identifier: Apache-2.0 */
/* A host table for tests that load one plug-in without the core. Messages and metrics are kept. */
#ifndef LOOM_TEST_FAKE_HOST_H
#define LOOM_TEST_FAKE_HOST_H

#include <dlfcn.h>
#include <gpuloom/plugin.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support.h"

#define FAKE_FN static __attribute__((unused))

struct fake_metric {
	char name[64];
	double value;
};
static char fake_log_text[4096]; /* lines since the test last emptied it */
static struct fake_metric fake_metrics[256];
static size_t fake_metric_count;

FAKE_FN int fake_log_on(const struct loom_host *host, int level)
{
	(void)host;
	return level <= LOOM_LOG_WARN;
}
LOOM_PRINTF(4, 5)
FAKE_FN void fake_log(const struct loom_host *host, int level, const char *who, const char *fmt,
		      ...)
{
	(void)host, (void)level;
	size_t used = strlen(fake_log_text);
	used += (size_t)snprintf(fake_log_text + used, sizeof(fake_log_text) - used, "%s: ", who);
	va_list args;
	va_start(args, fmt);
	if (used < sizeof(fake_log_text))
		vsnprintf(fake_log_text + used, sizeof(fake_log_text) - used, fmt, args);
	va_end(args);
}
LOOM_PRINTF(6, 7)
FAKE_FN int fake_fail(const struct loom_host *host, struct loom_error *err, int code,
		      const char *file, int line, const char *fmt, ...)
{
	(void)host;
	if (err) {
		*err = (struct loom_error){.code = code, .line = line, .file = file};
		va_list args;
		va_start(args, fmt);
		vsnprintf(err->text, sizeof(err->text), fmt, args);
		va_end(args);
	}
	return code;
}
FAKE_FN void *fake_alloc(const struct loom_host *host, size_t bytes)
{
	(void)host;
	void *p = NULL;
	if (posix_memalign(&p, 64, bytes ? bytes : 1) != 0)
		return NULL;
	return memset(p, 0, bytes);
}
FAKE_FN void fake_free(const struct loom_host *host, void *p)
{
	(void)host;
	free(p);
}
FAKE_FN uint64_t fake_now_ns(const struct loom_host *host)
{
	(void)host;
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
FAKE_FN int fake_metric(const struct loom_host *host, struct loom_report *report, const char *name,
			const char *unit, enum loom_better better, double value)
{
	(void)host, (void)report, (void)unit, (void)better;
	if (fake_metric_count == sizeof(fake_metrics) / sizeof(fake_metrics[0]))
		return LOOM_EFULL;
	struct fake_metric *m = &fake_metrics[fake_metric_count++];
	snprintf(m->name, sizeof(m->name), "%s", name);
	m->value = value;
	return 0;
}

FAKE_FN int fake_allgather(const struct loom_host *host, const void *mine, void *all, size_t bytes,
			   struct loom_error *err)
{
	(void)host, (void)err;
	memmove(all, mine, bytes);
	return 0;
}

static const struct loom_host fake_host __attribute__((unused)) = {
    .size = sizeof(struct loom_host),
    .abi = LOOM_ABI_CURRENT,
    .log_on = fake_log_on,
    .log = fake_log,
    .fail = fake_fail,
    .alloc = fake_alloc,
    .free = fake_free,
    .now_ns = fake_now_ns,
    .metric = fake_metric,
    .ranks = 1,
    .allgather = fake_allgather,
};

/* BUILD/plugins/NAME.so's descriptor; ends the program when it does not load. */
FAKE_FN const struct loom_plugin *fake_load(const char *name)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/plugins/%s.so", test_build_dir(), name);
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	const struct loom_plugin *(*entry)(void) = NULL;
	if (so)
		*(void **)&entry = dlsym(so, "loom_plugin_entry");
	if (!entry) {
		fprintf(stderr, "%s: %s\n", path, dlerror());
		exit(99);
	}
	return entry();
}

/* One value into the field of its row, with the units that the defaults of our rows use. */
FAKE_FN void fake_option(const struct loom_opt *row, void *opts, const char *text)
{
	static const struct {
		const char *unit;
		double factor;
	} units[] = {{"ns", 1},     {"us", 1e3},      {"ms", 1e6},         {"s", 1e9}, {"%", .01},
		     {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {"B", 1},   {"", 1}};
	void *field = (char *)opts + row->offset;
	char *end;
	double value = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].unit)) {
			value *= units[i].factor;
			break;
		}
	switch (row->type) {
	case LOOM_OPT_BOOL:
		*(uint8_t *)field = !strcmp(text, "yes");
		break;
	case LOOM_OPT_ENUM:
		for (uint32_t i = 0; row->choices[i]; i++)
			if (!strcmp(row->choices[i], text))
				*(uint32_t *)field = i;
		break;
	case LOOM_OPT_U32:
		*(uint32_t *)field = (uint32_t)value;
		break;
	case LOOM_OPT_I64:
		*(int64_t *)field = (int64_t)value;
		break;
	case LOOM_OPT_U64:
	case LOOM_OPT_SIZE:
	case LOOM_OPT_TIME:
		*(uint64_t *)field = (uint64_t)value;
		break;
	case LOOM_OPT_F64:
	case LOOM_OPT_SHARE:
		*(double *)field = value;
		break;
	default: /* text: must outlive the instance */
		*(const char **)field = text;
	}
}

/* Fills `opts` (plugin->opts_size bytes) with the defaults, then with "name=value name=value". The
 * text of `settings` is cut into pieces that the options point to: a writable array. */
FAKE_FN void fake_options(const struct loom_plugin *plugin, void *opts, char *settings)
{
	memset(opts, 0, plugin->opts_size);
	for (const struct loom_opt *row = plugin->opts; row && row->name; row++)
		if (row->dflt)
			fake_option(row, opts, row->dflt);
	char *rest = NULL;
	for (char *one = strtok_r(settings, " ", &rest); one; one = strtok_r(NULL, " ", &rest)) {
		char *value = strchr(one, '=');
		if (value)
			*value++ = 0;
		const struct loom_opt *row = plugin->opts;
		while (value && row && row->name && strcmp(row->name, one))
			row++;
		if (!value || !row || !row->name) {
			fprintf(stderr, "%s has no option '%s'\n", plugin->name, one);
			exit(99);
		}
		fake_option(row, opts, value);
	}
}

#endif
