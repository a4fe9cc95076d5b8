/* SPDX-License-Identifier: Apache-2.0 */
/* The side of a rank that this command forks: it starts, takes part in exchanges, and ends. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/child.h"
#include "lib/machine.h"
#include "lib/poll.h"
#include "ranks/boot.h"

static int allgather(void *self, const void *mine, void *all, size_t bytes, struct loom_error *err)
{
	struct loom__boot *b = self;
	struct loom__frame_head f;
	if (bytes > LOOM__GIVE_MOST)
		return LOOM__FAIL(err, LOOM_EFULL, "rank %u: an exchange of %zu bytes exceeds the limit of %u",
				  b->ranks.rank, bytes, LOOM__GIVE_MOST);
	if (loom__frame_send(b->fd, LOOM__FRAME_GIVE, b->turn++, mine, bytes) || loom__read_all(b->fd, &f, sizeof(f))) {
		int gone = errno == ECONNRESET || errno == EPIPE;
		return LOOM__FAIL(err, gone ? LOOM_EDIED : LOOM_EIO,
				  gone ? "rank %u: the job has ended" : "rank %u cannot reach the other ranks: %m",
				  b->ranks.rank);
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

/* Restricts this process to its share of the cores. Ranks of one host divide the cores in the same way as devices. If
 * there are more ranks than cores, ranks share cores. */
static void take_cores(uint32_t rank, uint32_t ranks)
{
	cpu_set_t have, mine;
	struct loom_machine_cpu list[CPU_SETSIZE];
	uint32_t n = 0, from, to;
	if (sched_getaffinity(0, sizeof(have), &have))
		return;
	for (unsigned i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &have))
			list[n++] = (struct loom_machine_cpu){.cpu = i};
	if (n < 2)
		return;
	loom_machine_place(list, n);
	loom_machine_share(list, n, rank, ranks, &from, &to);
	CPU_ZERO(&mine);
	for (; from < to; from++)
		CPU_SET(list[from].cpu, &mine);
	(void)sched_setaffinity(0, sizeof(mine), &mine); /* a failure does no harm */
}

/* For watch(), whose thread outlives the caller's struct loom__boot. */
static struct pollfd watched;
static uint32_t own_rank;

/* Waits for the end of the hub, or of the connection to it. */
static void *watch(void *arg)
{
	while (poll_or_nap(&watched, 1, NULL) <= 0)
		;
	loom__boot_lost(own_rank);
	return arg;
}

static int start_watch(const struct loom__boot *boot, struct loom_error *err)
{
	pthread_t thread;
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	errno = 0;
	watched = (struct pollfd){.fd = boot->fd, .events = POLLRDHUP};
	own_rank = boot->ranks.rank;
	int failed = pthread_create(&thread, NULL, watch, NULL);
	failed = failed == EAGAIN && errno == ENOMEM ? ENOMEM : failed; /* glibc reports ENOMEM as EAGAIN */
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (failed)
		return LOOM__FAIL(err, LOOM_EUNAVAIL, "a rank cannot start a thread: %s%s", strerror(failed),
				  failed == EPERM ? ": does a sandbox deny clone3() or clone()?" : "");
	pthread_detach(thread);
	return 0;
}

/* Forks one rank. Returns 0 in the child. In the parent, returns the pid of the child, or -1 on failure. */
static pid_t spawn(struct loom__member *member, uint32_t rank, int *fd)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		/* If this rank is stopped when the hub dies, SIGCONT continues the rank, so that watch() can end it. If
		 * a sandbox refuses the request, the rank runs without it. */
		(void)prctl(PR_SET_PDEATHSIG, SIGCONT);
		close(pair[0]);
		for (uint32_t r = 0; r < rank; r++)
			close(member[r].link.fd);
		*fd = pair[1];
		return 0;
	}
	int failed = errno;
	close(pair[1]);
	if (pid < 0)
		close(pair[0]);
	member[rank].link = (struct loom__link){.fd = pid < 0 ? -1 : pair[0]};
	member[rank].pid = pid;
	errno = failed;
	return pid;
}

