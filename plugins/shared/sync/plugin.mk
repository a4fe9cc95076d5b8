# SPDX-License-Identifier: Apache-2.0
# No plug-in of its own: the channel that all sync plug-ins have, and what wakes a worker that sleeps.
SYNC_D := $D
