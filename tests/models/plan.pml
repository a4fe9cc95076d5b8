/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of sched_plan (plugins/sched_plan/sched_plan.dev.h). P workers own the first P of N lists of L tasks. Owners and
 * thieves choose a number of tasks, one or two, and take them by an addition. A set of bits tells which lists may have
 * tasks; a word of level 0 has W bits. Every task must run once, and no worker may leave while a list has tasks. A step of
 * the model is an access to shared memory with the local work before the next access.
 * FAULT=removed_early  a worker clears the bit of a list that has one task left
 * FAULT=level1_early   a worker clears the bit of a word that is not 0
 * FAULT=stored         a taker stores `next` in place of adding to it
 * FAULT=unclamped      a taker takes beyond the end of the list
 * FAULT=unwrapped      a thief does not search the lists before its own */
#include "fault.pml"
#ifndef N
#define N 4
#endif
#ifndef P
#define P 2
#endif
#ifndef L
#define L 2
#endif
#define W 2
#define WORDS ((N + W - 1) / W)
#define removed_early 1
#define level1_early 2
#define stored 3
#define unclamped 4
#define unwrapped 5

byte next[N], set[WORDS], level1;
bit ran[N * L];

inline run_tasks(list)
{
	d_step {
		i = 0;
		do
		:: i < n -> assert(from + i < L && !ran[list * L + from + i]); ran[list * L + from + i] = 1; i++
		:: else -> break
		od;
		i = 0
	}
}

inline remove(list)
{
	d_step { set[list / W] = set[list / W] & ~(1 << (list % W)); last = set[list / W] == 0 };
	if
	:: last || FAULT == level1_early -> level1 = level1 & ~(1 << (list / W))
	:: else
	fi;
	last = 0
}

/* Takes tasks from a list of which the tasks before `from` are taken. `n` becomes the number of tasks. A thief has loaded
 * `from`; for an owner it is the end of its last tasks. */
inline take(list)
{
	if
	:: from >= L -> n = 0
	:: from < L -> n = 1
	:: from < L -> n = 2
	fi;
	if
	:: n ->
		atomic {
			if
			:: FAULT != stored -> from = next[list]
			:: else
			fi;
			next[list] = from + n;
			if
			:: from >= L -> n = 0; from = 0
			:: else
			fi
		};
		if
		:: n && from + n >= L - (FAULT == removed_early -> 1 : 0) ->
			n = (FAULT != unclamped && n > L - from -> L - from : n);
			run_tasks(list);
			remove(list)
		:: n && from + n < L - (FAULT == removed_early -> 1 : 0) -> run_tasks(list)
		:: else
		fi
	:: else
	fi
}

/* `v` becomes the first list from v on that may have tasks, or N. */
inline find()
{
	d_step { bits = 0; word = v / W };
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
		:: word < WORDS && (level1 & (1 << word)) ->
			bits = set[word];
			if
			:: bits -> v = word * W; break
			:: else -> word++
			fi
		od
	fi;
	skip; /* a jump cannot go to a d_step */
	d_step {
		do
		:: bits && !(bits & 1) -> bits = bits >> 1; v++
		:: else -> break
		od;
		bits = 0;
		word = 0
	}
}

proctype worker(byte w)
{
	byte from, n, i, v, word, bits;
	bit last, wrapped;
	do
	:: take(w);
		if
		:: n == 0 -> break
		:: else -> from = from + n
		fi
	od;
	v = w + 1;
	do
	:: find();
		if
		:: v < N ->
			from = next[v];
			take(v);
			from = 0;
			if
			:: n == 0 -> v++
			:: else -> d_step { v = w + 1; wrapped = 0; n = 0 } /* the next search */
			fi
		:: v >= N && (wrapped || FAULT == unwrapped) -> break
		:: else -> d_step { wrapped = 1; v = 0 }
		fi
	od;
	skip;
	d_step {
		i = 0;
		do
		:: i < N -> assert(next[i] >= L); i++
		:: else -> break
		od
	}
}

init {
	byte i;
	atomic {
		do
		:: i < N -> set[i / W] = set[i / W] | (1 << (i % W)); level1 = level1 | (1 << (i / W)); i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < P -> run worker(i); i++
		:: else -> break
		od
	}
}
