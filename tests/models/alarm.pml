/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts of GPUs (plugins/qos/alarm.c, wait_watching() in door.c). D GPUs of one worker post K requests each. The host
 * sees a request and its count in either order. One top half looks for all, for as long as it likes; then it arms the
 * controllers and sleeps at its door. A controller sleeps until more is counted than was read, and rings that door.
 * Where nobody can move, all must be served.
 *   FAULT=two_looks     waits for more than was counted when it was armed
 *   FAULT=rung_late     the top half forgets earlier rings when it falls asleep
 *   FAULT=armed_once    arms at the begin, and not whenever it falls asleep */
#include "fault.pml"
#ifndef D
#define D 2
#endif
#ifndef K
#define K 2
#endif
#define two_looks 1
#define rung_late 2
#define armed_once 3

byte told[D], counted[D], taken[D];
bool armed[D], door;

proctype tells(byte d)
{
	do
	:: told[d] < K -> told[d]++
	:: told[d] == K -> break
	od
}

/* Beside it: the two stores of a request go different ways. A request is posted before it is counted or told; how many
 * are under way is left open. */
proctype counts(byte d)
{
	do
	:: counted[d] < K -> counted[d]++
	:: counted[d] == K -> break
	od
}

proctype controller(byte d)
{
	byte least;
end_c:	do
	:: atomic { armed[d] -> armed[d] = 0 };
		if
		:: FAULT == two_looks -> least = counted[d] + 1
		:: else -> least = taken[d] + 1
		fi;
end_w:		counted[d] >= least;
		door = 1
	od
}

proctype watcher()
{
	bool once;
	do
	:: taken[0] = told[0]; taken[D - 1] = told[D - 1]; /* and serves them */
		if
		:: true -> skip /* looks again */
		:: !(FAULT == armed_once && once) ->
			armed[0] = 1;
			armed[D - 1] = 1;
			once = 1;
			if
			:: FAULT == rung_late -> door = 0
			:: else
			fi;
end_s:			atomic { door -> door = 0 }
		:: FAULT == armed_once && once ->
end_t:			atomic { door -> door = 0 }
		fi;
		if
		:: taken[0] == K && taken[D - 1] == K -> break
		:: else
		fi
	od
}

/* Nobody can move. */
proctype watch()
{
	timeout -> assert(taken[0] == K && taken[D - 1] == K)
}

init {
	atomic {
		run watch();
		run tells(0);
		run counts(0);
#if D > 1
		run tells(1);
		run counts(1);
#endif
		run controller(0);
#if D > 1
		run controller(1);
#endif
		run watcher()
	}
}
