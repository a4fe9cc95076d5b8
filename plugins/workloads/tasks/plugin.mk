# SPDX-License-Identifier: Apache-2.0
PLUGINS += workload_memset workload_memset_loop workload_contains workload_fib workload_uts \
  workload_synthetic workload_costs workload_ragged workload_experts workload_dispatch workload_makespan
workload_memset_SRC := $D/workload_memset.c
workload_memset_CFLAGS := -I$D
workload_memset_loop_SRC := $D/workload_memset_loop.c
workload_memset_loop_CFLAGS := -I$D
workload_fib_SRC := $D/workload_fib.c
workload_fib_CFLAGS := -I$D
workload_synthetic_SRC := $D/workload_synthetic.c
workload_synthetic_CFLAGS := -I$D
workload_costs_SRC := $D/workload_costs.c
workload_costs_CFLAGS := -I$D
workload_uts_SRC := $D/workload_uts.c $D/uts_trees.c
# With words packed into vectors, SHA-1 loads 8 bytes across two stores of 4. Such a load stalls once per node.
workload_uts_CFLAGS := -I$D -fno-tree-slp-vectorize
workload_uts_LIBS := -lm
workload_contains_SRC := $D/workload_contains.c $D/contains_files.c $D/contains_read.c $D/contains_corpus.c
workload_contains_CFLAGS := -I$D
workload_contains_LIBS := -lz -lm
workload_ragged_SRC := $D/workload_ragged.c $D/ragged_lengths.c $(SDK)lib/text.c
# A tile's inner loops have eight steps: -O3 makes vectors of them.
workload_ragged_CFLAGS := -I$D -O3
workload_ragged_LIBS := -lm
workload_makespan_SRC := $D/workload_makespan.c $D/ragged_lengths.c $(SDK)plugins/sched_common/costs.c $(SDK)lib/text.c $(SDK)lib/replace.c
workload_makespan_CFLAGS := -I$D
workload_makespan_LIBS := -lcjson -lm
workload_experts_SRC := $D/workload_experts.c $D/experts_routing.c $(SDK)lib/text.c $(SDK)lib/replace.c
workload_experts_CFLAGS := -I$D -O3
workload_experts_LIBS := -lm
workload_dispatch_SRC := $D/workload_dispatch.c $D/experts_routing.c $(SDK)lib/text.c $(SDK)lib/replace.c
workload_dispatch_CFLAGS := -I$D -O3
workload_dispatch_LIBS := -lm
TEST_LIBS_test_workloads := -lz -lm -ldl
TEST_LIBS_test_uneven := -lm
