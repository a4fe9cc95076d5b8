# SPDX-License-Identifier: Apache-2.0
# The models of sync_wic and of the barriers hold, and each seeded mistake is found in them.
exec sh tests/models/check-models.sh --quick sync barrier
