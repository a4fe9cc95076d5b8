# SPDX-License-Identifier: Apache-2.0
# The models of the trigger FIFO, of thresholds on the device, of cancelling, of the table of trigger_proxy, and of stores into other ranks hold, and each
# seeded fault is found in them.
exec sh tests/models/check-models.sh --quick trigger
