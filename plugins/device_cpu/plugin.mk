# SPDX-License-Identifier: Apache-2.0
PLUGINS += device_cpu
device_cpu_SRC := $(addprefix $D/,plugin.c cores.c memory.c program.c gate.c worker.c crew.c \
	process.c child.c launch.c attach.c limits.c doctor.c source.c object.c) plugins/transport_host/hostmem.c $(COMPOSE_SRC)
device_cpu_LIBS := -lhwloc -lnuma -ldl
