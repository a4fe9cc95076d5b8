/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_hdn: the host waits for the end of a kernel, builds the operations and sends. Host half: the
 * NIC's thread is that host. */
#include "../shared/nic/nic.h"
#include "trigger_hdn.dev.h"

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
				   .counter = "the host counts what it sees at a kernel's end",
				   .has_record = 1,
				   .post = hdn_post,
				   .poll = nic_poll_gates,
				   .drained = hdn_drained};

NIC_PLUGIN(trigger_hdn, "Host-driven networking: the host sends when the kernel has ended", hdn,
	   .edge = nic_policy_edge)
