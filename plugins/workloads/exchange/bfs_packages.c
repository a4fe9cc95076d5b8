/* SPDX-License-Identifier: Apache-2.0 */
#include "bfs_packages.h"

#include <ctype.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/io.h"

struct name {
	char *text;
	uint32_t number;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

/* Stores the number of the package with name `text` in *number. A new name gets the next number, so a package that
 * occurs only as a dependency becomes a vertex, too. Returns -1 if out of memory. */
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

/* Parses a list such as "a (>= 1), b | c". Every name in it is an edge from package `from`. */
static int depend(void **tree, const char *list, uint32_t from, uint32_t *packages, struct graph_edges *e)
{
	int rc = 0;
	while (*list && !rc) {
		list += strspn(list, " ,|\n");
		size_t length = strcspn(list, " ,|(:\n");
		uint32_t to;
		if (length) {
			rc = number_of(tree, list, length, packages, &to);
			if (!rc)
				rc = graph_add(e, from, to);
		}
		list += length;
		while (*list && *list != ',' && *list != '|')
			list++;
	}
	return rc;
}

int bfs_packages(struct graph *g, const char *path, const char **why)
{
	FILE *f = loom__fopen_input(path, why);
	struct graph_edges e = {0};
	void *tree = NULL;
	char *line = NULL;
	size_t size = 0;
	uint32_t package = 0, packages = 0;
	int rc = 0;
	*g = (struct graph){0};
	if (!f)
		return -2;
	while (!rc && getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "Package: ", 9))
			rc = number_of(&tree, line + 9, strlen(line + 9), &packages, &package);
		else if (!strncmp(line, "Depends: ", 9))
			rc = depend(&tree, line + 9, package, &packages, &e);
		else if (!strncmp(line, "Pre-Depends: ", 13))
			rc = depend(&tree, line + 13, package, &packages, &e);
	}
	fclose(f);
	free(line);
	tdestroy(tree, free_name);
	if (!rc)
		rc = packages ? graph_make(g, packages, &e) : -3;
	free(e.end);
	return rc;
}
