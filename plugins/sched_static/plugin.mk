# SPDX-License-Identifier: Apache-2.0
PLUGINS += sched_static
sched_static_SRC := $D/sched_static.c
sched_static_CFLAGS := -I$D -I$(SDK)plugins/sched_common
