#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every combination for real, on this machine's GPU: each workload with each scheduler, detector,
# transport and kind of worker, several times over, every sample verified.
#   [PARTS='tasks waits'] tests/cuda/run.sh BUILD [SAMPLES [SANITIZER]]
# SAMPLES (default 50): in a row, in one run. SANITIZER: compute-sanitizer's tools to run once each, as in
# "memcheck racecheck". Exit 77: no GPU here.
set -u
B=$(cd "${1:-build}" && pwd) samples=${2:-50} sanitizer=${3-} parts=${PARTS:-tasks waits}
G=$B/gpuloom
export GPULOOM_PLUGIN_PATH="$B/plugins"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$G" doctor >"$tmp/doctor" || exit 1
grep '^cuda' "$tmp/doctor"
grep -q '^cuda: GPU 0  *ok' "$tmp/doctor" || { echo 'skipped: no usable NVIDIA GPU here'; exit 77; }

mkdir "$tmp/docs"
for i in $(seq 400); do
	seq "$i" $((i * 20)) | sed 's/7/zwischen den Zeilen /' >"$tmp/docs/$i.txt"
done
cat >"$tmp/cuda.ini" <<END
[run]
devices = cuda:0
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

# For tests/cuda/fake_driver.c, with which this script itself is tested.
fake() {
	FAKE_CUDA_PLUGINS=
	for one; do
		case $one in
		scheduler.use=*) FAKE_CUDA_PLUGINS="$FAKE_CUDA_PLUGINS $B/plugins/sched_${one#*=}.so" ;;
		termination.use=*) FAKE_CUDA_PLUGINS="$FAKE_CUDA_PLUGINS $B/plugins/term_${one#*=}.so" ;;
		sync.use=*) FAKE_CUDA_PLUGINS="$FAKE_CUDA_PLUGINS $B/plugins/sync_${one#*=}.so" ;;
		run.workload=*) FAKE_CUDA_PLUGINS="$FAKE_CUDA_PLUGINS $B/plugins/workload_${one#*=}.so" ;;
		esac
	done
	export FAKE_CUDA_PLUGINS
}

# once LABEL STATUS ARGUMENTS...: one command; its best figure goes into $best.
once() {
	label=$1 status=$2
	shift 2
	fake "$@"
	timeout 300 $wrap "$G" run "$tmp/cuda.ini" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	got=$?
	if [ "$got" -ne "$status" ]; then
		echo "FAILED  $label: exit $got instead of $status"
		sed 's/^/    /' "$tmp/err" | tail -n 20
		[ -z "$wrap" ] || tail -n 40 "$tmp/out"
		failed=$((failed + 1))
		return 1
	fi
	passed=$((passed + 1))
	best=$(awk '$1 == "tasks_per_s" { print $2, $3 }' "$tmp/out")
}

# every LABEL ARGUMENTS...: all samples of a run.
every() {
	name=$1
	shift
	once "$name" 0 "$@" || return
	printf '  ok  %-64s %s\n' "$name" "$best"
}

