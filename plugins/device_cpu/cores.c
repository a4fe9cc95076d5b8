/* SPDX-License-Identifier: Apache-2.0 */
#include "cores.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int cores_topology(hwloc_topology_t *topology, hwloc_bitmap_t allowed)
{
	if (hwloc_topology_init(topology) != 0)
		return errno ? errno : ENOMEM;
	/* Caches, buses and devices cost time to find and serve nothing here. */
	hwloc_topology_set_all_types_filter(*topology, HWLOC_TYPE_FILTER_KEEP_NONE);
	hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
	hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
	if (hwloc_topology_load(*topology) != 0) {
		int code = errno ? errno : EIO;
		hwloc_topology_destroy(*topology);
		return code;
	}
	/* What the control group allows, less what taskset took away from this thread. */
	hwloc_bitmap_copy(allowed, hwloc_topology_get_allowed_cpuset(*topology));
	hwloc_bitmap_t bound = hwloc_bitmap_alloc();
	if (bound && hwloc_get_cpubind(*topology, bound, HWLOC_CPUBIND_THREAD) == 0)
		hwloc_bitmap_and(allowed, allowed, bound);
	hwloc_bitmap_free(bound);
	return 0;
}

/* Instance i's share: contiguous in the topology. Splits between physical cores when there are
 * enough of them, so that two devices do not compete for one as hyper-threads. */
static int share(const struct loom_host *host, const struct cores_want *want, struct cores *c,
		 hwloc_const_bitmap_t allowed, struct loom_error *err)
{
	uint32_t all = (uint32_t)hwloc_bitmap_weight(allowed);
	if (all < want->instances && !want->oversubscribe)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "%s: %u devices on %u core%s: name fewer in [run] devices, or say "
				 "oversubscribe = yes in [device.cpu]",
				 want->who, want->instances, all, all == 1 ? "" : "s");
	int depth = hwloc_get_type_or_below_depth(c->topology, HWLOC_OBJ_CORE);
	int n = hwloc_get_nbobjs_inside_cpuset_by_depth(c->topology, allowed, depth);
	if (n < (int)want->instances) {
		depth = hwloc_get_type_depth(c->topology, HWLOC_OBJ_PU);
		n = (int)all;
	}
	c->shared = n < (int)want->instances; /* several devices take the same unit */
	uint64_t units = (uint64_t)n, i = want->instance, of = want->instances;
	uint64_t from = units >= of ? i * units / of : i % units;
	uint64_t to = units >= of ? (i + 1) * units / of : from + 1;
	for (uint64_t at = from; at < to; at++) {
		hwloc_obj_t unit =
		    hwloc_get_obj_inside_cpuset_by_depth(c->topology, allowed, depth, (unsigned)at);
		hwloc_bitmap_or(c->set, c->set, unit->cpuset);
	}
	return 0;
}

static int explicit_set(const struct loom_host *host, const struct cores_want *want,
			struct cores *c, hwloc_const_bitmap_t allowed, struct loom_error *err)
{
	if (strspn(want->cores, "0123456789,- ") != strlen(want->cores) ||
	    hwloc_bitmap_list_sscanf(c->set, want->cores) != 0 || hwloc_bitmap_weight(c->set) < 1)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "%s: cores = '%s' is not a list of cores, as in 0-3,8", want->who,
				 want->cores);
	c->shared = want->instances > 1 && want->oversubscribe; /* we see no other's cores = */
	if (hwloc_bitmap_isincluded(c->set, allowed))
		return 0;
	char text[256];
	hwloc_bitmap_list_snprintf(text, sizeof(text), allowed);
	return LOOM_FAIL(
	    host, err, LOOM_EINVAL,
	    "%s: cores = '%s', but this process may run on %s only: choose among these, or "
	    "widen its control group or affinity",
	    want->who, want->cores, text);
}

/* The cores of the set in the order of the topology, which need not be that of their numbers. */
static int list(const struct loom_host *host, struct cores *c)
{
	c->count = (uint32_t)hwloc_bitmap_weight(c->set);
	c->cpu = host->alloc(host, c->count * sizeof(*c->cpu));
	if (!c->cpu)
		return LOOM_ENOMEM;
	uint32_t n = 0;
	for (hwloc_obj_t pu = NULL;
	     (pu = hwloc_get_next_obj_by_type(c->topology, HWLOC_OBJ_PU, pu)) != NULL;)
		if (hwloc_bitmap_isset(c->set, pu->os_index))
			c->cpu[n++] = pu->os_index;
	c->count = n;
	hwloc_bitmap_list_snprintf(c->text, sizeof(c->text), c->set);
	hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
	if (!nodes)
		return LOOM_ENOMEM;
	hwloc_cpuset_to_nodeset(c->topology, c->set, nodes);
	c->node = hwloc_bitmap_weight(nodes) == 1 ? hwloc_bitmap_first(nodes) : -1;
	hwloc_bitmap_free(nodes);
	return 0;
}

int cores_find(const struct loom_host *host, const struct cores_want *want, struct cores *cores,
	       struct loom_error *err)
{
	struct cores c = {0};
	hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
	c.set = hwloc_bitmap_alloc();
	int code = LOOM_ENOMEM;
	if (!allowed || !c.set)
		goto err_memory;
	int failed = cores_topology(&c.topology, allowed);
	if (failed) {
		c.topology = NULL;
		code = LOOM_FAIL(host, err, LOOM_EUNAVAIL, "%s: hwloc cannot read the topology: %s",
				 want->who, strerror(failed));
		goto err_worded;
	}
	code = *want->cores ? explicit_set(host, want, &c, allowed, err)
			    : share(host, want, &c, allowed, err);
	if (code)
		goto err_worded;
	code = list(host, &c);
	if (code)
		goto err_memory;
	hwloc_bitmap_free(allowed);
	*cores = c;
	return 0;
err_memory:
	LOOM_FAIL(host, err, code, "%s: out of memory", want->who);
err_worded:
	hwloc_bitmap_free(allowed);
	cores_finish(host, &c);
	return code;
}

void cores_finish(const struct loom_host *host, struct cores *cores)
{
	host->free(host, cores->cpu);
	hwloc_bitmap_free(cores->set);
	if (cores->topology)
		hwloc_topology_destroy(cores->topology);
	*cores = (struct cores){0};
}
