/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives in streams of the program that embeds gpuloom. They need no launch of workers. */
#include "gpu.h"

#include "../compose/collective.dev.h"

enum { COLLECTIVE_THREADS = 512, WARP = 64 }; /* a limit; a multiple of the warps of all GPUs */

/* Compiles the kernel, if that has not been done. Called between enter() and leave() of the driver. */
static int prepare(struct gpu *d, struct loom_error *err)
{
	struct compose_target target = {.label = d->name,
					.layer = d->driver->compiler->layer,
					.defines = d->defines,
					.lanes = COLLECTIVE_THREADS,
					.per_block = 1,
					.blocks = 1};
	struct gpu_program source = {.kernel = COMPOSE_COLLECTIVE};
	if (d->collective.module)
		return 0;
	d->collective.is_collective = 1;
	int code = compose_collective(d->host, &target, &source.text, err);
	if (!code)
		code = program_make(d, &source, &d->collective, err);
	loom__text_free(&source.text);
	d->collective.stepped = 1; /* blocks wait for blocks of other GPUs only, so no cooperative launch is needed */
	return code;
}

/* Divides a vector among the blocks, and returns the threads of a block: one for each 8 bytes, as more would only have to start and to
 * meet. */
static uint32_t divide(struct loom_gpu_collective_order *o, uint32_t blocks)
{
	int halves = o->call.type == LOOM_COMM_BFLOAT16 || o->call.type == LOOM_COMM_HALF;
	uint64_t bytes = o->call.what == LOOM_COMM_BARRIER ? 0 : o->call.count * (halves ? 2 : 4);
	o->each = ((bytes + blocks - 1) / blocks + 15) / 16 * 16;
	uint64_t threads = (o->each / 8 + WARP - 1) / WARP * WARP;
	return (uint32_t)(threads < WARP ? WARP : threads < COLLECTIVE_THREADS ? threads : COLLECTIVE_THREADS);
}

static int gpu_collective(void *self, const struct loom_comm_view *view, const struct loom_comm_call *call, uint32_t blocks,
			  void *stream, struct loom_error *err)
{
	struct gpu *d = self;
	if (!d->driver->enqueue)
		return LOOM_FAIL(d->host, err, LOOM_ENOTSUP, "%s: its driver has no streams for collectives", d->name);
	int captures = 0, code = gpu_enter(d, err);
	if (code)
		return code;
	code = prepare(d, err);
	if (!code && call)
		code = enqueue_check(d, stream, &captures, err);
	if (!code && call) {
		struct loom_gpu_collective_order order = {.view = *view, .call = *call};
		uint32_t threads = divide(&order, blocks);
		int rc = d->driver->enqueue(d, stream, &d->collective, blocks, threads, 0, &order);
		code = rc == 0 ? 0 : gpu_fail(d, err, rc, NULL);
	}
	gpu_leave(d);
	return code;
}

const struct loom_device_streams gpu_streams = {.size = sizeof(gpu_streams), .enqueue = gpu_enqueue, .captures = gpu_captures,
						.drain = gpu_drain, .collective = gpu_collective};
