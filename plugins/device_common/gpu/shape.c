/* SPDX-License-Identifier: Apache-2.0 */
/* The number of workers. Without a program, it follows from a bound on registers, which the compiler must keep. With a
 * program, it follows from the program's resources. */
#include <stdio.h>

#include "gpu.h"

#define LEAST_REGISTERS 32 /* registers per thread; with fewer nearly everything spills */

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* Returns the bytes of shared memory for the barrier of a worker with several wavefronts. A single wavefront needs
 * none. */
static int lanes_bytes(const struct gpu *d, uint32_t lanes)
{
	return lanes > (uint32_t)d->limits.wave ? d->driver->lanes_shared : 0;
}

uint32_t shape_shared(const struct gpu *d, uint32_t lanes, uint32_t per_block, uint64_t local_bytes)
{
	int dynamic = lanes_bytes(d, lanes) ? d->driver->lanes_dynamic : 0;
	return (uint32_t)(local_bytes * per_block) + (uint32_t)dynamic;
}

/* Sets the number of workers, and the shared memory per worker so that `residency` blocks fit on a multiprocessor. */
static void set_workers(struct gpu *d, uint32_t residency, uint32_t workers)
{
	const struct gpu_limits *l = &d->limits;
	int shared =
	    least(l->shared / (int)residency - l->shared_reserved, l->shared_per_block) - lanes_bytes(d, d->lanes);
	d->residency = residency;
	d->workers = workers;
	d->local_bytes = shared > 0 ? (uint32_t)(shared / (int)d->per_block) & ~127u : 0;
}

/* Returns the number of blocks per multiprocessor for which the compiler must make the program fit. The number follows
 * from the registers that a thread may use, and from the scratchpad memory of a worker. */
static uint32_t bound_of(const struct gpu *d, uint32_t registers, uint64_t local_bytes)
{
	const struct gpu_limits *l = &d->limits;
	int threads = (int)(d->lanes * d->per_block), waves = threads / l->wave, parts = l->parts;
	int most = least(l->blocks, least(l->threads / threads, l->registers / (threads * LEAST_REGISTERS)));
	int sure = least(most, l->registers / parts / (l->wave * (int)registers) * parts / waves);
	uint64_t shared = local_bytes ? shape_shared(d, d->lanes, d->per_block, local_bytes) + (uint64_t)l->shared_reserved : 0;
	if (shared && (uint64_t)l->shared / shared < (uint64_t)sure)
		sure = (int)((uint64_t)l->shared / shared);
	return sure < 1 ? 1 : (uint32_t)sure; /* a large block: the compiler must use fewer registers than the limit */
}

#define AUTO_REGISTERS 128u

void shape_bind(struct gpu *d, uint32_t registers, uint64_t local_bytes)
{
	const struct gpu_options *o = d->options;
	uint32_t most = (uint32_t)d->driver->most_registers, each = registers > AUTO_REGISTERS ? registers : AUTO_REGISTERS;
	if (!o->workers)
		d->bound = bound_of(d, o->max_registers ? o->max_registers : each < most ? each : most, local_bytes);
}

int shape_find(struct gpu *d, struct loom_error *err)
{
	const struct gpu_options *o = d->options;
	const struct gpu_limits *l = &d->limits;
	uint32_t sm = (uint32_t)l->multiprocessors, wave = (uint32_t)l->wave;
	d->lanes = o->lanes ? o->lanes : wave;
	d->per_block = o->worker == WORKER_WARP ? o->warps : 1;
	if (d->lanes % wave || (o->worker == WORKER_WARP && d->lanes != wave))
		return LOOM_FAIL(d->host, err, LOOM_EINVAL,
				 "%s: lanes = %u: must be a multiple of %u, and %u with several workers "
				 "in a block",
				 d->name, d->lanes, wave, wave);
	int threads = (int)(d->lanes * d->per_block);
	int most = least(l->blocks, least(l->threads / threads, l->registers / (threads * LEAST_REGISTERS)));
	if (threads > l->threads_per_block || most < 1)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL,
				 "%s: blocks of %d threads do not fit: reduce lanes or workers per block in "
				 "[device.gpu]",
				 d->name, threads);
	uint32_t room = (uint32_t)most * sm * d->per_block;
	if (o->workers > room || o->workers % d->per_block)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL,
				 "%s: workers = %u: at most %u can be resident (%d blocks of %u on each of "
				 "%u multiprocessors), in multiples of %u",
				 d->name, o->workers, room, most, d->per_block, sm, d->per_block);
	d->bound = (o->workers / d->per_block + sm - 1) / sm;
	shape_bind(d, 0, 0);
	set_workers(d, d->bound, o->workers ? o->workers : d->bound * sm * d->per_block);
	return 0;
}

