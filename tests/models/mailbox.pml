/* SPDX-License-Identifier: Apache-2.0 */
/* Mailboxes between non-coherent devices (sched_mgws, mailbox.dev.h) under term_hcounter. Every task runs once, no
 * worker leaves while a task exists, and no task is stuck. Each access to a shared word is a step. `requested` and `taken`
 * are one word in the code (`asked`), which excludes some of the states here. Only the number of tasks is modelled: a copy
 * is a number that is read and then added. Workers of a device share a range of the initial
 * set and the trylocks. queue.pml models steals among them, unless there is a proxy worker.
 * -DD=2 devices  -DW=2 workers on each  -DI=3 initial tasks, all of device 0  -DT=4 tasks in all
 * -DM=4 numbers of requests before they wrap  -DS=2 steals between the two workers of -DP
 * -DP: device 0 has one worker; device 1 has a proxy and another worker. Only the proxy uses the mailboxes there. It
 * runs no tasks, and grants what it has stolen.
 * FAULT=name:
 *   requests_early  a thief makes a request before it has copied the last grant, which the next one overwrites
 *   request_twice   a victim reads the request before it has the trylock: two workers grant the same one
 *   stale_number    a thief takes an old grant for the answer to its last request
 *   lost_grant      a thief with room for a part of a grant drops the rest
 *   idle_untaken    a victim reports idle although its grant is not taken
 *   busy_late       a thief is busy only after it has written `taken`
 *   claim_idle      a worker claims from the range and is busy only then
 *   range_lost      a range is installed over one that is not used up
 *   range_left      a proxy is idle while the range that it installed is in use
 *   steal_late      a thief is busy only after its steal is complete
 *   one_scan        done() scans once
 *   report_late     busy() does not wait for the report that it takes back */
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
#define BOX(from, to) ((from) * D + (to))
#ifdef P
#define PROXY(w) ((w) == 1)
#define STEALS(w) (DEVICE(w) == 1)
#else
#define PROXY(w) 0
#define STEALS(w) 0
#endif
#define EXCHANGES(w) (PROXY(w) || !STEALS(w))
#define OTHER(w) (3 - (w)) /* the other worker of device 1 */

#define requests_early 1
#define request_twice 2
#define stale_number 3
#define lost_grant 4
#define idle_untaken 5
#define busy_late 6
#define claim_idle 7
#define range_lost 8
#define one_scan 9
#define report_late 10
#define range_left 11
#define steal_late 12
#define HAS(fault) (FAULT == fault)

/* The mailboxes. Their index is BOX(victim's device, thief's device). `read` is in the memory of the thief's device. */
byte requested[D * D], granted[D * D], taken[D * D], tasks[D * D], slice[D * D], read[D * D];
byte range[D], idlers[D], turn[D], reported_idle[D], reported_turn[D];
bool receiving[D], granting[D];
byte held[N], copying[N];
byte made = I, ran, steals;

/* ---- term_hcounter; two words that change in one step model one word ---- */

inline idle_(d)
{
	atomic { idlers[d]++; idle = 1; filled = (idlers[d] == WORKERS(d)); seen = turn[d] };
	if
	:: filled -> d_step { reported_idle[d] = WORKERS(d); reported_turn[d] = seen; filled = 0; seen = 0 }
	:: else -> seen = 0
	fi
}

inline busy_(d)
{
	if
	:: idle ->
		atomic { filled = (idlers[d] == WORKERS(d)); seen = turn[d]; idlers[d]--; turn[d]++; idle = 0 };
		if
		:: filled && (HAS(report_late) || (reported_idle[d] == WORKERS(d) && reported_turn[d] == seen)) ->
			d_step { reported_idle[d] = WORKERS(d) - 1; reported_turn[d] = seen + 1; filled = 0; seen = 0 }
		:: !filled -> seen = 0
		fi
	:: else
	fi
}

/* Adds up the numbers in the words of the devices, except that of the last word. The word of this device is its
 * counter. */
inline scan(sum, devices)
{
	atomic { filled = (idlers[d] == WORKERS(d)); sum = turn[d]; i = 1 };
	do
	:: atomic { i < devices && filled -> filled = (reported_idle[(d + i) % D] == WORKERS((d + i) % D));
		    sum = sum + (i + 1 < D -> reported_turn[(d + i) % D] : 0); i++ }
	:: atomic { i >= devices || !filled -> i = 0; break }
	od
}

/* ---- victim ---- */

