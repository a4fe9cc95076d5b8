/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of this host that die in mid-sample. A launcher tells the others; the program that embeds a stack may have none. */
#include <errno.h>
#include <fcntl.h>
#include <gpuloom/fd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stack/stack.h"

/* A pid means a process only in its own namespace, of its own kernel. */
struct badge {
	char boot[40];
	uint64_t processes, pid;
};

static void read_badge(struct badge *b)
{
	struct stat ns;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	memset(b, 0, sizeof(*b));
	if (fd >= 0 && read(fd, b->boot, sizeof(b->boot) - 1) > 0 && !stat("/proc/self/ns/pid", &ns)) {
		b->processes = ns.st_ino;
		b->pid = (uint64_t)getpid();
	}
	if (fd >= 0)
		close(fd);
}

int loom__ranks_watch(struct loom_stack *s, struct loom_error *err)
{
	const struct loom_host *host = &s->host.table;
	struct badge mine;
	if (host->ranks == 1 || host->job || s->watch)
		return 0;
	struct badge *all = calloc(host->ranks, sizeof(*all));
	s->watch = all ? calloc(host->ranks, sizeof(*s->watch)) : NULL;
	if (!s->watch) {
		free(all);
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	}
	read_badge(&mine);
	int rc = host->allgather(host, &mine, all, sizeof(mine), err);
	for (uint32_t r = 0; r < host->ranks; r++) {
		int known = !rc && mine.pid && all[r].pid != mine.pid && all[r].processes == mine.processes &&
			    !memcmp(all[r].boot, mine.boot, sizeof(mine.boot));
		/* poll() skips a negative one: a rank of another host, or one that may not be looked at. */
		s->watch[r].fd = known ? loom_fd((int)syscall(SYS_pidfd_open, (pid_t)all[r].pid, 0)) : -1;
		s->watch[r].events = POLLIN;
		if (known && s->watch[r].fd < 0 && errno == ESRCH)
			rc = LOOM__FAIL(err, LOOM_EDIED, "rank %u has died", r);
	}
	free(all);
	return rc;
}

int loom__ranks_lost(struct loom_stack *s, struct loom_error *err)
{
	uint32_t ranks = s->watch ? s->host.table.ranks : 0;
	if (!ranks || poll(s->watch, ranks, 0) <= 0)
		return 0;
	for (uint32_t r = 0; r < ranks; r++)
		if (s->watch[r].revents & POLLIN)
			return LOOM__FAIL(err, LOOM_EDIED, "rank %u has died", r);
	return 0;
}

void loom__ranks_unwatch(struct loom_stack *s)
{
	for (uint32_t r = 0; s->watch && r < s->host.table.ranks; r++)
		if (s->watch[r].fd >= 0)
			close(s->watch[r].fd);
	free(s->watch);
	s->watch = NULL;
}
