# SPDX-License-Identifier: Apache-2.0
# Tests ranks on four hosts: network namespaces on a bridge, in which mpirun starts the ranks. One conf runs on all. One host dies. The link
# of host 1 is slow, loses frames and has a limited rate. netem does this or, if the kernel has none, a process of the test
# between two TAP devices.
. tests/lib.sh
[ -e "$B/plugins/trigger_gputn.so" ] || skip 'built without libfabric (Debian: libfabric-dev)'
[ "$(id -u)" = 0 ] || skip 'network namespaces need root'
command -v ip >/dev/null || skip 'no ip command (Debian: iproute2)'
command -v mpirun >/dev/null || skip 'no mpirun (Debian: openmpi-bin)'
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
	# Before the ranks, whose links would not wait for a processor either.
	nice -n -15 "$tmp/wire" "$id-v1" "$id-p1" "/run/netns/$id-1" 2000 10 >"$tmp/wire.out" 2>&1 &
	wire=$!
	for i in $(seq 50); do
		grep -q ready "$tmp/wire.out" && return 0
		sleep 0.1
	done
	cat "$tmp/wire.out"
	return 1
}
# address I: gives host I its address. TCP gives up a dead connection after 15 s instead of 15 minutes.
address() {
	ip netns exec "$id-$1" sh -c "ip addr add 10.77.0.$(($1 + 1))/24 dev $id-p$1 && ip link set $id-p$1 up &&
		ip link set lo up && echo 5 >/proc/sys/net/ipv4/tcp_retries2"
}
delay='none: no netem in the kernel, and no TAP device or compiler'
for i in 0 1 2 3; do
	[ $i = 0 ] || ip netns add "$id-$i"
	if [ $i = 1 ] && slow_cable; then
		delay='2 ms and 1 % loss by a process between TAP devices'
		ip link set "$id-v1" master "$id-br" up
		address 1
		continue
	fi
	ip link add "$id-v$i" type veth peer name "$id-p$i" 2>/dev/null || skip 'the kernel has no veth'
	ip link set "$id-v$i" master "$id-br" up
	ip link set "$id-p$i" netns "$id-$i"
	address $i
done
if tc qdisc add dev "$id-v1" root netem delay 2ms loss 1% rate 100mbit 2>/dev/null; then
	delay='2 ms, 1 % loss and 100 Mbit/s by netem'
elif tc qdisc add dev "$id-v1" root tbf rate 100mbit burst 32kbit latency 50ms 2>/dev/null; then
	delay="$delay; 100 Mbit/s by tbf"
fi
echo "delay, loss, rate: $delay"

# mpirun calls this agent in place of ssh.
cat >"$tmp/agent" <<END
#!/bin/sh
host=\$1
shift
mkdir -p "$tmp/\$host"
export TMPDIR="$tmp/\$host"
exec ip netns exec "$id-\$((\${host##*.} - 1))" sh -c "\$*"
END
chmod +x "$tmp/agent"
# The daemons of Open MPI share a kernel, so each has its own folder of temporary files, and none uses shared memory. They
# detect a dead host within seconds.
export TMPDIR="$tmp" PMIX_MCA_gds=hash OMPI_MCA_rtc_hwloc_vmhole=none OMPI_MCA_plm_rsh_agent="$tmp/agent" OMPI_MCA_oob_tcp_keepalive_time=5 \
	OMPI_MCA_oob_tcp_keepalive_intvl=2 OMPI_MCA_oob_tcp_keepalive_probes=3
