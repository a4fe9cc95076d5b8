# SPDX-License-Identifier: Apache-2.0
PLUGINS += sched_mgws
sched_mgws_SRC := $D/sched_mgws.c
sched_mgws_CFLAGS := -I$D -I$(SDK)plugins/sched_common
