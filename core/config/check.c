/* SPDX-License-Identifier: Apache-2.0 */
/* The second opinion: iniparser reads what the scanner has read, and they must agree.
 *
 * iniparser reports through one callback for the whole process. We leave it alone: it may be the
 * embedder's, and after the scanner's checks iniparser has nothing to complain about. */
#include <errno.h>
#include <iniparser/iniparser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/inside.h"

static void lower(char *copy, const char *text, struct loom__slice name)
{
	for (size_t i = 0; i < name.n; i++)
		copy[name.at - text + (ptrdiff_t)i] = (char)loom__lower(name.at[i]);
}

/* The text as iniparser gets it: includes are comments, for it has none, and names are in lower
 * case, for it folds them in the process's locale. NULL: out of memory. */
static char *plain_copy(const char *text, size_t length, const struct loom__items *items)
{
	char *copy = malloc(length + 1);
	if (!copy)
		return NULL;
	memcpy(copy, text, length);
	for (size_t i = 0; i < items->count; i++) {
		const struct loom__item *item = &items->at[i];
		if (item->kind == LOOM__ITEM_INCLUDE)
			copy[item->key.at - text] = ';';
		else if (item->kind == LOOM__ITEM_KEY)
			lower(copy, text, item->key);
		else
			lower(copy, text, item->section);
	}
	return copy;
}

/* Version 4.1 loads by path alone: the path is that of a file in memory. *loaded is what iniparser
 * returned. 0, or errno when the text could not be handed over. */
static int load(const char *copy, size_t length, dictionary **loaded)
{
	char path[40];
	int number = 0, fd = memfd_create("gpuloom-conf", MFD_CLOEXEC);
	if (fd < 0)
		return errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (size_t done = 0; done < length && !number;) {
		ssize_t n = write(fd, copy + done, length - done);
		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			number = errno;
	}
	/* Asked first, for iniparser would print its failure. */
	if (!number && access(path, R_OK))
		number = errno;
	if (!number)
		*loaded = iniparser_load(path);
	close(fd);
	return number;
}

/* iniparser's value of item's key, or NULL. */
static const char *second_value(const dictionary *d, const struct loom__item *item)
{
	char name[2 * LOOM__NAME_MOST + 2];
	snprintf(name, sizeof(name), "%.*s:%.*s", (int)item->section.n, item->section.at,
		 (int)item->key.n, item->key.at);
	for (char *c = name; *c; c++)
		*c = (char)loom__lower(*c);
	return dictionary_get(d, name, NULL);
}

static void compare(const char *file, const dictionary *d, const struct loom__items *items,
		    struct loom__diag *diag)
{
	ssize_t extra = 0;
	for (ssize_t i = 0; i < (ssize_t)d->size; i++)
		extra += d->key[i] && d->val[i];
	for (size_t i = 0; i < items->count; i++) {
		const struct loom__item *item = &items->at[i];
		if (item->kind != LOOM__ITEM_KEY)
			continue;
		const char *value = second_value(d, item);
		if (!value || strlen(value) != item->value.n ||
		    memcmp(value, item->value.at, item->value.n))
			loom__diag_add(diag, 0, file, item->line, item->value_column,
				       "internal error, please report: iniparser reads '%s', "
				       "gpuloom reads '%.*s'",
				       value ? value : "(nothing)", (int)item->value.n,
				       item->value.at);
		extra--;
	}
	if (extra > 0)
		loom__diag_add(diag, 0, file, 0, 0,
			       "internal error, please report: iniparser finds %zd keys more than "
			       "gpuloom",
			       extra);
}

int loom__cross_check(const char *file, const char *text, size_t length,
		      const struct loom__items *items, struct loom__diag *diag)
{
	size_t before = diag->errors;
	dictionary *d = NULL;
	char *copy = plain_copy(text, length, items);
	if (!copy)
		return LOOM_ENOMEM;
	int number = load(copy, length, &d);
	free(copy);
	errno = number;
	if (number)
		loom__diag_add(diag, 0, file, 0, 0, "cannot hand the text to iniparser: %m");
	else if (!d)
		loom__diag_add(diag, 0, file, 0, 0,
			       "internal error, please report: iniparser refuses what gpuloom "
			       "accepts");
	else
		compare(file, d, items, diag);
	iniparser_freedict(d);
	return diag->errors > before ? LOOM_EINVAL : 0;
}
