# SPDX-License-Identifier: Apache-2.0
# Ranks share one set of tasks, in memory of one host or through libfabric. The tests compare counts over 2 to 8 ranks, reject
# jobs that cannot be shared, and kill a rank.
. tests/lib.sh
small='--set workload.uts.tree=custom --set workload.uts.type=binomial --set workload.uts.b0=500 --set workload.uts.q=0.12'
shared='--set run.tasks=shared --set termination.use=hcounter --set trigger.use=peer --set run.devices=cpu:0'
own='--set device.cpu.workers=1'
need python3
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
	expect 4 'provider = auto or tcp' "$G" run -n 2 conf/uts-ranks.ini $asks --set trigger.provider=shm
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

# Ranks with other options, or with another tree, are rejected.
other() { # PATTERN ARGUMENTS OF RANK 1
	pattern=$1
	shift
	port=$((20000 + $$ % 20000))
	export GPULOOM_RANKS=2 GPULOOM_ROOT=127.0.0.1:$port
	GPULOOM_RANK=1 "$G" run conf/uts-ranks.ini $small "$@" >/dev/null 2>&1 &
	expect 2 "$pattern" env GPULOOM_RANK=0 "$G" run conf/uts-ranks.ini $small
	wait $!
	unset GPULOOM_RANKS GPULOOM_ROOT
}
other 'has other options than rank' --set scheduler.mgws.public_queue=32
other 'initial tasks of rank 1 are not those of rank 0' --set workload.uts.seed=77
GPULOOM_RANKS=2 GPULOOM_ROOT=127.0.0.1:$port GPULOOM_RANK=1 "$G" run conf/uts-ranks.ini $small --samples 1 \
	--quiet >/dev/null 2>&1 &
expect 1 'rank 1 has ended: .* the same --samples' env GPULOOM_RANK=0 GPULOOM_RANKS=2 GPULOOM_ROOT=127.0.0.1:$port \
	"$G" run conf/uts-ranks.ini $small
wait $!
# One signal ends the wait for a rank that does not join.
GPULOOM_RANK=0 GPULOOM_RANKS=2 GPULOOM_ROOT=127.0.0.1:$port "$G" run \
	conf/uts-ranks.ini >"$tmp/out" 2>"$tmp/err" </dev/null &
job=$!
soon 'grep -q ":$(printf %04X $port) 00000000:0000 0A" /proc/net/tcp' || fail 'rank 0 does not listen'
ended_by TERM $job $job
[ $status -ne 0 ] && [ $took -lt 8000 ] && grep -q 'rank 1 has not joined' "$tmp/err" ||
	{ fail "exit $status, $took ms after a signal to rank 0, which waits for rank 1"; cat "$tmp/err"; }

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

# The same tests over mpirun.
if command -v mpirun >/dev/null && [ -e /usr/lib/x86_64-linux-gnu/libpmix.so.2 ]; then
	expect 0 verified mpirun --allow-run-as-root --oversubscribe -n 2 "$G" run conf/uts-ranks.ini $small
fi
finish
