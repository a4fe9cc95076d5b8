/* SPDX-License-Identifier: Apache-2.0 */
/* StarPU: the main thread submits the same tasks (scheduler lws). StarPU derives the dependencies from the tiles. */
#include "dag.h"

#include <starpu.h>
#include <stdlib.h>

static struct cholesky *matrix;

void dag_begin(uint32_t workers)
{
	struct starpu_conf conf;
	starpu_conf_init(&conf);
	conf.sched_policy_name = "lws";
	conf.ncpus = (int)workers;
	conf.ncuda = 0;
	conf.nopencl = 0;
	if (starpu_init(&conf))
		exit(4);
}

void dag_end(void)
{
	starpu_shutdown();
}

#define TILE(n) ((void *)STARPU_VARIABLE_GET_PTR(buffers[n]))

static void factor(void *buffers[], void *arg)
{
	uint32_t j;
	starpu_codelet_unpack_args(arg, &j);
	dag_factor(matrix, j, TILE(0));
}

static void solve(void *buffers[], void *arg)
{
	uint32_t i, j;
	starpu_codelet_unpack_args(arg, &i, &j);
	dag_solve(matrix, i, j, TILE(0), TILE(1));
}

static void update(void *buffers[], void *arg)
{
	uint32_t i, j;
	starpu_codelet_unpack_args(arg, &i, &j);
	dag_update(matrix, i, j, TILE(0), TILE(1), i == j ? TILE(1) : TILE(2));
}

static struct starpu_codelet factor_codelet = {.cpu_funcs = {factor}, .nbuffers = 1, .modes = {STARPU_RW}};
static struct starpu_codelet solve_codelet = {.cpu_funcs = {solve}, .nbuffers = 2, .modes = {STARPU_RW, STARPU_R}};
static struct starpu_codelet diagonal_codelet = {.cpu_funcs = {update}, .nbuffers = 2, .modes = {STARPU_RW, STARPU_R}};
static struct starpu_codelet update_codelet = {
	.cpu_funcs = {update}, .nbuffers = 3, .modes = {STARPU_RW, STARPU_R, STARPU_R}};

#define INDEX(i) STARPU_VALUE, &(i), sizeof(i)

static void must(int rc)
{
	if (rc)
		exit(4);
}

void dag_run(struct cholesky *m)
{
	uint32_t n = m->tiles;
	starpu_data_handle_t *h = malloc(cholesky_tile_number(n, 0) * sizeof(*h));
	if (!h)
		exit(4);
	matrix = m;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j <= i; j++)
			starpu_variable_data_register(&h[cholesky_tile_number(i, j)], STARPU_MAIN_RAM,
						      (uintptr_t)cholesky_tile(m, i, j), (size_t)m->tile * m->tile * 8);
#define H(i, j) h[cholesky_tile_number(i, j)]
	for (uint32_t k = 0; k < n; k++) {
		must(starpu_task_insert(&factor_codelet, INDEX(k), STARPU_RW, H(k, k), 0));
		for (uint32_t i = k + 1; i < n; i++)
			must(starpu_task_insert(&solve_codelet, INDEX(i), INDEX(k), STARPU_RW, H(i, k), STARPU_R,
						H(k, k), 0));
		for (uint32_t i = k + 1; i < n; i++) {
			for (uint32_t j = k + 1; j < i; j++)
				must(starpu_task_insert(&update_codelet, INDEX(i), INDEX(j), STARPU_RW, H(i, j),
							STARPU_R, H(i, k), STARPU_R, H(j, k), 0));
			must(starpu_task_insert(&diagonal_codelet, INDEX(i), INDEX(i), STARPU_RW, H(i, i), STARPU_R,
						H(i, k), 0));
		}
	}
	starpu_task_wait_for_all();
	for (uint64_t t = 0; t < cholesky_tile_number(n, 0); t++)
		starpu_data_unregister(h[t]);
	free(h);
}
