# SPDX-License-Identifier: Apache-2.0
# Tests the state that the command inherits from its parent or passes to its children. The parent may close standard streams
# and pipes, and ignore or block signals. Compilers and plug-ins may not end. test_children tests embedding programs.
. tests/lib.sh
small='--samples 2 --set workload.memset.tasks=1000'
run="$G run conf/memset.ini $small"
exec_conf "$tmp/exec.ini" true

# "$launch" SIGNALS COMMAND...: runs the command with these signals ignored and all others blocked.
need python3
cat >"$tmp/launch" <<'PYTHON'
#!/usr/bin/env python3
import os, signal, sys
ignored = [getattr(signal, s) for s in sys.argv[1].split()]
for s in ignored:
    signal.signal(s, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - set(ignored))
os.execvp(sys.argv[2], sys.argv[2:])
PYTHON
chmod +x "$tmp/launch"
launch=$tmp/launch

# ---- the status of children is read, whatever signal state the parent left
for command in "sh -c 'sleep 0.05; exit 1'" "sh -c 'exit 1'"; do
	expect 3 'ended with status 1' "$launch" SIGCHLD "$G" run "$tmp/exec.ini" --samples 2 \
		--set "workload.exec.command=$command"
done
expect 0 '2 samples, each verified' "$launch" SIGCHLD "$G" run "$tmp/exec.ini" --samples 2
expect 0 'each verified' "$launch" SIGCHLD $run --set device.cpu.isolation=process
# A signal that the parent has blocked still ends a run.
"$launch" SIGPIPE "$G" run "$tmp/exec.ini" --samples 100 --set \
	"workload.exec.command=sh -c 'touch $tmp/runs; sleep 0.3'" >"$tmp/out" 2>"$tmp/err" &
pid=$!
soon '[ -e "$tmp/runs" ]'
kill -TERM $pid
soon 'grep -q stopping "$tmp/err"' || kill -KILL $pid
wait $pid
got=$?
[ $got -eq 130 ] ||
	{ fail "exit $got instead of 130 after a SIGTERM that the parent had blocked (F1)"; cat "$tmp/err"; }
# A signal that the parent ignores does not end a run.
expect 0 'each verified' "$launch" SIGHUP "$G" run "$tmp/exec.ini" --samples 2 \
	--set "workload.exec.command=sh -c 'kill -HUP \$PPID'"

# ---- closed descriptors
expect 0 'each verified' sh -c "$run --set device.cpu.isolation=process <&-"
"$G" run conf/uts.ini --samples 1000 --quiet --set device.cpu.isolation=process <&- >&- 2>&- &
pid=$!
devices() { pgrep -P $pid -x 'cpu:[01]'; } # the command has other children that end soon
soon '[ "$(devices | wc -l)" -eq 2 ]' || fail 'no processes of devices (F9)'
# A device's process may end between the listing and the test of its descriptors, so the test is repeated.
closed=
nulls() {
	list="$pid $(devices)"
	for p in $list; do
		for fd in 0 1 2; do
			to=$(readlink "/proc/$p/fd/$fd")
			closed="descriptor $fd of process $p is '$to'"
			[ "$to" = /dev/null ] || return
		done
	done
	[ "$(echo $list | wc -w)" -eq 3 ]
}
soon nulls || fail "$closed (F9)"
kill -KILL $pid
wait $pid 2>/dev/null

# ---- a process of a workload that is killed ends the run
"$G" run conf/qos/storm.ini --samples 100000 --quiet --set workload.requests_storm.service=signal \
	--set workload.requests_storm.requests=100 >"$tmp/out" 2>"$tmp/err" &
pid=$!
listener() { pgrep -P $pid -x requests_storm; }
soon listener || fail 'no process receives the signals of requests_storm'
kill -KILL "$(listener)"
wait $pid
got=$?
[ $got -eq 1 ] && grep -q 'process that receives the signals has ended' "$tmp/err" ||
	{ fail "exit $got after the receiver of signals was killed"; cat "$tmp/err"; }

# ---- an interrupt between two forks of ranks reaches the ranks.
case $B in *address* | *thread*) preload= ;; *) preload=$tmp/slow_fork.so ;; esac
cat >"$tmp/slow_fork.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
pid_t fork(void)
{
	pid_t pid = ((pid_t(*)(void))dlsym(RTLD_NEXT, "fork"))();
	const char *at = getenv("FORKED");
	if (pid > 0 && at) {
		close(open(at, O_CREAT | O_WRONLY, 0600));
		usleep(300000);
	}
	return pid;
}
C
if [ "$preload" ] && ${CC:-gcc} -shared -fPIC -o "$preload" "$tmp/slow_fork.c" 2>/dev/null; then
	FORKED=$tmp/forked LD_PRELOAD=$preload "$G" run -n 3 conf/fib.ini --samples 100000 --quiet >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	soon '[ -e "$tmp/forked" ]' || fail 'no rank was forked'
	kill -INT $pid
	wait $pid
	got=$?
	[ $got -eq 130 ] && grep -q 'stopping after' "$tmp/err" ||
		{ fail "exit $got after an interrupt between two forks"; cat "$tmp/err"; }
