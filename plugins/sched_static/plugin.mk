# SPDX-License-Identifier: Apache-2.0
# -I: where the assembler finds the device code that is embedded (.incbin).
PLUGINS += sched_static
sched_static_SRC := $D/sched_static.c
sched_static_CFLAGS := -I$D -Iplugins/shared/sched
