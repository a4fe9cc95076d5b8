# SPDX-License-Identifier: Apache-2.0
# Tests operations that are posted before or after their fires. Work-items, work-groups, kernels or a mix of them fire, also in
# chains that continue without a processor. Jacobi and allreduce have exact results at 2, 4 and 8 ranks, with few cores. Each result is verified
# under each plug-in.
. tests/lib.sh
[ -e "$B/plugins/trigger_gputn.so" ] || skip 'built without libfabric (Debian: libfabric-dev)'
export FI_SOCKETS_PE_WAITTIME=0 # otherwise the provider's thread sleeps for milliseconds
two='--set device.cpu.oversubscribe=yes'
small='--set workload.jacobi2d.n=40 --set workload.jacobi2d.sweeps=12 --set workload.allreduce.algorithm=halving
	--set workload.allreduce.bytes=10KB --set workload.allreduce.least=1KiB --set workload.replay.most=4KiB'
# each SO: tests one plug-in in its own folder. The plug-ins are tested side by side, since a start consists mostly of
# waiting.
each() {
	tmp=$tmp/${1##*/}
	mkdir "$tmp"
	so=$1
	use="--samples 1 --set trigger.use=${so##*/trigger_}" use=${use%.so}
	for order in fire-first random; do
		expect 0 verified "$G" run -n 2 conf/pingpong.ini $use --set workload.pingpong.order=$order \
			--set workload.pingpong.rounds=50
		expect 0 verified "$G" run -n 3 conf/allreduce.ini $use --set workload.allreduce.order=$order \
			--set workload.allreduce.bytes=100KB --set workload.allreduce.piece=4KiB
	done
	status=0 says=verified
	case $so in */trigger_peer.so) status=4 says='no NIC to match sends and receives' ;; esac
	expect $status "$says" "$G" run -n 2 conf/pingpong.ini $use --set workload.pingpong.two_sided=yes \
		--set workload.pingpong.rounds=20
	for job in 'jacobi2d -n 4' 'allreduce -n 3' 'replay -n 3'; do
		name=${job%% *}
		expect $status "$says" "$G" run ${job#* } conf/$name.ini $use --set workload.$name.two_sided=yes \
			--set device.cpu.workers=3 $two $small --set trigger.provider=tcp
	done
	case $so in */trigger_peer.so) status=4 says='an arrival triggers nothing' ;; esac
	expect $status "$says" "$G" run -n 3 conf/allreduce.ini $use --set workload.allreduce.chain=yes \
		--set workload.allreduce.bytes=24KiB --set workload.allreduce.piece=1KiB
	expect 0 verified "$G" run -n 4 conf/allreduce.ini $use --set device.cpu.workers=2 $two \
		--set workload.allreduce.bytes=100KB --set workload.allreduce.algorithm=ring
	# The number of ranks is no power of two. Other runs have three groups or late posts.
	expect 0 verified "$G" run -n 5 conf/allreduce.ini $use --set workload.allreduce.algorithm=halving $two \
		--set device.cpu.workers=2 --set workload.allreduce.bytes=12345 --set workload.allreduce.piece=100
	expect 0 verified "$G" run -n 6 conf/allreduce.ini $use --set workload.allreduce.algorithm=levels --samples 3 \
		--set workload.allreduce.group=2 --set workload.allreduce.bytes=9999 --set workload.allreduce.piece=1000
	# Several workers share a message, and the last message of a rank has fewer workers than the others.
	for how in ring halving 'levels --set workload.allreduce.group=2'; do
		expect 0 verified "$G" run -n 6 conf/allreduce.ini $use --set workload.allreduce.algorithm=$how $two \
			--set device.cpu.workers=5 --set workload.allreduce.bytes=3000 --set workload.allreduce.least=400
	done
	expect 0 verified "$G" run -n 3 conf/sgd.ini $use --set device.cpu.workers=3 $two --set workload.sgd.steps=8 \
		--set workload.sgd.accuracy=0 --set workload.sgd.algorithm=halving
	expect 0 verified "$G" run -n 3 conf/allreduce.ini $use --set workload.allreduce.algorithm=halving \
		--set workload.allreduce.order=random --set workload.allreduce.bytes=4
	for by in item group kernel mixed; do
		expect 0 verified "$G" run -n 2 conf/msgrate.ini $use --set workload.msgrate.by=$by \
			--set workload.msgrate.operation=put --set workload.msgrate.fires=400 \
			--set workload.msgrate.per=4 \
			--set device.cpu.workers=2 --set device.cpu.lanes=2 $two
	done
	for n in 2 4 8; do
		expect 0 verified "$G" run -n $n conf/allreduce.ini $use --set workload.allreduce.bytes=100KB
		expect 0 verified "$G" run -n $n conf/jacobi2d.ini $use --set workload.jacobi2d.n=40 \
			--set workload.jacobi2d.sweeps=12
	done
	# Training: the loss equals that of a sequential computation, all ranks have the same weights, and the loss falls.
	expect 0 verified "$G" run -n 2 conf/sgd.ini $use --set workload.sgd.steps=40 --set workload.sgd.accuracy=80%
	expect 0 verified "$G" run -n 4 conf/sgd.ini $use --set workload.sgd.steps=40 --set workload.sgd.accuracy=80% \
		--set workload.sgd.algorithm=levels --set workload.sgd.group=2
	expect 0 verified "$G" run conf/sgd.ini $use --set device.cpu.workers=2 --set device.cpu.lanes=2 $two \
		--set workload.sgd.layers=1 --set workload.sgd.steps=8 \
		--set workload.sgd.accuracy=0 \
		--set workload.sgd.overlap=no
	expect 0 verified "$G" run -n 3 conf/replay.ini $use --set device.cpu.workers=2 $two \
		--set workload.replay.most=4KiB \
		--set workload.replay.algorithm=halving \
		--set workload.replay.job=mnist_conv --set workload.replay.latency=1us
	case $so in # triggers whose fires carry an argument
	*_gputn.so | *_proxy.so | *_peer.so)
		expect 0 verified "$G" run -n 3 conf/scatter.ini $use --set device.cpu.workers=2 \
			--set device.cpu.lanes=2 $two \
			--set workload.scatter.records=500 --set workload.scatter.per=7 --set workload.scatter.bins=5 ;;
	*) expect 4 argument "$G" run conf/scatter.ini $use ;;
	esac
	expect 0 verified "$G" run -n 1 conf/pingpong.ini $use --set device.cpu.isolation=process \
		--set workload.pingpong.rounds=50
	for bytes in 8 1000 10000; do
		expect 0 verified "$G" run -n 2 conf/pingpong.ini $use --set workload.pingpong.counted=yes $two \
			--set device.cpu.workers=2 --set device.cpu.lanes=2 --set workload.pingpong.rounds=20 \
			--set workload.pingpong.bytes=$bytes
	done
	expect 0 verified "$G" run -n 1 conf/pingpong.ini $use --set workload.pingpong.kernel=yes \
		--set device.cpu.launch_cost=5us --set workload.pingpong.rounds=50
	[ "$failures" -eq 0 ]
}
pids=
for so in "$B"/plugins/trigger_*.so; do
	case $CHECK:$so in all:* | *_gputn.so | *_peer.so) ;; *) continue ;; esac # check-trigger tests all providers
	(trap - EXIT; each "$so") &
	pids="$pids $!"
