# SPDX-License-Identifier: Apache-2.0
# Ranks share one set of tasks, in memory of one host or through libfabric. The tests compare counts over 2 to 8 ranks, reject
# jobs that cannot be shared, and kill a rank.
. tests/lib.sh
small='--set workload.uts.tree=custom --set workload.uts.type=binomial --set workload.uts.b0=500 --set workload.uts.q=0.12'
shared='--set run.tasks=shared --set termination.use=hcounter --set trigger.use=peer --set run.devices=cpu:0'
own='--set device.cpu.workers=1'
need python3
export GPULOOM_SAYS="$tmp/says"
count() { python3 -c 'import json, sys; print(int(json.load(open(sys.argv[1]))["metrics"][sys.argv[2]]["median"]))' \
	"$tmp/out.json" "$1"; }

# Every sample is verified: each node, call, document and task is counted once, whichever rank ran it.
for n in 2 3 8; do
	for seed in 1 2; do
		more="--set run.seed=$seed --samples 3 --quiet"
		expect 0 '' "$G" run -n $n conf/uts-ranks.ini $small --set workload.uts.seed=$seed $more
		expect 0 '' "$G" run -n $n conf/fib.ini $shared --set workload.fib.n=19 \
			--set scheduler.wait=yield $own $more
		expect 0 '' "$G" run -n $n conf/synthetic.ini $shared --set workload.synthetic.tasks=300 \
			--set workload.synthetic.length=1000 $own $more
	done
done
expect 0 '' "$G" run -n 2 conf/uts-ranks.ini --samples 1 --set workload.uts.create=eager $small \
	--set device.cpu.isolation=process --quiet
expect 0 '' "$G" run -n 2 conf/uts-ranks.ini --set run.devices='cpu:0 cpu:1' --set device.cpu.oversubscribe=yes \
	--set device.cpu.workers=2 $small --quiet
expect 0 '' "$G" run -n 3 conf/uts-ranks.ini --set transport.use=p2p --set scheduler.wait=spin \
	--set device.cpu.wait=yield $small --quiet
# Ranks access each other's memory by RMA, under both detectors. Atomics are those of the provider, or of the other rank's NIC.
asks='--set trigger.use=gputn --set trigger.wait=nap'
if [ -e "$B/plugins/trigger_gputn.so" ]; then
	for way in '2 tcp hcounter' '5 tcp tree' '3 net tree' '4 net hcounter' '2 sockets hcounter'; do
		set -- $way
		for more in "conf/uts-ranks.ini $small" "conf/synthetic.ini $shared $own --set workload.synthetic.tasks=300 --set workload.synthetic.length=1000"; do
			expect 0 '' "$G" run -n $1 $more $asks --set trigger.provider=$2 --set termination.use=$3 \
				--samples 3 --quiet
		done
	done
	expect 0 '' "$G" run -n 2 conf/uts-ranks.ini $small $asks --set trigger.provider=tcp \
		--set device.cpu.workers=2 \
		--set device.cpu.oversubscribe=yes --set device.cpu.isolation=process --set device.cpu.lanes=2 \
		--samples 1 --quiet
	expect 4 'provider = auto or tcp in .trigger.,' "$G" run -n 2 conf/uts-ranks.ini $asks --set trigger.provider=shm
	expect 0 '' "$G" run -n 2 conf/uts-ranks.ini $small $asks --samples 1 --quiet
fi
mkdir "$tmp/texts"
for i in $(seq 60); do
	seq $((i * i * 9)) >"$tmp/texts/$i"
done
for n in 2 4; do
	expect 0 '' "$G" run -n $n conf/contains.ini $shared --set workload.contains.path="$tmp/texts" \
		--set 'workload.contains.glob=*' --set workload.contains.word=5000 $own --json "$tmp/out.json" --quiet
	[ "$(count matches)" = "$(grep -lw 5000 "$tmp"/texts/* | wc -l)" ] ||
		fail "$n ranks found $(count matches) texts with the word"
done

