# SPDX-License-Identifier: Apache-2.0
# Some runs with random options and stopped workers; `make check-soak` does 2000.
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
exec python3 tests/soak.py "$1" --runs 25
