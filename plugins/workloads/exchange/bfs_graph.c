/* SPDX-License-Identifier: Apache-2.0 */
#include "bfs_graph.h"

#include <ctype.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct edges {
	uint32_t (*end)[2];
	uint64_t n, room;
};

static int add(struct edges *e, uint32_t a, uint32_t b)
{
	if (e->n == e->room) {
		uint64_t room = e->room ? 2 * e->room : 1024;
		void *p = realloc(e->end, room * sizeof(*e->end));
		if (!p)
			return -1;
		e->end = p;
		e->room = room;
	}
	e->end[e->n][0] = a;
	e->end[e->n++][1] = b;
	return 0;
}

/* Both directions of every edge, in compressed rows. */
static int compress(struct bfs_graph *g, const struct edges *e)
{
	g->row = calloc(g->n + 2ull, 4);
	g->column = malloc(8 * e->n + 4);
	if (!g->row || !g->column)
		return -1;
	for (uint64_t i = 0; i < e->n; i++) {
		g->row[e->end[i][0] + 1]++;
		g->row[e->end[i][1] + 1]++;
	}
	for (uint32_t v = 0; v < g->n; v++)
		g->row[v + 1] += g->row[v];
	uint32_t *at = malloc(4 * (g->n + 1ull));
	if (!at)
		return -1;
	memcpy(at, g->row, 4 * (g->n + 1ull));
	for (uint64_t i = 0; i < e->n; i++) {
		g->column[at[e->end[i][0]]++] = e->end[i][1];
		g->column[at[e->end[i][1]]++] = e->end[i][0];
	}
	free(at);
	return 0;
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x >> 12;
	*x ^= *x << 25;
	*x ^= *x >> 27;
	return *x * 0x2545f4914f6cdd1dull;
}

/* Each edge falls through the quadrants of the matrix with 57, 19, 19 and 5 per cent. */
int bfs_rmat(struct bfs_graph *g, uint32_t scale, uint64_t seed)
{
	struct edges e = {0};
	int rc = 0;
	*g = (struct bfs_graph){.n = 1u << scale};
	for (uint64_t i = 0; i < 8ull * g->n && !rc; i++) {
		uint32_t a = 0, b = 0;
		for (uint32_t bit = 0; bit < scale; bit++) {
			uint32_t p = (uint32_t)(next_random(&seed) >> 32) % 100;
			a = 2 * a + (p >= 76);
			b = 2 * b + ((p >= 57 && p < 76) || p >= 95);
		}
		rc = add(&e, a, b);
	}
	if (!rc)
		rc = compress(g, &e);
	free(e.end);
	return rc;
}

/* ---- packages */

struct name {
	char *text;
	uint32_t number;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

/* The number of a package; a name that is only depended on becomes a vertex too. */
static int number_of(void **tree, const char *text, size_t length, uint32_t *count, uint32_t *number)
{
	struct name *one = malloc(sizeof(*one));
	char *copy = strndup(text, length);
	if (!one || !copy) {
		free(one);
		free(copy);
		return -1;
	}
	*one = (struct name){copy, *count};
	struct name **found = tsearch(one, tree, by_text);
	if (!found)
		return -1;
	*number = (*found)->number;
	if (*found == one) {
		++*count;
		return 0;
	}
	free(copy);
	free(one);
	return 0;
}

static void free_name(void *p)
{
	struct name *one = p;
	free(one->text);
	free(one);
}

/* "a (>= 1), b | c": every name is an edge. */
static int depend(void **tree, const char *list, uint32_t from, struct bfs_graph *g, struct edges *e)
{
	int rc = 0;
	while (*list && !rc) {
		list += strspn(list, " ,|\n");
		size_t length = strcspn(list, " ,|(:\n");
		uint32_t to;
		if (length) {
			rc = number_of(tree, list, length, &g->n, &to);
			if (!rc && to != from)
				rc = add(e, from, to);
		}
		list += length;
		while (*list && *list != ',' && *list != '|')
			list++;
	}
	return rc;
}

int bfs_packages(struct bfs_graph *g, const char *path)
{
	FILE *f = fopen(path, "re");
	struct edges e = {0};
	void *tree = NULL;
	char *line = NULL;
	size_t size = 0;
	uint32_t package = 0;
	int rc = 0;
	*g = (struct bfs_graph){0};
	if (!f)
		return -2;
	while (!rc && getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "Package: ", 9))
			rc = number_of(&tree, line + 9, strlen(line + 9), &g->n, &package);
		else if (!strncmp(line, "Depends: ", 9))
			rc = depend(&tree, line + 9, package, g, &e);
		else if (!strncmp(line, "Pre-Depends: ", 13))
			rc = depend(&tree, line + 13, package, g, &e);
	}
	fclose(f);
	free(line);
	tdestroy(tree, free_name);
	if (!rc)
		rc = g->n ? compress(g, &e) : -3;
	free(e.end);
	return rc;
}
