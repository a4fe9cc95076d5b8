/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "facts/build.h"

const char *const loom__environment_fixed[] = {
	"cpu_model", "microcode",   "cores_online",   "cores_isolated", "affinity",
	"cpu_quota", "numa_nodes",  "governor",       "boost",          "smt",
	"huge_pages", "aslr",       "mitigations",    "clocksource",    "kernel",
	"machine",   "virtualisation", "libc",        "compiler",       "build_flags",
	NULL,
};

static void add_build(cJSON *facts)
{
	loom__json_add_text(facts, "compiler", LOOM_BUILD_COMPILER);
	loom__json_add_text(facts, "build_flags", LOOM_BUILD_FLAGS);
#ifdef __GLIBC__
	char libc[64];
	snprintf(libc, sizeof(libc), "glibc %s", gnu_get_libc_version());
	loom__json_add_text(facts, "libc", libc);
#else
	loom__fact_none(facts, "libc", "not the GNU C library: version not known");
#endif
}

cJSON *loom__environment(void)
{
	cJSON *facts = cJSON_CreateObject();
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
