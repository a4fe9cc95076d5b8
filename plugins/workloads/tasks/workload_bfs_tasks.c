/* SPDX-License-Identifier: Apache-2.0 */
/* workload_bfs_tasks: breadth-first search in a generated graph. Host half. */
#include "workload_bfs_tasks.dev.h"

#include <stdlib.h>

#include "../../shared/workload/graph.h"
#include "../../shared/workload/host.h"
#include "lib/align.h"
#include "lib/random.h"

enum { GRAPH_RMAT, GRAPH_GRID };
static const char *const graphs[] = {"rmat", "grid", NULL};

struct bfs_opts {
	uint32_t graph, scale, degree, chunk, heavy;
	uint64_t seed;
};

static const struct loom_opt bfs_rows[] = {
	LOOM_OPT(struct bfs_opts, graph, LOOM_OPT_ENUM, "rmat",
			 "rmat: random as in Graph500 (0.57, 0.19, 0.19), few levels, a few vertices with most arcs; "
			 "the search begins at the largest. grid: a square of vertices, each with up to four "
			 "neighbours, many levels; it begins at a corner.", .choices = graphs),
	LOOM_OPT(struct bfs_opts, scale, LOOM_OPT_U32, "16",
			 "2^scale vertices; a grid has 2^(scale / 2) on a side.", .min = 1, .max = 30),
	LOOM_OPT(struct bfs_opts, degree, LOOM_OPT_U32, "16",
			 "graph = rmat: edges per vertex; each is two arcs.", .min = 1, .max = 1024),
	LOOM_OPT(struct bfs_opts, seed, LOOM_OPT_U64, "1", "graph = rmat: seed of the graph."),
	LOOM_OPT(struct bfs_opts, chunk, LOOM_OPT_U32, "64",
			 "Most vertices that a task visits.", .min = 1, .max = 1 << 20),
	LOOM_OPT(struct bfs_opts, heavy, LOOM_OPT_U32, "4096",
			 "Most arcs of a vertex in one task; further ones are tasks of high priority, of at most as "
			 "many each.", .min = 1, .max = 1 << 30),
	{.name = NULL},
};

struct bfs_job {
	struct workload base;
	struct graph graph; /* generated in need() */
	struct graph_found found;
	uint32_t *level, start; /* the expected levels */
};

static const struct bfs_opts *bfs_opts(const struct bfs_job *j)
{
	return j->base.opts;
}

static int make_graph(struct bfs_job *j, struct loom_error *err)
{
	const struct bfs_opts *o = bfs_opts(j);
	const struct loom_host *host = j->base.host;
	struct graph *g = &j->graph;
	int grid = o->graph == GRAPH_GRID;
	int rc = grid ? graph_grid(g, 1ull << o->scale / 2) : graph_rmat(g, o->scale, o->degree, o->seed);
	j->level = rc ? NULL : host->alloc(host, g->vertices * sizeof(*j->level));
	uint32_t *queue = rc ? NULL : host->alloc(host, g->vertices * sizeof(*queue));
	int complete = j->level && queue;
	for (uint64_t v = 0, most = 0; complete && !grid && v < g->vertices; v++)
		if (g->first[v + 1] - g->first[v] > most) {
			most = g->first[v + 1] - g->first[v];
			j->start = (uint32_t)v;
		}
	if (complete)
		j->found = graph_search(g, j->start, j->level, queue);
	host->free(host, queue);
	return complete ? 0
			: LOOM_FAIL(host, err, LOOM_ENOMEM,
				    "bfs_tasks: out of memory for a graph with scale = %u: choose a smaller scale",
				    o->scale);
}

static int bfs_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	return workload_create(host, opts, sizeof(struct bfs_job), self, err);
}

static void bfs_destroy(void *self)
{
	struct bfs_job *j = self;
	if (!j)
		return;
	const struct loom_host *host = j->base.host;
	free(j->graph.first);
	free(j->graph.arc);
	host->free(host, j->level);
	host->free(host, j);
}

static uint64_t take(uint64_t *at, uint64_t bytes)
{
	uint64_t from = *at;
	*at += loom__align(bytes, 64);
	return from;
}

static struct bfs bfs_lay_out(const struct bfs_job *j, uint64_t *bytes)
{
	uint64_t at = sizeof(struct bfs), n = j->graph.vertices;
	struct bfs b = {.vertices = n, .arcs = j->graph.arcs, .chunk = bfs_opts(j)->chunk, .heavy = bfs_opts(j)->heavy};
	b.first = take(&at, (n + 1) * sizeof(uint64_t));
	b.arc = take(&at, j->graph.arcs * sizeof(uint32_t));
	b.seen = take(&at, n / 8 + sizeof(uint32_t));
	b.level = take(&at, n * sizeof(uint32_t));
	b.list = take(&at, 2 * n * sizeof(uint32_t));
	*bytes = at;
	return b;
}

