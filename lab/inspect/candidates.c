/* SPDX-License-Identifier: Apache-2.0 */
/* Finds files of the search path that may be plug-ins, without running their code. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/candidates.h"
#include "plugin/identity.h"

static int looks_like_plugin(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);
	return entry->d_name[0] != '.' && n > 3 && !strcmp(entry->d_name + n - 3, ".so");
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

const char *loom__cause(const char *path, const char *sentence)
{
	const char *file = loom__shown(path);
	size_t n = strlen(file);
	return !strncmp(sentence, file, n) && !strncmp(sentence + n, ": ", 2) ? sentence + n + 2 : sentence;
}

static void keep_fault(struct loom__candidate *c, const struct loom_error *e)
{
	/* A long message may be cut, because the file name is printed beside it. */
	snprintf(c->fault, sizeof(c->fault), "%.*s", (int)sizeof(c->fault) - 1, loom__cause(c->path, e->text));
	loom__clean(c->fault, sizeof(c->fault));
}

static void examine(struct loom__candidate *c)
{
	struct loom_error e;
	if (loom__elf_read(c->path, &c->has_manifest, &c->manifest, &e) || loom__trusted(c->path, &e))
		c->has_manifest = 0, keep_fault(c, &e);
	else if (c->has_manifest && loom__identity_judge(c->path, &c->manifest, &e))
		keep_fault(c, &e);
}

/* Marks a file as hidden if an earlier folder has a file of the same name, because loom__plugin_find() takes the first
 * of these files. */
static void note_shadow(const struct loom__candidates *all, struct loom__candidate *c)
{
	for (size_t i = 0; i < all->count; i++)
		if (!strcmp(base_name(all->list[i].path), base_name(c->path)))
			snprintf(c->fault, sizeof(c->fault), "hidden by %s, which comes first",
				 loom__shown(all->list[i].path));
}

static int add(struct loom__candidates *all, const char *folder, const char *name, struct loom_error *err)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
	char *real = n > 0 && (size_t)n < sizeof(path) ? realpath(path, NULL) : NULL;
	struct loom__candidate c = {.path = real ? real : strdup(path)};
	struct loom__candidate *more = realloc(all->list, (all->count + 1) * sizeof(*more));
	if (more)
		all->list = more;
	if (!c.path || !more) {
		free(c.path);
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory while listing plug-ins");
	}
	for (size_t i = 0; i < all->count; i++)
		if (!strcmp(all->list[i].path, c.path)) {
			free(c.path);
			return 0;
		}
	examine(&c);
	note_shadow(all, &c);
	all->list[all->count++] = c;
	return 0;
}

static int scan_folder(struct loom__candidates *all, const char *folder, struct loom_error *err)
{
	struct dirent **entry;
	int n = scandir(folder, &entry, looks_like_plugin, alphasort);
	if (n < 0)
		return LOOM__FAIL(err, LOOM_EIO, "%s: cannot list this plug-in folder: %s", loom__shown(folder),
				  strerror(errno));
	int rc = 0;
	for (int i = 0; i < n; i++) {
		if (!rc)
			rc = add(all, folder, entry[i]->d_name, err);
		free(entry[i]);
	}
	free(entry);
	return rc;
}

int loom__candidates_scan(const struct loom__search *s, struct loom__candidates *out, struct loom_error *err)
{
	struct loom__candidates all = {0};
	int rc = 0;
	for (size_t i = 0; !rc && i < s->count; i++)
		rc = scan_folder(&all, s->folder[i], err);
	if (rc) {
		loom__candidates_free(&all);
		return rc;
	}
	*out = all;
	return 0;
}

void loom__candidates_free(struct loom__candidates *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->list[i].path);
	free(c->list);
	*c = (struct loom__candidates){0};
}
