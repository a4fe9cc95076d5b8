/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of trigger_gds. The NIC has ready operations, and doorbells start them at kernel boundaries. */
#include "../trigger_common/nic/nic.h"
#include "trigger_gds.dev.h"

/* Devices that launch each kernel report its end in struct nic_kernel_ends. Devices whose workers only model kernel
 * boundaries push the workers' records into the FIFO. */
static uint32_t gds_poll(struct nic *nic)
{
	return nic_poll_kernel_ends(nic) + nic_poll_fifo(nic);
}

/* The end of a sample also ends the kernel, so this call also takes the records of the last kernel. */
static int gds_drained(struct nic *nic)
{
	return nic_take_records(nic, 0, nic->workers) == 0 && nic_drained_fifo(nic);
}

static const struct nic_ops gds = {.name = "trigger_gds",
				   .has_fifo = 1,
				   .has_record = 1,
				   .by_stream = 1,
				   .no_argument = "a doorbell carries no argument",
				   .poll = gds_poll,
				   .drained = gds_drained};

NIC_PLUGIN(trigger_gds, "GPUDirect Async: ready operations, started by a doorbell when a kernel has ended", gds,
	   .edge = nic_policy_edge)
