/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that stay on a GPU between runs of a program, and leave after a time without one (plugins/shared/gpu/resident.c,
 * loom_gpu_leaves() and loom_gpu_await_order() in plugins/shared/compose/kernel.dev.h). The host writes orders, READY and GO of a
 * sample, and RETIRE; worker 0 reads them and passes them on. It may leave at any time without a new order. W workers, S samples.
 * Each sample must be run once by each worker, after all have got ready for it, and must end.
 *   FAULT=blind           worker 0 leaves without reading the order once more
 *   FAULT=unfenced_device worker 0 reads the order before the host can see that it asks
 *   FAULT=unfenced_host   the host reads whether it asks before the worker can see the order
 *   FAULT=hasty           the host does not wait for the decision of a worker that asks
 *   FAULT=twice           the host takes a worker that asks for one that has left
 *   FAULT=kept            the host launches workers and leaves the word of those that left
 *   FAULT=stale           RETIRE stays in the gate when the workers have left
 *   FAULT=not_ready       the host begins a sample for workers that are not ready
 *   FAULT=early           worker 0 leaves while others are on their way to the phase in the gate
 *   FAULT=ready_before    the host takes workers that left for ready ones
 *   FAULT=run_again       the host takes workers that have carried out its order and left for ones that did not see it */
#include "fault.pml"
#ifndef W
#define W 2
#endif
#ifndef S
#define S 2
#endif
#ifndef L
#define L 3
#endif
#define blind 1
#define unfenced_device 2
#define unfenced_host 3
#define hasty 4
#define twice 5
#define kept 6
#define stale 7
#define not_ready 8
#define early 9
#define ready_before 10
#define run_again 11

#define READY(n) (2 * (n))
#define GO(n) (2 * (n) + 1)
#define NONE 0
#define RETIRE 99
#define STAYS 0
#define ASKS 1
#define LEFT 20 /* and the phase of the last order */

byte order, leave, ready, done;     /* in host memory */
byte gate, arrived, finished, left, settled; /* in the GPU's */
byte ran[S + 1], prepared[S + 1];   /* workers that have */
byte alive;
byte idles; /* not in the code: how often worker 0 has found so */

inline await_order(last, phase)
{
	if
	:: id == 0 ->
		do
		:: order != last -> phase = order; break
		:: atomic { order == last && (settled == last || FAULT == early) && idles < L -> idles++ }; /* idle for long enough */
			byte seen;
			seen = order;
			leave = ASKS;
			if
			:: FAULT == unfenced_device
			:: FAULT != unfenced_device -> seen = order
			fi;
			if
			:: FAULT == blind || seen == last -> leave = LEFT + last; phase = RETIRE; break
			:: else -> leave = STAYS
			fi
		od;
		gate = phase
	:: else -> atomic { gate == last + 1 || gate == RETIRE -> phase = gate }
	fi
}

proctype worker(byte id, first)
{
	byte last = NONE, phase;
	do
	:: phase = first;
		if
		:: last != NONE -> await_order(last, phase)
		:: else
		fi;
		if
		:: phase == RETIRE -> break
		:: else
		fi;
		prepared[phase / 2]++;
		atomic {
			arrived++;
			if
			:: arrived == W -> arrived = 0; finished = 0; settled = phase; ready = phase
			:: else
			fi
		};
		last = phase;
		await_order(last, phase);
		if
		:: phase == RETIRE -> break
		:: else
		fi;
		assert(phase == last + 1 && prepared[phase / 2] % W == 0);
		ran[phase / 2]++;
		last = phase;
		atomic {
			finished++;
			if
			:: finished == W -> settled = phase; done = phase
			:: else
			fi
		}
	od;
	atomic {
		left++;
		if
		:: left == W -> left = 0; settled = NONE; gate = (FAULT == stale -> gate : NONE)
		:: else
		fi
	};
	alive--
}

/* `gone`: the workers have left, and do not see it. */
inline post(phase, gone)
{
	byte had;
	had = leave;
	order = phase;
	if
	:: FAULT == unfenced_host
	:: FAULT == hasty -> had = leave
	:: FAULT == twice -> had = (leave == ASKS -> LEFT + NONE : leave)
	:: else -> atomic { leave != ASKS -> had = leave }
	fi;
	gone = (had >= LEFT && (had != LEFT + phase || FAULT == run_again))
}

inline launch(phase)
{
	alive == 0 || FAULT == twice; /* the order of the stream */
	order = phase;
	if
	:: FAULT != kept -> leave = STAYS
	:: else
	fi;
	if
	:: FAULT != ready_before -> ready = NONE
	:: else
	fi;
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

inline get_ready(phase)
{
	if
	:: resides && posted == phase
	:: !resides -> launch(phase)
	:: resides && posted != phase ->
		post(phase, gone);
		posted = phase;
		if
		:: gone -> launch(phase)
		:: else
		fi
	fi
}

active proctype host()
{
	byte n, i, posted;
	bool resides, gone;
	for (n : 1 .. S) {
		do
		:: get_ready(READY(n));
			ready == READY(n) || FAULT == not_ready;
			post(GO(n), gone);
			posted = GO(n);
			if
			:: gone -> resides = 0
			:: else -> break
			fi
		od;
		done == GO(n);
		assert(ran[n] == W);
		if /* rest() */
		:: n < S ->
			post(READY(n + 1), gone);
			posted = READY(n + 1);
			resides = !gone
		:: 1
		fi
	}
	if
	:: resides -> post(RETIRE, gone)
	:: else
	fi;
	alive == 0
}