/* Ends ranks 0 .. n - 1, because a later rank could not be forked. */
static void give_up(struct loom__member *member, uint32_t n)
{
	for (uint32_t r = 0; r < n; r++)
		kill(member[r].pid, SIGKILL);
	for (uint32_t r = 0; r < n; r++) {
		struct child child = {.pid = member[r].pid, .fd = -1};
		child_wait(&child, NULL);
		loom__link_close(&member[r].link);
	}
}

/* Raises the limit of open files to what the hub needs: one per rank, and a reserve. Sets *before to the previous
 * limit, which the ranks keep. */
static int want_files(uint32_t ranks, struct rlimit *before, struct loom_error *err)
{
	struct rlimit now;
	rlim_t need = ranks + 40u;
	if (getrlimit(RLIMIT_NOFILE, before) || before->rlim_cur >= need)
		return 0;
	now = (struct rlimit){.rlim_cur = need, .rlim_max = before->rlim_max};
	if (need <= before->rlim_max && !setrlimit(RLIMIT_NOFILE, &now))
		return 0;
	return LOOM__FAIL(err, LOOM_EUNAVAIL, "%u ranks need %llu open files, and this process may have %llu: "
			"raise the limit (ulimit -n), or run fewer ranks", ranks, (unsigned long long)need,
			(unsigned long long)before->rlim_max);
}

/* Forks n ranks, and serves them as the hub. */
static int serve(struct loom__boot *boot, uint32_t n, loom__boot_say *say, void *arg, int *status,
		 struct loom_error *err)
{
	struct rlimit files;
	int rc = want_files(n, &files, err);
	if (rc)
		return rc;
	struct loom__member *member = calloc(n, sizeof(*member));
	struct pollfd *on = calloc(n, sizeof(*on));
	/* A signal that arrives before the hub's handlers are installed stays pending until they are, so that the ranks
	 * receive it. */
	loom__hub_signals(SIG_BLOCK);
	fflush(NULL); /* without this, every child would print the buffered output again */
	rc = member && on ? LOOM__BOOT_PARENT : LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	for (uint32_t r = 0; r < n && rc == LOOM__BOOT_PARENT; r++) {
		int fd = -1;
		pid_t pid = spawn(member, r, &fd);
		if (pid == 0) {
			setrlimit(RLIMIT_NOFILE, &files);
			*boot = (struct loom__boot){.ranks = {.size = sizeof(boot->ranks),
							      .rank = r,
							      .ranks = n,
							      .self = boot,
							      .allgather = allgather,
							      .launched = 1},
						    .how = LOOM__BOOT_FORK,
						    .fd = fd};
			take_cores(r, n);
			rc = start_watch(boot, err);
		} else if (pid < 0) {
			rc = LOOM__FAIL(err, LOOM_EUNAVAIL, "cannot start rank %u of %u: %s", r, n, strerror(errno));
			give_up(member, r);
		}
	}
	if (rc == LOOM__BOOT_PARENT)
		*status = loom__hub_run(member, on, n, say, arg);
	else
		loom__hub_signals(SIG_UNBLOCK);
	free(member);
	free(on);
	return rc;
}

int loom__boot_begin(const struct loom__boot_plan *plan, loom__boot_say *say, void *arg, struct loom__boot *boot,
		     int *status, struct loom_error *err)
{
	*boot = (struct loom__boot){.fd = -1, .ranks = {.size = sizeof(boot->ranks), .ranks = 1}};
	return plan->how == LOOM__BOOT_FORK   ? serve(boot, plan->ranks, say, arg, status, err)
	       : plan->how == LOOM__BOOT_PMIX ? loom__pmix_begin(boot, err)
					      : 0;
}

int loom__boot_end(struct loom__boot *boot, int status, const char *text)
{
	if (boot->how == LOOM__BOOT_PMIX)
		loom__pmix_end(boot, status);
	if (boot->fd < 0 ||
	    !loom__frame_send(boot->fd, LOOM__FRAME_DONE, (uint32_t)status, text, text ? strlen(text) : 0))
		return 0;
	loom__boot_say_lost(boot->ranks.rank);
	return -1;
}
