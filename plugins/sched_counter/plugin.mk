# SPDX-License-Identifier: Apache-2.0
# -I: where the assembler finds the device code that is embedded (.incbin).
PLUGINS += sched_counter
sched_counter_SRC := $D/sched_counter.c
sched_counter_CFLAGS := -I$D -I$(SDK)plugins/sched_common
