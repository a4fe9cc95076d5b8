/* SPDX-License-Identifier: Apache-2.0 */
/* The public queue of sched_mgws with its thieves, a local queue, and term_counter. Every task must run once, all tasks
 * must have run when a worker leaves, and no worker may be stuck. An atomic access, also to the whole 64-bit word, or a
 * copy of a slot is one step.
 * -DN=2 workers  -DOWNERS=1 per queue  -DT=15 tasks  -DWIDE: the root spawns all (default: a binary tree)
 * -DR=4 slots of a ring, at least 2  -DL=3 of a local queue  -DBITS=3 of the attempts field
 * FAULT=name: a planted fault, which the search must find (see check-models.sh) */
#include "ring.pml"

/* Task t spawns the tasks 2t and 2t + 1. With WIDE the root spawns all other tasks. */
inline execute(me, t)
{
	run_task(t);
#ifdef WIDE
	if
	:: t == 1 ->
		k = 2;
		do
		:: k <= T -> spawn(me, k); k++
		:: else -> break
		od;
		k = 0
	:: else
	fi
#else
	if
	:: 2 * t <= T ->
		k = 2 * t;
		do
		:: k <= T && k <= 2 * t + 1 -> spawn(me, k); k++
		:: else -> break
		od;
		k = 0
	:: else
	fi
#endif
}

proctype worker(byte w)
{
	byte mine[L], held_tasks, n, i, k, t, v, e, left, taken, room, old, at, keep, ep, in_place, loot;
	bool idle, ok;
	byte me = QUEUE(w);
	if
	:: w == 0 -> d_step { mine[0] = 1; held_tasks = 1 }
	:: else
	fi;
	do
	:: held_tasks ->
		if
		:: held_tasks >= 2 && EMPTY(me) -> publish_half(me)
		:: else
		fi;
		d_step { held_tasks--; t = mine[held_tasks]; mine[held_tasks] = 0 };
		execute(me, t);
		t = 0
	:: !held_tasks ->
		acquire(me);
		n = 0;
		if
		:: held_tasks
		:: !held_tasks ->
			/* a victim is any queue but this one */
			v = 0;
			do
			:: v + OWNERS < N -> v = v + OWNERS
			:: break
			od;
			if
			:: v != me -> steal(me, v)
			:: else
			fi;
			v = 0; n = 0;
			if
			:: !held_tasks && !idle ->
				hold(me, ok);
				if
				:: ok ->
					if
					:: !EMPTY(me) -> n = 0
					:: EMPTY(me) ->
						close(me);
						n = 0;
						if
						:: HAS(idle_unchecked) -> n = 1
						:: !HAS(idle_unchecked) && q[me].completed[0] == q[me].started[0] ->
							if
							:: q[me].completed[1] == q[me].started[1] -> n = 1
							:: else
							fi
						:: else
						fi
					fi;
					settle(me);
					if
					:: n -> idlers++; idle = 1
					:: else
					fi;
					n = 0
				:: else
				fi;
				ok = 0
			:: else
			fi;
			if
			:: idle && idlers == N -> break
			:: else
			fi
		fi
	od;
	/* No worker leaves while a task exists or a copy is under way. */
	assert(ran == T && q[me].completed[0] == q[me].started[0] && q[me].completed[1] == q[me].started[1])
}

init {
	byte w;
	atomic {
		do
		:: w < N -> run worker(w); w++
		:: else -> break
		od
	}
}
