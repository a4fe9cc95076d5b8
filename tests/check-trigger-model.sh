# SPDX-License-Identifier: Apache-2.0
# The models of the trigger FIFO, of thresholds on the device, of cancelling, of the table of trigger_proxy, and of
# stores into other ranks: no error, and each seeded fault is found.
exec sh tests/models/check-models.sh --quick trigger
