/* SPDX-License-Identifier: Apache-2.0 */
/* Sleep and wake-up (rest.dev.h). P workers that never take anything make K tasks public each, one after the
 * other; two that sleep when they find none take them all. A lost wake-up is a state in which nobody can
 * move although tasks are left, or all is over.
 *   -DLONG -DK=2            who has taken one is away for good: the other must come for the second
 *   -DLONG -DK=1 -DP=2      the same with one task in each of two queues
 *   FAULT=no_last_look    a sleeper does not look again after it has listed itself
 *   FAULT=look_first      who publishes looks for sleepers before
 *   FAULT=word_read_late  a sleeper reads the word to sleep on after its last look
 *   FAULT=waking_kept     the flag that saves rings is never cleared
 *   FAULT=own_victim      who has taken one calls another for the same queue only
 *   FAULT=nobody_told     who sees the end does not wake the others */
#include "fault.pml"
#ifndef K
#define K 3
#endif
#ifndef P
#define P 1
#endif
#define WORKERS (P + 2)
#define LEFT (tasks[0] || tasks[P - 1])
#define no_last_look 1
#define look_first 2
#define word_read_late 3
#define waking_kept 4
#define nobody_told 5
#define ring_unheard 6
#define own_victim 7

byte tasks[P], rings, sleepers, idlers;
bool waking;
bool sleeps[3]; /* in the kernel, on `rings` */

/* FUTEX_WAKE: one of those that sleep, or all */
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

inline ring(most)
{
	if
	:: sleepers ->
		atomic { saved = (most == 1 && waking); waking = (most == 1 -> 1 : waking) };
		if
		:: !saved -> rings++; kernel_wake(most)
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
		:: FAULT == look_first ->
			seen = (sleepers > 0);
			tasks[p]++;
			if
			:: seen -> ring(1)
			:: else
			fi
		:: else -> tasks[p]++; ring(1)
		fi;
		k++
	:: else -> break
	od;
	tasks[p] == 0; /* who has public tasks is not idle */
	idlers++;
	if
	:: idlers == WORKERS && FAULT != nobody_told -> ring(9)
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
		}; /* a steal: busy before the victim can be idle */
		if
		:: listed -> sleepers--; listed = 0;
			if
			:: FAULT != waking_kept -> waking = 0
			:: else
			fi
		:: else
		fi;
		if
		:: FAULT == own_victim && tasks[victim] -> ring(1)
		:: FAULT != own_victim && LEFT -> ring(1) /* there is more, wherever */
		:: else
		fi;
#ifdef LONG
		break; /* it runs that one for good */
#endif
		victim = 0;
		idlers++
	:: !LEFT && idlers == WORKERS ->
		if
		:: FAULT != nobody_told -> ring(9)
		:: else
		fi;
		break
	:: !LEFT && !listed && idlers != WORKERS ->
		if
		:: FAULT != word_read_late -> key = rings
		:: else
		fi;
		sleepers++;
		listed = 1;
		if
		:: FAULT != ring_unheard -> waking = 0 /* of a ring that came before: it wakes nobody */
		:: else
		fi;
		if
		:: (LEFT || idlers == WORKERS) && FAULT != no_last_look -> skip
		:: else ->
			if
			:: FAULT == word_read_late -> key = rings
			:: else
			fi;
			/* FUTEX_WAIT */
			atomic {
				if
				:: rings == key -> sleeps[w] = 1
				:: else
				fi
			};
			!sleeps[w]
		fi;
		sleepers--;
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
