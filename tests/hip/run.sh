#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs all combinations on this machine's AMD GPU. This script has not run on a GPU yet.
#   [PARTS='tasks waits litmus'] tests/hip/run.sh BUILD [SAMPLES]
# SAMPLES (default 50) is the number of consecutive samples in a run. PARTS has the parts of tests/gpu/everything.sh. Without
# a GPU the exit status is 77.
device=hip vendor=AMD
shapes='
lanes=128
lanes=256
worker=warp
worker=warp warps=8
workers=1
workers=2
max_registers=64
nesting=2
'
syncs='poll backoff'
shared_shapes='
worker=warp warps=4
lanes=128
'
litmus=false
if hipcc=$(command -v hipcc || ls /opt/rocm/bin/hipcc 2>/dev/null); then
	litmus="$hipcc -x hip -std=c++20 -O2 --offload-arch=native"
fi
together() { :; }
in_turn() { :; }
. "$(dirname "$0")/../gpu/everything.sh"
