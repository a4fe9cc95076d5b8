# SPDX-License-Identifier: Apache-2.0
# Searches the models of the trigger FIFO, of thresholds on the device, of cancelling, of the table of trigger_proxy, and of
# stores into other ranks. They must have no error, and each planted fault must be
# found.
exec sh tests/models/check-models.sh --quick trigger
