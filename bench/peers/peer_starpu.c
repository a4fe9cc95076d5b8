/* SPDX-License-Identifier: Apache-2.0 */
/* StarPU: the main thread submits one task per index (scheduler lws). StarPU has no fork-join. The tasks of UTS submit
 * further tasks. */
#include "peer.h"

#include <starpu.h>
#include <stdlib.h>

static struct {
	uint64_t sum, pad[7];
} own[STARPU_NMAXWORKERS];

static void begin(uint32_t workers)
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

static void end(void)
{
	starpu_shutdown();
}

static uint64_t collect(void)
{
	uint64_t sum = 0;
	starpu_task_wait_for_all();
	for (unsigned i = 0; i < STARPU_NMAXWORKERS; i++) {
		sum += own[i].sum;
		own[i].sum = 0;
	}
	return sum;
}

static void submit(struct starpu_codelet *codelet, void *arg, int owned)
{
	struct starpu_task *t = starpu_task_create();
	t->cl = codelet;
	t->cl_arg = arg;
	t->cl_arg_size = owned ? sizeof(struct peer_node) : 0;
	t->cl_arg_free = (unsigned)owned;
	t->destroy = 1;
	if (starpu_task_submit(t))
		exit(4);
}

static void write_slot(void *buffers[], void *arg)
{
	(void)buffers;
	peer_memset(arg);
}

static uint64_t starpu_memset_job(const struct peer *p)
{
	static struct starpu_codelet codelet = {.cpu_funcs = {write_slot}, .nbuffers = 0};
	for (uint64_t x = 0; x < p->n; x++)
		submit(&codelet, &p->task[x], 0);
	return collect();
}

static void node(void *buffers[], void *arg);
static struct starpu_codelet node_codelet = {.cpu_funcs = {node}, .nbuffers = 0};

static void node(void *buffers[], void *arg)
{
	const struct peer_node *parent = arg;
	(void)buffers;
	own[starpu_worker_get_id()].sum++;
	for (uint32_t i = 0, n = peer_children(parent); i < n; i++) {
		struct peer_node *child = malloc(sizeof(*child));
		peer_child(child, parent, i);
		submit(&node_codelet, child, 1);
	}
}

static uint64_t uts(void)
{
	struct peer_node *root = malloc(sizeof(*root));
	peer_root(root);
	submit(&node_codelet, root, 1);
	return collect();
}

int main(int argc, char **argv)
{
	static const struct peer_runtime runtime = {begin, starpu_memset_job, NULL, NULL, uts, end};
	return peer_main(argc, argv, &runtime);
}
