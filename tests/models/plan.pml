/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of sched_plan (plugins/sched_plan/sched_plan.dev.h). Owners and thieves take one or two tasks by an addition,
 * of a number that was chosen before. A set of bits with two levels tells which lists may have tasks: W lists a word.
 * Every task runs once, and no worker leaves while a list has tasks.
 * FAULT=removed_early  a worker clears the bit of a list that has one task left
 * FAULT=level1_early   a worker clears the bit of a word that is not 0
 * FAULT=stored         a taker stores `next` in place of adding to it
 * FAULT=unclamped      a taker takes beyond the end of the list
 * FAULT=unwrapped      a thief does not search the lists before its own */
#include "fault.pml"
#ifndef N
#define N 3
#endif
#ifndef L
#define L 3 /* tasks of a list */
#endif
#define W 2 /* lists of a word of level 0 */
#define WORDS ((N + W - 1) / W)
#define removed_early 1
#define level1_early 2
#define stored 3
#define unclamped 4
#define unwrapped 5

byte next[N], runs[N * L], set[WORDS], level1;

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

inline remove(list)
{
	d_step { set[list / W] = set[list / W] & ~(1 << (list % W)); last = set[list / W] == 0 };
	if
	:: last || FAULT == level1_early -> level1 = level1 & ~(1 << (list / W)) /* atomic, as one statement is */
	:: else
	fi
}

/* `n` is the number of tasks. */
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
		:: from < L && from + n >= L - (FAULT == removed_early -> 1 : 0) ->
			if
			:: FAULT != unclamped && n > L - from -> n = L - from
			:: else
			fi;
			remove(list)
		:: else
		fi
	:: else
	fi;
	run_tasks(list, from, n)
}

/* Sets `v` to the first list from v on that may have tasks, or to N. */
inline find()
{
	word = v / W;
	bits = 0;
	if
	:: v < N -> bits = set[word] >> (v % W)
	:: else
	fi;
	if
	:: v >= N || bits -> skip
	:: else ->
		word++;
		do
		:: word >= WORDS -> v = N; break
		:: word < WORDS && !(level1 & (1 << word)) -> word++
		:: else ->
			bits = set[word];
			if
			:: bits -> v = word * W; break
			:: else -> word++
			fi
		od
	fi;
	do
	:: bits && !(bits & 1) -> bits = bits >> 1; v++
	:: else -> break
	od;
	bits = 0
}

proctype worker(byte w)
{
	byte from, n, i, v, word, bits;
	bool last, wrapped;
	do
	:: take(w);
		if
		:: n == 0 -> break
		:: else
		fi
	od;
	v = w + 1;
	do
	:: find();
		if
		:: v < N ->
			take(v);
			if
			:: n == 0 -> v++
			:: else -> v = w + 1; wrapped = false /* the next search */
			fi
		:: v >= N && (wrapped || FAULT == unwrapped) -> break
		:: else -> wrapped = true; v = 0
		fi
	od;
	i = 0;
	do
	:: i < N -> assert(next[i] >= L); i++
	:: else -> break
	od
}

init {
	byte i0;
	atomic {
		i0 = 0;
		do
		:: i0 < N -> set[i0 / W] = set[i0 / W] | (1 << (i0 % W)); level1 = level1 | (1 << (i0 / W)); i0++
		:: else -> break
		od;
		run worker(0); run worker(1);
#if N > 2
		run worker(2)
#endif
	}
}
