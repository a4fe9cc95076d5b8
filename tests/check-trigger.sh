# SPDX-License-Identifier: Apache-2.0
# Tests ranks: launchers, rejected jobs, and ranks that die in each phase. check-kill.sh kills ranks from outside.
. tests/lib.sh
[ -e "$B/plugins/trigger_gputn.so" ] || skip 'built without libfabric (Debian: libfabric-dev)'
export FI_SOCKETS_PE_WAITTIME=0
small='--samples 2 --set workload.pingpong.rounds=50 --set workload.msgrate.fires=20000 --set workload.msgrate.per=100
 --set workload.jacobi2d.n=40 --set workload.jacobi2d.sweeps=12 --set workload.allreduce.bytes=100KB'
# The result of every rank is checked, not only the printed one. The exit status is the worst of all ranks.
expect 124 'no end after .*waiting for messages' "$G" run -n 2 conf/pingpong.ini --set run.timeout=300ms \
	--set workload.pingpong.rounds=10000000
expect 2 '^gpuloom: error: pingpong: 3 ranks' "$G" run -n 3 conf/pingpong.ini
[ "$(grep -c 'pingpong: 3 ranks' "$tmp/err")" = 1 ] || fail 'three ranks say the same thing thrice'
expect 4 'provider of libfabric that the conf names' "$G" run conf/pingpong.ini --set trigger.provider=nonesuch
expect 2 'no trigger is selected' "$G" run conf/pingpong.ini --set trigger.use=
expect 2 '1 to 1024 ranks' "$G" run -n 0 conf/pingpong.ini
expect 4 'srun --mpi=pmix' env SLURM_STEP_NUM_TASKS=4 "$G" run conf/pingpong.ini
expect 4 'let gpuloom start them with -n 4' env PMI_SIZE=4 "$G" run conf/pingpong.ini
expect 2 'remove -n' env PMIX_RANK=0 PMIX_NAMESPACE=x "$G" run -n 2 conf/pingpong.ini

# A kernel ends when all workers of its device have reached its end, also workers without messages.
for trigger in hdn gds; do
	for kernel in yes no; do
		expect 0 '' "$G" run -n 2 conf/pingpong.ini $small --quiet --set trigger.use=$trigger \
			--set device.cpu.workers=2 \
			--set workload.pingpong.kernel=$kernel --set device.cpu.oversubscribe=yes
	done
done

# The tables are as large as the workload needs: 1,360 arrival words in the first run, 1,120 in the second.
oversubscribed="--samples 1 --quiet --set run.warmup=0 --set device.cpu.oversubscribe=yes"
for trigger in gputn peer; do
	expect 0 '' "$G" run -n 2 conf/replay.ini $oversubscribed --set trigger.use=$trigger \
		--set device.cpu.workers=40 \
		--set workload.replay.job=alexnet --set workload.replay.most=1KiB --set workload.replay.steps=1
done
expect 0 '' "$G" run -n 2 conf/sgd.ini $oversubscribed --set device.cpu.workers=80 --set workload.sgd.layers=6 \
	--set workload.sgd.width=8 \
	--set workload.sgd.steps=1 --set workload.sgd.accuracy=0 --set workload.sgd.algorithm=ring

# A late post that cannot be made is rejected at start, with its own message.
expect 2 'error: trigger_gputn: notify 2, but arrivals = 2; .*set trigger.arrivals = 3 or more' "$G" run -n 2 \
	conf/allreduce.ini $small --set workload.allreduce.order=random \
	--set trigger.arrivals=2
# The exit code of the job is that of the failed rank, not of the ranks that were stopped.
expect 1 'raise tags' "$G" run -n 3 conf/allreduce.ini --samples 1 --quiet --set workload.allreduce.bytes=1000 \
	--set workload.allreduce.order=random --set workload.allreduce.piece=4 --set trigger.tags=16
# A tag is rejected also if its fire comes before its post.
expect 1 'raise tags' "$G" run -n 4 conf/allreduce.ini --samples 1 --quiet --set workload.allreduce.order=fire-first \
	--set trigger.tags=16 --set workload.allreduce.bytes=88987 \
	--set workload.allreduce.piece=1KiB

