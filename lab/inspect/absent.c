/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/candidates.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_note(const struct dirent *entry)
{
	static const char ending[] = ".absent";
	size_t n = strlen(entry->d_name), m = sizeof(ending) - 1;
	return n > m && !strcmp(entry->d_name + n - m, ending);
}

static int is_known(const struct loom__absent *list, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(list[i].name, name))
			return 1;
	return 0;
}

static int is_there(const struct loom__search *s, const char *name)
{
	char path[PATH_MAX];
	for (size_t i = 0; i < s->count; i++) {
		int n = snprintf(path, sizeof(path), "%s/%s.so", s->folder[i], name);
		if (n > 0 && (size_t)n < sizeof(path) && !access(path, F_OK))
			return 1;
	}
	return 0;
}

size_t loom__absent_scan(const struct loom__search *s, struct loom__absent *out, size_t most)
{
	size_t count = 0;
	for (size_t i = 0; i < s->count; i++) {
		struct dirent **entry;
		int n = scandir(s->folder[i], &entry, is_note, alphasort);
		for (int k = 0; k < n; k++) {
			char path[PATH_MAX];
			struct loom__absent a;
			snprintf(path, sizeof(path), "%s/%s", s->folder[i], entry[k]->d_name);
			if (count < most && loom__absent_read(path, &a) && !is_known(out, count, a.name) &&
			    !is_there(s, a.name))
				out[count++] = a;
			free(entry[k]);
		}
		if (n >= 0)
			free(entry);
	}
	return count;
}

int loom__absent_named(const struct loom__search *s, const char *name, struct loom_error *err)
{
	struct loom__absent all[LOOM__ABSENT_MOST];
	size_t n = loom__absent_scan(s, all, LOOM__ABSENT_MOST);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, all[i].name) || !strcmp(name, loom__absent_brief(&all[i])))
			return loom__absent_fail(&all[i], err);
	return 0;
}
