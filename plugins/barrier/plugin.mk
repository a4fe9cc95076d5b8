# SPDX-License-Identifier: Apache-2.0
BARRIERS := barrier_auto barrier_central barrier_release barrier_tree barrier_dissemination barrier_flags
PLUGINS += $(BARRIERS)
$(foreach p,$(BARRIERS),$(eval $p_SRC := $D/$p.c $D/barrier_common.c)$(eval $p_CFLAGS := -I$D))