done
for pid in $pids; do wait "$pid" || failures=$((failures + 1)); done
expect 2 'arrivals fire most' "$G" run -n 2 conf/allreduce.ini --set workload.allreduce.chain=yes \
	--set workload.allreduce.order=fire-first
[ "$CHECK" = all ] && providers='tcp net sockets shm' || providers='tcp shm'
for provider in $providers; do
	expect 0 verified "$G" run -n 2 conf/jacobi2d.ini --samples 1 --set workload.jacobi2d.n=40 \
		--set workload.jacobi2d.sweeps=12 --set trigger.provider=$provider
	expect 0 verified "$G" run -n 2 conf/allreduce.ini --samples 1 --set workload.allreduce.bytes=100KB \
		--set trigger.use=gputn --set trigger.provider=$provider --set trigger.wait=nap
	# These puts do not notify their target, so only the end of the sample shows their completion.
	expect 0 verified "$G" run -n 3 conf/msgrate.ini --samples 10 --set trigger.use=proxy \
		--set trigger.provider=$provider \
		--set workload.msgrate.operation=put --set workload.msgrate.fires=300 --set workload.msgrate.per=20 \
		--set trigger.proxy.in_flight=2 --set device.cpu.workers=6 $two
done
expect 4 'provider shm loses messages' "$G" run -n 2 conf/allreduce.ini --set trigger.provider=shm \
	--set workload.allreduce.two_sided=yes
