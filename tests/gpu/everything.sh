# SPDX-License-Identifier: Apache-2.0
# The common part of tests/cuda/run.sh and tests/hip/run.sh, which run all combinations on this machine's GPU. Each workload runs with
# each scheduler, detector, transport and shape of workers, several times, and each sample is verified. The caller has set
#   device   cuda or hip          vendor   for the message without a GPU
#   shapes   sets of device options, one per line, each of which gives another shape of workers
#   syncs    the sync plug-ins; the first one also runs with each of shared_shapes
#   litmus   the compiler for tests/gpu/litmus.cu with its options, or false
#   together, in_turn   functions: `together` lets kernels of several processes run on the GPU at once, `in_turn` ends this
# The caller's arguments are BUILD [SAMPLES], where SAMPLES is the number of consecutive samples of a run (default 50). PARTS selects from
#   tasks    all of: counter hcounter tree (every combination under that detector), policies, shapes, pairs
#   waits    consumers wait for producers
#   barriers each barrier on one instance and on two, and a worker that never arrives
#   triggers one worker, some and all workers fire operations, also between ranks with separate GPUs. TRIGGERS selects
#            triggers, as in 'hdn gputn:memory=device'
#   requests one worker, some and all workers send service requests, and applications: each pipeline and kind of notification
#   turns    two ranks on one GPU, which runs them in turns: shared tasks, training and replay
#   peers    ranks on two GPUs store into each other's memory, and steal from each other
#   litmus   the litmus tests of the device layer's memory orders
# and the caller's own parts. Without a GPU the exit status is 77.
set -u
B=$(cd "${1:-build}" && pwd) samples=${2:-50} parts=${PARTS:-tasks waits barriers triggers turns requests peers litmus}
G=$B/gpuloom limit=$B/tests/limit
export GPULOOM_PLUGIN_PATH="$B/plugins"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$G" doctor >"$tmp/doctor" || exit 1
grep "^$device" "$tmp/doctor"
grep -q "^$device: GPU 0  *ok" "$tmp/doctor" || { echo "skipped: no usable $vendor GPU here"; exit 77; }

mkdir "$tmp/docs"
for i in $(seq 400); do
	seq "$i" $((i * 20)) | sed 's/7/zwischen den Zeilen /' >"$tmp/docs/$i.txt"
done
cat >"$tmp/gpu.ini" <<END
[run]
devices = $device:0
samples = $samples
timeout = 30s
[device.cpu]
oversubscribe = yes
[workload.memset]
tasks = 1000000
[workload.contains]
path = $tmp/docs
word = zwischen
load = ahead
[workload.fib]
n = 26
[workload.uts]
tree = T1
END
passed=0 failed=0

# once LABEL STATUS ARGUMENTS...: runs one command and sets $best to its best figure.
once() {
	label=$1 status=$2
	shift 2
	"$limit" 300 $wrap "$G" run "$tmp/gpu.ini" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	got=$?
	if [ "$got" -ne "$status" ]; then
		echo "FAILED  $label: exit $got instead of $status"
		echo "    gpuloom run $*"
		sed 's/^/    /' "$tmp/err" | tail -n 20
		[ -z "$wrap" ] || tail -n 40 "$tmp/out"
		failed=$((failed + 1))
		return 1
	fi
	passed=$((passed + 1))
	best=$(awk '$1 == "tasks_per_s" { print $2, $3 }' "$tmp/out")
}

# every LABEL ARGUMENTS...: runs all samples of a run.
every() {
	name=$1
	shift
	once "$name" 0 "$@" || return
	printf '  ok  %-64s %s\n' "$name" "$best"
}

# either LABEL ARGUMENTS...: all samples of a run pass, or the run is rejected with a message of one sentence.
either() {
	name=$1
	shift
	"$limit" 150 "$G" run "$tmp/gpu.ini" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	got=$?
	if [ $got -eq 0 ]; then
		printf '  ok  %s\n' "$name"
	elif [ \( $got -eq 2 -o $got -eq 4 \) -a "$(wc -l <"$tmp/err")" -eq 1 ]; then
		printf '  --  %s: %s\n' "$name" "$(cut -c 1-160 "$tmp/err")"
	else
		printf 'FAILED  %s: exit %s\n' "$name" "$got"
		tail -n 5 "$tmp/err"
		failed=$((failed + 1))
		return
	fi
	passed=$((passed + 1))
}

