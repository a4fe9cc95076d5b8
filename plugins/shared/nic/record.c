/* SPDX-License-Identifier: Apache-2.0 */
/* Fires that workers recorded for the end of a kernel, taken by the host. */
#include "nic.h"

uint32_t nic_take_records(struct nic *nic, uint32_t first, uint32_t workers)
{
	uint32_t work = 0;
	for (uint32_t w = first; w < first + workers; w++) {
		struct nic_record *r = nic->record[w];
		uint64_t n = r->fires < nic->shape.recorded ? r->fires : nic->shape.recorded;
		const uint64_t *words = (const uint64_t *)(r + 1);
		r->fires = 0; /* the workers wait: see the gate */
		for (uint64_t i = 0; i < n; i++)
			nic_count(nic, words[i] >> 16, words[i] >> 2 & NIC_COUNT_MAX, 0);
		work += (uint32_t)n;
	}
	nic->fires += work;
	return work;
}

uint32_t nic_poll_gates(struct nic *nic)
{
	uint32_t work = 0;
	for (uint32_t d = 0; d < nic->devices; d++) {
		struct nic_gate *g = (struct nic_gate *)(nic->base + nic->shape.gate_at) + d;
		/* Acquire: pairs with the release at the kernel's end: the records, and the payload. */
		uint64_t ended = __atomic_load_n(&g->ended, __ATOMIC_ACQUIRE);
		if (ended <= __atomic_load_n(&g->begun, __ATOMIC_RELAXED)) /* or the device has given up */
			continue;
		nic_take_records(nic, nic->first_worker[d], nic->first_worker[d + 1] - nic->first_worker[d]);
		/* The sends come first, as the host's one thread does one thing after the other. */
		nic_run_due(nic);
		/* Release: pairs with the acquire of the boundary; the records are free again. */
		__atomic_store_n(&g->begun, ended, __ATOMIC_RELEASE);
		work++;
	}
	return work;
}
