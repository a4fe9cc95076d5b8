# SPDX-License-Identifier: Apache-2.0
# Searches the models of sync_wic and of the barriers. They must have no error, and each planted fault must be found.
exec sh tests/models/check-models.sh --quick sync barrier
