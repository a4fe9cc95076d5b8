/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files, and the files that they include. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/inside.h"

/* A file that is being read. */
struct reading {
	struct loom_config *cfg;
	struct loom__diag *diag;
	const struct reading *outer; /* the file that includes this one, or NULL */
	const struct loom__item *at; /* the line of `outer` that includes this file */
	const char *path;
	int depth;   /* number of files that include each other, up to this one; at least 1 */
	int is_file; /* 1 if `device` and `inode` are set */
	dev_t device;
	ino_t inode;
};

static int take_file(struct reading *r);

/* Reports a mistake about a file at the place that names the file: a line of the outer file, or the command line. */
#define REFUSE(r, ...)                                                                                                 \
	loom__diag_add((r)->diag, 0, (r)->outer ? (r)->outer->path : (r)->path, (r)->outer ? (r)->at->line : 0,        \
		       (r)->outer ? (r)->at->value_column : 0, __VA_ARGS__)

static void include(const struct reading *outer, const struct loom__item *item)
{
	struct reading inner = {
	    .cfg = outer->cfg, .diag = outer->diag, .outer = outer, .at = item, .depth = outer->depth + 1};
	struct loom__text name = {0}, path = {0};
	loom__text_put(&name, item->value.at, item->value.n);
	if (loom__text_ok(&name))
		loom__beside(&path, outer->path, name.at);
	if (!loom__text_ok(&name) || !loom__text_ok(&path)) {
		outer->cfg->failed = 1;
	} else if (!name.length) {
		inner.path = "";
		REFUSE(&inner, "include needs the name of a file");
	} else {
		inner.path = path.at;
		take_file(&inner);
	}
	loom__text_free(&name);
	loom__text_free(&path);
}

/* Takes the values of the included files first, so that this file overrides them. */
static void take_items(struct reading *r, const struct loom__items *items)
{
	char *file = loom__config_keep(r->cfg, r->path, strlen(r->path));
	for (size_t i = 0; i < items->count && !r->cfg->failed; i++)
		if (items->at[i].kind == LOOM__ITEM_INCLUDE)
			include(r, &items->at[i]);
	for (size_t i = 0; i < items->count && !r->cfg->failed; i++) {
		const struct loom__item *item = &items->at[i];
		const struct loom__entry where = {.source = LOOM_FROM_FILE,
						  .file = file,
						  .line = item->line,
						  .column = item->column,
						  .value_column = item->value_column};
		if (item->kind == LOOM__ITEM_SECTION)
			loom__config_name_section(r->cfg, &where, item->section);
		else if (item->kind == LOOM__ITEM_KEY &&
			 loom__config_add(r->cfg, &where, item->section, item->key, item->value, r->diag))
			break;
	}
}

static void take_text(struct reading *r, const char *text, size_t length)
{
	struct loom__items items = {0};
	if (length >= 2 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2))) {
		loom__diag_add(r->diag, 0, r->path, 1, 1, "the file is in UTF-16; save it as UTF-8");
		return;
	}
	/* Skip the byte order mark, which editors on Windows write. */
	if (length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		text += 3;
		length -= 3;
	}
	loom__scan(r->path, text, length, &items, r->diag);
	if (items.failed || loom__items_read(r->path, &items, r->diag))
		r->cfg->failed = 1;
	take_items(r, &items);
	loom__items_free(&items);
}

/* Returns the path of the file in the folder of `path` whose name is nearest to the name of `path`, or NULL. */
static const char *neighbour(const char *path, char nearest[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	struct loom__near near = {.word = slash ? slash + 1 : path};
	int n = (int)(near.word - path);
	if (snprintf(nearest, PATH_MAX, "%.*s", n, path) >= PATH_MAX)
		return NULL;
	DIR *dir = opendir(slash ? nearest : ".");
	struct dirent *e;
	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.' && loom__nearer(&near, e->d_name))
			snprintf(nearest + n, (size_t)(PATH_MAX - n), "%s", e->d_name);
	if (dir)
		closedir(dir);
	return near.name ? nearest : NULL;
}

static int is_open(const struct reading *r)
{
	for (const struct reading *o = r->outer; o; o = o->outer)
		if (o->is_file && o->device == r->device && o->inode == r->inode)
			return 1;
	return 0;
}

/* Reads the file at r->path. Returns 0, LOOM_EINVAL or LOOM_ENOMEM. */
static int take_file(struct reading *r)
{
	struct loom_error err = {0};
	struct stat st;
	char *bytes = NULL;
	size_t length, before = r->diag->errors;
	if (!stat(r->path, &st)) {
		r->is_file = 1;
		r->device = st.st_dev;
		r->inode = st.st_ino;
	}
	if (r->is_file && is_open(r)) {
		REFUSE(r, "'%s' includes itself, directly or through others", r->path);
	} else if (r->depth > LOOM__DEPTH_MOST) {
		REFUSE(r, "more than %d files inside each other", LOOM__DEPTH_MOST);
	} else if (r->cfg->file_count >= LOOM__FILES_MOST) {
		REFUSE(r, "more than %d files in one configuration", LOOM__FILES_MOST);
	} else if (!loom__read_file(r->path, LOOM__FILE_MOST, &bytes, &length, &err)) {
		r->cfg->file[r->cfg->file_count++] = loom__config_keep(r->cfg, r->path, strlen(r->path));
		take_text(r, bytes, length);
		free(bytes);
	} else if (err.code == LOOM_ENOMEM) {
		r->cfg->failed = 1;
	} else {
		char nearest[PATH_MAX];
		const char *near = err.code == LOOM_ENOENT ? neighbour(r->path, nearest) : NULL;
		REFUSE(r, "%s%s%s%s", err.text, LOOM__MEANT(near));
	}
	return loom__config_verdict(r->cfg, r->diag, before);
}

int loom__config_read(struct loom_config *cfg, const char *path, struct loom__diag *diag)
{
	struct reading r = {.cfg = cfg, .diag = diag, .path = path, .depth = 1};
	return take_file(&r);
}

int loom__config_read_text(struct loom_config *cfg, const char *name, const char *text, size_t length,
			   struct loom__diag *diag)
{
	struct reading r = {.cfg = cfg, .diag = diag, .path = name, .depth = 1};
	size_t before = diag->errors;
	if (length > LOOM__FILE_MOST)
		loom__diag_add(diag, 0, name, 0, 0, "larger than the limit of %d bytes", LOOM__FILE_MOST);
	else
		take_text(&r, text, length);
	return loom__config_verdict(cfg, diag, before);
}

const char *loom__config_file(const struct loom_config *cfg, size_t i)
{
	return i < cfg->file_count ? cfg->file[i] : NULL;
}
