/* SPDX-License-Identifier: Apache-2.0 */
#include "cores.h"

#include <errno.h>
#include <fcntl.h>
#include <gpuloom/fd.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../shared/child/cores_list.h"

/* ---- sets ----------------------------------------------------------------------------------- */

int cores_parse(const char *text, struct cores_set *set)
{
	return cores_list(text, set->part, sizeof(set->part)) || !cores_weight(set) ? -1 : 0;
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
			at +=
			    (size_t)snprintf(text + at, size - at, "%s%u-%u", comma, from, to - 1);
	}
}

int cores_allowed(struct cores_set *set)
{
	memset(set, 0, sizeof(*set));
	/* What the control group allows, less what taskset took away from this thread. */
	return sched_getaffinity(0, sizeof(set->part), set->part) ? errno : 0;
}

/* ---- the topology, as /sys tells it --------------------------------------------------------- */

#define CPUS  "/sys/devices/system/cpu/cpu%u/topology/%s"
#define NODES "/sys/devices/system/node/"

/* -1: it cannot be read, or is no list. */
static int read_list(const char *path, struct cores_set *set)
{
	char text[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	do
		n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	while (fd >= 0 && n < 0 && errno == EINTR);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return -1;
	text[n] = 0;
	return cores_parse(text, set);
}

/* The first of those that share something with `cpu`; `otherwise` where that is not known. */
static unsigned first_of(unsigned cpu, const char *what, unsigned otherwise)
{
	char path[96];
	struct cores_set set;
	unsigned first = 0;
	snprintf(path, sizeof(path), CPUS, cpu, what);
	if (read_list(path, &set))
		return otherwise;
	while (!cores_has(&set, first))
		first++;
	return first;
}

static int in_order(const void *a, const void *b)
{
	const struct cores_unit *x = a, *y = b;
	return x->package != y->package ? (x->package > y->package) - (x->package < y->package)
	       : x->node != y->node     ? (x->node > y->node) - (x->node < y->node)
	       : x->core != y->core     ? (x->core > y->core) - (x->core < y->core)
					: (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

uint32_t cores_units(const struct cores_set *set, struct cores_unit *unit)
{
	uint32_t n = 0;
	struct cores_set nodes, of;
	for (unsigned cpu = 0; cpu < CORES_MOST; cpu++)
		if (cores_has(set, cpu))
			unit[n++] =
			    (struct cores_unit){.cpu = cpu,
						.core = first_of(cpu, "thread_siblings_list", cpu),
						.package = first_of(cpu, "core_siblings_list", 0)};
	int known = !read_list(NODES "online", &nodes);
	for (unsigned node = 0; known && node < CORES_MOST; node++) {
		char path[64];
		snprintf(path, sizeof(path), NODES "node%u/cpulist", node);
		if (!cores_has(&nodes, node) || read_list(path, &of))
			continue;
		for (uint32_t i = 0; i < n; i++)
			if (cores_has(&of, unit[i].cpu))
				unit[i].node = node;
	}
	qsort(unit, n, sizeof(*unit), in_order);
	return n;
}

/* ---- an instance's cores -------------------------------------------------------------------- */

/* Instance i's share: contiguous in the topology. Splits between physical cores when there are
 * enough of them, so that two devices do not compete for one as hyper-threads. */
static int share(const struct loom_host *host, const struct cores_want *want, struct cores *c,
		 const struct cores_unit *unit, uint32_t all, struct loom_error *err)
{
	if (all < want->instances && !want->oversubscribe)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "%s: %u devices on %u core%s: name fewer in [run] devices, or say "
				 "oversubscribe = yes in [device.cpu]",
				 want->who, want->instances, all, all == 1 ? "" : "s");
	if (want->instance >= want->instances)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "%s: [run] devices names %u of this kind: number them from 0 on, or say cores = in "
				 "[device.cpu.%u]",
				 want->who, want->instances, want->instance);
	uint32_t whole = 0;
	for (uint32_t i = 0; i < all; i++)
		whole += !i || unit[i].core != unit[i - 1].core;
	int split = whole < want->instances; /* physical cores, too */
	uint64_t units = split ? all : whole, i = want->instance, of = want->instances;
	c->shared = units < of; /* several devices take the same unit */
	uint64_t from = units >= of ? i * units / of : i % units;
	uint64_t to = units >= of ? (i + 1) * units / of : from + 1;
	for (uint64_t k = 0, at = 0; k < all; k++) {
		at += k && (split || unit[k].core != unit[k - 1].core);
		if (at >= from && at < to)
			cores_add(&c->set, unit[k].cpu);
	}
	return 0;
}

static int explicit_set(const struct loom_host *host, const struct cores_want *want,
			struct cores *c, const struct cores_set *allowed, struct loom_error *err)
{
	if (cores_parse(want->cores, &c->set))
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "%s: cores = '%s' is not a list of cores, as in 0-3,8", want->who,
				 want->cores);
	c->shared = want->instances > 1 && want->oversubscribe; /* we see no other's cores = */
	unsigned cpu = 0;
	while (cpu < CORES_MOST && (!cores_has(&c->set, cpu) || cores_has(allowed, cpu)))
		cpu++;
	if (cpu == CORES_MOST)
		return 0;
	char text[256];
	cores_print(allowed, text, sizeof(text));
	return LOOM_FAIL(
	    host, err, LOOM_EINVAL,
	    "%s: cores = '%s', but this process may run on %s only: choose among these, or "
	    "widen its control group or affinity",
	    want->who, want->cores, text);
}

