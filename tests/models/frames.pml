/* SPDX-License-Identifier: Apache-2.0 */
/* Pages in frames of a GPU's memory (plugins/workloads/requests/pages.dev.h, plugins/qos/device_frames.c). R readers
 * read K words each, of any of P pages, through a table that only readers change. There are F frames. A reader that
 * finds a page absent claims the page, takes a frame or evicts a page without pins, and sends a request. The host fills
 * a frame and answers with its number. Each read must get the right page. The search may reach a state without a next
 * step only after all reads.
 *   FAULT=answered_early  the host answers before the frame is filled
 *   FAULT=shown_early     the page becomes present before the answer
 *   FAULT=pins_ignored    a page is evicted while it is read
 *   FAULT=unchecked       a reader does not check the state again after pinning
 *   FAULT=held            a reader with a page waits for the frame of another
 *   FAULT=lost_answer     an answer is lost while another is unread */
#include "fault.pml"
#ifndef P
#define P 2
#endif
#ifndef F
#define F 1
#endif
#ifndef R
#define R 2
#endif
#ifndef K
#define K 2
#endif
#define answered_early 1
#define shown_early 2
#define pins_ignored 3
#define unchecked 4
#define held 5
#define lost_answer 6
#define ABSENT 0
#define FAULTING 1
#define PRESENT 2
#define EVICTING 3
#define NOTHING 255

byte state[P], pins[P], frame[P], left = F, over;
byte content[F];
/* the host's record of the page in each frame */
byte owner[F];
chan fault = [R] of {byte, byte};
chan evict = [R] of {byte, byte};
byte answered[R]; /* 1 plus the answer, or 0 */

inline answer(reader, what)
{
	if
	:: FAULT == lost_answer && answered[1 - reader] -> skip
	:: else -> answered[reader] = 1 + what
	fi
}

proctype host()
{
	byte reader, p, f;
end_h:	do
	:: fault?reader,p ->
		f = 0;
		do
		:: owner[f] == NOTHING -> break
		:: else -> f++; assert(f < F)
		od;
		owner[f] = p;
		content[f] = NOTHING;
		if
		:: FAULT == answered_early -> answer(reader, f); content[f] = p
		:: else -> content[f] = p; answer(reader, f)
		fi
	:: evict?reader,p ->
		f = 0;
		do
		:: owner[f] == p -> break
		:: else -> f++; assert(f < F)
		od;
		owner[f] = NOTHING;
		answer(reader, 0)
	od
}

proctype reader(byte me)
{
	byte p, q, f, n, kept = NOTHING;
	do
	:: n == K -> break
	:: n < K ->
		if
		:: p = 0
		:: p = P - 1
		fi;
retry:		if
		:: state[p] == PRESENT ->
			pins[p]++;
			if
			:: atomic { FAULT != unchecked && state[p] != PRESENT -> pins[p]-- };
				goto retry
			:: atomic { FAULT == unchecked || state[p] == PRESENT -> f = frame[p] }
			fi
		:: atomic { state[p] == ABSENT -> state[p] = FAULTING };
			if
			:: atomic { left > 0 -> left-- }
			:: atomic { left == 0 && state[0] == PRESENT && (pins[0] == 0 || FAULT == pins_ignored) ->
				state[0] = EVICTING; q = 0 };
				goto back
			:: atomic { left == 0 && state[P - 1] == PRESENT && (pins[P - 1] == 0 || FAULT == pins_ignored) ->
				state[P - 1] = EVICTING; q = P - 1 };
back:				evict!me,q;
				atomic { answered[me] -> answered[me] = 0 };
				state[q] = ABSENT
			fi;
			if
			:: FAULT == shown_early -> atomic { frame[p] = 0; state[p] = PRESENT; pins[p]++ }
			:: else
			fi;
			fault!me,p;
			atomic { answered[me] -> f = answered[me] - 1; answered[me] = 0 };
			if
			:: FAULT == shown_early -> frame[p] = f
			:: else -> atomic { frame[p] = f; state[p] = PRESENT; pins[p]++ }
			fi
		fi;
		assert(content[f] == p);
		n++;
		if
		:: FAULT == held && n < K && kept == NOTHING -> kept = p /* keeps the page until the next page is present */
		:: else ->
			pins[p]--;
			if
			:: kept != NOTHING -> pins[kept]--; kept = NOTHING
			:: else
			fi
		fi
	od;
	over++
}

/* This process runs only in a deadlock, and checks that all reads have ended. */
proctype watch()
{
	timeout -> assert(over == R)
}

init {
	atomic {
		content[0] = NOTHING;
		owner[0] = NOTHING;
		content[F - 1] = NOTHING;
		owner[F - 1] = NOTHING;
		run watch();
		run host();
		run reader(0);
		run reader(1);
#if R > 2
		run reader(2);
#endif
	}
}
