# SPDX-License-Identifier: Apache-2.0
# The rules by which plug-ins are built, in the source tree and outside (plugins/outside.mk), from the plugin.mk of their
# folder. A plugin.mk sets, with D as its own folder:
#   PLUGINS += name
#   name_SRC := $D/a.c $D/b.c     name_LIBS := -lz     name_CFLAGS := -I$D (there the assembler finds embedded device code)
# Paths of common code begin with $(SDK), which is empty in the source tree. Plug-ins that cannot be built are reported, with a
# note for later requests (lab/inspect/absent.c):
#   $(call leave_out,names,reason,fix)
SDK := $(patsubst %plugins/,%,$(dir $(lastword $(MAKEFILE_LIST))))

# ---- optional libraries -----------------------------------------------------
# $(call find_library,NAME,pkg-config's name of the library,a header,-l...,Debian's package)
# sets NAME_FOUND, NAME_CFLAGS and NAME_LIBS. If NAME_FOUND is empty, it sets the reason and a remedy.
# NAME=0 builds without the library; NAME=1 requires it.
define find_library
$1 ?= auto
$1_FLAGS := $$(if $$(filter 0,$$($1)),,$$(shell pkg-config --cflags --libs $2 2>/dev/null || \
  ls /usr/include/$3 /usr/local/include/$3 2>/dev/null | sed 's/.*/$4/;q'))
$1_FOUND := $$(if $$($1_FLAGS),yes)
$1_CFLAGS := $$(filter -I% -D%,$$($1_FLAGS))
$1_LIBS := $$(filter-out -I% -D%,$$($1_FLAGS))
$1_WHY := $$(if $$(filter 0,$$($1)),it was built with $1=0,there was no $3)
$1_MEND := $$(if $$(filter 0,$$($1)),build again without $1=0,install $2 (Debian: $5) and build again)
$$(if $$(filter 1,$$($1)),$$(if $$($1_FOUND),,$$(error $1=1, but there is no $3: install $2 (Debian: $5), or say in PKG_CONFIG_PATH where it is)))
endef
$(eval $(call find_library,FABRIC,libfabric,rdma/fabric.h,-lfabric,libfabric-dev))
$(eval $(call find_library,PMIX,pmix,pmix.h,-lpmix,libpmix-dev))

# ---- plug-ins ---------------------------------------------------------------
PLUGINS :=
ABSENT :=
LEFT_OUT =
leave_out = $(eval LEFT_OUT += $$(info left out: $(strip $1): $2; $3))$(foreach p,$1,$(eval ABSENT += $p)$(eval $p_WHY := $2)$(eval $p_MEND := $3))
define include_plugin
D := $(patsubst %/,%,$(dir $1))
include $1
endef
COMMON_MK := $(sort $(wildcard $(SDK)plugins/*_common/plugin.mk $(SDK)plugins/*_common/*/plugin.mk))
$(foreach mk,$(COMMON_MK) $(filter-out $(COMMON_MK),$(sort $(PLUGIN_MK))),$(eval $(call include_plugin,$(mk))))

# $(call plugin_rules,name,path of the plug-in)
define plugin_rules
$1_OBJ := $$(patsubst %.c,$B/obj/%.o,$$($1_SRC))
# A file that several plug-ins compile gets the flags of all of them.
$$($1_OBJ): EXTRA_CFLAGS += $$($1_CFLAGS)
$2.so: $$($1_OBJ)
	@mkdir -p $$(@D)
	@rm -f $$(@:.so=.absent)
	$$(call say,LINK,$$@)
	$$Q$(CC) $(CFLAGS) -shared $(LDFLAGS) $$^ $$($1_LIBS) -o $$@
all: $2.so
endef
$(foreach p,$(PLUGINS),$(eval $(call plugin_rules,$p,$(PLUGIN_DIR)$p)))
PLUGIN_OBJ := $(foreach p,$(PLUGINS),$($p_OBJ))
left-out:
	@:$(LEFT_OUT)
all: left-out
.PHONY: left-out
