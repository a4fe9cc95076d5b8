#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures the cost of work stealing on this machine's GPU: the tables of the MGWS thesis (figures 8 to 21, 23 and 26),
# with ratios. Each line is the median of SAMPLES verified executions.
#   bench/gpu.sh [BUILD] [SAMPLES] [TABLE...]
# Tables: floor lanes detectors queues owners gpus ranks placement workers shapes contains both uts rivals monolithic waits switch
# triggers requests barriers reduce oneway meet peers collectives training tax uneven. Default: all but uneven, which takes ten
# minutes. gpus, meet, peers, collectives and training need two GPUs. With one GPU, the ranks of `ranks` share it by NVIDIA's MPS,
# and in `oneway` a rank sends to itself.
# WAITS_CORES (0-1) are the two cores of the consumers on a CPU in `waits`.
# The environment may name compiled programs: GPU_LINK for gpu_link.cu, and likewise GPU_BARRIERS, GPU_REDUCE, GPU_PEERS,
# GPU_CONTAINS, GPU_TAX, GPU_UNEVEN, GPU_RIVALS, GPU_NVSHMEM and GPU_LSA. BARRIERS has the barriers to measure.
# peers, oneway and meet also measure NVSHMEM and NCCL's device API (LSA) on two GPUs, if their headers and libraries are here: in the
# wheels nvidia-nvshmem-cu13 or -cu12 and nvidia-nccl-cu13 or -cu12, or NCCL's with CUDA or the system. Each may take a minute at most.
# For uneven: UNEVEN_LENGTH (2048) is the mean number of tokens of a sequence. UNEVEN_LAWS, UNEVEN_CHUNKS, UNEVEN_SKEWS, UNEVEN_ROWS
# and UNEVEN_SCHEDULERS select parts of the matrix, whose rows are also written to BUILD/bench/uneven-gpu.tsv.
# For training: TRAINING_LANES (256) are the lanes of a worker, and TRAINING_PASSES (3) is the number of passes. It needs PyTorch.
# The first lines, `run KEY VALUE`, say what bench/keep records beside the values of the `bar` lines.
# The floor is memset as a plain loop over the tasks in the same persistent kernel (workload memset_loop).
set -u
set_=$(env | sed -n 's/^\(BARRIERS=.*\|\(REDUCE\|UNEVEN\|TRAINING\)_[A-Z]*=.*\)/\1/p' | sort | tr '\n' ' ')
printf 'run command %sbench/gpu.sh %s\nrun date %s\n' "$set_" "$*" "$(date -u +%F)"
B=$(cd "${1:-build}" && pwd) samples=${2:-10}
[ $# -lt 2 ] && shift $# || shift 2
tables=${*:-floor lanes detectors queues owners gpus ranks placement workers shapes contains both uts rivals monolithic waits switch triggers requests barriers reduce oneway meet peers collectives training tax}
G=$B/gpuloom
sed -n 's/^#define LOOM_BUILD_REVISION "\(.*\)"/run revision \1/p' "$B/build-facts.h"
tmp=$(mktemp -d)
# together starts NVIDIA's MPS, under which kernels of several processes run at once. apart stops it.
together() {
	export CUDA_MPS_PIPE_DIRECTORY="$tmp" CUDA_MPS_LOG_DIRECTORY="$tmp"
	nvidia-cuda-mps-control -d && together=yes
}
apart() {
	[ -z "$together" ] || echo quit | nvidia-cuda-mps-control
	together=
	unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}
together=
trap 'apart; rm -rf "$tmp"' EXIT
trap 'exit 130' INT
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

# median METRIC ARGUMENTS...: prints the median in base units, or nothing if the run failed.
median() {
	metric=$1
	shift
	"$G" run "$tmp/gpu.ini" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || { sed 's/^/# /' "$tmp/err" >&2; return 1; }
	another "$metric"
}

# another METRIC: prints another metric of the same run.
another() {
	awk -v metric="$1" '$1 == metric {
		v = $2; gsub(",", "", v); u = $3
		f = 1
		if (u ~ /^n/) f = 1e-9; else if (u ~ /^u/) f = 1e-6; else if (u ~ /^m/) f = 1e-3
		else if (u ~ /^k/) f = 1e3; else if (u ~ /^M/) f = 1e6; else if (u ~ /^G/) f = 1e9
		else if (u ~ /^T/) f = 1e12
		printf "%.6g\n", v * f }' "$tmp/out"
}

# lost_on FIRST-LAST: reads the lines of /proc/stat after and before a run, side by side. Prints which part of the time of these cores
# went to the kernel, to interrupts and to other virtual machines.
lost_on() {
	awk -v from="${1%-*}" -v to="${1#*-}" '{
		core = substr($1, 4) + 0
		n = NF / 2
		for (i = 2; i <= 9 && core >= from && core <= to; i++) {
			d = $i - $(n + i)
			all += d
			if (i == 4) kernel += d
			if (i == 7 || i == 8) interrupts += d
			if (i == 9) stolen += d
		}
	} END { if (all) printf "%.1f %.1f %.1f", 100 * kernel / all, 100 * interrupts / all, 100 * stolen / all }'
}

# line LABEL ARGUMENTS...: prints tasks/s, exit time, and the ratio to $base. The first line of a table sets $base.
line() {
	label=$1
	shift
	rate=$(median tasks_per_s "$@") || { printf '| %-44s | %12s |\n' "$label" failed; return; }
	[ -n "$rate" ] || { # a kernel workload has no tasks
		seconds=$(median seconds "$@")
		rate=$(awk -v s="$seconds" -v n="${tasks:-4194304}" 'BEGIN { printf "%.6g", n / s }')
	}
	exit_ns=$(awk '$1 == "exit_ns" { print $2, $3 }' "$tmp/out")
	[ -n "$base" ] || base=$rate
	awk -v l="$label" -v r="$rate" -v b="$base" -v e="$exit_ns" \
		'BEGIN { printf "| %-44s | %12.1f | %7.3f | %12s |\n", l, r / 1e6, r / b, e }'
}

# Prints the ratio of the last line to the first one.
to_base() {
	awk -v r="${rate:-0}" -v b="$base" 'BEGIN { print b ? r / b : 0 }'
}

# Makes documents whose sizes span three orders of magnitude. The large ones are adjacent.
make_docs() {
	[ ! -d "$tmp/docs" ] || return 0
	mkdir -p "$tmp/docs"
	awk -v to="$tmp/docs" 'BEGIN {
		for (i = 1; i <= 6000; i++) {
			f = to "/" sprintf("%05d", i) ".txt"
			n = i % 1000 < 50 ? 20000 : 20 + i % 100
			for (k = 0; k < n / 10; k++)
				printf "%d zwi und schen, Zeile %d der Datei\n", i, k > f
			if (i % 3 == 0)
				print "zwischen den Zeilen" > f
			close(f)
		}
	}'
}

