/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of trigger_hdn. The host waits for the end of a kernel, builds the operations and sends. The NIC's thread
 * plays the part of that host. */
#include "../trigger_common/nic/nic.h"
#include "trigger_hdn.dev.h"

/* The end of a sample also ends the kernel, so this call also takes the records of the last kernel. */
static int hdn_drained(struct nic *nic)
{
	return nic_take_records(nic, 0, nic->workers) == 0;
}

static const struct nic_ops hdn = {.name = "trigger_hdn",
				   .has_record = 1,
				   .no_argument = "the host receives no argument of a fire",
				   .poll = nic_poll_kernel_ends,
				   .drained = hdn_drained};

NIC_PLUGIN(trigger_hdn, "Host-driven networking: the host sends when the kernel has ended", hdn,
	   .edge = nic_policy_edge)
