# SPDX-License-Identifier: Apache-2.0
# -I$D: where the assembler finds the device code that is embedded (.incbin).
PLUGINS += sched_mgws sched_static sched_host term_counter term_hcounter term_tree
sched_mgws_SRC := $D/sched_mgws.c
sched_mgws_CFLAGS := -I$D
sched_static_SRC := $D/sched_static.c
sched_static_CFLAGS := -I$D
sched_host_SRC := $D/sched_host.c
sched_host_CFLAGS := -I$D
term_counter_SRC := $D/term_counter.c
term_counter_CFLAGS := -I$D
term_hcounter_SRC := $D/term_hcounter.c
term_hcounter_CFLAGS := -I$D
term_tree_SRC := $D/term_tree.c
term_tree_CFLAGS := -I$D
