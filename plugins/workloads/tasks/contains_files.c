/* SPDX-License-Identifier: Apache-2.0 */
/* Finds documents: in a folder, in one file, or by an index of one file. */
#include "contains.h"

#include <errno.h>
#include <fnmatch.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/io.h"

#define NAME "workload_contains"

static int no_memory(const struct loom_host *host, struct loom_error *err)
{
	return LOOM_FAIL(host, err, LOOM_ENOMEM, "contains: out of memory");
}

static int add(struct contains_list *list, struct contains_source source)
{
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 256;
		struct contains_source *more = realloc(list->source, room * sizeof(*more));
		if (!more)
			return LOOM_ENOMEM;
		list->source = more;
		list->room = room;
	}
	list->source[list->count++] = source;
	return 0;
}

static int add_file(struct contains_list *list, const char *path)
{
	char *copy = strdup(path);
	if (!copy)
		return LOOM_ENOMEM;
	int rc = add(list, (struct contains_source){.path = copy, .owned = 1});
	if (rc)
		free(copy);
	return rc;
}

void contains_list_free(struct contains_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->source[i].owned)
			free(list->source[i].path);
		free(list->source[i].text);
	}
	free(list->source);
	*list = (struct contains_list){0};
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void skip(const struct loom_host *host, struct contains_list *list, const char *path, const char *why)
{
	/* Logs only the first name; verify() reports the number of such names. */
	if (!list->skipped++)
		LOOM_LOG(host, LOOM_LOG_WARN, NAME, "%s: %s: left out", path, why);
}

/* Returns a hint for a folder of manual pages that is missing: the package that has these pages. Returns "" for
 * another path. */
static const char *hint_of(const char *path, char *text, size_t room)
{
	static const char man[] = "/usr/share/man/";
	const char *language = strncmp(path, man, sizeof(man) - 1) ? "" : path + sizeof(man) - 1;
	int n = (int)strcspn(language, "/");
	*text = 0;
	if (n)
		snprintf(text, room,
			 "; install manpages-%.*s (Debian, Ubuntu) or man-pages-%.*s (Fedora, Arch), or name another "
			 "folder, or none to search generated documents",
			 n, language, n, language);
	return text;
}

/* Lists the files that `find FOLDER -name GLOB` lists. Follows links to files, but not links to folders. */
static int scan_folder(const struct loom_host *host, const struct contains_opts *o, struct contains_list *list,
		       struct loom_error *err)
{
	char *const roots[] = {(char *)o->path, NULL};
	FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
	const FTSENT *e;
	char hint[300];
	struct stat st;
	int rc = 0;
	if (!walk)
		return LOOM_FAIL(host, err, LOOM_EIO, "contains: %s: %s", o->path, strerror(errno));
	while (!rc && (!o->limit || list->count < o->limit) && (e = fts_read(walk))) {
		if (e->fts_info == FTS_D || e->fts_info == FTS_DP)
			continue;
		if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS)
			skip(host, list, e->fts_path, strerror(e->fts_errno));
		else if (fnmatch(o->glob, e->fts_name, 0) != 0)
			continue;
		else if (stat(e->fts_path, &st))
			skip(host, list, e->fts_path, strerror(errno));
		else if (!S_ISREG(st.st_mode))
			skip(host, list, e->fts_path, "not a file");
		else
			rc = add_file(list, e->fts_path);
	}
	fts_close(walk);
	if (rc)
		return no_memory(host, err);
	if (!list->count)
		return LOOM_FAIL(host, err, LOOM_ENOENT, "contains: no file in %s matches glob = %s%s", o->path,
				 o->glob, hint_of(o->path, hint, sizeof(hint)));
	return 0;
}

/* Reads lines "offset length". Each line names a part of the file `path` as a document. */
static int scan_index(const struct loom_host *host, const struct contains_opts *o, struct contains_list *list,
		      struct loom_error *err)
{
	const char *why;
	FILE *f = loom__fopen_input(o->index, &why);
	char line[256], end;
	unsigned number = 0;
	int rc = 0;
	if (!f)
		return LOOM_FAIL(host, err, LOOM_EIO, "contains: %s: %s", o->index, why);
	while (!rc && (!o->limit || list->count < o->limit) && fgets(line, sizeof(line), f)) {
		struct contains_source s = {0};
		number++;
		if (strspn(line, " \t\r\n") == strlen(line) || line[0] == '#')
			continue;
		if (strchr(line, '-') || sscanf(line, "%" SCNu64 " %" SCNu64 " %c", &s.at, &s.bytes, &end) != 2)
			rc = LOOM_FAIL(host, err, LOOM_EINVAL, "%s:%u: expected \"offset length\" in bytes", o->index,
				       number);
		else if (!s.bytes)
			rc = LOOM_FAIL(host, err, LOOM_EINVAL, "%s:%u: a document of no bytes", o->index, number);
		else if (!list->count) {
			if (!(s.path = strdup(o->path)) || add(list, s))
				rc = no_memory(host, err);
			else
				list->source[0].owned = 1;
		} else {
			s.path = list->source[0].path;
			if (add(list, s))
				rc = no_memory(host, err);
		}
	}
	fclose(f);
	if (!rc && !list->count)
		rc = LOOM_FAIL(host, err, LOOM_EINVAL, "contains: %s lists no document", o->index);
	return rc;
}

static int no_path(const struct loom_host *host, const struct contains_opts *o, int why, struct loom_error *err)
{
	char hint[300];
	return LOOM_FAIL(host, err, why == ENOENT ? LOOM_ENOENT : LOOM_EIO, "contains: path = %s: %s%s", o->path,
			 strerror(why), why == ENOENT ? hint_of(o->path, hint, sizeof(hint)) : "");
}

int contains_inputs(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct contains_opts *o = opts;
	return o->path[0] && access(o->path, R_OK) ? no_path(host, o, errno, err) : 0;
}

int contains_scan(const struct loom_host *host, const struct contains_opts *o, struct contains_list *list,
		  struct loom_error *err)
{
	struct stat st;
	if (!o->path[0])
		return contains_generate(host, o, list, err);
	if (stat(o->path, &st))
		return no_path(host, o, errno, err);
	if (o->index[0]) {
		if (!S_ISREG(st.st_mode))
			return LOOM_FAIL(host, err, LOOM_EINVAL,
					 "contains: an index is for one file, but %s is not a file", o->path);
		return scan_index(host, o, list, err);
	}
	if (S_ISDIR(st.st_mode))
		return scan_folder(host, o, list, err);
	if (!S_ISREG(st.st_mode))
		return LOOM_FAIL(host, err, LOOM_EINVAL, "contains: %s is neither file nor folder", o->path);
	return add_file(list, o->path) ? no_memory(host, err) : 0;
}
