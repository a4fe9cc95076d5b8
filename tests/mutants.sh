# SPDX-License-Identifier: Apache-2.0
# Faults planted in the schedulers and detectors, sourced by those who look for them: each is a call of their
#   spoil NAME [ranks:]DETECTOR FILE FUNCTION OLD NEW     (tests/spoil.py has the last four)
busy='if (idle) LOOM_CALL(term, busy, c);'
complete='loom_fetch_add_release_sys(&v->completed[word >> MGWS_EPOCH_SHIFT & 1]'
spoil "the thesis's order: refills where thieves copy" counter public.dev.h mgws_room \
	'!mgws_copied(books, q, e) && books->begin[e] < oldest' '0'
spoil 'an attempt on a locked queue counts' counter steal.dev.h mgws_attempt \
	'!mgws_stealable(word)' '!mgws_left(word)'
spoil 'no look before an attempt' counter steal.dev.h mgws_attempt 'mgws_looks_first(c, victim)' '0'
spoil 'busy after the steal is complete' counter steal.dev.h mgws_steal_from "$busy" \
	"$complete, (uint64_t)n); $busy $complete, (uint64_t)-n);"
spoil 'a new epoch forgets copies under way' counter public.dev.h mgws_open_epoch 'mgws_copied(books, q, e)' '1'
spoil 'idle while thieves copy' counter public.dev.h mgws_quiet \
	'mgws_copied(books, q, 0) && mgws_copied(books, q, 1)' '1'
spoil 'co-owners at the same time' counter owners.dev.h mgws_try_turn 'SCHED_CFG(c, owners) == 1' '1'
spoil 'a co-owner is busy too late' counter share.dev.h mgws_acquire \
	'if (n && idle) LOOM_CALL(term, busy, c); if (turn) mgws_settle(c, books, q);' \
	'if (turn) mgws_settle(c, books, q); if (n && idle) LOOM_CALL(term, busy, c);'
spoil 'who takes spilled tasks is busy too late' counter spill.dev.h mgws_unspill \
	"$busy mgws_close_list(c, s, count, n);" "mgws_close_list(c, s, count, n); $busy"
spoil 'a slot of the pool is free before it is read' counter ids.dev.h mgws_reserve \
	'loom_store_relaxed_sys(&taken[slot], 1u);' ''
spoil 'who sees the end wakes nobody' counter idle.dev.h mgws_search 'sched_wake(c, bell, ~0u);' ';'
spoil 'votes without regard to thieves' tree term_tree.dev.h term_tree_step 'robbed != mine->robbed' '0'
spoil 'votes before the children' tree term_tree.dev.h term_tree_children 'if (vote >> 1 != round) return 0;' ''
spoil 'a device stays full' hcounter term_hcounter.dev.h term_hcounter_busy \
	'loom_store_relaxed_sys(said, was + TERM_HCOUNTER_BUSY);' ''
spoil 'a busy device is said to be full afterwards' hcounter term_hcounter.dev.h term_hcounter_busy \
	'loom_load_relaxed_sys(said) != was' '0'
spoil 'idle while mail is not taken' hcounter mail.dev.h mgws_owes 'mine->owed != 0' '0'
spoil 'a postmaster is idle while its range is in use' hcounter idle.dev.h mgws_postmaster \
	'loom_from_lane0(c, some)' 'sched_lane(c)->count'
spoil 'a wish is granted twice' hcounter mail.dev.h mgws_mail 'asked != peer->granted' '1'
spoil 'mail of an older wish' hcounter mail.dev.h mgws_ask 'loom_load_acquire_sys(&m->granted) == peer->asked' 'm->granted'
# Ranks that share tasks.
spoil 'looks at the devices of its own rank only' ranks:hcounter term_hcounter.dev.h term_hcounter_count \
	'c->devices + (uint32_t)term_hcounter_devices(c)[c->device].far' 'c->devices'
spoil 'does not look again' ranks:hcounter term_hcounter.dev.h term_hcounter_all \
	'first != ~0ull && term_hcounter_look(c, all - 1, all) == first' 'first != ~0ull'
spoil 'each rank claims by a word of its own' ranks:hcounter sched_mgws.dev.h mgws_begin \
	'SCHED_CFG(c, far) && g->job ? (void *)g->job : (void *)g' '(void *)g'
spoil 'who sees the end wakes its own rank only' ranks:hcounter idle.dev.h mgws_search 'mgws_bell(c)' \
	'&mgws_global(c)->common.bell'
spoil 'who claims from another rank is never busy' ranks:hcounter claim.dev.h mgws_claim_far 'if (*idle) LOOM_CALL(term, busy, c); *idle = 0;' \
	'*idle = 0;'
spoil 'who steals by asking is never done copying' ranks:tree steal.dev.h mgws_steal_from \
	'mgws_ask_complete(c, (uint32_t)victim, epoch, n);' 'mgws_ask_complete(c, (uint32_t)victim, epoch, 0);'
spoil 'a rank votes before those below it' ranks:tree term_tree.dev.h term_tree_rank_children 'if (vote >> 1 != round) return 0;' ''
