/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's end: begins as a child of this command or by itself, exchanges, ends. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "ranks/boot.h"

static int allgather(void *self, const void *mine, void *all, size_t bytes, struct loom_error *err)
{
	struct loom__boot *b = self;
	struct loom__frame_head f;
	if (loom__frame_send(b->fd, LOOM__FRAME_GIVE, b->turn++, mine, bytes) ||
	    loom__read_all(b->fd, &f, sizeof(f))) {
		int gone = errno == ECONNRESET || errno == EPIPE;
		return LOOM__FAIL(err, gone ? LOOM_EDIED : LOOM_EIO,
				  gone ? "rank %u: the job has ended" : "rank %u cannot reach the others: %m", b->ranks.rank);
	}
	if (f.kind == LOOM__FRAME_ALL && f.bytes == bytes * b->ranks.ranks && !loom__read_all(b->fd, all, f.bytes))
		return 0;
	char why[300] = "the job has ended";
	if (f.kind == LOOM__FRAME_END && f.bytes < sizeof(why)) {
		memset(why, 0, sizeof(why));
		if (loom__read_all(b->fd, why, f.bytes))
			why[0] = 0;
	}
	return LOOM__FAIL(err, LOOM_EDIED, "rank %u ends: %s", b->ranks.rank, why);
}

/* Ranks of one host take turns over its cores; more ranks than cores share them. */
static void take_cores(uint32_t rank, uint32_t ranks)
{
	cpu_set_t have, mine;
	int core[CPU_SETSIZE];
	uint32_t n = 0;
	if (sched_getaffinity(0, sizeof(have), &have))
		return;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &have))
			core[n++] = i;
	if (n < 2)
		return;
	CPU_ZERO(&mine);
	uint32_t from = ranks <= n ? rank * n / ranks : rank % n;
	uint32_t to = ranks <= n ? (rank + 1) * n / ranks : from + 1;
	for (uint32_t i = from; i < to; i++)
		CPU_SET(core[i], &mine);
	(void)sched_setaffinity(0, sizeof(mine), &mine); /* a wish: without it they still run */
}

static void become(struct loom__boot *boot, uint32_t rank, uint32_t ranks, int fd)
{
	*boot = (struct loom__boot){.ranks = {.size = sizeof(boot->ranks),
					      .rank = rank,
					      .ranks = ranks,
					      .self = boot,
					      .allgather = allgather},
				    .fd = fd};
}

/* Ends this rank when the hub has died or, on another host, hangs up: in order, so that nothing is left behind, or else
 * by force. The rank may find out by itself, with a better reason. */
static void *watch(void *arg)
{
	const struct loom__boot *b = arg;
	static const char text[] = "gpuloom: error: this rank ends: whoever started the job has ended\n";
	struct pollfd on = {.fd = b->fd, .events = POLLRDHUP};
	while (poll(&on, 1, -1) <= 0)
		if (errno != EINTR) /* memory is short, for a moment */
			nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	for (int i = 0; i < 2; i++) { /* after this sample; at once */
		nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
		kill(getpid(), SIGTERM);
	}
	sleep(2);
	if (write(2, text, sizeof(text) - 1) < 0)
		_exit(1);
	_exit(1);
}

static int start_watch(struct loom__boot *boot, struct loom_error *err)
{
	pthread_t thread;
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	errno = 0;
	int failed = pthread_create(&thread, NULL, watch, boot);
	failed = failed == EAGAIN && errno == ENOMEM ? ENOMEM : failed; /* it calls both EAGAIN */
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (failed)
		return LOOM__FAIL(err, LOOM_EUNAVAIL, "cannot watch who started the job: %s", strerror(failed));
	pthread_detach(thread);
	return 0;
}

/* One child; in it, 0. In the parent its pid, or -1. */
static pid_t spawn(struct loom__member *member, uint32_t rank, int *fd)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		close(pair[0]);
		for (uint32_t r = 0; r < rank; r++)
			close(member[r].fd);
		*fd = pair[1];
		return 0;
	}
	close(pair[1]);
	if (pid < 0)
		close(pair[0]);
	member[rank] = (struct loom__member){.fd = pid < 0 ? -1 : pair[0], .pid = pid < 0 ? 0 : pid};
	return pid;
}

/* Forks the first `local` of n ranks and serves them all. */
static int serve(struct loom__boot *boot, uint32_t n, uint32_t local, int listener, loom__boot_say *say,
		 void *arg, int *status, struct loom_error *err)
{
	struct loom__member *member = calloc(n, sizeof(*member));
	struct pollfd *on = calloc(n + 1u, sizeof(*on));
	if (!member || !on) {
		free(member);
		free(on);
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	}
	for (uint32_t r = 0; r < n; r++)
		member[r].fd = -1;
	fflush(NULL); /* or every child would print what is buffered here */
	for (uint32_t r = 0; r < local; r++) {
		int fd = -1, failed;
		pid_t pid = spawn(member, r, &fd);
		failed = errno;
		if (pid == 0) {
			free(member);
			free(on);
			if (listener >= 0)
				close(listener);
			become(boot, r, n, fd);
			boot->how = local == n ? LOOM__BOOT_FORK : LOOM__BOOT_ROOT;
			if (local > 1) {
				boot->local_rank = r;
				boot->local_ranks = local;
				take_cores(r, local);
			}
			return start_watch(boot, err);
		}
		if (pid < 0) {
			for (uint32_t k = 0; k < r; k++)
				kill(member[k].pid, SIGKILL);
			free(member);
			free(on);
			return LOOM__FAIL(err, LOOM_EUNAVAIL, "cannot start rank %u of %u: %s", r, n,
					  strerror(failed));
		}
	}
	*status = loom__hub_run(member, on, n, listener, say, arg);
	free(member);
	free(on);
	return LOOM__BOOT_PARENT;
}

static int join(const struct loom__boot_plan *plan, struct loom__boot *boot, struct loom_error *err)
{
	int fd = loom__tcp_connect(plan->root, plan->rank, err);
	if (fd < 0)
		return fd;
	become(boot, plan->rank, plan->ranks, fd);
	boot->how = LOOM__BOOT_ROOT;
	return start_watch(boot, err);
}

int loom__boot_begin(const struct loom__boot_plan *plan, loom__boot_say *say, void *arg,
		     struct loom__boot *boot, int *status, struct loom_error *err)
{
	*boot = (struct loom__boot){.fd = -1, .ranks = {.size = sizeof(boot->ranks), .ranks = 1}};
	if (plan->how == LOOM__BOOT_FORK)
		return serve(boot, plan->ranks, plan->ranks, -1, say, arg, status, err);
	if (plan->how == LOOM__BOOT_PMIX)
		return loom__pmix_begin(boot, err);
	if (plan->how != LOOM__BOOT_ROOT)
		return 0;
	if (plan->rank)
		return join(plan, boot, err);
	int listener = loom__tcp_listen(plan->root, err);
	if (listener < 0)
		return listener;
	int rc = serve(boot, plan->ranks, 1, listener, say, arg, status, err);
	if (rc)
		close(listener);
	return rc;
}

void loom__boot_end(struct loom__boot *boot, int status, const char *text)
{
	if (boot->how == LOOM__BOOT_PMIX)
		loom__pmix_end(boot, status);
	if (boot->fd < 0)
		return;
	loom__frame_send(boot->fd, LOOM__FRAME_DONE, (uint32_t)status, text, text ? strlen(text) : 0);
}
