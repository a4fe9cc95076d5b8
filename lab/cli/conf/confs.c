/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/conf/conf.h"

#include <ctype.h>
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "facts/must.h"

static int is_folder(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* The path of the folder follows from the path of the command. */
char *loom__confs_folder(const struct loom__cli *cli)
{
	/* A build folder, build/ or for example build/address/, contains plugins/ beside the command, also in a copy. */
	static const struct {
		const char *mark, *folder;
	} places[] = {{"plugins", "../conf"}, {"plugins", "../../conf"}, {NULL, "../share/gpuloom/conf"}};
	const char *slash = cli->self ? strrchr(cli->self, '/') : NULL;
	char path[PATH_MAX];
	for (size_t i = 0; slash && i < LOOM__COUNT(places); i++) {
		int n = (int)(slash - cli->self);
		snprintf(path, sizeof(path), "%.*s/%s", n, cli->self, places[i].mark ? places[i].mark : "");
		if (places[i].mark && access(path, F_OK))
			continue;
		snprintf(path, sizeof(path), "%.*s/%s", n, cli->self, places[i].folder);
		if (is_folder(path))
			return realpath(path, NULL);
	}
	return NULL;
}

char *loom__shipped_file(const struct loom__cli *cli, const char *name)
{
	struct loom__text path = {0};
	char *folder = loom__confs_folder(cli);
	if (!folder)
		return NULL;
	loom__text_add(&path, "%.*s/%s", (int)(strrchr(folder, '/') - folder), folder, name);
	loom__must_text(&path);
	free(folder);
	return path.at;
}

static int is_conf(const char *name)
{
	size_t n = strlen(name);
	return n > 4 && !strcmp(name + n - 4, ".ini");
}

static int by_name(const void *a, const void *b)
{
	const struct loom__shipped *x = a, *y = b;
	int deep = !!strchr(x->name, '/') - !!strchr(y->name, '/');
	return deep ? deep : strcmp(x->name, y->name);
}

void loom__confs_list(const struct loom__cli *cli, struct loom__confs *out)
{
	char *folder = loom__confs_folder(cli), *root[] = {folder, NULL};
	*out = (struct loom__confs){0};
	FTS *walk = folder ? fts_open(root, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
	for (FTSENT *e; walk && (e = fts_read(walk));) {
		if (e->fts_info != FTS_F || !is_conf(e->fts_name))
			continue;
		const char *name = e->fts_path + strlen(folder) + 1;
		out->at = loom__must(realloc(out->at, (out->n + 1) * sizeof(*out->at)));
		out->at[out->n++] = (struct loom__shipped){.name = loom__must(strndup(name, strlen(name) - 4)),
							   .path = loom__must(strdup(e->fts_path))};
	}
	if (walk)
		fts_close(walk);
	free(folder);
	if (out->n)
		qsort(out->at, out->n, sizeof(*out->at), by_name);
}

void loom__confs_free(struct loom__confs *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->at[i].name);
		free(c->at[i].path);
	}
	free(c->at);
	*c = (struct loom__confs){0};
}

int loom__conf_named(const struct loom__cli *cli, const char *name, char **path, struct loom_error *err)
{
	struct loom__confs all;
	struct stat st;
	*path = NULL;
	if (!stat(name, &st) ? !S_ISDIR(st.st_mode) : errno != ENOENT && errno != ENOTDIR) {
		*path = loom__must(strdup(name)); /* if stat() failed, the code that opens the file reports the error */
		return 0;
	}
	const char *brief = !strncmp(name, "conf/", 5) ? name + 5 : name;
	char *word = loom__must(strndup(brief, strlen(brief) - (is_conf(brief) ? 4 : 0)));
	struct loom__near near = {.word = word};
	loom__confs_list(cli, &all);
	for (size_t i = 0; i < all.n && !*path; i++) {
		const char *last = strrchr(all.at[i].name, '/');
		if (!strcmp(all.at[i].name, word))
			*path = loom__must(strdup(all.at[i].path));
		loom__nearer(&near, all.at[i].name);
		if (last)
			loom__nearer(&near, last + 1);
	}
	int rc = 0;
	if (!*path && is_folder(name))
		rc = LOOM__FAIL(err, LOOM_ENOENT, "'%s' is a folder, not a conf", name);
	else if (!*path)
		rc = LOOM__FAIL(err, LOOM_ENOENT, "no file or shipped conf '%s'%s%s%s%s see `gpuloom list "
				"confs`", name, LOOM__MEANT(near.name), near.name ? "" : ";");
	loom__confs_free(&all);
	free(word);
	return rc;
}

#define TAKES "takes "

void loom__conf_summary(const char *path, struct loom__text *shows, struct loom__text *takes)
{
	FILE *f = fopen(path, "re");
	char line[400];
	int whole = 0; /* 1: the sentence is complete */
	while (f && fgets(line, sizeof(line), f) && *line == ';') {
		const char *text = line + strspn(line, "; ");
		size_t n = strcspn(text, "\n"), end = 0;
		if (!strncmp(text, TAKES, strlen(TAKES)) && isdigit((unsigned char)text[strlen(TAKES)])) {
			loom__text_add(takes, "%.*s", (int)(n - strlen(TAKES)), text + strlen(TAKES));
			continue;
		}
		whole |= !strncmp(text, "gpuloom ", 8);
		if (whole)
			continue;
		while (end < n && !(strchr(".?", text[end]) && (text[end + 1] == ' ' || end + 1 == n)) &&
		       strncmp(text + end, ": gpuloom ", 10))
			end++;
		loom__text_add(shows, "%s%.*s", shows->length ? " " : "", (int)(end + (text[end] == '?')), text);
		whole = end < n;
	}
	if (f)
		fclose(f);
}
