# SPDX-License-Identifier: Apache-2.0
# Jacobi and allreduce are exact at 2, 4 and 8 ranks under every trigger plug-in, however few the cores.
. tests/lib.sh
[ -e "$B/plugins/trigger_gputn.so" ] || {
	echo 'skipped: built without libfabric (Debian: libfabric-dev)'
	exit 77
}
export FI_SOCKETS_PE_WAITTIME=0 # its thread sleeps otherwise: milliseconds
# each NAME: one plug-in, in a folder of its own; they run side by side, since most of a start is waiting.
each() {
	name=$1
	tmp=$tmp/$name
	mkdir "$tmp"
	for n in 2 4 8; do
		expect 0 verified "$G" run -n $n conf/allreduce.ini --samples 1 --set trigger.use="$name" \
			--set workload.allreduce.bytes=100KB
		expect 0 verified "$G" run -n $n conf/jacobi2d.ini --samples 1 --set trigger.use="$name" \
			--set workload.jacobi2d.n=40 --set workload.jacobi2d.sweeps=12
	done
	[ "$failures" -eq 0 ]
}
pids=
for so in "$B"/plugins/trigger_*.so; do
	name=${so##*/trigger_}
	(trap - EXIT; each "${name%.so}") &
	pids="$pids $!"
done
for pid in $pids; do wait "$pid" || failures=$((failures + 1)); done
finish