# hosts N CONF OPTIONS...: runs N ranks, `each` in a namespace.
each=1
hosts() {
	ranks=$1
	shift
	for i in 1 2 3 4; do echo "10.77.0.$i slots=$each"; done >"$tmp/hosts"
	ip netns exec "$id-0" "$limit" 100 mpirun --allow-run-as-root --hostfile "$tmp/hosts" -n "$ranks" "$G" run -v "$@" \
		>"$tmp/out" 2>"$tmp/err" </dev/null
}
# done_well NAME: checks the status of hosts().
done_well() {
	status=$?
	[ $status = 0 ] || { fail "$1: mpirun ends with $status"; sed 's/^/    /' "$tmp/err"; }
}
for provider in tcp net sockets; do
	for job in jacobi2d allreduce; do
		hosts 4 conf/$job.ini --samples 2 --set workload.jacobi2d.n=40 --set workload.jacobi2d.sweeps=10 \
			--set workload.allreduce.bytes=100KB --set trigger.provider=$provider
		done_well "$job over $provider"
		[ "$(grep -c verified "$tmp/out")" = 1 ] || fail "$job over $provider: not one result"
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
		done_well "$n hosts that share tasks, $term"
		[ "$(awk '$1 == "matches" { print $2 }' "$tmp/out")" = "$found" ] ||
			{ fail "$n hosts found another number than $found"; cat "$tmp/out"; }
	done
done

# Two hosts have two ranks each. With victim = biased and bias = 100% they steal only within their host, with bias = 0% never.
figure() { awk -v name="$1" '$1 == name { n = $2 } END { print n + 0 }' "$tmp/out"; } # the output omits counters that are 0
each=2
for bias in 100% 0%; do
	hosts 4 conf/uts-ranks.ini $shared --samples 1 --set scheduler.mgws.victim=biased \
		--set scheduler.mgws.bias=$bias
	done_well "bias = $bias"
	[ "$(figure remote_steals)" -gt 0 ] || fail "bias = $bias: no rank stole from another"
	[ $bias = 0% ] && expected=0 || expected=$(figure remote_steals)
	[ "$(figure remote_steals_of_host)" = "$expected" ] ||
		fail "bias = $bias: $(figure remote_steals_of_host) of $(figure remote_steals) steals in one host"
done
each=1

# ranks_here HOST: prints the ranks of the job on the host, a number or a pattern.
ranks_here() {
	for p in $(pgrep -x gpuloom); do
		case $(ip netns identify "$p" 2>/dev/null) in "$id-"$1) echo "$p" ;; esac
	done
}
no_rank_is_left() {
	soon '[ -z "$(ranks_here "?")" ]' || fail "$1: ranks outlive the job"
}

# When a rank of another host dies, mpirun names it, and all ranks end.
dies() { # arguments: CONF OPTIONS
	hosts 4 "$@" &
	job=$!
	soon 'victim=$(ranks_here 2); has_used "$victim" 30'
	[ -n "$victim" ] && kill -9 "$victim" || fail 'no rank 2 to kill'
	wait $job && fail 'a job with a dead rank ends well'
	grep -q 'rank 2 ' "$tmp/err" || { fail "$1: no word of rank 2"; sed 's/^/    /' "$tmp/err"; }
	no_rank_is_left "$1"
}
# When the daemon of a host dies, the ranks of the host and all other ranks end.
orphan() {
	hosts 4 "$@" &
	job=$!
	soon 'victim=$(ranks_here 2); has_used "$victim" 30'
	kill -9 "$(ps -o ppid= -p "$victim")"
	wait $job && fail 'a job with a dead daemon ends well'
	no_rank_is_left "$1"
}
# When the link of a host goes down, all ranks end soon after [run] timeout.
cable() { # arguments: CONF OPTIONS
	hosts 3 "$@" --set run.timeout=5s &
	job=$!
	soon 'victim=$(ranks_here 2); has_used "$victim" 30'
	ip link set "$id-v2" down
	wait $job
	status=$?
	[ $status != 0 ] && [ $status != 137 ] || fail "$1: status $status after a cable was pulled"
	grep -q 'no end after 5 s\|daemon' "$tmp/err" ||
		{ fail "$1: not a word of the cable"; sed 's/^/    /' "$tmp/err"; }
	no_rank_is_left "$1"
	ip link set "$id-v2" up
}
cable conf/uts-ranks.ini --samples 100000 $shared
cable conf/uts-ranks.ini --samples 100000 $shared --set workload.uts.tree=custom --set workload.uts.type=binomial \
	--set workload.uts.b0=500 --set workload.uts.q=0.12
dies conf/jacobi2d.ini --samples 1 --set workload.jacobi2d.sweeps=100000000 --set trigger.provider=tcp
dies conf/uts-ranks.ini --samples 100000 $shared
orphan conf/uts-ranks.ini --samples 100000 $shared
finish