int shape_again(struct gpu *d, const struct gpu_kernel *k, uint64_t local_bytes, struct loom_error *err)
{
	int each = 0;
	uint64_t shared = shape_shared(d, d->lanes, d->per_block, local_bytes);
	if (d->options->workers || shared > (uint64_t)(d->limits.shared_per_block - k->shared))
		return 0; /* check_fit() in launch.c reports what is missing */
	int rc = d->driver->occupancy(d, k, (int)(d->lanes * d->per_block + d->watch), shared, 0, &each);
	if (rc != 0)
		return gpu_fail(d, err, rc, NULL);
	if (each < 1)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: the program does not fit on this GPU, with %d registers for each of %u threads: "
				 "reduce lanes or workers per block in [device.gpu]",
				 d->name, k->registers, d->lanes * d->per_block);
	uint32_t residency = (uint32_t)each;
	set_workers(d, residency, residency * (uint32_t)d->limits.multiprocessors * d->per_block);
	return 0;
}

/* Returns 1 if the driver reports that read-modify-writes of host memory are not atomic. */
static int link_is_plain(const struct gpu *d)
{
	struct gpu_atomics can;
	d->driver->host_atomics(d, &can);
	return can.known && !(can.add && can.cas);
}

int gpu_shape(void *self, struct loom_device_shape *shape, struct loom_error *err)
{
	const struct gpu *d = self;
	(void)err;
	shape->workers = d->workers;
	shape->lanes = d->lanes;
	shape->numa_node = d->node;
	shape->local_bytes = d->local_bytes;
	shape->kind = LOOM_ON_GPU;
	shape->flags = (link_is_plain(d) ? LOOM_SHAPE_NO_LINK_ATOMICS : 0u) |
		       (d->options->kernels == KERNELS_PERSISTENT ? LOOM_SHAPE_KEEPS : 0u) |
		       (d->limits.products ? LOOM_SHAPE_PRODUCTS : 0u);
	return 0;
}

/* The time of a sample begins with GO, after the plan is made and copied, and ends when the last worker has left. */
void gpu_facts(void *self, struct loom_facts *out)
{
	static const char *const clock[] = {[KERNELS_PERSISTENT] = "samples of one launch",
					    [KERNELS_LAUNCHED] = "a launch of each step",
					    [KERNELS_GRAPH] = "a launch of a graph"};
	struct gpu *d = self;
	out->row(out, "clock", LOOM_FACT_FIXED, clock[d->options->kernels], 0);
	out->row(out, "gpu_model", LOOM_FACT_FIXED, d->model, 0);
	if (d->driver->facts)
		d->driver->facts(d, out);
}

int gpu_throttled(void *self, uint64_t ns)
{
	struct gpu *d = self;
	return d->driver->throttled ? d->driver->throttled(d, ns) : 0;
}

const char *gpu_time_slicing(void *self, char *name, size_t size)
{
	const struct gpu *d = self;
	if (!d->limits.time_slicing || !*d->bus)
		return NULL;
	snprintf(name, size, "%s", d->bus);
	return d->driver->time_slicing_fix;
}
