/* SPDX-License-Identifier: Apache-2.0 */
/* Mail between devices that are apart (sched_mgws, mail.dev.h) under term_hcounter: every task runs once, nobody
 * leaves while there is one, and nobody is stuck. Each access to a word that others see is a step. Tasks are
 * counted: a copy under way is a number read and then added. Workers of a device share a range of the initial set
 * and the desk; steals among them are queue.pml's business, unless there is a postmaster.
 *
 *   -DD=2 devices  -DW=2 workers on each  -DI=3 initial tasks, all of device 0  -DT=4 tasks in all
 *   -DM=4 numbers of wishes before they begin again
 *   -DP: device 0 has one worker, device 1 a postmaster and another: it alone deals with mail there, runs no tasks, and
 *        what it posts it has stolen; -DS=2 steals among these two
 *   FAULT=name:
 *     asks_early    a thief asks again before it has copied what came: the next mail overwrites it
 *     wish_twice    a victim looks at the wish before it is at the desk: two workers grant the same one
 *     stale_number  a thief takes what is there for the answer to its last wish
 *     lost_grant    a thief with room for a part forgets the rest
 *     idle_owing    a victim reports idle although its mail is not taken
 *     busy_late     a thief is busy only after it said that mail is taken
 *     draw_idle     a worker draws from the range and is busy only then
 *     range_lost    a range is installed over one that is not used up
 *     range_left    a postmaster is idle while the range that it installed is in use
 *     steal_late    a thief is busy only after its steal is complete
 *     one_look      done() looks once
 *     said_late     busy() does not wait for what it takes back */
#include "fault.pml"
#ifndef D
#define D 2
#endif
#ifndef W
#define W 2
#endif
#ifndef I
#define I 3
#endif
#ifndef T
#define T 4
#endif
#ifndef M
#define M 4
#endif
#ifndef S
#define S 2
#endif
#ifdef P
#define N 3
#define DEVICE(w) ((w) != 0)
#define WORKERS(d) ((d) + 1)
#else
#define N (D * W)
#define DEVICE(w) ((w) % D)
#define WORKERS(d) W
#endif
#define MAIL(from, to) ((from) * D + (to))
#ifdef P
#define POST(w) ((w) == 1)
#define STEALS(w) (DEVICE(w) == 1)
#else
#define POST(w) 0
#define STEALS(w) 0
#endif
#define MAILS(w) (POST(w) || !STEALS(w))
#define OTHER(w) (3 - (w)) /* of device 1 */

#define asks_early 1
#define wish_twice 2
#define stale_number 3
#define lost_grant 4
#define idle_owing 5
#define busy_late 6
#define draw_idle 7
#define range_lost 8
#define one_look 9
#define said_late 10
#define range_left 11
#define steal_late 12
#define HAS(fault) (FAULT == fault)

/* Mail boxes. `read` is the thief's device's own. */
byte asked[D * D], granted[D * D], taken[D * D], tasks[D * D], slice[D * D], read[D * D];
/* Devices. */
byte range[D], idlers[D], turn[D], said_idle[D], said_turn[D];
bool fetching[D], granting[D];
/* Workers. */
byte held[N], copying[N];
byte made = I, ran, steals;

/* ---- term_hcounter: two words in one step are one word ---- */

inline idle_(d)
{
	atomic { idlers[d]++; idle = 1; filled = (idlers[d] == WORKERS(d)); seen = turn[d] };
	if
	:: filled -> d_step { said_idle[d] = WORKERS(d); said_turn[d] = seen; filled = 0; seen = 0 }
	:: else -> seen = 0
	fi
}

inline busy_(d)
{
	if
	:: idle ->
		atomic { filled = (idlers[d] == WORKERS(d)); seen = turn[d]; idlers[d]--; turn[d]++; idle = 0 };
		if
		:: filled && (HAS(said_late) || (said_idle[d] == WORKERS(d) && said_turn[d] == seen)) ->
			d_step { said_idle[d] = WORKERS(d) - 1; said_turn[d] = seen + 1; filled = 0; seen = 0 }
		:: !filled -> seen = 0
		fi
	:: else
	fi
}

/* This device's word is its counter; the last one's turns do not count. */
inline look(sum, devices)
{
	atomic { filled = (idlers[d] == WORKERS(d)); sum = turn[d]; i = 1 };
	do
	:: atomic { i < devices && filled -> filled = (said_idle[(d + i) % D] == WORKERS((d + i) % D));
		    sum = sum + (i + 1 < D -> said_turn[(d + i) % D] : 0); i++ }
	:: atomic { i >= devices || !filled -> i = 0; break }
	od
}

/* ---- victim ---- */

inline grant(w, d, to)
{
	atomic { !granting[d] -> granting[d] = 1; m = MAIL(d, to); seen = asked[m] };
	if
	:: seen != granted[m] || HAS(wish_twice) ->
		atomic { n = range[d] / 2; range[d] = range[d] - n };
		if
		:: d_step { n -> slice[m] = n; tasks[m] = 0; owed = owed | (1 << to) }
		:: d_step { !n && held[w] + POST(w) >= 2 -> n = (held[w] + POST(w)) / 2; held[w] = held[w] - n; slice[m] = 0;
			    tasks[m] = n; owed = owed | (1 << to) }
		:: else
		fi;
		if
		:: n -> granted[m] = seen
		:: else
		fi
	:: else
	fi;
	d_step { granting[d] = 0; n = 0; seen = 0; m = 0 }
}

