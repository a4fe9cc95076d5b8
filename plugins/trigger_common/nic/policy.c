/* SPDX-License-Identifier: Apache-2.0 */
/* The host ops that trigger plug-ins with a NIC share. */
#include <stdio.h>
#include <string.h>

#include "nic.h"
#include "lib/align.h"
#include "lib/cpu_list.h"

#define RECORDED 1024u
const char *const nic_waits[] = {"spin", "yield", "nap", NULL};
const char *const nic_memories[] = {"host", "device", NULL};
const char *const nic_copies[] = {"auto", "staged", NULL};

int nic_policy_create(const struct loom_host *host, const void *opts, const struct nic_ops *ops,
		      void **self, struct loom_error *err)
{
	if (!LOOM_HAS(host, allgather))
		return LOOM_FAIL(host, err, LOOM_EABI, "%s needs ranks, which this version of gpuloom does not "
			"have", ops->name);
	struct nic *nic = host->alloc(host, sizeof(*nic));
	if (!nic)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", ops->name);
	int rc = nic_open(nic, host, opts, ops, err);
	if (!rc) {
		rc = nic_open_fabric(nic, 0, err);
		if (rc)
			nic_close(nic);
	}
	if (rc) {
		host->free(host, nic);
		return rc;
	}
	*self = nic;
	return 0;
}

void nic_policy_destroy(void *self)
{
	struct nic *nic = self;
	if (!nic)
		return;
	const struct loom_host *host = nic->host;
	nic_policy_stop(nic);
	nic_close(nic);
	nic_rma_close(nic);
	host->free(host, nic);
}

/* ---- memory ---------------------------------------------------------------------------------------- */

/* A GPU with at most this many workers has a FIFO per worker, if the trigger has FIFOs. Each worker then polls completion slots
 * and arrival words in host memory itself. With more workers one polls for all (NIC_LINK_MANY), and also with triggers whose
 * workers share a ring or a page. */
#define FEW 16u

static enum nic_link link_of(const struct nic *nic, const struct loom_device_shape *device)
{
	return device->kind != LOOM_ON_GPU		       ? NIC_LINK_NONE :
	       device->workers > FEW || !(nic->ops->has_fifo || nic->ops->has_record) ? NIC_LINK_MANY :
												    NIC_LINK_FEW;
}

static uint32_t rings_of(const struct nic *nic, const struct loom_device_shape *device)
{
	return link_of(nic, device) == NIC_LINK_FEW ? device->workers : 1;
}

static int shares(const struct loom_layout *layout)
{
	return LOOM_HAS(layout, ranks) && layout->ranks > 1;
}

static struct nic_shape shape_of(const struct nic *nic, const struct loom_layout *layout, uint64_t *bytes)
{
	struct nic_shape s = {.entries = nic->fifo,
			      .slots = nic->table.slots,
			      .arrivals = nic->table.arrivals,
			      .recorded = nic->ops->has_record ? RECORDED : 0};
	uint64_t at = 0, words = nic->ops->has_fifo ? 2ull * s.entries : 0;
	s.slot_at = at;
	at += (uint64_t)s.slots * sizeof(struct nic_slot);
	s.arrival_at = at;
	at += (uint64_t)s.arrivals * sizeof(struct nic_arrival);
	s.ends_at = at;
	at += (uint64_t)layout->devices * sizeof(struct nic_kernel_ends);
	s.fifo_at = at;
	s.fifo_bytes = loom__align(sizeof(struct nic_fifo) + words * sizeof(uint64_t), 64);
	for (uint32_t d = 0; d < layout->devices; d++)
		at += rings_of(nic, &layout->device[d]) * s.fifo_bytes;
	s.extra_at = at;
	if (nic->ops->extra)
		at += nic->ops->extra(nic, &s.extra);
	at = loom__align(at, 64);
	s.rma_at = shares(layout) ? at : 0;
	if (shares(layout))
		at += nic_rma_bytes(nic, layout->ranks, layout->workers);
	*bytes = at;
	return s;
}

/* Returns the size of a device's block. */
static uint64_t device_bytes(const struct nic *nic, const struct loom_device_shape *device)
{
	uint64_t words = (uint64_t)nic->table.slots + nic->table.arrivals;
	return loom__align(sizeof(struct nic_device) + sizeof(struct nic_ring) +
				   (link_of(nic, device) == NIC_LINK_MANY ? words * sizeof(struct nic_cached) : 0), 64);
}

int nic_policy_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	struct nic *nic = self;
	if (shares(layout) && !strcmp(nic->opts->provider, "auto") && !strcmp(nic->fabric->name, "shm")) {
		nic->fabric->ops->close(nic->fabric);
		nic->fabric = NULL;
		int rc = nic_open_fabric(nic, 1, err);
		if (rc)
			return rc;
	}
	nic->devices = layout->devices;
	if (!nic->base && nic_size(nic, layout))
		return LOOM_FAIL(nic->host, err, LOOM_ENOMEM, "%s: out of memory", nic->ops->name);
	(void)shape_of(nic, layout, &need->global);
	for (uint32_t d = 0; d < layout->devices; d++) {
		uint64_t bytes = device_bytes(nic, &layout->device[d]);
		need->device = bytes > need->device ? bytes : need->device;
	}
	need->global_place = LOOM_PLACE_HOST;
	need->device_place = LOOM_PLACE_DEVICE;
	need->local = sizeof(struct nic_ring);
	if (nic->ops->has_record)
		need->worker = sizeof(struct nic_record) + RECORDED * sizeof(uint64_t);
	need->worker_place = LOOM_PLACE_HOST;
	return 0;
}

