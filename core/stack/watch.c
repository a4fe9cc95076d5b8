/* SPDX-License-Identifier: Apache-2.0 */
/* Other ranks of this host: those that die in mid-sample, of which a launcher tells the others, but the program that embeds a stack
 * may have none; and those with which this rank shares a device. */
#include <errno.h>
#include <fcntl.h>
#include <gpuloom/fd.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stack/stack.h"

#define ENGINES 8 /* of a rank */

/* A pid means a process only in its own namespace, of its own kernel; the name of an engine is one of its host. */
struct badge {
	char boot[40];
	uint64_t processes, pid;
	char engine[ENGINES][32]; /* whose processes take turns; "": none */
	uint64_t threads;  /* of workers on CPUs */
	cpu_set_t allowed; /* cores; none: not known */
	uint64_t conf;
};

static void read_badge(const struct loom_stack *s, struct badge *b)
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
	if (sched_getaffinity(0, sizeof(b->allowed), &b->allowed))
		CPU_ZERO(&b->allowed);
	for (uint32_t d = 0; d < s->layout.devices; d++)
		if (s->shape[d].kind != LOOM_ON_GPU)
			b->threads += (uint64_t)s->shape[d].workers * s->shape[d].lanes;
}

/* Ranks that may run on the same cores, as started by hand or by an MPI that binds nothing, and have more workers than
 * these: the first of them says so. */
static void look_at_cores(const struct loom_stack *s, const struct badge *all)
{
	const struct loom_host *host = &s->host.table;
	const struct badge *mine = &all[host->rank];
	unsigned cores = (unsigned)CPU_COUNT(&mine->allowed), ranks = 0;
	uint64_t threads = 0;
	for (uint32_t r = 0; r < host->ranks; r++) {
		if (memcmp(all[r].boot, mine->boot, sizeof(mine->boot)) || !CPU_EQUAL(&all[r].allowed, &mine->allowed))
			continue;
		if (r < host->rank)
			return;
		ranks++;
		threads += all[r].threads;
	}
	if (cores && ranks > 1 && threads > cores)
		LOOM_LOG(host, LOOM_LOG_WARN, "gpuloom",
			 "%u ranks have %llu workers on the same %u core%s, which they share: say workers = in [device.cpu], start them "
			 "by `gpuloom run -n %u`, or let the launcher bind them (mpirun --bind-to core)",
			 ranks, (unsigned long long)threads, cores, cores == 1 ? "" : "s", host->ranks);
}

static const char *turns_of(const struct loom_stack *s, uint32_t d, char *name, size_t size)
{
	const struct loom_device_ops *ops = s->device[d].ops;
	return LOOM_HAS(ops, time_slicing) ? ops->time_slicing(s->device[d].self, name, size) : NULL;
}

static int has_engine(const struct badge *b, const char *engine)
{
	int has = 0;
	for (uint32_t d = 0; d < ENGINES; d++)
		has |= !strncmp(b->engine[d], engine, sizeof(b->engine[d]));
	return *engine && has;
}

/* Which device is another rank's, too. */
static void find_shared(struct loom_stack *s, const struct badge *mine, const struct badge *all)
{
	const struct loom_host *host = &s->host.table;
	for (uint32_t d = 0; d < s->layout.devices && d < ENGINES; d++)
		for (uint32_t r = 0; r < host->ranks; r++)
			if (r != host->rank && !(s->shape[d].flags & LOOM_SHAPE_TIME_SLICED) && *mine->boot && !memcmp(all[r].boot, mine->boot, sizeof(mine->boot)) &&
			    has_engine(&all[r], mine->engine[d])) {
				s->shape[d].flags |= LOOM_SHAPE_TIME_SLICED;
				s->in_turns |= 1u << d; /* for when shapes are asked again */
				s->turns_with = r;
			}
}

void loom__ranks_warn(struct loom_stack *s)
{
	const struct loom_host *host = &s->host.table;
	for (uint32_t d = 0; d < s->layout.devices && !s->warned; d++) {
		char name[32] = "";
		const char *mend = s->shape[d].flags & LOOM_SHAPE_TIME_SLICED ? turns_of(s, d, name, sizeof(name)) : NULL;
		if (mend && host->rank < s->turns_with)
			LOOM_LOG(host, LOOM_LOG_WARN, s->shape[d].name,
				 "ranks %u and %u share the device at %s, which runs them in turns of milliseconds: whatever waits for "
				 "the other rank takes a turn each time; give each rank a device of its own, or %s",
				 host->rank, s->turns_with, name, mend);
	}
	s->warned = 1;
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
	read_badge(s, &mine);
	for (uint32_t d = 0; d < s->layout.devices && d < ENGINES; d++)
		(void)turns_of(s, d, mine.engine[d], sizeof(mine.engine[d]));
	mine.conf = loom__ranks_conf(s);
	int rc = host->allgather(host, &mine, all, sizeof(mine), err);
	if (!rc && *mine.boot)
		look_at_cores(s, all);
	for (uint32_t r = 0; r < host->ranks; r++) {
		if (!rc && all[r].conf != all[0].conf)
			rc = LOOM__FAIL(err, LOOM_EINVAL, "rank %u has selected other plug-ins than rank 0: do all run the same conf?", r);
		int known = !rc && mine.pid && all[r].pid != mine.pid && all[r].pid - 1 < INT_MAX && all[r].processes == mine.processes &&
			    !memcmp(all[r].boot, mine.boot, sizeof(mine.boot));
		/* poll() skips a negative one: a rank of another host, or one that may not be looked at. */
		s->watch[r].fd = known ? loom_fd((int)syscall(SYS_pidfd_open, (pid_t)all[r].pid, 0)) : -1;
		s->watch[r].events = POLLIN;
		if (known && s->watch[r].fd < 0 && errno == ESRCH)
			rc = LOOM__FAIL(err, LOOM_EDIED, "rank %u has died", r);
	}
	if (!rc)
		find_shared(s, &mine, all);
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
