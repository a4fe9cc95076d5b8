# SPDX-License-Identifier: Apache-2.0
# Tests ranks on four hosts: network namespaces on a bridge, whose ranks join by GPULOOM_ROOT. One conf runs on all. One host dies. The link
# of host 1 is slow, loses frames and has a limited rate. netem does this or, if the kernel has none, a process of the test
# between two TAP devices.
. tests/lib.sh
[ -e "$B/plugins/trigger_gputn.so" ] || skip 'built without libfabric (Debian: libfabric-dev)'
[ "$(id -u)" = 0 ] || skip 'network namespaces need root'
command -v ip >/dev/null || skip 'no ip command (Debian: iproute2)'
id=lt$$
wire=
clean() {
	[ -z "$wire" ] || kill "$wire" 2>/dev/null
	for i in 0 1 2 3; do ip netns del "$id-$i" 2>/dev/null; done
	ip link del "$id-br" 2>/dev/null
	rm -rf "$tmp"
}
trap clean EXIT
ip netns add "$id-0" 2>/dev/null || skip 'the kernel or sandbox has no network namespaces'
ip link add "$id-br" type bridge 2>/dev/null || skip 'the kernel has no bridge'
ip link set "$id-br" up
# slow_cable: makes the link of host 1 if the kernel cannot delay packets of a veth.
slow_cable() {
	tc qdisc add dev lo root netem delay 0ms 2>/dev/null && tc qdisc del dev lo root && return 1
	[ -c /dev/net/tun ] && ${CC:-cc} -std=c11 -O1 -o "$tmp/wire" tests/netns_wire.c || return 1
	"$tmp/wire" "$id-v1" "$id-p1" "/run/netns/$id-1" 2000 10 >"$tmp/wire.out" 2>&1 &
	wire=$!
	for i in $(seq 50); do
		grep -q ready "$tmp/wire.out" && return 0
		sleep 0.1
	done
	cat "$tmp/wire.out"
	return 1
}
delay='none: no netem in the kernel, and no TAP device or compiler'
for i in 0 1 2 3; do
	[ $i = 0 ] || ip netns add "$id-$i"
	if [ $i = 1 ] && slow_cable; then
		delay='2 ms and 1 % loss by a process between TAP devices'
		ip link set "$id-v1" master "$id-br" up
		ip netns exec "$id-1" sh -c "ip addr add 10.77.0.2/24 dev $id-p1 && ip link set $id-p1 up && ip link set lo up"
		continue
	fi
	ip link add "$id-v$i" type veth peer name "$id-p$i" 2>/dev/null || skip 'the kernel has no veth'
	ip link set "$id-v$i" master "$id-br" up
	ip link set "$id-p$i" netns "$id-$i"
	ip netns exec "$id-$i" sh -c "ip addr add 10.77.0.$((i + 1))/24 dev $id-p$i && ip link set $id-p$i up && ip link set lo up"
done
if tc qdisc add dev "$id-v1" root netem delay 2ms loss 1% rate 100mbit 2>/dev/null; then
	delay='2 ms, 1 % loss and 100 Mbit/s by netem'
elif tc qdisc add dev "$id-v1" root tbf rate 100mbit burst 32kbit latency 50ms 2>/dev/null; then
	delay="$delay; 100 Mbit/s by tbf"
fi
echo "delay, loss, rate: $delay"

# hosts N CONF OPTIONS...: runs N ranks, `each` in a namespace, and returns the status of rank 0.
each=1
hosts() {
	hosts=$1
	shift
	for i in $(seq $((hosts - 1)) -1 0); do
		GPULOOM_RANK=$i GPULOOM_RANKS=$hosts GPULOOM_ROOT=10.77.0.1:7741 ip netns exec "$id-$((i / each))" \
			"$limit" 100 "$G" run "$@" --set trigger.address=10.77.0.$((i / each + 1)) >"$tmp/out$i" 2>"$tmp/err$i" </dev/null &
		eval "pid$i=$!"
	done
	wait $pid0
}
# Waits for the ends of the other ranks. A plain `wait` would also wait for the process of the cable.
rest() {
	for i in $(seq $((hosts - 1))); do
		eval "wait \$pid$i"
	done
}
for provider in tcp net sockets; do
	for job in jacobi2d allreduce; do
		hosts 4 conf/$job.ini --samples 2 --set workload.jacobi2d.n=40 --set workload.jacobi2d.sweeps=10 \
			--set workload.allreduce.bytes=100KB --set trigger.provider=$provider
		status=$?
		rest
		[ $status = 0 ] ||
			{ fail "$job over $provider: rank 0 ends with $status"; sed 's/^/    /' "$tmp"/err?; }
		grep -q verified "$tmp/out0" || fail "$job over $provider: no result"
		[ ! -s "$tmp/out1" ] || fail 'rank 1 prints'
	done
done

# Hosts that share tasks steal from each other. The count of 2 and of 4 hosts equals that of zgrep, under both detectors.
mkdir "$tmp/texts"
for i in $(seq 120); do
	seq $((i * i * 3)) | gzip -1 >"$tmp/texts/$i.gz"
