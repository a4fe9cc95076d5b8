/* SPDX-License-Identifier: Apache-2.0 */
/* sched_host, in which the host holds all tasks. Each worker has a box with a ring of B records, by which the host
 * hands out tasks, and a ring of R returned tasks. Each word has one writer. The host ends the sample when neither the
 * host nor a worker holds a task.
 * FAULT=two_words    a worker reports its records and its tasks by two stores
 * FAULT=no_room      a worker returns a task without a check for room
 * FAULT=taken_early  the host frees a slot before it has read it
 * FAULT=forgets_held the host does not count what workers hold */
#include "fault.pml"
#define N 2
#ifndef T
#define T 4
#endif
#define B 2
#define R 1
#define two_words 1
#define no_room 2
#define taken_early 3
#define forgets_held 4

byte made = 1, ran;			     /* the numbers of tasks that exist or have existed, and that have run */
byte put[N], taken[N];			     /* words that the host writes, for each worker */
byte told_ran[N], told_made[N], unread[N]; /* words and ring that each worker writes */
bool done;

proctype worker(byte w)
{
	byte got, mine;
	do
	:: put[w] != got ->
		ran++; got++;
		do
		:: made < T ->
			told_made[w] = mine; /* reports the tasks so far, so that the host can take them and make room */
			if
			:: FAULT == no_room
			:: else -> mine - taken[w] < R
			fi;
			atomic {
				if
				:: made < T -> made++; mine++; unread[w]++; assert(unread[w] <= R)
				:: else
				fi
			}
		:: break
		od;
		if
		:: FAULT == two_words -> told_ran[w] = got; told_made[w] = mine
		:: else -> atomic { told_ran[w] = got; told_made[w] = mine }
		fi
	:: put[w] == got && done -> break
	od
}

active proctype host()
{
	byte held = 1, open[N], w, m;
	do
	:: !done ->
		w = 0;
		do
		:: w < N ->
			atomic { m = told_made[w]; open[w] = put[w] - told_ran[w] };
			do
			:: taken[w] != m && FAULT == taken_early -> taken[w]++; unread[w]--; held++
			:: taken[w] != m && FAULT != taken_early -> unread[w]--; held++; taken[w]++
			:: taken[w] == m -> break
			od;
			w++
		:: else -> break
		od;
		w = 0;
		do
		:: w < N && held && open[w] < B -> held--; open[w]++; put[w]++
		:: w < N -> w++
		:: else -> break
		od;
		if
		:: !held && (FAULT == forgets_held || open[0] + open[1] == 0) ->
			assert(ran == made && !unread[0] && !unread[1]);
			done = 1
		:: else
		fi
	:: else -> break
	od
}

init {
	atomic { run worker(0); run worker(1) }
}
