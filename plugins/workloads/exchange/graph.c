/* SPDX-License-Identifier: Apache-2.0 */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

#include "lib/random.h"

int graph_add(struct graph_edges *e, uint64_t a, uint64_t b)
{
	if (a == b)
		return 0;
	if (e->n == e->room) {
		uint64_t room = e->room ? 2 * e->room : 1024;
		void *p = realloc(e->end, room * sizeof(*e->end));
		if (!p)
			return -1;
		e->end = p;
		e->room = room;
	}
	e->end[e->n][0] = (uint32_t)a;
	e->end[e->n++][1] = (uint32_t)b;
	return 0;
}

int graph_make(struct graph *g, uint64_t vertices, const struct graph_edges *e)
{
	*g = (struct graph){.vertices = vertices, .arcs = 2 * e->n};
	g->first = calloc(vertices + 1, sizeof(*g->first));
	g->arc = malloc((g->arcs + 1) * sizeof(*g->arc));
	if (!g->first || !g->arc)
		return -1;
	for (uint64_t i = 0; i < g->arcs; i++)
		g->first[e->end[i / 2][i % 2] + 1]++;
	for (uint64_t v = 0; v < vertices; v++)
		g->first[v + 1] += g->first[v];
	/* The loop moves first[v] to the end of v's arcs. The arcs of v + 1 start at this index, so memmove() restores
	 * `first`. */
	for (uint64_t i = 0; i < g->arcs; i++)
		g->arc[g->first[e->end[i / 2][i % 2]]++] = e->end[i / 2][1 - i % 2];
	memmove(g->first + 1, g->first, vertices * sizeof(*g->first));
	g->first[0] = 0;
	return 0;
}

/* R-MAT. For each edge and each bit of the vertex numbers, a quadrant of the adjacency matrix is drawn. The
 * probabilities are 57, 19, 19 and 5 per cent. */
int graph_rmat(struct graph *g, uint32_t scale, uint32_t degree, uint64_t seed)
{
	struct graph_edges e = {0};
	int rc = 0;
	*g = (struct graph){0};
	for (uint64_t i = 0; i < (uint64_t)degree << scale && !rc; i++) {
		uint64_t a = 0, b = 0;
		for (uint32_t bit = 0; bit < scale; bit++) {
			uint64_t draw = loom__random(&seed) % 100;
			a = 2 * a + (draw >= 76);
			b = 2 * b + ((draw >= 57 && draw < 76) || draw >= 95);
		}
		rc = graph_add(&e, a, b);
	}
	if (!rc)
		rc = graph_make(g, 1ull << scale, &e);
	free(e.end);
	return rc;
}

struct graph_found graph_search(const struct graph *g, uint32_t start, uint32_t *level, uint32_t *queue)
{
	struct graph_found f = {.reached = 1};
	memset(level, 0xff, g->vertices * sizeof(*level));
	level[start] = 0;
	queue[0] = start;
	for (uint64_t head = 0; head < f.reached; head++) {
		uint32_t v = queue[head];
		f.levels = level[v] + 1;
		f.followed += g->first[v + 1] - g->first[v];
		for (uint64_t a = g->first[v]; a < g->first[v + 1]; a++)
			if (level[g->arc[a]] == GRAPH_UNREACHED) {
				level[g->arc[a]] = level[v] + 1;
				queue[f.reached++] = g->arc[a];
			}
	}
	return f;
}