fi

# ---- closed stdout and stderr
closed() { # arguments: STATUS REDIRECTION ARGUMENTS
	sh -c "$G $3 $2" >"$tmp/out" 2>"$tmp/err"
	got=$?
	[ $got -eq "$1" ] || { fail "exit $got instead of $1: $3 $2 (F10)"; cat "$tmp/err"; }
}
closed 0 '2>&-' "run conf/memset.ini $small --json $tmp/a.json"
python3 -m json.tool "$tmp/a.json" >"$tmp/x" || fail 'no result where stderr is closed (F10)'
grep -q verified "$tmp/out" || fail 'no table where stderr is closed (F10)'
closed 0 '>&-' "run conf/memset.ini $small --json $tmp/b.json"
python3 -m json.tool "$tmp/b.json" >"$tmp/x" || fail 'no result where stdout is closed (F10)'
closed 0 '>&-' "run conf/memset.ini $small --quiet"
closed 0 '>&-' "sweep conf/memset.ini $small --vary run.seed=1,2 -o $tmp/b.jsonl"
closed 0 '>&-' "report $tmp/b.json -o $tmp/b.html"
for command in "run conf/memset.ini --samples 100000" "run conf/memset.ini --samples 100000 --json -" \
	"sweep conf/memset.ini --vary run.seed=1,2 --samples 100000" "compare conf/memset.ini --vary run.seed=1,2"; do
	closed 1 '>&-' "$command"
	grep -q 'standard output is closed: give a file for the result' "$tmp/err" ||
		fail "no word of a closed stdout: $command (F10)"
done
for command in list --version "report $tmp/b.json" "run conf/memset.ini --dry-run --quiet"; do
	closed 1 '>&-' "$command"
	grep -q 'cannot write to standard output: it is closed' "$tmp/err" ||
		fail "no word of a closed stdout: $command (F10)"
done
closed 1 '>&- 2>&-' list

# ---- names of standard output
ln -s /dev/stdout "$tmp/link.json"
for name in - /dev/stdout /dev/fd/1 /proc/self/fd/1 "$tmp/link.json"; do
	expect 0 '' $run --json $name
	python3 -m json.tool "$tmp/out" >"$tmp/x" || fail "--json $name is not on standard output (F11)"
	expect 0 '' "$G" report "$tmp/a.json" -o $name --format csv
	grep -q ',' "$tmp/out" || fail "report -o $name is not on standard output (F11)"
	expect 0 '' "$G" sweep conf/memset.ini $small --vary run.seed=1,2 -o $name
	grep -q gpuloom.sweep "$tmp/out" || fail "sweep -o $name is not on standard output (F11)"
	expect 0 '' $run --quiet --trace $name
	grep -q traceEvents "$tmp/out" || fail "--trace $name is not on standard output (F11)"
done
[ -L "$tmp/link.json" ] || fail 'a link to standard output was replaced (F11)'
$run --json /dev/stdout >"$tmp/file.json" 2>"$tmp/err"
python3 -m json.tool "$tmp/file.json" >"$tmp/x" || fail '--json /dev/stdout into a file (F11)'

# ---- a closed pipe: no message, and death by SIGPIPE, also if the parent ignores it
for ignored in '' SIGPIPE; do
	for command in list "run conf/memset.ini $small --json -" "sweep conf/memset.ini $small --vary run.seed=1,2"; do
		mkfifo "$tmp/pipe"
		(
			exec 3<"$tmp/pipe"
			exec 3<&-
		) &
		"$launch" "$ignored" "$G" $command 2>"$tmp/err" >"$tmp/pipe"
		got=$?
		wait $!
		rm "$tmp/pipe"
		[ $got -eq 141 ] || fail "exit $got instead of 141: a reader that has gone, '$command' (F11)"
		grep error "$tmp/err" && fail "an error where a reader has gone: $command (F11)"
	done
done

# ---- faulty plug-ins
mkdir "$tmp/odd"
cp "$B/tests/plugins/bad_abort.so" "$tmp/odd/term_abort.so"
cp "$B/tests/plugins/bad_hang.so" "$tmp/odd/term_hang.so"
cp "$B/tests/plugins/bad_destructor.so" "$tmp/term_destructor.so"
for name in abort hang; do
	expect 0 '' env GPULOOM_PLUGIN_PATH="$tmp/odd:$B/plugins" "$G" complete "termination.$name." run --set
