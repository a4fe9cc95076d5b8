# SPDX-License-Identifier: Apache-2.0
# Every transport x scheduler x isolation x workload runs and verifies, with 1 and 4 lanes.
. tests/lib.sh
# Under ThreadSanitizer small queues: steals, releases and overflows all the time.
queues=
case $B in *thread*) queues='--set scheduler.mgws.local_queue=2 --set scheduler.mgws.public_queue=2' ;; esac
mkdir "$tmp/docs"
for i in $(seq 40); do
	seq "$i" $((i * 50)) | sed 's/7/zwischen den Zeilen /' >"$tmp/docs/$i.txt"
	[ $((i % 3)) -ne 0 ] || gzip "$tmp/docs/$i.txt"
done
for transport in host p2p; do
	for scheduler in static mgws; do
		for isolation in thread process; do
			for lanes in 1 4; do
				for job in 'memset workload.memset.tasks=20000' \
					"contains workload.contains.path=$tmp/docs" \
					'fib workload.fib.n=16' 'uts workload.uts.tree=custom'; do
					set -- $job
					expect 0 'verified' "$G" run "conf/$1.ini" --samples 2 --set "$2" \
						--set workload.contains.word=zwischen --set 'workload.contains.glob=*' \
						--set transport.use=$transport --set scheduler.use=$scheduler \
						--set device.cpu.isolation=$isolation --set device.cpu.lanes=$lanes $queues
				done
			done
		done
	done
done
# Lanes that run a task each.
for job in 'memset workload.memset.tasks=20000' "contains workload.contains.path=$tmp/docs" 'fib workload.fib.n=16' \
	'uts workload.uts.tree=custom'; do
	set -- $job
	expect 0 'verified' "$G" run "conf/$1.ini" --samples 2 --set "$2" --set workload.contains.word=zwischen \
		--set 'workload.contains.glob=*' --set scheduler.use=mgws --set scheduler.mgws.grain=lane \
		--set device.cpu.lanes=4 $queues
done
finish
