/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_cholesky, which factors a matrix by tiles. Its tasks have dependencies. */
#include <stdio.h>
#include <string.h>

#include "cholesky_matrix.h"
#include "../common/host.h"
#include "lib/align.h"

enum { MOST_TILES = 256 }; /* limit on the tiles of each side */
static const char *const reals[] = {"float", "double", NULL};

struct cholesky_opts {
	uint32_t size, tile, real;
	const char *blas;
};

static const struct loom_opt cholesky_options[] = {
	LOOM_OPT(struct cholesky_opts, size, LOOM_OPT_U32, "1024", "Rows of the matrix.", .min = 1, .max = 65536),
	LOOM_OPT(struct cholesky_opts, tile, LOOM_OPT_U32, "128",
			 "Rows of a tile, on which a task works; the last tile may have fewer.",
			 .min = 1, .max = 4096),
	LOOM_OPT(struct cholesky_opts, real, LOOM_OPT_ENUM, "double", "Type of the numbers.", .choices = reals),
	LOOM_OPT(struct cholesky_opts, blas, LOOM_OPT_STR, "auto",
			 "Library with which CPUs compute tiles. auto: libopenblas or libblas if installed. none: "
			 "plain functions of the workload. Else the library's name or path. GPUs use the plain "
			 "functions.", .flags = LOOM_OPT_TRUST),
	{.name = NULL},
};

struct cholesky_job {
	struct workload base;
	const struct cholesky_opts *o;
	struct cholesky_blas blas;
	uint32_t tiles;
};

static uint32_t tiles_of(const struct cholesky_opts *o)
{
	return (o->size + o->tile - 1) / o->tile;
}

static int cholesky_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct cholesky_opts *o = opts;
	if (tiles_of(o) > MOST_TILES)
		return LOOM_REFUSE(host, err, "tile",
				   "tile = %u divides size = %u into %u tiles on a side: at most %d are supported; set "
				   "tile to at least %u",
				   o->tile, o->size, tiles_of(o), MOST_TILES, (o->size + MOST_TILES - 1) / MOST_TILES);
	return 0;
}

static void cholesky_destroy(void *self)
{
	struct cholesky_job *job = self;
	if (job)
		cholesky_blas_close(&job->blas);
	workload_destroy(self);
}

static int cholesky_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	char why[300];
	void *made = NULL;
	int rc = workload_create(host, opts, sizeof(struct cholesky_job), &made, err);
	if (rc)
		return rc;
	struct cholesky_job *job = made;
	job->o = opts;
	job->tiles = tiles_of(job->o);
	const char *blas = job->o->blas;
	if (strcmp(blas, "none") && cholesky_blas_open(&job->blas, blas, why, sizeof(why))) {
		if (strcmp(blas, "auto")) {
			rc = LOOM_FAIL(host, err, LOOM_ENOENT, "blas = %s: %s", blas, why);
			cholesky_destroy(job);
			return rc;
		}
		LOOM_LOG(host, LOOM_LOG_INFO, "workload_cholesky", "tiles are computed by plain functions: %s", why);
	}
	LOOM_CHOICE(host, "workload.blas", "%s", job->blas.library ? "library" : "plain functions");
	*self = job;
	return 0;
}

static int cholesky_constants(void *self, const struct loom_layout *layout, char *text, size_t room,
			      struct loom_error *err)
{
	const struct cholesky_job *job = self;
	(void)layout, (void)err;
	snprintf(text, room, "#define CHOLESKY_REAL %s\n", reals[job->o->real]);
	return 0;
}

/* Returns the head of the block, as init() writes it. */
static struct cholesky head_of(const struct cholesky_job *job, const struct loom_layout *layout)
{
	struct cholesky head = {.size = job->o->size,
				.tile = job->o->tile,
				.tiles = job->tiles,
				.wide = job->o->real,
				.noncoherent = LOOM_HAS(layout, noncoherent) && layout->noncoherent,
				.blas = job->blas.library ? (uintptr_t)&job->blas : 0};
	head.pending_at = sizeof(head) + layout->devices * sizeof(struct loom_onebit_lock);
	head.tiles_at = loom__align(head.pending_at + 8 * cholesky_step_number(job->tiles, 0), 64);
	return head;
}

