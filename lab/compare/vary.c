/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/vary.h"
#include "facts/must.h"

#include <stdlib.h>
#include <string.h>

/* Returns the next value of a list, without surrounding blanks. *at moves past the comma that ends the value. */
static char *next_value(const char **at)
{
	const char *s = *at;
	char *out = loom__must(malloc(strlen(s) + 1));
	size_t n = 0, keep = 0;
	int quoted = 0;
	for (; *s && (quoted || *s != ','); s++) {
		if (*s == '"') {
			quoted = !quoted;
			keep = n;
			continue;
		}
		if (*s == '\\' && (s[1] == ',' || s[1] == '"' || s[1] == '\\'))
			s++;
		else if (!quoted && (*s == ' ' || *s == '\t')) {
			if (n)
				out[n++] = *s; /* kept only if another character follows */
			continue;
		}
		out[n++] = *s;
		keep = n;
	}
	out[keep] = 0;
	*at = *s ? s + 1 : NULL;
	return out;
}

void loom__values_read(const char *text, char ***value, size_t *values)
{
	for (const char *at = text; at;) {
		*value = loom__must(realloc(*value, (*values + 1) * sizeof(**value)));
		(*value)[(*values)++] = next_value(&at);
	}
}

int loom__factor_parse(const char *text, struct loom__factor *out, struct loom_error *err)
{
	const char *equals = strchr(text, '='), *dot = equals ? memrchr(text, '.', (size_t)(equals - text)) : NULL;
	struct loom__factor f = {0};
	if (!dot || dot == text || dot + 1 == equals)
		return LOOM__FAIL(err, LOOM_EINVAL, "%s: not of the form section.key=value,value", text);
	f.key = loom__must(strndup(text, (size_t)(equals - text)));
	int rc = 0;
	loom__values_read(equals + 1, &f.value, &f.values);
	for (size_t i = 0; i < f.values && !rc; i++)
		for (size_t j = 0; j < i && !rc; j++)
			if (!strcmp(f.value[i], f.value[j]))
				rc = LOOM__FAIL(err, LOOM_EINVAL, "%s: the same value twice", text);
	if (rc)
		loom__factor_free(&f);
	else
		*out = f;
	return rc;
}

int loom__factor_add(const char *text, struct loom__factor *list, size_t *n, struct loom_error *err)
{
	struct loom_error why;
	int rc = loom__factor_parse(text, &list[*n], &why);
	if (rc)
		return LOOM__FAIL(err, rc, "--vary %s", why.text);
	const char *key = list[(*n)++].key;
	for (size_t i = 0; i + 1 < *n; i++)
		if (loom__same(list[i].key, key))
			return LOOM__FAIL(err, LOOM_EINVAL, "--vary %s twice: give all its values at once", key);
	return 0;
}

void loom__factor_free(struct loom__factor *f)
{
	for (size_t i = 0; i < f->values; i++) {
		for (char **set = f->sets ? f->sets[i] : NULL; set && *set; set++)
			free(*set);
		if (f->sets)
			free(f->sets[i]);
		free(f->value[i]);
	}
	free(f->sets);
	free(f->from);
	free(f->value);
	free(f->key);
	*f = (struct loom__factor){0};
}

size_t loom__factor_configs(const struct loom__factor *f, size_t n)
{
	size_t configs = 1;
	for (size_t i = 0; i < n; i++)
		if (__builtin_mul_overflow(configs, f[i].values, &configs))
			return SIZE_MAX;
	return configs;
}

void loom__factor_pick(const struct loom__factor *f, size_t n, size_t config, size_t *pick)
{
	while (n-- > 0) {
		pick[n] = config % f[n].values;
		config /= f[n].values;
	}
}