done
expect 0 'scheduler.mgws.public_queue=' "$G" complete scheduler.mgws.pub run --set
# A section that plug-ins share needs the code of each. Completion ends in 2 s of real time, however busy the machine is, and
# has offered all that needs no code.
cp "$B/tests/plugins/bad_hang.so" "$tmp/odd/term_stuck.so"
expect 0 '^termination.use=hang$' env GPULOOM_PLUGIN_PATH="$tmp/odd:$B/plugins" "$G" complete termination. run --set
grep -q '^termination.counter.$' "$tmp/out" || fail 'completion beside plug-ins that hang'
! pgrep -f "$tmp/odd/term_" >/dev/null || fail 'completion leaves a process'
# Each message is one write(), so that messages of several processes do not mix. In this mode a pipe keeps writes apart.
python3 - "$G" <<'PY' || fail 'a message in several writes'
import os, subprocess, sys
for args in (['rerun', 'none.json'], ['run', 'conf/memset.ini', '--set', 'x.y=1'], ['bogus'], ['run', '/dev/zero']):
    r, w = os.pipe2(os.O_DIRECT)
    subprocess.run([sys.argv[1], *args], stderr=w, stdout=subprocess.DEVNULL, env=dict(os.environ, NO_COLOR='1'))
    os.close(w)
    pieces = iter(lambda: os.read(r, 65536), b'')
    assert all(p.endswith(b'\n') and b'error: ' in p for p in pieces), args
PY
expect 2 'term_destructor.so: its destructor crashed .SIGABRT.*too late.*report it' "$G" describe \
	"$tmp/term_destructor.so"
expect 2 'its destructor crashed' "$G" run conf/memset.ini --set "termination.use=$tmp/term_destructor.so"

# ---- a crash of a user's code names the worker, the plug-in and what to try, and ends the command as usual
ulimit -c 0
cat >"$tmp/crash.ini" <<INI
[run]
workload = $B/tests/plugins/workload_crashes.so
devices = cpu:0
samples = 1
warmup = 0
[device.cpu]
workers = 2
[transport]
use = host
INI
crash() { # STATUS WAY PATTERN [OPTION...]
	status=$1 way=$2 pattern=$3
	shift 3
	expect "$status" "^gpuloom: error: $pattern" "$G" run "$tmp/crash.ini" --set "workload.crashes.way=$way" "$@"
}
case $B in *address* | *thread* | *undefined*) ;; *) # a sanitizer reports crashes itself
	place='workload_crashes.so at offset 0x[0-9a-f]+$'
	crash 139 null "worker [01] of cpu:0 crashed .SIGSEGV, access to a null pointer., in $place"
	grep -q -- '--set device.cpu.isolation=process' "$tmp/err" || fail 'a crash does not name isolation'
	name=$(sed -n 's/.*`\(addr2line [^`]*\)`.*/\1/p' "$tmp/err")
	! command -v addr2line >/dev/null || $name | grep -q '^kernel' || fail "not the place of the crash: $name"
	crash 136 fpe "worker [01] of cpu:0 divided an integer by zero .SIGFPE., in $place"
	crash 132 ill "worker [01] of cpu:0 executed an illegal instruction .SIGILL., in $place"
	crash 139 stack "worker [01] of cpu:0 overflowed its stack .SIGSEGV., in $place"
	crash 139 jump "worker [01] of cpu:0 crashed .*, in a jump to 0x0, .* called by $place"
	crash 139 libc "worker [01] of cpu:0 crashed .*, in lib.*, called by $place"
	crash 134 abort "worker [01] of cpu:0 was aborted .SIGABRT., in lib.*, called by $place"
	crash 139 init "the main thread crashed .*, in $place"
	crash 1 null "worker [01] of cpu:0 crashed .*, in $place" --set device.cpu.isolation=process
	grep -q 'cpu:0: its process .* was killed by signal 11' "$tmp/err" || fail 'the device does not report the signal'
	! grep -q -- '--set device.cpu.isolation' "$tmp/err" || fail 'isolation = process is advised although it is set' ;;
esac

# ---- poll() fails, as in a sandbox or above RLIMIT_NOFILE: the waits go on without it
for job in 'conf/uts.ini --samples 2' "$tmp/exec.ini --samples 2" '-n 2 conf/pingpong.ini --samples 1'; do
	expect 0 'verified' "$B/tests/deny" EINVAL poll,ppoll "$G" run $job
done

