# SPDX-License-Identifier: Apache-2.0
REQUESTS_HOST := $D/phases.c $D/victim.c $D/victims.c $D/victim_counters.c $(SDK)lib/child.c
PLUGINS += workload_requests_storm workload_requests_app
workload_requests_storm_SRC := $D/workload_requests_storm.c $(REQUESTS_HOST)
workload_requests_app_SRC := $(addprefix $D/,workload_requests_app.c app_graph.c app_table.c) $(REQUESTS_HOST)
$(foreach p,storm app,$(eval workload_requests_$p_CFLAGS := -I$D)$(eval workload_requests_$p_LIBS := -lcjson))
