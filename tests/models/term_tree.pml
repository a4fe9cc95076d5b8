/* SPDX-License-Identifier: Apache-2.0 */
/* term_tree: votes in rounds. Workers 0 .. LOCAL-1 are on device 0, the others on one device each. The root is worker
 * 0. Its children are workers 1 and 2 of its device, and the devices 1 and 2.
 * FAULT=steals_ignored: a worker votes without regard to steals from it: thesis, 5.6.3
 * FAULT=children_ignored: a worker votes before its children have voted
 *
 * Unlike the counters, term_tree tolerates the planted faults of work.pml, as votes depend on attempts. */
#ifndef N
#define N 3
#endif
#ifndef LOCAL
#define LOCAL 3
#endif
#ifndef T
#define T 4
#endif
#ifndef S
#define S 4 /* the maximum number of steals */
#endif
#ifndef TERM_FAULT
#define TERM_FAULT no_fault
#endif
#include "fault.pml"
#define steals_ignored 1
#define children_ignored 2

/* Rounds are counted modulo 4, which is enough because a node is at most one round behind its parent. */
#define ROUND(r) ((r) % 4)
#define OVER 9
byte turn[N], vote[N], vote_work[N];

#define PARENT(w) ((w) < LOCAL -> ((w) - 1) / 2 : 0)

/* Reads the vote of a child. `ready` remains true if the child has voted in this round. `has_work` becomes true if the
 * child has voted that work is left. */
inline child_vote(node, child)
{
	if
	:: child > node && child < N && PARENT(child) == node ->
		ready = ready && (vote[child] == ROUND(round) + 1);
		has_work = has_work || vote_work[child]
	:: else
	fi
}

inline open_round(node)
{
	turn[node] = round;
	voted = 0
}

inline term_idle(w) { skip }
inline term_busy(w) { skip }

/* A call is modelled as one step, because it reads each word once, and each word has only one writer. */
inline term_done(w, verdict)
{
	atomic {
		if
		:: w != 0 && turn[PARENT(w)] != round -> round = turn[PARENT(w)]; open_round(w)
		:: else
		fi;
		if
		:: round == OVER -> verdict = 1
		:: round != OVER && !voted ->
			has_work = (work[w].stolen_out != seen && FAULT != steals_ignored);
			ready = 1;
			c = 1;
			do
			:: c < N && FAULT != children_ignored -> child_vote(w, c); c++
			:: else -> break
			od;
			c = 0;
			if
			:: ready ->
				seen = work[w].stolen_out;
				if
				:: w == 0 && has_work -> round = ROUND(round + 1); open_round(0)
				:: w == 0 && !has_work -> round = OVER; open_round(0); verdict = 1
				:: else ->
					voted = 1;
					vote[w] = ROUND(round) + 1;
					vote_work[w] = has_work
				fi
			:: else
			fi;
			has_work = 0; ready = 0
		:: else
		fi
	}
}

#define STEALS_COUNTED
#define TERM_SCRATCH byte round, seen, c; bool voted, has_work, ready
#include "work.pml"
