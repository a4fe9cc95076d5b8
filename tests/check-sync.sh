# SPDX-License-Identifier: Apache-2.0
# Every application of the exchange engine gives the reference result under every sync plug-in, in both isolations and with
# lanes. So does every model of communication with every pattern of access.
#   SYNC_REPEAT=100 tests/run-all build tests/check-sync.sh     the long form
. tests/lib.sh
if ! "$G" run conf/wic.ini --set run.workload=pattern --samples 1 >/dev/null 2>"$tmp/err" &&
	grep -q userfaultfd "$tmp/err"; then
	plugins='poll backoff futex'
else
	plugins='wic futex backoff poll'
fi
repeat=${SYNC_REPEAT:-2}
isolations='thread process'
# A race detector observes one process only. It would report accesses that another process orders.
case $B in *thread*) isolations=thread ;; esac
devices='--set run.warmup=0'
small='--set workload.stn.size=48 --set workload.stn.iterations=6 --set workload.c2d.size=24
	--set workload.c2d.iterations=5 --set workload.srs.size=24 --set workload.h3d.size=4
	--set workload.h3d.iterations=3 --set workload.bs.size=100 --set workload.gem.size=48
	--set workload.kmn.size=32 --set workload.kmn.iterations=3 --set workload.cg.size=8
	--set workload.cg.iterations=20 --set workload.fe.size=6 --set workload.fe.iterations=8
	--set workload.bfs.size=8'
# With non-coherent devices, the flags and items of sync_warp are in the host's memory, else in that of the consumers' device.
noncoherent='--set sync.use=warp --set transport.use=p2p --set transport.p2p.atomics=no'
for app in pattern stn cg resume 'gem auto' 'resume auto'; do
	for isolation in $isolations; do
		case $app in *auto) atomics=auto ;; *) atomics=no ;; esac
		expect 0 'verified' "$G" run conf/wic.ini --set run.workload=${app% *} --samples 2 $devices $noncoherent \
			--set transport.p2p.atomics=$atomics --set device.cpu.workers=4 --set workload.gem.size=48 \
			--set device.cpu.isolation=$isolation --set workload.stn.size=48 --set workload.cg.size=8 \
			--set workload.cg.iterations=20 --set workload.resume.of=4 --set workload.resume.waiters=2 \
			--set workload.resume.computing=1 --set workload.resume.work=10 \
			--set workload.resume.iterations=50
	done
done
for app in srs cg fe h3d bfs bs c2d stn gem kmn; do
	own=$(echo "$small" | tr -s ' \t\n' '\n' | grep "^workload.$app\." | sed 's/^/--set /')
	for sync in $plugins; do
		workers=4
		[ $sync != poll ] || workers=1 # a spinning consumer takes whole time slices from its producer
		for isolation in $isolations; do
			expect 0 "$repeat samples?, (each )?verified" "$G" run conf/wic.ini --set run.workload=$app \
				--samples $repeat $devices $own \
				--set sync.use=$sync --set device.cpu.workers=$workers \
				--set device.cpu.isolation=$isolation
		done
		[ $sync = poll ] || expect 0 'verified' "$G" run conf/wic.ini --set run.workload=$app \
			--samples 1 $devices $own \
			--set sync.use=$sync --set device.cpu.workers=2 --set device.cpu.lanes=3
	done
done
for sync in $plugins; do
	[ $sync != poll ] || continue
	for model in unidirectional alternating multiple probabilistic; do
		for access in streaming adjacent scatter_gather random; do
			expect 0 'verified' "$G" run conf/wic.ini --set run.workload=pattern --samples 1 $devices \
				--set sync.use=$sync \
				--set workload.pattern.model=$model --set workload.pattern.access=$access
		done
	done
done
# Tests items that are copied to the consumer. They are reserved or published, and have one reader or several.
for transfer in demand push; do
	for app in srs gem h3d pattern; do
		own=$(echo "$small" | tr -s ' \t\n' '\n' | grep "^workload.$app\." | sed 's/^/--set /')
		for isolation in $isolations; do
			expect 0 'verified' "$G" run conf/wic.ini --set run.workload=$app --samples 2 $devices $own \
				--set sync.use=poll --set sync.poll.transfer=$transfer --set device.cpu.workers=1 \
				--set device.cpu.isolation=$isolation
		done
	done
