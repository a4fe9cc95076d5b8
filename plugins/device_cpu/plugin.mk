# SPDX-License-Identifier: Apache-2.0
PLUGINS += device_cpu
device_cpu_SRC := $(addprefix $D/,plugin.c cores.c memory.c program.c lacking.c gate.c worker.c threads.c \
	process.c launch.c caller.c attach.c doctor.c source.c object.c energy.c) $(SDK)lib/child.c $(SDK)plugins/device_common/hostmem/hostmem.c $(COMPOSE_SRC) $(HOSTCC_SRC)
device_cpu_LIBS := -lnuma -ldl -lm
