# SPDX-License-Identifier: Apache-2.0
# Plants faults in loom_last() and loom_last_noncoherent(), one at a time. test_sched_after must find each, by its counts or
# by a thread sanitizer. A model checks the fence between devices (tests/models/turns.pml).
. tests/lib.sh
cp -rL "$B/include" "$tmp/include"
after=$tmp/include/gpuloom/dev/after.h

# compile NAME FLAGS...: builds the test with the present headers
compile() {
	name=$1
	shift
	gcc -std=gnu11 -O1 -w -I"$tmp/include" -Icore -I. -D_GNU_SOURCE -pthread "$@" tests/test_sched_after.c \
		tests/support.c \
		-lcunit -o "$tmp/$name" >"$tmp/cc" 2>&1
}
# spoil NAME OLD NEW FLAGS...: replaces OLD, a pattern of sed, by NEW
spoil() {
	what=$1 old=$2 new=$3
	shift 3
	sed "s/$old/$new/" core/include/gpuloom/dev/after.h >"$after"
	! cmp -s core/include/gpuloom/dev/after.h "$after" || { fail "$what: no such place"; return; }
	compile spoilt "$@" || { fail "$what does not compile"; cat "$tmp/cc"; return; }
	if "$limit" 100 "$tmp/spoilt" >"$tmp/out" 2>&1; then
		fail "$what was not noticed"
	else
		echo "noticed: $what"
	fi
}
tsan=-fsanitize=thread
export TSAN_OPTIONS=halt_on_error=1
compile right $tsan || skip 'no thread sanitizer here'
"$tmp/right" >"$tmp/out" 2>&1 || {
	! grep 'FATAL: ThreadSanitizer' "$tmp/out" || skip 'no thread sanitizer here'
	fail 'the code as it is'
	cat "$tmp/out"
}
spoil 'results are not released' 'loom_fetch_add_acq_rel_sys(pending' 'loom_fetch_add_relaxed_sys(pending' $tsan
spoil 'results are not acquired' 'loom_load_acquire_sys(pending)' 'loom_load_relaxed_sys(pending)' $tsan
spoil 'no lock among the workers of a device' 'done = loom_cas_acq_rel_dev(lock, &open, 1u)' 'done = 1' -DLOOM_PERTURB
spoil 'lower devices are not waited for' 'if (d == c->device ||' 'if (d <= c->device ||' -DLOOM_PERTURB
spoil 'higher devices are not waited for' 'if (d == c->device ||' 'if (d >= c->device ||' -DLOOM_PERTURB
finish
