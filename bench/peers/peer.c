/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../plugins/workloads/tasks/uts_trees.h"
#include "../times.h"

_Static_assert(sizeof(struct peer_node) == sizeof(struct uts_node), "the same node");
_Static_assert(sizeof(struct peer_task) == sizeof(struct loom_task), "the same task");

static struct uts_tree *tree;
static const struct uts_known *known;
static uint32_t deep = UINT32_MAX;

static void grow(const char *name)
{
	for (known = uts_known; known->name && strcmp(known->name, name); known++)
		;
	if (!known->name) {
		fprintf(stderr, "no tree %s\n", name);
		exit(2);
	}
	tree = calloc(1, sizeof(*tree) + (size_t)uts_rows(&known->p) * UTS_MOST_CHILDREN * sizeof(uint32_t));
	uts_define(tree, &known->p);
}

void peer_root(struct peer_node *root)
{
	uts_root((struct uts_node *)root, known->p.seed);
}

uint32_t peer_children(const struct peer_node *node)
{
	return uts_children(tree, (const struct uts_node *)node);
}

void peer_child(struct peer_node *child, const struct peer_node *parent, uint32_t i)
{
	uts_child((struct uts_node *)child, (const struct uts_node *)parent, i);
}

int peer_is_deep(const struct peer_node *node)
{
	return node->depth >= deep;
}

uint64_t peer_search(const struct peer_node *node)
{
	uint64_t sum = 1;
	struct peer_node child;
	for (uint32_t i = 0, n = peer_children(node); i < n; i++) {
		peer_child(&child, node, i);
		sum += peer_search(&child);
	}
	return sum;
}

static uint64_t fibonacci(uint64_t n)
{
	uint64_t a = 0, b = 1;
	while (n--) {
		uint64_t c = a + b;
		a = b;
		b = c;
	}
	return a;
}

static void fail(const char *what, uint64_t expected, uint64_t found)
{
	fprintf(stderr, "%s: expected %llu, found %llu\n", what, (unsigned long long)expected,
		(unsigned long long)found);
	exit(3);
}

static void make_tasks(struct peer *p)
{
	p->task = aligned_alloc(64, p->n * sizeof(*p->task));
	p->slot = aligned_alloc(64, p->n * sizeof(*p->slot));
	for (uint64_t x = 0; x < p->n; x++)
		p->task[x] = (struct peer_task){.x = x, .slot = &p->slot[x]};
}

/* Executes the job once and returns the seconds. */
static double run(const struct peer *p, const struct peer_runtime *r)
{
	int memory = !strcmp(p->job, "memset"), uts = !strcmp(p->job, "uts");
	if (memory)
		memset(p->slot, 0xff, p->n * sizeof(*p->slot));
	uint64_t begin = now_ns();
	uint64_t found = memory			   ? r->memset(p) :
			 uts			   ? r->uts() :
			 !strcmp(p->job, "join") ? r->join(p->n) :
						     r->fib(p->n);
	double seconds = (double)(now_ns() - begin) / 1e9;
	if (uts && found != known->nodes)
		fail("uts", known->nodes, found);
	if (!memory && !uts && found != fibonacci(p->n))
		fail(p->job, fibonacci(p->n), found);
	for (uint64_t x = 0; memory && x < p->n; x++)
		if (p->slot[x] != x)
			fail("slot", x, p->slot[x]);
	return seconds;
}

int peer_main(int argc, char **argv, const struct peer_runtime *r)
{
	struct peer p = {.job = argc > 1 ? argv[1] : "", .tree = "T1", .workers = 2};
	for (int i = 2; i + 1 < argc; i += 2)
		switch (argv[i][1]) {
		case 'w':
			p.workers = (uint32_t)atoi(argv[i + 1]);
			break;
		case 'n':
			p.n = strtoull(argv[i + 1], NULL, 10);
			break;
		case 'd':
			deep = (uint32_t)atoi(argv[i + 1]);
			break;
		default:
			p.tree = argv[i + 1];
		}
	int memory = !strcmp(p.job, "memset"), uts = !strcmp(p.job, "uts"), join = !strcmp(p.job, "join");
	if (memory ? !r->memset : uts ? !r->uts : join ? !r->join : strcmp(p.job, "fib") || !r->fib) {
		fprintf(stderr, "%s cannot do '%s'\n", argv[0], p.job);
		return 2;
	}
	p.n = p.n ? p.n : memory ? 1048576 : 30;
	if (memory)
		make_tasks(&p);
	if (uts)
		grow(p.tree);
	double seconds = 0;
	r->begin(p.workers);
	for (int i = 0; i < 2; i++) /* the first run is a warm-up */
		seconds = run(&p, r);
	r->end();
	/* The recursion of fib(n) has 2 fib(n + 1) - 1 calls. With mode = spawn, gpuloom also counts each call as a
	 * task. */
	double tasks = memory ? (double)p.n : uts ? (double)known->nodes : 2 * (double)fibonacci(p.n + 1) - 1;
	printf("{\"seconds\": %.9f, \"calls_per_s\": %.1f}\n", seconds, tasks / seconds);
	return 0;
}
