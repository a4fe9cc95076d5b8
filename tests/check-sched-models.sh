# SPDX-License-Identifier: Apache-2.0
# The models of queues, detectors, sleep and late workers: no error in them as they are, and each seeded fault is found.
# What takes longer is in `make check-models`.
exec sh tests/models/check-models.sh --quick sched
