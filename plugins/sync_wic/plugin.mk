# SPDX-License-Identifier: Apache-2.0
# -I$D: where the assembler finds the device code that is embedded (.incbin).
PLUGINS += sync_poll sync_backoff sync_futex
sync_poll_SRC := $D/sync_poll.c $D/host.c
sync_poll_CFLAGS := -I$D
sync_backoff_SRC := $D/sync_backoff.c $D/host.c
sync_backoff_CFLAGS := -I$D
sync_futex_SRC := $D/sync_futex.c $D/listen.c $D/host.c
sync_futex_CFLAGS := -I$D
PLUGINS += sync_warp
sync_warp_SRC := $D/sync_warp.c $D/host.c
sync_warp_CFLAGS := -I$D
PLUGINS += sync_wic
sync_wic_SRC := $(addprefix $D/,sync_wic.c wic_space.c wic_mail.c wic_pages.c wic_activate.c wic_monitor.c wic_channel.c \
	uffd.c pcm.c listen.c host.c)
sync_wic_CFLAGS := -I$D
