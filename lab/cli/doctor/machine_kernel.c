/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"

/* Adds a row for a system call that returned fd: "ok" with the text `good`, or "no" with the error of the kernel. */
static void call_row(loom__doctor_fn *row, void *arg, const char *topic, int fd, const char *good, const char *fix)
{
	char found[120];
	if (fd >= 0) {
		close(fd);
		row(arg, topic, "ok", good, "");
		return;
	}
	snprintf(found, sizeof(found), "failed: %s", strerror(errno));
	row(arg, topic, "no", found, fix);
}

static void pressure_row(loom__doctor_fn *row, void *arg)
{
	char line[128];
	if (loom__machine_unmounted(row, arg, "pressure (PSI)", "/proc"))
		return;
	if (loom__machine_line(line, sizeof(line), "/proc/pressure/cpu"))
		row(arg, "pressure (PSI)", "no", "not available: runs cannot detect other load",
		    "boot with psi=1, on a kernel built with CONFIG_PSI");
	else
		row(arg, "pressure (PSI)", "ok", line, "");
}

void loom__kernel_rows(loom__doctor_fn *row, void *arg)
{
	struct utsname u;
	char found[sizeof(u.sysname) + sizeof(u.release) + sizeof(u.machine) + 4];
	if (!uname(&u)) {
		snprintf(found, sizeof(found), "%s %s, %s", u.sysname, u.release, u.machine);
		row(arg, "system", "ok", found, "");
	}
	if (!loom__machine_unmounted(row, arg, "/proc", "/proc"))
		row(arg, "/proc", "ok", "mounted", "");
	if (!loom__machine_unmounted(row, arg, "/sys", "/sys"))
		row(arg, "/sys", "ok", "mounted", "");
	call_row(row, arg, "memfd", memfd_create("gpuloom-doctor", MFD_CLOEXEC), "shared memory without a name",
		 "let the container's seccomp profile pass memfd_create");
	call_row(row, arg, "pidfd", (int)syscall(SYS_pidfd_open, getpid(), 0u),
		 "dead worker processes are detected at once", "use Linux 5.3 or later, outside of a sandbox");
	pressure_row(row, arg);
}
