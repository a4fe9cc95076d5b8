/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_uts, which counts the nodes of an unbalanced tree by tasks. */
#include <string.h>

/* uts_child() is called from several places. So it is one function out of line, into which the digest's code is
 * inlined. */
#define UTS_CHILD_FN static __attribute__((noinline))
#include "workload_uts.dev.h"
#include "../common/host.h"
#include "uts_trees.h"

_Static_assert(sizeof(struct uts_node) == 24, "a node fits into three parameters");

static const char *const trees[] = {"T1",  "T2",   "T3",    "T4",    "T5",     "T1L",
				    "T3L", "T1XL", "T1XXL", "T3XXL", "custom", NULL};
static const char *const types[] = {"geometric", "binomial", "hybrid", NULL};
static const char *const creations[] = {"lazy", "eager", NULL};
static const char *const shapes[] = {"fixed", "linear", "cyclic", NULL};

enum { UTS_LAZILY, UTS_EAGERLY };

struct uts_opts {
	uint32_t tree, create, keep, type, shape, seed, depth, m;
	double b0, q, shift;
};

#define CUSTOM " (tree = custom)"
static const struct loom_opt uts_options[] = {
    LOOM_OPT(struct uts_opts, tree, LOOM_OPT_ENUM, "T1",
	     "A published tree (T1 to T5: 4.1 million nodes; T1L, T3L: 100 million; T1XL, T3XXL, T1XXL: "
	     "1.6, 2.8, 4.2 thousand million), or custom.",
	     .choices = trees),
    LOOM_OPT(struct uts_opts, create, LOOM_OPT_ENUM, "lazy",
	     "When nodes become tasks. lazy: a depth-first search makes tasks of the nodes nearest to the "
	     "root when the scheduler requests some; the same as eager if the scheduler never requests "
	     "tasks, or a GPU takes part. eager: each node is a task.",
	     .choices = creations),
    LOOM_OPT(struct uts_opts, keep, LOOM_OPT_U32, "2048",
	     "create = lazy: nodes that a worker stores; the children of further nodes are tasks.", .min = 1,
	     .max = 65536),
    LOOM_OPT(struct uts_opts, type, LOOM_OPT_ENUM, "geometric",
	     "tree = custom: distribution of the number of children.", .choices = types),
    LOOM_OPT(struct uts_opts, shape, LOOM_OPT_ENUM, "fixed",
	     "tree = custom: how the expected number of children changes with depth, if not binomial.",
	     .choices = shapes),
    LOOM_OPT(struct uts_opts, b0, LOOM_OPT_F64, "4",
	     "tree = custom: children of the root: expected, or exact if binomial.", .from = 1, .to = 1e6),
    LOOM_OPT(struct uts_opts, seed, LOOM_OPT_U32, "19", "tree = custom: seed of the tree.", .max = 0x7fffffff),
    LOOM_OPT(struct uts_opts, depth, LOOM_OPT_U32, "8",
	     "tree = custom: depth of the geometric part; cyclic trees are up to five times as deep.", .min = 1,
	     .max = 4096),
    LOOM_OPT(struct uts_opts, q, LOOM_OPT_F64, "0.12", "tree = custom, binomial: probability that a node has children.",
	     .to = 1),
    LOOM_OPT(struct uts_opts, m, LOOM_OPT_U32, "8",
	     "tree = custom, binomial: number of these children; q m must be below 1.", .min = 1, .max = 100),
    LOOM_OPT(struct uts_opts, shift, LOOM_OPT_SHARE, "0.5",
	     "tree = custom, hybrid: binomial from this share of depth on.", .to = 1),
    {.name = NULL},
};

struct uts {
	struct workload base;
	uint32_t create, keep;
	struct uts_params p;
	struct uts_known expect;
	int counted; /* 1: `expect` is valid */
};

static const struct uts_known *uts_find(const struct uts_opts *o)
{
	const struct uts_known *k = uts_known;
	while (k->name && strcmp(k->name, trees[o->tree]))
		k++;
	return k->name ? k : NULL;
}

static int uts_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct uts_opts *o = opts;
	if (!uts_find(o) && o->type != UTS_GEOMETRIC && o->q * o->m >= 1)
		return LOOM_REFUSE(host, err, "q",
				   "q = %g times m = %u is %g: such a tree does not end; make it smaller than 1", o->q,
				   o->m, o->q * o->m);
	return 0;
}

static int uts_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	const struct uts_opts *o = opts;
	void *made = NULL;
	int rc = workload_create(host, opts, sizeof(struct uts), &made, err);
	if (rc)
		return rc;
	struct uts *u = made;
	u->create = o->create;
	u->keep = o->keep;
	const struct uts_known *k = uts_find(o);
	u->p = (struct uts_params){.type = (enum uts_type)o->type,
				   .shape = (enum uts_shape)o->shape,
				   .b0 = o->b0,
				   .seed = o->seed,
				   .depth = o->depth,
				   .q = o->q,
				   .m = o->m,
				   .shift = o->shift};
	if (k) {
		u->p = k->p;
		u->expect = *k;
		u->counted = 1;
	}
	*self = u;
	return 0;
}

static uint64_t uts_bytes(const struct uts *u)
{
	return sizeof(struct uts_tree) + (uint64_t)uts_rows(&u->p) * UTS_MOST_CHILDREN * sizeof(uint32_t);
}

/* Returns the number of entries of a lane's stack, which is a part of its worker's stack, or 0 if tasks are created
 * eagerly. Sets *lanes to the largest number of lanes of a worker. */
