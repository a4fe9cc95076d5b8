# SPDX-License-Identifier: Apache-2.0
# Builds the plug-ins of the current folder with an installed gpuloom alone. The folder has a plugin.mk, as in sdk.mk:
#   make -f "$(pkg-config --variable=sdkdir gpuloom)/plugins/outside.mk"
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.SECONDARY:
B ?= build
ifeq ($(origin CC),default)
CC := gcc
endif
OPT ?= -O2 -g
INSTALLED := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
# The last two folders are those from which an #include "../COMMON/x.h" of a plug-in is found.
CPPFLAGS += -I$(shell pkg-config --variable=includedir gpuloom) -D_GNU_SOURCE -I$(INSTALLED)/.. -I$(INSTALLED) -I$(INSTALLED)/device_common \
  -I$(INSTALLED)/workloads/common
CFLAGS += -std=gnu11 $(OPT) -Wall -fPIC -fvisibility=hidden -fno-common -falign-functions=64 -pthread
LDFLAGS += -pthread -Wl,-z,defs -Wl,--as-needed -Wl,--build-id=sha1
V ?=
Q := $(if $(V),,@)
say = $(if $(V),@:,@printf '  %-7s %s\n' $1 $2)
PLUGIN_MK := ./plugin.mk
PLUGIN_DIR :=
include $(INSTALLED)/sdk.mk

$B/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$Q$(CC) $(CPPFLAGS) $(CFLAGS) $(EXTRA_CFLAGS) -MMD -MP -c $< -o $@
-include $(PLUGIN_OBJ:.o=.d)
clean:
	rm -rf $B $(PLUGINS:=.so)
.PHONY: all clean
