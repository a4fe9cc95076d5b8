/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of trigger_gputn. Workers store tags into a FIFO, and the NIC matches them with posts (GPU-TN, section
 * 3). */
#include "../trigger_common/nic/nic.h"
#include "trigger_gputn.dev.h"

static const struct nic_ops gputn = {.name = "trigger_gputn",
				     .has_fifo = 1,
				     .poll = nic_poll_fifo,
				     .drained = nic_drained_fifo};

NIC_PLUGIN(trigger_gputn, "GPU-TN: workers store tags to a FIFO; the NIC matches, counts and sends", gputn)
