# SPDX-License-Identifier: Apache-2.0
# Runs random configurations, some of which are stopped, interrupted or killed. `make soak TIME=1h` runs more.
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
[ "${CHECK:-}" = all ] && runs=300 || runs=60
exec python3 tests/soak.py "$1" --runs "${SOAK_RUNS:-$runs}" --seed "${SOAK_SEED:-1}"
