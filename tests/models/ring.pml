/* SPDX-License-Identifier: Apache-2.0 */
/* The public queue of sched_mgws: the word, the ring, the owner's metadata, and the operations of owners and thieves. A
 * process that uses the queue is a worker. It declares the following variables. Those of the last line are scratch
 * variables, which are 0 between operations.
 *   byte mine[L], held_tasks   its local queue
 *   bool idle                  reported to the detector
 *   n, i, e, left, taken, room, old, at, keep, ep, in_place, loot, ok */
#include "fault.pml"
#ifndef N
#define N 2
#endif
#ifndef OWNERS
#define OWNERS 1
#endif
#ifndef T
#define T 15
#endif
#ifndef R
#define R 4
#endif
#ifndef L
#define L 3
#endif
#ifndef BITS
#define BITS 3
#endif

#define idle_unchecked 1   /* idle while copies are under way: thesis, table 6 */
#define epoch_reentered 2  /* a new epoch ignores copies of the last epoch with the same bit */
#define readers_ignored 3  /* the owner writes where thieves still copy: thesis, 5.1 */
#define completed_early 4  /* a steal is marked as complete before the thief is counted as busy */
#define lock_ignored 5     /* an attempt succeeds although the queue is locked */
#define room_ignored 6     /* the owner writes to a full ring */
#define attempts_wrap 7    /* a thief makes attempts without a check before */
#define thief_no_room 8   /* a thief does not wait for room in its own ring: thesis, 5.1 */
#define unheld 9           /* two co-owners use the queue at the same time */

#define HAS(f) (FAULT == f)
#define QUEUE(w) ((w) - (w) % OWNERS)

typedef queue {
	/* the fields of the 64-bit word */
	byte tail, count, attempts, epoch;
	bool lock;
	byte slot[R];
	byte readers[R]; /* only in the model: the number of thieves that have yet to copy the slot */
	byte completed[2];
	/* the owner's metadata; positions are modulo 2 R, so that a full and an empty ring differ */
	byte open, btail, bhead, begin[2], started[2], bepoch;
	bool held;
};
queue q[N];
byte idlers, ran;
bool done_task[T + 1];

#define AT(p) ((p) % R)
#define WRAP(p) ((p) % (4 * R))
#define DIST(from, to) (((to) + 4 * R - (from)) % (4 * R))
#define LEFT(i) (q[i].attempts > 7 -> 0 : q[i].count >> q[i].attempts)
#define OFFERS(i) (!q[i].lock && LEFT(i))

inline run_task(t)
{
	d_step {
		assert(t >= 1 && t <= T);
		assert(!done_task[t]); /* each task runs once */
		done_task[t] = 1;
		ran++
	}
}

/* Writes a slot of the worker's own ring, as an owner or as a thief. All thieves must have copied the old contents. */
inline write_slot(me, p, t)
{
	d_step {
		assert(!q[me].readers[AT(p)]);
		q[me].slot[AT(p)] = t
	}
}

inline hold(me, ok)
{
#if OWNERS > 1
	if
	:: HAS(unheld) -> ok = 1
	:: !HAS(unheld) -> atomic { ok = !q[me].held; q[me].held = 1 }
	fi
#else
	ok = 1
#endif
}

inline drop(me)
{
#if OWNERS > 1
	q[me].held = 0
#else
	skip
#endif
}

/* Models mgws_close_epoch(): a load, and an addition if tasks are left. */
inline close(me)
{
	if
	:: q[me].open ->
		left = LEFT(me);
		if
		:: left -> d_step { q[me].lock = 1; left = LEFT(me) }
		:: else
		fi;
		d_step {
			taken = q[me].open - left;
			q[me].started[q[me].bepoch] = q[me].started[q[me].bepoch] + taken;
			q[me].btail = WRAP(q[me].btail + taken);
			q[me].open = 0;
			taken = 0; left = 0
		}
	:: else
	fi
}

/* Models mgws_room(). */
inline find_room(me)
{
	old = DIST(q[me].btail, q[me].bhead); /* the number of slots in use, from the oldest that a thief may still read */
	if
	:: HAS(readers_ignored)
	:: !HAS(readers_ignored) ->
		if
		:: q[me].completed[0] != q[me].started[0] && DIST(q[me].begin[0], q[me].bhead) > old ->
			old = DIST(q[me].begin[0], q[me].bhead)
		:: else
		fi;
		if
		:: q[me].completed[1] != q[me].started[1] && DIST(q[me].begin[1], q[me].bhead) > old ->
			old = DIST(q[me].begin[1], q[me].bhead)
		:: else
		fi
	fi;
	room = (old > R -> 0 : R - old);
	old = 0
}

/* Models mgws_open_epoch(). */
inline publish(me)
{
	e = 1 - q[me].bepoch;
	if
	:: HAS(epoch_reentered) || q[me].completed[e] == q[me].started[e] -> q[me].begin[e] = q[me].btail
	:: else
	fi;
	d_step {
		q[me].bepoch = e;
		q[me].open = DIST(q[me].btail, q[me].bhead);
		q[me].tail = q[me].btail;
		q[me].count = q[me].open;
		q[me].attempts = 0;
		q[me].lock = 0;
		q[me].epoch = e
	};
	e = 0
}

