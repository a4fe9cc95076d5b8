/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_gds: operations wait in the NIC and are rung for at kernel boundaries. Host half. */
#include "../shared/nic/nic.h"
#include "trigger_gds.dev.h"

static int gds_post(struct nic *nic, const struct loom_trigger_post *what, uint64_t *id, int *taken,
		    struct loom_error *err)
{
	(void)id, (void)taken;
	return what->flags ? LOOM_FAIL(nic->host, err, LOOM_ENOTSUP,
				       "trigger_gds: a doorbell carries no argument") :
			     0;
}

/* Kernels that the device launches end at the gate; those that are modelled push their records. */
static uint32_t gds_poll(struct nic *nic)
{
	return nic_poll_gates(nic) + nic_poll_fifo(nic);
}

/* The sample has ended, which ends the kernel too. */
static int gds_drained(struct nic *nic)
{
	return nic_take_records(nic, 0, nic->workers) == 0 && nic_drained_fifo(nic);
}

static const struct nic_way gds = {.name = "trigger_gds",
				   .counter = "the NIC counts what it is rung for at a kernel's end",
				   .has_fifo = 1,
				   .has_record = 1,
				   .by_stream = 1,
				   .post = gds_post,
				   .poll = gds_poll,
				   .drained = gds_drained};

NIC_PLUGIN(trigger_gds, "GPUDirect Async: ready operations, started by a doorbell when a kernel has ended", gds,
	   .edge = nic_policy_edge)
