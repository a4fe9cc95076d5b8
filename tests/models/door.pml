/* SPDX-License-Identifier: Apache-2.0 */
/* Doors of the service path: how a request gets the host out of its wait, with interrupts that are
 * moderated (plugins/qos/service.dev.h, door.c, path.c). W workers post K requests each, the next when
 * the last is answered. A lost interrupt is a state in which nobody can move and a request is unanswered.
 * The ends of windows come at any time, but come: waiting for one is no end.
 *   -DBELL=eventfd | futex    how the host is woken
 *   -DCOUNT=n                 requests that interrupt at once; more than W: never so many
 *   -DHALVES=split            a top half that arms its door and rings a bottom half
 *   -DHALVES=monolithic       two doors, whose threads serve under a lock, interrupts masked meanwhile
 *   -DHALVES=watched          no door: a watcher looks, and sleeps while who serves looks itself
 *   -DADAPTIVE                windows come and go
 *   FAULT=first_only        a futex rings for the first of a window alone, armed or not (as it was)
 *   FAULT=gone_away         one that finds the lock taken leaves no word that its door is shut (as it was)
 *   FAULT=pending_late      the count begins again after the bits were read
 *   FAULT=woken_early       who serves wakes the watcher before it says that it looks no more */
#include "fault.pml"
#define eventfd 1
#define futex 2
#define split 1
#define monolithic 2
#define watched 3
#ifndef BELL
#define BELL eventfd
#endif
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
#define first_only 1
#define gone_away 2
#define pending_late 3
#define woken_early 4

#define SHUT 0
#define OPEN 1
#define IN_WINDOW 2

bool mark[W];
byte head[W], served[W];
byte armed[D], pending[D];
bool bell[D];  /* an eventfd that was written, or a futex whose word was moved on */
bool timer[D]; /* the device's, running */
bool window = 1;
bool lock, called, bottom;
bool looks, asleep;

inline raise(v)
{
	atomic { old = armed[v]; armed[v] = SHUT };
	if
	:: old -> bell[v] = 1
	:: else
	fi
}

/* ssr_interrupt() */
inline interrupt(v)
{
	seen = window;
	if
	:: !seen -> raise(v)
	:: else ->
		atomic { pending[v]++; n = pending[v] };
		if
		:: BELL == eventfd ->
			if
			:: n >= COUNT -> raise(v)
			:: n == 1 && n < COUNT -> timer[v] = 1
			:: else
			fi
		:: BELL == futex && FAULT == first_only ->
			if
			:: n >= COUNT || n == 1 -> raise(v)
			:: else
			fi
		:: else ->
			old = armed[v];
			if
			:: old == OPEN || n >= COUNT -> raise(v)
			:: else
			fi
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
		:: HALVES != watched -> interrupt(v)
		:: else
		fi;
		served[w] == head[w]; /* ssr_wait() */
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

/* ssr_door_wait() */
inline door_wait(v)
{
	if
	:: BELL == eventfd ->
end_e:		if
		:: bell[v] -> bell[v] = 0
		:: timer[v] -> timer[v] = 0
		fi
	:: else ->
end_f:		bell[v] -> bell[v] = 0;
		if
		:: window && FAULT != first_only ->
			/* 0: masked by whoever rang; or armed anew meanwhile, and then any post rings */
			atomic {
				if
				:: armed[v] == SHUT -> armed[v] = IN_WINDOW
				:: else
				fi
			};
			if
			:: pending[v] >= COUNT
			:: bell[v] -> bell[v] = 0
			:: skip /* its end */
			fi
		:: else
		fi
	fi;
	if
	:: FAULT != pending_late -> pending[v] = 0
	:: else
	fi
}

#if HALVES == split
proctype top()
{
	do
	:: door_wait(0);
		armed[0] = OPEN;
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
#elif HALVES == watched
/* Its sleep and the look before it are one step: a futex. */
proctype top()
{
end_w:	do
	:: atomic { looks -> asleep = 1 };
end_s:		!asleep
	:: posted && !looks -> bottom = 1
	od
}

/* worker_thread() */
proctype bottom_half()
{
	byte i;
end_b:	do
	:: atomic { bottom -> bottom = 0 };
		looks = 1;
		do
		:: posted -> fill_and_serve()
		:: !posted -> break
		od;
		if
		:: FAULT == woken_early -> asleep = 0; looks = 0
		:: else -> looks = 0; asleep = 0
		fi
	od
}
#else
proctype top(byte v)
{
	byte i;
	bool had;
	do
	:: door_wait(v);
again:
		atomic { had = !lock; lock = 1 };
		if
		:: !had && FAULT != gone_away ->
			called = 1; /* the holder goes round once more, or is gone by now */
			atomic { had = !lock; lock = 1 }
		:: else
		fi;
		if
		:: had ->
			called = 0;
serve:
			armed[0] = SHUT;
			armed[1] = SHUT;
			fill_and_serve();
			armed[0] = OPEN;
			armed[1] = OPEN;
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
			:: posted || called -> goto again
			:: else
			fi
		:: else
		fi
	od
}
#endif

/* Nobody can move: all must be answered. */
proctype watch()
{
	timeout -> assert(served[0] == K && served[W - 1] == K)
}

init {
	atomic {
		armed[0] = OPEN;
		armed[D - 1] = OPEN;
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
