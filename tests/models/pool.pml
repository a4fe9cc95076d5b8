/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of spawned tasks (plugins/sched_common/pool.dev.h) under term_counter. Workers put tasks into slots, each of
 * which is used once. If there is no slot, they keep the task. They report idle after they have seen the pool empty. A
 * worker may see an old value of `tail`, but none older than its own last addition or than the `head` that it has read.
 * FAULT=busy_late       a worker raises `head` before it is counted as busy
 * FAULT=unready         a slot is taken before it was written
 * FAULT=pool_forgotten  workers report idle without a check of the pool
 * FAULT=claim_kept      a worker that finds no slot does not add to `open` what it has subtracted
 * FAULT=unclaimed       a taker adds to `head` although its subtraction found no slot */
#include "fault.pml"
#define N 3
#ifndef T
#define T 4
#endif
#ifndef R
#define R 2
#endif
#define busy_late 1
#define unready 2
#define pool_forgotten 3
#define claim_kept 4
#define unclaimed 5

byte tail, head, idlers, made = 2, ran, tasks[N];
short open;
bool ready[R], slot[R];

inline put(w)
{
	atomic { at = tail; if :: at < R -> tail++; at = tail - 1; seen = tail :: else fi };
	if
	:: at < R ->
		slot[at] = 1;
		ready[at] = 1;
		open++
	:: else -> tasks[w]++
	fi
}

inline take(w)
{
	if
	:: FAULT == busy_late
	:: else ->
		if
		:: idle -> idlers--; idle = 0
		:: else
		fi
	fi;
	atomic { got = open > 0 || FAULT == unclaimed; open-- };
	if
	:: got ->
		atomic { h = head; head++ };
		assert(h < R);
		if
		:: ready[h]
		:: FAULT == unready
		fi
	:: else ->
		if
		:: FAULT == claim_kept
		:: else -> open++
		fi
	fi;
	if
	:: got ->
		assert(slot[h]);
		slot[h] = 0;
		tasks[w]++;
		got = 0
	:: else
	fi;
	if
	:: idle && tasks[w] -> idlers--; idle = 0
	:: else
	fi
}

proctype worker(byte w)
{
	bool idle, got;
	byte at, h, seen;
	do
	:: atomic { tasks[w] -> tasks[w]--; ran++ }
	:: tasks[w] && made < T -> atomic { if :: made < T -> made++; got = 1 :: else fi };
		if
		:: got -> got = 0; put(w)
		:: else
		fi
	:: !tasks[w] && open > 0 -> take(w)
	:: !tasks[w] && !idle ->
		h = head;
		if
		:: seen = tail
		:: seen < h -> seen = h
		:: seen >= h
		fi;
		if
		:: seen <= h || FAULT == pool_forgotten -> idlers++; idle = 1
		:: else -> open > 0 || head > h /* the worker searches until one of these holds */
		fi
	:: idle && idlers == N -> break
	od;
	assert(ran == made && head == tail && open <= 0)
}

init {
	atomic {
		tasks[1] = 1;
		tasks[2] = 1;
		run worker(0); run worker(1); run worker(2)
	}
}
