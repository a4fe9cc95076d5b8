#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The paper's figure 7 (conf/qos/pareto.ini): its eight combinations, and throttle and budget at 1, 5 and
# 20 %, in one sweep; the front is drawn into BUILD/bench/pareto.svg.
#   bench/pareto.sh BUILD [options of `gpuloom sweep`, as --samples 10]
set -eu
build=${1:?usage: bench/pareto.sh BUILD [OPTION]...}
shift
mkdir -p "$build/bench"
eight='split|coalesce split|steer split|coalesce steer split|monolithic|coalesce monolithic|steer monolithic|coalesce steer monolithic'
uses=$(printf '%s|split throttle|monolithic budget' "$eight" | tr '|' ',')
status=0
"$build/gpuloom" sweep conf/qos/pareto.ini -o "$build/bench/pareto.jsonl" \
	--vary "qos.use=$uses" \
	--vary 'qos.throttle.limit=5%,1%,20%' --vary 'qos.budget.limit=5%,1%,20%' \
	--skip "qos.use=$eight|split throttle, qos.budget.limit=1%|20%: no budget" \
	--skip "qos.use=$eight|monolithic budget, qos.throttle.limit=1%|20%: no throttle" \
	"$@" || status=$?
case "$status $*" in
*--dry-run*|[234]\ *) exit $status ;;
esac
"$build/gpuloom" report "$build/bench/pareto.jsonl" --plot pareto --pareto victim_speed,requests_per_s \
	-o "$build/bench/pareto.svg"
echo "drawn: $build/bench/pareto.svg"
exit $status
