# SPDX-License-Identifier: Apache-2.0
# Only where libfabric's headers are: tools/deps build installs them.
# -I$D: where the assembler finds the device code that is embedded (.incbin).
ifneq ($(wildcard /usr/include/rdma/fabric.h /usr/local/include/rdma/fabric.h),)
TRIGGER_NIC := $(addprefix $D/,list.c nic.c check.c policy.c fifo.c record.c fabric.c fabric_open.c fabric_test.c fabric_shm.c)
TRIGGER_PLUGINS := trigger_gputn trigger_counter trigger_hdn trigger_gds trigger_proxy trigger_ofi
PLUGINS += $(TRIGGER_PLUGINS)
$(foreach p,$(TRIGGER_PLUGINS),$(eval $p_SRC := $D/$p.c $(TRIGGER_NIC))\
  $(eval $p_CFLAGS := -I$D)$(eval $p_LIBS := -lfabric))
trigger_ofi_SRC += $D/fabric_work.c
endif
