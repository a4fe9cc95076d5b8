/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the file of a plug-in by the name in a conf. */
#include <dirent.h>
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

/* Returns the path of a plug-in in the folder, or NULL if there is none. For `prefix` "sched" and `ending` ".so", both
 * "mgws" and "sched_mgws" give FOLDER/sched_mgws.so. */
static const char *try_folder(const char *folder, const char *prefix, const char *name, const char *ending,
			      char path[PATH_MAX])
{
	size_t n = strlen(prefix);
	int whole = !strncmp(name, prefix, n) && name[n] == '_';
	int length = snprintf(path, PATH_MAX, "%s/%s_%s%s", folder, prefix, name, ending);
	if (length > 0 && length < PATH_MAX && !access(path, F_OK))
		return path;
	length = snprintf(path, PATH_MAX, "%s/%s%s", folder, name, ending);
	return whole && length > 0 && length < PATH_MAX && !access(path, F_OK) ? path : NULL;
}

size_t loom__plugin_names(const struct loom__search *s, enum loom_kind kind, char (*out)[64], size_t most)
{
	const char *prefix = loom__kind_name(kind);
	char path[PATH_MAX];
	size_t count = 0, n = strlen(prefix);
	for (size_t i = 0; i < s->count; i++) {
		struct dirent **entry;
		int found = scandir(s->folder[i], &entry, NULL, alphasort);
		for (int k = 0; k < found; k++) {
			const char *file = entry[k]->d_name, *name = file + n + 1;
			if (count + 1 < most && !strncmp(file, prefix, n) && file[n] == '_') {
				snprintf(out[count], sizeof(out[0]), "%.*s", (int)strcspn(name, "."), name);
				size_t same = 0;
				while (strcmp(out[same], out[count]))
					same++;
				count += same == count && try_folder(s->folder[i], prefix, out[count], ".so", path);
			}
			free(entry[k]);
		}
		if (found >= 0)
			free(entry);
	}
	return count;
}

static int not_found(const struct loom__search *s, enum loom_kind kind, const char *name, struct loom_error *err)
{
	static const char *const none = "there is none of that kind";
	const char *section = loom__kind_section(kind);
	char names[LOOM__NAMES_MOST][64];
	struct loom__near near = {.word = name};
	struct loom__text there = {0}, folders = {0};
	size_t count = loom__plugin_names(s, kind, names, LOOM__COUNT(names));

	for (size_t i = 0; i < count; i++) {
		loom__nearer(&near, names[i]);
		loom__text_add(&there, "%s%s", i ? ", " : "there is: ", names[i]);
	}
	for (size_t i = 0; i < s->count; i++)
		loom__text_add(&folders, "%s%s", i ? ", " : "", loom__shown(s->folder[i]));
	int rc = !loom__text_ok(&there) || !loom__text_ok(&folders) ?
		LOOM__FAIL(err, LOOM_ENOMEM, "out of memory while listing plug-ins") :
		LOOM__FAIL(err, LOOM_ENOENT, "no %s plug-in '%s' in %s; %s%s%s%s", section, name,
			   folders.at ? folders.at : "any folder (none was found: set plugin_path)",
			   near.name ? "did you mean '" : "", near.name ? near.name : "",
			   near.name ? "'? " : "", there.at ? there.at : none);
	loom__text_free(&there);
	loom__text_free(&folders);
	return rc;
}

int loom__plugin_find(const struct loom__search *s, enum loom_kind kind, const char *name,
		      char **path, struct loom_error *err)
{
	char file[PATH_MAX];
	if (strchr(name, '/'))
		return loom__plugin_real(name, path, err);
	for (size_t i = 0; i < s->count; i++)
		if (try_folder(s->folder[i], loom__kind_name(kind), name, ".so", file))
			return loom__plugin_real(file, path, err);
	struct loom__absent absent;
	for (size_t i = 0; i < s->count; i++)
		if (try_folder(s->folder[i], loom__kind_name(kind), name, ".absent", file) && loom__absent_read(file, &absent))
			return loom__absent_fail(&absent, err);
	return not_found(s, kind, name, err);
}
