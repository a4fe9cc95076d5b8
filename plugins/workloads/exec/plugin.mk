# SPDX-License-Identifier: Apache-2.0
PLUGINS += workload_exec
workload_exec_SRC := $(addprefix $D/,workload_exec.c command.c process.c output.c) $(SDK)lib/child.c
workload_exec_LIBS := -lcjson
