/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of jacobi2d: heat on a square plate. The result must equal the sequential result to the last bit. */
#include "workload_jacobi2d.dev.h"

#include <pthread.h>

#include "net.h"

/* The expected result of all ranks together, which all ranks and samples of this process share. */
static struct net_reference reference = {.lock = PTHREAD_MUTEX_INITIALIZER}; /* `result`: two grids */
static struct {
	uint64_t n, sweeps;
	const double *want; /* the grid in `reference` after the last sweep */
} whole;

struct jacobi_opts {
	uint64_t n, local, sweeps;
	uint8_t two_sided;
};

static const struct loom_opt jacobi_rows[] = {
	LOOM_OPT(struct jacobi_opts, n, LOOM_OPT_U64, "256",
			 "Rows and columns of the whole grid.", .min = 1, .max = 65536),
	LOOM_OPT(struct jacobi_opts, local, LOOM_OPT_U64, "0",
			 "Rows and columns of the part of each rank, in place of n, for 1, 4, 9 ... ranks. 0: n counts.",
			 .max = 65536),
	LOOM_OPT(struct jacobi_opts, sweeps, LOOM_OPT_U64, "100", "Sweeps over the grid.", .min = 1, .max = 1e9),
	LOOM_NET_TWO_SIDED_ROW(struct jacobi_opts),
	{.name = NULL},
};

/* A rank's part of the grid, which is cut into down * across parts. The parts are as square as the number of
 * ranks allows. */
struct jacobi_part {
	uint32_t down, across, row, col;
	uint64_t first_row, rows, first_col, cols;
};

static struct jacobi_part jacobi_part_of(uint64_t n, uint32_t rank, uint32_t ranks)
{
	struct jacobi_part p = {.down = 1};
	for (uint32_t d = 1; (uint64_t)d * d <= ranks; d++)
		if (ranks % d == 0)
			p.down = d;
	p.across = ranks / p.down;
	p.row = rank / p.across;
	p.col = rank % p.across;
	p.first_row = n * p.row / p.down;
	p.rows = n * (p.row + 1) / p.down - p.first_row;
	p.first_col = n * p.col / p.across;
	p.cols = n * (p.col + 1) / p.across - p.first_col;
	return p;
}

/* Returns the number of rows of the whole grid, which has as many columns. */
static uint64_t side_of(const struct loom_host *host, const struct jacobi_opts *o)
{
	return o->local ? o->local * jacobi_part_of(1, 0, loom_net_ranks(host)).down : o->n;
}

/* Returns the offset of the grid, which follows the edges. */
static uint64_t grid_at(const struct jacobi *j)
{
	return j->edges_at + 4ull * JACOBI_SIDES * j->edge * sizeof(double);
}

static struct jacobi shape_of(const void *self, const struct loom_layout *layout)
{
	const struct workload *w = self;
	const struct jacobi_opts *o = w->opts;
	struct jacobi_part p = jacobi_part_of(side_of(w->host, o), loom_net_rank(w->host), loom_net_ranks(w->host));
	uint32_t least = p.down < p.across ? p.down : p.across;
	struct jacobi j = {.rows = p.rows, .cols = p.cols, .sweeps = o->sweeps};
	j.edge = (side_of(w->host, o) / least + 1 + 7) & ~7ull;
	j.edges_at = loom_net_line(sizeof(j));
	/* Several devices share a grid in memory that all of them can access. */
	j.grid_at = layout->devices > 1 ? grid_at(&j) : 0;
	int32_t rank = (int32_t)loom_net_rank(w->host);
	j.neighbour[JACOBI_NORTH] = p.row > 0 ? rank - (int32_t)p.across : -1;
	j.neighbour[JACOBI_SOUTH] = p.row + 1 < p.down ? rank + (int32_t)p.across : -1;
	j.neighbour[JACOBI_WEST] = p.col > 0 ? rank - 1 : -1;
	j.neighbour[JACOBI_EAST] = p.col + 1 < p.across ? rank + 1 : -1;
	return j;
}

static int jacobi_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	const struct jacobi_opts *o = opts;
	uint64_t n = side_of(host, o);
	struct jacobi_part p = jacobi_part_of(n, 0, loom_net_ranks(host));
	if (o->local && p.down != p.across)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "jacobi2d: local = %llu: %u ranks make no square grid: take 1, 4, 9 or 16 ranks, or set n",
				 (unsigned long long)o->local, loom_net_ranks(host));
	if (n < p.down || n < p.across)
		return LOOM_FAIL(host, err, LOOM_EINVAL, "jacobi2d: n = %llu is too small for %u x %u ranks",
				 (unsigned long long)n, p.down, p.across);
	return net_reference_create(&reference, host, opts, self, err);
}

