/* SPDX-License-Identifier: Apache-2.0 */
/* With quick = yes: workers that stay on a GPU between the runs of a program, and leave after a time without a run
 * (plugins/device_common/gpu/resident.c; loom_gpu_take_order(), loom_gpu_hear(), loom_gpu_leaves() and loom_gpu_leave_small() in
 * plugins/device_common/compose/quick.dev.h; mgws_call_all() in plugins/sched_mgws/publish.dev.h). The host writes orders: READY
 * and GO of a sample, and RETIRE. Worker 0 takes the orders and passes them on to the other workers. If there is no new order, worker 0 may decide at any time that the workers leave.
 * There are W workers and S samples of three kinds:
 *   FULL    all workers take part. The host orders them to get ready for the next sample
 *   QUICK   all workers take part, and then get ready for the next sample without an order
 *   SMALL   only the first K workers take part, run a task each, and leave. But one of them may call all workers first.
 *           Then all of them also take part as in a quick sample
 * The host may stop the last sample at any time. Each task must run once, no worker may use memory that is not reset, none
 * may reset memory that others use, and each sample must end.
 *   FAULT=blind           worker 0 leaves without reading the order once more
 *   FAULT=unfenced_device worker 0 reads the order before the host can see that it wants to leave (ASKS)
 *   FAULT=unfenced_host   the host reads `leave` before worker 0 can see the order
 *   FAULT=hasty           the host does not wait until worker 0 has decided whether it leaves
 *   FAULT=twice           the host treats ASKS as if the workers had left
 *   FAULT=kept            the host launches workers without resetting `leave`
 *   FAULT=stale           RETIRE stays in the gate when the workers have left
 *   FAULT=early           worker 0 leaves before all workers have reached the last phase
 *   FAULT=run_again       workers execute an order and leave, and the host gives the same order again
 *   FAULT=unsettled       a worker begins a sample before all workers have reset memory
 *   FAULT=reset_early     a worker resets memory when it has finished a quick sample, although others have not
 *   FAULT=retires_early   worker 0, which has left a small sample, takes RETIRE although others still run the sample
 *   FAULT=settled_first   the last worker stores `settled` before `ready`
 *   FAULT=both            a worker that has called all workers also counts as one that has left
 *   FAULT=own_skipped     a worker that is called does not run its own task first
 *   FAULT=once_more       worker 0 takes the order that the small sample before has executed for a new one
 *   FAULT=forgotten       the host takes workers that have executed a quick order, got ready and left for workers that
 *                         have left without the order */
#include "fault.pml"
#ifndef W
#define W 2
#endif
#ifndef S
#define S 2
#endif
#ifndef K
#define K 1
#endif
#ifndef L
#define L 2
#endif
#define blind 1
#define unfenced_device 2
#define unfenced_host 3
#define hasty 4
#define twice 5
#define kept 6
#define stale 7
#define early 8
#define run_again 9
#define unsettled 10
#define reset_early 11
#define both 12
#define own_skipped 13
#define once_more 14
#define forgotten 15
#define retires_early 16
#define settled_first 17

#define READY(n) (2 * (n))
#define GO(n) (2 * (n) + 1)
#define IS_GO(phase) ((phase) & 1)
#define NONE 0
#define RETIRE 30
#define STAYS 0
#define ASKS 1
#define LEFT 100 /* the workers have left; the phase of their last order is added */

/* An order: the phase, the kind, and CALLED. */
#define FULL 1
#define QUICK 2
#define SMALL 3
#define CALLED 4
#define ORDER(phase, kind) ((phase) * 8 + (kind))
#define PHASE(order) ((order) / 8)
#define KIND(order) ((order) & 3)
#define IS_NEWS(phase, heard) ((phase) == RETIRE || (phase) > (heard))

byte order, leave, ready, done, end[W];    /* in host memory; end: the last small sample that each worker has left */
byte call, arrived, finished, settled;     /* in the memory of the GPU */
byte gone_workers, small; /* small: number of workers that have left the small sample */
byte alive, idles; /* idles: only in the model: how often worker 0 has been idle for long enough */
byte own[S + 1], joined[S + 1]; /* number of own tasks that ran in a small sample; number of workers that ran a whole sample */
byte dirty;       /* the sample that has changed memory since the last reset; 0: none */
byte users;      /* number of workers that use memory */
byte reset_parts; /* number of workers that have reset their part */

/* Sets `mine` to the order that worker `id` executes next. */
inline take_order()
{
	last = (left -> heard + 1 : heard);
	do
	:: atomic { left && PHASE(call) == heard && call & CALLED -> mine = call; break }
	:: atomic {
			IS_NEWS(PHASE(order), (FAULT == once_more && left -> heard - 1 : last)) &&
			(settled == last || (PHASE(order) == RETIRE && (!left || FAULT == retires_early)) || FAULT == unsettled) ->
			mine = order
		};
		call = mine;
		break
	:: atomic {
			!IS_NEWS(PHASE(order), last) && (settled == last || FAULT == early) && idles < L ->
			idles++; seen = order
		}; /* idle for long enough */
		again = order;
		leave = ASKS;
		if
		:: FAULT == unfenced_device
		:: FAULT == blind -> again = seen
		:: else -> again = order
		fi;
		if
		:: again == seen -> leave = LEFT + last; mine = ORDER(RETIRE, FULL); call = mine; break
		:: else -> leave = STAYS
		fi
	od
}

inline hear()
{
	atomic {
		(IS_NEWS(PHASE(call), heard) && (KIND(call) != SMALL || call & CALLED || id < K)) ||
		(left && PHASE(call) == heard && call & CALLED) ->
		mine = call
	}
}

