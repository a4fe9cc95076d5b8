/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

static void drop(struct loom__mistake *m)
{
	free(m->file);
	free(m->text);
}

/* Returns a place for another mistake, or NULL. If the list is full, an error takes the place of the last warning. */
static struct loom__mistake *room_for(struct loom__diag *d, int warning)
{
	if (d->count == LOOM__DIAG_MOST) {
		size_t i = d->count;
		while (!warning && i && !d->list[i - 1].warning)
			i--;
		if (warning || !i)
			return NULL;
		drop(&d->list[i - 1]);
		memmove(&d->list[i - 1], &d->list[i], (d->count - i) * sizeof(*d->list));
		d->count--;
	}
	struct loom__mistake *list = loom__more(d->list, d->count, sizeof(*list));
	if (!list) {
		d->failed = 1;
		return NULL;
	}
	d->list = list;
	return &list[d->count];
}

/* Returns whether the list has this mistake already. Two devices that share a section find the same mistakes. */
static int is_known(const struct loom__diag *d, const struct loom__mistake *m)
{
	for (size_t i = 0; i < d->count; i++) {
		const struct loom__mistake *k = &d->list[i];
		if (k->line == m->line && k->column == m->column && k->warning == m->warning && !k->file == !m->file &&
		    (!k->file || !strcmp(k->file, m->file)) && !strcmp(k->text, m->text))
			return 1;
	}
	return 0;
}

void loom__diag_add(struct loom__diag *d, int warning, const char *file, int line, int column, const char *fmt, ...)
{
	struct loom__mistake m = {.line = line, .column = column, .warning = warning};
	va_list args;
	va_start(args, fmt);
	if (vasprintf(&m.text, fmt, args) < 0)
		m.text = NULL;
	va_end(args);
	m.file = file ? strdup(file) : NULL;
	int whole = m.text && (m.file || !file);
	d->failed |= !whole;
	/* Messages quote user input, so they must be cleaned. */
	if (m.text)
		loom__clean(m.text, strlen(m.text) + 1);
	if (m.file)
		loom__clean(m.file, strlen(m.file) + 1);
	if (whole && is_known(d, &m)) {
		drop(&m);
		return;
	}
	if (warning)
		d->warnings++;
	else
		d->errors++;
	struct loom__mistake *at = whole ? room_for(d, warning) : NULL;
	if (at) {
		*at = m;
		d->count++;
	} else {
		drop(&m); /* d->errors or d->warnings has counted it, so loom__diag_text() can say how many are not shown */
	}
}

void loom__diag_free(struct loom__diag *d)
{
	for (size_t i = 0; i < d->count; i++)
		drop(&d->list[i]);
	free(d->list);
	*d = (struct loom__diag){0};
}

void loom__diag_text(const struct loom__diag *d, struct loom__text *out)
{
	for (size_t i = 0; i < d->count; i++) {
		const struct loom__mistake *m = &d->list[i];
		if (m->file)
			loom__text_add(out, "%s:", m->file);
		if (m->line)
			loom__text_add(out, "%d:", m->line);
		if (m->line && m->column)
			loom__text_add(out, "%d:", m->column);
		loom__text_add(out, "%s%s: %s\n", m->file ? " " : "", m->warning ? "warning" : "error", m->text);
	}
	if (d->failed)
		loom__text_add(out, "error: out of memory: some mistakes are not shown\n");
	size_t hidden = d->errors + d->warnings - d->count;
	if (hidden)
		loom__text_add(out, "%zu more not shown\n", hidden);
}

int loom__diag_fail(const struct loom__diag *d, int code, struct loom_error *err)
{
	struct loom__text text = {0};
	loom__diag_text(d, &text);
	if (!loom__text_ok(&text))
		code = LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	else if (!text.length)
		code = LOOM__FAIL(err, code, "the configuration is wrong");
	else
		code = LOOM__FAIL(err, code, "%.*s", (int)text.length - 1, text.at);
	loom__text_free(&text);
	size_t n = err ? strlen(err->text) : 0;
	if (n && err->text[n - 1] == '\n') /* if the text was cut, it may end in the newline of a mistake */
		err->text[n - 1] = 0;
	return code;
}
