# SPDX-License-Identifier: Apache-2.0
# Ranks and device processes that are killed or stopped at a random moment: see kills.py. `make check-kills KILLS=200`
# does it more often.
. tests/lib.sh
python3 tests/kills.py "$B" "${KILLS:-10}" || fail 'a process that was killed or stopped'
finish
