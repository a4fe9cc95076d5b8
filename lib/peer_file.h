/* SPDX-License-Identifier: Apache-2.0 */
/* Maps a memfd of another process of this user, in the same container. */
#ifndef LOOM_LIB_PEER_FILE_H
#define LOOM_LIB_PEER_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns 1 if a path in /proc is a memfd of gpuloom. No other file is opened, whatever the other process has sent. */
static inline int peer_file_is_memfd(const char *path)
{
	static const char memfd[] = "/memfd:gpuloom";
	char target[64];
	ssize_t n = readlink(path, target, sizeof(target));
	if (n >= (ssize_t)sizeof(memfd) - 1 && !memcmp(target, memfd, sizeof(memfd) - 1))
		return 1;
	errno = n < 0 ? errno : EBADF;
	return 0;
}

/* Maps descriptor `fd` of process `pid`, through /proc. The process number may have been reused by another process, so
 * `device` and `inode` of the file are compared. Returns 0, or an errno. `path`: receives the path, for messages. */
static inline int peer_file_map(int64_t pid, int64_t fd, uint64_t device, uint64_t inode, char path[64], void **at,
				uint64_t *bytes)
{
	struct stat file;
	void *map = MAP_FAILED;
	*at = NULL;
	*bytes = 0;
	snprintf(path, 64, "/proc/%lld/fd/%lld", (long long)pid, (long long)fd);
	int mine = peer_file_is_memfd(path) ? open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1, code = errno;
	if (mine >= 0 &&
	    (fstat(mine, &file) || file.st_dev != device || file.st_ino != inode || !S_ISREG(file.st_mode) || file.st_size <= 0))
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
