# SPDX-License-Identifier: Apache-2.0
# -I$D: where the assembler finds the device code that is embedded (.incbin).
$B/tests/test_ranks: $B/obj/$D/fabric_key.o
$B/tests/test_trigger_nic: $(patsubst %,$B/obj/$D/%.o,ask bell check fifo links list nic tally)
# No network, so no libfabric.
PLUGINS += trigger_peer
trigger_peer_SRC := $(addprefix $D/,trigger_peer.c peer_map.c check.c)
trigger_peer_CFLAGS := -I$D
TRIGGER_PLUGINS := trigger_gputn trigger_counter trigger_hdn trigger_gds trigger_proxy trigger_ofi
ifeq ($(FABRIC_FOUND),)
$(call leave_out,$(TRIGGER_PLUGINS),$(FABRIC_WHY),$(FABRIC_MEND))
else
TRIGGER_NIC := $(addprefix $D/,list.c nic.c check.c policy.c ask.c bell.c fifo.c record.c tally.c fabric.c net.c wire.c links.c platform.c fabric_io.c fabric_key.c \
  fabric_ofi.c fabric_hmem.c fabric_staged.c fabric_open.c fabric_test.c fabric_shm.c) plugins/shared/child/child.c
PLUGINS += $(TRIGGER_PLUGINS)
$(foreach p,$(TRIGGER_PLUGINS),$(eval $p_SRC := $D/$p.c $(TRIGGER_NIC))\
  $(eval $p_CFLAGS := -I$D $(FABRIC_CFLAGS))$(eval $p_LIBS := $(FABRIC_LIBS)))
trigger_ofi_SRC += $D/fabric_work.c
endif
