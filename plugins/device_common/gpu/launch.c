/* SPDX-License-Identifier: Apache-2.0 */
/* Launches the persistent kernel. For a program that embeds gpuloom, launches a kernel for each sample. */
#include <string.h>

#include "gpu.h"
#include "lib/align.h"

_Static_assert(offsetof(struct loom_gpu_words, quick_tally) % 16 == 0, "loom_store_marked_sys() needs it");
_Static_assert(offsetof(struct loom_gpu_words, end) % 16 == 0, "loom_store_marked_sys() needs it");

/* ---- the record in constant memory ---- */

struct views {
	uint64_t at[LOOM_MAX_SEGMENTS];
};

static void *pointer(const struct views *v, loom_ref ref)
{
	if (!ref)
		return NULL;
	return (void *)(uintptr_t)(v->at[LOOM_REF_SEGMENT(ref)] + LOOM_REF_OFFSET(ref));
}

static int find_views(struct gpu *d, const struct loom_launch *what, struct views *v, struct loom_error *err)
{
	int code = 0;
	memset(v, 0, sizeof(*v));
	for (uint32_t i = 1; i < what->segments && !code; i++)
		if (LOOM_SEGMENT_REACHES(&what->segment[i], what->device))
			code = memory_view(d, &what->segment[i], &v->at[i], err);
	return code;
}

static void fill_policies(const struct loom_launch *what, const struct views *v, struct loom_gpu_launch *record)
{
	for (int kind = 0; kind < LOOM_KINDS_MAX; kind++) {
		record->local_at[kind] = LOOM_GPU_NONE;
		if (what->global)
			record->global[kind] = pointer(v, what->global[kind]);
		if (what->on_device)
			record->on_device[kind] = pointer(v, what->on_device[kind]);
		if (what->registry)
			record->registry[kind] = pointer(v, what->registry[kind]);
		if (!what->local_bytes || !what->local_bytes[kind])
			continue;
		record->local_at[kind] = record->local_bytes;
		record->local_bytes += (uint32_t)loom__align(what->local_bytes[kind], 64);
	}
}

static int fill(struct gpu *d, struct launch *l, struct loom_gpu_launch *record, struct loom_error *err)
{
	const struct loom_launch *what = l->what;
	const struct loom_layout *layout = what->layout;
	struct views v;
	int code = find_views(d, what, &v, err);
	if (code)
		return code;
	memset(record, 0, sizeof(*record));
	record->ctl = pointer(&v, what->ctl);
	record->gate = (void *)(uintptr_t)d->gate;
	record->stage = (void *)(uintptr_t)(d->gate + sizeof(struct loom_gpu_gate));
	record->words = (void *)(uintptr_t)d->words_view;
	record->counters = pointer(&v, what->counters);
	record->trace = LOOM_HAS(what, trace) ? pointer(&v, what->trace) : NULL;
	record->trace_bytes = record->trace ? what->trace_bytes : 0;
	/* Resident workers read the tasks where the host writes them. Other workers read a copy in device memory. */
	record->initial = pointer(&v, l->resident && what->tasks ? what->tasks : what->initial);
	record->idle_ns = d->options->idle;
	record->probe = pointer(&v, what->probe);
	fill_policies(what, &v, record);
	record->device = what->device;
	record->devices = layout->devices;
	record->workers = layout->workers;
	record->first = layout->device[what->device].first_worker;
	record->count = l->count;
	record->seed = layout->seed;
	record->reset = l->kept ? pointer(&v, what->reset) : NULL;
	record->resets = l->kept ? what->resets : 0;
	l->tasks = l->kept ? (uint64_t)(uintptr_t)pointer(&v, what->tasks) : 0;
	record->steps = l->chain.what ? l->chain.what->steps : 0;
	record->small = (uint32_t)l->may_be_small;
	record->flush = (void *)(uintptr_t)d->flush;
	record->flush_bytes = d->flush && what->entry == LOOM_ENTRY_WORK ? gpu_flush_bytes(d) : 0;
	for (uint32_t i = 1; i < what->segments; i++)
		record->segment[i] = (char *)(uintptr_t)v.at[i];
	return 0;
}

/* ---- refusals ---- */

static int check_fit(struct gpu *d, const struct gpu_kernel *k, int blocks, int threads, size_t shared,
		     struct loom_error *err)
{
	int each = 0, sms = d->limits.multiprocessors;
	if (shared + (size_t)k->shared > (size_t)d->limits.shared_per_block)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: the policies need %zu bytes of shared memory per block, but there are %d: choose "
				 "smaller queues%s",
				 d->name, shared + (size_t)k->shared, d->limits.shared_per_block,
				 d->per_block > 1 ? " or fewer workers per block" : "");
	int rc = d->driver->occupancy(d, k, threads, shared, (blocks + sms - 1) / sms, &each);
	if (rc != 0)
		return gpu_fail(d, err, rc, NULL);
	if (each * sms >= blocks)
		return 0;
	return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
			 "%s: %d blocks must be resident at once. With %d registers for each of %d threads and %zu "
			 "bytes of shared memory only %d are: choose smaller queues, or set workers = %d in "
			 "[device.gpu]",
			 d->name, blocks, k->registers, threads, shared + (size_t)k->shared,
			 each * sms, each * sms * (int)d->per_block);
}

/* ---- launch ---- */

