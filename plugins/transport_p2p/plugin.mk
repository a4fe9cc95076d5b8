# SPDX-License-Identifier: Apache-2.0
PLUGINS += transport_p2p
transport_p2p_SRC := $D/transport_p2p.c $(addprefix $(SDK)plugins/device_common/hostmem/,hostmem.c segments.c)
transport_p2p_LIBS := -lnuma
