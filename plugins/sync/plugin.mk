# SPDX-License-Identifier: Apache-2.0
SYNCS := sync_poll sync_backoff sync_futex sync_warp
PLUGINS += $(SYNCS)
$(foreach p,$(SYNCS),$(eval $p_SRC := $D/$p.c $(SYNC_D)/channels.c)$(eval $p_CFLAGS := -I$D -I$(SYNC_D)))
sync_futex_SRC += $(SYNC_D)/listener.c
