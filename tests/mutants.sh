# SPDX-License-Identifier: Apache-2.0
# Faults planted in the schedulers and detectors. check-mutants.sh and check-sim.sh source this file. Each fault is a call of
# their function
#   spoil NAME [ranks:]DETECTOR FILE FUNCTION OLD NEW     (tests/spoil.py explains the last four)
busy='if (idle) LOOM_CALL(term, busy, c);'
complete='loom_fetch_add_release_sys(&v->completed[word >> MGWS_EPOCH_SHIFT & 1]'
spoil "the thesis's order: refills where thieves copy" counter public.dev.h mgws_room \
	'!mgws_copied(meta, q, e) && meta->begin[e] < oldest' '0'
spoil 'an attempt on a locked queue counts' counter steal.dev.h mgws_attempt \
	'!mgws_stealable(word)' '!mgws_left(word)'
spoil 'no check before an attempt' counter steal.dev.h mgws_attempt 'mgws_checks_first(c, victim)' '0'
spoil 'busy after the steal is complete' counter steal.dev.h mgws_steal_from "$busy" \
	"$complete, (uint64_t)n); $busy $complete, (uint64_t)-n);"
spoil 'a new epoch forgets copies under way' counter public.dev.h mgws_open_epoch 'mgws_copied(meta, q, e)' '1'
spoil 'idle while thieves copy' counter public.dev.h mgws_is_drained \
	'mgws_copied(meta, q, 0) && mgws_copied(meta, q, 1)' '1'
spoil 'co-owners at the same time' counter owners.dev.h mgws_try_lock_queue 'SCHED_CFG(c, owners) == 1' '1'
spoil 'a co-owner is busy too late' counter publish.dev.h mgws_acquire \
	'if (n && idle) LOOM_CALL(term, busy, c); if (locked) mgws_reopen(c, meta, q);' \
	'if (locked) mgws_reopen(c, meta, q); if (n && idle) LOOM_CALL(term, busy, c);'
spoil 'tasks without room are forgotten' counter claim.dev.h mgws_fill_queues \
	'b->next += mgws_publish(c, c->initial, b->next, ~0ull, b->end - b->next);' \
	'(void)mgws_publish(c, c->initial, b->next, ~0ull, b->end - b->next); b->next = b->end;'
spoil 'busy after tasks left the overflow list' counter list.dev.h mgws_list_refill \
	"$busy mgws_shrink_list(c, s, count, n);" "mgws_shrink_list(c, s, count, n); $busy"
spoil 'a slot of the pool is free before it is read' counter ids.dev.h mgws_reserve \
	'loom_store_relaxed_sys(&taken[slot], 1u);' ''
spoil 'the end wakes no sleepers' counter idle.dev.h mgws_search_for_work 'sched_wake(c, event, ~0u);' ';'
spoil 'votes without regard to thieves' tree term_tree.dev.h term_tree_step 'stolen_out != mine->stolen_out' '0'
spoil 'votes before the children' tree term_tree.dev.h term_tree_children 'if (vote >> 1 != round) return 0;' ''
spoil 'a device stays full' hcounter term_hcounter.dev.h term_hcounter_busy \
	'loom_store_relaxed_sys(reported, was + TERM_HCOUNTER_BUSY);' ''
spoil 'a busy device is reported full afterwards' hcounter term_hcounter.dev.h term_hcounter_busy \
	'loom_load_relaxed_sys(reported) != was' '0'
spoil 'idle while a grant is not taken' hcounter mailbox.dev.h mgws_has_untaken 'mine->untaken != 0' '0'
spoil 'a proxy is idle while its range is in use' hcounter idle.dev.h mgws_proxy \
	'loom_from_lane0(c, some)' 'sched_lane(c)->count'
spoil 'a request is granted twice' hcounter mailbox.dev.h mgws_grant 'mine->request - thief->granted == MGWS_NEXT' '1'
spoil 'a grant of an older request' hcounter mailbox.dev.h mgws_request \
	'loom_load_acquire_sys(&m->granted) == (victim->asked & MGWS_NUMBER)' 'm->granted'
# Faults that need ranks that share tasks.
spoil 'checks the devices of its own rank only' ranks:hcounter term_hcounter.dev.h term_hcounter_count \
	'c->devices + (uint32_t)term_hcounter_devices(c)[c->device].remote' 'c->devices'
spoil 'does not scan again' ranks:hcounter term_hcounter.dev.h term_hcounter_all \
	'first != ~0ull && term_hcounter_scan(c, all - 1, all) == first' 'first != ~0ull'
spoil 'each rank claims by a word of its own' ranks:hcounter sched_mgws.dev.h mgws_begin \
	'SCHED_CFG(c, remote_workers) && g->job ? (void *)g->job : (void *)g' '(void *)g'
spoil 'the end wakes sleepers of its own rank only' ranks:hcounter idle.dev.h mgws_search_for_work 'mgws_event(c)' \
	'&mgws_global(c)->common.event'
spoil 'never busy after a claim from another rank' ranks:hcounter ranks.dev.h mgws_claim_remote \
	'if (*idle) LOOM_CALL(term, busy, c); *idle = 0;' \
	'*idle = 0;'
spoil 'a steal by RMA never completes' ranks:tree steal.dev.h mgws_steal_from \
	'mgws_rma_complete(c, (uint32_t)victim, epoch, n);' 'mgws_rma_complete(c, (uint32_t)victim, epoch, 0);'
spoil 'a rank votes before those below it' ranks:tree term_tree.dev.h term_tree_rank_children \
	'if (vote >> 1 != round) return 0;' ''
