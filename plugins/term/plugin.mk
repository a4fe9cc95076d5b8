# SPDX-License-Identifier: Apache-2.0
DETECTORS := term_counter term_hcounter term_tree
PLUGINS += $(DETECTORS)
$(foreach p,$(DETECTORS),$(eval $p_SRC := $D/$p.c)$(eval $p_CFLAGS := -I$D))
