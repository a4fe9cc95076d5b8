/* SPDX-License-Identifier: Apache-2.0 */
/* Fires that workers recorded for the end of a kernel, taken by the host. */
#include "nic.h"

uint32_t nic_take_records(struct nic *nic, uint32_t first, uint32_t workers)
{
	uint32_t work = 0;
	for (uint32_t w = first; w < first + workers; w++) {
		struct nic_record *r = nic->record[w];
		uint64_t n = r->fires < nic->board->recorded ? r->fires : nic->board->recorded;
		const uint64_t *words = (const uint64_t *)(r + 1);
		r->fires = 0; /* the workers wait: see the gate */
		for (uint64_t i = 0; i < n; i++)
			nic_count(nic, words[i] >> 16, words[i] >> 2 & NIC_COUNT_MAX, 0);
		work += (uint32_t)n;
	}
	nic->fires += work;
	return work;
}
