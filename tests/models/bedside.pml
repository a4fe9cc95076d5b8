/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants within their shares, beside one that is not (plugins/qos/serve.c, door.c, path.c, service.dev.h). While
 * the policy admits nobody, whoever serves sleeps and all doors are shut; a tenant that the policy heeds rings at
 * the bedside. T tenants of one worker each post K requests, at most two at a time. What the policy decides is
 * left open: who has saved something, and whether there are tokens for the others.
 * Where nobody can move but a timer, no heeded tenant's request may be unanswered: it would wait for the end of
 * the sleep, with whoever lives on what others left. Where no timer runs either, all must be answered.
 *   -DHALVES=split            a bottom half fills queues while the worker thread serves; doors are masked
 *   -DHALVES=monolithic       who serves fills, too; another top half that comes finds the lock taken
 *   FAULT=look_first        looks at the bits before it arms the bedside
 *   FAULT=no_last_look      arms it and sleeps
 *   FAULT=heed_late         says whom it is for after the look
 *   FAULT=drained_late      reads away earlier rings after the look
 *   FAULT=queue_unseen      looks at the bits alone: a request may be in its queue by now (as it was)
 *   FAULT=filled_unsaid     the bottom half does not look whether somebody sleeps (as it was)
 *   FAULT=armed_once        the bedside is not armed anew after it was rung */
#include "fault.pml"
#define split 1
#define monolithic 2
#ifndef HALVES
#define HALVES split
#endif
#ifndef T
#define T 2
#endif
#ifndef K
#define K 2
#endif
#ifndef D
#define D 1
#endif
#define look_first 1
#define no_last_look 2
#define heed_late 3
#define drained_late 4
#define queue_unseen 5
#define filled_unsaid 6
#define armed_once 7

#define OUTSTANDING 2

bool mark[T], heed[T];
byte head[T], queued[T], served[T];
bool armed[D], bell[D];     /* doors: eventfds */
bool bedside, bedside_bell; /* armed; rung */
bool lock, called, bottom, work;
bool asleep, timer;

#define posted (mark[0] || mark[T - 1])
#define waits(t) (queued[t] != served[t])
#define heeded_posted ((heed[0] && mark[0]) || (heed[T - 1] && mark[T - 1]))
#define heeded_waits ((heed[0] && waits(0)) || (heed[T - 1] && waits(T - 1)))

inline raise(v)
{
	atomic { old = armed[v]; armed[v] = 0 };
	if
	:: old -> bell[v] = 1
	:: else
	fi
}

inline ring_bedside()
{
	atomic { old = bedside; bedside = 0 };
	if
	:: old -> bedside_bell = 1
	:: else
	fi
}

/* ssr_request(), ssr_rouse(), and ssr_wait() when no slot is left */
proctype worker(byte t)
{
	byte v;
	bool old;
	do
	:: head[t] < K ->
		head[t] - served[t] < OUTSTANDING;
		head[t]++;
		if
		:: !mark[t] ->
			mark[t] = 1;
			if
			:: v = 0
			:: D > 1 -> v = D - 1
			fi;
			raise(v);
			if
			:: bedside ->
				if
				:: heed[t] -> ring_bedside()
				:: else
				fi
			:: else
			fi
		:: else /* whoever set it has seen to it */
		fi
	:: else -> break
	od
}

/* ssr_fill(), by the holder of the lock */
inline fill()
{
	i = 0;
	do
	:: i < T ->
		if
		:: mark[i] ->
			mark[i] = 0;
			n = head[i];
			queued[i] = n
		:: else
		fi;
		i++
	:: else -> i = 0; break
	od
}

/* fill_here() */
inline fill_here()
{
	do
	:: atomic { had = !lock; lock = 1 };
		if
		:: !had -> goto filled
		:: else
		fi;
		fill();
		lock = 0;
		if
		:: posted
		:: else -> break
		fi
	od;
	work = 1;
	if
	:: FAULT != filled_unsaid && bedside && heeded_waits -> ring_bedside()
	:: else
	fi;
}

