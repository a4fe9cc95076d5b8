# SPDX-License-Identifier: Apache-2.0
# This folder is no plug-in. It has the code that device_cuda and device_hip share.
GPU_SRC := $(addprefix $D/,guard.c instance.c shape.c memory.c copies.c program.c launch.c chain.c wait.c watch.c resident.c enqueue.c collective.c interrupt.c cache.c rtc.c doctor.c) $(COMPOSE_SRC)
GPU_OBJ := $(GPU_SRC:%.c=$B/obj/%.o)
$(GPU_OBJ): EXTRA_CFLAGS := $(COMPOSE_CFLAGS)
$B/tests/test_compose $B/tests/test_compose_hip: $(filter-out $B/obj/lib/%,$(GPU_OBJ))
