/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/conf/conf.h"
#include "facts/must.h"
#include "facts/write.h"
#include "report/view/foreign.h"
#include "report/view/arena.h"
#include "stack/plan.h"
#include "sweep/journal.h"

/* A file of the command. Each name is NULL if the command does not use the file in this way. */
struct file {
	const char *read, *document; /* names under which it is read, and is read as a document */
	const char *written, *what;  /* the name under which it is written, and the option that gives this name */
};

struct loom__files {
	struct loom__arena arena;
	struct loom__names key;  /* of the files, from loom__file_key() */
	struct file *at;         /* [key.count] */
	struct loom__names read; /* names of inputs; a sweep reads its confs again for each configuration */
};

/* Returns the record of a file, or NULL if it is not a regular file and so cannot be destroyed. */
static struct file *find(const struct loom__cli *cli, const char *path)
{
	struct loom__files *f = cli->files;
	struct loom__text key = {0};
	size_t known = f->key.count, i = LOOM__NO_NAME;
	if (loom__file_key(path, &key))
		i = loom__names_add(&f->arena, &f->key, key.at);
	loom__text_free(&key);
	if (f->key.count > known) {
		f->at = loom__must(reallocarray(f->at, f->key.count, sizeof(*f->at)));
		f->at[known] = (struct file){0};
	}
	return i == LOOM__NO_NAME ? NULL : &f->at[i];
}

static int refuse_both(const struct file *f, struct loom_error *err)
{
	return LOOM__FAIL(err, LOOM_EINVAL, "%s '%s' would overwrite the input '%s': give the output another name",
			  f->what, f->written, f->read);
}

int loom__file_reads(const struct loom__cli *cli, const char *path, struct loom_error *err)
{
	struct loom__files *all = cli->files;
	if (loom__names_find(&all->read, path) != LOOM__NO_NAME)
		return 0;
	size_t name = loom__names_add(&all->arena, &all->read, path);
	struct file *f = find(cli, path);
	if (!f || f->read)
		return 0;
	f->read = all->read.name[name];
	return f->written ? refuse_both(f, err) : 0;
}

int loom__file_keeps_sweep(const char *what, const char *path, struct loom_error *err)
{
	char start[sizeof(LOOM__JOURNAL_BEGINNING)] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd < 0 ? 0 : pread(fd, start, sizeof(start) - 1, 0);
	if (fd >= 0)
		close(fd);
	if (n <= 0 || strcmp(start, LOOM__JOURNAL_BEGINNING))
		return 0;
	return LOOM__FAIL(err, LOOM_EINVAL, "%s '%s' would overwrite the samples of a sweep: give the output "
			"another name, or remove that file", what, path);
}

int loom__file_writes(const struct loom__cli *cli, const char *what, const char *path, enum loom__writes how,
		      struct loom_error *err)
{
	struct loom_error why;
	int rc = how == LOOM__WRITES_SWEEP ? 0 : loom__write_check(path, &why);
	if (rc)
		return LOOM__FAIL(err, rc, "%s: %s", what, why.text);
	struct file *f = loom__names_stdout(path) ? NULL : find(cli, path);
	if (!f)
		return 0;
	if (f->written && (strcmp(f->what, what) || strcmp(f->written, path)))
		return LOOM__FAIL(err, LOOM_EINVAL, "%s '%s' and %s '%s' are the same file: give one of them "
				"another name", f->what, f->written, what, path);
	f->what = f->what ? f->what : loom__arena_copy(&cli->files->arena, what);
	f->written = f->written ? f->written : loom__arena_copy(&cli->files->arena, path);
	if (f->read)
		return refuse_both(f, err);
	return how == LOOM__WRITES_RESULT ? loom__file_keeps_sweep(what, path, err) : 0;
}

/* ---- a plan -------------------------------------------------------------------------------------- */

struct option_files {
	const struct loom__cli *cli;
	struct loom_error *err;
};

/* Compares a file that an option of the conf names with the files of the command. Two options may name one file, as two
 * GPUs share a cache, so the file is not recorded. Only an option that a result must not set may write. */
static int check_option(void *arg, const struct loom__effective *e)
{
	const struct option_files *o = arg;
	const char *path = e->row && e->row->type == LOOM_OPT_PATH ? e->value : "";
	const struct file *f = *path ? find(o->cli, path) : NULL;
	if (f && f->written)
		return LOOM__FAIL(o->err, LOOM_EINVAL, "%s '%s' would overwrite '%s' of [%s] %s: give the output "
				"another name", f->what, f->written, path, e->section, e->key);
	if (f && f->read && e->row->flags & LOOM_OPT_TRUST)
		return LOOM__FAIL(o->err, LOOM_EINVAL, "[%s] %s = %s would overwrite an input of the command: give "
				"it another name", e->section, e->key, path);
	return 0;
}

