/* SPDX-License-Identifier: Apache-2.0 */
/* The NIC's end of the trigger FIFOs. */
#include "nic.h"

#define BATCH 256u

static uint32_t poll_one(struct nic *nic, uint32_t ring)
{
	struct nic_fifo *f = nic->fifos[ring];
	const uint64_t *words = (const uint64_t *)(f + 1);
	uint64_t cursor = nic->cursor[ring], begin = cursor;
	uint64_t tag = 0, sum = 0; /* of triggers in a row with one tag */
	uint64_t fires = 0;
	while (cursor - begin < BATCH) {
		uint64_t i = cursor & (nic->fifo - 1);
		/* Acquire: pairs with the release in nic_push; payload and argument are before it. */
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
		/* An argument belongs to the runs of its own fire: let them go first. */
		if (word & 2 || list_waiting(&nic->list) > nic->list.due_mask / 2)
			break;
	}
	if (sum)
		nic_count(nic, tag, sum, 0);
	if (cursor == begin)
		return 0;
	nic->cursor[ring] = cursor;
	/* Release: pairs with the acquire in nic_take_slot. The words have been read. */
	__atomic_store_n(&f->tail, cursor, __ATOMIC_RELEASE);
	nic->fires += fires;
	return (uint32_t)(cursor - begin);
}

uint32_t nic_poll_fifo(struct nic *nic)
{
	uint32_t work = 0;
	/* From the ring behind the last one: the first ones may cause a backlog each time. */
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
