/* SPDX-License-Identifier: Apache-2.0 */
/* The NIC's end of the trigger FIFOs. */
#include "nic.h"

#define BATCH 256u

static uint32_t poll_one(struct nic *nic, uint32_t device)
{
	struct nic_fifo *f = nic->fifos[device];
	const uint64_t *words = (const uint64_t *)(f + 1);
	uint64_t cursor = nic->cursor[device], begin = cursor;
	while (cursor - begin < BATCH) {
		uint64_t i = cursor & (nic->fifo - 1);
		/* Acquire: pairs with the release in nic_push; payload and argument are before it. */
		uint64_t word = __atomic_load_n(&words[i], __ATOMIC_ACQUIRE);
		if ((word & 1) != nic_lap(cursor, nic->fifo))
			break;
		uint64_t argument = word & 2 ? words[nic->fifo + i] : 0;
		cursor++;
		nic_count(nic, word >> 16, word >> 2 & NIC_COUNT_MAX, argument);
		/* An argument belongs to the runs of its own fire: let them go first. */
		if (word & 2 || list_waiting(&nic->list) > nic->list.due_mask / 2)
			break;
	}
	if (cursor == begin)
		return 0;
	nic->cursor[device] = cursor;
	/* Release: pairs with the acquire in nic_take_slot. The words have been read. */
	__atomic_store_n(&f->tail, cursor, __ATOMIC_RELEASE);
	nic->fires += cursor - begin;
	return (uint32_t)(cursor - begin);
}

uint32_t nic_poll_fifo(struct nic *nic)
{
	uint32_t work = 0;
	for (uint32_t d = 0; d < nic->devices && !nic_backlog(nic); d++)
		work += poll_one(nic, d);
	return work;
}

int nic_drained_fifo(struct nic *nic)
{
	for (uint32_t d = 0; d < nic->devices; d++) {
		const uint64_t *words = (const uint64_t *)(nic->fifos[d] + 1);
		uint64_t cursor = nic->cursor[d];
		uint64_t word = __atomic_load_n(&words[cursor & (nic->fifo - 1)], __ATOMIC_ACQUIRE);
		if ((word & 1) == nic_lap(cursor, nic->fifo))
			return 0;
	}
	return 1;
}
