/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuloom/dev/ir.h>

LOOM_IR_TASK(embed_task)
#define LOOM_TAG_embed_task LOOM_IR_TAG(embed_task)

#include "embed_task.dev.h"
