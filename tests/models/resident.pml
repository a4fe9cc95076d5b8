/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that stay on a GPU between the runs of a program, and leave after a time without a run
 * (plugins/device_common/gpu/resident.c, loom_gpu_leaves() and loom_gpu_await_order() in plugins/device_common/compose/kernel.dev.h).
 * The host writes orders: READY and GO of a sample, and RETIRE. Worker 0 reads the orders and passes them on to the
 * other workers. If there is no new order, it may leave at any time. There are W workers and S samples. Each worker
 * must run each sample once, after all workers have got ready for it, and the sample must end.
 *   FAULT=blind           worker 0 leaves without reading the order once more
 *   FAULT=unfenced_device worker 0 reads the order before the host can see that it wants to leave (ASKS)
 *   FAULT=unfenced_host   the host reads `leave` before worker 0 can see the order
 *   FAULT=hasty           the host does not wait until worker 0 has decided whether it leaves
 *   FAULT=twice           the host treats ASKS as if the workers had left
 *   FAULT=kept            the host launches workers without resetting `leave`
 *   FAULT=stale           RETIRE stays in the gate when the workers have left
 *   FAULT=not_ready       the host begins a sample before the workers are ready
 *   FAULT=early           worker 0 leaves before all workers have seen the last phase in the gate
 *   FAULT=ready_before    the host does not reset `ready`, so workers that left seem ready
 *   FAULT=run_again       workers execute an order and leave, and the host gives the same order again */
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
#define LEFT 20 /* the workers have left; the phase of their last order is added */

byte order, leave, ready, done;     /* in host memory */
byte gate, arrived, finished, left, settled; /* in the memory of the GPU */
byte ran[S + 1], prepared[S + 1];   /* the number of workers that have run, and that have got ready for, each sample */
byte alive;
byte idles; /* only in the model: how often worker 0 has been idle for long enough */

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

/* Gives an order to resident workers. `gone` becomes 1 if they have left and will not see the order. */
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
	alive == 0 || FAULT == twice; /* the stream executes kernels in order */
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
		if /* models rest() */
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
