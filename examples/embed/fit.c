/* SPDX-License-Identifier: Apache-2.0 */
/* Data-parallel training. N ranks, each a process with its own data, fit one line y = a x + b. In each step, a rank
 * computes the gradients of its data, and the ranks sum the gradients. Then all ranks take the same step, so that a and
 * b stay equal.
 *   ./fit N [STEPS]
 *
 * Sockets connect the other ranks to rank 0. A program under MPI would call MPI_Allgather instead. */
#include <gpuloom/comm.h>
#include <gpuloom/gpuloom.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define POINTS 1000

static const char conf[] = "[run]\ntimeout = 10s\ndevices = cpu:0\n"
			   "[device.cpu]\nworkers = 1\noversubscribe = yes\n[transport]\nuse = host\n"
			   "[scheduler]\nuse = mgws\n[termination]\nuse = counter\n";

/* On rank 0, to[r] is the socket to rank r. On the other ranks, to[0] is the socket to rank 0. */
static int to[LOOM_COMM_RANKS];

static int whole(int sent, int fd, void *at, size_t bytes, struct loom_error *err)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = sent ? send(fd, (char *)at + done, bytes - done, MSG_NOSIGNAL)
				 : recv(fd, (char *)at + done, bytes - done, 0);
		if (n <= 0) {
			snprintf(err->text, sizeof(err->text), "a rank is gone");
			return LOOM_EDIED;
		}
		done += (size_t)n;
	}
	return 0;
}

static int allgather(void *self, const void *mine, void *all, size_t bytes, struct loom_error *err)
{
	const struct loom_ranks *me = self;
	int rc = 0;
	memcpy((char *)all + me->rank * bytes, mine, bytes);
	for (uint32_t r = 1; r < me->ranks && !me->rank && !rc; r++)
		rc = whole(0, to[r], (char *)all + r * bytes, bytes, err);
	for (uint32_t r = 1; r < me->ranks && !me->rank && !rc; r++)
		rc = whole(1, to[r], all, me->ranks * bytes, err);
	if (!me->rank)
		return rc;
	rc = whole(1, to[0], (char *)all + me->rank * bytes, bytes, err);
	return rc ? rc : whole(0, to[0], all, me->ranks * bytes, err);
}

static int fit(struct loom_ranks *me, long steps)
{
	struct loom_error err = {0};
	struct loom_config *cfg = NULL;
	struct loom_stack *stack = NULL;
	struct loom_comm *comm = NULL;
	float line[2] = {0}, x[POINTS], y[POINTS];
	srand(me->rank + 1);
	for (int i = 0; i < POINTS; i++) {
		x[i] = (float)rand() / (float)RAND_MAX;
		y[i] = 3 * x[i] + 2;
	}
	int rc = loom_config_create(&cfg, &err);
	if (!rc)
		rc = loom_config_load_text(cfg, "built in", conf, &err);
	if (!rc)
		rc = loom_stack_open(cfg, NULL, &stack, &err);
	if (!rc)
		rc = loom_comm_open(stack, me, &comm, &err);
	/* All ranks start with the line of rank 0. */
	if (!rc)
		rc = loom_comm_broadcast(comm, line, line, 2, LOOM_COMM_FLOAT, 0, NULL, &err);
	for (long step = 0; step < steps && !rc; step++) {
		float gradient[2] = {0};
		for (int i = 0; i < POINTS; i++) {
			float off = line[0] * x[i] + line[1] - y[i];
			gradient[0] += off * x[i];
			gradient[1] += off;
		}
		rc = loom_comm_allreduce(comm, gradient, gradient, 2, LOOM_COMM_FLOAT, LOOM_COMM_SUM, NULL, &err);
		for (int i = 0; i < 2 && !rc; i++)
			line[i] -= 0.5f * gradient[i] / (float)(POINTS * me->ranks);
	}
	if (rc)
		fprintf(stderr, "fit: rank %u: %s\n", me->rank, err.text);
	else if (!me->rank)
		printf("y = %.2f x + %.2f\n", line[0], line[1]);
	loom_comm_close(comm);
	loom_stack_close(stack);
	loom_config_destroy(cfg);
	return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct loom_ranks me = {.size = sizeof(me),
				.ranks = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 2,
				.self = &me,
				.allgather = allgather};
	long steps = argc > 2 ? strtol(argv[2], NULL, 10) : 1000;
	int status, failed = 0;
	if (!me.ranks || me.ranks > LOOM_COMM_RANKS) {
		fprintf(stderr, "fit: 1 to %u ranks\n", LOOM_COMM_RANKS);
		return 2;
	}
	for (uint32_t r = 1; r < me.ranks && !me.rank; r++) {
		int pair[2];
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) {
			perror("fit: socketpair");
			return 1;
		}
		pid_t pid = fork();
		if (pid < 0) {
			perror("fit: fork");
			return 1;
		}
		if (!pid) {
			for (uint32_t other = 1; other < r; other++)
				close(to[other]);
			me.rank = r;
		}
		to[pid ? r : 0] = pair[!pid];
		close(pair[!!pid]);
	}
	failed = fit(&me, steps);
	for (uint32_t r = 1; r < me.ranks && !me.rank; r++)
		close(to[r]); /* ranks that still wait for rank 0 detect that the connection has ended */
	while (!me.rank && wait(&status) > 0)
		failed |= status != 0;
	return failed;
}
