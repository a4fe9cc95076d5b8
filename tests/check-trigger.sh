# SPDX-License-Identifier: Apache-2.0
# Trigger plug-ins through the command: every workload with every plug-in verifies over 1 to 4 ranks and
# every provider of this machine; ranks that are killed; launchers.
. tests/lib.sh
[ -e "$B/plugins/trigger_gputn.so" ] || {
	echo 'skipped: built without libfabric (Debian: libfabric-dev)'
	exit 77
}
export FI_SOCKETS_PE_WAITTIME=0
small='--samples 2 --set workload.pingpong.rounds=50 --set workload.msgrate.fires=20000 --set workload.msgrate.per=100
 --set workload.jacobi2d.n=40 --set workload.jacobi2d.sweeps=12 --set workload.allreduce.bytes=100KB'
plugins=
for so in "$B"/plugins/trigger_*.so; do
	name=${so##*/trigger_}
	plugins="$plugins ${name%.so}"
done

# run RANKS WORKLOAD TRIGGER [more]
run() {
	n=$1 job=$2 trigger=$3
	shift 3
	expect 0 'verified' "$G" run -n "$n" "conf/$job.ini" $small --set "trigger.use=$trigger" "$@"
}
for trigger in $plugins; do
	for job in jacobi2d allreduce; do
		run 1 $job $trigger
		run 2 $job $trigger
		run 3 $job $trigger
		run 4 $job $trigger --set device.cpu.workers=2 --set device.cpu.oversubscribe=yes
	done
	run 2 pingpong $trigger
	run 1 pingpong $trigger --set device.cpu.lanes=2 --set device.cpu.oversubscribe=yes
	run 2 msgrate $trigger --set workload.msgrate.operation=put
	run 1 pingpong $trigger --set device.cpu.isolation=process
	run 1 pingpong $trigger --set workload.pingpong.kernel=yes --set device.cpu.launch_cost=5us
done
for provider in tcp net sockets shm; do
	run 2 jacobi2d gputn --set trigger.gputn.provider=$provider
	run 2 allreduce counter --set trigger.counter.provider=$provider --set trigger.counter.wait=sleep
done

# Every rank's result is looked at, not only the printed one's; the exit status is the worst.
expect 124 'no end after' "$G" run -n 2 conf/pingpong.ini --set run.timeout=300ms --set workload.pingpong.rounds=10000000
expect 2 '^gpuloom: error: pingpong: 3 ranks' "$G" run -n 3 conf/pingpong.ini
[ "$(grep -c 'pingpong: 3 ranks' "$tmp/err")" = 1 ] || fail 'three ranks say the same thing thrice'
expect 4 'provider of libfabric that the conf names' "$G" run conf/pingpong.ini --set trigger.gputn.provider=nonesuch
expect 2 'no trigger is selected' "$G" run conf/pingpong.ini --set trigger.use=
expect 2 '1 to 1024 ranks' "$G" run -n 0 conf/pingpong.ini
expect 4 'srun --mpi=pmix' env SLURM_STEP_NUM_TASKS=4 "$G" run conf/pingpong.ini
expect 4 'let gpuloom start them with -n 4' env PMI_SIZE=4 "$G" run conf/pingpong.ini
expect 2 'drop one of the two' env PMIX_RANK=0 PMIX_NAMESPACE=x "$G" run -n 2 conf/pingpong.ini
expect 2 'set GPULOOM_RANK' env GPULOOM_RANKS=2 "$G" run conf/pingpong.ini

# kill -9 of one rank in each phase: the job ends within 5 s, and the message names the rank.
for when in 0.05 0.15 0.4 1; do
	for victim in 0 1 2; do
		"$G" run -n 3 conf/jacobi2d.ini --set workload.jacobi2d.sweeps=100000000 --quiet >"$tmp/out" 2>"$tmp/err" &
		job=$!
		sleep $when
		pid=
		for i in $(seq 100); do # while the conf is checked there are no ranks yet
			pid=$(pgrep -P $job -x gpuloom | sed -n "$((victim + 1))p")
			[ "$(pgrep -c -P $job -x gpuloom)" = 3 ] && [ -n "$pid" ] && break
			sleep 0.02
		done
		[ -n "$pid" ] || { fail "no rank $victim to kill"; kill $job; continue; }
		kill -9 "$pid"
		begin=$(date +%s%N)
		wait $job
		status=$?
		took=$((($(date +%s%N) - begin) / 1000000))
		[ $status = 1 ] || fail "exit $status after rank $victim was killed after $when s"
		[ $took -lt 5000 ] || fail "the job took $took ms to end after rank $victim was killed"
		grep -q "rank $victim (pid $pid) was killed by signal 9" "$tmp/err" ||
			{ fail "no word of rank $victim"; sed 's/^/    /' "$tmp/err"; }
	done
done

# The same over mpirun.
if command -v mpirun >/dev/null && [ -e /usr/lib/x86_64-linux-gnu/libpmix.so.2 ]; then
	mpi='mpirun --allow-run-as-root --oversubscribe'
	expect 0 'verified' $mpi -n 4 "$G" run conf/allreduce.ini $small
	[ "$(grep -c verified "$tmp/out")" = 1 ] || fail 'more than one rank prints under mpirun'
	expect 0 'verified' $mpi -n 3 "$G" run conf/jacobi2d.ini $small
	expect 0 'verified' $mpi -n 1 "$G" run conf/pingpong.ini $small
	expect 124 'no end after' $mpi -n 2 "$G" run conf/pingpong.ini --set run.timeout=300ms --set workload.pingpong.rounds=10000000
else
	echo 'no mpirun with PMIx here (Debian: openmpi-bin): that part is left out'
fi
finish
