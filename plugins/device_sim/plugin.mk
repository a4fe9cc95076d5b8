# SPDX-License-Identifier: Apache-2.0
PLUGINS += device_sim
device_sim_SRC := $(addprefix $D/,plugin.c simulation.c thread.c run.c queue.c agent.c describe.c memory.c program.c probe.c launch.c) \
	plugins/device_common/explore/fiber.c lib/child.c plugins/device_common/hostmem/hostmem.c $(COMPOSE_SRC) $(HOSTCC_SRC)
device_sim_CFLAGS := -I$D
device_sim_LIBS := -lnuma -ldl
$B/obj/$D/program.o: $D/sim.dev.h
