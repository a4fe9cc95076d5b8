/* SPDX-License-Identifier: Apache-2.0 */
/* Another process of the same job: whether it is near, whether it lives, and its memfds. */
#ifndef LOOM_LIB_PEER_H
#define LOOM_LIB_PEER_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fd.h"
#include "host_mark.h"

/* What a process tells the others about itself. Process numbers are valid only in a pid namespace under a kernel. */
struct peer {
	struct host_mark host;
	uint64_t processes, pid; /* inode of the pid namespace, 0 if unknown; number of the process in it */
};

static inline void peer_read(struct peer *mine)
{
	struct stat ns;
	memset(mine, 0, sizeof(*mine));
	host_mark_read(&mine->host);
	mine->processes = stat("/proc/self/ns/pid", &ns) ? 0 : ns.st_ino;
	mine->pid = (uint64_t)getpid();
}

static inline int peer_is_on_host(const struct peer *a, const struct peer *b)
{
	return *a->host.boot && !memcmp(a->host.boot, b->host.boot, sizeof(a->host.boot));
}

/* Returns 1 if the processes are on the same host and in the same container, so that each finds the other by its
 * number. */
static inline int peer_is_near(const struct peer *a, const struct peer *b)
{
	return peer_is_on_host(a, b) && a->processes == b->processes && b->pid - 1 < INT_MAX;
}

/* Returns a descriptor that becomes readable when a process ends that is near, or -1 with errno. */
static inline int peer_watch(const struct peer *p)
{
	return loom_fd((int)syscall(SYS_pidfd_open, (pid_t)p->pid, 0));
}

/* Returns 1 if a path in /proc is a memfd of gpuloom. No other file is opened, whatever the other process has sent. */
static inline int peer_is_memfd(const char *path)
{
	static const char memfd[] = "/memfd:gpuloom";
	char target[64];
	ssize_t n = readlink(path, target, sizeof(target));
	if (n >= (ssize_t)sizeof(memfd) - 1 && !memcmp(target, memfd, sizeof(memfd) - 1))
		return 1;
	errno = n < 0 ? errno : EBADF;
	return 0;
}

/* Maps descriptor `fd` of a process that is near, through /proc. Its number may have been reused by another process, so
 * `device` and `inode` of the file are compared. Returns 0, or an errno. `path`: receives the path, for messages. */
static inline int peer_map(const struct peer *p, int64_t fd, uint64_t device, uint64_t inode, char path[64], void **at,
			   uint64_t *bytes)
{
	struct stat file;
	void *map = MAP_FAILED;
	*at = NULL;
	*bytes = 0;
	snprintf(path, 64, "/proc/%lld/fd/%lld", (long long)p->pid, (long long)fd);
	int mine = peer_is_memfd(path) ? open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1, code = errno;
	if (mine >= 0 && (fstat(mine, &file) || file.st_dev != device || file.st_ino != inode ||
			  !S_ISREG(file.st_mode) || file.st_size <= 0))
		code = ESTALE;
	else if (mine >= 0) {
		map = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, mine, 0);
		code = errno;
	}
	if (mine >= 0)
		close(mine);
	if (map == MAP_FAILED)
		return code;
	*at = map;
	*bytes = (uint64_t)file.st_size;
	return 0;
}

#endif
