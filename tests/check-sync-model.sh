# SPDX-License-Identifier: Apache-2.0
# Searches the models of sync_wic and of the barriers: they have no error, and each planted fault is found.
exec sh tests/models/check-models.sh --quick sync barrier
