# SPDX-License-Identifier: Apache-2.0
BARRIER_WORKLOADS := workload_barrier workload_reduce workload_primitives
PLUGINS += $(BARRIER_WORKLOADS)
$(foreach p,$(BARRIER_WORKLOADS),$(eval $p_SRC := $D/$p.c)$(eval $p_CFLAGS := -I$D)$(eval $p_LIBS := -lm))
