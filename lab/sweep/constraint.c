/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep/design.h"
#include "facts/must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies the text before the first character of `stops` that is not in quotes, without the quotes. Returns the position
 * of this character of `stops`. `out` has room for all of `s`. */
static const char *take(const char *s, const char *stops, char *out)
{
	int quoted = 0;
	size_t n = 0;
	while (*s == ' ' && !quoted)
		s++;
	for (; *s && (quoted || !strchr(stops, *s)); s++) {
		/* A colon ends the terms only if a blank or nothing follows, because cpu:0 is a value. */
		if (!quoted && *s == ':' && (s[1] == ' ' || !s[1]))
			break;
		if (*s == '"')
			quoted = !quoted;
		else
			out[n++] = *s;
	}
	while (n && out[n - 1] == ' ')
		n--;
	out[n] = 0;
	return s;
}

static int find_factor(const char *key, const struct loom__factor *factor, size_t factors,
		       size_t *at, const char *text, struct loom_error *err)
{
	struct loom__near near = {.word = key};
	size_t n = strlen(key), ends = 0, end = 0;
	for (*at = 0; *at < factors; (*at)++) {
		size_t whole = strlen(factor[*at].key);
		if (loom__same(factor[*at].key, key))
			return 0;
		if (whole > n && factor[*at].key[whole - n - 1] == '.' && loom__same(factor[*at].key + whole - n, key))
			ends++, end = *at;
		loom__nearer(&near, factor[*at].key);
	}
	*at = end;
	return ends == 1 ? 0
			 : LOOM__FAIL(err, LOOM_EINVAL, "constraint '%.200s': '%.80s' is %s%s%s%s", text, key,
				      ends ? "the end of several options that are varied" : "not varied",
				      LOOM__MEANT(near.name));
}

static int add_value(struct loom__constraint_term *t, const struct loom__factor *f,
		     const char *value, const char *text, struct loom_error *err)
{
	for (size_t i = 0; i < f->values; i++)
		if (!strcmp(f->value[i], value)) {
			t->match[i] = 1;
			return 0;
		}
	const char *near = loom__nearest(value, (const char *const *)f->value, f->values);
	return near ? LOOM__FAIL(err, LOOM_EINVAL,
				 "constraint '%.200s': %s has no value '%.80s'; did you mean "
				 "'%.80s'?",
				 text, f->key, value, near)
		    : LOOM__FAIL(err, LOOM_EINVAL, "constraint '%.200s': %s has no value '%.80s'", text, f->key,
				value);
}

/* Parses one term "key=a|b", and moves *at to the character after it. `word` has room for the whole text. some: 1: one
 * of the values suffices. */
static int parse_term(const char **at, const struct loom__factor *factor, size_t factors, int some,
		      char *word, struct loom__constraint *out, struct loom_error *err)
{
	struct loom__constraint_term *t = &out->term[out->terms];
	const char *s = take(*at, "=,|", word);
	if (*s != '=')
		return LOOM__FAIL(err, LOOM_EINVAL, "constraint '%.200s': not of the form 'key=value,key=value: "
				"reason'", out->text);
	int rc = find_factor(word, factor, factors, &t->factor, out->text, err);
	if (rc)
		return rc;
	t->match = loom__must(calloc(factor[t->factor].values + 1, 1));
	out->terms++;
	do {
		s = take(s + 1, ",|", word);
		int missing = add_value(t, &factor[t->factor], word, out->text, err);
		some += some && !missing;
		rc = some ? rc : missing;
	} while (!rc && *s == '|');
	*at = s;
	return some == 1 ? LOOM_EINVAL : rc;
}

int loom__constraint_parse(const char *text, const char *name, int only, const struct loom__factor *factor,
			   size_t factors, struct loom__constraint *out, struct loom_error *err)
{
	size_t length = strlen(text);
	char *word = loom__must(malloc(length + 1));
	*out = (struct loom__constraint){
	    .text = loom__must(strdup(text)), .only = only, .term = loom__must(calloc(length + 1, sizeof(*out->term)))};
	int rc = 0;
	const char *at = text;
	while (!rc) {
		rc = parse_term(&at, factor, factors, name && !*name, word, out, err);
		if (*at != ',')
			break;
		at++;
	}
	if (!rc) {
		at += strspn(at, ": ");
		struct loom__text reason = {0};
		loom__text_add(&reason, "%s%s",
			       *at || name ? ""
			       : only	   ? "--only "
					   : "--skip ",
			       *at    ? at
			       : name ? name
				      : text);
		out->reason = (char *)(uintptr_t)loom__must_text(&reason);
	}
	free(word);
	if (rc)
		loom__constraint_free(out);
	return rc;
}

void loom__constraint_free(struct loom__constraint *c)
{
	for (size_t i = 0; i < c->terms; i++)
		free(c->term[i].match);
	free(c->term);
	free(c->text);
	free(c->reason);
	*c = (struct loom__constraint){0};
}

const struct loom__constraint *loom__constraint_of(const struct loom__constraint *list, size_t n,
						   const size_t *pick)
{
	for (size_t i = 0; i < n; i++) {
		int all = 1;
		for (size_t t = 0; t < list[i].terms; t++)
			all = all && list[i].term[t].match[pick[list[i].term[t].factor]];
		if (all != list[i].only)
			return &list[i];
	}
	return NULL;
}