inline settle(me)
{
	if
	:: !q[me].open && q[me].bhead != q[me].btail -> publish(me)
	:: !q[me].open && q[me].bhead == q[me].btail && OWNERS > 1 ->
		d_step { q[me].count = 0; q[me].attempts = 0; q[me].lock = 0 }
	:: else
	fi;
	drop(me)
}

#define EMPTY(me) (OWNERS == 1 -> (!q[me].open || !LEFT(me)) : !LEFT(me))

/* Models mgws_publish() of the older half of the local queue, which happens if no task is public or the local queue is
 * full. */
inline publish_half(me)
{
	hold(me, ok);
	if
	:: ok ->
		close(me);
		find_room(me);
		n = held_tasks / 2;
		if
		:: HAS(room_ignored)
		:: !HAS(room_ignored) && n > room -> n = room
		:: else
		fi;
		room = 0;
		i = 0;
		do
		:: i < n -> write_slot(me, q[me].bhead + i, mine[i]); i++
		:: else -> break
		od;
		atomic {
			q[me].bhead = WRAP(q[me].bhead + n);
			i = n;
			do
			:: i < held_tasks -> mine[i - n] = mine[i]; i++
			:: else -> break
			od;
			held_tasks = held_tasks - n;
			i = held_tasks;
			do
			:: i < L -> mine[i] = 0; i++
			:: else -> break
			od;
			i = 0
		};
		settle(me)
	:: else
	fi;
	ok = 0
}

inline spawn(me, t)
{
	n = 0;
	if
	:: held_tasks == L -> publish_half(me)
	:: else
	fi;
	if
	:: held_tasks < L -> d_step { mine[held_tasks] = t; held_tasks++ }
	:: else -> in_place = t; run_task(in_place); in_place = 0 /* full queue: only a task without children runs in place */
	fi;
	n = 0
}

inline busy()
{
	if
	:: idle -> idlers--; idle = 0
	:: else
	fi
}

inline acquire(me)
{
	n = 0;
	if
	:: !EMPTY(me) ->
		hold(me, ok);
		if
		:: ok ->
			close(me);
			d_step {
				n = DIST(q[me].btail, q[me].bhead);
				n = n - n / 2;
				n = (n > (L + 1) / 2 -> (L + 1) / 2 : n);
				q[me].bhead = WRAP(q[me].bhead + 4 * R - n)
			};
			i = 0;
			do
			:: i < n -> mine[i] = q[me].slot[AT(q[me].bhead + i)]; i++
			:: else -> break
			od;
			held_tasks = n;
			i = 0;
			if
			:: n -> busy()
			:: else
			fi;
			settle(me)
		:: else
		fi;
		ok = 0
	:: else
	fi
}

inline steal(me, v)
{
	n = 0;
	if
	:: OWNERS == 1 || OFFERS(v) -> hold(me, ok)
	:: else -> ok = 0
	fi;
	if
	:: ok ->
		close(me);
		find_room(me);
		if
		:: (room >= R / 2 || HAS(thief_no_room)) && (HAS(attempts_wrap) || OFFERS(v)) ->
			d_step { /* the steal claims tasks */
				if
				:: LEFT(v) && (!q[v].lock || HAS(lock_ignored)) ->
					left = LEFT(v);
					at = WRAP(q[v].tail + q[v].count - left);
					ep = q[v].epoch;
					n = left - left / 2;
					left = 0;
					do
					:: left < n -> q[v].readers[AT(at + left)]++; left++
					:: else -> break
					od;
					left = 0
				:: else -> n = 0
				fi;
				q[v].attempts = (q[v].attempts + 1) % (1 << BITS)
			}
		:: else
		fi;
		room = 0;
		if
		:: n ->
			keep = n - n / 2;
			keep = (keep > (L + 1) / 2 -> (L + 1) / 2 : keep);
			i = 0;
			do
			:: i < n - keep ->
				d_step { loot = q[v].slot[AT(at + i)]; q[v].readers[AT(at + i)]-- };
				write_slot(me, q[me].bhead + i, loot);
				loot = 0; i++
			:: i >= n - keep && i < n ->
				d_step {
					mine[i - (n - keep)] = q[v].slot[AT(at + i)];
					q[v].readers[AT(at + i)]--;
					i++
				}
			:: else -> break
			od;
			held_tasks = keep;
			i = 0;
			if
			:: HAS(completed_early) -> q[v].completed[ep] = q[v].completed[ep] + n
			:: else
			fi;
			busy();
			q[me].bhead = WRAP(q[me].bhead + n - keep);
			settle(me);
			if
			:: HAS(completed_early)
			:: else -> q[v].completed[ep] = q[v].completed[ep] + n
			fi;
			keep = 0; at = 0; ep = 0
		:: else -> settle(me)
		fi
	:: else
	fi;
	ok = 0
}

