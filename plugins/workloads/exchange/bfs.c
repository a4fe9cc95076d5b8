/* SPDX-License-Identifier: Apache-2.0 */
/* workload_bfs: host half. */
#include "bfs.dev.h"

#include <stdlib.h>
#include <string.h>

#include "bfs_graph.h"
#include "exchange.h"

static const char *const graph_choices[] = {"rmat", "packages", NULL};

static const struct loom_opt rows[] = {
	EX_ROWS("12", 4, 22, "graph = rmat: 2^size vertices. Iterations follow from the graph: one per level.",
		"1"),
	{.name = "graph", .dflt = "rmat", .type = LOOM_OPT_ENUM, .choices = graph_choices,
	 .offset = offsetof(struct ex_opts, extra), .size = sizeof(uint32_t),
	 .help = "rmat: a random graph with few large vertices. packages: the Debian packages of this machine "
		 "and their dependencies."},
	LOOM_OPT(struct ex_opts, path, LOOM_OPT_PATH, "/var/lib/dpkg/status",
		 "With graph = packages: a file in the format of dpkg's status file."),
	{.name = NULL},
};

enum { MOST_WORKERS = 1024 };

struct bfs {
	struct bfs_graph g;
	uint32_t *want, levels;
	uint64_t *first, most;
};

static int reference(struct ex *x, struct bfs *s)
{
	uint32_t *queue = ex_room(x, s->g.n + 1ull, 4), head = 0, tail = 0;
	s->want = ex_room(x, s->g.n + 1ull, 4);
	if (!queue || !s->want)
		return -1;
	memset(s->want, 0xff, 4ull * s->g.n);
	s->want[0] = 0;
	queue[tail++] = 0;
	while (head < tail) {
		uint32_t v = queue[head++];
		s->levels = s->want[v];
		for (uint32_t e = s->g.row[v]; e < s->g.row[v + 1]; e++)
			if (s->want[s->g.column[e]] == UINT32_MAX) {
				s->want[s->g.column[e]] = s->want[v] + 1;
				queue[tail++] = s->g.column[e];
			}
	}
	return 0;
}

/* The most edges from one worker's vertices to another's: no bucket can get more in one level. */
static int find_most(struct ex *x, struct bfs *s, uint32_t workers)
{
	uint64_t *edges = ex_room(x, workers, 8);
	if (!edges)
		return -1;
	s->most = 1;
	for (uint32_t w = 0; w < workers; w++) {
		memset(edges, 0, 8ull * workers);
		for (uint64_t v = s->first[w]; v < s->first[w + 1]; v++)
			for (uint32_t e = s->g.row[v]; e < s->g.row[v + 1]; e++) {
				uint32_t to = (uint32_t)((uint64_t)s->g.column[e] * workers / s->g.n);
				while (s->first[to] > s->g.column[e])
					to--;
				while (s->first[to + 1] <= s->g.column[e])
					to++;
				s->most = ++edges[to] > s->most ? edges[to] : s->most;
			}
	}
	return 0;
}

static int load(struct ex *x, struct bfs *s)
{
	int rc = x->o->extra[0] ? bfs_packages(&s->g, x->o->path) : bfs_rmat(&s->g, x->o->size, x->seed);
	x->room[x->rooms++] = s->g.row;
	x->room[x->rooms++] = s->g.column;
	if (rc == -2 || rc == -3)
		return LOOM_FAIL(x->host, x->err, LOOM_EUNAVAIL,
				 "workload_bfs: %s %s: name a dpkg status file with path =, or say graph = rmat",
				 x->o->path, rc == -2 ? "cannot be read" : "has no packages");
	return rc ? EX_NO_ROOM : 0;
}

