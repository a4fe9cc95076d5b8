/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/conf/named.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/candidates.h"
#include "facts/must.h"

/* If *name begins with a kind, as in "scheduler.mgws" or "sched.mgws", sets *kind, moves *name past the kind and
 * returns 1. */
static int take_kind(const char **name, enum loom_kind *kind)
{
	size_t n = strcspn(*name, ".");
	for (int k = 1; (*name)[n] && k < LOOM_KINDS; k++) {
		const char *word[] = {loom__kind_section(k), loom__kind_name(k)};
		for (int w = 0; w < 2; w++)
			if (strlen(word[w]) == n && !strncmp(*name, word[w], n)) {
				*name += n + 1;
				*kind = k;
				return 1;
			}
	}
	return 0;
}

/* The kind and names of a plug-in, taken from the name of its file. The loader demands that the file has the plug-in's
 * name. */
struct file_name {
	enum loom_kind kind; /* LOOM_KIND_NONE: not a valid name for the file of a plug-in */
	char whole[64];      /* "sched_mgws" */
	const char *brief;   /* "mgws" */
};

static struct file_name *file_names(const struct loom__candidates *all)
{
	struct file_name *name = loom__must(calloc(all->count + 1, sizeof(*name)));
	for (size_t i = 0; i < all->count; i++) {
		const char *file = strrchr(all->list[i].path, '/') + 1;
		snprintf(name[i].whole, sizeof(name[i].whole), "%.*s", (int)strcspn(file, "."), file);
		name[i].kind = loom__kind_of_file(name[i].whole, &name[i].brief);
		if (!strncmp(all->list[i].fault, "hidden by ", 10))
			name[i].kind = LOOM_KIND_NONE;
	}
	return name;
}

static int not_found(const struct file_name *file, size_t n, const char *name, struct loom_error *err)
{
	struct loom__near near = {.word = name};
	for (size_t i = 0; i < n; i++)
		if (file[i].kind) {
			loom__nearer(&near, file[i].brief);
			loom__nearer(&near, file[i].whole);
		}
	return LOOM__FAIL(err, LOOM_ENOENT, "no plug-in '%s'%s%s%s%s see `gpuloom list`", name, LOOM__MEANT(near.name),
			  near.name ? "" : ";");
}

/* Finds a plug-in by either name: sched_mgws.so for "mgws" and for "sched_mgws". */
static int find_among_all(const struct loom__candidates *all, const char *name, char **path, struct loom_error *err)
{
	struct file_name *file = file_names(all);
	struct loom__text choices = {0};
	size_t found = 0, n = 0;
	int rc = 0;
	for (size_t i = 0; i < all->count; i++) {
		if (!file[i].kind || (strcmp(file[i].whole, name) && strcmp(file[i].brief, name)))
			continue;
		loom__text_add(&choices, "%s%s.%s", n++ ? ", " : "", loom__kind_section(file[i].kind), file[i].brief);
		found = i;
	}
	if (!n)
		rc = not_found(file, all->count, name, err);
	else if (n > 1)
		rc = LOOM__FAIL(err, LOOM_EINVAL, "'%s' is the name of %zu plug-ins: choose from %s", name, n,
				loom__must_text(&choices));
	else
		*path = loom__must(strdup(all->list[found].path));
	loom__text_free(&choices);
	free(file);
	return rc;
}

enum loom_kind loom__take_kind(const struct loom__cli *cli, const char *command, const char *word)
{
	struct loom__near near = {.word = word};
	for (int k = 1; k < LOOM_KINDS; k++) {
		if (!strcmp(word, loom__kind_section(k)) || !strcmp(word, loom__kind_name(k)))
			return k;
		loom__nearer(&near, loom__kind_section(k));
		loom__nearer(&near, loom__kind_name(k));
	}
	loom__say_error(cli, "%s: no kind '%s'%s%s%s; see gpuloom %s --help", command, word,
			near.name ? ", did you mean '" : "", near.name ? near.name : "", near.name ? "'?" : "",
			command);
	return LOOM_KIND_NONE;
}

int loom__is_plugin_file(const char *name)
{
	size_t n = strlen(name);
	return strchr(name, '/') || (n > 3 && !strcmp(name + n - 3, ".so"));
}

int loom__plugin_named(const char *name, const char *plugin_path, char **path, struct loom_error *err)
{
	struct loom__search search;
	struct loom__candidates all = {0};
	enum loom_kind kind = LOOM_KIND_NONE;
	if (loom__is_plugin_file(name))
		return loom__plugin_real(name, path, err);
	int rc = loom__search_create(plugin_path, &search, err);
	if (rc)
		return rc;
	if (take_kind(&name, &kind))
		rc = loom__plugin_find(&search, kind, name, path, err);
	else if (!(rc = loom__candidates_scan(&search, &all, err)))
		rc = find_among_all(&all, name, path, err);
	if (rc == LOOM_ENOENT && !kind && loom__absent_named(&search, name, err))
		rc = LOOM_EUNAVAIL;
	loom__candidates_free(&all);
	loom__search_free(&search);
	return rc;
}
