#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures variants of trigger_peer on two GPUs: one way of a message between two ranks, us.
#   bench/peer_sweep.sh [BUILD] [SAMPLES] [WHAT...]
# WHAT is a list of BYTES:LANES, by default 8:32 4096:256 4096:512 65536:512 65536:1024. The variables BATCH, POLLS and SHORT list
# values of PEER_BATCH, PEER_POLLS and PEER_SHORT (trigger_peer.dev.h). A message is sent by each combination that differs for it: PEER_SHORT * LANES words are a short message, for which only SHORT matters. The
# device code is text in the plug-in, and is compiled when a run starts. So a variant is a copy of the plug-in with another number in
# this text, which has at most as many digits. Nothing is built.
set -u
B=$(cd "${1:-build}" && pwd) samples=${2:-5}
[ $# -lt 2 ] && shift $# || shift 2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
cat >"$tmp/gpu.ini" <<END
[run]
workload = pingpong
devices  = cuda:0
samples  = $samples
warmup   = 2
timeout  = 20s
[transport]
use = p2p
[scheduler]
use = mgws
[termination]
use = counter
[trigger]
use = peer
END
# variant NAME VALUE: replaces the number of each `#define NAME` in the copy of the plug-in.
variant() {
	[ -z "$2" ] || LC_ALL=C sed -i "s/#define $1 [0-9][0-9]u/#define $1 $(printf '%-3s' "$2u")/" "$tmp/trigger_peer.so"
	case $2 in [0-9]) LC_ALL=C sed -i "s/#define $1 [0-9]u/#define $1 $2u/" "$tmp/trigger_peer.so" ;; esac
}
# way BYTES LANES BATCH POLLS SHORT: an empty value leaves what the source says.
way() {
	cp "$B/plugins/trigger_peer.so" "$tmp" || exit 1
	variant PEER_BATCH "$3" && variant PEER_POLLS "$4" && variant PEER_SHORT "$5"
	GPULOOM_PLUGIN_PATH=$tmp:$B/plugins "$B/gpuloom" run "$tmp/gpu.ini" --ranks "${RANKS:-2}" --set device.cuda.workers=1 \
		--set device.cuda.lanes="$2" --set workload.pingpong.rounds=1000 \
		--set workload.pingpong.bytes="$1" ${MORE:-} >"$tmp/out" 2>"$tmp/err" </dev/null || sed 's/^/# /;3q' "$tmp/err"
	awk -v l="$1 $2 batch=${3:--} polls=${4:--} short=${5:--}" '
		{ gsub(",", "", $2) }
		$1 == "one_way_p50" || $1 == "turn_p50" { v[$1] = $2 / ($3 ~ /^n/ ? 1e3 : $3 ~ /^u/ ? 1 : 1e-3) }
		END { printf "sweep %s one_way_us %.3g turn_us %.3g\n", l, v["one_way_p50"], v["turn_p50"] }' "$tmp/out"
}
for what in ${*:-8:32 4096:256 4096:512 65536:512 65536:1024}; do
	bytes=${what%:*} lanes=${what#*:}
	if [ $((bytes / 8)) -le $((2 * lanes)) ]; then
		for short in ${SHORT:-2}; do
			way "$bytes" "$lanes" '' '' "$short"
		done
		continue
	fi
	for batch in ${BATCH:-4 8 16}; do
		for polls in ${POLLS:-2 4 8}; do
			way "$bytes" "$lanes" "$batch" "$polls" ''
		done
	done
done
