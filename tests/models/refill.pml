/* SPDX-License-Identifier: Apache-2.0 */
/* A minimal model of the thesis's order of stealing (5.1), which loses tasks. Worker A has a ring full of public tasks.
 * Workers B and C steal once each from A. Worker A runs the remaining tasks and then steals from D, into slots that B
 * may still be reading. Every task runs at most once.
 *   FAULT=thief_no_room: A does not wait for room in its own ring */
#define N 4
#define T 16
#define R 8
#define L 2
#include "ring.pml"

#define A 0
#define D 3

inline run_local()
{
	do
	:: held_tasks ->
		d_step { held_tasks--; t = mine[held_tasks]; mine[held_tasks] = 0 };
		run_task(t);
		t = 0
	:: else -> break
	od
}

proctype thief(byte me)
{
	byte mine[L], held_tasks, n, i, t, e, left, taken, room, old, at, keep, ep, loot;
	bool idle, ok;
	steal(me, A);
	run_local();
	do
	:: !EMPTY(me) -> acquire(me); run_local()
	:: EMPTY(me) -> break
	od
}

proctype owner(byte me)
{
	byte mine[L], held_tasks, n, i, t, e, left, taken, room, old, at, keep, ep, loot;
	bool idle, ok;
	do
	:: !EMPTY(me) -> acquire(me); run_local()
	:: EMPTY(me) -> break
	od;
	do
	:: steal(me, D);
		if
		:: held_tasks -> break
		:: else
		fi
	od;
	run_local();
	do
	:: !EMPTY(me) -> acquire(me); run_local()
	:: EMPTY(me) -> break
	od
}

init {
	byte k;
	atomic {
		do
		:: k < R -> q[A].slot[k] = k + 1; q[D].slot[k] = k + 1 + R; k++
		:: else -> break
		od;
		q[A].count = R; q[A].open = R; q[A].bhead = R;
		q[D].count = R; q[D].open = R; q[D].bhead = R;
		run owner(A); run thief(1); run thief(2)
	}
}
