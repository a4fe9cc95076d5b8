/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated GPUs: options, instance, descriptor. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../device_common/explore/race.h"
#include "../device_common/hostmem/hostmem.h"
#include "device_sim.h"

#define LOCAL_BYTES_MAX (227u << 10) /* size of the shared memory of an H200 */

static const char *const memory_names[] = {"sequential", "weak", NULL};
static const struct loom_opt rows[] = {
    LOOM_OPT(struct options, workers, LOOM_OPT_U32, "132", "Workers of the device, of one lane each.", .min = 1,
	     .max = 65536),
    LOOM_OPT(struct options, schedule, LOOM_OPT_STR, "time",
	     "Which worker runs next. time: the worker of the least virtual time, so that the same conf and [run] seed "
	     "give the same result. random:SEED: a random one, for tests; sample n of a launch uses SEED + n."),
    LOOM_OPT(struct options, memory, LOOM_OPT_ENUM, "sequential",
	     "What accesses see. sequential: the last value. weak: what memory orders and scopes allow; a data race fails the "
	     "sample. For schedule = random:SEED, and 16 workers of all devices and ranks.",
	     .choices = memory_names),
    LOOM_OPT(struct options, stall, LOOM_OPT_TIME, "10ms",
	     "Virtual time without a change by any worker after which a sample fails.", .min = 1000, .max = 1e15),
    LOOM_OPT(struct options, limit, LOOM_OPT_TIME, "0", "Virtual time after which a sample fails. 0: no limit."),
    LOOM_OPT(struct options, nesting, LOOM_OPT_U32, "16", "How deep tasks may run inside their spawners, as on a GPU.",
	     .max = 256),
    LOOM_OPT(struct options, stack, LOOM_OPT_SIZE, "128KiB", "Stack of a worker. Only the used part takes memory.",
	     .min = 16384, .max = 1 << 30),
    LOOM_OPT(struct options, launch_cost, LOOM_OPT_TIME, "0",
	     "Virtual time of a kernel's launch: delay of each worker at the start of a sample.", .max = 1e9),
    LOOM_OPT(struct options, teardown_cost, LOOM_OPT_TIME, "0", "Virtual time of the end of a kernel.", .max = 1e9),
#define ROW_OF_COST(name, ns, text)                                                                                    \
	LOOM_OPT(struct options, name, LOOM_OPT_TIME, ns "ns", "Virtual time of " text ".", .max = 1e9),
    LOOM_SIM_COSTS(ROW_OF_COST)
#undef ROW_OF_COST
	{.name = NULL},
};

/* Reads "time" or "random:SEED". Returns an enum schedule, or -1 for another text. */
static int read_schedule(const char *text, uint64_t *seed)
{
	char *end;
	if (!strcmp(text, "time"))
		return SCHEDULE_TIME;
	if (strncmp(text, "random:", 7) || text[7] < '0' || text[7] > '9')
		return -1;
	errno = 0;
	*seed = strtoull(text + 7, &end, 10);
	return *end || errno ? -1 : SCHEDULE_RANDOM;
}

static int check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct options *o = opts;
	uint64_t seed;
	int schedule = read_schedule(o->schedule, &seed);
	if (schedule < 0)
		return LOOM_REFUSE(host, err, "schedule", "schedule = %s: use time, or random:SEED with a number", o->schedule);
	if (o->memory && schedule == SCHEDULE_TIME)
		return LOOM_REFUSE(host, err, "memory", "memory = weak is for random schedules: set schedule = random:SEED");
	return 0;
}

static void destroy(void *self)
{
	struct device *d = self;
	if (!d)
		return;
	if (d->what && device_retire(d, 0, NULL) != 0)
		return; /* the thread of the simulation still accesses this memory */
	const struct loom_host *host = d->host;
	if (d->simulation)
		simulation_leave(d->simulation, &d->member);
	host->free(host, d);
}