static void jacobi_destroy(void *self)
{
	net_reference_destroy(&reference, self);
}

static int jacobi_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	struct jacobi j = shape_of(self, layout);
	uint64_t grid = 2 * (j.rows + 2) * (j.cols + 2) * sizeof(double);
	(void)err;
	need->global = grid_at(&j) + (j.grid_at ? grid : 0);
	need->global_place = LOOM_PLACE_NET;
	need->device = j.grid_at ? 0 : grid;
	need->device_place = LOOM_PLACE_DEVICE;
	return 0;
}

/* Returns the initial value of a cell. The rim of the plate is hot in the north and warm in the west. */
static double initial(uint64_t n, uint64_t row, uint64_t col)
{
	if (row == 0)
		return 100.0;
	if (col == 0)
		return 100.0 * (double)(n + 1 - row) / (double)(n + 1);
	return 0;
}

static int jacobi_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		       struct loom_error *err)
{
	const struct workload *w = self;
	const struct jacobi_opts *o = w->opts;
	struct jacobi *j = view->global;
	struct jacobi_part p = jacobi_part_of(side_of(w->host, o), loom_net_rank(w->host), loom_net_ranks(w->host));
	(void)err;
	*j = shape_of(self, layout);
	memset((char *)j + j->edges_at, 0xff, grid_at(j) - j->edges_at); /* NaN shows a missing edge */
	for (uint64_t parity = 0; parity < 2; parity++) {
		double *grid = jacobi_grid(j, j, view->device[0], parity);
		for (uint64_t r = 0; r < j->rows + 2; r++)
			for (uint64_t k = 0; k < j->cols + 2; k++)
				grid[r * (j->cols + 2) + k] = initial(side_of(w->host, o), p.first_row + r, p.first_col + k);
	}
	return 0;
}

static int jacobi_wire(void *self, const struct loom_layout *layout, const struct loom_view *view,
		       loom_ref global, const struct loom_trigger *trigger, struct loom_error *err)
{
	const struct jacobi_opts *o = ((const struct workload *)self)->opts;
	struct jacobi *j = view->global;
	int rc = 0;
	for (uint32_t side = 0; side < JACOBI_SIDES; side++) {
		uint64_t workers = 0; /* workers at this edge, which fire */
		for (uint32_t w = 0; w < layout->workers; w++)
			workers += (uint64_t)jacobi_is_at(j, side, jacobi_from(j, w, layout->workers),
							  jacobi_from(j, w + 1, layout->workers));
		for (uint64_t parity = 0; parity < 2 && !rc && j->neighbour[side] >= 0; parity++) {
			uint32_t opposite = side ^ 1;
			const char *from = (const char *)jacobi_edge(j, j, parity, 0, side);
			const char *to = (const char *)jacobi_edge(j, j, parity, 1, opposite);
			const char *in = (const char *)jacobi_edge(j, j, parity, 1, side);
			struct loom_trigger_post post = {
				.tag = JACOBI_TAG(side),
				.threshold = workers * (parity + 1),
				.rearm = 2 * workers,
				.op = LOOM_NET_PUT,
				.target = (uint32_t)j->neighbour[side],
				.local = global + (uint64_t)(from - (const char *)j),
				.remote = global + (uint64_t)(to - (const char *)j),
				.bytes = (side <= JACOBI_SOUTH ? j->cols : j->rows) * sizeof(double),
				.notify = JACOBI_ARRIVAL(opposite)};
			struct loom_trigger_post receive = loom_net_receive(
			    &post, global + (uint64_t)(in - (const char *)j), post.bytes, JACOBI_ARRIVAL(side));
			if (o->two_sided) {
				loom_net_send(&post);
				rc = loom_net_post(trigger, &receive, err);
			}
			if (!rc)
				rc = loom_net_post(trigger, &post, err);
		}
	}
	return rc;
}

/* Computes all sweeps of the whole grid on one CPU, in the two grids at `grid`. Sets *last to the grid after the last
 * sweep. Returns 0, or why the computation was stopped. */
