#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures this machine's GPUs: comparisons of `gpuloom compare`, in which gpuloom and its rivals take turns.
#   bench/gpu.sh BUILD [TABLE...]
# Tables of one GPU: tasks host trees rivals contains both barriers reduce triggers messages requests waits cost uneven. Of two GPUs
# and more: scale oneway meet sums collectives training dispatch. Default: all that the GPUs here allow.
# Writes BUILD/bench/gpu-TABLE*.json, which bench/keep reads, and ends with `bar NAME VALUE >=|<= TARGET ok|short` and
# `figure NAME VALUE`.
#
# OPENINGS (7) is how often all stacks are opened, each of which gives a value of a figure; BLOCKS is the number of blocks, three for
# each opening, or one if a sample takes long: a start of a program, for example. BUDGET (90s) is the time after which a comparison
# begins no further block, and LIMIT (150) the seconds after which it is stopped. GPUS is the number of GPUs (those here).
# NVCC compiles the rivals in bench/*.cu for this GPU into BUILD/bench; a program that is there already is used.
# In each table, `own`, `job` and `rival` add a variant, `bar` and `figure` a value, and `compare` runs the variants.
set -u
B=$(cd "${1:-build}" && pwd) || exit
[ $# -eq 0 ] || shift
here=$(cd "$(dirname "$0")" && pwd) G=$B/gpuloom D=$B/bench confs=$B/bench/gpu
mkdir -p "$confs"
doctor=$("$G" doctor) || exit
gpus=${GPUS:-$(echo "$doctor" | grep -c '^cuda: GPU [0-9]*  *ok')}
[ "$gpus" -gt 0 ] || { echo 'no usable NVIDIA GPU here' >&2; exit 77; }
sms=$(echo "$doctor" | sed -n 's/^cuda: GPU 0 .* \([0-9]*\) multiprocessors.*/\1/p')
tables=${*:-tasks host trees rivals contains both barriers reduce triggers messages requests waits cost uneven $([ "$gpus" -lt 2 ] || echo scale oneway meet sums collectives training dispatch)}
lines=$D/gpu.lines
: >"$lines"
list= bars= have= common= slow= dry= folder=0 # folder: each comparison has its confs in one of its own
mkdir -p "$confs/0"

# conf NAME SETTING...: writes a conf with these settings, SECTION.KEY=VALUE. A later value of a key replaces an earlier one.
conf() {
	to=$confs/$folder/$1.ini
	shift
	printf '%s\n' "$@" | awk '{
		at = index($0, "=")
		key = substr($0, 1, at - 1)
		section = key
		sub(/\.[^.]*$/, "", section)
		sub(/.*\./, "", key)
		if (!(section in keys)) order[++n] = section
		if (!((section, key) in value)) keys[section] = keys[section] "\n" key
		v = substr($0, at + 1)
		if (key == "devices") gsub("@", " ", v)
		value[section, key] = v
	}
	END {
		for (i = 1; i <= n; i++) {
			print "[" order[i] "]"
			m = split(substr(keys[order[i]], 2), each, "\n")
			for (k = 1; k <= m; k++) print each[k] " = " value[order[i], each[k]]
		}
	}' >"$to"
}
add() {
	list="$list $confs/$folder/$1.ini" have="$have $1"
}
# own NAME SETTING...: a variant of gpuloom on the first GPU, unless run.devices says otherwise. $common are settings of all.
own() {
	variant=$1
	shift
	conf "$variant" run.devices=cuda:0 run.warmup=1 run.timeout=60s device.cpu.oversubscribe=yes transport.use=p2p \
		scheduler.use=mgws termination.use=counter $common "$@"
	add "$variant"
	[ -z "$dry" ] || echo "run $confs/$folder/$variant.ini" >>"$D/gpu-programs.txt"
}
# job NAME RANKS METRIC,... SETTING...: a job of several ranks, started once for each sample.
job() {
	variant=$1 ranks=$2 metrics=$3
	shift 3
	conf "$variant-job" run.devices=cuda:0 run.warmup=1 run.samples=5 run.timeout=60s device.cpu.oversubscribe=yes \
		transport.use=p2p scheduler.use=mgws termination.use=counter $common "$@"
	other "$variant" "$here/job $metrics $G run -n $ranks $confs/$folder/$variant-job.ini"
	[ -z "$dry" ] || echo "run -n $ranks $confs/$folder/$variant-job.ini" >>"$D/gpu-programs.txt"
}
# rival NAME METRIC LINE FACTOR PROGRAM [ARGUMENT...]: a program that prints `LINE VALUE` (bench/one), if it is here.
rival() {
	variant=$1 metric=$2 line=$3 factor=$4
	shift 4
	[ -x "$1" ] || { [ -n "$dry" ] || echo "left out: $variant: no program $1" >&2; return; }
	other "$variant" "$here/one $metric $line $factor $*"
}
# other NAME COMMAND: a program that prints metrics as a JSON object.
other() {
	conf "$1" run.workload=exec run.devices=cpu:0 run.warmup=0 run.timeout=60s device.cpu.workers=1 transport.use=host \
		"workload.exec.command=$2"
	add "$1"
	slow=yes
}
# those NAME|NAME...: prints those of the variants that are here.
those() {
	echo "$1" | tr '|' '\n' | while read -r one; do case " $have " in *" $one "*) echo "$one" ;; esac; done | paste -s -d'|'
}
# bar NAME METRIC OF [BY RELATION TARGET]: METRIC(OF), or METRIC(OF) / METRIC(BY) if BY is not `-`. OF and BY are variants, or the
# best of several, A|B.
bar() {
	of=$(those "$3") by=
	[ "${4:--}" = - ] || { by=$(those "$4"); [ -n "$by" ] || of=; }
	if [ -n "$of" ]; then
		bars="$bars
$1: $2($of)${by:+ / $2($by)}${5:+ $5 $6}"
	else
		[ -n "$dry" ] || echo "bar $1 - ${5:-} ${6:-} missing" >>"$lines"
	fi
}
# figure NAME METRIC OF: METRIC(OF) without a target; nothing if OF is not here.
figure() {
	[ -z "$(those "$3")" ] || bar "$1" "$2" "$3"
}
# compare TABLE [OPTION...]: runs the variants, and prints their table.
compare() {
	table=$1 begun=$(date +%s) openings=${OPENINGS:-7}
	[ -n "$slow" ] && blocks=$openings each=1 order=random || blocks=$((3 * openings)) each=2 order=abba
	shift
	[ -n "$dry" ] || (
		IFS='
'
		for one in $bars; do set -- "$@" --bar "$one"; done
		IFS=' '
		timeout -k 5 "${LIMIT:-150}" "$G" compare $list --allow-mismatch=workload --blocks "${BLOCKS:-$blocks}" \
			--openings "$openings" --samples-per-block $each --order $order --budget "${BUDGET:-90s}" --spread 0 --json "$D/gpu-$table.json" "$@"
	) >"$D/gpu-$table.txt" || echo "gpu-$table: no comparison" >&2
	if [ -z "$dry" ]; then
		echo
		grep -v '^bar \|^figure ' "$D/gpu-$table.txt"
		grep '^bar \|^figure ' "$D/gpu-$table.txt" >>"$lines"
		echo "gpu-$table: $(($(date +%s) - begun)) s" >&2
	fi
	list= bars= have= common= slow= folder=$((folder + 1))
	mkdir -p "$confs/$folder"
}
# compiled NAME [FLAG...]: compiles bench/NAME.cu, unless BUILD/bench has it, and sets $program.
compiled() {
	program=$D/$1 source=$here/$1.cu
	shift
	[ -x "$program" ] || "${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}" -O3 -std=c++20 -arch=native \
		-I"$B/include" "$@" -o "$program" "$source" -lpthread -ldl || echo "left out: $source does not compile here" >&2
}

