# SPDX-License-Identifier: Apache-2.0
# This plug-in uses no network, so it does not need libfabric.
PLUGINS += trigger_peer
trigger_peer_SRC := $(addprefix $D/,trigger_peer.c peer_map.c) $(NIC_D)/check.c
trigger_peer_CFLAGS := -I$D -I$(NIC_D)
