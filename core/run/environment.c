/* SPDX-License-Identifier: Apache-2.0 */
#include "run/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "run/build.h"

const char *const loom__environment_fixed[] = {
	"cpu_model", "microcode",   "cores_online",   "cores_isolated", "affinity",
	"cpu_quota", "numa_nodes",  "governor",       "boost",          "smt",
	"huge_pages", "aslr",       "mitigations",    "clocksource",    "kernel",
	"machine",   "virtualisation", "libc",        "compiler",       "build_flags",
	NULL,
};

int loom__fact_read(const char *path, char *out, size_t room, char why[200])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, room - 1);
	int code = errno;
	if (fd >= 0)
		close(fd);
	if (n < 0) {
		snprintf(why, 200, "%s: %s", path, strerror(code));
		return -1;
	}
	while (n > 0 && (out[n - 1] == '\n' || out[n - 1] == ' '))
		n--;
	out[n] = 0;
	return 0;
}

void loom__fact_text(cJSON *facts, const char *name, const char *value)
{
	cJSON_AddStringToObject(facts, name, value);
}

void loom__fact_none(cJSON *facts, const char *name, const char *fmt, ...)
{
	char why[240];
	va_list args;
	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	cJSON *o = cJSON_AddObjectToObject(facts, name);
	cJSON_AddStringToObject(o, "null_because", why);
}

void loom__fact_file(cJSON *facts, const char *name, const char *path)
{
	char text[1024], why[200];
	if (loom__fact_read(path, text, sizeof(text), why))
		loom__fact_none(facts, name, "%s", why);
	else
		loom__fact_text(facts, name, text);
}

static void add_build(cJSON *facts)
{
	loom__fact_text(facts, "compiler", LOOM_BUILD_COMPILER);
	loom__fact_text(facts, "build_flags", LOOM_BUILD_FLAGS);
#ifdef __GLIBC__
	char libc[64];
	snprintf(libc, sizeof(libc), "glibc %s", gnu_get_libc_version());
	loom__fact_text(facts, "libc", libc);
#else
	loom__fact_none(facts, "libc", "not the GNU C library, and others do not tell");
#endif
}

cJSON *loom__environment(void)
{
	cJSON *facts = cJSON_CreateObject();
	if (!facts)
		return NULL;
	loom__environment_machine(facts);
	add_build(facts);
	loom__environment_load(facts);
	return facts;
}

void loom__environment_text(const cJSON *fact, struct loom__text *out)
{
	const cJSON *why = cJSON_GetObjectItemCaseSensitive(fact, "null_because");
	if (cJSON_IsString(fact))
		loom__text_add(out, "%s", fact->valuestring);
	else if (cJSON_IsNumber(fact))
		loom__text_double(out, fact->valuedouble);
	else
		loom__text_add(out, "not known (%s)", cJSON_IsString(why) ? why->valuestring : "not said");
}
