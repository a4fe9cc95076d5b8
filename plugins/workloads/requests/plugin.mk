# SPDX-License-Identifier: Apache-2.0
# -I$D: where the assembler finds the device code that is embedded (.incbin).
PLUGINS += workload_ssr_storm
SSR_HOST := $D/job.c $D/victim.c plugins/shared/child/child.c
workload_ssr_storm_SRC := $D/workload_ssr_storm.c $(SSR_HOST)
workload_ssr_storm_CFLAGS := -I$D
workload_ssr_storm_LIBS := -lcjson
$(foreach a,bfs spmv sssp bpt xsbench,$(eval PLUGINS += workload_ssr_$a)\
$(eval workload_ssr_$a_SRC := $D/workload_ssr_$a.c $D/app.c $D/app_graph.c $D/app_table.c $(SSR_HOST))\
$(eval workload_ssr_$a_CFLAGS := -I$D)\
$(eval workload_ssr_$a_LIBS := -lcjson))
