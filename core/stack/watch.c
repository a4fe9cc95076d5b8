/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the other ranks of this host. Detects the death of a rank during a sample, because an embedding program may
 * have no launcher that reports it. Also finds ranks that share a device or cores with this rank. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stack/stack.h"
#include "lib/peer.h"

#define ENGINES 8 /* limit on the devices of a rank that are compared */

/* What each rank tells the others about itself. The name of an engine is valid only on its host. */
struct identity {
	struct peer process;
	char engine[ENGINES][32]; /* hardware that runs kernels of processes in turns, by device; "": none */
	uint64_t threads;  /* number of threads that run workers on CPUs */
	cpu_set_t allowed; /* cores on which the process may run; empty if unknown */
	uint64_t conf;     /* digest by loom__ranks_conf() */
};

static void identify(const struct loom_stack *s, struct identity *b)
{
	memset(b, 0, sizeof(*b));
	peer_read(&b->process);
	if (sched_getaffinity(0, sizeof(b->allowed), &b->allowed))
		CPU_ZERO(&b->allowed);
	for (uint32_t d = 0; d < s->layout.devices; d++)
		if (s->shape[d].kind != LOOM_ON_GPU)
			b->threads += (uint64_t)s->shape[d].workers * s->shape[d].lanes;
}

/* Warns if ranks have more workers than cores, because no launcher has bound them to different cores. Only the first of
 * these ranks warns. */
static void warn_of_shared_cores(const struct loom_stack *s, const struct identity *all)
{
	const struct loom_host *host = &s->host.table;
	const struct identity *mine = &all[host->rank];
	unsigned cores = (unsigned)CPU_COUNT(&mine->allowed), ranks = 0;
	uint64_t threads = 0;
	for (uint32_t r = 0; r < host->ranks; r++) {
		if (!peer_is_on_host(&all[r].process, &mine->process) || !CPU_EQUAL(&all[r].allowed, &mine->allowed))
			continue;
		if (r < host->rank)
			return;
		ranks++;
		threads += all[r].threads;
	}
	if (cores && ranks > 1 && threads > cores)
		LOOM_LOG(host, LOOM_LOG_WARN, "gpuloom", "%u ranks have %llu workers on the same %u core%s, which they share: %s",
			 ranks, (unsigned long long)threads, cores, cores == 1 ? "" : "s",
			 ranks > cores ? "start fewer ranks, or give them more cores"
				       : "set workers = in [device.cpu], start the ranks by `gpuloom run -n`, or let the launcher "
					 "bind them (mpirun --bind-to core)");
}

static const char *time_slicing_of(const struct loom_stack *s, uint32_t d, char *name, size_t size)
{
	const struct loom_device_hardware *hardware = s->device[d].hardware;
	return LOOM_HAS(hardware, time_slicing) ? hardware->time_slicing(s->device[d].self, name, size) : NULL;
}

static int has_engine(const struct identity *b, const char *engine)
{
	int has = 0;
	for (uint32_t d = 0; d < ENGINES; d++)
		has |= !strncmp(b->engine[d], engine, sizeof(b->engine[d]));
	return *engine && has;
}

/* Finds the devices of this rank that other ranks also use. */
static void find_shared(struct loom_stack *s, const struct identity *mine, const struct identity *all)
{
	const struct loom_host *host = &s->host.table;
	for (uint32_t d = 0; d < s->layout.devices && d < ENGINES; d++)
		for (uint32_t r = 0; r < host->ranks; r++)
			if (r != host->rank && !(s->shape[d].flags & LOOM_SHAPE_TIME_SLICED) &&
			    peer_is_on_host(&all[r].process, &mine->process) && has_engine(&all[r], mine->engine[d])) {
				s->shape[d].flags |= LOOM_SHAPE_TIME_SLICED;
				s->watch.in_turns |= 1u << d; /* loom__stack_shape() sets the flag again */
				s->watch.turns_with = r;
			}
}

