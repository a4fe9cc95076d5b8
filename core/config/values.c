/* SPDX-License-Identifier: Apache-2.0 */
/* Gets the values of a conf from iniparser. The places of the values are known from the scanner.
 *
 * iniparser gets only the lines that the scanner has accepted, and the name of each value is the number of its item.
 * The keys of the conf are not passed, because iniparser changes their case by the locale of the process. The error
 * callback of iniparser belongs to the whole process, and may belong to the embedding program, so it is not changed.
 * After the checks of the scanner, iniparser reports no error. */
#include <errno.h>
#include <iniparser/iniparser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/inside.h"
#include "lib/fd.h"

#define SECTION "values"
enum { PATH_BYTES = 40 };

static void write_lines(const struct loom__items *items, struct loom__text *out)
{
	loom__text_add(out, "[" SECTION "]\n");
	for (size_t i = 0; i < items->count; i++)
		if (items->at[i].kind != LOOM__ITEM_SECTION)
			loom__text_add(out, "%zu=%.*s\n", i, (int)items->at[i].value.n, items->at[i].value.at);
}

/* Loads the lines into a dictionary. iniparser 4.1 reads only files, so the lines are in a memory file with a path.
 * Returns 0, or the errno of the step that failed; `path` then has its name. */
static int load(const struct loom__text *lines, char path[PATH_BYTES], dictionary **loaded)
{
	snprintf(path, PATH_BYTES, "memfd_create");
	int number, fd = loom_fd(memfd_create("gpuloom-conf", MFD_CLOEXEC));
	if (fd < 0)
		return errno;
	snprintf(path, PATH_BYTES, "/proc/self/fd/%d", fd);
	number = loom__write_all(fd, lines->at, lines->length);
	errno = 0;
	/* Check the path first, because iniparser prints a message if it cannot open it. */
	if (!number && access(path, R_OK))
		number = errno;
	if (!number)
		*loaded = iniparser_load(path);
	if (!number && errno == ENOMEM) /* if memory ran out, the dictionary is incomplete */
		number = ENOMEM;
	close(fd);
	return number;
}

int loom__items_read(const char *file, struct loom__items *items, struct loom__diag *diag)
{
	struct loom__text lines = {0};
	char step[PATH_BYTES];
	write_lines(items, &lines);
	int ok = loom__text_ok(&lines), number = ok ? load(&lines, step, &items->values) : 0;
	loom__text_free(&lines);
	if (!ok || number == ENOMEM)
		return LOOM_ENOMEM; /* the caller frees items->values */
	if (number)
		loom__diag_add(diag, 0, file, 0, 0, "cannot pass the text to iniparser: %s: %s%s", step,
			       strerror(number), number == ENOENT ? "; mount /proc" : "");
	for (size_t i = 0; i < items->count; i++) {
		struct loom__item *item = &items->at[i];
		char name[40];
		snprintf(name, sizeof(name), SECTION ":%zu", i);
		if (item->kind == LOOM__ITEM_SECTION)
			continue;
		const char *value = items->values ? dictionary_get(items->values, name, NULL) : NULL;
		if (!value && !number)
			loom__diag_add(diag, 0, file, item->line, item->value_column,
				       "internal error, please report: iniparser parses no value here");
		item->value = (struct loom__slice){value ? value : "", value ? strlen(value) : 0};
	}
	return 0;
}

void loom__items_free(struct loom__items *items)
{
	iniparser_freedict(items->values);
	free(items->at);
	*items = (struct loom__items){0};
}
