/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of sched_plan (plugins/sched_plan/sched_plan.dev.h): owners and thieves take one or two tasks by an addition, of a
 * number that was chosen before; one word names the first list that may have tasks. Every task runs once, and no worker leaves
 * while a list has some.
 * FAULT=passed_early  the word passes a list that was not seen used up
 * FAULT=stored        a taker stores `next` in place of adding to it
 * FAULT=unclamped     a taker takes beyond the end of the list
 * FAULT=set           a thief stores the word in place of comparing it first, and stores what it has read plus 1 twice */
#include "fault.pml"
#ifndef N
#define N 3
#endif
#ifndef L
#define L 3 /* tasks of a list */
#endif
#define passed_early 1
#define stored 2
#define unclamped 3
#define set 4

byte next[N], victim, runs[N * L];

inline run_tasks(list, from, n)
{
	i = 0;
	do
	:: i < n ->
		assert(from + i < L);
		d_step { runs[list * L + from + i]++; assert(runs[list * L + from + i] == 1); i++ }
	:: else -> break
	od
}

/* `n` is how many. */
inline take(list)
{
	from = next[list];
	n = 0;
	if
	:: from < L ->
		if
		:: n = 1
		:: n = 2
		fi;
		if
		:: FAULT == stored -> next[list] = from + n
		:: else -> atomic { from = next[list]; next[list] = next[list] + n }
		fi;
		if
		:: from >= L -> n = 0
		:: from < L && n > L - from && FAULT != unclamped -> n = L - from
		:: else
		fi
	:: else
	fi;
	run_tasks(list, from, n)
}

proctype worker(byte w)
{
	byte from, n, i, v;
	do
	:: take(w);
		if
		:: n == 0 -> break
		:: else
		fi
	od;
	v = victim;
	do
	:: v < N ->
		take(v);
		if
		:: n == 0 || FAULT == passed_early ->
			if
			:: FAULT == set -> victim = v + 2; v = victim
			:: else -> atomic { if :: victim == v -> victim++ :: else fi; v = victim }
			fi
		:: else -> v = victim
		fi
	:: v >= N -> break
	od;
	i = 0;
	do
	:: i < N -> assert(next[i] >= L); i++
	:: else -> break
	od
}

init {
	atomic {
		run worker(0); run worker(1);
#if N > 2
		run worker(2)
#endif
	}
}
