/* SPDX-License-Identifier: Apache-2.0 */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

#include "lib/random.h"

/* Makes the arcs of n edges between vertices end[i][0] and end[i][1]. Returns 0, or -1 if there is no memory. */
static int make_arcs(struct graph *g, uint32_t (*end)[2], uint64_t n)
{
	g->arcs = 2 * n;
	g->first = calloc(g->vertices + 1, sizeof(*g->first));
	g->arc = malloc((g->arcs + 1) * sizeof(*g->arc));
	if (!g->first || !g->arc)
		return -1;
	for (uint64_t i = 0; i < g->arcs; i++)
		g->first[end[i / 2][i % 2] + 1]++;
	for (uint64_t v = 0; v < g->vertices; v++)
		g->first[v + 1] += g->first[v];
	/* The loop moves first[v] to the end of v's arcs. The arcs of v + 1 start at this index, so memmove() restores
	 * `first`. */
	for (uint64_t i = 0; i < g->arcs; i++)
		g->arc[g->first[end[i / 2][i % 2]]++] = end[i / 2][1 - i % 2];
	memmove(g->first + 1, g->first, g->vertices * sizeof(*g->first));
	g->first[0] = 0;
	return 0;
}

/* R-MAT. For each edge and each bit of the vertex numbers, a quadrant of the adjacency matrix is drawn. The
 * probabilities are 57, 19, 19 and 5 per cent. An edge from a vertex to itself is left out. */
int graph_rmat(struct graph *g, uint32_t scale, uint32_t degree, uint64_t seed)
{
	uint64_t edges = (uint64_t)degree << scale, n = 0;
	uint32_t(*end)[2] = malloc(edges * sizeof(*end));
	*g = (struct graph){.vertices = 1ull << scale};
	for (uint64_t i = 0; i < edges && end; i++) {
		uint64_t a = 0, b = 0;
		for (uint32_t bit = 0; bit < scale; bit++) {
			uint64_t draw = loom__random(&seed) % 100;
			a = 2 * a + (draw >= 76);
			b = 2 * b + ((draw >= 57 && draw < 76) || draw >= 95);
		}
		end[n][0] = (uint32_t)a;
		end[n][1] = (uint32_t)b;
		n += a != b;
	}
	int rc = end ? make_arcs(g, end, n) : -1;
	free(end);
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
