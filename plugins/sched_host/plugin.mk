# SPDX-License-Identifier: Apache-2.0
PLUGINS += sched_host
sched_host_SRC := $D/sched_host.c
sched_host_CFLAGS := -I$D -I$(SDK)plugins/sched_common