done
shared='--set trigger.use=gputn --set trigger.provider=tcp --set trigger.wait=nap'
found=$(zgrep -lw 5000 "$tmp"/texts/* | wc -l)
for n in 2 4; do
	for term in hcounter tree; do
		hosts $n conf/contains-ranks.ini $shared --set termination.use=$term --samples 2 \
			--set workload.contains.path="$tmp/texts" \
			--set workload.contains.word=5000
		status=$?
		rest
		[ $status = 0 ] ||
			{ fail "$n hosts that share tasks, $term: rank 0 ends with $status"; sed 's/^/    /' \
			"$tmp"/err?; }
		[ "$(awk '$1 == "matches" { print $2 }' "$tmp/out0")" = "$found" ] ||
			{ fail "$n hosts found another number than $found"; cat "$tmp/out0"; }
	done
done

# Two hosts have two ranks each. With victim = biased and bias = 100% they steal only within their host, with bias = 0% never.
figure() { awk -v name="$1" '$1 == name { n = $2 } END { print n + 0 }' "$tmp/out0"; } # the output omits counters that are 0
each=2
for bias in 100% 0%; do
	hosts 4 conf/uts-ranks.ini $shared --samples 1 --set scheduler.mgws.victim=biased \
		--set scheduler.mgws.bias=$bias
	status=$?
	rest
	[ $status = 0 ] || { fail "bias = $bias: rank 0 ends with $status"; sed 's/^/    /' "$tmp"/err?; }
	[ "$(figure remote_steals)" -gt 0 ] || fail "bias = $bias: no rank stole from another"
	[ $bias = 0% ] && expected=0 || expected=$(figure remote_steals)
	[ "$(figure remote_steals_of_host)" = "$expected" ] ||
		fail "bias = $bias: $(figure remote_steals_of_host) of $(figure remote_steals) steals in one host"
done
each=1

# ranks_here VARIABLE: prints the processes of the job that have VARIABLE in their environment.
ranks_here() {
	pgrep -x gpuloom | while read -r p; do
		tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null >"$tmp/environ"
		grep -qx 'GPULOOM_ROOT=10.77.0.1:7741' "$tmp/environ" && grep -q "$1" "$tmp/environ" &&
			ip netns identify "$p" 2>/dev/null | grep -q "^$id-" && echo "$p"
	done
}

# When a rank of another host dies, rank 0 names it, and all ranks end within 5 s.
dies() { # arguments: CONF OPTIONS
	conf=$1
	shift
	hosts 4 "$conf" "$@" &
	job=$!
	soon 'victim=$(ranks_here GPULOOM_RANK=2); has_used "$victim" 30'
	begin=$(date +%s%N)
	[ -n "$victim" ] && kill -9 "$victim" || fail 'no rank 2 to kill'
	wait $job && fail 'a job with a dead rank ends well'
	took_since "$begin"
	[ $took -lt 5000 ] || fail "$conf: it took $took ms"
	grep -q 'rank 2' "$tmp/err0" || { fail "$conf: no word of rank 2"; sed 's/^/    /' "$tmp/err0"; }
	soon '[ -z "$(ranks_here .)" ]' || fail "$conf: ranks outlive the job"
}
# When the link of a host goes down, all ranks end soon after [run] timeout.
cable() { # arguments: CONF OPTIONS
	conf=$1
	shift
	hosts 3 "$conf" "$@" --set run.timeout=5s &
	job=$!
	sleep 3
	ip link set "$id-v2" down
	begin=$(date +%s%N)
	wait $job
	status=$?
	took=$((($(date +%s%N) - begin) / 1000000))
	[ $took -lt 40000 ] ||
		fail "$conf: it took $took ms after a cable was pulled" # hosts would end it by force after 60 s
	[ $status != 0 ] && [ $status != 137 ] || fail "$conf: status $status after a cable was pulled"
	grep -q 'no end after 5 s\|rank 2' "$tmp/err0" ||
		{ fail "$conf: not a word of the cable"; sed 's/^/    /' "$tmp/err0"; }
	for i in $(seq 400); do
		pgrep -x gpuloom | while read -r p; do
			grep -qz 'GPULOOM_ROOT=10.77.0.1:7741' "/proc/$p/environ" 2>/dev/null && echo "$p"
		done | grep -q . || break
		sleep 0.1
	done
	[ "$i" -lt 400 ] || fail "$conf: ranks outlive the job"
	ip link set "$id-v2" up
}
cable conf/uts-ranks.ini --samples 100000 $shared
cable conf/uts-ranks.ini --samples 100000 $shared --set workload.uts.tree=custom --set workload.uts.type=binomial \
	--set workload.uts.b0=500 --set workload.uts.q=0.12
dies conf/jacobi2d.ini --samples 1 --set workload.jacobi2d.sweeps=100000000 --set trigger.provider=tcp
dies conf/uts-ranks.ini --samples 100000 $shared
finish
