/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins that the build left out. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/identity.h"
#include "plugin/registry.h"

static const char ending[] = ".absent";

static int is_note(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name), m = sizeof(ending) - 1;
	return n > m && n - m < sizeof(((struct loom__absent *)0)->name) && !strcmp(entry->d_name + n - m, ending);
}

static int set_name(struct loom__absent *a, const char *file)
{
	snprintf(a->name, sizeof(a->name), "%.*s", (int)(strlen(file) - (sizeof(ending) - 1)), file);
	a->kind = loom__kind_of_file(a->name, &a->brief);
	return a->kind != LOOM_KIND_NONE;
}

/* Two lines: why, and what mends it. */
static int read_note(struct loom__absent *a, const char *folder, const char *file)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", folder, file);
	FILE *f = n > 0 && (size_t)n < sizeof(path) ? fopen(path, "re") : NULL;
	if (!f)
		return 0;
	int whole = fgets(a->why, sizeof(a->why), f) && fgets(a->mend, sizeof(a->mend), f);
	fclose(f);
	a->why[strcspn(a->why, "\n")] = 0;
	a->mend[strcspn(a->mend, "\n")] = 0;
	loom__clean(a->why, sizeof(a->why));
	loom__clean(a->mend, sizeof(a->mend));
	return whole;
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
			struct loom__absent *a = &out[count];
			if (count < most && set_name(a, entry[k]->d_name) && !is_known(out, count, a->name) &&
			    !is_there(s, a->name) && read_note(a, s->folder[i], entry[k]->d_name))
				count++;
			free(entry[k]);
		}
		if (n >= 0)
			free(entry);
	}
	return count;
}

int loom__plugin_absent(const struct loom__search *s, enum loom_kind kind, const char *name, struct loom_error *err)
{
	struct loom__absent all[LOOM__ABSENT_MOST];
	size_t n = loom__absent_scan(s, all, LOOM__ABSENT_MOST);
	for (size_t i = 0; i < n; i++)
		if ((!kind || all[i].kind == kind) && (!strcmp(name, all[i].name) || !strcmp(name, all[i].brief)))
			return LOOM__FAIL(err, LOOM_EUNAVAIL, "%s plug-in '%s' was left out when gpuloom was built: %s; %s",
					  loom__kind_section(all[i].kind), all[i].brief, all[i].why, all[i].mend);
	return 0;
}
