# SPDX-License-Identifier: Apache-2.0
# This folder is no plug-in. It has the operations on another rank's memory over libfabric.
FABRIC_D := $D
FABRIC_SRC := $(addprefix $D/,fabric_io.c fabric_key.c fabric_ofi.c fabric_hmem.c fabric_staged.c fabric_open.c fabric_test.c \
  fabric_shm.c)
