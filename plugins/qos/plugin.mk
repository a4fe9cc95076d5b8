# SPDX-License-Identifier: Apache-2.0
# Every qos plug-in contains the service; the first plug-in in the conf's pipeline runs it.
QOS_SERVICE := $(addprefix $D/,ops.c threads.c doorbell.c event.c interrupt.c bottom_half.c queue.c service_rounds.c services.c \
  heap.c device_frames.c grants.c completion.c cpu_time.c metrics.c cpuidle.c)
QOS_PLUGINS := split monolithic coalesce steer throttle budget
$(foreach p,$(QOS_PLUGINS),$(eval PLUGINS += qos_$p)\
$(eval qos_$p_SRC := $D/qos_$p.c $(QOS_SERVICE))\
$(eval qos_$p_CFLAGS := -I$D))