# Steps in separate kernels need a trigger that sends at the end of a kernel. One run shows that other triggers reject such
# steps.
ways_to_launch() { # arguments: TRIGGER WORKLOAD WORKERS
	case $1$2$3 in gds* | hdn* | *pingpong1) echo persistent launched ;; *) echo persistent ;; esac
}

triggers() {
	some=$("$G" doctor | sed -n "s/^$device: GPU 0 .* \([0-9]*\) multiprocessors.*/\1/p")
	names=$(cd "$B/plugins" && ls trigger_*.so | sed 's/trigger_\(.*\)\.so/\1/')
	for with in ${TRIGGERS:-$names gputn:memory=device}; do
		trigger=${with%%:*} option= per=100
		[ "$with" = "$trigger" ] || option="--set trigger.$trigger.${with#*:}"
		case $with in *memory=device) per=1000 ;; esac # each message takes about 30 us
		for workload in pingpong msgrate jacobi2d allreduce sgd replay; do
			set -- --set run.workload=$workload --set trigger.use=$trigger $option \
				--set workload.pingpong.rounds=200 \
				--set workload.msgrate.fires=1000 --set workload.msgrate.per=$per \
				--set workload.jacobi2d.sweeps=20 \
				--set workload.allreduce.bytes=256KiB
			case $workload in jacobi2d | sgd) set -- "$@" --set barrier.use=auto ;; esac
			for workers in 1 $some 0; do
				for kernels in $(ways_to_launch $trigger $workload $workers); do
					for transport in p2p host; do
						either "$with $workload, $transport, workers=$workers, $kernels" "$@" \
							--set transport.use=$transport \
							--set device.$device.workers=$workers \
							--set device.$device.kernels=$kernels
					done
					grep -q "^$device: GPU 1  *ok" "$tmp/doctor" && [ $workers != 0 ] || continue
					either "$with $workload, 2 ranks, workers=$workers, $kernels" "$@" --ranks 2 \
						--set transport.use=p2p --set device.$device.workers=$workers \
						--set device.$device.kernels=$kernels
				done
			done
		done
	done
}

# share OWN...: two ranks steal tasks from each other.
share() {
	for detector in hcounter tree; do
		for workload in uts fib synthetic; do
			for granularity in worker lane; do
				every "shared $workload, $detector, a task per $granularity" --ranks 2 \
					--set run.tasks=shared --set run.workload=$workload \
					--set transport.use=p2p --set trigger.use=peer --set scheduler.use=mgws \
					--set termination.use=$detector \
					--set scheduler.granularity=$granularity --set workload.fib.mode=spawn \
					--set workload.fib.n=18 "$@"
			done
		done
	done
}

# All workers of two ranks synchronise.
meet="--ranks 2 --set transport.use=p2p --set run.workload=barrier --set workload.barrier.scope=job"

# A turn takes about 2 ms, so there are few exchanges.
turns() {
	share --set device.$device.gpu=0 --set device.$device.workers=16
	for trigger in $(cd "$B/plugins" && ls trigger_*.so | sed 's/trigger_\(.*\)\.so/\1/'); do
		for workload in sgd replay; do
			set -- --ranks 2 --set run.workload=$workload --set trigger.use=$trigger --set transport.use=p2p
			[ $workload = replay ] || set -- "$@" --set barrier.use=auto
			either "$trigger $workload, two ranks on a GPU" "$@" --set device.$device.gpu=0 \
				--set device.$device.workers=16 \
				--set workload.sgd.steps=6 --set workload.replay.steps=2 \
				--set workload.replay.most=16KiB
		done
		either "$trigger barrier of the job, two ranks on a GPU" $meet --set trigger.use=$trigger \
			--set barrier.use=auto \
			--set device.$device.gpu=0 --set device.$device.workers=16 --set workload.barrier.few=5 \
			--set workload.barrier.difference=10 --set workload.barrier.parts=2 \
			--set workload.barrier.checked=40
	done
}

