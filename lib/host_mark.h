/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes run on one host. */
#ifndef LOOM_LIB_HOST_MARK_H
#define LOOM_LIB_HOST_MARK_H

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* With an equal `boot`, processes share a kernel, hence memory and clock. With all equal, they also share a network
 * with its loopback. Compare by memcmp(): unknown values are 0. */
struct host_mark {
	char boot[40]; /* text; empty: unknown */
	uint64_t net_device, net_inode; /* the network namespace */
};

static inline void host_mark_read(struct host_mark *mark)
{
	struct stat net;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	memset(mark, 0, sizeof(*mark));
	if (fd >= 0 && read(fd, mark->boot, sizeof(mark->boot) - 1) < 0)
		mark->boot[0] = 0;
	if (fd >= 0)
		close(fd);
	if (!stat("/proc/self/ns/net", &net)) {
		mark->net_device = net.st_dev;
		mark->net_inode = net.st_ino;
	}
}

#endif
