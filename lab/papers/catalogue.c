/* SPDX-License-Identifier: Apache-2.0 */
/* Reads results/papers.ini: the papers, and for each figure or table without a conf the reason. Reads kept results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts/must.h"
#include "papers/papers.h"

struct reader {
	struct loom__catalogue *c;
	struct loom__diag *diag;
};

#define MISTAKE(r, e, column, ...) loom__diag_add((r)->diag, 0, (e)->file, (e)->line, (column), __VA_ARGS__)

size_t loom__catalogue_find(const struct loom__catalogue *c, const char *id)
{
	for (size_t i = 0; i < c->papers; i++)
		if (!strcmp(c->paper[i].id, id))
			return i;
	return SIZE_MAX;
}

static struct loom__paper *paper_of(struct reader *r, const char *id)
{
	struct loom__catalogue *c = r->c;
	size_t i = loom__catalogue_find(c, id);
	if (i != SIZE_MAX)
		return &c->paper[i];
	c->paper = loom__must(realloc(c->paper, (c->papers + 1) * sizeof(*c->paper)));
	c->paper[c->papers] = (struct loom__paper){.id = id, .title = "", .authors = "", .where = "", .url = ""};
	return &c->paper[c->papers++];
}

/* Reads an entry [PAPER] KEY = VALUE. */
static void read_paper(struct reader *r, const struct loom__entry *e)
{
	static const char *const key[] = {"title", "authors", "where", "url"};
	struct loom__paper *p = paper_of(r, e->section);
	const char **text[] = {&p->title, &p->authors, &p->where, &p->url};
	size_t i = 0;
	while (i < LOOM__COUNT(key) && strcmp(e->key, key[i]))
		i++;
	if (i < LOOM__COUNT(text))
		*text[i] = e->value;
	else
		MISTAKE(r, e, e->column, "unknown key '%s' in [%s]%s%s%s", e->spelling, e->section,
			LOOM__MEANT(loom__nearest(e->key, key, LOOM__COUNT(key))));
}

/* Reads an entry [PAPER.figure] NUMBER = no experiment: TEXT | not here: TEXT. For a table, the section is
 * [PAPER.table]. */
static void read_reason(struct reader *r, const struct loom__entry *e, size_t paper, const char *kind)
{
	static const char *const begin[] = {"no experiment: ", "not here: "};
	struct loom__catalogue *c = r->c;
	int table = !strcmp(kind, "table");
	size_t i = 0;
	if (!table && strcmp(kind, "figure")) {
		MISTAKE(r, e, e->column, "[%s]: write [%s.figure] or [%s.table]", e->section, c->paper[paper].id,
			c->paper[paper].id);
		return;
	}
	while (i < LOOM__COUNT(begin) && strncmp(e->value, begin[i], strlen(begin[i])))
		i++;
	if (i == LOOM__COUNT(begin))
		MISTAKE(r, e, e->value_column, "'%.60s' does not begin with 'no experiment: ' or 'not here: '",
			e->value);
	c->reason = loom__must(realloc(c->reason, (c->reasons + 1) * sizeof(*c->reason)));
	c->reason[c->reasons++] = (struct loom__reason){
	    .of = c->paper[paper].id, .number = e->key, .text = e->value, .table = table, .entry = e};
}

static int read_entry(void *arg, const struct loom__entry *e)
{
	struct reader *r = arg;
	const char *dot = strchr(e->section, '.');
	char id[LOOM__NAME_MOST + 1];
	if (e->source != LOOM_FROM_FILE)
		return 0;
	if (!dot) {
		read_paper(r, e);
		return 0;
	}
	snprintf(id, sizeof(id), "%.*s", (int)(dot - e->section), e->section);
	size_t paper = loom__catalogue_find(r->c, id);
	if (paper == SIZE_MAX)
		MISTAKE(r, e, e->column, "[%s]: there is no [%s] before it", e->section, id);
	else
		read_reason(r, e, paper, dot + 1);
	return 0;
}

int loom__catalogue_read(const char *path, struct loom__catalogue *out, struct loom__diag *diag)
{
	struct reader r = {.c = out, .diag = diag};
	size_t before = diag->errors;
	*out = (struct loom__catalogue){0};
	if (loom_config_create(&out->cfg, NULL))
		loom__must(NULL);
	loom__config_read(out->cfg, path, diag);
	loom__config_entries(out->cfg, read_entry, &r);
	if (diag->errors == before)
		return 0;
	loom__catalogue_free(out);
	return LOOM_EINVAL;
}

void loom__catalogue_free(struct loom__catalogue *c)
{
	loom_config_destroy(c->cfg);
	free(c->paper);
	free(c->reason);
	*c = (struct loom__catalogue){0};
}

int loom__kept_read(const char *path, struct loom__doc *doc, struct loom_error *err)
{
	int rc = loom__doc_read(path, doc, err);
	if (!rc && doc->kind != LOOM__DOC_SWEEP) {
		loom__doc_free(doc);
		rc = LOOM__FAIL(err, LOOM_EINVAL, "'%s' is not the file of a sweep", path);
	}
	return rc;
}
