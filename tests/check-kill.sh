# SPDX-License-Identifier: Apache-2.0
# Kills or stops ranks and device processes at random moments (kills.py). `make check-kills KILLS=200` does this more often.
. tests/lib.sh
python3 tests/kills.py "$B" "${KILLS:-10}" || fail 'a process that was killed or stopped'
finish
