# SPDX-License-Identifier: Apache-2.0
PLUGINS += sync_wic
sync_wic_SRC := $(addprefix $D/,sync_wic.c wic_space.c wic_descriptors.c wic_pages.c wic_activate.c wic_monitor.c wic_channel.c \
  uffd.c pcm.c) $(addprefix $(SYNC_D)/,listener.c channels.c)
sync_wic_CFLAGS := -I$D -I$(SYNC_D)
