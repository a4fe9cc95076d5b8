# SPDX-License-Identifier: Apache-2.0
# Searches the models of queues, detectors, sleep and late workers. No error may occur without a fault, and each planted fault
# must be found. `make check-models` runs longer searches.
exec sh tests/models/check-models.sh --quick sched
