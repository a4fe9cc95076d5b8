# SPDX-License-Identifier: Apache-2.0
# This folder is no plug-in. The back ends for GPUs compile its files.
COMPOSE_D := $D
COMPOSE_SRC := $(addprefix $D/,compose.c ir.c headers.c) lib/text.c
HOSTCC_SRC := $D/hostcc.c
COMPOSE_OBJ := $(COMPOSE_SRC:%.c=$B/obj/%.o)
# The vendors' halves of the device layer are in the folders of their devices. An installation has them beside dev.h.
VENDOR_HEADERS := $(wildcard plugins/device_*/include/gpuloom/dev/*.h)
COMPOSE_CFLAGS := -I$D $(addprefix -I,$(wildcard plugins/device_*/include))
$(COMPOSE_OBJ): EXTRA_CFLAGS := $(COMPOSE_CFLAGS)
# The compiler does not report the embedded texts as dependencies.
$B/obj/$D/headers.o: $(VENDOR_HEADERS) $(wildcard core/include/gpuloom/*.h core/include/gpuloom/dev/*.h $D/*.dev.h) $D/sim.h

# tests/test_compose_hip.c compiles every combination with clang, without ROCm.
$B/obj/tests/test_compose_hip.o: EXTRA_CFLAGS := -Iplugins
