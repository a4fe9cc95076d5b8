# SPDX-License-Identifier: Apache-2.0
# No plug-in of its own: the engine that matches what workers fire with what was posted, and carries it out.
NIC_D := $D
NIC_SRC := $(addprefix $D/,backend.c list.c nic.c check.c policy.c ask.c bell.c fifo.c record.c tally.c)
