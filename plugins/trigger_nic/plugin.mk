# SPDX-License-Identifier: Apache-2.0
$B/tests/test_ranks: $B/obj/$(FABRIC_D)/fabric_key.o
$B/tests/test_trigger_nic: $(patsubst %,$B/obj/$(NIC_D)/%.o,rma bell check fifo trigger_list engine thread) $B/obj/plugins/trigger_common/simnet/links.o
TRIGGER_PLUGINS := trigger_gputn trigger_hdn trigger_gds trigger_proxy
ifeq ($(FABRIC_FOUND),)
$(call leave_out,$(TRIGGER_PLUGINS),$(FABRIC_WHY),$(FABRIC_MEND))
else
PLUGINS += $(TRIGGER_PLUGINS)
$(foreach p,$(TRIGGER_PLUGINS),$(eval $p_SRC := $D/$p.c $(NIC_SRC) $(FABRIC_SRC) $(SIMNET_SRC))\
  $(eval $p_CFLAGS := -I$D -I$(NIC_D) $(FABRIC_CFLAGS))$(eval $p_LIBS := $(FABRIC_LIBS)))
endif
