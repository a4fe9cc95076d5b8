/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware counters of a victim in user mode, with perf events: misses of the first data cache, and mispredicted
 * branches. */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "requests.h"

static int open_event(pid_t pid, uint32_t which)
{
	static const struct {
		uint32_t type;
		uint64_t config;
	} event[REQUEST_EVENTS] = {
	    [REQUEST_INSTRUCTIONS] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	    [REQUEST_L1D_MISSES] = {PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8 |
							    PERF_COUNT_HW_CACHE_RESULT_MISS << 16},
	    [REQUEST_BRANCH_MISSES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
	};
	struct perf_event_attr a = {.size = sizeof(a),
				    .type = event[which].type,
				    .config = event[which].config,
				    .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
				    .inherit = 1,
				    .exclude_kernel = 1,
				    .exclude_hv = 1};
	return (int)syscall(SYS_perf_event_open, &a, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int request_counters_open(pid_t pid, int fd[REQUEST_EVENTS])
{
	int failed = 0;
	for (uint32_t i = 0; i < REQUEST_EVENTS; i++) {
		fd[i] = failed ? -1 : open_event(pid, i);
		failed = fd[i] < 0 && !failed ? errno : failed;
	}
	if (failed)
		request_counters_close(fd);
	return failed;
}

void request_counters_close(int fd[REQUEST_EVENTS])
{
	for (uint32_t i = 0; i < REQUEST_EVENTS; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
		fd[i] = -1;
	}
}

/* If the hardware has fewer counters than there are events, the kernel counts the events in turns. A count then
 * covers only a part of the time, and is scaled to the whole time. */
int request_counters_read(const int fd[REQUEST_EVENTS], double count[REQUEST_EVENTS])
{
	for (uint32_t i = 0; i < REQUEST_EVENTS; i++) {
		uint64_t v[3]; /* count, time enabled, time running */
		if (read(fd[i], v, sizeof(v)) != (ssize_t)sizeof(v) || !v[2])
			return -1;
		count[i] = (double)v[0] * (double)v[1] / (double)v[2];
	}
	return 0;
}

int request_counters_check(const struct request_job *j, struct loom_error *err)
{
	int fd[REQUEST_EVENTS], code = request_counters_open(0, fd);
	if (!code)
		request_counters_close(fd);
	return code ? LOOM_FAIL(j->host, err, LOOM_EUNAVAIL,
				"%s: victim_counters: this machine lets a process count no cache misses and branches (%s)%s",
				j->name, strerror(code),
				code == EACCES || code == EPERM
				    ? ": sysctl kernel.perf_event_paranoid=2 or less allows it"
				    : ": it has no such counters, as most virtual machines")
		    : 0;
}
