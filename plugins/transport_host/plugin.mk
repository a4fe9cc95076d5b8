# SPDX-License-Identifier: Apache-2.0
PLUGINS += transport_host
transport_host_SRC := $D/transport_host.c $(addprefix $(SDK)plugins/device_common/hostmem/,hostmem.c segments.c)
transport_host_LIBS := -lnuma