inline await_order()
{
	if
	:: id == 0 -> take_order()
	:: else -> hear()
	fi;
	small_part = KIND(mine) == SMALL && !(mine & CALLED && ((left && PHASE(mine) == heard) || id >= K ||
								      FAULT == own_skipped));
	left = 0;
	heard = PHASE(mine);
	kind = KIND(mine)
}

/* The last worker tells the host and the others that all workers are ready for a phase. */
inline tell_ready(phase)
{
	if
	:: last && FAULT == settled_first -> settled = phase; ready = phase
	:: last && FAULT != settled_first -> ready = phase; settled = phase
	:: else
	fi
}

inline end_small()
{
	end[id] = heard;
	atomic {
		small++;
		if
		:: small == K -> small = 0; last = 1
		:: else -> last = 0
		fi
	};
	tell_ready(heard + 1)
}

proctype worker(byte id, first)
{
	byte heard = NONE, kind = NONE, mine, last, seen, again;
	bool left, small_part, called;
	heard = first;
	goto get_ready;
wait:
	await_order();
took:
	if
	:: heard == RETIRE -> goto leaves
	:: heard != RETIRE && !IS_GO(heard) -> goto get_ready
	:: else
	fi;
	called = 0;
	if
	:: small_part ->
		assert(dirty == 0 || dirty == heard / 2);
		own[heard / 2]++;
		if
		:: !called /* the task makes no tasks available */
		:: called = 1;
			atomic { assert(PHASE(call) == heard); call = call | CALLED } /* worker 0 has passed the order on */
		fi;
		if
		:: !called -> left = 1; end_small(); goto wait
		:: called && FAULT == both -> end_small()
		:: else
		fi
	:: else
	fi;
	/* the whole sample */
	atomic {
		assert(dirty == 0 || dirty == heard / 2);
		dirty = heard / 2;
		users++
	};
	atomic { joined[heard / 2]++; users-- };
	atomic {
		finished++;
		if
		:: finished == W ->
			small = 0;
			if
			:: kind == FULL -> settled = heard
			:: else
			fi;
			done = heard;
			last = 1
		:: else -> last = 0
		fi
	};
	if
	:: kind == FULL -> goto wait
	:: kind != FULL && last -> settled = heard
	:: else
	fi;
	settled == heard || FAULT == reset_early;
	heard++;
get_ready:
	atomic { assert(users == 0); reset_parts++ };
	atomic {
		arrived++;
		if
		:: arrived == W ->
			assert(reset_parts == W);
			reset_parts = 0;
			arrived = 0;
			finished = 0;
			dirty = 0;
			last = 1
		:: else -> last = 0
		fi
	};
	tell_ready(heard);
	goto wait;
leaves:
	atomic {
		gone_workers++;
		if
		:: gone_workers == W ->
			gone_workers = 0;
			settled = NONE;
			call = (FAULT == stale -> call : NONE)
		:: else
		fi
	};
	alive--
}

/* Gives an order to resident workers. `gone` becomes 1 if they have left and will not see the order. */
inline post(phase, k)
{
	had = leave;
	order = ORDER(phase, k);
	if
	:: FAULT == unfenced_host
	:: FAULT == hasty -> had = leave
	:: FAULT == twice -> had = (leave == ASKS -> LEFT + NONE : leave)
	:: else -> atomic { leave != ASKS -> had = leave }
	fi;
	/* After a quick order, workers may have got ready for the next sample before they left. */
	gone = (had >= LEFT && (had < LEFT + phase || (had == LEFT + phase && FAULT == run_again) ||
				(had > LEFT + phase && FAULT == forgotten)))
}

inline launch(phase)
{
	alive == 0 || FAULT == twice; /* the stream executes kernels in order */
	order = ORDER(phase, NONE);
	if
	:: FAULT != kept -> leave = STAYS
	:: else
	fi;
	ready = NONE;
	atomic {
		assert(alive == 0);
		for (i : 0 .. W - 1) {
			alive++;
			run worker(i, phase)
		}
	};
	resides = 1;
	posted = phase
}

inline get_ready_for(phase)
{
	if
	:: resides && posted == phase
	:: !resides -> launch(phase)
	:: resides && posted != phase ->
		post(phase, NONE);
		posted = phase;
		if
		:: gone -> launch(phase)
		:: else
		fi
	fi
}

active proctype host()
{
	byte n, i, k, had, posted, was = FULL;
	bool resides, gone;
	for (n : 1 .. S) {
		select(k : FULL .. SMALL);
		gone = 1;
		if
		:: resides && was != FULL -> /* the workers get ready without an order */
			if
			:: k == FULL -> ready == READY(n) || alive == 0
			:: else
			fi;
			post(GO(n), k);
			resides = !gone
		:: else
		fi;
		do
		:: !gone -> break
		:: gone ->
			get_ready_for(READY(n));
			ready == READY(n);
			post(GO(n), k);
			if
			:: gone -> resides = 0
			:: else
			fi
		od;
		posted = GO(n);
		i = 0;
		if
		:: n == S -> goto stop /* the program stops the run at any time */
		:: 1
		fi;
		do
		:: done == GO(n) -> break
		:: atomic { k == SMALL && i < K && end[i] == GO(n) -> i++ }
		:: i == K -> break
		od;
		assert(own[n] == (k == SMALL -> K : 0));
		assert(joined[n] == W || (k == SMALL && joined[n] == 0));
		was = k;
		if /* models rest() */
		:: k != FULL -> posted = READY(n + 1)
		:: k == FULL && n < S ->
			post(READY(n + 1), NONE);
			posted = READY(n + 1);
			resides = !gone
		:: k == FULL
		fi
	}
stop:
	if
	:: resides || alive -> post(RETIRE, FULL)
	:: else
	fi;
	alive == 0
}
