/* SPDX-License-Identifier: Apache-2.0 */
#include "cores.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/cpu_list.h"
#include "lib/fd.h"

/* ---- sets ----------------------------------------------------------------------------------- */

int cores_parse(const char *text, struct cores_set *set)
{
	return loom__cpu_list(text, set->part, sizeof(set->part)) || !cores_weight(set) ? -1 : 0;
}

void cores_print(const struct cores_set *set, char *text, size_t size)
{
	size_t at = 0;
	*text = 0;
	for (unsigned from = 0, to; from < CORES_MOST && at < size; from = to + 1) {
		for (to = from; to < CORES_MOST && cores_has(set, to); to++)
			;
		if (to == from)
			continue;
		const char *comma = at ? "," : "";
		if (to == from + 1)
			at += (size_t)snprintf(text + at, size - at, "%s%u", comma, from);
		else
			at += (size_t)snprintf(text + at, size - at, "%s%u-%u", comma, from, to - 1);
	}
}

int cores_allowed(struct cores_set *set)
{
	memset(set, 0, sizeof(*set));
	/* The set has the CPUs that the control group and the affinity of this thread allow. */
	return sched_getaffinity(0, sizeof(set->part), set->part) ? errno : 0;
}

uint32_t cores_units(const struct cores_set *set, struct loom_machine_cpu *unit)
{
	uint32_t n = 0;
	for (unsigned cpu = 0; cpu < CORES_MOST; cpu++)
		if (cores_has(set, cpu))
			unit[n++] = (struct loom_machine_cpu){.cpu = cpu};
	loom_machine_place(unit, n);
	return n;
}

/* ---- an instance's cores -------------------------------------------------------------------- */

/* Computes the share of one instance in all allowed cores. */
static int share(const struct loom_host *host, const struct cores_want *want, struct cores *c,
		 const struct loom_machine_cpu *unit, uint32_t all, struct loom_error *err)
{
	if (all < want->instances && !want->oversubscribe)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "%s: %u devices on %u core%s: name fewer in [run] devices, or set oversubscribe = yes "
				 "in [device.cpu]",
				 want->label, want->instances, all, all == 1 ? "" : "s");
	if (want->instance >= want->instances)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "%s: [run] devices names %u of this kind: number them from 0 on, or set cores in "
				 "[device.cpu.%u]",
				 want->label, want->instances, want->instance);
	uint32_t from, to;
	c->shared = loom_machine_share(unit, all, want->instance, want->instances, &from, &to);
	for (; from < to; from++)
		cores_add(&c->set, unit[from].cpu);
	return 0;
}

static int explicit_set(const struct loom_host *host, const struct cores_want *want, struct cores *c,
			const struct cores_set *allowed, struct loom_error *err)
{
	if (cores_parse(want->cores, &c->set))
		return LOOM_FAIL(host, err, LOOM_EINVAL, "%s: cores = '%s' is not a list of cores, as in 0-3,8",
				 want->label, want->cores);
	c->shared = want->instances > 1 && want->oversubscribe; /* the `cores` of other instances are unknown here */
	unsigned cpu = 0;
	while (cpu < CORES_MOST && (!cores_has(&c->set, cpu) || cores_has(allowed, cpu)))
		cpu++;
	if (cpu == CORES_MOST)
		return 0;
	char text[256];
	cores_print(allowed, text, sizeof(text));
	return LOOM_FAIL(host, err, LOOM_EINVAL,
			 "%s: cores = '%s', but this process may run on %s only: choose among these, or "
			 "widen its control group or affinity",
			 want->label, want->cores, text);
}

/* Returns the index of unit i among the hyper-threads of its physical core that are in the set. */
static uint32_t thread_of(const struct cores *c, const struct loom_machine_cpu *unit, uint32_t i)
{
	uint32_t before = 0;
	for (uint32_t k = i; k > 0 && unit[k - 1].core == unit[i].core; k--)
		before += (uint32_t)cores_has(&c->set, unit[k - 1].cpu);
	return before;
}

static int list(const struct loom_host *host, struct cores *c, const struct loom_machine_cpu *unit, uint32_t all)
{
	uint32_t want = cores_weight(&c->set);
	c->cpu = host->alloc(host, want * sizeof(*c->cpu));
	if (!c->cpu)
		return LOOM_ENOMEM;
	for (uint32_t thread = 0; c->count < want && thread < all; thread++)
		for (uint32_t i = 0; i < all; i++) {
			if (!cores_has(&c->set, unit[i].cpu) || thread_of(c, unit, i) != thread)
				continue;
			c->node = !c->count || c->node == (int)unit[i].node ? (int)unit[i].node : -1;
			c->cpu[c->count++] = unit[i];
		}
	cores_print(&c->set, c->text, sizeof(c->text));
	return 0;
}

