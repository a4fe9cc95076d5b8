/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants within their shares, beside a tenant that exceeds its share (plugins/qos/service_rounds.c, doorbell.c,
 * threads.c, service.dev.h). While the policy admits no tenant, the serving thread sleeps and all doorbells are
 * disarmed. Tenants in the policy's wake mask ring the server doorbell. T tenants of one worker each post K requests,
 * at most two at a time. The policy decides at random which tenant has savings, and whether there are tokens for the
 * other tenants. If only a timer can continue, no request of a tenant in the mask may be unanswered, because it would
 * wait for the end of the sleep. If no timer runs either, all requests must be answered.
 *   -DHALVES=split            a bottom half fills queues while the worker thread serves; doorbells are masked
 *   -DHALVES=monolithic       the serving thread fills, too; another top half finds the lock taken
 *   FAULT=check_first       the server checks the bits before it arms its doorbell
 *   FAULT=no_last_check     the server arms its doorbell and sleeps without a check
 *   FAULT=mask_late         the server stores the wake mask after the check
 *   FAULT=drained_late      the server discards earlier rings after the check
 *   FAULT=queue_unseen      the server checks only the bits, but a request may already be in a queue
 *   FAULT=fill_silent       the bottom half does not check whether the server sleeps
 *   FAULT=armed_once        the doorbell is not armed again after it was rung */
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
#define check_first 1
#define no_last_check 2
#define mask_late 3
#define drained_late 4
#define queue_unseen 5
#define fill_silent 6
#define armed_once 7

#define OUTSTANDING 2

bool mark[T], wake_mask[T];
byte head[T], queued[T], served[T];
bool armed[D], rings[D];     /* whether each doorbell, an eventfd, is armed and was rung */
bool server_armed, server_rings; /* whether the server doorbell is armed, and whether it was rung */
bool lock, fill_requested, bottom, work;
bool asleep, timer;

#define posted (mark[0] || mark[T - 1])
#define waits(t) (queued[t] != served[t])
#define masked_posted ((wake_mask[0] && mark[0]) || (wake_mask[T - 1] && mark[T - 1]))
#define masked_waits ((wake_mask[0] && waits(0)) || (wake_mask[T - 1] && waits(T - 1)))

inline ring(v)
{
	atomic { old = armed[v]; armed[v] = 0 };
	if
	:: old -> rings[v] = 1
	:: else
	fi
}

inline ring_server()
{
	atomic { old = server_armed; server_armed = 0 };
	if
	:: old -> server_rings = 1
	:: else
	fi
}

/* Models qos_request() and qos_wake_server(), and qos_wait() when no slot is left. */
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
			ring(v);
			if
			:: server_armed ->
				if
				:: wake_mask[t] -> ring_server()
				:: else
				fi
			:: else
			fi
		:: else /* the request that set the bit has already rung */
		fi
	:: else -> break
	od
}

/* Models qos_fill(), which the holder of the lock executes. */
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
	:: FAULT != fill_silent && server_armed && masked_waits -> ring_server()
	:: else
	fi;
}

/* Models wait_for_policies(): qos_wake_arm(), qos_sleep() and qos_wake_disarm(). */
inline wait_for_policies()
{
	seen = 0;
	if
	:: FAULT == check_first && masked_posted -> seen = 1
	:: else
	fi;
	if
	:: FAULT != mask_late -> atomic { wake_mask[0] = want[0]; wake_mask[T - 1] = want[T - 1] }
	:: else
	fi;
	if
	:: FAULT != armed_once || !was_rung -> server_armed = 1
	:: else
	fi;
	if
	:: FAULT != check_first && FAULT != no_last_check && masked_posted -> seen = 1
	:: else
	fi;
	if
	:: FAULT != queue_unseen && masked_waits -> seen = 1
	:: else
	fi;
	if
	:: FAULT == mask_late -> atomic { wake_mask[0] = want[0]; wake_mask[T - 1] = want[T - 1] }
	:: FAULT == drained_late -> server_rings = 0
	:: else
	fi;
	if
	:: !seen ->
		asleep = 1;
		if
		:: server_rings -> atomic { server_rings = 0; was_rung = 1; asleep = 0 }
		:: timer -> atomic { timer = 0; asleep = 0 }
		:: ticks < 1 -> atomic { ticks++; asleep = 0 } /* the timer may end the sleep at any time, but only once */
		fi
	:: else
	fi;
	server_armed = 0
}

/* Admits a tenant with savings, otherwise a tenant for which there are tokens, otherwise none. */
inline serve_round()
{
	tenant = T;
	i = 0;
	do
	:: i < T ->
		if
		:: saved = 1
		:: saved = 0
		fi;
		want[i] = 0;
		if
		:: saved && waits(i) -> tenant = i
		:: saved && !waits(i) -> want[i] = 1
		:: else
		fi;
		i++
	:: else -> i = 0; break
	od;
	if
	:: tenant == T && waits(0) -> tenant = 0
	:: tenant == T && waits(T - 1) -> tenant = T - 1
	:: tenant == T -> wait_for_policies()
	:: else
	fi;
	if
	:: tenant < T -> served[tenant]++
	:: else
	fi;
	tenant = T
}

#define any_waits (waits(0) || waits(T - 1))

#if HALVES == split
proctype top(byte v)
{
end_t:	do
	:: atomic { rings[v] -> rings[v] = 0 };
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
	byte i, n, tenant = T, ticks;
	bool want[T], had, old, seen, saved, was_rung;
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
		:: any_waits -> serve_round(); goto serve
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
	byte i, n, tenant = T, ticks;
	bool want[T], had, old, seen, saved, was_rung;
end_t:	do
	:: atomic { rings[v] -> rings[v] = 0 };
again:
		atomic { had = !lock; lock = 1 };
		if
		:: !had ->
			fill_requested = 1;
			atomic { had = !lock; lock = 1 }
		:: else
		fi;
		if
		:: had ->
			fill_requested = 0;
disarm:
			armed[0] = 0;
			armed[D - 1] = 0;
serve:
			fill();
			if
			:: any_waits -> serve_round(); goto serve
			:: else
			fi;
			armed[0] = 1;
			armed[D - 1] = 1;
			if
			:: posted -> goto disarm
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

proctype watch()
{
	do
	:: timeout ->
		if
		:: asleep ->
			assert(!(wake_mask[0] && head[0] != served[0]) && !(wake_mask[T - 1] && head[T - 1] != served[T - 1]));
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
