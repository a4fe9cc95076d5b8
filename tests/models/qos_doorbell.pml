/* SPDX-License-Identifier: Apache-2.0 */
/* Doorbells of the service path, by which a request ends the host's wait, with moderated interrupts
 * (plugins/qos/service.dev.h, doorbell.c, threads.c). W workers post K requests each. A worker posts its next request
 * when the last one is answered. A lost interrupt leads to a deadlock with an unanswered request. A moderation window
 * always ends at some time, so waiting for its end is no deadlock.
 *   -DCOUNT=n                 the number of requests that interrupt at once; W is never exceeded
 *   -DHALVES=split            a top half that arms its doorbell and notifies a bottom half
 *   -DHALVES=monolithic       two doorbells, whose threads serve under a lock with interrupts masked
 *   -DHALVES=polled           no doorbell: a poller, which sleeps while the serving thread polls
 *   -DADAPTIVE                windows are switched on and off
 *   FAULT=no_note           a thread that finds the lock taken leaves no note that its doorbell is disarmed
 *   FAULT=pending_late      the count starts again after the bits were read
 *   FAULT=woken_early       the serving thread wakes the poller before it stops polling */
#include "fault.pml"
#define split 1
#define monolithic 2
#define polled 3
#ifndef HALVES
#define HALVES split
#endif
#ifndef W
#define W 2
#endif
#ifndef K
#define K 2
#endif
#ifndef COUNT
#define COUNT 3
#endif
#if HALVES != monolithic
#define D 1
#else
#define D 2
#endif
#define no_note 1
#define pending_late 2
#define woken_early 3

#define DISARMED 0
#define ARMED 1

bool mark[W];
byte head[W], served[W];
byte armed[D], pending[D];
bool rings[D];  /* 1 after the eventfd was written */
bool timer[D]; /* 1 while the window's timer is running */
bool window = 1;
bool lock, fill_requested, bottom;
bool server_polls, asleep;

inline ring(v)
{
	atomic { old = armed[v]; armed[v] = DISARMED };
	if
	:: old -> rings[v] = 1
	:: else
	fi
}

/* Models qos_notify_host(). */
inline interrupt(v)
{
	seen = window;
	if
	:: !seen -> ring(v)
	:: else ->
		atomic { pending[v]++; n = pending[v] };
		if
		:: n >= COUNT -> ring(v)
		:: n == 1 && n < COUNT -> timer[v] = 1
		:: else
		fi
	fi
}

proctype worker(byte w)
{
	byte k, n, old, v;
	bool seen;
	do
	:: k < K ->
		head[w]++;
		if
		:: !mark[w] -> mark[w] = 1
		:: else
		fi;
		if
		:: v = 0
		:: D > 1 -> v = D - 1
		fi;
		if
		:: HALVES != polled -> interrupt(v)
		:: else
		fi;
		served[w] == head[w]; /* models qos_wait() */
		k++
	:: else -> break
	od
}

inline fill_and_serve()
{
	i = 0;
	do
	:: i < W ->
		if
		:: mark[i] -> mark[i] = 0; served[i] = head[i]
		:: else
		fi;
		i++
	:: else -> i = 0; break
	od;
#ifdef ADAPTIVE
	if
	:: window = 0
	:: window = 1
	fi
#endif
}

#define posted (mark[0] || mark[W - 1])

/* Models qos_doorbell_wait(). */
inline doorbell_wait(v)
{
	if
	:: rings[v] -> rings[v] = 0
	:: timer[v] -> timer[v] = 0
	fi;
	if
	:: FAULT != pending_late -> pending[v] = 0
	:: else
	fi
}

#if HALVES == split
proctype top()
{
end_t:	do
	:: doorbell_wait(0);
		armed[0] = ARMED;
		bottom = 1
	od
}

proctype bottom_half()
{
	byte i;
end_b:	do
	:: atomic { bottom -> bottom = 0 };
		fill_and_serve();
		if
		:: FAULT == pending_late -> pending[0] = 0
		:: else
		fi
	od
}
#elif HALVES == polled
/* With a futex, the sleep and the check before it are one step. */
proctype top()
{
end_w:	do
	:: atomic { server_polls -> asleep = 1 };
end_s:		!asleep
	:: posted && !server_polls -> bottom = 1
	od
}

/* Models worker_thread(). */
proctype bottom_half()
{
	byte i;
end_b:	do
	:: atomic { bottom -> bottom = 0 };
		server_polls = 1;
		do
		:: posted -> fill_and_serve()
		:: !posted -> break
		od;
		if
		:: FAULT == woken_early -> asleep = 0; server_polls = 0
		:: else -> server_polls = 0; asleep = 0
		fi
	od
}
#else
proctype top(byte v)
{
	byte i;
	bool had;
end_t:	do
	:: doorbell_wait(v);
again:
		atomic { had = !lock; lock = 1 };
		if
		:: !had && FAULT != no_note ->
			fill_requested = 1; /* the holder of the lock checks this note again, unless it has already left */
			atomic { had = !lock; lock = 1 }
		:: else
		fi;
		if
		:: had ->
			fill_requested = 0;
serve:
			armed[0] = DISARMED;
			armed[1] = DISARMED;
			fill_and_serve();
			armed[0] = ARMED;
			armed[1] = ARMED;
			if
			:: posted -> goto serve
			:: else
			fi;
			if
			:: FAULT == pending_late -> pending[v] = 0
			:: else
			fi;
			lock = 0;
			if
			:: posted || fill_requested -> goto again
			:: else
			fi
		:: else
		fi
	od
}
#endif

/* In a deadlock all requests must be answered. */
proctype watch()
{
	timeout -> assert(served[0] == K && served[W - 1] == K)
}

init {
	atomic {
		armed[0] = ARMED;
		armed[D - 1] = ARMED;
		run watch();
		run worker(0);
#if W > 1
		run worker(1);
#endif
#if HALVES != monolithic
		run top();
		run bottom_half()
#else
		run top(0);
		run top(1)
#endif
	}
}
