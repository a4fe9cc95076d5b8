# SPDX-License-Identifier: Apache-2.0
# A device process that is killed in mid-run ends the run: error, exit 1, within 2 s, nothing left.
. tests/lib.sh
for victim in 1 2 3 4; do
	# The same where devices exchange tasks by mail.
	apart=
	[ $victim -le 2 ] || apart='--set transport.host.atomics=no --set termination.use=hcounter'
	victim=$(((victim - 1) % 2 + 1))
	"$G" run conf/uts.ini --samples 1 --set workload.uts.tree=T1L --set device.cpu.isolation=process $apart \
		>"$tmp/out" 2>"$tmp/err" &
	run=$!
	for i in $(seq 60); do # the two device processes are children of the run; those of the probe go soon
		children=$(pgrep -P $run)
		sleep 0.5
		[ "$(echo "$children" | wc -w)" -eq 2 ] && [ "$(pgrep -P $run)" = "$children" ] && break
	done
	child=$(echo "$children" | sed -n "${victim}p")
	begin=$(date +%s%N)
	kill -KILL "$child"
	wait $run
	status=$?
	took=$((($(date +%s%N) - begin) / 1000000))
	[ $status -eq 1 ] || fail "exit $status instead of 1"
	[ $took -lt 2000 ] || fail "took $took ms"
	grep -q "cpu:$((victim - 1)): .*signal 9" "$tmp/err" || {
		fail 'the message does not name the device and the signal'
		cat "$tmp/err"
	}
	pgrep -P $run >/dev/null && fail 'children are left'
	for pid in $run $children; do
		[ -z "$(find /dev/shm -name "*[!0-9]$pid[!0-9]*" -o -name "$pid[!0-9]*")" ] ||
			fail "pid $pid left shared memory behind"
	done
done
# The run itself killed: its device processes die with it.
"$G" run conf/uts.ini --samples 1 --set workload.uts.tree=T1L --set device.cpu.isolation=process >/dev/null 2>&1 &
run=$!
sleep 1
children=$(pgrep -P $run)
[ -n "$children" ] || fail 'no device processes'
kill -KILL $run
wait $run 2>/dev/null
sleep 0.5
for child in $children; do
	# A zombie is dead: who reaps it after its parent is gone is not ours to say.
	state=$(sed 's/.*) //; s/ .*//' "/proc/$child/stat" 2>/dev/null)
	[ -z "$state" ] || [ "$state" = Z ] || fail "device process $child outlived the run: $state"
done
finish