# ---- the compiler's folder is removed with the process that started the compiler; a signal to the process group does not
# reach the compiler
cat >"$tmp/sim.ini" <<'INI'
[run]
workload = memset
devices = sim:0
samples = 1
warmup = 0
[transport]
use = host
[scheduler]
use = mgws
[termination]
use = counter


INI
mkdir "$tmp/t"
cat >"$tmp/cc" <<CC
#!/bin/sh
touch "$tmp/begun"
while [ ! -e "$tmp/go" ]; do sleep 0.05; done
exec c++ "\$@"
CC
chmod +x "$tmp/cc"
compile() { # in a separate process group, whose number is $pid
	rm -f "$tmp/begun"
	TMPDIR=$tmp/t CXX=$tmp/cc setsid "$G" run "$tmp/sim.ini" --quiet >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	soon '[ -e "$tmp/begun" ]' || fail 'no compiler'
}
if command -v c++ >/dev/null; then
	compile
	[ "$(ls "$tmp/t")" ] || fail 'no folder of a compiler'
	kill -KILL $pid
	wait $pid 2>/dev/null
	soon '[ -z "$(ls "$tmp/t")" ]' || fail 'the folder of a compiler stays after SIGKILL (S15)'
	soon '! pgrep -f "$tmp/cc" >/dev/null' || fail 'a compiler stays after SIGKILL (S15)'
	compile
	kill -TERM -$pid
	soon 'grep -q stopping "$tmp/err"' || fail 'no answer to SIGTERM'
	touch "$tmp/go"
	wait $pid
	got=$?
	[ $got -eq 130 ] ||
		{ fail "exit $got instead of 130: SIGTERM to the group of a compiler (S15)"; cat "$tmp/err"; }
	grep 'does not compile' "$tmp/err" && fail 'a compiler that was interrupted is no mistake of the source (S15)'
	# A second signal may have ended the command before the compiler's shell has removed the folder.
	soon '[ -z "$(ls "$tmp/t")" ]' || fail "the folder of a compiler stays: $(ls "$tmp/t") (S15)"
	# The alarm that ends an interrupted command comes when the compiler has ended, and the program is loaded.
	printf '%s\n' '#include <unistd.h>' '__attribute__((constructor)) static void slow() { sleep(1); sleep(1); sleep(1); }' >"$tmp/slow.h"
	printf '%s\n' '#!/bin/sh' "c++ -include $tmp/slow.h \"\$@\" && touch $tmp/begun" >"$tmp/cc"
	compile
	kill -TERM $pid
	wait $pid
	got=$?
	[ $got -eq 130 ] || fail "exit $got instead of 130: SIGTERM while a program is loaded"
	[ -z "$(ls "$tmp/t")" ] || fail "the folder of a program stays: $(ls "$tmp/t")"
fi

# ---- private files of a command have no name in /tmp
grep -aq '/tmp/gpuloom-compare' "$G" && fail 'compare ignores TMPDIR (D32)'
expect 0 '' "$G" compare conf/memset.ini --vary run.seed=1,2 --blocks 6 -o "$tmp/c.html"
grep -q '</html>' "$tmp/c.html" || fail 'no page of a comparison (D32)'

# ---- a stopped process (Ctrl-Z, SIGSTOP)
# The time of a stop does not count for time-outs. The sample is repeated, and the result has a warning.
stopped() { # arguments: SECONDS CONDITION ARGUMENTS...
	seconds=$1 condition=$2
	shift 2
	"$G" run "$@" --samples 2 --set run.warmup=0 --json "$tmp/stopped.json" >"$tmp/out" 2>"$tmp/err" </dev/null &
	run=$!
	soon "$condition" || fail "no '$condition'"
	all="$run $(pgrep -P $run)"
	kill -STOP $all
	sleep $seconds
	kill -CONT $all
	wait $run
	got=$?
	[ $got = 0 ] || { fail "exit $got after a stop: $*"; cat "$tmp/err"; }
	grep -q 'stopped during a sample.*is repeated' "$tmp/err" && grep -q '"id":.*"stopped"' "$tmp/stopped.json" ||
		{ fail "no warning of a stop: $*"; cat "$tmp/err"; }
	[ "$(grep -c '"verified":' "$tmp/stopped.json")" = 2 ] || fail "not two samples after a stop: $*"
}
exec_conf "$tmp/sleeps.ini" "sh -c 'touch $tmp/sleeping; sleep 1.5'"
stopped 7 '[ -e "$tmp/sleeping" ]' "$tmp/sleeps.ini" --set run.timeout=6s --set workload.exec.timeout=6s
planted_conf "$tmp/planted.ini"
stopped 3 'has_used $run 25' "$tmp/planted.ini" --set workload.planted.turns=500000000
stopped 3 'at_work $run 2' "$tmp/planted.ini" --set workload.planted.turns=500000000 -n 2
finish
