/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the kinds of plug-ins, and of their sections in a conf. */
#include "registry.h"

#include <string.h>

static const struct {
	const char *name, *section;
} kinds[LOOM_KINDS] = {[LOOM_KIND_NONE] = {"none", "none"},
#define KIND_ROW(NAME, file, section) [LOOM_##NAME] = {#file, #section},
		       LOOM_KIND_MAP(KIND_ROW)
#undef KIND_ROW
};

const char *loom__kind_name(enum loom_kind kind)
{
	return (unsigned)kind < LOOM_KINDS ? kinds[kind].name : "unknown";
}

const char *loom__kind_section(enum loom_kind kind)
{
	return (unsigned)kind < LOOM_KINDS ? kinds[kind].section : "unknown";
}

enum loom_kind loom__kind_of_section(const char *section)
{
	for (int k = 1; k < LOOM_KINDS; k++)
		if (!strcmp(section, kinds[k].section))
			return k;
	return LOOM_KIND_NONE;
}

enum loom_kind loom__kind_of_file(const char *file, const char **brief)
{
	for (int k = 1; k < LOOM_KINDS; k++) {
		size_t n = strlen(kinds[k].name);
		if (!strncmp(file, kinds[k].name, n) && file[n] == '_') {
			*brief = file + n + 1;
			return k;
		}
	}
	return LOOM_KIND_NONE;
}

const char *loom__plugin_short(const struct loom_plugin *p)
{
	const char *prefix = loom__kind_name(p->kind);
	size_t n = strlen(prefix);
	return !strncmp(p->name, prefix, n) && p->name[n] == '_' ? p->name + n + 1 : p->name;
}