# Makes a text of the pages of this project, repeated, with an index that divides the text into documents of 64 KiB.
make_text() {
	cat "$(dirname "$0")"/../docs/*.md >"$tmp/pages"
	while :; do cat "$tmp/pages" || break; done 2>/dev/null | head -c 536870912 >"$tmp/text"
	seq 0 65536 536805376 | sed 's/$/ 65536/' >"$tmp/index"
}

# rate LABEL FLOOR METRIC ARGUMENTS...: prints millions per second and the ratio to the floor; $value is the median.
rate() {
	label=$1 floor=$2 metric=$3
	shift 3
	value=$(median "$metric" --set run.workload=msgrate "$@") || value=0
	awk -v l="$label" -v r="$value" -v b="$floor" \
		'BEGIN { printf "| %-44s | %12.2f | %7.3f | %12s |\n", l, r / 1e6, b ? r / b : 0, "" }'
}

# bar NAME VALUE >=|<= TARGET
bar() {
	awk -v f="$1" -v v="$2" -v o="$3" -v t="$4" 'BEGIN {
		good = o == ">=" ? v >= t : v <= t
		printf "bar %s %.4g %s %s %s\n", f, v, o, t, good ? "ok" : "short" }'
}

# figure NAME VALUE: the value has no target. The last lines of the output have these values.
figure() {
	[ -z "$2" ] || printf 'figure %s %.6g\n' "$1" "$2" >>"$tmp/figures"
}

barriers=${BARRIERS:-auto central release tree dissemination flags}

# compiled PROGRAM SOURCE [FLAG...]
compiled() {
	program=$1 source=$(dirname "$0")/$2
	shift 2
	[ -x "$program" ] || "${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}" -O3 -std=c++17 -arch=native "$@" \
		-o "$program" "$source" -lpthread -ldl
}

two_gpus() {
	grep -q '^cuda: GPU 1  *ok' "$tmp/doctor"
}

# of FILE NAME: prints the value of a line that another program has printed, or nothing.
of() {
	awk -v n="$2" '$1 == n { print $2 }' "$tmp/$1"
}

# ratio A B: prints nothing if one of the values is missing.
ratio() {
	awk -v a="$1" -v b="$2" 'BEGIN { if (a == "inf" && b > 0) print a; else if (a > 0 && b > 0) printf "%.4g\n", a / b }'
}

# wheel NAME: prints the folder of a Python wheel of NVIDIA (nccl, nvshmem), which has include/ and lib/, or nothing.
wheel() {
	python3 -c "import nvidia.$1 as n; print(list(n.__path__)[0])" 2>/dev/null
}

# find_nccl: sets nccl_include and nccl_lib to the folders of NCCL with its device API, or to nothing.
find_nccl() {
	nccl_include='' nccl_lib=''
	for at in "$(wheel nccl)" "$(dirname "$(dirname "$(command -v "${NVCC:-nvcc}" || echo /usr/local/cuda/bin/nvcc)")")" /usr; do
		for lib in "$at/lib" "$at/lib64" "$at/lib/$(uname -m)-linux-gnu"; do
			if [ -z "$nccl_lib" ] && [ -e "$at/include/nccl_device.h" ] && [ -e "$lib/libnccl.so.2" ]; then
				nccl_include=$at/include nccl_lib=$lib
			fi
		done
	done
}

# limited NAME LIB COMMAND...: runs a program that measures the library in the folder LIB, for at most a minute. Its lines, in
# $tmp/NAME, count even if it fails after them. NVLink multicast is off.
limited() {
	name=$1 lib=$2
	shift 2
	NVSHMEM_DISABLE_NVLS=1 NCCL_NVLS_ENABLE=0 LD_LIBRARY_PATH="${lib:+$lib:}${LD_LIBRARY_PATH-}" timeout -k 5 60 "$@" \
		>"$tmp/$name" </dev/null
	status=$?
	case $status in
	0 | 77) ;;
	124 | 137) echo "$name: stopped after 60 s; what it had not printed by then is missing" >&2 ;;
	*) echo "$name: ends with status $status; what it had not printed by then is missing" >&2 ;;
	esac
	return $status
}

# measure_library NAME LIB PROGRAM SOURCE FLAG...: compiles the program, unless it is there, and runs it as limited() does.
measure_library() {
	name=$1 lib=$2
	shift 2
	if compiled "$@" >"$tmp/err" 2>&1; then
		limited "$name" "$lib" "$program"
	else
		echo "$name: left out, as $source does not compile: $(grep -m 1 -i error "$tmp/err")" >&2
	fi
}

# libraries: measures NVSHMEM and NCCL's device API between two GPUs, once in a run. Their lines are in $tmp/nvshmem and $tmp/lsa.
libraries() {
	[ ! -e "$tmp/nvshmem" ] || return 0
	: >"$tmp/nvshmem"
	: >"$tmp/lsa"
	at=$(wheel nvshmem)
	if [ -n "${GPU_NVSHMEM:-}" ] || [ -e "$at/lib/libnvshmem_host.so.3" ]; then
		measure_library nvshmem "${at:+$at/lib}" "${GPU_NVSHMEM:-$tmp/gpu_nvshmem}" gpu_nvshmem.cu -rdc=true -I"$at/include" \
			-L"$at/lib" -lnvshmem_device -l:libnvshmem_host.so.3
	else
		echo 'nvshmem: left out, as there is no wheel nvidia-nvshmem-cu13 or nvidia-nvshmem-cu12 here' >&2
	fi
	find_nccl
	if [ -n "${GPU_LSA:-}" ] || [ -n "$nccl_lib" ]; then
		measure_library lsa "$nccl_lib" "${GPU_LSA:-$tmp/gpu_lsa}" gpu_lsa.cu -I"$nccl_include" -L"$nccl_lib" -l:libnccl.so.2
	else
		echo 'lsa: left out, as there is no NCCL with nccl_device.h (2.28 or later) here' >&2
	fi
	awk '{ print "figure", $1, $2 }' "$tmp/nvshmem" "$tmp/lsa" >>"$tmp/figures"
	echo # the fastest way of each library, and its blocks x threads
	sed 's/^/# /' "$tmp/nvshmem" "$tmp/lsa"
}

# beside LABEL US NVSHMEM LSA: prints a row with our time, with the lines of NVSHMEM and NCCL that have these names, and with the
# ratios of our time to theirs. The ratios are then also in to_nvshmem and to_lsa, which are empty without such a line.
beside() {
	nvshmem_us=$(of nvshmem "$3") lsa_us=$(of lsa "$4")
	to_nvshmem=$(ratio "$2" "$nvshmem_us") to_lsa=$(ratio "$2" "$lsa_us")
	cells "$1" "$2" "${nvshmem_us:--}" "${to_nvshmem:--}" "${lsa_us:--}" "${to_lsa:--}"
}

cells() {
	printf '| %9s |' "$1"
	shift
	printf ' %10s |' "$@"
	echo
}

# one_way RANKS BYTES LANES WORKERS ARGUMENT...: sets us to the time of a message by peer one way, or to inf.
one_way() {
	shape="$1 $4 $2 $3"
	set -- "$@" --ranks "$1" --set workload.pingpong.bytes="$2" --set device.cuda.lanes="$3" --set device.cuda.workers="$4"
	shift 4
	us=$(median one_way_p50 --set run.workload=pingpong --set trigger.use=peer --set workload.pingpong.rounds=2000 "$@" |
		awk '{ print $1 * 1e6 }')
	us=${us:-inf}
	echo "$shape $us" >>"$tmp/ways"
}

# Compares messages by peer with those of NVSHMEM and of NCCL's device API, once in a run. Of several numbers of lanes the
# fastest counts.
compare_one_way() {
	[ ! -e "$tmp/compared" ] || return 0
	libraries
	for shape in '8 32' '4096 256' '4096 512' '65536 1024' '65536 512'; do
		grep -q "^2 1 $shape " "$tmp/ways" 2>/dev/null || one_way 2 "${shape% *}" "${shape#* }" 1
	done
	printf '\na message to the other GPU, one way, us, median: half of there and back; nvshmem: a put with a signal; lsa: stores\n'
	printf 'into a window of NCCL\n\n'
	cells bytes peer nvshmem 'to nvshmem' lsa 'to lsa'
	printf '|---|---|---|---|---|---|\n'
	: >"$tmp/compared"
	for bytes in 8 4096 65536; do
		us=$(awk -v n=$bytes '$1 == 2 && $2 == 1 && $3 == n && $5 != "inf" && (best == "" || $5 < best) { best = $5 }
			END { print best == "" ? "inf" : best }' "$tmp/ways")
		beside $bytes "$us" nvshmem_put_${bytes}_us lsa_put_${bytes}_us
		figure oneway_${bytes}_to_lsa "$to_lsa"
		if [ -n "$to_nvshmem" ]; then
			bar oneway_${bytes}_to_nvshmem "$to_nvshmem" '<=' 0.8
		else
			echo "bar oneway_${bytes}_to_nvshmem - <= 0.8 missing"
		fi >>"$tmp/compared"
	done
	echo
	cat "$tmp/compared"
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
		line 'static, tasks in device memory' --set scheduler.use=static
		line 'mgws, tasks in device memory' --set scheduler.use=mgws
		line 'mgws, queues in host memory' --set transport.p2p.placement=host
		line 'mgws, queues in host memory, ids' --set transport.p2p.placement=host \
			--set scheduler.mgws.transfer=id
		for registers in 96 80; do # with fewer registers more workers are resident
			base=
			line "static, $registers registers a thread" --set scheduler.use=static \
				--set device.cuda.max_registers=$registers
			line "mgws, $registers registers a thread" --set device.cuda.max_registers=$registers
		done
		base=
		line 'static, all in host memory' --set scheduler.use=static --set transport.use=host
		line 'mgws, all in host memory' --set transport.use=host
		;;
	lanes)
		table 'memset with a task for each lane, 32 million tasks, against a plain loop over them'
		big='--set workload.memset.tasks=33554432 --set workload.memset_loop.tasks=33554432'
		tasks=33554432
		line 'plain loop' $big --set run.workload=memset_loop
		line 'mgws, granularity = lane' $big --set scheduler.granularity=lane
		bar memset_lane_to_loop "$(to_base)" '>=' 0.92
		figure memset_lane_tasks_per_s "${rate:-}"
		line 'mgws, granularity = lane, 1056 workers' $big --set scheduler.granularity=lane --set device.cuda.workers=1056
		tasks=4194304
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
	owners)
		table 'owners of a public queue (figures 11 and 14)'
		for job in 'fib workload.fib.n=30' 'uts workload.uts.tree=T1'; do
			base=
			for owners in 1 2 4; do
				for public in 64 256; do
					line "${job% *}, $owners owners, public $public" --set run.workload="${job% *}" \
						--set "${job#* }" --set scheduler.mgws.owners=$owners \
						--set scheduler.mgws.public_queue=$public
				done
			done
		done
		;;
	gpus)
		if ! two_gpus; then
			printf '\nseveral GPUs: there is one here\n'
			continue
		fi
		for job in 'memset workload.memset.tasks=33554432' 'fib workload.fib.n=36' 'uts workload.uts.tree=T1L' \
			'uts workload.uts.tree=T3L'; do
			table "$job: a task per lane, on one GPU and on two"
			set -- --set run.workload="${job% *}" --set "${job#* }" --set scheduler.granularity=lane \
				--set termination.use=hcounter
			line 'one GPU' "$@"
			line 'two GPUs, a queue where its worker is' "$@" --set run.devices='cuda:0 cuda:1'
			case $job in memset*) target=1.9 ;; fib*) target=1.7 ;; *T1*) target=1.9 ;; *) target=1.4 ;; esac
			bar "gpus_$(echo "${job##*=}" | tr -d ' ')_over_one" "$(to_base)" '>=' $target
			line 'two GPUs, victim = near' "$@" --set run.devices='cuda:0 cuda:1' --set scheduler.mgws.victim=near
			for bias in 0.5 0.9; do # how often a thief tries its own GPU
				line "two GPUs, victim = biased, bias = $bias" "$@" --set run.devices='cuda:0 cuda:1' \
					--set scheduler.mgws.victim=biased --set scheduler.mgws.bias=$bias
			done
			line 'two GPUs, apart: tasks cross by mail' "$@" --set run.devices='cuda:0 cuda:1' \
				--set transport.p2p.atomics=no
		done
		;;
	ranks)
		some=$(sed -n 's/^cuda: GPU 0 .* \([0-9]*\) multiprocessors.*/\1/p' "$tmp/doctor")
		set -- --set run.workload=uts --set termination.use=hcounter --set scheduler.mgws.local_queue=64
		if two_gpus; then
			one='two GPUs, one process' both='two GPUs, a process each' whole="--set run.devices='cuda:0 cuda:1'" half=
		else
			one='one process on all multiprocessors' both='two processes on half of them each'
			whole="--set device.cuda.workers=$some" half="--set device.cuda.gpu=0 --set device.cuda.workers=$((some / 2))"
			together || continue
		fi
		for granularity in worker lane; do
			table "uts T1L by ranks that steal from each other, a task per $granularity"
			base=
			eval 'line "$one" "$@" --set workload.uts.tree=T1L --set scheduler.granularity=$granularity' "$whole"
			line "$both" --ranks 2 "$@" --set workload.uts.tree=T1L --set scheduler.granularity=$granularity --set run.tasks=shared \
				--set trigger.use=peer $half
			bar ranks_T1L_${granularity}_over_process "$(to_base)" '>=' 0.95
		done
		if [ -z "$together" ]; then
			table 'uts T1XXL, a task per lane'
			base=
			set -- "$@" --set workload.uts.tree=T1XXL --set scheduler.granularity=lane
			line 'one GPU' "$@"
			line "$both" --ranks 2 "$@" --set run.tasks=shared --set trigger.use=peer
			bar ranks_T1XXL_over_one_gpu "$(to_base)" '>=' 1.8
		fi
		apart
		;;
	placement)
		table 'public queues in device and in host memory (the thesis: 246 times)'
		for job in 'memset workload.memset.tasks=4194304' 'fib workload.fib.n=30' 'uts workload.uts.tree=T1'; do
			base=
			for how in owner.body owner.id host.body host.id; do
				line "${job% *}, queues: $how" --set run.workload="${job% *}" --set "${job#* }" \
					--set transport.p2p.placement=${how%.*} --set scheduler.mgws.transfer=${how#*.}
			done
			line "${job% *}, all in host memory" --set run.workload="${job% *}" --set "${job#* }" \
				--set transport.use=host --set termination.use=hcounter
		done
		;;
	workers)
		table 'number of workers, memset'
		for workers in 1 16 132 528 1056 2112; do
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
		make_docs
		table 'contains (figures 18 to 21): stealing against equal shares'
		for workers in 16 132 528 1056 0; do
			base=
			for scheduler in static mgws; do
				line "$scheduler, workers = $workers" --set run.workload=contains \
					--set scheduler.use=$scheduler --set device.cuda.workers=$workers
			done
			line "mgws, claims of one, workers = $workers" --set run.workload=contains \
				--set scheduler.mgws.claim=fixed --set scheduler.mgws.claim_size=1 \
				--set device.cuda.workers=$workers
		done
		search=${GPU_CONTAINS:-$tmp/gpu_contains}
		compiled "$search" gpu_contains.cu || continue
		make_text
		"$search" zwischen "$tmp/text" >"$tmp/search" || continue
		plain=$(awk '$1 == "plain_bytes_per_s" { print $2 }' "$tmp/search")
		printf '\n512 MiB of English in 8,192 documents, no German word in it: a plain kernel searches %.3g GB/s\n\n' "$(awk -v p="$plain" 'BEGIN { print p / 1e9 }')"
		most=0
		for lanes in 32 64 128 256; do
			took=$(median seconds --set run.workload=contains --set "workload.contains.path=$tmp/text" \
				--set "workload.contains.index=$tmp/index" --set device.cuda.lanes=$lanes) || continue
			of=$(awk -v s="$took" -v p="$plain" 'BEGIN { print 536870912 / s / p }')
			printf '%s lanes a worker: %.3f of it\n' $lanes "$of"
			most=$(awk -v a="$most" -v b="$of" 'BEGIN { print (a > b ? a : b) }')
		done
		bar contains_to_plain "$most" '>=' 0.5
		;;
	both)
		for job in 'memset workload.memset.tasks=4194304' 'contains workload.contains.load=ahead' \
			'uts workload.uts.tree=T1' 'uts workload.uts.tree=T1L'; do
			[ "${job% *}" != contains ] || make_docs
			table "${job% *}, CPU and GPU in one run (figures 23 and 26)"
			set -- --set run.workload="${job% *}" --set "${job#* }" --set termination.use=hcounter
			for granularity in worker lane; do
				line "GPU, granularity = $granularity" "$@" --set scheduler.granularity=$granularity
				line "CPU and GPU, granularity = $granularity" "$@" --set scheduler.granularity=$granularity \
					--set run.devices='cpu:0 cuda:0'
			done
			line 'CPU' "$@" --set run.devices=cpu:0
		done
		;;
	uts)
		table 'unbalanced tree search'
		for tree in T1 T3 T1L T3L T1XXL T3XXL; do
			base= most=0
			case $tree in *XXL) ;;
			*)	line "$tree, a task per worker" --set run.workload=uts --set workload.uts.tree=$tree
				figure uts_worker_${tree}_nodes_per_s "${rate:-}" ;;
			esac
			for queue in 32 64 128; do
				line "$tree, a task per lane, local queue $queue" --set run.workload=uts \
					--set workload.uts.tree=$tree --set scheduler.granularity=lane \
					--set scheduler.mgws.local_queue=$queue \
					--set scheduler.mgws.public_queue=1024
				most=$(awk -v a="$most" -v b="${rate:-0}" 'BEGIN { print (b > a ? b : a) }')
			done
			figure uts_lane_${tree}_nodes_per_s "$most"
			[ $tree != T1XXL ] || bar uts_lane_nodes_per_s "$most" '>=' 1e10
		done
		;;
	rivals)
		rivals=${GPU_RIVALS:-$tmp/gpu_rivals}
		compiled "$rivals" gpu_rivals.cu -rdc=true || continue
		for job in 'fib workload.fib.n=32' 'uts workload.uts.tree=T1L'; do
			name=${job% *}
			"$rivals" "$name" >"$tmp/rivals" || continue
			table "$name, a task per lane, and what else people use (gpu_rivals.cu)"
			line 'mgws' --set run.workload="$name" --set "${job#* }" --set scheduler.granularity=lane
			while read -r _ rival value _; do
				awk -v l="$rival" -v r="$value" -v b="$base" \
					'BEGIN { printf "| %-44s | %12.1f | %7.3f | %12s |\n", l, r / 1e6, b ? r / b : 0, "" }'
			done <"$tmp/rivals"
			best=$(awk '$2 != "levels" && $3 > m { m = $3 } END { print m + 0 }' "$tmp/rivals")
			bar "${name}_to_best_rival" "$(awk -v a="$base" -v b="$best" 'BEGIN { print b ? a / b : 0 }')" '>=' 5
		done
		;;
	monolithic)
		table 'fib(34), composed and by hand in one kernel (gpu_monolithic.cu)'
		nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
		for blocks in 8 16; do
			"$nvcc" -std=c++20 -O3 -arch=native -DBLOCKS=$blocks -o "$tmp/monolithic" "$(dirname "$0")/gpu_monolithic.cu" || continue
			for workers in $((blocks * 66)) $((blocks * 132)); do
				base=$("$tmp/monolithic" 34 $workers "$samples" | awk '{ print $1 }')
				[ -n "$base" ] || continue
				awk -v r="$base" -v l="by hand, $workers workers" 'BEGIN { printf "| %-44s | %12.1f | %7.3f | %12s |\n", l, r / 1e6, 1, "" }'
				line "composed, $workers workers" --set run.workload=fib --set workload.fib.n=34 \
					--set device.cuda.workers=$workers
				figure fib_composed_$workers "$(to_base)"
			done
		done
		;;
	waits)
		link=${GPU_LINK:-$tmp/gpu_link}
		compiled "$link" gpu_link.cu || continue
		[ -s "$tmp/link" ] || "$link" >"$tmp/link" || continue
		trip=$(awk '$1 == "round_trip_us" { print $2 }' "$tmp/link") load=$(awk '$1 == "load_us" { print $2 }' "$tmp/link")
		figure link_load_us "$load"
		sms=$(sed -n 's/^cuda: GPU 0 .* \([0-9]*\) multiprocessors.*/\1/p' "$tmp/doctor")
		# The host sees the resumption by a load over the link, so half of the time of a load is subtracted.
		printf '\nfrom the release by a CPU until its consumer on the GPU goes on; us, median. A word there and back takes %s us,\n' "$trip"
		printf 'a load over the link %s. %s blocks of 8 warps that wait and 8 that compute\n\n' "$load" "$((2 * sms))"
		printf '| %-24s | %12s | %12s | %20s |\n|---|---|---|---|\n' '' '8 bytes' '4 KiB' 'computing, of alone'
		set -- --set run.devices='cpu:0 cuda:0' --set scheduler.use= --set termination.use= --set run.workload=resume \
			--set device.cpu.workers=1 --set device.cuda.worker=warp \
			--set device.cuda.warps=16 --set device.cuda.workers="$((32 * sms))" --set workload.resume.of=16 \
			--set workload.resume.computing=8 --set workload.resume.work=4000 --set workload.resume.iterations="$((160 * sms))"
		alone=$(median compute_s "$@" --set sync.use=warp --set workload.resume.waiters=0 || echo 0)
		for sync in poll backoff warp; do
			small=$(median resumed_p50 "$@" --set sync.use=$sync --set workload.resume.waiters=8 || echo 9)
			beside=$(another compute_s)
			large=$(median resumed_p50 "$@" --set sync.use=$sync --set workload.resume.waiters=8 \
				--set workload.resume.size=512 || echo 9)
			echo "$small $large $alone ${beside:-0}" | awk -v l=$sync -v b="$load" '{ printf "| %-24s | %12.2f | %12.2f | %20.4f |\n", l,
				$1 * 1e6 - b / 2, $2 * 1e6 - b / 2, $4 ? $3 / $4 : 0 }'
		done
		# On each of two cores, a computing thread runs beside 64 waiters. These runs alternate with runs of the thread alone,
		# since clock rates change.
		printf '\nfrom the release by the GPU until its consumer, one of 64 on a core, goes on, us; and a thread that computes there, of alone\n\n'
		printf '| %-24s | %12s | %20s | %-30s |\n|---|---|---|---|\n' '' us computing 'kernel, interrupts, stolen, %'
		cores=${WAITS_CORES:-0-1}
		set -- --set run.devices='cuda:0 cpu:0' --set scheduler.use= --set termination.use= --set run.workload=resume \
			--set device.cuda.workers=1 --set device.cpu.cores=$cores \
			--set device.cpu.workers=130 --set workload.resume.of=65 --set workload.resume.computing=1 \
			--set workload.resume.work=100000 --set workload.resume.iterations=640
		parked=1
		for how in wic.poll wic.interrupt futex.poll futex.interrupt backoff; do
			sync=${how%.*}
			case $how in *.*) notify="--set sync.$sync.notify=${how#*.}" ;; *) notify= ;; esac
			base=$(median compute_s "$@" --set sync.use=futex --set workload.resume.waiters=0 || echo 0)
			grep '^cpu[0-9]' /proc/stat >"$tmp/times"
			us=$(median resumed_p50 "$@" --set sync.use="$sync" $notify --set workload.resume.waiters=64 || echo 9)
			grep '^cpu[0-9]' /proc/stat | paste -d ' ' - "$tmp/times" | lost_on "$cores" >"$tmp/lost"
			share=$(awk -v a="$base" -v b="$(another compute_s)" 'BEGIN { print (b ? a / b : 0) }')
			[ $sync = backoff ] || parked=$(awk -v a="$parked" -v b="$share" 'BEGIN { print (b < a ? b : a) }')
			awk -v l="$how" -v u="$us" -v s="$share" -v o="$(cat "$tmp/lost")" \
				'BEGIN { printf "| %-24s | %12.2f | %20.4f | %-30s |\n", l, u * 1e6, s, o }'
		done
		echo
		bar resume_us "$(awk -v a="$small" -v b="$load" 'BEGIN { print a * 1e6 - b / 2 }')" '<=' 3
		bar resume_4k_us "$(awk -v a="$large" -v b="$load" 'BEGIN { print a * 1e6 - b / 2 }')" '<=' 3
		bar resume_computing "$(awk -v a="$alone" -v b="${beside:-0}" 'BEGIN { print (b ? a / b : 0) }')" '>=' 0.98
		bar resume_computing_cpu "$parked" '>=' 0.93
		# From a release until the acknowledgement of the consumer is back, without a subtraction. `beside`: with computing
		# warps, as above.
		if two_gpus; then
			printf '\nfrom the release by a GPU until the acknowledgement of its consumer on the other GPU is back; us, median\n\n'
			printf '| %-24s | %12s | %12s | %20s |\n|---|---|---|---|\n' '' '8 bytes' '4 KiB' '8 bytes, beside'
			set -- --set run.devices='cuda:0 cuda:1' --set scheduler.use= --set termination.use= --set run.workload=resume \
				--set device.cuda.worker=warp --set device.cuda.warps=16 --set workload.resume.of=16 \
				--set workload.resume.waiters=8 --set workload.resume.iterations="$((160 * sms))"
			for sync in poll backoff warp; do
				two=$(median resumed_p50 "$@" --set sync.use=$sync --set device.cuda.workers=32 \
					--set workload.resume.computing=0 || echo 9)
				two_large=$(median resumed_p50 "$@" --set sync.use=$sync --set device.cuda.workers=32 \
					--set workload.resume.computing=0 --set workload.resume.size=512 || echo 9)
				two_beside=$(median resumed_p50 "$@" --set sync.use=$sync --set device.cuda.workers="$((32 * sms))" \
					--set workload.resume.computing=8 --set workload.resume.work=4000 || echo 9)
				echo "$two $two_large $two_beside" | awk -v l=$sync '{ printf "| %-24s | %12.2f | %12.2f | %20.2f |\n", l,
					$1 * 1e6, $2 * 1e6, $3 * 1e6 }'
			done
			echo
			bar resume_two_gpus_us "$(echo "$two" | awk '{ print $1 * 1e6 }')" '<=' 2.2
			figure resume_two_gpus_4k_us "$(echo "$two_large" | awk '{ print $1 * 1e6 }')"
			figure resume_two_gpus_beside_us "$(echo "$two_beside" | awk '{ print $1 * 1e6 }')"
		fi
		printf '\nhow consumers wait: two instances on this GPU, 512 workers each, 16 warps a block; ms, and of poll\n\n'
		printf '| %-44s | %12s | %12s | %12s |\n|---|---|---|---|\n' '' poll 'backoff, of it' 'warp, of it'
		for job in 'stn size=2048' 'c2d size=256' 'bs size=1000' 'pattern iterations=50' \
			'pattern iterations=50 tp=50' 'pattern iterations=50 tp=500'; do
			app=${job%% *}
			set -- --set run.devices='cuda:0 cuda:1' --set device.cuda.1.gpu=0 --set device.cuda.workers=512 \
				--set device.cuda.worker=warp --set device.cuda.warps=16 --set run.workload="$app"
			for one in ${job#* }; do
				set -- "$@" --set "workload.$app.$one"
			done
			row=
			for sync in poll backoff warp; do
				row="$row $(median seconds "$@" --set sync.use=$sync || echo 0)"
			done
			echo "$row" | awk -v l="$job" '{ printf "| %-44s | %12.3f | %12.3f | %12.3f |\n", l, $1 * 1e3,
				$1 ? $2 / $1 : 0, $1 ? $3 / $1 : 0 }'
		done
		;;
	switch)
		printf '\nswitching a policy by conf: compilation, or the cache, and the whole command with one task\n\n'
		export XDG_CACHE_HOME="$tmp/cache" CUDA_CACHE_DISABLE=1 # NVRTC has its own cache
		for run in mgws.random static.random mgws.local mgws.random static.random mgws.local; do
			begin=$(date +%s%N)
			"$G" run "$tmp/gpu.ini" --quiet --samples 1 --set run.warmup=0 --set workload.memset.tasks=1 \
				--set scheduler.use=${run%.*} --set scheduler.mgws.victim=${run#*.} --log debug 2>&1 |
				grep -o 'compiled in.*\|taken from .*' | sed "s|$tmp/||"
			echo "$run: $((($(date +%s%N) - begin) / 1000000)) ms"
		done
		;;
	triggers)
		link=${GPU_LINK:-$tmp/gpu_link}
		compiled "$link" gpu_link.cu || continue
		"$link" >"$tmp/link" || continue
		floor_of() { awk -v n="$1" '$1 == n { print $2 }' "$tmp/link"; }
		lane=$(floor_of stores_lane) warp=$(floor_of stores_warp) grid=$(floor_of stores_grid)
		sms=$(sed -n 's/^cuda: GPU 0 .* \([0-9]*\) multiprocessors.*/\1/p' "$tmp/doctor")
		printf '\nthe link: one lane %.3g, one warp %.3g, %s warps %.3g posted stores a second, all counted by a thread of the host;\n' \
			"$lane" "$warp" "$sms" "$grid"
		printf 'a word there and back %s us; an empty kernel until the host knows its end %s us\n' \
			"$(floor_of round_trip_us)" "$(floor_of launch_us)"
		figure link_round_trip_us "$(floor_of round_trip_us)"
		figure empty_kernel_us "$(floor_of launch_us)"
		table 'triggers that the NIC counted, in millions a second, and of the posted stores of the same kind'
		common='--set trigger.use=gputn --set trigger.provider=shm --set trigger.stamp=yes
			--set trigger.slots=16384 --set trigger.posts=16384 --set trigger.tags=32768
			--set workload.msgrate.operation=count --set workload.msgrate.per=1000'
		rate 'one lane' "$lane" trigger.taken_per_s $common --set device.cuda.workers=1 --set workload.msgrate.fires=1000000
		one_lane=$value
		rate 'one lane, 8 bytes sent with every 1000th' "$lane" trigger.taken_per_s $common --set device.cuda.workers=1 \
			--set workload.msgrate.fires=300000 --set workload.msgrate.operation=put
		rate 'one warp, a tag per lane' "$warp" trigger.taken_per_s $common --set device.cuda.workers=1 \
			--set workload.msgrate.by=item --set workload.msgrate.fires=1000000
		one_warp=$value
		rate "$sms warps, a tag per lane" "$grid" trigger.taken_per_s $common --set device.cuda.workers="$sms" \
			--set workload.msgrate.by=item --set workload.msgrate.fires=20000
		rate "$sms workers, one tag" "$grid" trigger.taken_per_s $common --set device.cuda.workers="$sms" \
			--set workload.msgrate.by=kernel --set workload.msgrate.fires=100000
		rate "$sms warps, a tag for two of them" "$grid" trigger.taken_per_s $common --set device.cuda.workers="$sms" \
			--set workload.msgrate.by=mixed --set workload.msgrate.fires=100000
		all_mixed=$value
		table 'fires counted for operations that wait for 132 of them, in millions a second: on the device, and of by the NIC'
		for who in "1 by=group per=132 fires=792000 one lane" "$sms by=kernel per=1 fires=100000 $sms workers, one tag" \
			"$sms by=item per=132 fires=19800 $sms warps, a tag per lane"; do
			set -- $who
			by_nic=0
			for counting in nic device; do
				rate "${who#* * * * }: $counting" "$by_nic" trigger.taken_per_s $common --set device.cuda.workers="$1" \
					--set workload.msgrate.$2 --set workload.msgrate.$3 --set workload.msgrate.$4 \
					--set trigger.counting=$counting
				[ $counting = nic ] || figure "counting_${2#by=}" "$(awk -v v="$value" -v b="$by_nic" 'BEGIN { if (b) print v / b }')"
				by_nic=$value
			done
		done
		printf '\n8 bytes to the own rank, from the fire to the word that its worker sees; us, median\n\n'
		printf '| %-44s | %12s | %12s |\n|---|---|---|\n' '' 'one worker' "$sms workers"
		# The kinds .launched and .graph launch real kernels; other kinds model launches, or need none. With
		# .memory, buffers are in GPU memory and pass through a copy in host memory.
		for kind in gputn gputn.memory proxy counter gds hdn gds.launched hdn.launched gds.graph; do
			row= trigger=${kind%.*} kernels=${kind#*.} memory=host
			[ $kind != $trigger ] || kernels=persistent
			[ $kernels != memory ] || { kernels=persistent memory=device; }
			for workers in 1 "$sms"; do
				row="$row $(median one_way_p50 --set run.workload=pingpong --set trigger.use=$trigger \
					--set trigger.provider=shm --set trigger.memory=$memory \
					--set device.cuda.workers=$workers --set device.cuda.kernels=$kernels || echo 0)"
			done
			echo "$row" | awk -v l="$kind" '{ printf "| %-44s | %12.2f | %12.2f |\n", l, $1 * 1e6, $2 * 1e6 }'
			us=$(echo "$row" | awk '{ print $1 * 1e6 }')
			case $kind in gputn) way=$us ;; gputn.memory) figure trigger_device_memory_us "$us" ;; gds.launched) gds=$us ;; hdn.launched) hdn=$us ;; esac
		done
		echo
		bar trigger_lane_over_floor "$(awk -v a="$one_lane" -v b="$lane" 'BEGIN { print a / b }')" '>=' 0.8
		bar trigger_warp_over_floor "$(awk -v a="$one_warp" -v b="$warp" 'BEGIN { print a / b }')" '>=' 0.5
		bar trigger_all_per_s "$all_mixed" '>=' 5e7
		bar trigger_one_way_us "$way" '<=' 4.5
		# figure 8 of the GPU-TN paper
		bar hdn_to_gputn "$(awk -v a="$hdn" -v b="$way" 'BEGIN { print b ? a / b : 0 }')" '>=' 2.5
		bar gds_to_gputn "$(awk -v a="$gds" -v b="$way" 'BEGIN { print b ? a / b : 0 }')" '>=' 1.5
		;;
	requests)
		link=${GPU_LINK:-$tmp/gpu_link}
		compiled "$link" gpu_link.cu || continue
		[ -s "$tmp/link" ] || "$link" >"$tmp/link" || continue
		trip=$(awk '$1 == "round_trip_us" { print $2 }' "$tmp/link")
		sms=$(sed -n 's/^cuda: GPU 0 .* \([0-9]*\) multiprocessors.*/\1/p' "$tmp/doctor")
		printf '\nservice requests, for nothing unless a line says so, k/s; a word there and back takes %s us\n\n' "$trip"
		printf '| %-44s | %12s | %12s | %12s |\n|---|---|---|---|\n' '' poll hybrid interrupt
		# asked LABEL REQUESTS ARGUMENTS...: sets $poll, $hybrid and $interrupt for these values of notify.
		asked() {
			label=$1 n=$2
			shift 2
			for notify in poll hybrid interrupt; do
				[ $notify != interrupt ] || n=$((n / 20))
				seconds=$(median seconds --set run.workload=requests_storm --set qos.use=monolithic \
					--set qos.notify=$notify --set workload.requests_storm.service=nothing \
					--set workload.requests.settle=0 --set workload.requests_storm.requests=$n "$@" || echo 0)
				eval "$notify=\$(awk -v n=$n -v s=$seconds 'BEGIN { print (s > 0 ? n / s : 0) }')"
			done
			echo "$poll $hybrid $interrupt" | awk -v l="$label" '{ printf "| %-44s | %12.1f | %12.1f | %12.1f |\n", l, $1 / 1e3,
				$2 / 1e3, $3 / 1e3 }'
		}
		asked 'one worker that waits for each answer' 100000 --set device.cuda.workers=1 --set workload.requests.outstanding=1
		one_poll=$poll one_hybrid=$hybrid
		asked 'one worker, 64 under way' 300000 --set device.cuda.workers=1
		asked "$sms workers, 64 each" 4000000 --set device.cuda.workers="$sms"
		some_poll=$poll
		asked 'all workers, 64 each' 4000000
		all_poll=$poll
		for service in fault alloc migrate; do
			asked "$service: $sms workers, 16 each" 100000 --set device.cuda.workers="$sms" \
				--set workload.requests.outstanding=16 --set workload.requests_storm.service=$service
		done
		printf '\napplications whose input faults in; ms\n\n| | one worker | %s | all |\n|---|---|---|---|\n' "$sms"
		for app in bfs spmv sssp bpt xsbench; do
			row=
			for workers in 1 "$sms" 0; do
				row="$row $(median seconds --set run.workload=requests_app --set workload.requests_app.app=$app --set qos.use=monolithic \
					--set workload.requests.settle=0 --set device.cuda.workers="$workers" || echo 0)"
			done
			echo "$row" | awk -v l=$app '{ printf "| %s | %.2f | %.2f | %.2f |\n", l, $1 * 1e3, $2 * 1e3, $3 * 1e3 }'
		done
		printf '\none worker that asks 1,000 times a second: CPU of the path, of a core\n\n| notify | |\n|---|---|\n'
		for notify in poll hybrid interrupt; do
			cpu=$(median qos_cpu --set run.workload=requests_storm --set qos.use=monolithic --set qos.notify=$notify \
				--set workload.requests_storm.service=nothing --set workload.requests_storm.pace=1ms --set device.cuda.workers=1 \
				--set workload.requests.duration=1s --set workload.requests.settle=0 || echo 9)
			echo "$cpu" | awk -v l=$notify '{ printf "| %s | %.1f %% |\n", l, $1 * 100 }'
		done
		echo
		bar request_waited_per_s "$one_poll" '>=' 150000
		bar request_some_per_s "$some_poll" '>=' 2e6
		bar request_all_per_s "$all_poll" '>=' 1e6
		bar request_hybrid_to_poll "$(awk -v a="$one_poll" -v b="$one_hybrid" 'BEGIN { print b ? a / b : 9 }')" '<=' 1.2
		bar request_interrupt_core "$cpu" '<=' 0.12
		;;
	barriers)
		vendor=${GPU_BARRIERS:-$tmp/gpu_barriers}
		compiled "$vendor" gpu_barriers.cu || continue
		"$vendor" >"$tmp/vendor" || continue
		vendor_us() { awk -v n="$1" '$1 == n { print $2 }' "$tmp/vendor"; }
		sms=$(sed -n 's/^cuda: GPU 0 .* \([0-9]*\) multiprocessors.*/\1/p' "$tmp/doctor")
		printf '\nthe vendor'"'"'s: a warp %s us, a block %s to %s, clusters of 8 %s; launch and end of a kernel %s\n' "$(vendor_us warp_us)" \
			"$(vendor_us block_32_us)" "$(vendor_us block_1024_us)" "$(vendor_us cluster_us)" "$(vendor_us host_us)"
		printf '\nall workers of the GPU meet; us, and of the vendor'"'"'s grid.sync\n\n| blocks x threads | grid.sync |'
		for barrier in $barriers; do printf ' %13s |' "$barrier"; done
		printf '\n|---|---|'
		for barrier in $barriers; do printf -- '---|'; done
		echo
		: >"$tmp/ratios"
		grep '^grid_' "$tmp/vendor" | tr _ ' ' | while read -r _ blocks threads _ us; do
			row="$us"
			for barrier in $barriers; do
				row="$row $(median latency --set run.workload=barrier --set barrier.use=$barrier --set workload.barrier.scope=device \
					--set workload.barrier.few=128 --set workload.barrier.difference=1280 \
					--set device.cuda.workers=$((blocks * sms)) --set device.cuda.lanes=$threads || echo 0)"
			done
			echo "$blocks $threads $row" >>"$tmp/ratios"
			echo "$row" | awk -v l="$blocks x $threads" '{ printf "| %-16s | %9.2f |", l, $1
				for (i = 2; i <= NF; i++) printf " %6.2f %6.3f |", $i * 1e6, $i * 1e6 / $1
				print "" }'
		done
		# Prints the best barrier for each shape, as a conf would select it.
		awk '{ best = 0
			for (i = 4; i <= NF; i++) if ($i > 0 && (!best || $i < best)) best = $i
			r = best * 1e6 / $3; n++; sum += log(r)
			if (r > most) most = r
			if ($1 >= 16 && r > full) full = r }
			END { if (n) print exp(sum / n), most, full }' "$tmp/ratios" >"$tmp/of"
		read -r mean most full <"$tmp/of" || continue
		echo
		bar barrier_to_grid_sync_mean "$mean" '<=' 1
		bar barrier_to_grid_sync_most "$most" '<=' 1.03
		bar barrier_to_grid_sync_full "$full" '<=' 0.65
		;;
	reduce)
		vendor=${GPU_REDUCE:-$tmp/gpu_reduce}
		compiled "$vendor" gpu_reduce.cu || continue
		"$vendor" >"$tmp/vendor" || continue
		sms=$(sed -n 's/^cuda: GPU 0 .* \([0-9]*\) multiprocessors.*/\1/p' "$tmp/doctor")
		printf '\nthe sum of n floats, us, and what the model says; launched: two kernels; %s workers of %s lanes\n\n' \
			"$((${REDUCE_BLOCKS:-2} * sms))" "${REDUCE_LANES:-256}"
		printf '| %9s | %8s | %8s | %17s | %17s | %17s | %8s | %-13s |\n|---|---|---|---|---|---|---|---|\n' floats CUB launched \
			warp worker device 'to CUB' 'model names'
		: >"$tmp/rows"
		n=512
		while [ $n -le 268435456 ]; do
			row="$n $(awk -v c="cub_${n}_us" -v l="launched_${n}_us" '$1 == c || $1 == l { print $2 }' "$tmp/vendor" | tr '\n' ' ')"
			row="$row $(median by_warp --set run.workload=reduce --set barrier.use=auto --set workload.reduce.floats=$n \
				--set device.cuda.workers=$((${REDUCE_BLOCKS:-2} * sms)) --set device.cuda.lanes=${REDUCE_LANES:-256} \
				--set device.cuda.carveout=${REDUCE_CARVEOUT:-10})"
			for metric in by_warp_model by_worker by_worker_model by_device by_device_model; do row="$row $(another $metric)"; done
			echo "$row" >>"$tmp/rows"
			n=$((n * 2))
		done
		awk -v of="$tmp/of" 'NF == 9 {
			split("warp worker device", name, " ")
			best = named = 1
			for (i = 2; i <= 3; i++) {
				if ($(2 + 2 * i) < $(2 + 2 * best)) best = i
				if ($(3 + 2 * i) < $(3 + 2 * named)) named = i
			}
			loss = $(2 + 2 * named) / $(2 + 2 * best) - 1
			ratio = $(2 + 2 * best) * 1e6 / $2
			printf "| %9d | %8.2f | %8.2f |", $1, $2, $3
			for (i = 4; i <= 8; i += 2) printf " %8.2f %8.2f |", $i * 1e6, $(i + 1) * 1e6
			printf " %8.3f | %-6s %5.1f %% |\n", ratio, name[named], loss * 100
			sizes++
			right += loss <= 0.05
			if ($1 < 1048576 && ratio > small) small = ratio
			if ($1 == 268435456) large = 1 / ratio
		}
		END { if (sizes) print right / sizes, large + 0, small >of }' "$tmp/rows"
		read -r right large small <"$tmp/of" || continue
		awk '$1 == 268435456 { print $2, $8 * 1e6 }' "$tmp/rows" >"$tmp/largest"
		read -r cub own <"$tmp/largest"
		figure reduce_2_28_cub_us "${cub:-}"
		figure reduce_2_28_blocks_${REDUCE_BLOCKS:-2}_carveout_${REDUCE_CARVEOUT:-10}_us "${own:-}"
		echo
		bar reduce_model_right "$right" '>=' 0.9
		bar reduce_to_cub_2_28 "$large" '>=' 0.95
		bar reduce_time_to_cub_small "$small" '<=' 1
		;;
	oneway)
		some=$(sed -n 's/^cuda: GPU 0 .* \([0-9]*\) multiprocessors.*/\1/p' "$tmp/doctor")
		printf '\na message by peer, one way, us, median: half of there and back, or to the own rank\n\n'
		# NAME RANKS BYTES LANES WORKERS TARGET ARGUMENTS...
		while read -r name ranks bytes lanes workers target more; do
			[ "$ranks" = 1 ] || two_gpus || continue
			one_way "$ranks" "$bytes" "$lanes" "$workers" $more
			bar "oneway_$name" "$us" '<=' "$target"
		done <<END
