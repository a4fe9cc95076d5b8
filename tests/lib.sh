# SPDX-License-Identifier: Apache-2.0
# The scripts tests/check-*.sh source this file. $B is the build folder, and $tmp is a separate folder of the test.
B=$1
case $B in /*) ;; *) B=$PWD/$B ;; esac
G=$B/gpuloom
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failures=0

# Without CHECK a script runs the tests for which `make check` has time. CHECK=rest runs those that this leaves out (make
# check-rest), and CHECK=all runs all (make check-all).
CHECK=${CHECK:-}

# in_check and in_rest: succeed if the script runs the tests of `make check`, or those that `make check` leaves to
# `make check-rest`.
in_check() { [ "$CHECK" != rest ]; }
in_rest() { [ -n "$CHECK" ]; }

# $limit in front of a command ends the command if it makes no progress, independent of the load of the machine (limit.c).
limit=$B/tests/limit
[ -x "$limit" ] || { echo "there is no $limit: make tests" >&2; exit 1; }
# The time-out of runs is long, because a busy machine may be slow. Tests of time-outs set the option themselves.
export GPULOOM_RUN__TIMEOUT=10m

# slack: prints the factor by which a step may take longer than on an idle machine.
slack() {
	read -r mean _ _ running _ </proc/loadavg
	awk -v mean="$mean" -v running="${running%/*}" -v cores="$(getconf _NPROCESSORS_ONLN)" 'BEGIN {
		load = mean > running ? mean : running
		print int(load > cores ? load / cores + 1 : 1) }'
}

# keep_programs: from here on device_sim compiles each program only once.
keep_programs() {
	KEPT=$tmp/programs KEPT_CXX=${CXX:-c++} CXX=$PWD/tests/keep-cxx
	export KEPT KEPT_CXX CXX
	mkdir "$KEPT"
}

fail() {
	echo "FAILED: $*"
	failures=$((failures + 1))
}

skip() { # arguments: REASON
	echo "skipped: $1"
	exit 77
}

need() { # arguments: PROGRAM
	command -v "$1" >/dev/null || skip "there is no $1"
}

plain_build() { # REASON: skips the test in builds with a sanitizer or a perturbed schedule
	case $B in *address* | *thread* | *undefined* | *perturbed*) skip "$1" ;; esac
}

# soon COMMAND: repeats the command until it succeeds, for a minute at least.
soon() {
	for i in $(seq 1200); do
		eval "$1" && return
		sleep 0.05
	done
	echo "timed out: $1"
	return 1
}

# took_since BEGIN: sets $took to the time since BEGIN (of `date +%s%N`), in ms of an idle machine.
took_since() {
	took=$((($(date +%s%N) - $1) / 1000000 / $(slack)))
}

# ended_by SIGNAL PROCESS JOB: sends the signal, and sets $status to the job's exit status and $took to the time until its
# end.
ended_by() {
	begin=$(date +%s%N)
	kill "-$1" "$2"
	wait "$3"
	status=$?
	took_since "$begin"
}

# has_used PROCESS TICKS: succeeds if the process has used this much processor time, in hundredths of a second.
has_used() {
	[ -n "$1" ] || return
	sed 's/.*) //' "/proc/$1/stat" 2>/dev/null |
		awk -v least="$2" '{ enough = $12 + $13 >= least } END { exit !enough }'
}

# at_work JOB N: succeeds if the job has N children, and each has used a tenth of a second of processor time. The children that
# probe plug-ins at the start use less.
at_work() {
	children=$(pgrep -P "$1") && [ "$(echo "$children" | wc -l)" -eq "$2" ] || return
	for child in $children; do
		has_used "$child" 10 || return
	done
}

# interrupted CONDITION COMMAND...: sends SIGINT when the condition on the process $run holds. The command must exit with 130.
interrupted() {
	condition=$1
	shift
	"$@" >"$tmp/out" 2>"$tmp/err" &
	run=$!
	soon "$condition" || fail "no '$condition': $*"
	ended_by INT $run $run
	[ $status -eq 130 ] || fail "exit $status instead of 130 after an interrupt: $*"
}

# expect STATUS PATTERN COMMAND...: checks the exit status, and that stderr or stdout matches an extended regex. The search for
# leaks of AddressSanitizer itself crashes at times in a process with hundreds of threads; such a command is repeated.
expect() {
	want=$1 pattern=$2
	shift 2
	for try in 1 2 3; do
		"$limit" 100 "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
		got=$?
		grep -q 'LeakSanitizer has encountered a fatal error' "$tmp/err" || break
	done
	if [ "$got" -ne "$want" ]; then
		fail "exit $got instead of $want: $*"
		sed 's/^/    /' "$tmp/err"
	elif [ -n "$pattern" ] && ! cat "$tmp/out" "$tmp/err" | grep -qE -- "$pattern"; then
		fail "no '$pattern' in the output of: $*"
		sed 's/^/    /' "$tmp/err"
	fi
}

# Makes a conf that runs another program.
exec_conf() { # arguments: FILE COMMAND
	cat >"$1" <<INI
[run]
workload = exec
devices = cpu:0
[device.cpu]
workers = 1
[transport]
use = host
[workload.exec]
command = "$2"
INI
}

# Makes a conf of workload_planted, which does a known amount of work.
planted_conf() { # arguments: FILE
	cat >"$1" <<INI
[run]
workload = $B/tests/plugins/workload_planted.so
devices = cpu:0
[device.cpu]
workers = 1
[transport]
use = host
INI
}

# Kills the first of two device processes. The run must end by itself, with a message that names the process. Sets $took to the
# time until the end, in ms.
without_a_device() { # arguments: LABEL ARGUMENTS...
	label=$1
	shift
	"$G" run "$@" --samples 1 --set device.cpu.isolation=process >"$tmp/out" 2>"$tmp/err" &
	run=$!
	soon 'at_work $run 2'
	ended_by KILL "$(pgrep -P $run | head -1)" $run
	[ $status -eq 1 ] || fail "$label: exit $status instead of 1 after a kill"
	grep -q 'cpu:0.*SIGKILL\|cpu:0.*Killed\|cpu:0.*signal 9' "$tmp/err" || {
		fail "$label: the message does not name the device"
		cat "$tmp/err"
	}
}

finish() {
	[ "$failures" -eq 0 ] && exit 0
	echo "$failures failures"
	exit 1
}
