# SPDX-License-Identifier: Apache-2.0
PLUGINS += device_sim
device_sim_SRC := $(addprefix $D/,plugin.c simulation.c thread.c run.c queue.c agent.c model.c race.c describe.c memory.c program.c probe.c launch.c) \
	$(SDK)plugins/device_common/explore/fiber.c $(SDK)lib/child.c $(SDK)plugins/device_common/hostmem/hostmem.c $(COMPOSE_SRC) $(HOSTCC_SRC)
device_sim_CFLAGS := -I$D -I$D/include -I$(SDK)plugins/device_common/explore
device_sim_LIBS := -lnuma -ldl
$B/obj/$D/program.o: $D/sim.dev.h $D/include/gpuloom/dev/sim.h $(SDK)plugins/device_common/explore/race.h
