# SPDX-License-Identifier: Apache-2.0
# -I: where the assembler finds the device code that is embedded (.incbin).
# No network, so no libfabric.
PLUGINS += trigger_peer
trigger_peer_SRC := $(addprefix $D/,trigger_peer.c peer_map.c) $(NIC_D)/check.c
trigger_peer_CFLAGS := -I$D -I$(NIC_D)
