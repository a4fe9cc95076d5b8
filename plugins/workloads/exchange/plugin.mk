# SPDX-License-Identifier: Apache-2.0
EXCHANGE_APPS := srs cg fe h3d bfs bs c2d stn gem kmn pattern resume
EXCHANGE_D := $D
define exchange_app
PLUGINS += workload_$1
workload_$1_SRC := $(EXCHANGE_D)/$1.c $(EXCHANGE_D)/exchange.c $(EXCHANGE_D)/exchange_metrics.c \
	$(EXCHANGE_D)/exchange_times.c
workload_$1_CFLAGS := -I$(EXCHANGE_D)
workload_$1_LIBS := -lm
endef
$(foreach a,$(EXCHANGE_APPS),$(eval $(call exchange_app,$a)))
workload_cg_SRC += $D/solver.c
workload_fe_SRC += $D/solver.c
workload_bfs_SRC += $D/graph.c