/* rest(): ssr_listen(), ssr_sleep() and ssr_listen_end() */
inline rest()
{
	seen = 0;
	if
	:: FAULT == look_first && heeded_posted -> seen = 1
	:: else
	fi;
	if
	:: FAULT != heed_late -> atomic { heed[0] = want[0]; heed[T - 1] = want[T - 1] }
	:: else
	fi;
	if
	:: FAULT != armed_once || !rung -> bedside = 1
	:: else
	fi;
	if
	:: FAULT != look_first && FAULT != no_last_look && heeded_posted -> seen = 1
	:: else
	fi;
	if
	:: FAULT != queue_unseen && heeded_waits -> seen = 1
	:: else
	fi;
	if
	:: FAULT == heed_late -> atomic { heed[0] = want[0]; heed[T - 1] = want[T - 1] }
	:: FAULT == drained_late -> bedside_bell = 0
	:: else
	fi;
	if
	:: !seen ->
		asleep = 1;
		if
		:: bedside_bell -> atomic { bedside_bell = 0; rung = 1; asleep = 0 }
		:: timer -> atomic { timer = 0; asleep = 0 }
		:: ticks < 1 -> atomic { ticks++; asleep = 0 } /* it ends at any time, once */
		fi
	:: else
	fi;
	bedside = 0
}

/* admit(): savers first, then whoever there are tokens for; else nobody. */
inline take_turn()
{
	who = T;
	i = 0;
	do
	:: i < T ->
		if
		:: saved = 1
		:: saved = 0
		fi;
		want[i] = 0;
		if
		:: saved && waits(i) -> who = i
		:: saved && !waits(i) -> want[i] = 1
		:: else
		fi;
		i++
	:: else -> i = 0; break
	od;
	if
	:: who == T && waits(0) -> who = 0
	:: who == T && waits(T - 1) -> who = T - 1
	:: who == T -> rest()
	:: else
	fi;
	if
	:: who < T -> served[who]++
	:: else
	fi;
	who = T
}

#define any_waits (waits(0) || waits(T - 1))

#if HALVES == split
proctype top(byte v)
{
end_t:	do
	:: atomic { bell[v] -> bell[v] = 0 };
		bottom = 1
	od
}

proctype bottom_half()
{
	byte i, n;
	bool had, old;
end_b:	do
	:: atomic { bottom -> bottom = 0 };
		fill_here();
filled:		skip
	od
}

proctype worker_thread()
{
	byte i, n, who = T, ticks;
	bool want[T], had, old, seen, saved, rung;
end_w:	do
	:: atomic { work -> work = 0 };
serve:
		if
		:: posted ->
			atomic { had = !lock; lock = 1 };
			if
			:: had -> fill(); lock = 0
			:: else
			fi
		:: else
		fi;
		if
		:: any_waits -> take_turn(); goto serve
		:: else
		fi;
		armed[0] = 1;
		armed[D - 1] = 1;
		if
		:: posted -> fill_here()
		:: else
		fi;
filled:		skip
	od
}
#else
proctype top(byte v)
{
	byte i, n, who = T, ticks;
	bool want[T], had, old, seen, saved, rung;
end_t:	do
	:: atomic { bell[v] -> bell[v] = 0 };
again:
		atomic { had = !lock; lock = 1 };
		if
		:: !had ->
			called = 1;
			atomic { had = !lock; lock = 1 }
		:: else
		fi;
		if
		:: had ->
			called = 0;
shut:
			armed[0] = 0;
			armed[D - 1] = 0;
serve:
			fill();
			if
			:: any_waits -> take_turn(); goto serve
			:: else
			fi;
			armed[0] = 1;
			armed[D - 1] = 1;
			if
			:: posted -> goto shut
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

proctype watch()
{
	do
	:: timeout ->
		if
		:: asleep ->
			assert(!(heed[0] && head[0] != served[0]) && !(heed[T - 1] && head[T - 1] != served[T - 1]));
			timer = 1
		:: else ->
			assert(served[0] == K && served[T - 1] == K);
			break
		fi
	od
}

init {
	atomic {
		armed[0] = 1;
		armed[D - 1] = 1;
		run watch();
		run worker(0);
#if T > 1
		run worker(1);
#endif
		run top(0);
#if D > 1
		run top(1);
#endif
#if HALVES == split
		run bottom_half();
		run worker_thread()
#endif
	}
}
