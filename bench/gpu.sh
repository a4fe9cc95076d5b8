#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What work stealing costs on a GPU: the tables of the MGWS thesis (its figures 8 to 21, 23 and 26) on
# this machine's card, with ratios. Each line is the median of SAMPLES verified executions.
#   bench/gpu.sh [BUILD] [SAMPLES] [TABLE...]
# Tables: floor detectors queues placement workers shapes contains uts switch. Default: all.
# Floor: memset as a plain loop over the tasks in the same persistent kernel (workload memset_loop).
set -u
B=$(cd "${1:-build}" && pwd) samples=${2:-10}
[ $# -lt 2 ] && shift $# || shift 2
tables=${*:-floor detectors queues placement workers shapes contains uts switch}
G=$B/gpuloom
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$G" doctor >"$tmp/doctor" || exit 1
grep -q '^cuda: GPU 0  *ok' "$tmp/doctor" || { echo 'no usable NVIDIA GPU here' >&2; exit 77; }
cat >"$tmp/gpu.ini" <<END
[run]
workload = memset
devices  = cuda:0
samples  = $samples
warmup   = 2
timeout  = 60s
[device.cpu]
oversubscribe = yes
[transport]
use = p2p
[scheduler]
use = mgws
[termination]
use = counter
[workload.memset]
tasks = 4194304
[workload.memset_loop]
tasks = 4194304
[workload.contains]
path = $tmp/docs
word = zwischen
load = ahead
END

# median METRIC ARGUMENTS...: in base units, or nothing when the run failed.
median() {
	metric=$1
	shift
	"$G" run "$tmp/gpu.ini" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || { sed 's/^/# /' "$tmp/err" >&2; return 1; }
	awk -v metric="$metric" '$1 == metric {
		v = $2; gsub(",", "", v); u = $3
		f = 1
		if (u ~ /^n/) f = 1e-9; else if (u ~ /^u/) f = 1e-6; else if (u ~ /^m/) f = 1e-3
		else if (u ~ /^k/) f = 1e3; else if (u ~ /^M/) f = 1e6; else if (u ~ /^G/) f = 1e9
		printf "%.6g\n", v * f }' "$tmp/out"
}

# line LABEL ARGUMENTS...: tasks/s, exit time, and the ratio to $base (set by the first line of a table).
line() {
	label=$1
	shift
	rate=$(median tasks_per_s "$@") || { printf '| %-44s | %12s |\n' "$label" failed; return; }
	[ -n "$rate" ] || { # a kernel workload has no tasks of its own
		seconds=$(median seconds "$@")
		rate=$(awk -v s="$seconds" 'BEGIN { printf "%.6g", 4194304 / s }')
	}
	exit_ns=$(awk '$1 == "exit_ns" { print $2, $3 }' "$tmp/out")
	[ -n "$base" ] || base=$rate
	awk -v l="$label" -v r="$rate" -v b="$base" -v e="$exit_ns" \
		'BEGIN { printf "| %-44s | %12.1f | %7.3f | %12s |\n", l, r / 1e6, r / b, e }'
}

table() {
	base=
	printf '\n%s\n\n| %-44s | %12s | %7s | %12s |\n|---|---|---|---|\n' "$1" '' 'M tasks/s' ratio exit
}

grep '^cuda' "$tmp/doctor"
for t in $tables; do
	case $t in
	floor)
		table 'memset against direct static execution (figure 17; the thesis: 0.68 of it at full residency)'
		line 'plain loop, tasks in device memory' --set run.workload=memset_loop
		line 'static, device memory' --set scheduler.use=static
		line 'mgws, device memory' --set scheduler.use=mgws
		line 'plain loop, tasks in host memory' --set run.workload=memset_loop --set transport.use=host
		line 'static, host memory' --set scheduler.use=static --set transport.use=host
		line 'mgws, host memory' --set transport.use=host
		;;
	detectors)
		table 'termination detectors (figures 8 and 10)'
		for term in $(cd "$B/plugins" && ls term_*.so | sed 's/term_\(.*\)\.so/\1/'); do
			for transport in p2p host; do
				line "$term, $transport" --set termination.use="$term" --set transport.use=$transport
			done
		done
		;;
	queues)
		table 'queue sizes (figures 11 and 14)'
		for public in 256 128 64 32 16; do
			for local in 32 16; do
				line "public $public, local $local" --set scheduler.mgws.public_queue=$public \
					--set scheduler.mgws.local_queue=$local --set run.workload=fib --set workload.fib.n=30
			done
		done
		;;
	placement)
		table 'public queues in device and in host memory (the thesis: 246 times)'
		for job in 'fib workload.fib.n=28' 'uts workload.uts.tree=T1'; do
			for transport in p2p host; do
				line "${job% *}, $transport" --set run.workload="${job% *}" --set "${job#* }" \
					--set transport.use=$transport
			done
		done
		;;
	workers)
		table 'number of workers, memset'
		for workers in 1 16 132 528 1056 2112 0; do
			line "workers = $workers" --set device.cuda.workers=$workers
		done
		;;
	shapes)
		table 'shape of workers, memset'
		for shape in lanes=32 lanes=64 lanes=128 lanes=256 'worker=warp' 'worker=warp warps=8' \
			max_registers=64 max_registers=96; do
			set --
			for one in $shape; do
				set -- "$@" --set "device.cuda.$one"
			done
			line "$shape" "$@"
		done
		;;
	contains)
		mkdir -p "$tmp/docs"
		for i in $(seq 1500); do # sizes over three orders of magnitude
			seq "$i" $((i + 20 * (i % 100) * (i % 10) + 20)) | sed 's/7/zwischen den Zeilen /' >"$tmp/docs/$i.txt"
		done
		table 'contains (figures 18 to 21): stealing against equal shares'
		for workers in 16 132 528 0; do
			for scheduler in static mgws; do
				line "$scheduler, workers = $workers" --set run.workload=contains \
					--set scheduler.use=$scheduler --set device.cuda.workers=$workers
			done
		done
		if grep -q '^cuda: GPU 0 and CPU  *ok' "$tmp/doctor"; then
			line 'mgws, CPU and GPU' --set run.workload=contains --set transport.use=host \
				--set run.devices='cpu:0 cuda:0'
		fi
		;;
	uts)
		table 'unbalanced tree search'
		for tree in T1 T3 T1L T3L; do
			line "$tree" --set run.workload=uts --set workload.uts.tree=$tree
		done
		;;
	switch)
		printf '\nswitching a policy by conf: the whole command, one sample of one task\n\n'
		export XDG_CACHE_HOME="$tmp/cache"
		for scheduler in mgws static mgws static; do
			begin=$(date +%s%N)
			"$G" run "$tmp/gpu.ini" --quiet --samples 1 --set run.warmup=0 --set workload.memset.tasks=1 \
				--set scheduler.use=$scheduler --log info 2>&1 | grep -o 'compiled in.*'
			echo "$scheduler: $((($(date +%s%N) - begin) / 1000000)) ms"
		done
		;;
	*)
		echo "no table '$t'" >&2
		exit 2
		;;
	esac
done
