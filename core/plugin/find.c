/* SPDX-License-Identifier: Apache-2.0 */
/* From the name in a conf to the file. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/identity.h"
#include "plugin/registry.h"

static int find_path(const char *name, char **path, struct loom_error *err)
{
	*path = realpath(name, NULL);
	return *path ? 0
		     : LOOM__FAIL(err, LOOM_ENOENT, "%s: no such plug-in file: %s; check the path",
				  loom__shown(name), strerror(errno));
}

/* FOLDER/sched_mgws.so, for "mgws" and for "sched_mgws". */
static char *try_folder(const char *folder, const char *prefix, const char *name)
{
	char path[PATH_MAX];
	size_t n = strlen(prefix);
	int whole = !strncmp(name, prefix, n) && name[n] == '_';
	int length = snprintf(path, sizeof(path), "%s/%s_%s.so", folder, prefix, name);
	if (length > 0 && (size_t)length < sizeof(path) && !access(path, F_OK))
		return realpath(path, NULL);
	length = snprintf(path, sizeof(path), "%s/%s.so", folder, name);
	return whole && length > 0 && (size_t)length < sizeof(path) && !access(path, F_OK)
		       ? realpath(path, NULL)
		       : NULL;
}

/* The short names of that kind, told from file names alone. */
static size_t names_of(const struct loom__candidates *all, const char *prefix, char (*out)[64],
		       size_t most)
{
	size_t count = 0, n = strlen(prefix);
	for (size_t i = 0; i < all->count && count < most; i++) {
		const char *file = strrchr(all->list[i].path, '/');
		file = file ? file + 1 : all->list[i].path;
		if (strncmp(file, prefix, n) || file[n] != '_' ||
		    !strncmp(all->list[i].fault, "hidden by ", 10) || access(all->list[i].path, F_OK))
			continue; /* the last: a link to nowhere */
		file += n + 1;
		snprintf(out[count++], sizeof(out[0]), "%.*s", (int)strcspn(file, "."), file);
	}
	return count;
}

static int not_found(const struct loom__search *s, enum loom_kind kind, const char *name,
		     struct loom_error *err)
{
	enum { MOST = 40 };
	static const char *const none = "there is none of that kind";
	const char *section = loom__kind_section(kind), *names[MOST];
	char storage[MOST][64];
	struct loom__candidates all = {0};
	struct loom__text there = {0}, folders = {0};
	size_t count = 0;

	if (!loom__candidates_scan(s, &all, NULL))
		count = names_of(&all, loom__kind_name(kind), storage, MOST);
	for (size_t i = 0; i < count; i++) {
		names[i] = storage[i];
		loom__text_add(&there, "%s%s", i ? ", " : "there is: ", names[i]);
	}
	for (size_t i = 0; i < s->count; i++)
		loom__text_add(&folders, "%s%s", i ? ", " : "", loom__shown(s->folder[i]));
	const char *nearest = loom__nearest(name, names, count);
	int rc =
		LOOM__FAIL(err, LOOM_ENOENT, "no %s plug-in '%s' in %s; %s%s%s%s", section, name,
			   folders.at ? folders.at : "any folder (none was found: set plugin_path)",
			   nearest ? "did you mean '" : "", nearest ? nearest : "",
			   nearest ? "'? " : "", there.at ? there.at : none);
	loom__text_free(&there);
	loom__text_free(&folders);
	loom__candidates_free(&all);
	return rc;
}

int loom__plugin_find(const struct loom__search *s, enum loom_kind kind, const char *name,
		      char **path, struct loom_error *err)
{
	if (strchr(name, '/'))
		return find_path(name, path, err);
	for (size_t i = 0; i < s->count; i++)
		if ((*path = try_folder(s->folder[i], loom__kind_name(kind), name)))
			return 0;
	int rc = loom__plugin_absent(s, kind, name, err);
	return rc ? rc : not_found(s, kind, name, err);
}
