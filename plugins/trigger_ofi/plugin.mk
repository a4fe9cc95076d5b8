# SPDX-License-Identifier: Apache-2.0
ifeq ($(FABRIC_FOUND),)
$(call leave_out,trigger_ofi,$(FABRIC_WHY),$(FABRIC_MEND))
else
PLUGINS += trigger_ofi
trigger_ofi_SRC := $D/trigger_ofi.c $(FABRIC_D)/fabric_work.c $(NIC_SRC) $(FABRIC_SRC) $(SIMNET_SRC)
trigger_ofi_CFLAGS := -I$D -I$(NIC_D) $(FABRIC_CFLAGS)
trigger_ofi_LIBS := $(FABRIC_LIBS)
endif