# A vector of 4 KiB has one message for each step of the ring, not one for each worker.
expect 0 verified "$G" run -n 2 conf/allreduce.ini --samples 1 --set workload.allreduce.bytes=4KiB \
	--set workload.allreduce.algorithm=ring --set device.cpu.workers=32 $two --verbose
grep -q 'trigger.operations *2 ' "$tmp/out" || { fail 'messages of 32 workers'; cat "$tmp/out"; }
# Allreduce without posts: all lanes of all workers take part, and all ranks get the same bits. Rounds reuse the buffers.
for way in oneshot twoshot pull; do
	for n in 2 3; do
		expect 0 verified "$G" run -n $n conf/allreduce.ini --samples 2 --set trigger.use=peer \
			--set workload.allreduce.algorithm=$way --set workload.allreduce.rounds=70 \
			--set workload.allreduce.bytes=20000 \
			--set device.cpu.workers=2 --set device.cpu.lanes=2 --set device.cpu.oversubscribe=yes
	done
	expect 0 verified "$G" run -n 2 conf/allreduce.ini --samples 2 --set trigger.use=peer \
		--set device.cpu.isolation=process \
		--set workload.allreduce.algorithm=$way --set workload.allreduce.bytes=1000
	expect 0 verified "$G" run -n 2 conf/sgd.ini --samples 2 --set trigger.use=peer \
		--set device.cpu.workers=2 $two \
		--set device.cpu.lanes=2 --set workload.sgd.steps=8 --set workload.sgd.accuracy=0 \
		--set workload.sgd.algorithm=$way --set run.devices='cpu:0 cpu:1'
	expect 4 'trigger whose workers store into other ranks' "$G" run -n 2 conf/allreduce.ini \
		--set workload.allreduce.algorithm=$way
done
# In step 22 the sum of a neuron is 2e-8, which float32 rounds to the other side of 0.
expect 0 verified "$G" run -n 8 conf/sgd.ini --samples 1 --set workload.sgd.steps=30 --set workload.sgd.accuracy=0
# After one step at this rate the probability of some right classes is 0 in float32.
expect 0 verified "$G" run -n 2 conf/sgd.ini --samples 1 --set workload.sgd.rate=10 --set workload.sgd.steps=3 \
	--set workload.sgd.accuracy=0
expect 0 verified "$G" run -n 2 conf/allreduce.ini --samples 2 --set trigger.use=peer --set workload.allreduce.bytes=100
expect 0 verified "$G" run -n 2 conf/allreduce.ini --samples 2 --set trigger.use=peer \
	--set workload.allreduce.algorithm=ring \
	--set workload.allreduce.bytes=100KB
expect 2 'group must be more than 1 and divide the 4 ranks' "$G" run -n 4 conf/allreduce.ini \
	--set workload.allreduce.algorithm=levels \
	--set workload.allreduce.group=3
expect 2 'would come in any order' "$G" run -n 4 conf/allreduce.ini --set workload.allreduce.algorithm=halving \
	--set workload.allreduce.chain=yes
expect 2 'posts are made once in a sample' "$G" run -n 2 conf/allreduce.ini --set workload.allreduce.algorithm=ring \
	--set workload.allreduce.rounds=2
expect 2 'oneshot, twoshot and pull post nothing' "$G" run -n 2 conf/allreduce.ini \
	--set workload.allreduce.algorithm=twoshot \
	--set workload.allreduce.order=random
finish