/* Prepares the blocks for a sample. The provider may still hold receives of the previous sample. */
int nic_policy_init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	struct nic *nic = self;
	(void)err;
	nic_lock(nic);
	for (uint32_t i = 0; i < nic->opts->in_flight; i++)
		if (nic->request[i].state && nic->request[i].io.op == LOOM_NET_RECV)
			nic->fabric->ops->cancel(nic->fabric, &nic->request[i].context);
	if (nic->fabric->ops->begin)
		nic->fabric->ops->begin(nic->fabric);
	nic->sample++;
	/* requests of earlier samples do not count in this sample; they are released when they end */
	nic->receiving = nic->in_flight;
	nic->awaited = 0;
	memset(nic->taken, 0, sizeof(nic->taken));
	list_clear(&nic->list);
	nic->is_stalled = 0;
	nic->status = 0;
	nic->fires = nic->runs = nic->arrivals = 0;
	nic->counts_arrivals = 0;
	nic->first_ns = nic->last_ns = 0;
	nic->timed = nic->timed_ns = 0;
	nic->copy_ns = nic->fabric->copy_ns;
	nic->start_ns = nic->fabric->start_ns;
	nic->cpu_ns = nic_thread_cpu_ns(nic);
	struct nic_shape shape = nic->shape;
	memset(nic->base, 0, nic->bytes);
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *has = &layout->device[d];
		struct nic_device *device = view->device[d];
		memset(device, 0, device_bytes(nic, has));
		shape.link = link_of(nic, has);
		device->shape = shape;
		device->launch_ns = has->launch_ns;
		device->teardown_ns = has->teardown_ns;
		shape.fifo_at += rings_of(nic, has) * shape.fifo_bytes;
	}
	memset(nic->cursor, 0, nic->rings * sizeof(*nic->cursor));
	for (uint32_t w = 0; nic->ops->has_record && w < layout->workers; w++)
		((struct nic_record *)view->worker[w])->fires = 0;
	if (nic->ops->reset)
		nic->ops->reset(nic);
	if (nic->rma)
		nic_rma_begin(nic);
	nic_unlock(nic);
	nic_place_thread(nic); /* workers exist and have their cores by now */
	return 0;
}

int nic_policy_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		       struct loom_report *report, struct loom_error *err)
{
	struct nic *nic = self;
	const struct loom_host *host = nic->host;
	(void)layout, (void)view, (void)err;
	nic_lock(nic);
	uint64_t fires = nic->fires, runs = nic->runs, arrivals = nic->arrivals;
	double seconds = (double)(nic->last_ns - nic->first_ns) / 1e9;
	uint64_t cpu = nic_thread_cpu_ns(nic) - nic->cpu_ns;
	double timed = (double)nic->timed, operation = (double)nic->timed_ns,
	       copy = (double)(nic->fabric->copy_ns - nic->copy_ns), start = (double)(nic->fabric->start_ns - nic->start_ns);
	nic_unlock(nic);
	/* The time extends from the first poll that found triggers to the last such poll. The triggers of the first
	 * poll do not count. */
	if (seconds > 0)
		host->metric(host, report, "trigger.taken_per_s", "triggers/s", LOOM_BETTER_MORE,
			     (double)(fires - nic->first_fires) / seconds);
	if (timed > 0)
		host->metric(host, report, "trigger.operation_ns", "ns", LOOM_BETTER_LESS, operation / timed);
	if (timed > 0 && copy > 0) {
		host->metric(host, report, "trigger.copy_ns", "ns", LOOM_BETTER_LESS, copy / timed);
		host->metric(host, report, "trigger.copy_start_ns", "ns", LOOM_BETTER_LESS, start / timed);
	}
	host->metric(host, report, "trigger.fires", "", LOOM_BETTER_NONE, (double)fires);
	host->metric(host, report, "trigger.operations", "", LOOM_BETTER_NONE, (double)runs);
	host->metric(host, report, "trigger.arrivals", "", LOOM_BETTER_NONE, (double)arrivals);
	/* The CPU time that this software NIC takes, although a hardware NIC would take none. */
	if (!nic->clock)
		host->metric(host, report, "trigger.cpu_ns", "ns", LOOM_BETTER_LESS, (double)cpu);
	return 0;
}

