/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_hdn: the host waits for the end of a kernel, builds the operations and sends. Host half: the
 * NIC's thread is that host. */
#include "nic.h"
#include "trigger_hdn.dev.h"

static struct nic_gate *gates(const struct nic *nic)
{
	return (struct nic_gate *)((char *)nic->board + nic->board->gate_at);
}

static void hdn_reset(struct nic *nic)
{
	for (uint32_t d = 0; d < nic->devices; d++)
		nic->cursor[d] = 0; /* kernels dealt with */
}

static uint32_t hdn_poll(struct nic *nic)
{
	uint32_t work = 0;
	for (uint32_t d = 0; d < nic->devices; d++) {
		struct nic_gate *g = &gates(nic)[d];
		/* Acquire: pairs with the release at the kernel's end: the records, and the payload. */
		uint64_t ended = __atomic_load_n(&g->ended, __ATOMIC_ACQUIRE);
		if (ended == nic->cursor[d])
			continue;
		nic->cursor[d] = ended;
		nic_take_records(nic, nic->first_worker[d], nic->first_worker[d + 1] - nic->first_worker[d]);
		/* The sends come first, as the host's one thread does one thing after the other. */
		nic_run_due(nic);
		/* Release: pairs with the acquire of the boundary; the records are free again. */
		__atomic_store_n(&g->begun, ended, __ATOMIC_RELEASE);
		work++;
	}
	return work;
}

/* The sample has ended, which ends the kernel too. */
static int hdn_drained(struct nic *nic)
{
	return nic_take_records(nic, 0, nic->workers) == 0;
}

static int hdn_post(struct nic *nic, const struct loom_trigger_post *what, uint64_t *id, int *taken,
		    struct loom_error *err)
{
	(void)id, (void)taken;
	return what->flags ? LOOM_FAIL(nic->host, err, LOOM_ENOTSUP,
				       "trigger_hdn: the host knows no argument of a fire") :
			     0;
}

static const struct nic_way hdn = {.name = "trigger_hdn",
				   .has_record = 1,
				   .reset = hdn_reset,
				   .post = hdn_post,
				   .poll = hdn_poll,
				   .drained = hdn_drained};

NIC_PLUGIN(trigger_hdn, "host-driven networking: the host sends when the kernel has ended", hdn)