# Two ranks take a second to start, so the test has only sizes for which the algorithms differ.
peers() {
	grep -q "^$device: GPU 1  *ok" "$tmp/doctor" || { echo '  --  peers: there is one GPU'; return; }
	some=$("$G" doctor | sed -n "s/^$device: GPU 0 .* \([0-9]*\) multiprocessors.*/\1/p")
	own="--ranks 2 --set transport.use=p2p --set trigger.use=peer"
	share
	for workers in 1 $some 0; do
		for bytes in 8 100000; do
			every "peer pingpong of $bytes bytes, workers=$workers" $own \
				--set device.$device.workers=$workers \
				--set run.workload=pingpong --set workload.pingpong.rounds=200 \
				--set workload.pingpong.bytes=$bytes
		done
		for barrier in auto dissemination; do
			every "peer barrier of the job, $barrier, workers=$workers" $meet --set trigger.use=peer \
				--set barrier.use=$barrier \
				--set device.$device.workers=$workers --set workload.barrier.parts=2
		done
		every "peer jacobi2d, workers=$workers" $own --set device.$device.workers=$workers \
			--set run.workload=jacobi2d \
			--set barrier.use=auto --set workload.jacobi2d.sweeps=100
		for size in 'auto 8' 'auto 1MiB' 'auto 8MiB' 'ring 4KiB' 'ring 1MiB' 'oneshot 4KiB' 'oneshot 1MiB' \
			'twoshot 4KiB' \
			'twoshot 8MiB' 'pull 4KiB' 'pull 8MiB'; do
			case $size in auto* | ring*) rounds=1 ;; *MiB) rounds=20 ;; *) rounds=200 ;; esac
			every "peer allreduce by $size, workers=$workers" $own --set device.$device.workers=$workers \
				--set run.workload=allreduce --set workload.allreduce.bytes=${size#* } \
				--set workload.allreduce.algorithm=${size% *} --set workload.allreduce.rounds=$rounds
		done
	done
}

wrap=
schedulers=$(cd "$B/plugins" && ls sched_*.so | sed 's/sched_\(.*\)\.so/\1/')
detectors=$(cd "$B/plugins" && ls term_*.so | sed 's/term_\(.*\)\.so/\1/')

# combinations DETECTOR...
combinations() {
	wanted=$*
	# sched_static does not move spawned tasks, and polls of host memory are slow, so these jobs are smaller.
	for transport in p2p host; do
		for scheduler in $schedulers 'mgws granularity=lane'; do
			for detector in $wanted; do
				for workload in memset contains fib uts; do
					set -- --set transport.use="$transport" --set scheduler.use="${scheduler% *}" \
						--set termination.use="$detector" --set run.workload="$workload"
					[ "$scheduler" = "${scheduler% *}" ] ||
						set -- "$@" --set "scheduler.mgws.${scheduler#* }"
					[ "$transport" = p2p ] || set -- "$@" --set workload.memset.tasks=20000 \
						--set workload.fib.n=18 --set device.$device.workers=264 \
						--set workload.uts.tree=custom --set workload.uts.depth=6
					[ "$scheduler" != static ] || set -- "$@" \
						--set scheduler.static.overflow_list=1000000 \
						--set workload.fib.n=18 \
						--set workload.uts.tree=custom --set workload.uts.depth=4
					every "$transport $scheduler $detector $workload" "$@"
				done
			done
		done
	done
}
counter() { combinations counter; }
hcounter() { combinations hcounter; }
tree() { combinations tree; }

base='--set transport.use=p2p --set scheduler.use=mgws --set termination.use=counter'
# Tests the scheduler's policies, and queues in host memory with all other data on the device.
policies() {
	for granularity in worker lane; do
		for policy in attempts=damping transfer=id victim=biased victim=local victim=neighbour claim=fixed \
			claim=queues owners=2; do
			every "uts granularity=$granularity $policy" $base --set run.workload=uts \
				--set scheduler.granularity=$granularity --set scheduler.mgws.$policy
		done
		every "uts granularity=$granularity, queues in host memory" $base --set run.workload=uts \
			--set scheduler.granularity=$granularity --set transport.p2p.placement=host \
			--set workload.uts.tree=custom
	done
}

