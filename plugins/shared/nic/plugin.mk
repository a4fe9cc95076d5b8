# SPDX-License-Identifier: Apache-2.0
# No plug-in of its own: the engine that matches what workers fire with what was posted, and carries it out.
NIC_D := $D
NIC_SRC := $(addprefix $D/,backend.c trigger_list.c engine.c check.c policy.c rma.c bell.c fifo.c dev_counter.c thread.c)
