/* SPDX-License-Identifier: Apache-2.0 */
#include "hostmem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <numa.h>
#include <numaif.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIECE     ((uint64_t)256 << 20) /* is populated in about 0.1 s */
#include "lib/align.h"
#include "lib/fd.h"
#include "lib/memory_left.h"
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

uint64_t hostmem_page(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Binds the memory to want->node. The NUMA policy of a shared mapping belongs to the file, so it holds for all
 * processes that map the file. */
static void bind_to_node(const struct loom_host *host, const struct hostmem_want *want, void *p, uint64_t bytes)
{
	if (want->node < 0 || numa_available() < 0 || numa_max_node() < 1)
		return;
	struct bitmask *nodes = numa_allocate_nodemask();
	if (!nodes)
		return;
	numa_bitmask_setbit(nodes, (unsigned)want->node);
	if (mbind(p, bytes, MPOL_BIND, nodes->maskp, nodes->size + 1, 0) != 0)
		LOOM_LOG(host, LOOM_LOG_WARN, want->label,
			 "its memory is not bound to NUMA node %d (mbind: %s): the kernel chooses "
			 "the node",
			 want->node, strerror(errno));
	numa_free_nodemask(nodes);
}

/* Populates the pages. MAP_POPULATE would not report a lack of memory, which would then cause SIGBUS in a worker. */
static int populate_piece(int fd, char *p, uint64_t at, uint64_t bytes)
{
	while (madvise(p + at, bytes, MADV_POPULATE_WRITE) != 0) {
		if (errno == EINVAL) /* an older kernel: allocate pages in the file, without page table entries */
			return posix_fallocate(fd, (off_t)at, (off_t)bytes);
		if (errno != EINTR && errno != EAGAIN)
			return errno;
	}
	return 0;
}

/* Populates all pages. Between pieces, the core may end the call. */
static int populate(const struct loom_host *host, const struct hostmem_want *want, int fd, void *p, uint64_t bytes,
		    struct loom_error *err)
{
	for (uint64_t at = 0, n; at < bytes; at += n) {
		n = bytes - at < PIECE ? bytes - at : PIECE;
		int code = populate_piece(fd, p, at, n);
		if (code)
			return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: cannot get %" PRIu64 " KiB of shared memory: %s",
					 want->label, bytes >> 10, strerror(code));
		if (at + n < bytes && LOOM_HAS(host, progress))
			code = host->progress(host, (double)at / (double)bytes, err);
		if (code)
			return code;
	}
	return 0;
}

int hostmem_make(const struct loom_host *host, const struct hostmem_want *want, struct loom_memory *memory,
		 struct loom_error *err)
{
	if (!want->bytes || want->bytes > INT64_MAX / 2)
		return LOOM_FAIL(host, err, LOOM_EINVAL, "%s: cannot make a memory of %" PRIu64 " bytes", want->label,
				 want->bytes);
	uint64_t bytes = loom__align(want->bytes, hostmem_page());
	uint64_t left = memory_left("/proc", "/sys/fs/cgroup");
	if (bytes > left)
		return LOOM_FAIL(host, err, LOOM_ENOMEM,
				 "%s: cannot get %" PRIu64 " KiB of shared memory: %" PRIu64
				 " KiB are left, of the machine or "
				 "of the limits of this cgroup",
				 want->label, bytes >> 10, left >> 10);
	int code;
	int fd = loom_fd(memfd_create("gpuloom", MFD_CLOEXEC));
	if (fd < 0)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL, "%s: cannot make shared memory: memfd_create: %s",
				 want->label, strerror(errno));
	if (ftruncate(fd, (off_t)bytes) != 0) {
		code = errno;
		goto err_fd;
	}
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		code = errno;
		goto err_fd;
	}
	bind_to_node(host, want, p, bytes);
	code = populate(host, want, fd, p, bytes, err);
	if (code) {
		munmap(p, bytes);
		close(fd);
		return code;
	}
	*memory = (struct loom_memory){.size = sizeof(*memory), .bytes = bytes, .fd = fd, .device = -1, .host = p};
	return 0;
err_fd:
	close(fd);
	return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: cannot get %" PRIu64 " KiB of shared memory: %s", want->label,
			 bytes >> 10, strerror(code));
}

void hostmem_free(struct loom_memory *memory)
{
	if (!memory->host)
		return;
	munmap(memory->host, memory->bytes);
	close(memory->fd);
	memory->host = NULL;
	memory->fd = -1;
}
