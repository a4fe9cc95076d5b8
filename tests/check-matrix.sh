# SPDX-License-Identifier: Apache-2.0
# Transports, schedulers, isolation and workloads run together and verify, with 1, 4 and, for some workloads, 32 lanes.
. tests/lib.sh
# Under ThreadSanitizer queues are small, so that steals, releases and overflows are frequent.
queues=
case $B in *thread*) queues='--set scheduler.mgws.local_queue=2 --set scheduler.mgws.public_queue=2' ;; esac
mkdir "$tmp/docs"
for i in $(seq 40); do
	seq "$i" $((i * 50)) | sed 's/7/zwischen den Zeilen /' >"$tmp/docs/$i.txt"
	[ $((i % 3)) -ne 0 ] || gzip "$tmp/docs/$i.txt"
done
# A job runs with half of the combinations, which contain each triple of choices. The next job runs with the other half.
half='host:static:thread:1 host:static:process:4 host:mgws:thread:4 host:mgws:process:1
p2p:static:thread:4 p2p:static:process:1 p2p:mgws:thread:1 p2p:mgws:process:4'
other='host:static:thread:4 host:static:process:1 host:mgws:thread:1 host:mgws:process:4
p2p:static:thread:1 p2p:static:process:4 p2p:mgws:thread:4 p2p:mgws:process:1'
for job in 'memset workload.memset.tasks=20000' "contains workload.contains.path=$tmp/docs" 'fib workload.fib.n=16' \
	'uts workload.uts.tree=custom'; do
	set -- $job
	for how in $half; do
		IFS=: read -r transport scheduler isolation lanes <<-END
			$how
		END
		expect 0 'verified' "$G" run "conf/$1.ini" --samples 2 --set "$2" \
			--set workload.contains.word=zwischen --set 'workload.contains.glob=*' \
			--set transport.use="$transport" --set scheduler.use="$scheduler" \
			--set device.cpu.isolation="$isolation" --set device.cpu.lanes="$lanes" $queues
	done
	next=$half half=$other other=$next
done
for job in 'memset workload.memset.tasks=20000' "contains workload.contains.path=$tmp/docs" 'fib workload.fib.n=16' \
	'uts workload.uts.tree=custom'; do
	set -- $job
	expect 0 'verified' "$G" run "conf/$1.ini" --samples 2 --set "$2" --set workload.contains.word=zwischen \
		--set 'workload.contains.glob=*' --set scheduler.use=mgws --set scheduler.granularity=lane \
		--set device.cpu.lanes=4 $queues
done
# A worker has as many lanes as a warp. All lanes run one task together, or each lane runs one.
for job in 'memset workload.memset.tasks=2000' "contains workload.contains.path=$tmp/docs" 'fib workload.fib.n=12' \
	'uts workload.uts.depth=4'; do
	set -- $job
	for how in 'static scheduler.static.overflow_list=65536' 'mgws scheduler.granularity=worker' \
		'mgws scheduler.granularity=lane'; do
		expect 0 'verified' "$G" run "conf/$1.ini" --samples 1 --set "$2" --set workload.uts.tree=custom \
			--set workload.contains.word=zwischen --set 'workload.contains.glob=*' --set transport.use=p2p \
			--set scheduler.use=${how% *} --set ${how#* } --set device.cpu.lanes=32 $queues
	done
done
# With non-coherent devices, the larger device gets the root, in any order of devices. An initial set of one task uses no mailbox.
noncoherent='--set transport.use=p2p --set transport.p2p.atomics=no --set termination.use=tree'
for sizes in '3 1 [012]' '1 3 [123]'; do
	set -- $sizes
	expect 0 "^  $3  *1  *1 " "$G" run conf/fib.ini --workers --samples 1 --set workload.fib.n=1 \
		--set 'run.devices=cpu:0 cpu:1' \
		--set device.cpu.oversubscribe=yes --set device.cpu.0.workers="$1" \
		--set device.cpu.1.workers="$2" $noncoherent
done
# A join's sum may run on another device than its frame's device. Non-coherent devices cannot do this.
expect 4 'these devices cannot access each other.s frames' "$G" run conf/fib.ini --set workload.fib.mode=join \
	--set 'run.devices=cpu:0 cpu:1' $noncoherent
finish
