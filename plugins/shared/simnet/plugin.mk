# SPDX-License-Identifier: Apache-2.0
# No plug-in of its own: a network under virtual time.
SIMNET_SRC := $(addprefix $D/,simnet.c wire.c links.c platform.c) plugins/shared/child/child.c
