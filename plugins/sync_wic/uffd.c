/* SPDX-License-Identifier: Apache-2.0 */
#include "uffd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/fd.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

int uffd_open(enum uffd_kind kind)
{
	int fd = loom_fd((int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
	if (fd < 0)
		return -errno;
	struct uffdio_api api = {.api = UFFD_API, .features = kind == UFFD_MINOR ? UFFD_FEATURE_MINOR_SHMEM : 0};
	if (ioctl(fd, UFFDIO_API, &api) != 0) {
		int code = errno;
		close(fd);
		return -code;
	}
	return fd;
}

const char *uffd_advice(int code)
{
	switch (code) {
	case EPERM:
	case EACCES:
		return "a sandbox forbids it: allow the system call userfaultfd in the seccomp profile of "
		       "the container";
	case ENOSYS:
		return "the kernel has none, or a sandbox hides it: use a kernel with CONFIG_USERFAULTFD and "
		       "allow the system call userfaultfd";
	case EINVAL:
		return "the kernel is too old: mode = copy needs Linux 5.11, mode = in_place Linux 5.14";
	case EMFILE:
	case ENFILE:
		return "too many open files: raise the limit (ulimit -n), or lower shards";
	default:
		return "see userfaultfd(2)";
	}
}

int uffd_register(int fd, void *at, uint64_t bytes, enum uffd_kind kind)
{
	struct uffdio_register r = {.range = {.start = (uintptr_t)at, .len = bytes},
				    .mode =
					kind == UFFD_MINOR ? UFFDIO_REGISTER_MODE_MINOR : UFFDIO_REGISTER_MODE_MISSING};
	return ioctl(fd, UFFDIO_REGISTER, &r) ? -errno : 0;
}

/* The kernel may place only a part of a range, if a page is placed already or if the mapping changes meanwhile. In this
 * case it returns EAGAIN and the number of bytes placed. */
int uffd_copy(int fd, uint64_t to, const void *from, uint64_t bytes, int wake)
{
	for (uint64_t done = 0; done < bytes;) {
		struct uffdio_copy copy = {.dst = to + done,
					   .src = (uintptr_t)from + done,
					   .len = bytes - done,
					   .mode = wake ? 0 : UFFDIO_COPY_MODE_DONTWAKE};
		if (ioctl(fd, UFFDIO_COPY, &copy) == 0)
			return 0;
		if (errno != EAGAIN)
			return -errno;
		if (copy.copy > 0)
			done += (uint64_t)copy.copy;
	}
	return 0;
}

int uffd_continue(int fd, uint64_t to, uint64_t bytes, int wake)
{
	for (uint64_t done = 0; done < bytes;) {
		struct uffdio_continue go = {.range = {.start = to + done, .len = bytes - done},
					     .mode = wake ? 0 : UFFDIO_CONTINUE_MODE_DONTWAKE};
		if (ioctl(fd, UFFDIO_CONTINUE, &go) == 0)
			return 0;
		if (errno != EAGAIN)
			return -errno;
		if (go.mapped > 0)
			done += (uint64_t)go.mapped;
	}
	return 0;
}

int uffd_zero(int fd, uint64_t to, uint64_t bytes)
{
	struct uffdio_zeropage zero = {.range = {.start = to, .len = bytes}};
	while (ioctl(fd, UFFDIO_ZEROPAGE, &zero) != 0)
		if (errno != EAGAIN)
			return -errno;
	return 0;
}

int uffd_wake(int fd, uint64_t to, uint64_t bytes)
{
	struct uffdio_range range = {.start = to, .len = bytes};
	return ioctl(fd, UFFDIO_WAKE, &range) ? -errno : 0;
}
