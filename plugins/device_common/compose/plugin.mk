# SPDX-License-Identifier: Apache-2.0
# This folder is no plug-in. The back ends for GPUs compile its files.
COMPOSE_D := $D
COMPOSE_SRC := $(addprefix $D/,compose.c ir.c headers.c) $(SDK)lib/text.c
HOSTCC_SRC := $D/hostcc.c
COMPOSE_OBJ := $(COMPOSE_SRC:%.c=$B/obj/%.o)
COMPOSE_CFLAGS := -I$D
$(COMPOSE_OBJ): EXTRA_CFLAGS := $(COMPOSE_CFLAGS)
# The compiler does not report the embedded texts as dependencies.
$B/obj/$D/headers.o: $(PUBLIC_HEADERS) $(wildcard $D/*.dev.h)

# tests/test_compose_hip.c compiles every combination with clang, without ROCm.
$B/obj/tests/test_compose_hip.o: EXTRA_CFLAGS := -Iplugins
