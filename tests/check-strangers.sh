# SPDX-License-Identifier: Apache-2.0
# Processes outside the job connect to the port of rank 0, and ranks send wrong messages or numbers. No process can join
# without the token.
. tests/lib.sh
need python3
small='--set workload.uts.tree=custom --set workload.uts.type=binomial --set workload.uts.b0=500 --set workload.uts.q=0.12 --samples 1 --quiet'
"$limit" 550 python3 tests/strangers.py "$G" || fail 'strangers.py'

# The token exists, is random, and other users cannot read it.
by_hand='GPULOOM_RANKS=2 GPULOOM_RANK=0 GPULOOM_ROOT=127.0.0.1:7741'
refused() { # arguments: PATTERN VARIABLE
	expect 2 "$1" env $by_hand "$2" "$G" run conf/uts-ranks.ini $small
}
refused 'need a token, .* make one with' GPULOOM_TOKEN=
for token in 1 "${GPULOOM_TOKEN}0" "${GPULOOM_TOKEN%??} x" ' '; do
	refused 'a token is 32 hexadecimal digits' GPULOOM_TOKEN="$token"
done
(umask 077 && printf '%s\n' "$GPULOOM_TOKEN" >"$tmp/token")
(umask 077 && printf '%s 1\n' "$GPULOOM_TOKEN" >"$tmp/long")
install -m 644 "$tmp/token" "$tmp/open"
refused 'No such file' GPULOOM_TOKEN_FILE="$tmp/absent"
refused 'other users could read it' GPULOOM_TOKEN_FILE="$tmp/open"
refused 'other users could read it' GPULOOM_TOKEN_FILE="$tmp"
refused 'a token is 32 hexadecimal digits' GPULOOM_TOKEN_FILE="$tmp/long"
# The command in the message makes a valid token, which one of two ranks reads from the file.
port=$((20000 + $$ % 20000))
refused 'need a token' GPULOOM_TOKEN=
make_token=$(sed -n 's/.*`\(.*\)`.*/\1/p' "$tmp/err")
(cd "$tmp" && sh -c "$make_token")
GPULOOM_RANKS=2 GPULOOM_RANK=1 GPULOOM_ROOT=127.0.0.1:$port GPULOOM_TOKEN_FILE=$tmp/job.token GPULOOM_TOKEN= "$G" run \
	conf/uts-ranks.ini $small &
expect 0 '' env GPULOOM_RANKS=2 GPULOOM_RANK=0 GPULOOM_ROOT=127.0.0.1:$port GPULOOM_TOKEN="$(cat "$tmp/job.token")" \
	"$G" run conf/uts-ranks.ini $small
wait $! || fail 'rank 1 with a token from a file'

# A GPULOOM_ROOT that is not an address is rejected.
at() { # arguments: PATTERN ROOT
	refused "$1" GPULOOM_ROOT="$2"
}
at 'must be in brackets' ::1:7741
at 'expected the host' :7741
at 'expected the host' localhost
at 'expected the host' '[::1]'
at 'expected the host' '[]:7741'
at "1 to 65535, not '0'" localhost:0
at "1 to 65535, not '99999'" localhost:99999
at "1 to 65535, not '77x'" localhost:77x
at "1 to 65535, not ''" localhost:

# The number of ranks has a bound, and there must be file descriptors for all ranks.
refused 'GPULOOM_RANKS is 1 to 1024, not 1000000' GPULOOM_RANKS=1000000
expect 4 '100 ranks need 164 open files, and this process may have 64: raise the limit' sh -c \
	'ulimit -n 64 && exec "$@"' few "$G" run -n 100 conf/uts-ranks.ini $small
expect 124 'rank 1 has not joined' sh -c 'ulimit -Sn 64 && exec "$@"' few timeout -k 8 2 env GPULOOM_RANKS=100 \
	GPULOOM_RANK=0 GPULOOM_ROOT=127.0.0.1:$port "$G" run conf/uts-ranks.ini $small

# Ranks with other confs are rejected, and so is a port in use.
GPULOOM_RANKS=2 GPULOOM_RANK=1 GPULOOM_ROOT=127.0.0.1:$port "$G" run conf/allreduce.ini --quiet >/dev/null 2>&1 &
expect 2 'rank 1 has selected other plug-ins than rank 0: start all ranks with the same conf' env GPULOOM_RANKS=2 GPULOOM_RANK=0 \
	GPULOOM_ROOT=127.0.0.1:$port "$G" run conf/pingpong.ini --quiet
