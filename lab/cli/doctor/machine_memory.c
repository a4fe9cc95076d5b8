/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "facts/environment.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
enum { CAPABILITY_IPC_LOCK = 14 };

static void lock_row(loom__doctor_fn *row, void *arg)
{
	static const char fix[] = "ulimit -l unlimited (memlock in /etc/security/limits.conf), or CAP_IPC_LOCK";
	struct rlimit limit = {0, 0};
	char found[80];
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur == RLIM_INFINITY || loom__machine_capable(CAPABILITY_IPC_LOCK)) {
		row(arg, "memory locking", "ok", "no limit", "");
		return;
	}
	snprintf(found, sizeof(found), "up to %llu KiB", (unsigned long long)limit.rlim_cur >> 10);
	row(arg, "memory locking", limit.rlim_cur ? "limited" : "no", found, fix);
}

static void transparent_row(loom__doctor_fn *row, void *arg)
{
	static const char topic[] = "transparent huge pages", path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
	char now[128] = "", why[200];
	if (loom__machine_unmounted(row, arg, topic, "/sys"))
		return;
	if (loom__fact_chosen(path, now, sizeof(now), why))
		now[0] = 0;
	int on = now[0] && strcmp(now, "never");
	row(arg, topic,
	    on       ? "ok"
	    : now[0] ? "limited"
		     : "no",
	    now[0] ? now : "the kernel has none",
	    on       ? ""
	    : now[0] ? "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
		     : "use a kernel built with CONFIG_TRANSPARENT_HUGEPAGE");
}

/* Creates a userfaultfd. Sets *how to the name of the interface that permitted it. *how is NULL if the descriptor
 * handles only faults of user code. A descriptor that also handles faults of the kernel in system calls needs more
 * privileges. */
static int open_faults(const char **how)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	*how = "system call";
	if (fd >= 0)
		return fd;
	int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	if (device >= 0) {
		fd = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
		close(device);
	}
	*how = "/dev/userfaultfd";
	if (fd >= 0)
		return fd;
	*how = NULL;
	return (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
}

static void faults_row(loom__doctor_fn *row, void *arg)
{
	/* Bit numbers of the kernel interface. Older headers lack some of the names. */
	static const struct {
		unsigned bit;
		const char *name;
	} features[] = {{0, "write-protect"}, {5, "shared memory"}, {10, "minor faults"},
			{7, "SIGBUS"},        {14, "poison"},       {16, "move"}};
	const char *how;
	int fd = open_faults(&how);
	if (fd < 0) {
		int why = errno;
		struct loom__text t = {0};
		loom__text_add(&t, "failed: %s", strerror(why));
		row(arg, "userfaultfd", "no", t.at,
		    why == ENOSYS ? "use a kernel built with CONFIG_USERFAULTFD, outside of a sandbox"
				  : "sysctl vm.unprivileged_userfaultfd=1, or let the container's "
				    "seccomp "
				    "profile pass it");
		loom__text_free(&t);
		return;
	}
	struct uffdio_api api = {.api = UFFD_API};
	struct loom__text t = {0};
	loom__text_add(&t, "%s%s", how ? "by " : "faults of user code only", how ? how : "");
	if (!ioctl(fd, UFFDIO_API, &api))
		for (size_t i = 0; i < LOOM__COUNT(features); i++)
			if (api.features >> features[i].bit & 1)
				loom__text_add(&t, ", %s", features[i].name);
	close(fd);
	row(arg, "userfaultfd", how ? "ok" : "limited", t.at,
	    how ? ""
		: "sysctl vm.unprivileged_userfaultfd=1, access to /dev/userfaultfd, or "
		  "CAP_SYS_PTRACE");
	loom__text_free(&t);
}

void loom__memory_rows(loom__doctor_fn *row, void *arg)
{
	lock_row(row, arg);
	transparent_row(row, arg);
	faults_row(row, arg);
}
