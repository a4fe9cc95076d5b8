# SPDX-License-Identifier: Apache-2.0
# This folder is no plug-in. It has the channels of all sync plug-ins, and the code that wakes a sleeping worker.
SYNC_D := $D
