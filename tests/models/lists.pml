/* SPDX-License-Identifier: Apache-2.0 */
/* The overflow lists under term_counter. A list has tasks for which a worker has no room, and tasks for another kind of
 * device. Workers 0 and 1 may take tasks from the list. Worker 2 only adds tasks, so it must not report idle while
 * tasks are left.
 * -DTAKES: worker 2 may also take tasks, as from the list for all kinds of devices, and checks the list before it
 * reports idle.
 * FAULT=busy_late       a worker lowers the count before it is counted as busy
 * FAULT=list_forgotten  workers report idle without a check of the list */
#include "fault.pml"
#define N 3
#ifndef T
#define T 4
#endif
#define busy_late 1
#define list_forgotten 2
#ifdef TAKES
#define MAY_TAKE(w) 1
#else
#define MAY_TAKE(w) ((w) != 2)
#endif

byte count, idlers, made = 1, tasks[N];
bool lock;

inline take(w)
{
	atomic { !lock -> lock = 1 };
	if
	:: count ->
		if
		:: FAULT == busy_late -> count--
		:: else
		fi;
		if
		:: idle -> idlers--; idle = 0
		:: else
		fi;
		tasks[w]++;
		if
		:: FAULT == busy_late
		:: else -> count--
		fi
	:: else
	fi;
	lock = 0
}

proctype worker(byte w)
{
	bool idle;
	do
	:: atomic { tasks[w] -> tasks[w]-- }
	:: atomic { tasks[w] && made < T -> made++; tasks[w]++ }
	:: tasks[w] && made < T -> /* the worker's queues are full, or the task is for others */
		atomic { !lock -> lock = 1 };
		atomic { if :: made < T -> made++; count++ :: else fi };
		lock = 0
	:: !tasks[w] && MAY_TAKE(w) && count -> take(w)
	:: !tasks[w] && !idle && (!count || FAULT == list_forgotten) -> idlers++; idle = 1
	:: idle && idlers == N -> break
	od;
	assert(!count && !tasks[0] && !tasks[1] && !tasks[2])
}

init {
	atomic {
		tasks[2] = 1;
		run worker(0); run worker(1); run worker(2)
	}
}