static int bfs_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	struct bfs_job *j = self;
	if (layout->noncoherent && layout->devices > 1)
		return LOOM_FAIL(j->base.host, err, LOOM_ENOTSUP,
				 "bfs_tasks: all workers mark visited vertices in one bit set, and these devices have "
				 "no common atomics on "
				 "one word: use one device");
	int rc = j->level ? 0 : make_graph(j, err);
	if (!rc)
		bfs_lay_out(j, &need->global);
	return rc;
}

static int bfs_init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	const struct bfs_job *j = self;
	struct bfs *b = view->global;
	uint64_t bytes;
	(void)layout, (void)err;
	*b = bfs_lay_out(j, &bytes);
	memcpy(BFS_AT(b, first, uint64_t), j->graph.first, (j->graph.vertices + 1) * sizeof(uint64_t));
	memcpy(BFS_AT(b, arc, uint32_t), j->graph.arc, j->graph.arcs * sizeof(uint32_t));
	memset(BFS_AT(b, seen, uint32_t), 0, j->graph.vertices / 8 + sizeof(uint32_t));
	memset(BFS_AT(b, level, uint32_t), 0xff, j->graph.vertices * sizeof(uint32_t));
	memset(BFS_AT(b, list, uint32_t), 0, 2 * j->graph.vertices * sizeof(uint32_t));
	BFS_AT(b, seen, uint32_t)[j->start / 32] = 1u << j->start % 32;
	BFS_AT(b, level, uint32_t)[j->start] = 0;
	BFS_LIST(b, 0)[0] = j->start;
	b->found[0] = b->pending = 1;
	return 0;
}

static int bfs_tasks(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
		     struct loom_task *tasks, struct loom_error *err)
{
	(void)self, (void)layout, (void)view, (void)global, (void)err;
	tasks[0] = (struct loom_task){.tag = BFS_PART, .param = {0, 0, 1}};
	return 0;
}

static int bfs_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
		      struct loom_report *report, struct loom_error *err)
{
	const struct bfs_job *j = self;
	const struct loom_host *host = j->base.host;
	const struct bfs *b = view->global;
	const uint32_t *level = BFS_AT(b, level, uint32_t);
	uint64_t wrong = 0, which = 0;
	(void)layout;
	for (uint64_t v = 0; v < j->graph.vertices; v++)
		if (level[v] != j->level[v] && !wrong++)
			which = v;
	if (wrong)
		return LOOM_FAIL(host, err, LOOM_EWRONG,
				 "bfs_tasks: %llu of %llu vertices have a wrong level; the first is vertex %llu: level "
				 "%lld in place of %lld",
				 (unsigned long long)wrong, (unsigned long long)j->graph.vertices,
				 (unsigned long long)which, (long long)(int32_t)level[which],
				 (long long)(int32_t)j->level[which]);
	host->metric(host, report, "arcs", "", LOOM_BETTER_SAME, (double)j->found.followed);
	host->metric(host, report, "reached", "", LOOM_BETTER_SAME, (double)j->found.reached);
	host->metric(host, report, "levels", "", LOOM_BETTER_SAME, (double)j->found.levels);
	return 0;
}

static const struct loom_workload_ops bfs_ops = {
	.size = sizeof(struct loom_workload_ops),
	.create = bfs_create,
	.destroy = bfs_destroy,
	.need = bfs_need,
	.init = bfs_init,
	.task_count = workload_one_task,
	.tasks = bfs_tasks,
	.verify = bfs_verify,
	.work = "arcs",
};

static const struct loom_task_entry bfs_entries[] = {
	{"workload_bfs_tasks_part", workload_bfs_tasks_part},
	{"workload_bfs_tasks_heavy", workload_bfs_tasks_heavy},
};
WORKLOAD_CODE(workload_bfs_tasks, bfs_entries, LOOM_CODE_FILE("task.dev.h")
	      LOOM_CODE_FILE("workload_bfs_tasks.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_bfs_tasks", "0.1.0", "Apache-2.0",
		   "Breadth-first search in a generated graph, level by level", .opts = bfs_rows,
		   .opts_size = sizeof(struct bfs_opts), .ops = &bfs_ops, .dev = &workload_bfs_tasks_code)