shapes() {
	for workload in memset uts; do
		echo "$shapes" | grep . >"$tmp/shapes"
		while read -r shape; do
			set -- $base --set run.workload="$workload"
			for one in $shape; do
				set -- "$@" --set "device.$device.$one"
			done
			# With few workers the full tree takes seconds, so they get a smaller one.
			case $shape in
			workers=*) set -- "$@" --set workload.uts.tree=custom --set workload.uts.depth=6 ;;
			esac
			every "$workload $shape" "$@"
		done <"$tmp/shapes"
		every "$workload, small queues" $base --set run.workload="$workload" \
			--set scheduler.mgws.local_queue=2 --set scheduler.mgws.public_queue=2 \
			--set scheduler.mgws.overflow_list=1000000 --set workload.uts.tree=custom \
			--set workload.uts.depth=6
	done
}

pairs() {
	# Two devices on one GPU: the coherence probe, and steals between them.
	half=$("$G" doctor | sed -n "s/^$device: GPU 0 .* \([0-9]*\) multiprocessors.*/\1/p")
	# Two devices may have no common atomics in host memory. term_counter needs them.
	for how in 'p2p counter' 'host hcounter'; do
		every "two devices on one GPU, $how" --set run.devices="$device:0 $device:1" \
			--set device.$device.1.gpu=0 --set device.$device.workers="$half" --set run.workload=uts \
			--set transport.use="${how% *}" --set scheduler.use=mgws --set termination.use="${how#* }"
	done
	# Over a bus, additions of two GPUs to a word of host memory are lost, so the probe finds the GPUs non-coherent.
	if grep -q "^$device: GPU 1  *ok" "$tmp/doctor"; then
		for granularity in worker lane; do
			set -- --set run.devices="$device:0 $device:1" --set run.workload=uts --set scheduler.use=mgws \
				--set scheduler.granularity=$granularity
			for detector in $detectors; do
				every "two GPUs, p2p $detector $granularity" "$@" --set transport.use=p2p \
					--set termination.use=$detector
			done
			for transport in p2p host; do
				for detector in hcounter tree; do
					every "two GPUs, non-coherent, $transport $detector $granularity" "$@" \
						--set transport.use=$transport \
						--set transport.p2p.atomics=no --set termination.use=$detector \
						--set workload.uts.tree=custom --set workload.uts.depth=7
				done
			done
		done
	fi
	# CPU and GPU in one stack, with tasks that cross by mailboxes. Links without atomic read-modify-writes need
	# mailboxes, and other links work with them.
	for transport in p2p host; do
		for detector in hcounter tree; do
			for granularity in worker lane; do
				for workload in memset fib uts; do
					every "CPU and GPU, $transport $detector $granularity $workload" \
						--set run.devices="cpu:0 $device:0" --set run.workload=$workload \
						--set transport.use=$transport --set transport.$transport.atomics=no \
						--set termination.use=$detector --set scheduler.use=mgws \
						--set scheduler.granularity=$granularity \
						--set device.$device.workers=264 --set workload.memset.tasks=200000 \
						--set workload.fib.n=18 --set workload.uts.tree=custom \
						--set workload.uts.depth=6
				done
			done
		done
	done
}

tasks() {
	combinations $detectors
	policies
	shapes
	pairs
}