/* Sets the settings that all devices of a simulation have in common. The first device to call it sets them, and later
 * devices must have equal ones. */
static int configure(struct device *d, enum schedule schedule, uint64_t seed, struct loom_error *err)
{
	struct simulation *s = d->simulation;
	const struct options *o = d->options;
	uint64_t limit = o->limit ? o->limit : UINT64_MAX;
	pthread_mutex_lock(&s->lock);
	/* The two random schedules count as equal, because each sample uses one of them. */
	int random = schedule != SCHEDULE_TIME, was = s->schedule != SCHEDULE_TIME;
	int differs = s->configured &&
		      (random != was || s->weak != o->memory || s->schedule_seed != seed || s->stall_ns != o->stall || s->limit_ns != limit);
	if (!s->configured) {
		s->configured = 1;
		s->schedule = schedule;
		s->weak = o->memory;
		s->sim.memory = o->memory ? &model_memory : NULL;
		s->schedule_seed = seed;
		s->stall_ns = o->stall;
		s->limit_ns = limit;
		memcpy(s->cost, d->member.cost, sizeof(s->cost));
	}
	pthread_mutex_unlock(&s->lock);
	if (s->weak && (s->expected > RACE_DEVICES || s->expected * o->workers > RACE_FIBERS))
		return LOOM_FAIL(d->host, err, LOOM_ENOTSUP,
				 "%s: memory = weak is for at most %d devices and %d workers in all ranks: set fewer in "
				 "[device.sim] workers",
				 d->name, RACE_DEVICES, RACE_FIBERS);
	if (differs)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL,
				 "%s: simulated devices have one clock: set schedule, memory, stall and limit in [device.sim]",
				 d->name);
	return 0;
}

static int create(const struct loom_host *host, const void *opts, uint32_t instance, uint32_t instances, void **self,
		  struct loom_error *err)
{
	struct device *d = host->alloc(host, sizeof(*d));
	const struct options *o = opts;
	uint64_t seed = 0;
	if (!d)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "sim:%u: out of memory", instance);
	d->host = host;
	d->options = o;
	snprintf(d->name, sizeof(d->name), "sim:%u", instance);
	d->member.name = d->name;
	d->member.launch_ns = o->launch_cost;
	d->member.teardown_ns = o->teardown_cost;
#define TAKE_COST(name, ns, text) d->member.cost[LOOM_SIM_##name] = (uint32_t)o->name;
	LOOM_SIM_COSTS(TAKE_COST)
#undef TAKE_COST
	int code = simulation_join(host, instances, &d->member, &d->simulation, err);
	if (code) {
		destroy(d);
		return code;
	}
	int schedule = read_schedule(o->schedule, &seed);
	code = configure(d, (enum schedule)schedule, seed, err);
	if (code)
		destroy(d);
	else
		*self = d;
	return code;
}

static int shape(void *self, struct loom_device_shape *shape, struct loom_error *err)
{
	const struct device *d = self;
	(void)err;
	shape->workers = d->options->workers;
	shape->lanes = 1;
	shape->numa_node = -1;
	shape->local_bytes = LOCAL_BYTES_MAX;
	shape->kind = LOOM_ON_GPU;
	shape->launch_ns = d->options->launch_cost;
	shape->teardown_ns = d->options->teardown_cost;
	return 0;
}

static const struct loom_clock *time_of(void *self)
{
	return &((struct device *)self)->member.group->clock;
}

static const struct loom_device_ops ops = {
    .size = sizeof(ops), HOST_DEVICE_OPS, .repeat = device_repeat, .clock = time_of};

LOOM_PLUGIN_DEFINE(DEVICE, "device_sim", "0.1.0", "Apache-2.0",
		   "Simulated GPUs: workers are fibers under a virtual clock; costs are not calibrated",
		   .caps = LOOM_CAP_DEVICE_IS_VIRTUAL, .opts = rows, .opts_size = sizeof(struct options),
		   .check = check, .ops = &ops)
