# SPDX-License-Identifier: Apache-2.0
PLUGINS += workload_exec
workload_exec_SRC := $(addprefix $D/,plugin.c command.c child.c figures.c) plugins/shared/child/child.c
workload_exec_LIBS := -lcjson