static int cholesky_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	const struct cholesky_job *job = self;
	struct cholesky head = head_of(job, layout);
	(void)err;
	need->global =
	    head.tiles_at + cholesky_tile_number(job->tiles, 0) * head.tile * head.tile * (head.wide ? 8 : 4);
	if (head.noncoherent) {
		need->global_place = LOOM_PLACE_HOST;
		need->device = LOOM_ONEBIT_LOCAL_BYTES;
		need->device_place = LOOM_PLACE_DEVICE;
	}
	return 0;
}

static int cholesky_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			 struct loom_error *err)
{
	const struct cholesky_job *job = self;
	struct cholesky *m = view->global;
	(void)err;
	*m = head_of(job, layout);
	memset(m + 1, 0, layout->devices * sizeof(struct loom_onebit_lock));
	for (uint32_t d = 0; m->noncoherent && d < layout->devices; d++)
		memset(view->device[d], 0, LOOM_ONEBIT_LOCAL_BYTES);
	cholesky_fill(m);
	return 0;
}

/* The initial task factors the first tile. All other tasks depend on it. */
static int cholesky_tasks(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
			  struct loom_task *tasks, struct loom_error *err)
{
	(void)self, (void)layout, (void)view, (void)global, (void)err;
	tasks[0].tag = CHOLESKY_FACTOR;
	return 0;
}

static int cholesky_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			   struct loom_report *report, struct loom_error *err)
{
	const struct cholesky_job *job = self;
	const struct loom_host *host = job->base.host;
	struct cholesky head = head_of(job, layout), *m = view->global;
	uint32_t row = 0;
	if (memcmp(m, &head, sizeof(head)))
		return LOOM_FAIL(host, err, LOOM_EWRONG, "cholesky: the description of the matrix was overwritten");
	double n = job->o->size, residual, *room = host->alloc(host, CHOLESKY_ROOM(job->o->size));
	if (!room)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "cholesky: out of memory");
	residual = cholesky_residual(m, room, &row);
	host->free(host, room);
	if (!(residual <= CHOLESKY_RESIDUAL))
		return LOOM_FAIL(host, err, LOOM_EWRONG,
				 "cholesky: row %u of L L^T differs from that of A by %g times the rounding of one "
				 "operation: at most %g were expected",
				 row, residual, CHOLESKY_RESIDUAL);
	host->metric(host, report, "flops", "", LOOM_BETTER_NONE, n * n * n / 3 + n * n / 2 + n / 6);
	host->metric(host, report, "residual", "", LOOM_BETTER_NONE, residual);
	return 0;
}

static int cholesky_explain(void *self, uint32_t worker, int code, uint64_t info, struct loom_error *err)
{
	const struct loom_host *host = ((struct workload *)self)->host;
	if (code != LOOM_EWRONG)
		return 0;
	return LOOM_FAIL(host, err, code,
			 "cholesky: worker %u finds no positive pivot in column %llu: tiles were changed out of order",
			 worker, (unsigned long long)info - 1);
}

WORKLOAD_OPS(cholesky, .create = cholesky_create, .destroy = cholesky_destroy, .task_count = workload_one_task,
	     .tasks = cholesky_tasks, .work = "flops", .explain = cholesky_explain, .constants = cholesky_constants);

static const struct loom_task_entry cholesky_entries[] = {
	{"workload_cholesky_factor", workload_cholesky_factor},
	{"workload_cholesky_solve", workload_cholesky_solve},
	{"workload_cholesky_update", workload_cholesky_update},
};
WORKLOAD_CODE(workload_cholesky, cholesky_entries, LOOM_CODE_FILE("task.dev.h") LOOM_CODE_FILE("cholesky_shape.dev.h")
	      LOOM_CODE_FILE("cholesky_real.dev.h") LOOM_CODE_FILE("workload_cholesky.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_cholesky", "0.1.0", "Apache-2.0",
		   "Cholesky factorization by tiles: tasks with dependencies", .opts = cholesky_options,
		   .opts_size = sizeof(struct cholesky_opts), .check = cholesky_check, .ops = &cholesky_ops,
		   .dev = &workload_cholesky_code)