int cores_find(const struct loom_host *host, const struct cores_want *want, struct cores *cores, struct loom_error *err)
{
	struct cores c = {0};
	struct cores_set allowed;
	int failed = cores_allowed(&allowed), code = 0;
	if (failed)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL, "%s: cannot read which cores it may use: %s", want->label,
				 strerror(failed));
	struct loom_machine_cpu *unit = host->alloc(host, cores_weight(&allowed) * sizeof(*unit));
	if (!unit)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", want->label);
	uint32_t all = cores_units(&allowed, unit);
	code = *want->cores ? explicit_set(host, want, &c, &allowed, err) : share(host, want, &c, unit, all, err);
	if (!code && list(host, &c, unit, all))
		code = LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", want->label);
	host->free(host, unit);
	if (!code)
		*cores = c;
	return code;
}

void cores_finish(const struct loom_host *host, struct cores *cores)
{
	host->free(host, cores->cpu);
	*cores = (struct cores){0};
}

/* Number of workers of this process on each core. Without it, two stacks with a worker each would choose the same core.
 * Other processes are unrelated runs, or ranks of an MPI that does not bind them, and would also choose that core. So
 * each process claims a core by binding a socket to a name in the abstract namespace. The kernel releases the name when
 * the process ends, for whatever reason, and no file remains. The claim is only a hint between processes of one network
 * namespace. A process that takes all names only makes others share cores. */
static struct {
	pthread_mutex_t lock;
	struct {
		uint32_t workers;
		int claim; /* 1 + the claim's socket; 0: no claim, because workers is 0 or all names were taken */
	} core[CORES_MOST];
} taken = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Binds a socket to the name of a core. With `other`, connects to the socket that is bound to the name, if there is
 * one. Returns the socket, or -1. */
static int name_core(unsigned cpu, int other)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "gpuloom.core.%u", cpu);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	int fd = loom_fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return -1;
	if (other ? connect(fd, (struct sockaddr *)&name, size) : bind(fd, (struct sockaddr *)&name, size)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Claims the core for this process. Returns 1 on success. The claim fails, too, if sockets cannot be made. */
static int claim(unsigned cpu)
{
	if (!taken.core[cpu].claim)
		taken.core[cpu].claim = name_core(cpu, 0) + 1;
	return taken.core[cpu].claim != 0;
}

/* Returns 1 if another hyper-thread of the same physical core, which is in the set, has a worker of any process. */
static int has_neighbour(const struct cores *c, const struct loom_machine_cpu *of)
{
	for (uint32_t i = 0; i < c->count; i++) {
		const struct loom_machine_cpu *one = &c->cpu[i];
		if (one->core != of->core || one->cpu == of->cpu)
			continue;
		int other = taken.core[one->cpu].workers ? -1 : name_core(one->cpu, 1);
		if (other >= 0)
			close(other);
		if (other >= 0 || taken.core[one->cpu].workers)
			return 1;
	}
	return 0;
}

uint32_t cores_take(const struct cores *c, uint32_t from, int *crowded)
{
	uint32_t best = c->cpu[from % c->count].cpu;
	pthread_mutex_lock(&taken.lock);
	for (uint32_t i = 1; i < c->count; i++) {
		uint32_t cpu = c->cpu[(from + i) % c->count].cpu;
		if (taken.core[cpu].workers < taken.core[best].workers)
			best = cpu;
	}
	int found = 0;
	for (int whole = 1; whole >= 0; whole--) /* first search for a free physical core, then for a free hyper-thread */
		for (uint32_t i = 0, few = taken.core[best].workers; i < c->count && !found; i++) {
			const struct loom_machine_cpu *one = &c->cpu[(from + i) % c->count];
			if (taken.core[one->cpu].workers != few || (whole && (few || has_neighbour(c, one))) ||
			    !claim(one->cpu))
				continue;
			best = one->cpu;
			found = 1;
		}
	*crowded = !found;
	taken.core[best].workers++;
	pthread_mutex_unlock(&taken.lock);
	return best;
}

void cores_give_back(uint32_t cpu)
{
	pthread_mutex_lock(&taken.lock);
	if (!--taken.core[cpu].workers && taken.core[cpu].claim) {
		close(taken.core[cpu].claim - 1);
		taken.core[cpu].claim = 0;
	}
	pthread_mutex_unlock(&taken.lock);
}
