# SPDX-License-Identifier: Apache-2.0
PLUGINS += transport_host
transport_host_SRC := $D/transport_host.c $D/hostmem.c $D/layout.c
transport_host_LIBS := -lnuma
