# SPDX-License-Identifier: Apache-2.0
# -I: where the assembler finds the device code that is embedded (.incbin).
PLUGINS += sched_plan
sched_plan_SRC := $D/sched_plan.c $(SDK)plugins/sched_common/costs.c $(SDK)lib/text.c $(SDK)lib/replace.c
sched_plan_CFLAGS := -I$D -I$(SDK)plugins/sched_common
sched_plan_LIBS := -lcjson
