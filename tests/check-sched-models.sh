# SPDX-License-Identifier: Apache-2.0
# The models of queues, detectors, sleep and late workers: no error without a fault, and each seeded fault is found.
# Longer searches are in `make check-models`.
exec sh tests/models/check-models.sh --quick sched
