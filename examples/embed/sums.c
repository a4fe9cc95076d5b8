/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives between processes on CPUs: a program that needs no GPU.
 *
 *   ./sums [RANKS]
 *
 * Each rank computes a part of the Gregory series for pi, with the tasks of its own stack. An allreduce adds the parts,
 * and an allgather tells all ranks how long each has worked. The ranks are forked here, and find each other by shared
 * memory; a program with MPI passes MPI_Allgather in place of meet(). */
#include <gpuloom/comm.h>
#include <gpuloom/dev/dev.h>
#include <gpuloom/gpuloom.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 16, PARTS = 64, TERMS = 1 << 24 };

static const char conf[] = "[run]\ndevices = cpu:0\n[device.cpu]\nworkers = 2\noversubscribe = yes\n[transport]\nuse = host\n"
			   "[scheduler]\nuse = mgws\n[termination]\nuse = counter\n";

static struct {
	pthread_barrier_t all;
	char given[MOST][4096];
} *shared;
static uint32_t rank, ranks;

static int meet(void *self, const void *mine, void *all, size_t bytes, struct loom_error *err)
{
	(void)self, (void)err;
	memcpy(shared->given[rank], mine, bytes);
	pthread_barrier_wait(&shared->all);
	for (uint32_t r = 0; r < ranks; r++)
		memcpy((char *)all + r * bytes, shared->given[r], bytes);
	pthread_barrier_wait(&shared->all);
	return 0;
}

/* param[0]: the first term; param[1]: the term after the last one; param[2]: index of the result */
static void part(struct loom_ctx *c, const struct loom_task *t)
{
	double sum = 0;
	for (uint64_t k = t->param[0]; k < t->param[1]; k++)
		sum += (k % 2 ? -4.0 : 4.0) / (2.0 * (double)k + 1.0);
	if (c->lane == 0)
		((double *)loom_at(c, t->data.ref))[t->param[2]] = sum;
}

static struct loom_error err;
static void must(int code)
{
	if (!code)
		return;
	fprintf(stderr, "sums: rank %u: %s\n", rank, err.text);
	exit(1);
}

static void run(void)
{
	const struct loom_ranks all = {.size = sizeof(all), .rank = rank, .ranks = ranks, .allgather = meet};
	struct loom_config *cfg;
	struct loom_stack *stack;
	struct loom_comm *comm;
	struct timespec begin, end;
	uint32_t tag;
	loom_ref ref;
	void *parts;
	must(loom_config_create(&cfg, &err));
	must(loom_config_load_text(cfg, "sums", conf, &err));
	must(loom_stack_open(cfg, NULL, &stack, &err));
	must(loom_comm_open(stack, &all, &comm, &err));
	must(loom_stack_task(stack, "part", part, &tag, &err));
	must(loom_stack_alloc(stack, PARTS * sizeof(double), &ref, &parts, &err));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (uint64_t i = 0, terms = TERMS / ranks / PARTS; i < PARTS; i++) {
		uint64_t first = (rank * PARTS + i) * terms;
		struct loom_task t = {.tag = tag, .param = {first, first + terms, i}, .data = {.ref = ref}};
		must(loom_stack_submit(stack, &t, 1, &err));
	}
	must(loom_stack_run(stack, NULL, &err));
	clock_gettime(CLOCK_MONOTONIC, &end);
	float pi = 0, ms[MOST], mine = (float)(end.tv_sec - begin.tv_sec) * 1e3f + (float)(end.tv_nsec - begin.tv_nsec) / 1e6f;
	double sum = 0;
	for (int i = 0; i < PARTS; i++)
		sum += ((double *)parts)[i];
	pi = (float)sum;
	must(loom_comm_allreduce(comm, &pi, &pi, 1, LOOM_COMM_FLOAT, LOOM_COMM_SUM, NULL, &err));
	must(loom_comm_allgather(comm, &mine, ms, 1, LOOM_COMM_FLOAT, NULL, &err));
	if (!rank) {
		printf("pi is about %.6f; ms:", (double)pi);
		for (uint32_t r = 0; r < ranks; r++)
			printf(" %.1f", (double)ms[r]);
		printf("\n");
	}
	loom_comm_close(comm);
	loom_stack_close(stack);
	loom_config_destroy(cfg);
	exit(0);
}

int main(int argc, char **argv)
{
	pthread_barrierattr_t between;
	int failed = 0, status;
	ranks = argc > 1 ? (uint32_t)atoi(argv[1]) : 2;
	if (ranks < 1 || ranks > MOST) {
		fprintf(stderr, "usage: sums [RANKS], from 1 to %d\n", MOST);
		return 2;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_init(&between);
	pthread_barrierattr_setpshared(&between, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->all, &between, ranks);
	for (rank = 0; rank < ranks; rank++)
		if (!fork())
			run();
	while (wait(&status) > 0)
		failed |= status;
	return failed != 0;
}
