/* SPDX-License-Identifier: Apache-2.0 */
/* Stops of a sample that the caller executes itself (plugins/device_cpu/caller.c). The task of a sample may never end by
 * itself. It must end by a request of another thread or, without a request, by the watchdog. No request and no deadline may
 * stop a later sample.
 *   -DREQUESTS              another thread requests a stop, and the watchdog finds no deadline in the past
 *   FAULT=unasked           the host does not look for requests that came before the sample
 *   FAULT=unnumbered        a stop does not check the number of the sample
 *   FAULT=unwaited          the host does not wait until the stop that it finds is stored
 *   FAULT=sleeps_first      the watchdog looks for a sample before it says that it sleeps
 *   FAULT=unwoken           the caller does not wake the watchdog */
#include "fault.pml"
#ifndef S
#define S 3
#endif
#define unasked 1
#define unnumbered 2
#define unwaited 3
#define sleeps_first 4
#define unwoken 5
#define OUTSIDE 0
#define INSIDE 1
#define STOPPED 2
#define STATE(n, value) ((n) * 4 + (value))

byte state;  /* the number of the sample and the place of the caller */
byte asked;  /* number of requests since the sample was started */
bool stop;   /* the word that workers poll */
bool asleep; /* the watchdog sleeps, or is about to */
bool over;

/* stop_in(): `seen` is the state of the sample to stop. */
inline stop_in(seen, did)
{
	did = 0;
	atomic { /* a compare-and-exchange */
		if
		:: seen % 4 == INSIDE && (state == seen || (FAULT == unnumbered && state % 4 == INSIDE)) ->
			state = state - INSIDE + STOPPED;
			did = 1
		:: else
		fi
	};
	if
	:: did ->
		assert(state / 4 == seen / 4); /* this sample waits for the store */
		stop = 1
	:: else
	fi
}

proctype host()
{
	byte n, now;
	bool did, ends;
	for (n : 1 .. S) {
		asked = 0; /* requests from before the run do not count */
		state = STATE(n, INSIDE);
		if
		:: asleep && FAULT != unwoken -> asleep = 0
		:: else
		fi;
		if /* loom__sample_begin() */
		:: asked && FAULT != unasked -> now = state; stop_in(now, did)
		:: else
		fi;
#ifdef REQUESTS
		ends = (n < S); /* the request comes in the last sample at the latest */
#endif
		stop || ends;
		atomic { now = state; state = STATE(n, OUTSIDE) };
		if
		:: now % 4 == STOPPED && FAULT != unwaited -> stop
		:: else
		fi;
		assert(!stop || now % 4 == STOPPED);
		stop = 0 /* a new launch */
	}
	over = 1;
	asleep = 0
}

#ifdef REQUESTS
proctype requester()
{
	byte seen;
	bool did;
	do
	:: over -> break
	:: !over ->
		asked = 1;
		seen = state;
		stop_in(seen, did);
		!asked || over /* one request for each run */
	od
}
#endif

proctype watchdog()
{
	byte seen, last;
	bool did;
	do
	:: over -> break
	:: else ->
		last = seen;
		if
		:: FAULT == sleeps_first && state % 4 != INSIDE -> asleep = 1; !asleep || over
		:: else
		fi;
		seen = state;
		if
		:: seen % 4 == INSIDE ->
#ifndef REQUESTS
			stop_in(seen, did); /* its deadline has passed */
#endif
			state != seen || over
		:: seen % 4 != INSIDE && seen == last ->
			asleep = 1;
			if
			:: state == seen && !over -> !asleep || over
			:: else
			fi;
			asleep = 0
		:: else
		fi
	od
}

init {
	atomic {
		run host();
		run watchdog();
#ifdef REQUESTS
		run requester()
#endif
	}
}
