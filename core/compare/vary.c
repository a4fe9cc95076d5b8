/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/vary.h"

#include <stdlib.h>
#include <string.h>

static int add_value(struct loom__factor *f, char *value)
{
	char **list = value ? realloc(f->value, (f->values + 1) * sizeof(*list)) : NULL;
	if (!list) {
		free(value);
		return LOOM_ENOMEM;
	}
	f->value = list;
	list[f->values++] = value;
	return 0;
}

/* The next value, with its blanks at both ends cut; *at moves behind its comma. NULL: out of memory. */
static char *next_value(const char **at)
{
	const char *s = *at;
	char *out = malloc(strlen(s) + 1);
	size_t n = 0, keep = 0;
	int quoted = 0;
	for (; out && *s && (quoted || *s != ','); s++) {
		if (*s == '"') {
			quoted = !quoted;
			keep = n;
			continue;
		}
		if (*s == '\\' && (s[1] == ',' || s[1] == '"' || s[1] == '\\'))
			s++;
		else if (!quoted && (*s == ' ' || *s == '\t')) {
			if (n)
				out[n++] = *s; /* cut below when nothing follows */
			continue;
		}
		out[n++] = *s;
		keep = n;
	}
	if (out)
		out[keep] = 0;
	*at = *s ? s + 1 : NULL;
	return out;
}

int loom__factor_parse(const char *text, struct loom__factor *out, struct loom_error *err)
{
	const char *equals = strchr(text, '='), *dot = equals ? memrchr(text, '.', (size_t)(equals - text)) : NULL;
	struct loom__factor f = {0};
	if (!dot || dot == text || dot + 1 == equals)
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "--vary %s: not of the form section.key=value,value", text);
	f.key = strndup(text, (size_t)(equals - text));
	int rc = f.key ? 0 : LOOM_ENOMEM;
	for (const char *at = equals + 1; !rc && at;)
		rc = add_value(&f, next_value(&at));
	for (size_t i = 0; !rc && i < f.values; i++)
		for (size_t j = 0; j < i; j++)
			if (!strcmp(f.value[i], f.value[j]))
				rc = LOOM_EINVAL;
	if (rc) {
		if (rc == LOOM_ENOMEM)
			LOOM__FAIL(err, rc, "out of memory");
		else
			LOOM__FAIL(err, rc, "--vary %s: the same value twice", text);
		loom__factor_free(&f);
		return rc;
	}
	*out = f;
	return 0;
}

int loom__factor_add(const char *text, struct loom__factor *list, size_t *n, struct loom_error *err)
{
	int rc = loom__factor_parse(text, &list[*n], err);
	if (rc)
		return rc;
	const char *key = list[(*n)++].key;
	for (size_t i = 0; i + 1 < *n; i++)
		if (loom__same(list[i].key, key))
			return LOOM__FAIL(err, LOOM_EINVAL, "--vary %s twice: give all its values at once", key);
	return 0;
}

void loom__factor_free(struct loom__factor *f)
{
	for (size_t i = 0; i < f->values; i++)
		free(f->value[i]);
	free(f->value);
	free(f->key);
	*f = (struct loom__factor){0};
}

size_t loom__factor_cells(const struct loom__factor *f, size_t n)
{
	size_t cells = 1;
	for (size_t i = 0; i < n; i++)
		if (__builtin_mul_overflow(cells, f[i].values, &cells))
			return SIZE_MAX;
	return cells;
}

void loom__factor_pick(const struct loom__factor *f, size_t n, size_t cell, size_t *pick)
{
	while (n-- > 0) {
		pick[n] = cell % f[n].values;
		cell /= f[n].values;
	}
}