/* The cores of the set in the order of the topology, which need not be that of their numbers. */
static int list(const struct loom_host *host, struct cores *c, const struct cores_unit *unit,
		uint32_t all)
{
	c->cpu = host->alloc(host, cores_weight(&c->set) * sizeof(*c->cpu));
	if (!c->cpu)
		return LOOM_ENOMEM;
	for (uint32_t i = 0; i < all; i++) {
		if (!cores_has(&c->set, unit[i].cpu))
			continue;
		c->node = !c->count || c->node == (int)unit[i].node ? (int)unit[i].node : -1;
		c->cpu[c->count++] = unit[i].cpu;
	}
	cores_print(&c->set, c->text, sizeof(c->text));
	return 0;
}

int cores_find(const struct loom_host *host, const struct cores_want *want, struct cores *cores,
	       struct loom_error *err)
{
	struct cores c = {0};
	struct cores_set allowed;
	int failed = cores_allowed(&allowed), code = 0;
	if (failed)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				 "%s: cannot read which cores it may use: %s", want->who,
				 strerror(failed));
	struct cores_unit *unit = host->alloc(host, cores_weight(&allowed) * sizeof(*unit));
	if (!unit)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", want->who);
	uint32_t all = cores_units(&allowed, unit);
	code = *want->cores ? explicit_set(host, want, &c, &allowed, err)
			    : share(host, want, &c, unit, all, err);
	if (!code && list(host, &c, unit, all))
		code = LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", want->who);
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

/* Workers of this process by core. Stacks do not know each other: two with one worker each would
 * share one. Nor do processes, as ranks of an MPI that binds them to nothing: each claims its cores by
 * a socket's name in the abstract namespace, which ends with the process and leaves no file. */
static struct {
	pthread_mutex_t lock;
	struct {
		uint32_t workers;
		int claim; /* its socket, or none where workers == 0 or no other core was free; + 1 */
	} core[4096];
} taken = {.lock = PTHREAD_MUTEX_INITIALIZER};
#define TAKEN(cpu) (&taken.core[(cpu) % (sizeof(taken.core) / sizeof(taken.core[0]))])

/* Whether the core is this process's from now on. Only a wish: where there are no sockets no core is. */
static int claim(unsigned cpu)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "gpuloom.core.%u", cpu);
	if (TAKEN(cpu)->claim)
		return 1;
	int fd = loom_fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return 0;
	if (bind(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n))) {
		close(fd);
		return 0;
	}
	TAKEN(cpu)->claim = fd + 1;
	return 1;
}

uint32_t cores_take(const struct cores *c, uint32_t from)
{
	uint32_t best = c->cpu[from % c->count];
	pthread_mutex_lock(&taken.lock);
	for (uint32_t i = 1; i < c->count; i++) {
		uint32_t cpu = c->cpu[(from + i) % c->count];
		if (TAKEN(cpu)->workers < TAKEN(best)->workers)
			best = cpu;
	}
	/* Of those with as few workers the first that no other process has; else that one. */
	for (uint32_t i = 0, few = TAKEN(best)->workers; i < c->count; i++) {
		uint32_t cpu = c->cpu[(from + i) % c->count];
		if (TAKEN(cpu)->workers == few && claim(cpu)) {
			best = cpu;
			break;
		}
	}
	TAKEN(best)->workers++;
	pthread_mutex_unlock(&taken.lock);
	return best;
}

void cores_give_back(uint32_t cpu)
{
	pthread_mutex_lock(&taken.lock);
	if (!--TAKEN(cpu)->workers && TAKEN(cpu)->claim) {
		close(TAKEN(cpu)->claim - 1);
		TAKEN(cpu)->claim = 0;
	}
	pthread_mutex_unlock(&taken.lock);
}
