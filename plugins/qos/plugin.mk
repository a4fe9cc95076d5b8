# SPDX-License-Identifier: Apache-2.0
# Every qos plug-in carries the service: the first one of the conf's pipeline runs it.
# -I$D: where the assembler finds the device code that is embedded (.incbin).
QOS_SERVICE := $(addprefix $D/,service.c path.c door.c fill.c order.c serve.c work.c files.c heap.c grants.c \
  account.c idle.c)
# Without liburing files are read and written by one system call each: 'files = pread'.
QOS_URING := $(if $(wildcard /usr/include/liburing.h),-DSSR_URING)
QOS_LIBS := $(if $(QOS_URING),-luring)
QOS_PLUGINS := split monolithic coalesce steer throttle budget
$(foreach p,$(QOS_PLUGINS),$(eval PLUGINS += qos_$p)\
$(eval qos_$p_SRC := $D/qos_$p.c $(QOS_SERVICE))\
$(eval qos_$p_CFLAGS := -I$D $(QOS_URING))\
$(eval qos_$p_LIBS := $(QOS_LIBS)))