own_8_us 1 8 32 1 2.5
8_us 2 8 32 1 1.6
8_counted_us 2 8 32 $some 2.2 --set workload.pingpong.counted=yes
4096_us 2 4096 256 1 1.9
4096_by_512_us 2 4096 512 1 1.9
65536_us 2 65536 1024 1 4.8
65536_by_512_us 2 65536 512 1 4.8
END
		! two_gpus || compare_one_way
		;;
	meet)
		if ! two_gpus; then
			printf '\nall workers of two GPUs meet: there is one here\n'
			continue
		fi
		some=$(sed -n 's/^cuda: GPU 0 .* \([0-9]*\) multiprocessors.*/\1/p' "$tmp/doctor")
		printf '\nall workers of two GPUs meet, data ordered, us; then those of two ranks with a GPU each, by peer\n\n'
		for workers in "$some" $((8 * some)); do
			for barrier in $barriers; do
				case $barrier:$workers in auto:$some) target=2.9 ;; auto:*) target=3.4 ;; *) target=12 ;; esac
				us=$(median latency --set run.workload=barrier --set barrier.use=$barrier \
					--set workload.barrier.scope=stack --set run.devices='cuda:0 cuda:1' \
					--set workload.barrier.few=128 --set workload.barrier.difference=1280 \
					--set device.cuda.workers="$workers")
				bar "meet_${barrier}_${workers}_us" "$(echo "${us:-inf}" | awk '{ print $1 == "inf" ? $1 : $1 * 1e6 }')" '<=' $target
			done
		done
		libraries
		: >"$tmp/rows"
		for workers in 1 "$some" $((8 * some)); do
			us=$(median latency --ranks 2 --set run.workload=barrier --set barrier.use=auto \
				--set workload.barrier.scope=job --set trigger.use=peer --set workload.barrier.few=128 \
				--set workload.barrier.difference=1280 --set device.cuda.workers="$workers")
			us=$(echo "${us:-inf}" | awk '{ print $1 == "inf" ? $1 : $1 * 1e6 }')
			[ "$workers" = 1 ] || bar "meet_job_${workers}_us" "$us" '<=' 3.2
			case $workers in 1) one=barrier ;; *) one=meet_$workers ;; esac
			beside "$workers" "$us" nvshmem_${one}_us lsa_${one}_us >>"$tmp/rows"
			figure "meet_job_${workers}_to_nvshmem" "$to_nvshmem"
			figure "meet_job_${workers}_to_lsa" "$to_lsa"
			[ "$workers" != 1 ] || figure meet_job_1_to_nvshmem_sync "$(ratio "$us" "$(of nvshmem nvshmem_sync_us)")"
		done
		sync=$(of nvshmem nvshmem_sync_us) relaxed=$(of lsa lsa_relaxed_us)
		printf '\nworkers of two ranks with a GPU each meet, data ordered, us. nvshmem: barrier_all of one block; of all blocks\n'
		printf 'grid.sync and a signal. lsa: a barrier of NCCL of one block; of all blocks after grid.sync. Without order of data,\n'
		printf 'one block: nvshmem (sync_all) %s, lsa %s\n\n' "${sync:--}" "${relaxed:--}"
		cells workers gpuloom nvshmem 'to nvshmem' lsa 'to lsa'
		printf '|---|---|---|---|---|---|\n'
		cat "$tmp/rows"
		;;
	peers)
		peers=${GPU_PEERS:-$tmp/gpu_peers}
		compiled "$peers" gpu_peers.cu || continue
		find_nccl
		limited peers "$nccl_lib" "$peers"
		[ $status != 77 ] || continue
		libraries
		printf '\ntwo GPUs: a word there and back %s us by relaxed stores, %s us by releasing ones\n' "$(of peers relaxed_us)" \
			"$(of peers release_us)"
		printf '\n8 bytes to the other rank, half of there and back; us, median\n\n| %-9s | %12s |\n|---|---|\n' ''  ''
		for trigger in peer gputn gputn.memory=device proxy counter gds hdn; do
			label=$trigger memory=${trigger#*.} trigger=${trigger%.*}
			[ $trigger = peer ] && provider= || provider="--set trigger.provider=shm"
			[ $memory = $trigger ] || provider="$provider --set trigger.$label"
			way=$(median one_way_p50 --ranks 2 --set run.workload=pingpong --set trigger.use=$trigger $provider \
				--set device.cuda.workers=1 --set workload.pingpong.rounds=500 || echo 0)
			awk -v l="$label" -v v="$way" 'BEGIN { printf "| %-9s | %12.2f |\n", l, v * 1e6 }'
		done
		for library in nvshmem lsa; do
			printf '| %-9s | %12s |\n' $library "$(of $library ${library}_put_8_us)"
		done
		compare_one_way
		printf '\n8 bytes copied by a host thread, us: the calls of the driver, until a word that the stream stores is seen,\n'
		printf 'until the stream is synchronised, and the same for memory that is not registered\n\n'
		printf '| %-17s | %8s | %8s | %8s | %8s |\n|---|---|---|---|---|\n' '' calls word sync pageable
		for way in 'out GPU to host' 'in host to GPU' 'to GPU to GPU'; do
			printf '| %-17s | %8s | %8s | %8s | %8s |\n' "${way#* }" "$(of peers start_${way%% *}_us)" "$(of peers word_${way%% *}_us)" \
				"$(of peers sync_${way%% *}_us)" "$(of peers pageable_${way%% *}_us)"
		done
		# operation_ns and copy_ns are means; one_way and turn are medians. Copies that overlap count in full.
		printf '\ngputn, shm, half of there and back, us. copy: copies of device memory; start: the part of it in calls of the driver.\n'
		printf 'host: the thread from the start of the operation to its end, without copies, but with the acknowledgement.\n'
		printf 'worker: the workload between messages. link: the rest\n\n'
		printf '| %-13s | %8s | %8s | %8s | %8s | %8s | %8s | %8s |\n|---|---|---|---|---|---|---|---|\n' memory bytes 'one way' link \
			host copy start worker
		for memory in host device device.staged; do
			for bytes in 8 4096 65536 1048576; do
				way=$(median one_way_p50 --ranks 2 --set run.workload=pingpong --set trigger.use=gputn \
					--set trigger.provider=shm --set trigger.stamp=yes --set trigger.memory="${memory%.*}" \
					--set trigger.copies="$([ $memory = device.staged ] && echo staged || echo auto)" \
					--set device.cuda.workers=1 --set device.cuda.lanes=256 --set workload.pingpong.rounds=500 \
					--set workload.pingpong.bytes=$bytes) || way=0
				set -- "$(another trigger.operation_ns)" "$(another trigger.copy_ns)" "$(another trigger.copy_start_ns)" \
					"$(another turn_p50)"
				awk -v m=$memory -v b=$bytes -v w="$way" -v o="${1:-0}" -v c="${2:-0}" -v s="${3:-0}" -v t="${4:-0}" 'BEGIN {
					host = o > c ? o - c : 0
					link = w - host - c - t / 2
					printf "| %-13s | %8d | %8.2f | %8.2f | %8.2f | %8.2f | %8.2f | %8.2f |\n", m, b, w * 1e6,
						(link > 0 ? link : 0) * 1e6, host * 1e6, c * 1e6, s * 1e6, t / 2 * 1e6 }'
				[ $bytes.$memory != 8.device ] || device=$way
			done
		done
		figure gputn_device_8_us "$(awk -v w="$device" 'BEGIN { print w * 1e6 }')"
		sms=$(sed -n 's/^cuda: GPU 0 .* \([0-9]*\) multiprocessors.*/\1/p' "$tmp/doctor")
		printf '\nallreduce of two ranks, us; copy: both GPUs send as much as that at once; nccl in a stream; nvshmem: by one block;\n'
		printf 'nvshmem, lsa, peer: a round inside a kernel; the others: a sample\n\n'
		printf '| %9s | %10s | %10s | %10s | %10s | %10s | %10s | %10s | %10s |\n|---|---|---|---|---|---|---|---|---|\n' \
			bytes copy nccl nvshmem lsa peer gputn gds hdn
		: >"$tmp/rounds"
		for bytes in 8 4096 65536 262144 1048576 8388608; do
			# The number of lanes must saturate the link: reading needs more lanes than storing.
			case $bytes in 8388608) lanes=1024 ;; 1048576) lanes=512 ;; *) lanes=256 ;; esac
			peer=$(median round_ns --ranks 2 --set run.workload=allreduce --set trigger.use=peer \
				--set device.cuda.workers="$sms" --set device.cuda.lanes=$lanes \
				--set workload.allreduce.bytes=$bytes --set workload.allreduce.rounds=5000 || echo 0)
			echo "$bytes $peer" >>"$tmp/rounds"
			row=$bytes
			for one in peers.copy peers.nccl nvshmem.nvshmem_sum lsa.lsa_sum; do
				theirs=$(of ${one%.*} ${one#*.}_${bytes}_us)
				row="$row ${theirs:-0}"
			done
			row="$row $peer"
			for trigger in gputn gds hdn; do
				row="$row $(median seconds --ranks 2 --set run.workload=allreduce --set trigger.use=$trigger \
					--set trigger.provider=shm --set device.cuda.workers=1 --set workload.allreduce.bytes=$bytes ||
					echo 0)"
			done
			echo "$row" | awk '{ printf "| %9d |", $1
				for (i = 2; i <= NF; i++) if ($i > 0) printf " %10.2f |", $i * (i < 6 ? 1 : 1e6); else printf " %10s |", "-"
				print "" }'
		done
		echo
		for target in '4096 2' '262144 2.5' '1048576 8' '8388608 30'; do
			us=$(awk -v n="${target% *}" '$1 == n { print $2 ? $2 * 1e6 : "inf" }' "$tmp/rounds")
			bar "peer_allreduce_${target% *}_us" "$us" '<=' "${target#* }"
		done
		;;
	collectives)
		# An allreduce of bfloat16 as a call in a CUDA graph, launch of the node included. NVLink multicast is off. NCCL is
		# found in LD_LIBRARY_PATH; the wheel nvidia-nccl-cu13 has it, too.
		[ -x "$B/bench/comm" ] || make -s "$B/bench/comm" || continue
		nccl=$(wheel nccl)
		NCCL_NVLS_ENABLE=0 LD_LIBRARY_PATH="${nccl:+$nccl/lib:}${LD_LIBRARY_PATH-}" "$B/bench/comm" "$B/plugins" cuda \
			>"$tmp/comm" || continue
		printf '\nallreduce of two GPUs, bfloat16, a call in a CUDA graph of 50; us, medians\n\n'
		printf '| %9s | %10s | %10s | %7s |\n|---|---|---|---|\n' bytes gpuloom nccl ratio
		awk '{ printf "| %9d | %10.2f | %10.2f | %7s |\n", $1, $2, $3, ($3 > 0 ? sprintf("%.3f", $2 / $3) : "") }' "$tmp/comm"
		echo
		for target in '16 4.2' '4096 4.2' '65536 4.2' '262144 5' '524288 6' '1048576 9' '8388608 31'; do
			us=$(awk -v n="${target% *}" '$1 == n { print $2 }' "$tmp/comm")
			bar "comm_allreduce_${target% *}_us" "${us:-inf}" '<=' "${target#* }"
		done
		for bytes in 16 65536 1048576; do figure comm_nccl_${bytes}_us "$(awk -v n=$bytes '$1 == n && $3 > 0 { print $3 }' "$tmp/comm")"; done
		worst=$(awk '$3 > 0 && $2 / $3 > worst { worst = $2 / $3 } END { if (worst) print worst }' "$tmp/comm")
		[ -z "$worst" ] || bar comm_allreduce_over_nccl_worst "$worst" '<=' 1
		;;
	tax)
		tax=${GPU_TAX:-$tmp/gpu_tax}
		compiled "$tax" gpu_tax.cu -I"$B/include" -L"$B" -lgpuloom -Xlinker -rpath="$B" || continue
		"$tax" "$B" "$samples" >"$tmp/tax" || continue
		printf '\ncost of a task: from a task of a worker to its next one, us; and a run of %s, of one launch per wave of the same body\n\n' \
			'32 equal tasks per worker'
		printf '| %-12s | %12s | %20s | %12s |\n|---|---|---|---|\n' scheduler hand-off 'run, of launches' 'a wave, us'
		while read -r what name value wave; do
			if [ "$what" = handoff ]; then
				handoff=$value
				bar "handoff_${name}_us" "$value" '<=' 0.6 >>"$tmp/tax-bars"
			else
				printf '| %-12s | %12s | %20s | %12s |\n' "$name" "$handoff" "$value" "$wave"
				bar "tax_$name" "$value" '<=' 1.03 >>"$tmp/tax-bars"
			fi
		done <"$tmp/tax"
		echo
		cat "$tmp/tax-bars"
		;;
	training)
		# A step of sgd on two ranks with a GPU each, and of the same network in PyTorch. Every pass runs all variants in turn.
		sms=$(sed -n 's/^cuda: GPU 0 .* \([0-9]*\) multiprocessors.*/\1/p' "$tmp/doctor")
		graph() { python3 "$(dirname "$0")/sgd_ddp.py" 2 "$width" "$width" 3 16 64 200 "$1" 2>>"$tmp/graph.err" | awk '$1 == "step_ns" { print $2 / 1e3 }'; }
		# middle COLUMN [COLUMN]: prints the median over the passes of a column, or of its ratio to another column.
		middle() {
			awk -v a="$1" -v b="${2:-0}" '$a > 0 && (!b || $b > 0) { print b ? $a / $b : $a }' "$tmp/steps" | sort -g |
				awk '{ v[NR] = $1 } END { if (NR) print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
		}
		printf '\na step of sgd on two GPUs: batch 64, 3 hidden layers, 16 classes; us. Rivals: PyTorch, the whole step in a CUDA graph\n\n'
		printf '| %5s | %10s | %10s | %10s | %10s | %10s | %9s | %9s | %9s |\n|---|---|---|---|---|---|---|---|---|\n' width graph \
			graph-tf32 float tf32x3 tf32 barriers exchange exposed
		for width in 256 1024; do
			: >"$tmp/steps"
			for pass in $(seq "${TRAINING_PASSES:-3}"); do
				row="$(graph graph || echo 0) $(graph graph-tf32 || echo 0)"
				for precision in float tf32 tf32x3; do
					us=$(median step_ns --ranks 2 --set run.workload=sgd --set barrier.use=auto --set trigger.use=peer \
						--set device.cuda.workers="$sms" --set device.cuda.lanes="${TRAINING_LANES:-256}" \
						--set workload.sgd.inputs=$width --set workload.sgd.width=$width --set workload.sgd.layers=3 \
						--set workload.sgd.classes=16 --set workload.sgd.batch=64 --set workload.sgd.steps=200 \
						--set workload.sgd.batches=4 --set workload.sgd.checked=2 --set workload.sgd.precision=$precision)
					row="$row $(awk -v s="${us:-0}" 'BEGIN { print s * 1e6 }')"
				done
				for part in barrier_ns exchange_ns exposed_ns; do # of tf32x3, the last run
					row="$row $(another $part | awk '{ print $1 * 1e6 }')"
				done
				echo "$row" >>"$tmp/steps"
			done
			for i in 1 2 3 5 4 6 7 8; do middle $i | grep . || echo 0; done | tr '\n' ' ' | awk -v w=$width '{
				printf "| %5d | %10.1f | %10.1f | %10.1f | %10.1f | %10.1f | %9.1f | %9.1f | %9.1f |\n", w, $1, $2, $3, $4, $5, $6, $7, $8 }'
			figure sgd_${width}_step_us "$(middle 5)"
			figure sgd_${width}_graph_us "$(middle 1)"
			bar sgd_${width}_over_graph "$(middle 5 1 | grep . || echo inf)" '<=' 1.2
			figure sgd_${width}_tf32_over_graph "$(middle 4 2)"
		done
		grep -m 3 -i error "$tmp/graph.err" | sed 's/^/# /' >&2
		;;
	uneven)
		rival=${GPU_UNEVEN:-$tmp/gpu_uneven}
		compiled "$rival" gpu_uneven.cu || continue
		rows=$B/bench/uneven-gpu.tsv length=${UNEVEN_LENGTH:-2048} laws=${UNEVEN_LAWS:-equal uniform zipf two}
		chunks=${UNEVEN_CHUNKS:-8388608 4096 1024 256} schedulers=${UNEVEN_SCHEDULERS:-static counter host plan mgws}
		mkdir -p "$B/bench"
		: >"$rows"
		copy=$("$rival" copy | awk '{ print $2 }')
		figure ragged_copy "$(awk -v c="$copy" 'BEGIN { print c / 1e9 }')"
		awk -v c="$copy" 'BEGIN { printf "\ndevice copy: %.4g GB/s\n", c / 1e9 }'
		printf '\nattention: batch 64, %s tokens on average, 32 heads, 8 of keys, 128 numbers; GB/s of keys and values, medians\n\n' "$length"
		printf '| %-8s | %9s | %-10s | %9s | %8s |\n|---|---|---|---|---|\n' law chunk scheduler GB/s 'of copy'
		# row JOB LAW TASK SCHEDULER BYTES_PER_S. No bytes: the run failed, and the final lines count the cell as -1.
		row() {
			[ -n "$5" ] || {
				printf '| %-8s | %9s | %-10s | %9s | %8s |\n' "$2" "$3" "$4" failed -
				return
			}
			echo "$1	$2	$3	$4	$5" >>"$rows"
			[ "$1 $3" != 'ragged 8388608' ] || figure "ragged_$2_$4" "$(awk -v v="$5" 'BEGIN { print v / 1e9 }')"
			awk -v l="$2" -v k="$3" -v n="$4" -v v="$5" -v c="$copy" \
				'BEGIN { printf "| %-8s | %9s | %-10s | %9.1f | %8.3f |\n", l, (k > 1000000 ? "whole" : k), n, v / 1e9, v / c }'
		}
		for law in $laws; do
			awk -v law="$law" -v mean="$length" 'BEGIN {
				srand(7)
				for (i = 1; i <= 64; i++) sum += 1 / i
				for (i = 1; i <= 64; i++) {
					n = mean
					if (law == "uniform") n = 1 + 2 * mean * rand()
					if (law == "zipf") n = 64 * mean / sum / i
					if (law == "two") n = i % 8 ? mean / 2 : 4.5 * mean
					print rand(), int(n < 1 ? 1 : n)
				}
			}' | sort | awk '{ print $2 }' >"$tmp/lengths-$law"
			for chunk in $chunks; do
				for scheduler in $schedulers; do
					value=$(median bytes_per_s --set run.workload=ragged --set device.cuda.lanes=128 \
						--set scheduler.use="$scheduler" --set workload.ragged.law=trace \
						--set workload.ragged.trace="$tmp/lengths-$law" --set workload.ragged.heads=32 \
						--set workload.ragged.kv_heads=8 --set workload.ragged.dim=128 \
						--set workload.ragged.chunk="$chunk" --set workload.ragged.checked=64) || value=
					row ragged "$law" "$chunk" "$scheduler" "$value"
				done
				"$rival" "$tmp/lengths-$law" 32 8 16 "$chunk" >"$tmp/rival" || continue
				while read -r name value seconds; do
					row ragged "$law" "$chunk" "rival-$name" "$value"
				done <"$tmp/rival"
			done
		done
		printf '\nexperts: 64 of them, 256 tokens, 2 each, 1024 x 2048 numbers; GB/s of weights, medians\n\n'
		printf '| %-8s | %9s | %-10s | %9s | %8s |\n|---|---|---|---|---|\n' skew rows scheduler GB/s 'of copy'
		for skew in ${UNEVEN_SKEWS:-w0 w1 w2 w3 w4 w5 w6 w7}; do
			for tile in ${UNEVEN_ROWS:-128 32}; do
				for scheduler in $schedulers; do
					value=$(median bytes_per_s --set run.workload=experts --set device.cuda.lanes=128 \
						--set scheduler.use="$scheduler" --set workload.experts.experts=64 \
						--set workload.experts.tokens=256 --set workload.experts.dim=1024 \
						--set workload.experts.hidden=2048 --set workload.experts.skew="$skew" \
						--set workload.experts.rows="$tile" --set workload.experts.checked=4) || value=
					row experts "$skew" "$tile" "$scheduler" "$value"
				done
			done
		done
		# For each scheduler, prints the task size with the best worst case over all laws, relative to the best value of each law.
		echo
		awk -F '\t' '{
			own = $4 !~ /^rival/
			if (own && $5 > best[$1, $2]) best[$1, $2] = $5
			if (!own && $5 > rival[$2]) rival[$2] = $5
			cell[$1, $2, $3, $4] = $5; job[$1]; law[$1, $2] = $1; name[$2]; size[$3]; if (own) sched[$4]
		}
		END {
			for (j in job) for (s in sched) {
				top = -1
				for (k in size) {
					least = 2
					for (l in name) if ((j, l) in law) {
						v = (j, l, k, s) in cell && best[j, l] ? cell[j, l, k, s] / best[j, l] : -1
						if (v < least) least = v
					}
					if (least > top) { top = least; with = k }
				}
				printf "%s %s %.4f %s\n", j, s, top, with
			}
			for (l in rival) printf "rival %s %.4f -\n", l, best["ragged", l] / rival[l]
			if (("ragged", "equal") in best) printf "copy equal %.6g -\n", best["ragged", "equal"]
		}' "$rows" | sort >"$tmp/of"
		while read -r job name value with; do
			case $job.$name in
			rival.*) bar "uneven_to_rival_$name" "$value" '>=' 1 ;;
			copy.*) bar uneven_equal_to_copy "$(awk -v v="$value" -v c="$copy" 'BEGIN { print v / c }')" '>=' 0.85 ;;
			*.mgws | *.plan) bar "${job}_${name}_worst" "$value" '>=' 0.95 && echo "# with tasks of $with" ;;
			*) echo "# ${job}_${name}_worst $value with tasks of $with" ;;
			esac
		done <"$tmp/of"
		;;
	*)
		echo "no table '$t'" >&2
		exit 2
		;;
	esac
done
[ ! -s "$tmp/figures" ] || { echo; cat "$tmp/figures"; }
