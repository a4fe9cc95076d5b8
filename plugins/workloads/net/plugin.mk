# SPDX-License-Identifier: Apache-2.0
NET_WORKLOADS := workload_pingpong workload_msgrate workload_jacobi2d workload_allreduce workload_sgd workload_replay \
  workload_scatter
PLUGINS += $(NET_WORKLOADS)
$(foreach p,$(NET_WORKLOADS),$(eval $p_SRC := $D/$p.c)$(eval $p_CFLAGS := -I$D -I$(SDK)plugins/workloads))
workload_pingpong_SRC += $D/late_posts.c
workload_allreduce_SRC += $D/late_posts.c
workload_sgd_LIBS := -lm
