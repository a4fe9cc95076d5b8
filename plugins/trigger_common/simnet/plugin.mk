# SPDX-License-Identifier: Apache-2.0
# This folder is no plug-in. It has a network in virtual time.
SIMNET_SRC := $(addprefix $D/,simnet.c wire.c links.c)