static int take_blocks(struct nic *nic, const struct loom_layout *layout, const struct loom_view *view,
		       struct loom_error *err)
{
	const struct loom_host *host = nic->host;
	nic->devices = layout->devices;
	nic->workers = layout->workers;
	for (uint32_t d = 0; d < layout->devices; d++)
		nic->first_worker[d] = layout->device[d].first_worker;
	nic->first_worker[layout->devices] = layout->workers;
	for (uint32_t d = 0; d < layout->devices; d++)
		nic->rings += rings_of(nic, &layout->device[d]);
	nic->fifos = host->alloc(host, nic->rings * sizeof(*nic->fifos));
	nic->cursor = host->alloc(host, nic->rings * sizeof(*nic->cursor));
	nic->record = host->alloc(host, layout->workers * sizeof(*nic->record));
	if (!nic->fifos || !nic->cursor || !nic->record)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", nic->ops->name);
	nic->shape = shape_of(nic, layout, &nic->bytes);
	nic->base = view->global;
	for (uint32_t r = 0; r < nic->rings; r++)
		nic->fifos[r] = (struct nic_fifo *)(nic->base + nic->shape.fifo_at + r * nic->shape.fifo_bytes);
	for (uint32_t w = 0; nic->ops->has_record && w < layout->workers; w++)
		nic->record[w] = view->worker[w];
	return 0;
}

int nic_policy_start(void *self, const struct loom_layout *layout, const struct loom_view *view,
		     const struct loom_segments *segments, struct loom_error *err)
{
	struct nic *nic = self;
	int rc = nic->base ? 0 : take_blocks(nic, layout, view, err);
	if (!rc && !nic->shared)
		rc = nic->fabric->ops->share(nic->fabric, segments, err);
	if (rc)
		return rc;
	nic->shared = 1;
	if (nic->shape.rma_at && !nic->rma)
		rc = nic_rma_start(nic, segments, err);
	if (!rc && nic->ops->start)
		rc = nic->ops->start(nic, err);
	if (rc)
		return rc;
	if (LOOM_HAS(layout, clock))
		return nic_start_agent(nic, layout, err);
	if (nic_is_simulated(nic))
		return LOOM_FAIL(
		    nic->host, err, LOOM_ENOTSUP,
		    "%s: provider = sim: the network is simulated together with the devices: choose devices = sim:0",
		    nic->ops->name);
	return nic_start_thread(nic, err);
}

/* ---- what workloads call --------------------------------------------------------------------------- */

int nic_policy_check(void *self, const struct loom_trigger_post *post, struct loom_error *err)
{
	return nic_check(self, post, err);
}

int nic_policy_post(void *self, const struct loom_trigger_post *post, uint64_t *id, struct loom_error *err)
{
	struct nic *nic = self;
	int rc = nic_check(nic, post, err);
	if (rc)
		return rc;
	nic_lock(nic);
	if (post->tag > LOOM_TAG_MAX)
		nic_count_arrivals(nic);
	rc = list_add(&nic->list, post, id);
	if (rc == LOOM_EBUSY)
		rc = nic_too_late(nic->host, nic->ops->name, post, err);
	else if (rc)
		rc = nic_full(nic, err);
	else if (nic->ops->posted)
		nic->ops->posted(nic, post->tag);
	/* If this post is made during a sample under virtual time, its fire may have happened already, so the agent
	 * must run. */
	if (nic->clock && nic->steps)
		nic->clock->wake(nic->clock, nic->agent, nic->clock->now_ns(nic->clock));
	nic_unlock(nic);
	return rc;
}

int nic_policy_flush(void *self, uint64_t timeout_ns, struct loom_error *err)
{
	struct nic *nic = self;
	uint64_t begin = nic->host->now_ns(nic->host);
	nic->steps = 0;
	for (;;) {
		nic_lock(nic);
		int over = nic->ops->drained(nic) && nic_idle(nic), status = nic->status;
		uint32_t in_flight = nic->in_flight - nic->receiving;
		nic_unlock(nic);
		if (status)
			return LOOM_FAIL(nic->host, err, status, "%s: %s", nic->ops->name, nic->failure);
		if (over)
			return 0;
		if (nic->clock) /* under virtual time, no event is left that could end these operations */
			return LOOM_FAIL(nic->host, err, LOOM_EWRONG,
					 "%s: %u operations never end, because nothing was sent that they wait for",
					 nic->ops->name, in_flight);
		if (nic->host->now_ns(nic->host) - begin > timeout_ns)
			return LOOM_FAIL(nic->host, err, LOOM_ETIMEDOUT,
					 "%s: %u operations are still in flight after %.3g s", nic->ops->name,
					 in_flight, (double)timeout_ns / 1e9);
		loom_cpu_yield();
	}
}

void nic_policy_edge(void *self, uint32_t device, struct loom_edge *out)
{
	const struct nic *nic = self;
	uint64_t gate = nic->shape.ends_at + device * sizeof(struct nic_kernel_ends);
	*out = (struct loom_edge){.ended = gate + offsetof(struct nic_kernel_ends, ended),
				  .begun = gate + offsetof(struct nic_kernel_ends, begun),
				  .arrival = nic->shape.arrival_at + offsetof(struct nic_arrival, count),
				  .stride = sizeof(struct nic_arrival),
				  .by_stream = (uint32_t)nic->ops->by_stream};
}

int nic_policy_anywhere(void *self)
{
	return ((const struct nic *)self)->opts->memory == NIC_DEVICE_MEMORY;
}