static uint32_t uts_keep(const struct uts *u, const struct loom_layout *layout, uint32_t *lanes)
{
	uint32_t keep = u->create == UTS_LAZILY ? u->keep : 0;
	*lanes = 1;
	for (uint32_t d = 0; d < layout->devices; d++) {
		if (layout->device[d].kind == LOOM_ON_GPU)
			keep = 0;
		if (layout->device[d].lanes > *lanes)
			*lanes = layout->device[d].lanes;
	}
	return keep && keep < *lanes ? 1 : keep / *lanes;
}

static int uts_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	uint32_t lanes, keep = uts_keep(self, layout, &lanes);
	(void)err;
	need->global = uts_bytes(self);
	need->flags = LOOM_NEED_CONSTANT;
	need->worker = sizeof(struct uts_count);
	need->local = keep ? lanes * UTS_STACK_BYTES(keep) : 0;
	return 0;
}

static int uts_init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	(void)self, (void)err;
	for (uint32_t w = 0; w < layout->workers; w++)
		*(struct uts_count *)view->worker[w] = (struct uts_count){0};
	return 0;
}

static int uts_tasks(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
		     struct loom_task *tasks, struct loom_error *err)
{
	const struct uts *u = self;
	struct uts_tree *tree = view->global;
	struct uts_node root;
	uint32_t lanes;
	(void)global, (void)err;
	uts_define(tree, &u->p);
	tree->keep = uts_keep(u, layout, &lanes);
	uts_root(&root, u->p.seed);
	uts_pack(&tasks[0], &root);
	return 0;
}

static void uts_add(struct uts_count *n, const struct uts_count *c)
{
	n->nodes += c->nodes;
	n->leaves += c->leaves;
	n->depth = c->depth > n->depth ? c->depth : n->depth;
}

/* Adds the counts of all workers of all ranks that share the tree. */
static int uts_sum(const struct uts *u, const struct loom_layout *layout, const struct loom_view *view,
		   struct uts_count *n, struct loom_error *err)
{
	struct uts_count mine = {0};
	uint32_t ranks;
	void *all;
	for (uint32_t w = 0; w < layout->workers; w++)
		uts_add(&mine, view->worker[w]);
	int rc = workload_gather(u->base.host, layout, &mine, sizeof(mine), &all, &ranks, err);
	for (uint32_t r = 0; !rc && r < ranks; r++)
		uts_add(n, (const struct uts_count *)all + r);
	if (!rc)
		u->base.host->free(u->base.host, all);
	return rc;
}

/* Counts the nodes of a custom tree once, on this thread. */
static int uts_expect(struct uts *u, const struct uts_tree *tree, struct loom_error *err)
{
	struct uts_count n;
	if (u->counted)
		return 0;
	LOOM_LOG(u->base.host, LOOM_LOG_INFO, "workload_uts", "counting the tree on one thread");
	int rc = uts_search(tree, u->p.seed, &n);
	if (rc)
		return LOOM_FAIL(u->base.host, err, rc, "uts: out of memory");
	u->expect = (struct uts_known){"custom", u->p, n.nodes, n.leaves, n.depth};
	u->counted = 1;
	return 0;
}

static int uts_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
		      struct loom_report *report, struct loom_error *err)
{
	struct uts *u = self;
	const struct loom_host *host = u->base.host;
	const struct uts_known *e = &u->expect;
	struct uts_count n = {0};
	int rc = uts_expect(u, view->global, err);
	if (!rc)
		rc = uts_sum(u, layout, view, &n, err);
	if (rc)
		return rc;
	if (n.nodes != e->nodes || (e->leaves && n.leaves != e->leaves) || (e->depth && n.depth != e->depth))
		return LOOM_FAIL(host, err, LOOM_EWRONG,
				 "uts %s: expected %llu nodes, %llu leaves, depth %llu (0: not known); "
				 "found %llu, %llu, %llu",
				 e->name, (unsigned long long)e->nodes, (unsigned long long)e->leaves,
				 (unsigned long long)e->depth, (unsigned long long)n.nodes,
				 (unsigned long long)n.leaves, (unsigned long long)n.depth);
	host->metric(host, report, "nodes", "", LOOM_BETTER_SAME, (double)n.nodes);
	host->metric(host, report, "leaves", "", LOOM_BETTER_SAME, (double)n.leaves);
	host->metric(host, report, "depth", "", LOOM_BETTER_SAME, (double)n.depth);
	return 0;
}

WORKLOAD_OPS(uts, .create = uts_create, .destroy = workload_destroy, .task_count = workload_one_task,
	     .tasks = uts_tasks, .work = "nodes");

static const struct loom_task_entry uts_entries[] = {{"workload_uts_task", workload_uts_task}};
WORKLOAD_CODE(workload_uts, uts_entries,
	      LOOM_CODE_FILE("task.dev.h") LOOM_CODE_FILE("sha1.dev.h") LOOM_CODE_FILE("uts_node.dev.h")
		  LOOM_CODE_FILE("workload_uts.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_uts", "0.1.0", "Apache-2.0",
		   "Unbalanced Tree Search: counts the nodes of a tree that is generated by SHA-1", .opts = uts_options,
		   .opts_size = sizeof(struct uts_opts), .caps = LOOM_CAP_WORKLOAD_IS_SHARED, .check = uts_check,
		   .ops = &uts_ops, .dev = &workload_uts_code)