static int clear_gate(struct gpu *d, const struct launch *l, struct loom_error *err)
{
	/* Kernels of older graphs may use the permit at any time. */
	uint64_t first = offsetof(struct loom_gpu_gate, ctl);
	uint64_t bytes = sizeof(struct loom_gpu_gate) + l->count * sizeof(uint32_t) - first;
	int rc = d->driver->clear(d, d->gate + first, bytes);
	memset(d->words, 0, sizeof(*d->words));
	return rc == 0 ? 0 : gpu_fail(d, err, rc, NULL);
}

static int start(struct gpu *d, struct launch *l, const struct gpu_kernel *k, struct loom_error *err)
{
	int probe = l->what->entry == LOOM_ENTRY_PROBE;
	uint32_t per_block = probe ? 1 : d->per_block, lanes = probe ? (uint32_t)d->limits.wave : d->lanes;
	const struct loom_gpu_order until_retire = {.phase = 0};
	struct loom_gpu_launch record;
	int code = clear_gate(d, l, err);
	if (!code)
		code = fill(d, l, &record, err);
	if (code)
		return code;
	l->blocks = l->count / per_block;
	l->threads = lanes * per_block + (probe ? 0 : d->watch);
	l->shared = shape_shared(d, lanes, per_block, record.local_bytes);
	code = check_fit(d, k, (int)l->blocks, (int)l->threads, l->shared, err);
	if (code)
		return code;
	int rc = d->driver->write(d, k->launch, &record, sizeof(record));
	if (rc == 0 && l->kept)
		rc = enqueue_permit(d, l->number = ++d->launches);
	/* This launch is cooperative: the driver rejects it if not all blocks can be resident at once. After a plain
	 * launch, workers could wait for workers that never start. */
	if (rc == 0 && !k->stepped && !l->kept)
		rc = d->driver->launch(d, k, l->blocks, l->threads, l->shared, &until_retire);
	if (rc == 0 && k->stepped)
		rc = chain_record(d, l);
	return rc == 0 ? 0 : gpu_fail(d, err, rc, NULL);
}

uint32_t launch_flags(struct launch *l)
{
	const struct loom_ctl *ctl = l->ctl;
	l->quick = l->may_be_quick && ctl->unmeasured && ctl->awaited && LOOM_PHASE_IS_GO(l->phase) &&
		   ctl->initial_tasks <= LOOM_ORDER_TASKS;
	/* As loom_gpu_is_small() and loom_gpu_small_workers() say. */
	l->ends = l->count == 1 || !ctl->initial_tasks ? 1 : (uint32_t)ctl->initial_tasks;
	if (!l->quick || !l->may_be_small || l->ends > l->count || l->ends > LOOM_GPU_ENDS || !l->phase)
		l->ends = 0;
	return l->quick ? LOOM_ORDER_QUICK : 0;
}

int launch_sample(struct gpu *d, struct launch *l, struct loom_error *err)
{
	const struct gpu_kernel *k = &d->kernel[LOOM_ENTRY_WORK];
	const struct loom_gpu_order order = {.phase = l->phase,
					     .kept = LOOM_GPU_ONE_RUN,
					     .flags = launch_flags(l) >> LOOM_GPU_FLAGS,
					     .initial_tasks = l->ctl->initial_tasks,
					     .tasks = (const void *)(uintptr_t)l->tasks};
	int rc = d->driver->launch(d, k, l->blocks, l->threads, l->shared, &order);
	return rc == 0 ? 0 : gpu_fail(d, err, rc, NULL);
}

int gpu_launch(void *self, const struct loom_launch *what, struct loom_error *err)
{
	struct gpu *d = self;
	if (d->launch)
		return LOOM_FAIL(d->host, err, LOOM_EBUSY, "%s: its workers still run", d->name);
	if (what->entry != LOOM_ENTRY_WORK && what->entry != LOOM_ENTRY_PROBE)
		return LOOM_FAIL(d->host, err, LOOM_ENOTSUP, "%s: unknown entry %u", d->name, what->entry);
	struct launch *l = d->host->alloc(d->host, sizeof(*l));
	if (!l)
		return LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: out of memory", d->name);
	const struct loom_segment *ctl = &what->segment[LOOM_REF_SEGMENT(what->ctl)];
	int probe = what->entry == LOOM_ENTRY_PROBE;
	*l = (struct launch){.what = what,
			     .ctl = (void *)((char *)ctl->memory->host + ctl->offset + LOOM_REF_OFFSET(what->ctl)),
			     .kept = !probe && what->flags & LOOM_LAUNCH_KEPT,
			     .resident = !probe && what->flags & LOOM_LAUNCH_KEPT && d->options->resident,
			     .may_be_quick = !probe && d->options->quick && what->flags & LOOM_LAUNCH_KEPT &&
					     what->flags & LOOM_LAUNCH_QUICK,
			     .may_be_small = !probe && d->options->quick && what->flags & LOOM_LAUNCH_QUICK &&
					     what->flags & LOOM_LAUNCH_SMALL,
			     .count = probe ? 1 : what->layout->device[what->device].workers};
	int code = gpu_enter(d, err);
	if (code) {
		d->host->free(d->host, l);
		return code;
	}
	code = probe ? program_probe(d, err) : 0;
	const struct gpu_kernel *k = &d->kernel[what->entry];
	if (!code && !k->module)
		code = LOOM_FAIL(d->host, err, LOOM_EINVAL, "%s: no program was built", d->name);
	if (!code && k->stepped)
		code = chain_find(d, l, err);
	if (!code)
		code = start(d, l, k, err);
	if (code) {
		chain_forget(d, l);
		d->host->free(d->host, l);
	} else {
		d->launch = l;
	}
	gpu_leave(d);
	return code;
}
