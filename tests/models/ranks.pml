/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that steal from each other by three operations on the victim's memory: a claim, a read, an add to its completion
 * count; and term_hcounter's words over ranks. One worker a rank. An add to a completion count is posted, so it may arrive
 * long after what its thief does next. A thief may die between any two steps; then the others are stopped.
 *
 * Nobody ever says that all is done while a task has not been run: a rank that died with tasks is a run without an end,
 * and never a wrong count.
 *
 * -DASKS: ranks reach each other by messages alone. Each has a part of the initial set and a word for it, from which the
 * others claim too, by a look and an add, also a worker that has reported idle.
 *   FAULT=idle_early       idle while a thief still copies
 *   FAULT=completed_early  the completion is posted before the thief is busy
 *   FAULT=busy_posted      that the thief is busy travels like a message, and the completion overtakes it
 *   FAULT=one_look         done() does not look again
 *   FAULT=left_ignored     idle while initial tasks are unclaimed
 *   FAULT=claimed_early    such a worker claims before it is busy
 *   FAULT=forgiven         the copies of a thief that died count as complete
 *   FAULT=dead_is_idle     a rank that died counts as full */
#include "fault.pml"
#ifndef R
#define R 3
#endif
#ifndef T
#define T 3 /* tasks */
#endif
#ifndef I
#define I 1 /* of them in the initial set, all in the part of rank 0 */
#endif
#ifdef ASKS
#define MINE w
#else
#define MINE 0
#endif
#ifndef S
#define S 2 /* steals */
#endif
#ifndef D
#define D 1 /* deaths */
#endif
#define idle_early 1
#define completed_early 2
#define busy_posted 3
#define one_look 4
#define left_ignored 5
#define forgiven 6
#define dead_is_idle 7
#define claimed_early 8

byte left[R], made = I, ran, steals, deaths;
bool stop;
byte tasks[R], copying[R];
bool spent[R], said[R]; /* the rank has no work: its counter, and its word as others see it */
byte turn[R], said_turn[R];
byte coming[R];		/* completions under way to the rank */
bool saying[R], dead[R];

/* Messages arrive, in any order; and whoever started the job sees a death. */
active proctype network()
{
end:	do
	:: atomic { coming[0] -> coming[0]--; copying[0]-- }
	:: atomic { coming[1] -> coming[1]--; copying[1]-- }
#if R > 2
	:: atomic { coming[2] -> coming[2]--; copying[2]-- }
#endif
	:: atomic { saying[0] -> saying[0] = 0; said[0] = 0; said_turn[0] = turn[0] }
	:: atomic { saying[1] -> saying[1] = 0; said[1] = 0; said_turn[1] = turn[1] }
#if R > 2
	:: atomic { saying[2] -> saying[2] = 0; said[2] = 0; said_turn[2] = turn[2] }
#endif
	:: atomic { deaths && !stop -> stop = 1 }
	od
}

/* Between two steps a rank may be gone. */
inline may_die()
{
	if
	:: atomic { deaths < D -> deaths++; dead[w] = 1;
		    if
		    :: FAULT == forgiven && took -> copying[v]--
		    :: FAULT == dead_is_idle -> spent[w] = 1; said[w] = 1
		    :: else
		    fi };
		goto gone
	:: true
	fi
}

/* All words, one after the other, beginning with the rank's own counter; the last does not count. */
inline look(sum, upto)
{
	atomic { filled = spent[w]; sum = turn[w]; i = 1 };
	do
	:: atomic { i < upto && filled -> filled = said[(w + i) % R];
		    sum = sum + (i + 1 < R -> said_turn[(w + i) % R] : 0); i++ }
	:: atomic { i >= upto || !filled -> i = 0; break }
	od
}

inline become_busy()
{
	atomic { spent[w] = 0; turn[w]++ };
	if
	:: FAULT == busy_posted -> saying[w] = 1
	:: else -> d_step { said[w] = 0; said_turn[w] = turn[w] }
	fi
}

inline claim()
{
	atomic { took = left[0] > 0; left[0] = left[0] - took }
}

inline complete()
{
	atomic { coming[v]++ }
}

proctype worker(byte w)
{
	byte v, i, seen, again;
	bool idle, took, filled, verdict;
	do
	/* a task makes another one, or ends */
	:: atomic { tasks[w] && made < T -> made++; tasks[w]++ }
	:: atomic { tasks[w] -> tasks[w]--; ran++ }
	/* the initial set: one add, wherever its word is */
	:: atomic { !tasks[w] && left[MINE] && !idle -> left[MINE]-- };
		may_die();
		tasks[w]++
#ifdef ASKS
	:: !tasks[w] && !left[w] && w != 0 && left[0] ->
		if
		:: FAULT == claimed_early -> claim()
		:: else
		fi;
		may_die();
		if
		:: idle -> become_busy(); idle = 0
		:: else
		fi;
		may_die();
		if
		:: FAULT != claimed_early -> claim()
		:: else
		fi;
		may_die();
		atomic { tasks[w] = tasks[w] + took; took = 0 }
#endif
	:: tasks[w] && deaths < D -> may_die()
	:: atomic { !tasks[w] && !idle && (!left[MINE] || FAULT == left_ignored) && (!copying[w] || FAULT == idle_early) -> idle = 1; spent[w] = 1 };
		d_step { said[w] = 1; said_turn[w] = turn[w] }
	:: atomic { !tasks[w] && steals < S ->
		    if
		    :: v = (w + 1) % R
		    :: v = (w + 2) % R
		    fi;
		    if
		    :: v != w && tasks[v] -> tasks[v]--; copying[v]++; steals++; took = 1
		    :: else
		    fi };
		if
		:: took ->
			may_die();
			if
			:: FAULT == completed_early -> complete()
			:: else
			fi;
			if
			:: idle -> become_busy()
			:: else
			fi;
			may_die();
			atomic { idle = 0; tasks[w]++ };
			may_die();
			if
			:: FAULT != completed_early -> complete()
			:: else
			fi;
			atomic { v = 0; took = 0 }
		:: else -> v = 0
		fi
	:: !tasks[w] && idle && !verdict ->
		look(seen, R);
		if
		:: filled && FAULT != one_look -> look(again, R - 1)
		:: else -> again = seen
		fi;
		verdict = filled && seen == again;
		filled = 0; seen = 0; again = 0
	:: verdict -> assert(ran == made && !left[0]); break
	:: stop -> break
	od;
gone:	skip
}

init {
	byte w;
	atomic {
		left[0] = I;
		do
		:: w < R -> run worker(w); w++
		:: else -> break
		od
	}
}
