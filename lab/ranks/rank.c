/* SPDX-License-Identifier: Apache-2.0 */
/* The side of a rank: it starts as a child of this command or by hand, takes part in exchanges, and ends. */
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

#include "ranks/boot.h"
#include "lib/machine.h"
#include "lib/poll.h"

static int allgather(void *self, const void *mine, void *all, size_t bytes, struct loom_error *err)
{
	struct loom__boot *b = self;
	struct loom__frame_head f;
	if (bytes > LOOM__GIVE_MOST)
		return LOOM__FAIL(err, LOOM_EFULL, "rank %u: an exchange of %zu bytes exceeds the limit of %u",
				  b->ranks.rank, bytes, LOOM__GIVE_MOST);
	if (loom__frame_send(b->fd, LOOM__FRAME_GIVE, b->turn++, mine, bytes) ||
	    loom__read_all(b->fd, &f, sizeof(f))) {
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

static void become(struct loom__boot *boot, uint32_t rank, uint32_t ranks, int fd)
{
	*boot = (struct loom__boot){.ranks = {.size = sizeof(boot->ranks),
					      .rank = rank,
					      .ranks = ranks,
					      .self = boot,
					      .allgather = allgather},
				    .fd = fd};
}

/* Ends this rank after the hub has died or has closed the connection. The rank's own code may notice this first, and
 * prints a better reason. So watch() waits before each step. */
static void *watch(void *arg)
{
	const struct loom__boot *b = arg;
	static const char text[] = "gpuloom: error: this rank ends: the launcher of the job has ended\n";
	struct pollfd on = {.fd = b->fd, .events = POLLRDHUP};
	while (poll_or_nap(&on, 1, NULL) <= 0)
		;
	for (int i = 0; i < 2; i++) { /* the first SIGTERM ends the rank after its sample, the second SIGTERM ends it at once */
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
	failed = failed == EAGAIN && errno == ENOMEM ? ENOMEM : failed; /* glibc reports ENOMEM as EAGAIN */
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (failed)
		return LOOM__FAIL(err, LOOM_EUNAVAIL, "cannot watch the launcher of the job: %s", strerror(failed));
	pthread_detach(thread);
	return 0;
}

/* Forks one rank. Returns 0 in the child. In the parent, returns the pid of the child, or -1 on failure. */
static pid_t spawn(struct loom__member *member, uint32_t rank, int *fd)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -1;
	pid_t parent = getpid(), pid = fork();
	if (pid == 0) {
		/* If this rank is stopped when the hub dies, SIGCONT continues the rank, so that watch() can end it. */
		if (prctl(PR_SET_PDEATHSIG, SIGCONT) || getppid() != parent)
			_exit(1);
		close(pair[0]);
		for (uint32_t r = 0; r < rank; r++)
			close(member[r].link.fd);
		*fd = pair[1];
		return 0;
	}
	close(pair[1]);
	if (pid < 0)
		close(pair[0]);
	member[rank].link = (struct loom__link){.fd = pid < 0 ? -1 : pair[0],
						.in = {.kinds = LOOM__HUB_ACCEPTS, .most = LOOM__GIVE_MOST}};
	member[rank].pid = pid < 0 ? 0 : pid;
	return pid;
}

/* Raises the limit of open files to what the hub needs: one per rank, and a reserve. Sets *before to the previous
 * limit, which the ranks keep. */
static int want_files(uint32_t ranks, struct rlimit *before, struct loom_error *err)
{
	struct rlimit now;
	rlim_t need = ranks + LOOM__LISTENER_FDS + 40u;
	if (getrlimit(RLIMIT_NOFILE, before) || before->rlim_cur >= need)
		return 0;
	now = (struct rlimit){.rlim_cur = need, .rlim_max = before->rlim_max};
	if (need <= before->rlim_max && !setrlimit(RLIMIT_NOFILE, &now))
		return 0;
	return LOOM__FAIL(err, LOOM_EUNAVAIL,
			  "%u ranks need %llu open files, and this process may have %llu: raise the limit (ulimit -n), "
			  "or run fewer ranks",
			  ranks, (unsigned long long)need, (unsigned long long)before->rlim_max);
}

/* Forks the first `local` of n ranks, and serves all n as the hub. */
static int serve(struct loom__boot *boot, uint32_t n, uint32_t local, struct loom__listener *listener,
		 loom__boot_say *say, void *arg, int *status, struct loom_error *err)
{
	struct rlimit files;
	int rc = want_files(n, &files, err);
	if (rc)
		return rc;
	struct loom__member *member = calloc(n, sizeof(*member));
	struct pollfd *on = calloc(n + LOOM__LISTENER_FDS, sizeof(*on));
	if (!member || !on) {
		free(member);
		free(on);
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	}
	for (uint32_t r = 0; r < n; r++)
		member[r].link.fd = -1;
	/* A signal that arrives before the hub's handlers are installed stays pending until they are, so that the ranks receive
	 * it. */
	loom__hub_signals(SIG_BLOCK);
	fflush(NULL); /* without this, every child would print the buffered output again */
	for (uint32_t r = 0; r < local; r++) {
		int fd = -1, failed;
		pid_t pid = spawn(member, r, &fd);
		failed = errno;
		if (pid == 0) {
			loom__hub_signals(SIG_UNBLOCK);
			free(member);
			free(on);
			if (listener)
				loom__listener_close(listener);
			setrlimit(RLIMIT_NOFILE, &files);
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
			loom__hub_signals(SIG_UNBLOCK);
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
	int fd = loom__tcp_connect(plan, err);
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
		return serve(boot, plan->ranks, plan->ranks, NULL, say, arg, status, err);
	if (plan->how == LOOM__BOOT_PMIX)
		return loom__pmix_begin(boot, err);
	if (plan->how != LOOM__BOOT_ROOT)
		return 0;
	if (plan->rank)
		return join(plan, boot, err);
	struct loom__listener *listener = calloc(1, sizeof(*listener));
	if (!listener)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	listener->token = plan->token;
	listener->ranks = plan->ranks;
	for (uint32_t i = 0; i < LOOM__LISTENER_PENDING; i++)
		listener->pending[i].link.fd = -1;
	int rc = loom__tcp_listen(&plan->root, listener, err);
	if (!rc)
		rc = serve(boot, plan->ranks, 1, listener, say, arg, status, err);
	loom__listener_close(listener);
	free(listener);
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
