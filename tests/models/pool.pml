/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of spawned tasks (plugins/shared/sched/pool.dev.h) under term_counter. Workers put tasks into slots, each of
 * which is used once. If there is no slot, they keep the task. They report idle after they have seen the pool empty. A
 * worker may see an old value of `tail`, but none older than its own last addition or than the `head` that it has read.
 * FAULT=busy_late       a worker raises `head` before it is counted as busy
 * FAULT=unready         a slot is taken before it was written
 * FAULT=pool_forgotten  workers report idle without a check of the pool
 * FAULT=head_added      a taker adds to `head` instead of comparing it first */
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
#define head_added 4

byte tail, head, idlers, made = 1, ran, tasks[N];
bool ready[R], slot[R];

#define NEXT(h) ((h) < R && tail > (h) && (ready[h] || FAULT == unready))

inline put(w)
{
	atomic { at = tail; if :: at < R -> tail++; at = tail - 1; seen = tail :: else fi };
	if
	:: at < R ->
		slot[at] = 1;
		ready[at] = 1
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
	h = head;
	if
	:: h < R && NEXT(h) ->
		atomic {
			if
			:: head == h || FAULT == head_added -> head++; got = 1
			:: else
			fi
		}
	:: else
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
	:: !tasks[w] && head < R && NEXT(head) -> take(w)
	:: !tasks[w] && !idle ->
		h = head;
		if
		:: seen = tail
		:: seen < h -> seen = h
		:: seen >= h
		fi;
		if
		:: seen <= h || FAULT == pool_forgotten -> idlers++; idle = 1
		:: else
		fi
	:: idle && idlers == N -> break
	od;
	assert(ran == made && head == tail)
}

init {
	atomic {
		tasks[2] = 1;
		run worker(0); run worker(1); run worker(2)
	}
}
