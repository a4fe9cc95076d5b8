# SPDX-License-Identifier: Apache-2.0
# The models of sync_wic and of the barriers: no error, and each seeded fault is found.
exec sh tests/models/check-models.sh --quick sync barrier
