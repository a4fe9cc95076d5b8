/* SPDX-License-Identifier: Apache-2.0 */
/* Marks by which processes find out whether they run on the same host. */
#ifndef LOOM_LIB_HOST_MARK_H
#define LOOM_LIB_HOST_MARK_H

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* If `boot` is equal, the processes share a kernel, and so memory and a clock. If all fields are equal, they also share
 * a network namespace with its loopback device. Compare marks by memcmp(). Unknown fields are 0. */
struct host_mark {
	char boot[40]; /* boot identifier of the kernel, as text; empty if unknown */
	uint64_t net_device, net_inode; /* device and inode number of the network namespace */
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
