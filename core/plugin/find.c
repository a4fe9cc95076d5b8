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

int loom__plugin_real(const char *name, char **path, struct loom_error *err)
{
	*path = realpath(name, NULL);
	if (*path)
		return 0;
	if (errno == ENOMEM)
		return LOOM__FAIL(err, LOOM_ENOMEM, "%s: out of memory", loom__shown(name));
	return LOOM__FAIL(err, LOOM_ENOENT, "%s: no such plug-in file: %s; check the path", loom__shown(name),
			  strerror(errno));
}

/* FOLDER/sched_mgws.so, for "mgws" and for "sched_mgws". NULL: it is not there. */
static const char *try_folder(const char *folder, const char *prefix, const char *name, char path[PATH_MAX])
{
	size_t n = strlen(prefix);
	int whole = !strncmp(name, prefix, n) && name[n] == '_';
	int length = snprintf(path, PATH_MAX, "%s/%s_%s.so", folder, prefix, name);
	if (length > 0 && length < PATH_MAX && !access(path, F_OK))
		return path;
	length = snprintf(path, PATH_MAX, "%s/%s.so", folder, name);
	return whole && length > 0 && length < PATH_MAX && !access(path, F_OK) ? path : NULL;
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
	int rc = !loom__text_ok(&there) || !loom__text_ok(&folders) ?
		LOOM__FAIL(err, LOOM_ENOMEM, "out of memory while listing plug-ins") :
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
	char file[PATH_MAX];
	if (strchr(name, '/'))
		return loom__plugin_real(name, path, err);
	for (size_t i = 0; i < s->count; i++)
		if (try_folder(s->folder[i], loom__kind_name(kind), name, file))
			return loom__plugin_real(file, path, err);
	int rc = loom__plugin_absent(s, kind, name, err);
	return rc ? rc : not_found(s, kind, name, err);
}