waits() {
	# Consumers on a GPU wait for producers on another instance of the GPU. Each application runs with each way to wait,
	# with several workers per block and with a deadline during the wait.
	pair="--set run.devices=$device:0\\ $device:1 --set device.$device.1.gpu=0 --set transport.use=p2p"
	for sync in $syncs; do
		for app in srs cg fe h3d bfs bs c2d stn gem kmn pattern; do
			eval every "'sync $sync $app'" "$pair" --set device.$device.workers=4 --set sync.use=$sync \
				--set run.workload=$app
		done
	done
	echo "$shared_shapes" | grep . >"$tmp/shapes"
	while read -r shape; do
		set --
		for one in $shape; do
			set -- "$@" --set "device.$device.$one"
		done
		eval every "'sync ${syncs%% *} stn, $shape'" "$pair" --set device.$device.workers=32 \
			--set sync.use="${syncs%% *}" --set run.workload=stn '"$@"'
	done <"$tmp/shapes"
	# A CPU has the producers or the consumers.
	for sync in $syncs futex wic; do
		for ends in "cpu:0 $device:0" "$device:0 cpu:0"; do
			for app in resume pattern stn cg bfs gem; do
				either "sync $sync $app, $ends" --set run.devices="$ends" --set transport.use=p2p \
					--set sync.use=$sync \
					--set run.workload=$app --set device.cpu.workers=4 \
					--set device.$device.workers=4 \
					--set workload.pattern.model=alternating --set workload.resume.of=4 \
					--set workload.resume.waiters=2 \
					--set workload.resume.computing=1
			done
		done
	done
	for sync in $syncs; do
		eval once "'sync $sync, a deadline'" 124 "$pair" --set device.$device.workers=4 --set sync.use=$sync \
			--set run.workload=stn --set workload.exchange.tp=20000 --set workload.stn.iterations=10000 \
			--set run.timeout=300ms && printf '  ok  %s\n' "sync $sync, a deadline ends waits"
	done
}

barriers() {
	instances=0 # the index of the second device's GPU
	"$G" doctor | grep -q "^$device: GPU 1  *ok" && instances='0 1'
	for barrier in auto central release tree dissemination flags; do
		own="--set run.workload=barrier --set barrier.use=$barrier --set device.$device.workers=16 --set transport.use=p2p"
		own="$own --set workload.barrier.few=20 --set workload.barrier.difference=100 --set workload.barrier.parts=2"
		every "barrier $barrier" $own --set workload.barrier.work=100
		for lanes in 32 256; do # these runs have as many workers as the GPU can hold
			every "barrier $barrier, all workers of $lanes lanes" $own --set device.$device.workers=auto \
				--set device.$device.lanes=$lanes
		done
		for gpu in $instances; do
			pair="--set device.$device.1.gpu=$gpu"
			for atomics in auto no; do
				every "barrier $barrier, GPU 0 and $gpu, atomics = $atomics" $own \
					--set run.devices="$device:0 $device:1" \
					$pair --set transport.p2p.atomics=$atomics
			done
			case $barrier in auto | central | release) ;; *) continue ;; esac
			every "barrier $barrier, GPU 0 and $gpu, groups" $own \
				--set run.devices="$device:0 $device:1" $pair \
				--set workload.barrier.scope=group --set workload.barrier.teams=3
			every "barrier $barrier, GPU 0 and $gpu, all of one leave" $own \
				--set run.devices="$device:0 $device:1" $pair \
				--set workload.barrier.leave=20
		done
		every "barrier $barrier, a CPU and a GPU" $own --set run.devices="cpu:0 $device:0" \
			--set transport.use=host \
			--set device.cpu.workers=4
		every "barrier $barrier, the job" $own --set workload.barrier.scope=job --set device.$device.lanes=64
		once "barrier $barrier, one never arrives" 124 $own --set workload.barrier.absent=3 \
			--set workload.barrier.deadline=50ms &&
			printf '  ok  %s\n' "barrier $barrier names who is missing"
	done
	own="--set run.workload=reduce --set barrier.use=auto --set workload.reduce.floats=1000004 --set transport.use=p2p"
	for lanes in 32 256; do
		every "sums, all workers of $lanes lanes" $own --set device.$device.lanes=$lanes
	done
	every "sums, two" $own --set run.devices="$device:0 $device:1" --set device.$device.1.gpu=0 \
		--set device.$device.workers=16
}

# request_runs: prints a line for each run: the service, the pipeline, the notification and the workers. Any first part of the
# lines is a fair sample.
request_runs() {
	for ask in nothing signal read write send fault alloc migrate bfs spmv sssp bpt xsbench; do
		for use in split monolithic monolithic,coalesce split,steer split,throttle monolithic,budget; do
			for notify in poll interrupt hybrid; do
				for workers in 1 16 "$some" 0; do
					echo $ask $use $notify $workers
				done
			done
		done
	done | awk 'BEGIN { srand(17) } { printf "%.9f %s\n", rand(), $0 }' | sort -n | cut -d ' ' -f 2-
}