inline grant(w, d, to)
{
	atomic { !granting[d] -> granting[d] = 1; m = BOX(d, to); seen = requested[m] };
	if
	:: seen != granted[m] || HAS(request_twice) ->
		atomic { n = range[d] / 2; range[d] = range[d] - n };
		if
		:: d_step { n -> slice[m] = n; tasks[m] = 0; untaken = untaken | (1 << to) }
		:: d_step { !n && held[w] + PROXY(w) >= 2 -> n = (held[w] + PROXY(w)) / 2; held[w] = held[w] - n; slice[m] = 0;
			    tasks[m] = n; untaken = untaken | (1 << to) }
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

inline receive(w, d, from)
{
	if
	:: atomic { requested[m] == taken[m] -> requested[m] = (requested[m] + 1) % M }
	:: requested[m] != taken[m] && (granted[m] == requested[m] || (HAS(stale_number) && tasks[m] + slice[m])) &&
	   (tasks[m] || !range[d] || HAS(range_lost)) ->
		if
		:: HAS(busy_late)
		:: else -> busy_(d)
		fi;
		if
		:: HAS(requests_early) && !read[m] -> d_step { taken[m] = requested[m]; requested[m] = (requested[m] + 1) % M }
		:: else
		fi;
		if
		:: d_step { tasks[m] -> n = (tasks[m] - read[m] + 1) / 2; read[m] = read[m] + n;
			    left = tasks[m] - read[m]; held[w] = held[w] + n }
		:: else -> n = slice[m]; range[d] = n
		fi;
		if
		:: d_step { (!left || HAS(lost_grant)) && !HAS(requests_early) -> read[m] = 0; taken[m] = requested[m] }
		:: d_step { !left && HAS(requests_early) -> read[m] = 0 }
		:: else
		fi;
		if
		:: HAS(busy_late) -> busy_(d)
		:: else
		fi
	:: else
	fi;
	d_step { receiving[d] = 0; m = 0; n = 0; left = 0 }
}

#define REQUESTED(to) (requested[BOX(d, to)] != granted[BOX(d, to)])
#define GRANTED(from) (requested[BOX(from, d)] == taken[BOX(from, d)] || granted[BOX(from, d)] == requested[BOX(from, d)] || \
		      HAS(stale_number))
#if D > 2
#define EITHER(x) d != 0 && x(0) || d != 1 && x(1) || d != 2 && x(2)
#else
#define EITHER(x) d != 0 && x(0) || d != 1 && x(1)
#endif

proctype worker(byte w)
{
	byte n, m, i, seen, untaken, left, to, first, second;
	bool idle, filled;
	byte d = DEVICE(w);
	do
	/* A worker with tasks runs one. */
	:: d_step { held[w] && !PROXY(w) -> held[w]--; ran++; assert(ran <= made) }
	:: d_step { held[w] && !PROXY(w) && made < T -> made++; held[w]++ }
	:: d_step { !held[w] && !PROXY(w) && !idle && range[d] -> range[d]--; held[w]++ }
	/* A worker steals. The proxy steals tasks that it then grants to other devices. */
	:: atomic { STEALS(w) && steals < S && !held[w] && held[OTHER(w)] && (!PROXY(w) || (EITHER(REQUESTED))) ->
			steals++; held[OTHER(w)]--; copying[OTHER(w)]++ };
		if
		:: HAS(steal_late) -> copying[OTHER(w)]--; busy_(d); held[w]++
		:: else -> busy_(d); d_step { held[w]++; copying[OTHER(w)]-- }
		fi
	/* A worker answers the request of another device. */
	:: atomic { !idle && EXCHANGES(w) && (range[d] >= 2 || held[w] + PROXY(w) >= 2) && (EITHER(REQUESTED)) ->
			if
			:: d != 0 && REQUESTED(0) -> to = 0
			:: d != 1 && REQUESTED(1) -> to = 1
#if D > 2
			:: d != 2 && REQUESTED(2) -> to = 2
#endif
			fi };
		grant(w, d, to);
		to = 0
	/* A worker without tasks takes from the range. */
	:: !held[w] && !PROXY(w) && idle && range[d] ->
		if
		:: HAS(claim_idle)
		:: else -> busy_(d)
		fi;
		atomic { if :: range[d] -> range[d]--; held[w]++ :: else fi };
		if
		:: HAS(claim_idle) && held[w] -> busy_(d)
		:: else
		fi
	/* A worker without tasks takes from the mailboxes. */
	:: atomic { !held[w] && EXCHANGES(w) && !receiving[d] && (EITHER(GRANTED)) ->
			if
			:: d != 0 && GRANTED(0) -> m = BOX(0, d)
			:: d != 1 && GRANTED(1) -> m = BOX(1, d)
#if D > 2
			:: d != 2 && GRANTED(2) -> m = BOX(2, d)
#endif
			fi;
			receiving[d] = 1 };
		receive(w, d, to)
	/* A worker without tasks checks that its grants are taken and that the range is used up. It checks one device
	 * after the other. */
	:: d_step { untaken & 1 && taken[BOX(d, 0)] == granted[BOX(d, 0)] -> untaken = untaken & 6 }
	:: d_step { untaken & 2 && taken[BOX(d, 1)] == granted[BOX(d, 1)] -> untaken = untaken & 5 }
#if D > 2
	:: d_step { untaken & 4 && taken[BOX(d, 2)] == granted[BOX(d, 2)] -> untaken = untaken & 3 }
#endif
	:: !held[w] && !idle && !copying[w] && (!range[d] || (PROXY(w) && HAS(range_left))) &&
	   (!untaken || HAS(idle_untaken)) -> idle_(d)
	:: idle && idlers[d] == WORKERS(d) ->
		scan(first, D);
		if
		:: filled && !HAS(one_scan) -> scan(second, D - 1)
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