expect 0 '' "$G" run -n 3 conf/uts-ranks.ini --samples 1 --json "$tmp/out.json" --quiet
[ "$(count nodes)" = 4130071 ] || fail "3 ranks counted $(count nodes) nodes of T1"
[ "$(python3 -c 'import json, sys
workers = json.load(open(sys.argv[1]))["workers"]
print([w["rank"] for w in workers], sum(w["executed"][0] for w in workers))' "$tmp/out.json")" = \
	"[0, 1, 2] $(count executed)" ] ||
	fail 'the workers of three ranks are not all in the result'
[ "$(count remote_stolen)" -gt 0 ] || fail 'no task went from rank to rank'

# Each rank has some sequences of workload_ragged, of about as many tokens, or as many sequences. All together are one batch.
for n in 1 2 3; do
	for redraw in run sample; do
		expect 0 '' "$G" run -n $n conf/ragged.ini --set run.devices=cpu:0 --set trigger.use=peer --set workload.ragged.sequences=17 \
			--set workload.ragged.redraw=$redraw $own --samples 2 --set run.warmup=0 --json "$tmp/out.json" --quiet
	done
	[ $n != 1 ] || all=$(count tokens)
	expect 0 '' "$G" run -n $n conf/ragged.ini --set run.devices=cpu:0 --set trigger.use=peer --set workload.ragged.sequences=17 \
		$own --samples 1 --set run.warmup=0 --json "$tmp/out.json" --quiet
	[ "$(count tokens)" -le $((all / n + all / 20)) ] || fail "one of $n ranks has $(count tokens) of $all tokens"
done
expect 2 '2 sequences are too few for 3 ranks' "$G" run -n 3 conf/ragged.ini --set trigger.use=peer --set workload.ragged.sequences=2

# A job that cannot be shared is rejected with one message for all ranks.
refused() { # arguments: PATTERN ARGUMENTS
	pattern=$1
	shift
	expect 4 "$pattern" "$G" run -n 2 "$@"
	[ "$(grep -c error: "$tmp/err")" = 1 ] || { fail "not one sentence: $pattern"; cat "$tmp/err"; }
}
refused 'tasks of workload_memset are bound' conf/memset.ini $shared $own
refused 'no trigger is selected that' conf/uts-ranks.ini --set trigger.use=
refused 'term_counter serves the workers of one rank' conf/uts-ranks.ini --set termination.use=counter
refused 'sched_static serves the workers of one rank' conf/uts-ranks.ini --set scheduler.use=static
refused 'transfer = id: other ranks' conf/uts-ranks.ini --set scheduler.mgws.transfer=id
refused 'owners = 2: other ranks' conf/uts-ranks.ini --set scheduler.mgws.owners=2
refused 'mode = join: the frames of calls' conf/fib.ini $shared $own --set workload.fib.mode=join
# With one rank or with tasks = own, these requirements do not apply.
expect 0 '' "$G" run conf/uts.ini --set run.tasks=shared $small --quiet
expect 0 '' "$G" run -n 2 conf/uts-ranks.ini --set run.tasks=own --set scheduler.use=static \
	--set termination.use=counter $small --quiet

# The detector is called in every fourth search.
[ ! -e "$B/plugins/trigger_gputn.so" ] || expect 0 '' "$G" run -n 4 conf/fib.ini $shared $own --samples 1 --quiet \
	--set run.warmup=0 --set run.timeout=60s --set device.cpu.workers=2 --set device.cpu.oversubscribe=yes \
	--set scheduler.use=mgws --set scheduler.mgws.public_queue=0 --set termination.use=tree \
	--set trigger.use=gputn --set workload.fib.n=8

# There must be file descriptors for all ranks.
expect 4 '100 ranks need 140 open files, and this process may have 64: raise the limit' sh -c \
	'ulimit -n 64 && exec "$@"' few "$G" run -n 100 conf/uts-ranks.ini $small --quiet

# For variables that a launcher's shell has left, each message names a valid remedy.
expect 2 'unset PMIX_RANK PMIX_NAMESPACE' env PMIX_RANK=0 PMIX_NAMESPACE=x "$G" run -n 2 conf/uts-ranks.ini $small
env PMIX_RANK=0 PMIX_NAMESPACE=x "$G" run conf/uts-ranks.ini $small >"$tmp/out" 2>"$tmp/err" &&
	fail 'a launcher that is not there'
grep -q 'unset PMIX_RANK PMIX_NAMESPACE\|libpmix\|pmix.h' "$tmp/err" ||
	{ fail 'PMIX_RANK without a launcher'; cat "$tmp/err"; }
# Some commands refuse to run when a launcher starts several of them.
for of in SLURM_STEP_NUM_TASKS=4 PMI_SIZE=2 OMPI_COMM_WORLD_SIZE=3; do
	expect 2 "compare: .*${of%=*}.*start it once" env $of "$G" compare conf/uts.ini --vary scheduler.use=mgws,static
	expect 2 "sweep: .*${of%=*}.*start it once; or give each --shard" env $of "$G" sweep conf/uts.ini \
		--vary scheduler.use=mgws,static
done
expect 0 '' env SLURM_STEP_NUM_TASKS=4 "$G" sweep conf/uts.ini $small --samples 1 --quiet --vary scheduler.use=mgws,static \
	--shard 2/2 -o "$tmp/shard.jsonl"
expect 0 '' env SLURM_STEP_NUM_TASKS=1 "$G" sweep conf/uts.ini $small --samples 1 --quiet \
	--vary scheduler.use=mgws,static -o "$tmp/one.jsonl"

# A sandbox that denies system calls: ranks run without prctl(), and say once if they cannot start a thread.
deny="$B/tests/deny EPERM"
if $deny prctl true; then
	expect 0 '' $deny prctl "$G" run -n 2 conf/uts-ranks.ini $small --samples 1 --quiet
	expect 4 'a rank cannot start a thread: Operation not permitted' $deny clone3 "$G" run -n 8 \
		conf/uts-ranks.ini $small --quiet
	[ "$(wc -l <"$tmp/err")" = 1 ] || { fail 'eight ranks that cannot start a thread: not one line'; cat "$tmp/err"; }
	expect 2 'cannot be probed: .* may not call waitid' $deny waitid "$G" run conf/uts.ini
	! grep -q author "$tmp/err" || fail 'a sandbox is blamed on a plug-in'
else
	echo 'no seccomp or compiler here: that part is left out'
fi

# A rank that is stopped does not outlive the hub, and each rank says why it ends.
at_small() { "$G" run "$@" conf/uts-ranks.ini $small --quiet --samples 1000000 >/dev/null 2>"$tmp/err" & }
at_small -n 3
hub=$!
soon 'at_work $hub 3' || fail 'no ranks'
ranks=$(pgrep -P $hub)
kill -STOP $(echo "$ranks" | sed -n 2p)
kill -KILL $hub
wait $hub 2>/dev/null
for rank in $ranks; do
	soon "! kill -0 $rank 2>/dev/null || grep -q '^State:.Z' /proc/$rank/status" ||
		{ fail "rank $rank outlives the hub"; kill -KILL $rank; }
done
for rank in 0 1 2; do
	grep -q "rank $rank ends: the launcher of the job has ended" "$tmp/err" ||
		{ fail "rank $rank ends without a word"; cat "$tmp/err"; }
done
# A stopped rank does not delay the end of a job after a second signal.
at_small -n 3
hub=$!
soon 'at_work $hub 3' || fail 'no ranks'
kill -STOP $(pgrep -P $hub | sed -n 2p)
kill -TERM $hub
sleep 0.1
kill -TERM $hub
soon "! kill -0 $hub 2>/dev/null || grep -q '^State:.Z' /proc/$hub/status" ||
	{ fail 'two signals do not end a job with a stopped rank'; kill -KILL $hub; }
wait $hub
[ $? = 130 ] || fail "a job that was stopped ends with $?"

# A process outside the job guesses keys of memory that ranks have registered with libfabric.
listening() { # arguments: PROCESS...; prints the ports of TCP on which they listen
	for process; do
		ls -l "/proc/$process/fd" 2>/dev/null | sed -n 's/.*socket:\[\([0-9]*\)\]$/\1/p' >"$tmp/sockets"
		awk 'NR == FNR { mine[$1] = 1; next } $4 == "0A" && ($10 in mine) { sub(".*:", "", $2); print $2 }' "$tmp/sockets" \
			"/proc/$process/net/tcp"
	done
}
if [ -e "$B/plugins/trigger_gputn.so" ] &&
	${CC:-cc} -O1 -Wall -Werror tests/stranger_rma.c -lfabric -o "$tmp/stranger" 2>/dev/null; then
	"$G" run -n 2 conf/uts-ranks.ini $small --samples 1000000 --quiet $asks --set trigger.provider=tcp >/dev/null 2>&1 &
	job=$!
	soon 'ports=$(listening $(pgrep -P $job)); [ "$(echo "$ports" | wc -l)" -ge 2 ] && at_work $job 2' || fail 'no endpoints'
	for port in $ports; do
		expect 0 '' "$tmp/stranger" $((0x$port)) 0x100 1
		[ ! -s "$tmp/out" ] || fail "a key was guessed: $(cat "$tmp/out")"
	done
	kill -TERM $job
	wait $job
	[ $? = 130 ] || fail 'a job beside a foreign process'
fi

# A rank is killed in mid-search. An error names it within 5 s, and nothing is left behind. check-kills kills at random
# moments.
for victim in 0 1 2; do
	"$G" run -n 3 conf/uts-ranks.ini --samples 100000 --set \
		workload.uts.tree=T1 >"$tmp/out" 2>"$tmp/err" </dev/null &
	job=$!
	soon 'at_work $job 3'
	pid=$(pgrep -P $job | sed -n "$((victim + 1))p")
	ended_by KILL "$pid" $job
	[ $status = 1 ] && grep -qE "rank $victim \(pid $pid\) was killed by signal 9" "$tmp/err" ||
		{ fail "exit $status after rank $victim was killed"; cat "$tmp/err"; }
	[ $took -lt 5000 ] || fail "the job took $took ms to end after rank $victim was killed"
	grep -q verified "$tmp/out" && ! grep -q '^  status: ' "$tmp/out" &&
		fail "a result although rank $victim was killed"
done

# A killed rank is named even if another rank has failed before.
"$G" run -n 3 conf/uts-ranks.ini --samples 100000 --set workload.uts.tree=T1 >"$tmp/out" 2>"$tmp/err" </dev/null &
job=$!
soon 'at_work $job 3'
pids=$(pgrep -P $job | sed 1d)
kill -STOP $job # the launcher then detects both deaths at once
kill -KILL $pids
kill -CONT $job
wait $job
for pid in $pids; do
	grep -qE "rank [12] \(pid $pid\) was killed by signal 9" "$tmp/err" ||
		{ fail "of two ranks that were killed one is not named"; cat "$tmp/err"; }
done

# The same tests over mpirun. Ranks with other options, tasks, plug-ins or samples are rejected.
if command -v mpirun >/dev/null && [ -e /usr/lib/x86_64-linux-gnu/libpmix.so.2 ]; then
	mpi='mpirun --allow-run-as-root --oversubscribe --bind-to none'
	expect 0 verified $mpi -n 2 "$G" run conf/uts-ranks.ini $small
	other() { # arguments: STATUS PATTERN ARGUMENTS OF RANK 1
		status=$1 pattern=$2
		shift 2
		expect "$status" "$pattern" $mpi -n 1 "$G" run conf/uts-ranks.ini $small --samples 1 : -n 1 "$G" run "$@"
	}
	other 2 'has other options than rank' conf/uts-ranks.ini $small --set scheduler.mgws.public_queue=32
	other 2 'initial tasks of rank 1 are not those of rank 0' conf/uts-ranks.ini $small --set workload.uts.seed=77
	expect 2 'rank 1 has selected other plug-ins than rank 0: start all ranks with the same conf' $mpi \
		-n 1 "$G" run conf/pingpong.ini : -n 1 "$G" run conf/allreduce.ini
	other 1 'rank 0 has ended before rank 1: start all ranks with the same conf and --samples' conf/uts-ranks.ini $small --samples 9
	# The same if rank 0 has ended long before rank 1 asks for it: rank 1 has little of one core.
	taskset -c 0 sh -c 'while :; do :; done' &
	burner=$!
	for i in 1 2 3; do
		expect 1 'rank 0 has ended before rank 1' $mpi -n 1 "$G" run conf/uts-ranks.ini $small --samples 1 : \
			-n 1 taskset -c 0 nice -n 10 "$G" run conf/uts-ranks.ini $small --samples 9
	done
	kill $burner
	# If the launcher is killed, its ranks say so, and end.
	TMPDIR="$tmp" $mpi -n 2 sh -c 'exec "$0" "$@" 2>"$GPULOOM_SAYS.$PMIX_RANK"' "$G" run conf/uts-ranks.ini --samples 100000 \
		>"$tmp/out" 2>&1 &
	job=$!
	soon 'at_work $job 2' || fail 'no ranks under mpirun'
	ranks=$(pgrep -P $job)
	kill -KILL $job
	for rank in $ranks; do
		soon "! kill -0 $rank 2>/dev/null" || { fail "rank $rank outlives mpirun"; kill -KILL $rank; }
	done
	for rank in 0 1; do
		grep -q "the launcher .*has ended" "$GPULOOM_SAYS.$rank" || { fail "rank $rank ends without a word"; cat "$GPULOOM_SAYS.$rank"; }
	done
else
	echo 'no mpirun with PMIx here (Debian: openmpi-bin): that part is left out'
fi
finish