# ---- one GPU ---------------------------------------------------------------------------------------

t_tasks() { # what a task costs: the floor is a loop over the same tasks in the same persistent kernel
	lane='scheduler.granularity=lane workload.memset.tasks=8388608'
	own loop run.workload=memset_loop workload.memset_loop.tasks=8388608
	own lane run.workload=memset $lane
	bar memset_lane_to_loop seconds loop lane '>=' 0.92
	bar memset_lane_tasks_per_s tasks_per_s lane
	compare tasks-lane
	common='run.workload=memset workload.memset.tasks=4194304'
	own static scheduler.use=static
	own mgws
	own host-queues transport.p2p.placement=host
	bar memset_worker_to_static seconds static mgws '>=' 0.9
	bar memset_host_queues seconds host-queues mgws
	bar exit_gpu_counter_us exit_ns mgws
	compare tasks-worker --metric seconds,exit_ns
}
t_host() { # queues and tasks in host memory; two GPUs without common atomics exchange tasks by mailboxes
	common='run.workload=memset workload.memset.tasks=1048576 transport.use=host'
	own host-1 device.cuda.workers=1
	own host-16 device.cuda.workers=16
	own host-all device.cuda.workers=$sms
	bar host_16 seconds host-16 - '<=' 0.020
	bar host_all seconds host-all - '<=' 0.008
	bar host_all_to_16 seconds host-all host-16 '<=' 1
	bar host_16_to_1 seconds host-16 host-1 '<=' 1
	compare host
	[ "$gpus" -ge 2 ] || return 0
	common="run.workload=memset workload.memset.tasks=262144 transport.p2p.placement=host termination.use=hcounter
		device.cuda.workers=$sms"
	own one
	for victim in random local none; do
		own $victim run.devices=cuda:0@cuda:1 transport.p2p.atomics=no scheduler.mgws.victim=$victim
	done
	bar host_two seconds random - '<=' 0.0005
	bar host_two_to_one seconds one random '>=' 1.8
	figure host_two_local seconds local
	figure host_two_none seconds none
	compare host-two
}
t_trees() {
	for tree in T1 T1L T3L T1XXL; do
		own $tree run.workload=uts workload.uts.tree=$tree scheduler.granularity=lane scheduler.mgws.public_queue=1024 \
			termination.use=hcounter
		bar uts_lane_${tree}_nodes_per_s tasks_per_s $tree
	done
	own T1-worker run.workload=uts workload.uts.tree=T1
	bar uts_worker_T1_nodes_per_s tasks_per_s T1-worker
	slow=yes
	compare trees --metric tasks_per_s
}
t_rivals() { # tasks that spawn tasks, as others run them on a GPU: bench/gpu_rivals.cu
	compiled gpu_rivals -rdc=true
	for what in 'fib workload.fib.n=32' 'uts workload.uts.tree=T1L'; do
		name=${what% *}
		own mgws run.workload=$name ${what#* } scheduler.granularity=lane
		for one in global frontier tail levels; do
			rival $one tasks_per_s:more:tasks/s tasks_per_s 1 "$program" $name $one
		done
		bar ${name}_to_best_rival tasks_per_s mgws 'global|frontier|tail|levels' '>=' 1
		compare rivals-$name --metric tasks_per_s
	done
}
t_contains() { # the floor is a kernel that searches without tasks
	[ -s "$D/gpu-text" ] || {
		cat "$here"/../docs/*.md >"$D/gpu-pages"
		while :; do cat "$D/gpu-pages" || break; done 2>/dev/null | head -c 536870912 >"$D/gpu-text"
		seq 0 65536 536805376 | sed 's/$/ 65536/' >"$D/gpu-index"
	}
	compiled gpu_contains
	own contains run.workload=contains "workload.contains.path=$D/gpu-text" "workload.contains.index=$D/gpu-index" \
		workload.contains.word=zwischen workload.contains.load=ahead device.cuda.lanes=128
	rival plain seconds seconds 1 "$program" zwischen "$D/gpu-text"
	bar contains_to_plain seconds plain contains '>=' 0.8
	compare contains
}
t_both() { # a CPU worker beside the GPU in one run
	for what in 'memset workload.memset.tasks=16777216' 'fib workload.fib.n=36' 'uts workload.uts.tree=T1L'; do
		name=${what% *} slow=yes
		common="run.workload=$name ${what#* } scheduler.granularity=lane termination.use=hcounter device.cpu.workers=1"
		own alone
		own both 'run.devices=cpu:0 cuda:0'
		bar both_$name seconds alone both
		compare both-$name
	done
}
t_barriers() { # to the vendor's barrier of a grid
	compiled gpu_barriers
	for shape in '1 32' '1 1024' '2 512' '8 128' '16 128' '32 64'; do
		blocks=${shape% *} threads=${shape#* }
		own auto run.workload=barrier barrier.use=auto workload.barrier.scope=device workload.barrier.few=128 \
			workload.barrier.difference=1280 device.cuda.workers=$((blocks * sms)) device.cuda.lanes=$threads
		rival grid-sync latency:less:ns grid_us 1e3 "$program" grid $blocks $threads
		bar barrier_${blocks}x${threads}_to_grid_sync latency auto grid-sync '<=' 1
		compare barriers-$blocks-$threads --metric latency
	done
	for group in 'tile 32' 'coalesced 16' 'coalesced 32'; do # by the study's own code, cooperative groups, too
		common="run.workload=primitives workload.primitives.operation=${group% *} workload.primitives.group=${group#* }"
		own primitives device.cuda.workers=1
		rival groups cycles:less ${group% *}_cycles 1 "$program" $group
		bar ${group% *}_${group#* }_to_groups cycles primitives groups
		compare barriers-${group% *}-${group#* } --metric cycles
	done
}
t_reduce() { # to cub::DeviceReduce in a graph, and to a kernel with the same clock: bench/gpu_reduce.cu
	compiled gpu_reduce
	for floats in 4096 1048576 268435456; do
		way=device
		[ $floats != 4096 ] || way=worker
		own $way run.workload=reduce barrier.use=auto workload.reduce.floats=$floats workload.reduce.way=$way \
			device.cuda.workers=$((2 * sms)) device.cuda.lanes=256
		for one in cub kernel; do rival $one by_$way:less:ns ${one}_us 1e3 "$program" $floats; done
		bar reduce_${floats}_to_cub by_$way $way cub '<=' 1.05
		bar reduce_${floats}_to_kernel by_$way $way kernel
		compare reduce-$floats --metric by_$way
	done
}
t_triggers() { # all but the last 16,384 have reached the NIC; the floor is the rate of the link for stores of the same kind
	compiled gpu_link -I"$here"
	common='run.workload=msgrate trigger.use=gputn trigger.provider=shm trigger.slots=16384
		trigger.posts=16384 trigger.tags=32768 workload.msgrate.operation=count workload.msgrate.per=1000'
	nic=triggers_per_s
	own lane device.cuda.workers=1 workload.msgrate.fires=1000000
	own warp device.cuda.workers=1 workload.msgrate.by=item workload.msgrate.fires=1000000
	own all device.cuda.workers=$sms workload.msgrate.by=mixed workload.msgrate.fires=100000
	for one in lane warp; do
		rival stores-$one $nic:more:triggers/s stores_$one 1 "$program" stores_$one
		bar trigger_${one}_to_stores $nic $one stores-$one '>=' 0.5
	done
	bar trigger_all_per_s $nic all
	compare triggers --metric $nic
}
t_messages() { # 8 bytes to the own rank, from the fire to the word that its worker sees (figure 8 of GPU-TN)
	common='run.workload=pingpong trigger.provider=shm device.cuda.workers=1'
	own gputn trigger.use=gputn
	for one in gds hdn; do
		own $one trigger.use=$one device.cuda.kernels=launched
		bar ${one}_to_gputn one_way_p50 $one gputn '>=' 1
	done
	bar gputn_one_way_us one_way_p50 gputn
	compare messages --metric one_way_p50 --allow-mismatch=clock
}
t_requests() {
	common='run.workload=requests_storm qos.use=monolithic workload.requests_storm.service=nothing workload.requests.settle=0'
	own poll qos.notify=poll device.cuda.workers=1 workload.requests.outstanding=1 workload.requests_storm.requests=100000
	own hybrid qos.notify=hybrid device.cuda.workers=1 workload.requests.outstanding=1 workload.requests_storm.requests=100000
	bar request_waited_us request poll
	bar request_hybrid_to_poll request hybrid poll '<=' 1.2
	compare requests-one --metric seconds,request --derive 'request = seconds / 100000 [s, less]'
	common='run.workload=requests_storm qos.use=monolithic workload.requests_storm.service=nothing workload.requests.settle=0
		qos.notify=poll workload.requests_storm.requests=4000000'
	own some device.cuda.workers=$sms
	own all
	bar request_some_per_s requests_per_s some
	bar request_all_per_s requests_per_s all
	compare requests-many --metric seconds,requests_per_s
}
t_waits() { # from the release by a CPU until its consumer on the GPU goes on, beside warps that compute
	compiled gpu_link -I"$here"
	resume="run.devices=cpu:0@cuda:0 scheduler.use= termination.use= run.workload=resume device.cpu.workers=1
		device.cuda.worker=warp device.cuda.warps=16 device.cuda.workers=$((32 * sms)) workload.resume.of=16
		workload.resume.computing=8 workload.resume.work=4000 workload.resume.iterations=$((16 * sms))" common=$resume
	for one in poll backoff warp; do own $one sync.use=$one workload.resume.waiters=8; done
	rival round-trip resumed_p50:less:ns round_trip_us 1e3 "$program" round_trip_us
	bar resume_to_round_trip resumed_p50 warp round-trip '<=' 2
	bar resume_warp_to_poll resumed_p50 warp poll
	compare waits --metric resumed_p50
	common=$resume
	own beside sync.use=warp workload.resume.waiters=8
	own alone sync.use=warp workload.resume.waiters=0
	bar resume_computing compute_s alone beside '>=' 0.98
	compare waits-beside --metric compute_s
}
# Attention of sequences with different lengths, and experts with different numbers of tokens, beside bench/rivals. `redrawn`: each
# sample of a rival has other lengths, and its plan is in the clock; so are those of gpuloom (redraw = sample).
t_uneven() {
	laws=${UNEVEN_LAWS-zipf two equal} skews=${UNEVEN_SKEWS-zipf hot_one equal} fixed=${UNEVEN_RIVALS:-padded cudnn flex nested varlen triton}
	redrawn='padded flex varlen triton'
	program=$D/gpu_uneven # linked with objects of gpuloom, which make knows
	[ -x "$program" ] || (cd "$here/.." && make -s B="${B#"$PWD"/}" NVCC="${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}" \
		"${B#"$PWD"/}/bench/gpu_uneven") >&2 || echo "left out: $here/gpu_uneven.cu does not compile here" >&2
	served
	for law in $laws; do
		common="run.workload=ragged run.seed=1 workload.ragged.law=$law workload.ragged.sequences=64 workload.ragged.length=2048
			workload.ragged.heads=32 workload.ragged.kv_heads=8 workload.ragged.dim=128 workload.ragged.checked=2 device.cuda.lanes=128"
		shape=$common
		for one in 'static 4096' 'plan 4096' 'counter 2048'; do
			own "${one% *}" scheduler.use="${one% *}" workload.ragged.chunk="${one#* }"
			figure ragged_${law}_${one% *} bytes_per_s "${one% *}"
		done
		# 4,096 tokens are the best size: with 1,024 it takes 1.03 to 1.07 times as long
		[ ! -x "$program" ] || other plain "$program ragged law=$law sequences=64 length=2048 heads=32 kv_heads=8 dim=128 checked=2 chunk=4096"
		for one in $fixed; do
			asked $one ${law}_$one
			figure ragged_${law}_$one seconds $one
		done
		bar ragged_${law}_to_plain seconds plain 'static|plan|counter' '>=' 1
		bar ragged_${law}_to_libraries seconds "$(echo $fixed | tr ' ' '|')" 'static|plan|counter' '>=' 1
		compare uneven-$law --metric seconds,bytes_per_s
		[ $law != equal ] || continue
		common=$shape
		for one in 'plan 4096' 'counter 2048'; do
			own "${one% *}" scheduler.use="${one% *}" workload.ragged.redraw=sample workload.ragged.chunk="${one#* }"
		done
		figure ragged_${law}_redrawn_plan_ns plan_ns plan
		for one in $redrawn; do
			asked $one ${law}_redrawn_$one
			figure ragged_${law}_redrawn_$one seconds $one
		done
		bar ragged_${law}_redrawn_to_libraries seconds "$(echo $redrawn | tr ' ' '|')" 'plan|counter' '>=' 1
		compare uneven-$law-redrawn --metric seconds
	done
	for skew in $skews; do
		common="run.workload=experts run.seed=1 workload.experts.experts=64 workload.experts.tokens=256 workload.experts.dim=1024
			workload.experts.hidden=2048 workload.experts.skew=$skew workload.experts.rows=256 workload.experts.checked=4 device.cuda.lanes=128"
		for one in counter plan; do own $one scheduler.use=$one; done
		[ ! -x "$program" ] || other plain "$program experts experts=64 tokens=256 dim=1024 hidden=2048 skew=$skew rows=256 checked=4"
		for one in grouped padded; do
			asked $one ${skew}_experts_$one
			figure experts_${skew}_$one seconds $one
		done
		bar experts_${skew}_to_plain seconds plain 'counter|plan' '>=' 1
		case $skew in equal) least=0.95 ;; zipf) least=1.1 ;; *) least=1 ;; esac
		bar experts_${skew}_to_libraries seconds 'grouped|padded' 'counter|plan' '>=' $least
		compare uneven-experts-$skew --metric seconds
	done
}
# served: starts the server of the rivals in PyTorch and Triton, which makes them once, and answers with a sample at a time.
served() {
	[ -n "$dry" ] || return 0
	socket=$D/rivals.sock
	{
		for law in $laws; do
			for one in $fixed; do echo "${law}_$one attention.$one law=$law"; done
			for one in $redrawn; do echo "${law}_redrawn_$one attention.$one law=$law lengths=redrawn"; done
		done
		for skew in $skews; do
			for one in grouped padded; do echo "${skew}_experts_$one experts.$one skew=$skew"; done
		done
	} >"$D/rivals.txt"
	rm -f "$socket"
	python3 "$here/rivals/serve.py" "$socket" "$D/rivals.txt" >"$D/rivals.log" 2>&1 &
	server=$!
	trap 'kill $server 2>/dev/null' EXIT
}
# asked NAME JOB: a variant whose samples are the server's, if it has made this job.
asked() {
	[ -z "$dry" ] || return 0
	if "$here/rivals/ask.py" "$socket" "$2" >"$D/rivals.one" 2>&1; then
		other "$1" "$here/rivals/ask.py $socket $2"
	else
		echo "left out: $(tail -n 1 "$D/rivals.one")" >&2
	fi
}
# collected NAME COMMAND... [-- FIGURE RELATION TARGET...]: a program that takes turns itself and prints lines `sample`.
collected() {
	[ -z "$dry" ] || return 0
	into=$1
	shift
	"$@" >"$D/gpu-$into.samples" || echo "gpu-$into: $1 failed" >&2
	BENCH_COMMAND="bench/gpu.sh build $t" BENCH_GPUS=${on-cuda:0} python3 "$here/figures.py" "$B" "gpu-$into" ${targets-} <"$D/gpu-$into.samples" >"$D/gpu-$into.txt"
	targets=
	echo
	grep -v '^bar \|^figure ' "$D/gpu-$into.txt"
	grep '^bar \|^figure ' "$D/gpu-$into.txt" >>"$lines"
}
t_cost() { # from a task of a worker to the next one; runs of ten tasks for an embedding program
	compiled gpu_tax -I"$here" -L"$B" -lgpuloom -Xlinker -rpath="$B"
	on=cuda:0
	collected cost "$program" "$B" 20
	targets=
	[ ! -x "$D/embed" ] || collected embed "$D/embed" 1000 cuda:0
}

# ---- two GPUs and more ----------------------------------------------------------------------------------

devices() { # N: cuda:0 ... cuda:N-1, with @ in place of blanks
	seq -s@ -f 'cuda:%g' 0 $(($1 - 1))
}
t_scale() {
	for what in 'memset workload.memset.tasks=67108864 0.93' 'fib workload.fib.n=38 0.8' 'uts workload.uts.tree=T1L 0.87' \
		'uts workload.uts.tree=T1XXL 0.97' 'uts workload.uts.tree=T3L 0.5'; do
		set -- $what
		common="run.workload=$1 $2 scheduler.granularity=lane termination.use=hcounter" slow=yes
		for n in 1 2 4; do
			[ $n -gt "$gpus" ] || own gpus-$n run.devices="$(devices $n)"
			[ $n = 1 ] || bar scale_${2##*=}_$n seconds gpus-1 gpus-$n '>=' "$(awk -v n=$n -v e="$3" 'BEGIN { print n * e }')"
		done
		compare scale-${2##*=}
	done
	for law in zipf equal; do # a rank for each GPU, which has its sequences in its own memory
		for n in 1 2 4; do
			[ $n -gt "$gpus" ] || job gpus-$n $n seconds run.workload=ragged trigger.use=peer scheduler.use=plan device.cuda.lanes=128 \
				workload.ragged.law=$law workload.ragged.sequences=128 workload.ragged.length=2048 workload.ragged.heads=32 \
				workload.ragged.kv_heads=8 workload.ragged.dim=128 workload.ragged.checked=2 workload.ragged.chunk=4096
			[ $n = 1 ] || bar scale_ragged_${law}_$n seconds gpus-1 gpus-$n '>=' "$(awk -v n=$n 'BEGIN { print n == 2 ? 1.9 : 3.6 }')"
		done
		compare scale-ragged-$law
	done
}
# libraries: compiles the rivals with NVSHMEM and NCCL's device API, if the wheels of NVIDIA are here. They run without NVLink multicast.
libraries() {
	export NVSHMEM_DISABLE_NVLS=1 NCCL_NVLS_ENABLE=0
	shmem=$(wheel nvshmem) nccl=$(wheel nccl)
	export LD_LIBRARY_PATH="${nccl:+$nccl/lib:}${shmem:+$shmem/lib:}${LD_LIBRARY_PATH-}"
	[ -z "$dry" ] || [ -z "$nccl" ] || compiled gpu_lsa -I"$nccl/include" -L"$nccl/lib" -l:libnccl.so.2
	[ -z "$dry" ] || [ -z "$shmem" ] ||
		compiled gpu_nvshmem -rdc=true -I"$shmem/include" -L"$shmem/lib" -lnvshmem_device -l:libnvshmem_host.so.3
}
wheel() {
	python3 -c "import nvidia.$1 as n; print(list(n.__path__)[0])" 2>/dev/null
}
t_oneway() {
	libraries
	for shape in '8 32' '4096 512' '65536 1024'; do
		set -- $shape
		job peer 2 one_way_p50 run.workload=pingpong trigger.use=peer workload.pingpong.bytes=$1 device.cuda.lanes=$2 \
			device.cuda.workers=1 workload.pingpong.rounds=2000
		for library in nvshmem lsa; do
			rival $library one_way_p50:less:ns ${library}_put_$1_us 1e3 "$D/gpu_$library" ${library}_put_$1_us
		done
		bar oneway_$1_us one_way_p50 peer
		bar oneway_$1_to_best one_way_p50 peer 'nvshmem|lsa' '<=' 1
		compare oneway-$1 --metric one_way_p50
	done
}
t_meet() {
	libraries
	for workers in 1 $sms $((8 * sms)); do
		job ranks 2 latency run.workload=barrier barrier.use=auto workload.barrier.scope=job trigger.use=peer \
			workload.barrier.few=128 workload.barrier.difference=1280 device.cuda.workers=$workers
		for library in nvshmem lsa; do
			rival $library latency:less:ns ${library}_meet_${workers}_us 1e3 "$D/gpu_$library" ${library}_meet_${workers}_us
		done
		bar meet_${workers}_us latency ranks
		bar meet_${workers}_to_best latency ranks 'nvshmem|lsa' '<=' 1
		compare meet-$workers --metric latency
	done
}

t_sums() { # sums of floats inside a kernel; the floor of the longest is the rate of the link, 450 GB/s in each direction
	libraries
	for bytes in 4096 65536 1048576 67108864; do
		job peer 2 round_ns run.workload=allreduce trigger.use=peer workload.allreduce.bytes=$bytes workload.allreduce.rounds=100 \
			device.cuda.lanes=512 device.cuda.workers=$sms
		if [ $bytes -gt 1048576 ]; then
			job peer-256 2 round_ns run.workload=allreduce trigger.use=peer workload.allreduce.bytes=$bytes \
				workload.allreduce.rounds=100 device.cuda.lanes=256 device.cuda.workers=$sms
			bar sum_${bytes}_ns round_ns 'peer|peer-256' - '<=' 175000
		else
			for library in nvshmem lsa; do
				rival $library round_ns:less:ns ${library}_sum_${bytes}_us 1e3 "$D/gpu_$library" ${library}_sum_${bytes}_us
			done
			bar sum_${bytes}_to_best round_ns peer 'nvshmem|lsa' '<=' 1
		fi
		compare sums-$bytes --metric round_ns
	done
}

t_collectives() { # collectives of bfloat16 in a CUDA graph, launch of the node included; NVLink multicast is off for all
	libraries
	on=$(devices "$gpus" | tr @ ' ')
	targets=$(for bytes in 16 1024 4096 16384 65536 262144 1048576 8388608 67108864; do echo "comm${gpus}_${bytes}_to_fastest <= 1"; done
		for what in scatter gather broadcast; do
			for bytes in 1024 16384 262144 4194304 67108864; do echo "comm${gpus}_${what}_${bytes}_to_fastest <= 1.05"; done
		done)
	collected collectives-$gpus in_turns "$D/comm" "$B/plugins" cuda 67108864 "$gpus"
	# PyTorch's symmetric memory needs processes of its own, so it takes no turns with the others.
	python3 -c 'import torch' 2>/dev/null || { echo "left out: PyTorch's symmetric memory: no PyTorch" >&2; return; }
	collected collectives-torch-$gpus in_turns python3 "$here/rivals/sums.py" "$gpus"
}
# in_turns COMMAND...: adds the number of ranks to the names of bench/comm, and the ratios to the fastest rival of each turn.
in_turns() {
	"$@" | awk -v n="$gpus" '$1 != "sample" { print; next } {
		name = $2
		sub(/^comm_/, "", name)
		print "sample comm" n "_" name, $3, $4
		sub(/_us$/, "", name)
		what = match(name, /^(scatter|gather|broadcast)_/) ? substr(name, 1, RLENGTH) : ""
		name = substr(name, length(what) + 1)
		at = what substr(name, match(name, /[0-9]+$/)) " " $3
		if (name ~ /^gpuloom/) own[at] = $4
		else if (!(at in best) || $4 < best[at]) best[at] = $4
	}
	END {
		for (at in own) if (at in best) {
			split(at, part, " ")
			print "sample comm" n "_" part[1] "_to_fastest", part[2], own[at] / best[at]
		}
	}'
}

t_training() { # what a step of PyTorch gains by the allreduce of gpuloom.torch: decode in a CUDA graph, and DistributedDataParallel
	libraries
	[ -z "$dry" ] || return 0
	export PYTHONPATH="$here/../python" GPULOOM="$G" GPULOOM_LIBRARY="$B/libgpuloom.so.0"
	python3 -c 'import torch' 2>/dev/null || { echo "left out: training: no PyTorch" >&2; return; }
	on=$(devices "$gpus" | tr @ ' ')
	job="python3 -m torch.distributed.run --nproc-per-node $gpus $here/../examples/torch"
	targets="decode${gpus}_1B_to_windows >= 1.05"
	collected decode-$gpus $job/decode.py --turns 20
	targets="ddp${gpus}_to_default >= 1"
	collected ddp-$gpus $job/ddp.py --hook gpuloom default --turns 20
}
# Experts in parallel: 128 tokens of each GPU, rows of 7,168 bfloat16, 8 of 64 experts. The rival's numbers of rows are about the same,
# by another law of random numbers. Then the step in the cases of a benchmark for Megatron-LM, each to the best one.
t_dispatch() {
	job peer "$gpus" dispatch_ns,combine_ns,step_ns $(dispatched) workload.dispatch.rounds=50
	if python3 -c 'import torch' 2>/dev/null; then other nccl "python3 $here/rivals/dispatch.py $gpus"; fi
	bar dispatch_${gpus}_ns dispatch_ns peer - '<=' 30000
	bar dispatch_${gpus}_combine_ns combine_ns peer - '<=' 40000
	bar dispatch_${gpus}_to_nccl dispatch_ns peer nccl '<=' 0.6
	bar dispatch_${gpus}_combine_to_nccl combine_ns peer nccl '<=' 0.6
	compare dispatch-$gpus --metric dispatch_ns,combine_ns
	cases='equal hot_set hot_rank hot_spread ragged_source idle_rank rotating burst'
	for case in $cases; do
		job $case "$gpus" step_ns $(dispatched) workload.dispatch.rounds=0 workload.dispatch.skew=$case workload.dispatch.redraw=sample run.samples=16
	done
	for case in $cases; do # after all of them are there
		bar dispatch_${gpus}_case_$case step_ns $case "$(echo $cases | tr ' ' '|')" '<=' 1.4
	done
	compare dispatch-cases-$gpus --metric step_ns
}
dispatched() {
	echo run.workload=dispatch trigger.use=peer scheduler.use=counter device.cuda.lanes=512 workload.dispatch.experts=64 \
		workload.dispatch.tokens=$((128 * gpus)) workload.dispatch.top=8 workload.dispatch.dim=7168
}

# all_tables: calls the functions of the tables.
all_tables() {
	for t in $tables; do
		case $t in
		tasks | host | trees | rivals | contains | both | barriers | reduce | triggers | messages | requests | waits | cost | uneven) ;;
		scale | oneway | meet | sums | collectives | training | dispatch) [ "$gpus" -gt 1 ] || { echo "left out: $t needs two GPUs" >&2; continue; } ;;
		*) echo "no table '$t'" >&2; exit 2 ;;
		esac
		t_"$t"
	done
}
# Compiles the programs of all variants, on all cores, so that no comparison waits for a compiler.
rm -rf "$confs"/[0-9]*
mkdir -p "$confs/0"
dry=yes
: >"$D/gpu-programs.txt"
all_tables
xargs -P "$(nproc)" -I{} sh -c 'timeout 120 "$0" {} --quiet --samples 1 --set run.warmup=0' "$G" <"$D/gpu-programs.txt" >"$D/gpu-programs.log" 2>&1
[ -z "${server-}" ] || until grep -q '^ready' "$D/rivals.log" || ! kill -0 $server 2>/dev/null; do sleep 1; done
dry= folder=0
all_tables
echo
cat "$lines"
