# SPDX-License-Identifier: Apache-2.0
PLUGINS += device_far
device_far_SRC := $D/device_far.c $(COMPOSE_SRC) $(HOSTCC_SRC) $(SDK)lib/child.c
device_far_CFLAGS := -I$D
device_far_LIBS := -ldl
$B/obj/$D/device_far.o: $D/far.dev.h