static int plan(struct ex *x)
{
	struct bfs *s = x->own;
	uint32_t workers = x->layout->workers, words = (workers + 63) / 64;
	if (workers > MOST_WORKERS)
		return LOOM_FAIL(x->host, x->err, LOOM_EINVAL, "workload_bfs: at most %d workers", MOST_WORKERS);
	int rc = load(x, s);
	if (rc)
		return rc;
	s->first = ex_room(x, workers + 1ull, 8);
	if (!s->first || reference(x, s))
		return EX_NO_ROOM;
	for (uint32_t w = 0; w <= workers; w++)
		s->first[w] = ex_share(s->g.n, w, workers);
	if (find_most(x, s, workers))
		return EX_NO_ROOM;
	for (uint32_t d = 0; d < x->layout->devices; d++)
		ex_channel(x, LOOM_ANY_DEVICE, d, x->layout->device[d].workers * workers, 1, 4 * (s->most + 2));
	x->head.param[BFS_GATHER] =
		ex_channel(x, LOOM_ANY_DEVICE, 0, workers, 1, 8 * (words + 1));
	for (uint32_t d = 0; d < x->layout->devices; d++)
		ex_channel(x, 0, d, 1, x->layout->device[d].workers, 8 * ((uint64_t)workers * words + 1));
	x->head.param[BFS_N] = s->g.n;
	x->head.param[BFS_ROOM] = s->most;
	x->head.param[BFS_WORDS] = words;
	ex_array(x, BFS_ROWS, 4 * (s->g.n + 1ull));
	ex_array(x, BFS_COLUMNS, 4ull * s->g.row[s->g.n] + 4);
	ex_array(x, BFS_LEVEL, 4ull * s->g.n);
	ex_array(x, BFS_FRONTIER, 4ull * s->g.n);
	ex_array(x, BFS_NEXT, 4ull * s->g.n);
	ex_array(x, BFS_BUCKETS, 4ull * workers * workers * (s->most + 2));
	ex_array(x, BFS_MANIFEST, 8ull * workers * (words + 1) + 8ull * (workers * words + 1));
	ex_array(x, BFS_FIRST, 8 * (workers + 1ull));
	ex_array(x, BFS_USED, 8ull * workers * workers);
	ex_array(x, BFS_PLACES, workers * sizeof(struct ex_place));
	return 0;
}

static void fill(struct ex *x, struct ex_head *h)
{
	const struct bfs *s = x->own;
	uint32_t workers = x->layout->workers, *bucket = ex_of(h, BFS_BUCKETS);
	memcpy(ex_of(h, BFS_ROWS), s->g.row, 4 * (s->g.n + 1ull));
	memcpy(ex_of(h, BFS_COLUMNS), s->g.column, 4ull * s->g.row[s->g.n]);
	memset(ex_of(h, BFS_LEVEL), 0xff, 4ull * s->g.n);
	memset(ex_of(h, BFS_USED), 0, 8ull * workers * workers);
	memcpy(ex_of(h, BFS_FIRST), s->first, 8 * (workers + 1ull));
	for (uint64_t i = 0; i < (uint64_t)workers * workers; i++)
		bucket[i * (s->most + 2)] = 0;
	ex_places(h, BFS_PLACES, x->layout);
}

static int check(struct ex *x, struct ex_head *h, struct loom_error *err)
{
	const struct bfs *s = x->own;
	const uint32_t *got = ex_of(h, BFS_LEVEL);
	for (uint32_t v = 0; v < s->g.n; v++)
		if (got[v] != s->want[v])
			return EX_WRONG(x, err, "vertex %u: expected level %d, found %d", v,
					(int)s->want[v], (int)got[v]);
	x->host->metric(x->host, x->report, "levels", "", LOOM_BETTER_NONE, s->levels);
	x->host->metric(x->host, x->report, "vertices", "", LOOM_BETTER_NONE, s->g.n);
	return 0;
}

static const struct ex_app app = {.name = "bfs", .bytes = sizeof(struct bfs), .plan = plan, .fill = fill,
				  .check = check};

EX_PLUGIN(bfs, app, rows, "vertices", "G_BFS: breadth-first search (probabilistic, random)", "")