wrap=
schedulers=$(cd "$B/plugins" && ls sched_*.so | sed 's/sched_\(.*\)\.so/\1/')
detectors=$(cd "$B/plugins" && ls term_*.so | sed 's/term_\(.*\)\.so/\1/')
tasks() {
	# Static keeps what tasks spawn where it is, and polls of host memory are slow: smaller jobs there.
	for transport in p2p host; do
		for scheduler in $schedulers 'mgws grain=lane'; do
			for detector in $detectors; do
				for workload in memset contains fib uts; do
					set -- --set transport.use="$transport" --set scheduler.use="${scheduler% *}" \
						--set termination.use="$detector" --set run.workload="$workload"
					[ "$scheduler" = "${scheduler% *}" ] ||
						set -- "$@" --set "scheduler.mgws.${scheduler#* }"
					[ "$transport" = p2p ] || set -- "$@" --set workload.memset.tasks=20000 \
						--set workload.fib.n=18 --set device.cuda.workers=264 \
						--set workload.uts.tree=custom --set workload.uts.depth=6
					[ "$scheduler" != static ] || set -- "$@" --set scheduler.static.spill=1000000 \
						--set workload.fib.n=18 \
						--set workload.uts.tree=custom --set workload.uts.depth=4
					every "$transport $scheduler $detector $workload" "$@"
				done
			done
		done
	done

	# The scheduler's policies, and queues in host memory with everything else on the device.
	base='--set transport.use=p2p --set scheduler.use=mgws --set termination.use=counter'
	for grain in worker lane; do
		for policy in overflow=damping transfer=id victim=biased victim=local victim=neighbour claim=fixed \
			owners=2; do
			every "uts grain=$grain $policy" $base --set run.workload=uts \
				--set scheduler.mgws.grain=$grain --set scheduler.mgws.$policy
		done
		every "uts grain=$grain, queues in host memory" $base --set run.workload=uts \
			--set scheduler.mgws.grain=$grain --set transport.p2p.placement=host --set workload.uts.tree=custom
	done

	# Other shapes of workers.
	for workload in memset uts; do
		for shape in 'lanes=64' 'lanes=256' 'worker=warp' 'worker=warp warps=8' 'workers=1' 'workers=2' \
			'max_registers=64' 'nesting=2'; do
			set -- $base --set run.workload="$workload"
			for one in $shape; do
				set -- "$@" --set "device.cuda.$one"
			done
			# Few workers take seconds for the tree.
			case $shape in
			workers=*) set -- "$@" --set workload.uts.tree=custom --set workload.uts.depth=6 ;;
			esac
			every "$workload $shape" "$@"
		done
		every "$workload, small queues" $base --set run.workload="$workload" \
			--set scheduler.mgws.local_queue=2 --set scheduler.mgws.public_queue=2 \
			--set scheduler.mgws.spill=1000000 --set workload.uts.tree=custom --set workload.uts.depth=6
	done

	# Two devices in one stack: the coherence probe, steals between them. On one GPU both share it.
	half=$("$G" doctor | sed -n 's/^cuda: GPU 0 .* \([0-9]*\) multiprocessors.*/\1/p')
	for transport in p2p host; do
		every "two devices on one GPU, $transport" --set run.devices='cuda:0 cuda:1' \
			--set device.cuda.1.gpu=0 --set device.cuda.workers="$half" --set run.workload=uts \
			--set transport.use="$transport" --set scheduler.use=mgws --set termination.use=counter
	done
	if grep -q '^cuda: GPU 0 and CPU  *ok' "$tmp/doctor"; then
		every 'CPU and GPU' --set run.devices='cpu:0 cuda:0' --set run.workload=uts \
			--set transport.use=host --set scheduler.use=mgws --set termination.use=counter
	else
		once 'CPU and GPU are refused' 4 --set run.devices='cpu:0 cuda:0' --set run.workload=uts \
			--set transport.use=host --set scheduler.use=mgws --set termination.use=counter
		sed 's/^/      /' "$tmp/err"
	fi
}

waits() {
	# Consumers that wait on a GPU, for producers on another instance of it: each application under each way to
	# wait, several workers per block, and a deadline that finds them waiting.
	pair='--set run.devices=cuda:0\ cuda:1 --set device.cuda.1.gpu=0 --set transport.use=p2p'
	for sync in warp poll backoff; do
		for app in srs cg fe h3d bfs bs c2d stn gem kmn pattern; do
			eval every "'sync $sync $app'" "$pair" --set device.cuda.workers=4 --set sync.use=$sync \
				--set run.workload=$app
		done
	done
	for shape in 'worker=warp warps=4' 'worker=warp warps=16' 'lanes=64'; do
		set --
		for one in $shape; do
			set -- "$@" --set "device.cuda.$one"
		done
		eval every "'sync warp stn, $shape'" "$pair" --set device.cuda.workers=32 --set sync.use=warp \
			--set run.workload=stn '"$@"'
	done
	for sync in warp poll backoff; do
		eval once "'sync $sync, a deadline'" 124 "$pair" --set device.cuda.workers=4 --set sync.use=$sync \
			--set run.workload=stn --set workload.stn.tp=20000 --set workload.stn.iterations=10000 \
			--set run.timeout=300ms && printf '  ok  %s\n' "sync $sync, a deadline ends waits"
	done
}

for part in $parts; do
	$part
done

# Litmus tests of the device layer: compiled here, for they need no composition.
if nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) &&
	"$nvcc" -std=c++20 -arch=native -I"$(dirname "$0")/../../core/include" -o "$tmp/litmus" \
		"$(dirname "$0")/litmus.cu" >"$tmp/out" 2>&1; then
	if "$tmp/litmus"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
else
	echo '  no litmus tests: no nvcc here, or it fails:'
	[ ! -s "$tmp/out" ] || tail -n 5 "$tmp/out"
fi

base='--set transport.use=p2p --set scheduler.use=mgws --set termination.use=counter'
for tool in $sanitizer; do
	wrap="compute-sanitizer --tool $tool --error-exitcode 99"
	for workload in memset fib uts; do
		for grain in worker lane; do
			once "$tool $workload $grain" 0 $base --set run.workload="$workload" --samples 1 \
				--set workload.memset.tasks=20000 --set workload.fib.n=14 \
				--set workload.uts.tree=custom --set workload.uts.depth=5 \
				--set scheduler.mgws.grain=$grain --set device.cuda.workers=64 \
				--set run.timeout=200s && printf '  ok  %s\n' "$tool $workload $grain"
		done
	done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