static int sequential(const struct loom_host *host, uint64_t n, uint64_t sweeps, double *grid, const double **last,
		      struct loom_error *err)
{
	uint64_t width = n + 2, size = width * width;
	for (uint64_t i = 0; i < size; i++)
		grid[i] = grid[size + i] = initial(n, i / width, i % width);
	for (uint64_t s = 0; s < sweeps; s++) {
		int rc = LOOM_HAS(host, progress) ? host->progress(host, (double)s / (double)sweeps, err) : 0;
		if (rc)
			return rc;
		const double *old = grid + (s & 1) * size;
		double *next = grid + ((s & 1) ^ 1) * size;
		for (uint64_t r = 1; r <= n; r++)
			for (uint64_t k = 1; k <= n; k++) {
				uint64_t i = r * width + k;
				next[i] = 0.25 * ((old[i - width] + old[i + width]) + (old[i - 1] + old[i + 1]));
			}
	}
	*last = grid + (sweeps & 1) * size;
	return 0;
}

/* Called with the lock held. Computes the expected result if `reference` does not have it. */
static int solve(const struct loom_host *host, const struct jacobi_opts *o, struct loom_error *err)
{
	uint64_t n = side_of(host, o);
	if (reference.result && whole.n == n && whole.sweeps == o->sweeps)
		return 0;
	free(reference.result);
	reference.result = malloc(2 * (n + 2) * (n + 2) * sizeof(double));
	if (!reference.result)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	whole.n = n;
	whole.sweeps = o->sweeps;
	int rc = sequential(host, n, o->sweeps, reference.result, &whole.want, err);
	if (rc) {
		free(reference.result);
		reference.result = NULL;
	}
	return rc;
}

static int jacobi_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			 struct loom_report *report, struct loom_error *err)
{
	struct workload *w = self;
	const struct jacobi_opts *o = w->opts;
	struct jacobi *j = view->global;
	uint64_t n = side_of(w->host, o);
	struct jacobi_part p = jacobi_part_of(n, loom_net_rank(w->host), loom_net_ranks(w->host));
	(void)layout;
	pthread_mutex_lock(&reference.lock);
	int rc = solve(w->host, o, err);
	const double *want = whole.want, *got = jacobi_grid(j, j, view->device[0], j->sweeps & 1);
	for (uint64_t r = 1; r <= j->rows && !rc; r++)
		for (uint64_t k = 1; k <= j->cols && !rc; k++) {
			double g = got[r * (j->cols + 2) + k];
			double e = want[(p.first_row + r) * (n + 2) + p.first_col + k];
			if (g != e)
				rc = LOOM_FAIL(w->host, err, LOOM_EWRONG,
					       "jacobi2d: row %llu column %llu is %.17g instead of %.17g",
					       (unsigned long long)(p.first_row + r),
					       (unsigned long long)(p.first_col + k), g, e);
		}
	pthread_mutex_unlock(&reference.lock);
	if (!rc)
		w->host->metric(w->host, report, "cells", "", LOOM_BETTER_NONE, (double)(n * n * o->sweeps));
	return rc;
}

static uint64_t jacobi_steps(void *self, const struct loom_layout *layout)
{
	(void)layout;
	return ((const struct jacobi_opts *)((const struct workload *)self)->opts)->sweeps + 1;
}

static uint32_t jacobi_awaits(void *self, const struct loom_layout *layout, uint64_t n, struct loom_await *out)
{
	struct jacobi j = shape_of(self, layout);
	uint32_t count = 0;
	for (uint32_t side = 0; side < JACOBI_SIDES; side++)
		if (j.neighbour[side] >= 0)
			out[count++] = (struct loom_await){.index = JACOBI_ARRIVAL(side), .count = n};
	return count;
}

WORKLOAD_OPS(jacobi, .create = jacobi_create, .destroy = jacobi_destroy, .tasks = workload_no_tasks,
	     .wire = jacobi_wire, .explain = net_explain, .needs = 1u << LOOM_BARRIER, .work = "cells",
	     .barrier_scopes = net_barrier_scopes, .steps = jacobi_steps, .awaits = jacobi_awaits);

NET_CODE(workload_jacobi2d, .step = workload_jacobi2d_step);

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_jacobi2d", "0.1.0", "Apache-2.0",
		   "Jacobi relaxation with halos exchanged by triggered puts", .opts = jacobi_rows,
		   .opts_size = sizeof(struct jacobi_opts), .ops = &jacobi_ops,
		   .dev = &workload_jacobi2d_code)
