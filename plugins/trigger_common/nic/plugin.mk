# SPDX-License-Identifier: Apache-2.0
# This folder is no plug-in. It has the NIC engine, which matches fires with posts and executes the operations.
NIC_D := $D
NIC_SRC := $(addprefix $D/,backend.c trigger_list.c engine.c check.c policy.c rma.c bell.c fifo.c thread.c)
