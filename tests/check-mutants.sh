# SPDX-License-Identifier: Apache-2.0
# Spoils the schedulers' code in one place at a time: the played schedules of test_sched_deterministic must
# notice each. Not tried: weaker memory orders, which they cannot see, and a thief that does not wait for room
# in its own ring, or a thief that forgets the rest of its mail, which they do not reach (tests/models/refill.pml
# and mail.pml do).
. tests/lib.sh
work=$tmp/tree
mkdir -p "$work/plugins"
cp -r plugins/sched_mgws "$work/plugins/"
mkdir "$work/tests" && cp tests/*.h "$work/tests/" && cp tests/test_sched_deterministic.c "$work/tests/"
mkdir "$tmp/run" && ln -s "$B/plugins" "$tmp/run/plugins" && mkdir "$tmp/run/tests"

# spoil NAME FILE OLD NEW: python's replace of the only occurrence.
spoil() {
	rm -rf "$work/plugins/sched_mgws" && cp -r plugins/sched_mgws "$work/plugins/"
	python3 - "$work/plugins/sched_mgws/$2" "$3" "$4" <<'END' || { fail "$1: no such place in $2"; return; }
import sys
path, old, new = sys.argv[1:]
text = open(path).read()
if text.count(old) != 1:
    sys.exit(1)
open(path, "w").write(text.replace(old, new))
END
	gcc -std=gnu11 -O1 -w -Icore/include -D_GNU_SOURCE -pthread "$work/tests/test_sched_deterministic.c" \
		"$B/obj/tests/support.o" -ldl -lcunit -o "$tmp/run/tests/mutant" >"$tmp/cc" 2>&1 ||
		{ fail "$1 does not compile"; cat "$tmp/cc"; return; }
	if TURNS_GAMES=12000 TURNS_STOP=1 timeout 100 "$tmp/run/tests/mutant" >"$tmp/out" 2>&1; then
		fail "$1 was not noticed"
	else
		echo "noticed: $1: $(grep -m1 -o 'seed [0-9]*: .*' "$tmp/out" | cut -c1-70)"
	fi
}
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }

spoil 'a claim on a locked queue counts' steal.dev.h \
	'if (!sched_mgws_offers(word))' 'if (!sched_mgws_left(word))'
spoil 'no look before a claim' steal.dev.h \
	'if ((!bits || *bits & bit) && !sched_mgws_offers' 'if (0 && !sched_mgws_offers'
spoil 'busy after the steal is complete' steal.dev.h \
	'	loom_barrier_lanes(c);
	if (idle)
		LOOM_CALL(term, busy, c);
	if (c->lane == 0) {' \
	'	loom_fetch_add_release_sys(&v->completed[word >> MGWS_EPOCH_SHIFT & 1], (uint64_t)n);
	if (idle)
		LOOM_CALL(term, busy, c);
	loom_fetch_add_release_sys(&v->completed[word >> MGWS_EPOCH_SHIFT & 1], (uint64_t)-n);
	if (c->lane == 0) {'
spoil 'a new epoch forgets copies under way' public.dev.h \
	'if (sched_mgws_copied(own, q, e))' 'if (1)'
spoil 'idle while thieves copy' public.dev.h \
	'return sched_mgws_copied(own, q, 0) && sched_mgws_copied(own, q, 1);' 'return 1;'
spoil 'co-owners at the same time' public.dev.h \
	'if (SCHED_CFG(c, owners) == 1)
		return 1;' 'return 1;'
spoil 'a co-owner is busy too late' owner.dev.h \
	'	if (n && idle)
		LOOM_CALL(term, busy, c);
	if (held)
		sched_mgws_settle(c, own, q);' \
	'	if (held)
		sched_mgws_settle(c, own, q);
	if (n && idle)
		LOOM_CALL(term, busy, c);'
spoil 'who takes spilled tasks is busy too late' lists.dev.h \
	'	if (idle)
		LOOM_CALL(term, busy, c);
	sched_mgws_close_list(c, s, count, n);' \
	'	sched_mgws_close_list(c, s, count, n);
	if (idle)
		LOOM_CALL(term, busy, c);'
spoil 'a slot of the pool is free before it is read' transfer.dev.h \
	'		loom_store_relaxed_sys(&taken[slot], 1u); /* ours to see until it is loaded */' ''
spoil 'who sees the end wakes nobody' idle.dev.h \
	'		if (done) /* the others may sleep */
			sched_wake(c, &common->bell, ~0u);' '		if (done)
			;'
spoil 'votes without regard to thieves' term_tree.dev.h \
	'uint32_t work = robbed != mine->robbed;' 'uint32_t work = 0;'
spoil 'votes before the children' term_tree.dev.h \
	'		if (vote >> 1 != round)
			return 0;' ''
spoil 'a device stays full' term_hcounter.dev.h \
	'	loom_store_relaxed_sys(said, was + TERM_HCOUNTER_BUSY);' ''
spoil 'a busy device is said to be full afterwards' term_hcounter.dev.h \
	'while (loom_load_relaxed_sys(said) != was && !loom_stopped(c))' 'while (0)'
spoil 'idle while mail is not taken' mail.dev.h 'return mine->owed != 0;' 'return 0;'
spoil 'a postmaster is idle while its range is in use' idle.dev.h \
	'if (!idle && !loom_from_lane0(c, some)) {' 'if (!idle && !sched_lane(c)->count) {'
spoil 'a wish is granted twice' mail.dev.h 'held = asked != peer->granted;' 'held = 1;'
spoil 'mail of an older wish' mail.dev.h \
	'if (loom_load_acquire_sys(&m->granted) == peer->asked &&' 'if (m->granted &&'
finish