/* ---- thief ---- */

inline fetch(w, d, from)
{
	if
	:: atomic { asked[m] == taken[m] -> asked[m] = (asked[m] + 1) % M }
	:: asked[m] != taken[m] && (granted[m] == asked[m] || (HAS(stale_number) && tasks[m] + slice[m])) &&
	   (tasks[m] || !range[d] || HAS(range_lost)) ->
		if
		:: HAS(busy_late)
		:: else -> busy_(d)
		fi;
		if
		:: HAS(asks_early) && !read[m] -> d_step { taken[m] = asked[m]; asked[m] = (asked[m] + 1) % M }
		:: else
		fi;
		if
		:: d_step { tasks[m] -> n = (tasks[m] - read[m] + 1) / 2; read[m] = read[m] + n;
			    left = tasks[m] - read[m]; held[w] = held[w] + n }
		:: else -> n = slice[m]; range[d] = n
		fi;
		if
		:: d_step { (!left || HAS(lost_grant)) && !HAS(asks_early) -> read[m] = 0; taken[m] = asked[m] }
		:: d_step { !left && HAS(asks_early) -> read[m] = 0 }
		:: else
		fi;
		if
		:: HAS(busy_late) -> busy_(d)
		:: else
		fi
	:: else
	fi;
	d_step { fetching[d] = 0; m = 0; n = 0; left = 0 }
}

#define WISHED(to) (asked[MAIL(d, to)] != granted[MAIL(d, to)])
#define POSTED(from) (asked[MAIL(from, d)] == taken[MAIL(from, d)] || granted[MAIL(from, d)] == asked[MAIL(from, d)] || \
		      HAS(stale_number))
#if D > 2
#define EITHER(x) d != 0 && x(0) || d != 1 && x(1) || d != 2 && x(2)
#else
#define EITHER(x) d != 0 && x(0) || d != 1 && x(1)
#endif

proctype worker(byte w)
{
	byte n, m, i, seen, owed, left, to, first, second;
	bool idle, filled;
	byte d = DEVICE(w);
	do
	/* It has work. */
	:: d_step { held[w] && !POST(w) -> held[w]--; ran++; assert(ran <= made) }
	:: d_step { held[w] && !POST(w) && made < T -> made++; held[w]++ }
	:: d_step { !held[w] && !POST(w) && !idle && range[d] -> range[d]--; held[w]++ }
	/* It steals, the postmaster for others. */
	:: atomic { STEALS(w) && steals < S && !held[w] && held[OTHER(w)] && (!POST(w) || (EITHER(WISHED))) ->
			steals++; held[OTHER(w)]--; copying[OTHER(w)]++ };
		if
		:: HAS(steal_late) -> copying[OTHER(w)]--; busy_(d); held[w]++
		:: else -> busy_(d); d_step { held[w]++; copying[OTHER(w)]-- }
		fi
	/* Another device wants some. */
	:: atomic { !idle && MAILS(w) && (range[d] >= 2 || held[w] + POST(w) >= 2) && (EITHER(WISHED)) ->
			if
			:: d != 0 && WISHED(0) -> to = 0
			:: d != 1 && WISHED(1) -> to = 1
#if D > 2
			:: d != 2 && WISHED(2) -> to = 2
#endif
			fi };
		grant(w, d, to);
		to = 0
	/* It looks for work: the range ... */
	:: !held[w] && !POST(w) && idle && range[d] ->
		if
		:: HAS(draw_idle)
		:: else -> busy_(d)
		fi;
		atomic { if :: range[d] -> range[d]--; held[w]++ :: else fi };
		if
		:: HAS(draw_idle) && held[w] -> busy_(d)
		:: else
		fi
	/* ... and mail. */
	:: atomic { !held[w] && MAILS(w) && !fetching[d] && (EITHER(POSTED)) ->
			if
			:: d != 0 && POSTED(0) -> m = MAIL(0, d)
			:: d != 1 && POSTED(1) -> m = MAIL(1, d)
#if D > 2
			:: d != 2 && POSTED(2) -> m = MAIL(2, d)
#endif
			fi;
			fetching[d] = 1 };
		fetch(w, d, to)
	/* It has none: its mail is taken, the range is used up. A wish is looked at before the one of the next device. */
	:: d_step { owed & 1 && taken[MAIL(d, 0)] == granted[MAIL(d, 0)] -> owed = owed & 6 }
	:: d_step { owed & 2 && taken[MAIL(d, 1)] == granted[MAIL(d, 1)] -> owed = owed & 5 }
#if D > 2
	:: d_step { owed & 4 && taken[MAIL(d, 2)] == granted[MAIL(d, 2)] -> owed = owed & 3 }
#endif
	:: !held[w] && !idle && !copying[w] && (!range[d] || (POST(w) && HAS(range_left))) &&
	   (!owed || HAS(idle_owing)) -> idle_(d)
	:: idle && idlers[d] == WORKERS(d) ->
		look(first, D);
		if
		:: filled && !HAS(one_look) -> look(second, D - 1)
		:: else -> second = first
		fi;
		if
		:: filled && first == second -> break
		:: else -> d_step { first = 0; second = 0; filled = 0 }
		fi
	od;
	atomic { first = 0; second = 0; filled = 0 };
	assert(made == ran)
}

init {
	byte w;
	atomic {
		range[0] = I;
		do
		:: w < N -> run worker(w); w++
		:: else -> break
		od
	}
}
