# SPDX-License-Identifier: Apache-2.0
# Experts in parallel (workload_dispatch): exact outputs on 1 to 4 ranks, for all cases and schedulers; mistakes; a killed rank.
. tests/lib.sh
need python3
metric() { python3 -c 'import json, sys; print(int(json.load(open(sys.argv[1]))["metrics"][sys.argv[2]]["median"]))' \
	"$tmp/out.json" "$1"; }
small='--set workload.dispatch.dim=64 --set workload.dispatch.rounds=3 --quiet'

for n in 1 2 3 4; do
	for more in '--set scheduler.use=static' '--set scheduler.use=mgws --set device.cpu.workers=2 --set device.cpu.oversubscribe=yes' \
		'--set scheduler.use=plan --set device.cpu.lanes=3 --set device.cpu.oversubscribe=yes' \
		'--set transport.use=p2p --set device.cpu.isolation=process --set workload.dispatch.top=16 --samples 2'; do
		expect 0 '' "$G" run -n $n conf/dispatch.ini $small $more
	done
done
for case in equal hot_set hot_rank hot_spread ragged_source idle_rank rotating burst; do
	expect 0 '' "$G" run -n 4 conf/dispatch.ini $small --samples 9 --set workload.dispatch.redraw=sample --set workload.dispatch.skew=$case --json "$tmp/out.json"
	[ $case != idle_rank ] || [ "$(metric most_rows)" -le 64 ] || fail "a rank got $(metric most_rows) rows of 64 tokens"
done
# With one rank each row travels once, to this rank. Two ranks share the experts, and nearly each token has some of both.
expect 0 '' "$G" run conf/dispatch.ini $small --set workload.dispatch.rounds=0 --json "$tmp/out.json"
[ "$(metric most_rows) $(metric row_bytes)" = '64 8192' ] || fail "one rank: $(metric most_rows) rows, $(metric row_bytes) bytes"
expect 0 '' "$G" run -n 2 conf/dispatch.ini $small --set workload.dispatch.skew=equal --json "$tmp/out.json"
[ "$(metric most_rows) $(metric row_bytes)" = '32 8192' ] || fail "equal: $(metric most_rows) rows, $(metric row_bytes) bytes"

# A file of choices that workload_experts has written.
expect 0 '' "$G" run conf/experts.ini --samples 1 --quiet --set workload.experts.ranks=2 --set workload.experts.skew=hot_rank \
	--set workload.experts.save="$tmp/choices"
trace="--set workload.dispatch.skew=trace --set workload.dispatch.trace=$tmp/choices"
expect 0 '' "$G" run -n 2 conf/dispatch.ini $small $trace --set workload.dispatch.top=2
expect 2 'choices: start 2 ranks' "$G" run -n 3 conf/dispatch.ini $small $trace --set workload.dispatch.top=2
expect 2 'set experts = 16, tokens = 64 and top = 2' "$G" run -n 2 conf/dispatch.ini $small $trace

# Mistakes.
expect 2 'tokens choose among 8 experts' "$G" run -n 2 conf/dispatch.ini --set workload.dispatch.skew=idle_rank \
	--set workload.dispatch.top=9
expect 2 'dim = 12: must be a multiple of 8' "$G" run conf/dispatch.ini --set workload.dispatch.dim=12
expect 2 'skew = trace: set trace = FILE' "$G" run conf/dispatch.ini --set workload.dispatch.skew=trace
expect 2 'each must have an expert' "$G" run -n 3 conf/dispatch.ini --set workload.dispatch.experts=2 --set workload.dispatch.top=1
[ ! -e "$B/plugins/trigger_gputn.so" ] ||
	expect 4 'choose --set trigger.use=peer' "$G" run -n 2 conf/dispatch.ini --set trigger.use=gputn
expect 4 'a rank has one device' "$G" run conf/dispatch.ini --set run.devices='cpu:0 cpu:1' --set device.cpu.oversubscribe=yes

# The death of a rank ends the other ones, within their time-out.
"$G" run -n 3 conf/dispatch.ini --quiet --samples 1000000 --set run.timeout=20s >/dev/null 2>"$tmp/err" &
hub=$!
soon 'at_work $hub 3' || fail 'no ranks'
kill -KILL $(pgrep -P $hub | sed -n 2p)
wait $hub && fail 'a job without a rank succeeds'
grep -q 'rank [0-2]' "$tmp/err" || { fail 'no word about the rank that was killed'; cat "$tmp/err"; }
finish
