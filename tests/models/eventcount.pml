/* SPDX-License-Identifier: Apache-2.0 */
/* Eventcounts (lib/eventcount.h), in the protocol of idle workers (plugins/sched_common/rest.dev.h). P workers publish
 * K tasks each, and wake one worker for each task. Two workers take all tasks, and sleep if they find none. When all
 * are idle, the run ends, and all are woken. After a lost wake-up no process can continue: tasks are left, or a worker
 * sleeps after the end.
 *   -DLONG -DK=2            the first task that is taken never ends: the other worker must take the second task
 *   -DLONG -DK=1 -DP=2      as above, with one task in each of two queues
 * The following options model eventcounts without the flag `waking`. One waiter waits for the first publication, the
 * other for the last of K.
 *   -DWORD                  the word is the condition (eventcount_notify(): slots of channels, words of barriers)
 *   -DSTOP                  the run is stopped at any time, and each wait must end. With -DWORD the stop is a
 *                           bit of the word, otherwise a separate condition
 *   FAULT=no_last_check     a waiter does not check the condition again after eventcount_enter()
 *   FAULT=waiters_first     a notifier checks for waiters before it changes the condition
 *   FAULT=word_read_late    a waiter reads the word to sleep on after its last check
 *   FAULT=waking_kept       the flag that saves wake-ups is never cleared
 *   FAULT=stale_waking      eventcount_enter_one() does not clear the flag that saves wake-ups
 *   FAULT=own_victim        a worker that has taken a task wakes another one for the same queue only
 *   FAULT=end_not_notified  the worker that finds the end does not wake the others
 *   FAULT=stop_not_notified a stop wakes no waiter */
#include "fault.pml"
#ifndef K
#define K 3
#endif
#ifndef P
#define P 1
#endif
#define WORKERS (P + 2)
#define LEFT (tasks[0] || tasks[P - 1])
#define no_last_check 1
#define waiters_first 2
#define word_read_late 3
#define waking_kept 4
#define end_not_notified 5
#define stale_waking 6
#define own_victim 7
#define stop_not_notified 8

#if defined(WORD) || defined(STOP)
#define NO_WAKING
#endif

byte tasks[P], word, waiters, idlers;
bool waking;
bool sleeps[3]; /* a thread sleeps in the kernel on `word` */

/* Models FUTEX_WAKE, which wakes one sleeper or all. */
inline kernel_wake(most)
{
	atomic {
		if
		:: most > 1 -> sleeps[1] = 0; sleeps[2] = 0
		:: most == 1 && sleeps[1] -> sleeps[1] = 0
		:: most == 1 && sleeps[2] -> sleeps[2] = 0
		:: else
		fi
	}
}

#ifdef NO_WAKING
#ifdef WORD
#define CONDITION word
#else
#define CONDITION count
#endif
#define STOPPED 64

byte count;
bool stop;

/* Changes the condition by `n`, and notifies. */
inline publish(n)
{
	seen = (waiters > 0);
	CONDITION = CONDITION + n;
	if
	:: FAULT != waiters_first -> seen = (waiters > 0)
	:: else
	fi;
	if
	:: seen && !(n == STOPPED && FAULT == stop_not_notified) ->
#ifndef WORD
		word++;
#endif
		kernel_wake(9)
	:: else
	fi
}

proctype publisher()
{
	byte k;
	bool seen;
	do
	:: k < K -> publish(1); k++
	:: k == K || stop -> break
	od
}

proctype stopper()
{
	bool seen;
	stop = 1; /* from here on, the publisher may end */
	publish(STOPPED)
}

proctype waiter(byte w; byte want)
{
	byte key, now;
	key = word;
	waiters++;
	do
	:: now = CONDITION;
		if
		:: now >= want && FAULT != no_last_check -> break
		:: else
		fi;
#ifdef WORD
		key = now;
#endif
		/* FUTEX_WAIT */
		atomic {
			if
			:: FAULT == word_read_late || word == key -> sleeps[w] = 1
			:: else
			fi
		};
		!sleeps[w];
		key = word
	od;
	waiters--
}

init {
	atomic {
		run publisher();
#ifdef STOP
		run stopper();
#endif
		run waiter(1, 1);
		run waiter(2, K)
	}
}
#else
inline advance(most)
{
	if
	:: waiters ->
		atomic { saved = (most == 1 && waking); waking = (most == 1 -> 1 : waking) };
		if
		:: !saved -> word++; kernel_wake(most)
		:: else
		fi;
		saved = 0
	:: else
	fi
}

proctype publisher(byte p)
{
	byte k;
	bool saved, seen;
	do
	:: k < K ->
		if
		:: FAULT == waiters_first ->
			seen = (waiters > 0);
			tasks[p]++;
			if
			:: seen -> advance(1)
			:: else
			fi
		:: else -> tasks[p]++; advance(1)
		fi;
		k++
	:: else -> break
	od;
	tasks[p] == 0; /* a worker with public tasks is not idle */
	idlers++;
	if
	:: idlers == WORKERS && FAULT != end_not_notified -> advance(9)
	:: else
	fi
}

proctype worker(byte w)
{
	byte key, victim;
	bool listed, saved;
	idlers++;
	do
	:: atomic {
			LEFT ->
			if
			:: tasks[0] -> victim = 0
			:: tasks[P - 1] -> victim = P - 1
			fi;
			tasks[victim]--; idlers--
		}; /* in one step, so that the thief is busy before the victim can be idle */
		if
		:: listed -> waiters--; listed = 0;
			if
			:: FAULT != waking_kept -> waking = 0
			:: else
			fi
		:: else
		fi;
		if
		:: FAULT == own_victim && tasks[victim] -> advance(1)
		:: FAULT != own_victim && LEFT -> advance(1) /* tasks are left in some queue */
		:: else
		fi;
#ifdef LONG
		break; /* the long task never ends */
#endif
		victim = 0;
		idlers++
	:: !LEFT && idlers == WORKERS ->
		if
		:: FAULT != end_not_notified -> advance(9)
		:: else
		fi;
		break
	:: !LEFT && !listed && idlers != WORKERS ->
		if
		:: FAULT != word_read_late -> key = word
		:: else
		fi;
		waiters++;
		listed = 1;
		if
		:: FAULT != stale_waking -> waking = 0 /* an earlier wake-up cannot end the sleep that follows */
		:: else
		fi;
		if
		:: (LEFT || idlers == WORKERS) && FAULT != no_last_check -> skip
		:: else ->
			if
			:: FAULT == word_read_late -> key = word
			:: else
			fi;
			/* FUTEX_WAIT */
			atomic {
				if
				:: word == key -> sleeps[w] = 1
				:: else
				fi
			};
			!sleeps[w]
		fi;
		waiters--;
		listed = 0;
		if
		:: FAULT != waking_kept -> waking = 0
		:: else
		fi
	od
}

init {
	atomic { run publisher(0); if :: P > 1 -> run publisher(P - 1) :: else fi; run worker(1); run worker(2) }
}
#endif