# request_run ASK USE NOTIFY WORKERS
request_run() {
	use=$(echo "$2" | tr , ' ') few=64 n=2000
	case $1 in bfs | spmv | sssp | bpt | xsbench) workload=requests_app ;; *) workload=requests_storm ;; esac
	[ "$4" -ne 0 ] || n=8000 few=4
	case $use in *throttle* | *budget*) n=400 ;; esac
	service=$1 notify=$3 workers=$4
	set -- --set run.workload=$workload --set transport.use=p2p --set "qos.use=$use" \
		--set "qos.${use%% *}.notify=$notify" \
		--set device.$device.workers="$workers" --set workload.$workload.settle=0
	if [ $workload = requests_storm ]; then
		set -- "$@" --set workload.requests_storm.service="$service" --set workload.requests_storm.requests=$n \
			--set workload.requests.outstanding=$few
	else
		set -- "$@" --set workload.$workload.app="$service" --set workload.$workload.size=10000 \
			--set workload.$workload.lookups=10000
	fi
	every "$service $use, $notify, workers=$workers" "$@"
}

# request_job N OF LIST: runs every OF'th line of the list from the Nth on, on separate cores, and writes into $tmp how many
# passed and failed.
request_job() {
	mkdir "$tmp/$1" && cp "$tmp/gpu.ini" "$tmp/$1" || return
	cores=$(($(nproc) / $2)) tmp=$tmp/$1 passed=0 failed=0
	[ "$2" -eq 1 ] || wrap="taskset -c $(($1 * cores))-$((($1 + 1) * cores - 1))"
	awk "NR % $2 == $1" "$3" >"$tmp/requests"
	while read -r ask use notify workers && [ "$(date +%s)" -lt $until ]; do
		request_run "$ask" "$use" "$notify" "$workers"
	done <"$tmp/requests"
	echo "$passed $failed" >"$tmp/count"
}

# request_jobs OF LIST
request_jobs() {
	jobs=
	for job in $(seq 0 $(($1 - 1))); do
		request_job "$job" "$1" "$2" &
		jobs="$jobs $!"
	done
	wait $jobs
	for job in $(seq 0 $(($1 - 1))); do
		read -r more_passed more_failed <"$tmp/$job/count" || more_passed=0 more_failed=1 # it was killed
		passed=$((passed + more_passed)) failed=$((failed + more_failed))
		rm -r "${tmp:?}/$job"
	done
}

# No run starts after REQUEST_TIME seconds (default 3600). If a GPU has room for several kernels, JOBS runs (default 1) run at
# once. Of the runs that fill the GPU, half of JOBS run at once. Their kernels run in sequence, but the starts of processes,
# which take longer, overlap.
requests() {
	some=$("$G" doctor | sed -n "s/^$device: GPU 0 .* \([0-9]*\) multiprocessors.*/\1/p")
	until=$(($(date +%s) + ${REQUEST_TIME:-3600})) at_once=${JOBS:-1}
	[ "$at_once" -le "$(nproc)" ] || at_once=$(nproc)
	request_runs >"$tmp/requests"
	[ "$at_once" -eq 1 ] || together
	grep -v ' 0$' "$tmp/requests" >"$tmp/few"
	grep ' 0$' "$tmp/requests" >"$tmp/all"
	request_jobs "$at_once" "$tmp/few"
	request_jobs $(((at_once + 1) / 2)) "$tmp/all"
	[ "$at_once" -eq 1 ] || in_turn
	every 'CPU and GPU ask' --set run.devices="cpu:0 $device:0" --set run.workload=requests_storm \
		--set transport.use=host \
		--set qos.use=split --set device.$device.workers="$some" --set workload.requests_storm.requests=20000
}

litmus() {
	top=$(dirname "$0")/../..
	if $litmus -I"$B/include" \
		-o "$tmp/litmus" "$top/tests/gpu/litmus.cu" >"$tmp/out" 2>&1; then
		if "$tmp/litmus"; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
		fi
	else
		echo '  no litmus tests: there is no compiler for them here, or it fails:'
		[ ! -s "$tmp/out" ] || tail -n 5 "$tmp/out"
	fi
}

for part in $parts; do
	$part
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
