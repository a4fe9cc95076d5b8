/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts of GPUs (plugins/qos/interrupt.c, wait_polling() in doorbell.c). D GPUs with one worker each post K
 * requests each. The host may see a request before its count, or after. One top half polls for any time. Then it arms
 * the controllers and sleeps at its doorbell. A controller sleeps until the count exceeds the number of requests that
 * the host has read, and then rings the doorbell. If the top halves of several cores are rung in turn, each takes
 * the part of the poller when it is rung. In a deadlock all requests must have been served.
 *   FAULT=two_reads     a controller waits for more than the count at the time of arming
 *   FAULT=rung_late     the top half discards earlier rings when it falls asleep
 *   FAULT=armed_once    the top half arms at the start only, and not whenever it falls asleep */
#include "fault.pml"
#ifndef D
#define D 2
#endif
#ifndef K
#define K 2
#endif
#define two_reads 1
#define rung_late 2
#define armed_once 3

byte published[D], counted[D], taken[D];
bool armed[D], doorbell;

proctype publishes(byte d)
{
	do
	:: published[d] < K -> published[d]++
	:: published[d] == K -> break
	od
}

/* The two stores of a request take different paths, so they run concurrently. A request is posted before it is counted
 * or published. A GPU may have any number of requests in flight. */
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
		:: FAULT == two_reads -> least = counted[d] + 1
		:: else -> least = taken[d] + 1
		fi;
end_w:		counted[d] >= least;
		doorbell = 1
	od
}

proctype poller()
{
	bool once;
	do
	:: taken[0] = published[0]; taken[D - 1] = published[D - 1]; /* the top half reads and serves requests */
		if
		:: true -> skip /* the top half polls again */
		:: !(FAULT == armed_once && once) ->
			armed[0] = 1;
			armed[D - 1] = 1;
			once = 1;
			if
			:: FAULT == rung_late -> doorbell = 0
			:: else
			fi;
end_s:			atomic { doorbell -> doorbell = 0 }
		:: FAULT == armed_once && once ->
end_t:			atomic { doorbell -> doorbell = 0 }
		fi;
		if
		:: taken[0] == K && taken[D - 1] == K -> break
		:: else
		fi
	od
}

/* This process runs only in a deadlock, and checks that all requests were served. */
proctype watch()
{
	timeout -> assert(taken[0] == K && taken[D - 1] == K)
}

init {
	atomic {
		run watch();
		run publishes(0);
		run counts(0);
#if D > 1
		run publishes(1);
		run counts(1);
#endif
		run controller(0);
#if D > 1
		run controller(1);
#endif
		run poller()
	}
}
