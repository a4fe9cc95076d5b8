# SPDX-License-Identifier: Apache-2.0
# Every qos plug-in carries the service: the first one of the conf's pipeline runs it.
# -I$D: where the assembler finds the device code that is embedded (.incbin).
QOS_SERVICE := $(addprefix $D/,service.c path.c door.c bell.c alarm.c fill.c order.c serve.c work.c files.c heap.c frames.c grants.c \
  complete.c charge.c account.c idle.c)
# Without liburing files are read and written by one system call each: 'files = pread' is then the default.
$(if $(URING_FOUND),,$(info left out: 'files = uring' of qos: $(URING_WHY); $(URING_MEND)))
QOS_URING := $(if $(URING_FOUND),-DSSR_URING $(URING_CFLAGS))
QOS_PLUGINS := split monolithic coalesce steer throttle budget
$(foreach p,$(QOS_PLUGINS),$(eval PLUGINS += qos_$p)\
$(eval qos_$p_SRC := $D/qos_$p.c $(QOS_SERVICE))\
$(eval qos_$p_CFLAGS := -I$D $(QOS_URING))\
$(eval qos_$p_LIBS := $(URING_LIBS)))