void loom__ranks_warn(struct loom_stack *s)
{
	const struct loom_host *host = &s->host.table;
	for (uint32_t d = 0; d < s->layout.devices && !s->watch.warned; d++) {
		char name[32] = "";
		const char *fix = s->shape[d].flags & LOOM_SHAPE_TIME_SLICED ? time_slicing_of(s, d, name, sizeof(name)) : NULL;
		if (fix && host->rank < s->watch.turns_with)
			LOOM_LOG(host, LOOM_LOG_WARN, s->shape[d].name,
				 "ranks %u and %u share the device at %s, which runs them in turns of milliseconds: each wait for "
				 "the other rank takes a turn; give each rank a device of its own, or %s",
				 host->rank, s->watch.turns_with, name, fix);
	}
	s->watch.warned = 1;
}

int loom__watch_rank(struct loom_stack *s, uint32_t r, const struct peer *process, struct pollfd *watch,
		     struct loom_error *err)
{
	*watch = (struct pollfd){.fd = peer_watch(process), .events = POLLIN};
	if (watch->fd < 0 && errno == ESRCH) {
		loom__exchange_close(&s->host.exchange);
		return LOOM__FAIL(err, LOOM_EDIED, "rank %u has died", r);
	}
	if (watch->fd < 0)
		LOOM_LOG(&s->host.table, LOOM_LOG_WARN, "gpuloom",
			 "process %d, rank %u, cannot be watched (pidfd_open: %s): if it dies, this is noticed at the "
			 "end of [run] timeout", (int)process->pid, r, strerror(errno));
	return 0;
}

static int watch_all(struct loom_stack *s, struct identity *all, struct loom_error *err)
{
	const struct loom_host *host = &s->host.table;
	struct identity mine;
	identify(s, &mine);
	for (uint32_t d = 0; d < s->layout.devices && d < ENGINES; d++)
		(void)time_slicing_of(s, d, mine.engine[d], sizeof(mine.engine[d]));
	mine.conf = loom__ranks_conf(s);
	int rc = host->allgather(host, &mine, all, sizeof(mine), err);
	if (rc)
		return rc;
	warn_of_shared_cores(s, all);
	for (uint32_t r = 0; r < host->ranks; r++) {
		if (all[r].conf != all[0].conf)
			return LOOM__FAIL(err, LOOM_EINVAL,
			    "rank %u has selected other plug-ins than rank 0: start all ranks with the same conf", r);
		if (all[r].process.pid != mine.process.pid && peer_is_near(&mine.process, &all[r].process))
			rc = rc ? rc : loom__watch_rank(s, r, &all[r].process, &s->watch.process[r], err);
	}
	find_shared(s, &mine, all);
	return rc;
}

int loom__ranks_watch(struct loom_stack *s, struct loom_error *err)
{
	uint32_t ranks = s->host.table.ranks;
	if (ranks == 1 || s->host.table.job || s->watch.process)
		return 0;
	struct identity *all = calloc(ranks, sizeof(*all));
	s->watch.process = calloc(ranks, sizeof(*s->watch.process));
	for (uint32_t r = 0; s->watch.process && r < ranks; r++)
		s->watch.process[r].fd = -1; /* poll() skips it */
	int rc = all && s->watch.process ? watch_all(s, all, err) : LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	free(all);
	if (rc)
		loom__ranks_unwatch(s);
	return rc;
}

int loom__ranks_lost(struct loom_stack *s, struct loom_error *err)
{
	uint32_t ranks = s->watch.process ? s->host.table.ranks : 0;
	if (!ranks || poll(s->watch.process, ranks, 0) <= 0)
		return 0;
	for (uint32_t r = 0; r < ranks; r++)
		if (s->watch.process[r].revents & POLLIN) {
			loom__exchange_close(&s->host.exchange);
			return LOOM__FAIL(err, LOOM_EDIED, "rank %u has died", r);
		}
	return 0;
}

void loom__ranks_unwatch(struct loom_stack *s)
{
	for (uint32_t r = 0; s->watch.process && r < s->host.table.ranks; r++)
		if (s->watch.process[r].fd >= 0)
			close(s->watch.process[r].fd);
	free(s->watch.process);
	s->watch.process = NULL;
}