wait $!
GPULOOM_RANKS=2 GPULOOM_RANK=0 GPULOOM_ROOT=127.0.0.1:$port "$G" run conf/uts-ranks.ini $small >/dev/null 2>&1 &
holder=$!
soon "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", $port)).close()' 2>/dev/null" ||
	fail 'no rank 0'
expect 4 'Address already in use: another job or program has this port' env $by_hand GPULOOM_ROOT=127.0.0.1:$port "$G" \
	run conf/uts-ranks.ini $small
kill $holder
wait $holder

# For variables that a launcher's shell has left, each message names a valid remedy.
expect 2 'unset PMIX_RANK PMIX_NAMESPACE' env PMIX_RANK=0 PMIX_NAMESPACE=x "$G" run -n 2 conf/uts-ranks.ini $small
env PMIX_RANK=0 PMIX_NAMESPACE=x "$G" run conf/uts-ranks.ini $small >"$tmp/out" 2>"$tmp/err" &&
	fail 'a launcher that is not there'
grep -q 'unset PMIX_RANK PMIX_NAMESPACE\|libpmix\|pmix.h' "$tmp/err" ||
	{ fail 'PMIX_RANK without a launcher'; cat "$tmp/err"; }

# Some commands refuse to run when a launcher starts several of them.
for of in SLURM_STEP_NUM_TASKS=4 PMI_SIZE=2 OMPI_COMM_WORLD_SIZE=3 GPULOOM_RANKS=2; do
	expect 2 "compare: .*${of%=*}.*start it once" env $of "$G" compare conf/uts.ini --vary scheduler.use=mgws,static
	expect 2 "sweep: .*${of%=*}.*start it once; or give each --shard" env $of "$G" sweep conf/uts.ini \
		--vary scheduler.use=mgws,static
done
expect 0 '' env SLURM_STEP_NUM_TASKS=4 "$G" sweep conf/uts.ini $small --vary scheduler.use=mgws,static \
	--shard 2/2 -o "$tmp/shard.jsonl"
expect 0 '' env SLURM_STEP_NUM_TASKS=1 "$G" sweep conf/uts.ini $small \
	--vary scheduler.use=mgws,static -o "$tmp/one.jsonl"

# A rank that is stopped does not outlive the hub.
"$G" run -n 3 conf/uts-ranks.ini $small --samples 1000000 >/dev/null 2>&1 &
hub=$!
soon '[ "$(pgrep -P $hub | wc -l)" = 3 ]' || fail 'no ranks'
sleep 0.5
ranks=$(pgrep -P $hub)
kill -STOP $(echo "$ranks" | sed -n 2p)
sleep 0.2
kill -KILL $hub
wait $hub 2>/dev/null
for rank in $ranks; do
	soon "! kill -0 $rank 2>/dev/null || grep -q '^State:.Z' /proc/$rank/status" ||
		{ fail "rank $rank outlives the hub"; kill -KILL $rank; }
done
# A stopped rank does not delay the end of a job after a second signal.
"$G" run -n 3 conf/uts-ranks.ini $small --samples 1000000 >/dev/null 2>&1 &
hub=$!
soon '[ "$(pgrep -P $hub | wc -l)" = 3 ]' || fail 'no ranks'
sleep 0.5
kill -STOP $(pgrep -P $hub | sed -n 2p)
sleep 0.2
kill -TERM $hub
sleep 0.1
kill -TERM $hub
soon "! kill -0 $hub 2>/dev/null || grep -q '^State:.Z' /proc/$hub/status" ||
	{ fail 'two signals do not end a job with a stopped rank'; kill -KILL $hub; }
wait $hub
[ $? = 130 ] || fail "a job that was stopped ends with $?"
# A hub continues after a stop (^Z, fg) that is longer than the time limit of a message.
"$G" run -n 2 conf/uts-ranks.ini $small --samples 100 >"$tmp/out" 2>&1 &
hub=$!
sleep 0.3
kill -STOP $hub
sleep 1
kill -CONT $hub
wait $hub || { fail 'a hub that was stopped for a moment'; cat "$tmp/out"; }
finish