done
# Tp - Tc is above 0 if producers are late, and below 0 if consumers are. A metric shows whether independent workers are done when
# a wait ends.
# On a busy machine a producer or a consumer may not run while the other one does, so there are several tries.
moments() { # METRIC TEST ARGUMENTS...
	metric=$1 test=$2
	shift 2
	for try in 1 2 3 4 5 6; do
		expect 0 tp_after_tc "$G" run conf/wic.ini --set run.workload=pattern --samples 1 $devices --quiet --json - \
			--set sync.use=futex --set device.cpu.workers=1 --set workload.exchange.times=yes \
			--set workload.pattern.iterations=4 "$@"
		# The table omits metrics that are 0, so the value is read from the JSON.
		value=$(tr -d ' \n\t' <"$tmp/out" | sed -n "s/.*\"$metric\":{[^}]*\"median\":\([-0-9.e]*\).*/\1/p")
		[ -n "$value" ] && awk "BEGIN { exit !($value $test) }" && return
	done
	fail "$metric is '$value', not $test, with $*"
}
moments tp_after_tc '> 0.2' --set workload.exchange.tp=20000
moments tp_after_tc '< 0' --set workload.exchange.tc=20000
moments unready_share '> 0.2' --set workload.exchange.tp=20000
moments independent_left '> 0.9' --set device.cpu.1.workers=2 --set workload.pattern.independent=300000 \
	--set workload.exchange.tp=20000
moments independent_left '< 0.1' --set device.cpu.1.workers=2 --set workload.pattern.independent=1 --set workload.exchange.tp=20000 \
	--set workload.exchange.progress=100%
# Two consumers begin to wait one after the other. When the first one begins, the other one has not begun yet.
moments before_tc '> 0.2' --set device.cpu.workers=2 --set workload.exchange.tp=600000 --set workload.exchange.tc=60000 \
	--set workload.pattern.iterations=1 --set workload.exchange.progress=0%
moments before_tc '< 0.1' --set device.cpu.workers=2 --set workload.exchange.tp=600000 --set workload.exchange.tc=60000 \
	--set workload.pattern.iterations=1 --set workload.exchange.progress=100%
case $plugins in *wic*)
	for own in mode=copy eager=no activate=monitor companions=2; do
		for isolation in $isolations; do
			expect 0 'verified' "$G" run conf/wic.ini --set run.workload=h3d --samples 2 $devices \
				--set workload.h3d.size=4 \
				--set "sync.wic.$own" --set device.cpu.isolation=$isolation
		done
	done
	# The paper's arrangement: the Monitors do the work.
	expect 0 '^ *sync_monitor_ns +[0-9.,]+ ns' "$G" run -v conf/wic.ini --set run.workload=pattern --samples 1 \
		--set sync.wic.eager=no --set sync.wic.activate=monitor --set sync.wic.mode=copy --set sync.wic.companions=2
	# Messages with descriptors that the process may not have are an error with a cause.
	case $isolations in *process*)
		expect 4 'cannot receive the descriptors.*raise the limit \(ulimit -n\)' \
			sh -c 'ulimit -n 130 && exec "$@"' sh "$G" run conf/wic.ini --samples 1 \
			--set device.cpu.isolation=process --set device.cpu.workers=4 --set sync.wic.shards=64
		;;
	esac
	# Messages are exchanged between more than two devices.
	for app in srs cg fe h3d bfs bs gem kmn stn; do
		expect 0 'verified' "$G" run conf/wic.ini --set run.workload=$app --samples 1 \
			--set 'run.devices=cpu:0 cpu:1 cpu:2' \
			--set device.cpu.workers=3
	done
	;;
esac
expect 2 'no sync is selected' "$G" run conf/wic.ini --set sync.use=
expect 2 'two devices' "$G" run conf/wic.ini --set run.devices=cpu:0
[ "$isolations" != thread ] || finish
# When a producer is killed in mid-run, the run ends at once with a message that names it, under every plug-in.
for sync in $plugins warp; do
	without_a_device $sync conf/wic.ini --set run.workload=pattern --set sync.use=$sync --set device.cpu.workers=2 \
		--set workload.pattern.iterations=100000 --set workload.exchange.tp=1000
	[ $took -lt 3000 ] || fail "$sync: $took ms until a killed producer was noticed"
done
without_a_device noncoherent conf/wic.ini --set run.workload=pattern $noncoherent --set device.cpu.workers=2 \
	--set workload.pattern.iterations=100000 --set workload.exchange.tp=1000
[ $took -lt 3000 ] || fail "noncoherent: $took ms until a killed producer was noticed"
finish
