# SPDX-License-Identifier: Apache-2.0
# -I$D: where the assembler finds the device code that is embedded (.incbin).
BARRIERS := barrier_auto barrier_central barrier_release barrier_tree barrier_dissemination barrier_flags
PLUGINS += $(BARRIERS)
$(foreach p,$(BARRIERS),$(eval $p_SRC := $D/$p.c $D/host.c)$(eval $p_CFLAGS := -I$D))
PLUGINS += workload_barrier
workload_barrier_SRC := $D/workload_barrier.c
workload_barrier_CFLAGS := -I$D
workload_barrier_LIBS := -lm
PLUGINS += workload_reduce
workload_reduce_SRC := $D/workload_reduce.c
workload_reduce_CFLAGS := -I$D
workload_reduce_LIBS := -lm
