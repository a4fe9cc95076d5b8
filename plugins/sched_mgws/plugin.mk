# SPDX-License-Identifier: Apache-2.0
# -I: where the assembler finds the device code that is embedded (.incbin).
PLUGINS += sched_mgws
sched_mgws_SRC := $D/sched_mgws.c
sched_mgws_CFLAGS := -I$D -Iplugins/shared/sched