int loom__files_of_plan(const struct loom__cli *cli, const struct loom__plan *plan, struct loom_error *err)
{
	struct option_files o = {cli, err};
	int rc = 0;
	for (size_t i = 0; !rc && i < plan->choices; i++)
		rc = loom__file_reads(cli, plan->choice[i].path, err);
	return rc ? rc : loom__config_each(plan->cfg, check_option, &o);
}

/* ---- inputs -------------------------------------------------------------------------------------- */

/* Returns the descriptor that a path names, as in "/dev/fd/63", or -1. */
static int descriptor_of(const char *path)
{
	int fd, n = 0;
	if (!strcmp(path, "/dev/stdin"))
		return 0;
	int found = sscanf(path, "/dev/fd/%9d%n", &fd, &n) == 1 || sscanf(path, "/proc/self/fd/%9d%n", &fd, &n) == 1;
	return found && !path[n] ? fd : -1;
}

/* Puts a file in memory with the content of a pipe in place of the pipe. Returns 0 or an errno. */
static int keep_pipe(int fd)
{
	char part[65536];
	size_t all = 0;
	ssize_t n = 0;
	int kept = memfd_create("gpuloom-input", MFD_CLOEXEC), number = kept < 0 ? errno : 0;
	while (!number && all <= LOOM__DOC_MOST && (n = read(fd, part, sizeof(part)))) {
		number = n < 0 && errno != EINTR ? errno : n < 0 ? 0 : loom__write_all(kept, part, (size_t)n);
		all += n < 0 ? 0 : (size_t)n;
	}
	if (!number && dup3(kept, fd, fd > 2 ? O_CLOEXEC : 0) < 0)
		number = errno;
	if (kept >= 0)
		close(kept);
	return number;
}

int loom__file_input(const char **word, struct loom_error *err)
{
	struct stat st;
	*word = strcmp(*word, "-") ? *word : "/dev/stdin";
	int fd = descriptor_of(*word);
	if (fd < 0 || fstat(fd, &st) || !(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) || !(errno = keep_pipe(fd)))
		return 0;
	return LOOM__FAIL(err, loom__errno_code(errno), "cannot read '%s': %m", *word);
}

int loom__file_again(const struct loom__cli *cli, const char *path, const char **before)
{
	struct file *f = find(cli, path);
	*before = f ? f->document : NULL;
	if (f && !f->document)
		f->document = loom__arena_copy(&cli->files->arena, path);
	return *before != NULL;
}

int loom__file_documents(const struct loom__cli *cli, struct loom__words *file, struct loom__doc *doc)
{
	struct loom_error err;
	const char *before;
	size_t n = 0, words = file->n;
	int rc = 0;
	for (size_t i = 0; i < words && !rc; i++) {
		const char *path = file->at[i];
		if (loom__file_again(cli, path, &before)) {
			loom__say_warning(cli, "'%s' and '%s' are the same file, which counts once", before, path);
			continue;
		}
		rc = loom__file_reads(cli, path, &err);
		file->at[n++] = path;
	}
	file->n = n;
	if (!rc) {
		char *converter = loom__shipped_file(cli, "python/gpuloom/foreign.py");
		rc = loom__docs_read(converter, file->at, n, doc, &err);
		free(converter);
	}
	if (rc)
		loom__say_error(cli, "%s", err.text);
	return rc == LOOM_ENOMEM || rc == LOOM_EIO ? LOOM_EXIT_FAILURE : rc ? LOOM_EXIT_USAGE : LOOM_EXIT_OK;
}

/* ---- a command ----------------------------------------------------------------------------------- */

void loom__files_begin(struct loom__cli *cli)
{
	struct stat st;
	int fd = fileno(cli->out);
	cli->files = loom__must(calloc(1, sizeof(*cli->files)));
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	char path[40];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	struct file *f = find(cli, path);
	if (f)
		*f = (struct file){.what = "standard output", .written = "-"};
}

void loom__files_end(struct loom__cli *cli)
{
	loom__arena_free(&cli->files->arena);
	free(cli->files->at);
	free(cli->files);
	cli->files = NULL;
}