# One rank dies as by kill -9, in each phase. The job ends within 5 s, and the message names the rank. The start of the job
# takes time, too, and more on a busy machine.
dies="conf/pingpong.ini --set run.workload=$B/tests/plugins/workload_dies.so --samples 1"
begin=$(date +%s%N)
expect 0 verified "$G" run -n 3 $dies
took_since "$begin"
most=$((5000 + 2 * took))
dead=
: >"$tmp/began" # the names of regions have process numbers, also those of other programs
for phase in create post fire wait teardown; do
	for victim in 0 2; do
		trigger=gputn
		[ $phase$victim != fire0 ] && [ $phase$victim != wait2 ] || trigger=peer
		begin=$(date +%s%N)
		"$limit" 100 "$G" run -n 3 $dies --set workload.dies.phase=$phase --set workload.dies.rank=$victim \
			--quiet \
			--set trigger.use=$trigger \
			>"$tmp/out" 2>"$tmp/err" </dev/null
		status=$?
		took_since "$begin"
		[ $status = 1 ] || fail "exit $status after rank $victim died in phase $phase"
		[ $took -lt $most ] || fail "the job took $took ms to end after rank $victim died in phase $phase"
		grep -qE "rank $victim \(pid [0-9]+\) was killed by signal 9" "$tmp/err" ||
			{ fail "no word of rank $victim in phase $phase"; sed 's/^/    /' "$tmp/err"; }
		dead="$dead $(sed -n 's/.*(pid \([0-9]*\)) was killed.*/\1/p' "$tmp/err")"
	done
done

# One rank never answers. Its peer waits for a message, or for room in the FIFO, because the NIC takes no more triggers. With a
# deadline of 1 s the job ends within 5 s. The three jobs run side by side.
silent() { # arguments: THREADS STATE ARGUMENTS...
	threads=$1 doing=$2
	shift 2
	"$G" run -n 2 "$@" --samples 1000000 --quiet --set run.timeout=$(slack)s >/dev/null 2>"$tmp/silent" </dev/null &
	job=$!
	soon 'victim=$(pgrep -P $job | tail -n 1); [ "$(ls "/proc/${victim:-none}/task" 2>/dev/null | wc -l)" -ge "$threads" ]'
	soon 'has_used "$victim" 20 || ! kill -0 $job'
	ended_by STOP "$victim" $job
	[ $status = 124 ] && grep -q "no end after [0-9]* s .*$doing" "$tmp/silent" && [ $took -lt $most ] &&
		! kill -0 "$victim" 2>/dev/null &&
		return
	echo "FAILED: exit $status $took ms after a rank fell silent: $*"
	cat "$tmp/silent"
	exit 1
}
pids=
for what in '3 waiting.for.messages conf/pingpong.ini' '2 waiting.for.messages conf/pingpong.ini --set trigger.use=peer' \
	'3 at.work conf/msgrate.ini --set workload.msgrate.operation=put --set trigger.fifo=2 --set trigger.in_flight=1'; do
	(trap - EXIT; tmp=$(mktemp -d "$tmp/XXXXXX"); silent $what) &
	pids="$pids $!"
done
for pid in $pids; do wait "$pid" || failures=$((failures + 1)); done

# A command whose parent does not clean up leaves nothing in shared memory either.
"$G" run conf/pingpong.ini --set trigger.provider=shm --samples 1000000 --log info >"$tmp/out" 2>"$tmp/err" &
job=$!
soon 'grep -q "provider shm" "$tmp/err"'
kill -9 $job
wait $job
for pid in $dead $job; do
	[ -z "$(find /dev/shm -newer "$tmp/began" \( -name "gpuloom-*-$pid-*" -o -name "$pid:*" \) 2>/dev/null)" ] ||
		fail "process $pid left shared memory behind"
done

# The same tests over mpirun.
if command -v mpirun >/dev/null && [ -e /usr/lib/x86_64-linux-gnu/libpmix.so.2 ]; then
	mpi='mpirun --allow-run-as-root --oversubscribe'
	expect 0 'verified' $mpi -n 4 "$G" run conf/allreduce.ini $small
	[ "$(grep -c verified "$tmp/out")" = 1 ] || fail 'more than one rank prints under mpirun'
	expect 0 'verified' $mpi -n 3 "$G" run conf/jacobi2d.ini $small
	expect 0 'verified' $mpi -n 1 "$G" run conf/pingpong.ini $small
	expect 124 'no end after' $mpi -n 2 "$G" run conf/pingpong.ini --set run.timeout=300ms \
		--set workload.pingpong.rounds=10000000
	# Ranks share memory within one container, and a rank of another container is rejected.
	if unshare -fp --mount-proc true 2>/dev/null; then
		alone="$G run conf/pingpong.ini --set trigger.use=peer"
		expect 4 'rank 1 is on another host than rank 0, or in another container' $mpi -n 1 $alone : \
			-n 1 unshare -fp --mount-proc $alone
	fi
else
	echo 'no mpirun with PMIx here (Debian: openmpi-bin): that part is left out'
fi
finish
