/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_gputn: a FIFO of tags, matched by the NIC (GPU-TN, section 3). Host half. */
#include "../shared/nic/nic.h"
#include "trigger_gputn.dev.h"

static const struct nic_ops gputn = {.name = "trigger_gputn",
				     .has_fifo = 1,
				     .poll = nic_poll_fifo,
				     .drained = nic_drained_fifo};

NIC_PLUGIN(trigger_gputn, "GPU-TN: workers store tags to a FIFO; the NIC matches, counts and sends", gputn)
