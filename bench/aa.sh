#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How often does `gpuloom compare` claim a difference where there is none, on a machine that other
# programs load? And how often does it find one that was planted?
#   bench/aa.sh [BUILD] [TRIALS] [SPINNERS]
# SPINNERS: programs that spin beside it, half of the time each (default 2). CONF: the conf of the first
# row. The whole takes hours with the default conf and 200 trials. The last lines are
# `bar FIGURE VALUE RELATION TARGET ok|short`.
set -eu
B=${1:-build} trials=${2:-200} spinners=${3:-2}
G=$B/gpuloom
planted=$PWD/$B/tests/plugins/workload_planted.so
[ -e "$planted" ] || { echo "make tests first: no $planted" >&2; exit 2; }
tmp=$(mktemp -d)
pids=
trap 'unload; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
load() {
	for i in $(seq "$spinners"); do
		python3 -c '
import random, time
while True:
    end = time.monotonic() + random.uniform(0, 0.1)
    while time.monotonic() < end: pass
    time.sleep(random.uniform(0, 0.1))' &
		pids="$pids $!"
	done
}
unload() {
	for p in $pids; do kill "$p" 2>/dev/null || :; done
	pids=
}

verdict() { # the first comparison's, from a file
	sed -n 's/.*"verdict":[[:space:]]*"\([A-Z]*\)".*/\1/p' "$1" | head -n 1
}
count() { # trials of "$@" into $tmp/$1, one verdict a line
	name=$1
	shift
	: >"$tmp/$name"
	for i in $(seq "$trials"); do
		"$G" compare "$@" --seed "$i" --quiet --json "$tmp/one.json" 2>>"$tmp/log" ||
			{ tail -n 3 "$tmp/log" >&2; exit 1; }
		verdict "$tmp/one.json" >>"$tmp/$name"
	done
	echo "$name: $(sort "$tmp/$name" | uniq -c | tr -s ' \n' ' ')"
}
bar() { # FIGURE WORDS FILE RELATION TARGET
	grep -cE "^($2)$" "$3" >"$tmp/n" || :
	awk -v f="$1" -v n="$(cat "$tmp/n")" -v all="$trials" -v r="$4" -v t="$5" 'BEGIN {
		v = n / all
		printf "bar %s %.4g %s %s %s\n", f, v, r, t, (r == "<=" ? v <= t : v >= t) ? "ok" : "short" }'
}

printf '%s\n' '[run]' "workload = $planted" 'devices = cpu:0 cpu:1' '[device.cpu]' \
	'oversubscribe = yes' '[transport]' 'use = host' >"$tmp/planted.ini"
planted="$tmp/planted.ini --vary workload.planted.turns=2000000,2060000"
count planted-as-it-is $planted
load
count same-conf "${CONF:-conf/contains.ini}" --vary run.title=a,b
count same-work "$tmp/planted.ini" --set workload.planted.turns=2000000 --vary run.title=a,b
count same-work-best "$tmp/planted.ini" --set workload.planted.turns=2000000 --vary run.title=a,b --per-block best
count planted-loaded-best $planted --per-block best
unload
bar aa_claims_conf 'FASTER|SLOWER' "$tmp/same-conf" '<=' 0.05
bar aa_claims_work 'FASTER|SLOWER' "$tmp/same-work" '<=' 0.05
bar aa_claims_work_best 'FASTER|SLOWER' "$tmp/same-work-best" '<=' 0.05
bar planted_3_percent_found 'SLOWER' "$tmp/planted-as-it-is" '>=' 0.8
bar planted_3_percent_found_loaded 'SLOWER' "$tmp/planted-loaded-best" '>=' 0.8
