/* SPDX-License-Identifier: Apache-2.0 */
/* Takes fires from the trigger FIFOs, and fires that workers recorded for the end of their kernel. */
#include "nic.h"

#define BATCH 256u

static uint32_t poll_one(struct nic *nic, uint32_t ring)
{
	struct nic_fifo *f = nic->fifos[ring];
	const uint64_t *words = (const uint64_t *)(f + 1);
	uint64_t cursor = nic->cursor[ring], begin = cursor;
	uint64_t tag = 0, sum = 0; /* the sum of the counts of consecutive triggers with one tag */
	uint64_t fires = 0;
	while (cursor - begin < BATCH) {
		uint64_t i = cursor & (nic->fifo - 1);
		/* Acquire: pairs with the release in nic_push(), which follows the payload and the argument. */
		uint64_t word = __atomic_load_n(&words[i], __ATOMIC_ACQUIRE);
		if ((word & 1) != nic_lap(cursor, nic->fifo))
			break;
		cursor++;
		if (sum && (word >> 16 != tag || word & 2)) {
			nic_count(nic, tag, sum, 0);
			sum = 0;
		}
		if (word & 2)
			nic_count(nic, word >> 16, word >> 2 & NIC_COUNT_MAX, words[nic->fifo + i]);
		else
			sum += word >> 2 & NIC_COUNT_MAX;
		tag = word >> 16;
		fires += word >> 2 & NIC_COUNT_MAX;
		/* The argument of a fire applies to the runs that the fire makes due. So the loop ends, and these runs
		 * start before further fires are taken. */
		if (word & 2 || list_queued(&nic->list) > nic->list.ready_mask / 2)
			break;
	}
	if (sum)
		nic_count(nic, tag, sum, 0);
	if (cursor == begin)
		return 0;
	nic->cursor[ring] = cursor;
	/* Release: pairs with the acquire in nic_await_slot(). The words have been read before. */
	__atomic_store_n(&f->tail, cursor, __ATOMIC_RELEASE);
	nic->fires += fires;
	return (uint32_t)(cursor - begin);
}

uint32_t nic_poll_fifo(struct nic *nic)
{
	uint32_t work = 0;
	/* Starts with the FIFO that follows the FIFO polled last, so that FIFOs that cause a backlog do not starve the
	 * other FIFOs. */
	for (uint32_t r = 0; r < nic->rings && !nic_backlog(nic); r++) {
		work += poll_one(nic, nic->next_ring);
		nic->next_ring = (nic->next_ring + 1) % nic->rings;
	}
	if (work && nic->opts->stamp) {
		nic->last_ns = nic_now(nic);
		if (!nic->first_ns) {
			nic->first_ns = nic->last_ns;
			nic->first_fires = nic->fires;
		}
	}
	return work;
}

int nic_drained_fifo(struct nic *nic)
{
	for (uint32_t r = 0; r < nic->rings; r++) {
		const uint64_t *words = (const uint64_t *)(nic->fifos[r] + 1);
		uint64_t cursor = nic->cursor[r];
		uint64_t word = __atomic_load_n(&words[cursor & (nic->fifo - 1)], __ATOMIC_ACQUIRE);
		if ((word & 1) == nic_lap(cursor, nic->fifo))
			return 0;
	}
	return 1;
}

/* ---- fires recorded until the end of a kernel ------------------------------------------------------- */

uint32_t nic_take_records(struct nic *nic, uint32_t first, uint32_t workers)
{
	uint32_t work = 0;
	for (uint32_t w = first; w < first + workers; w++) {
		struct nic_record *r = nic->record[w];
		uint64_t n = r->fires < nic->shape.recorded ? r->fires : nic->shape.recorded;
		const uint64_t *words = (const uint64_t *)(r + 1);
		r->fires = 0; /* no race: the workers wait at the kernel boundary, or the run has ended */
		for (uint64_t i = 0; i < n; i++)
			nic_count(nic, words[i] >> 16, words[i] >> 2 & NIC_COUNT_MAX, 0);
		work += (uint32_t)n;
	}
	nic->fires += work;
	return work;
}

uint32_t nic_poll_kernel_ends(struct nic *nic)
{
	uint32_t work = 0;
	for (uint32_t d = 0; d < nic->devices; d++) {
		struct nic_kernel_ends *g = (struct nic_kernel_ends *)(nic->base + nic->shape.ends_at) + d;
		/* Acquire: pairs with the release at the kernel's end, which follows the records and the payload. */
		uint64_t ended = __atomic_load_n(&g->ended, __ATOMIC_ACQUIRE);
		/* `begun` is larger than `ended` if the device has failed. */
		if (ended <= __atomic_load_n(&g->begun, __ATOMIC_RELAXED))
			continue;
		if (nic->taken[d] != ended) {
			nic_take_records(nic, nic->first_worker[d], nic->first_worker[d + 1] - nic->first_worker[d]);
			/* Starts the operations before it replies to the device, as a host with one thread would. */
			nic_run_due(nic);
			nic->taken[d] = ended;
			work++;
		}
		if (nic->awaited && !nic->status)
			continue;
		/* Release: pairs with the acquire of `begun` at the device's boundary. The records have been read and
		 * cleared before. */
		__atomic_store_n(&g->begun, ended, __ATOMIC_RELEASE);
		work++;
	}
	return work;
}
