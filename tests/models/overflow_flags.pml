/* SPDX-License-Identifier: Apache-2.0 */
/* The overflow flags OE1 and OE2 of the MGWS thesis (4.3), which sched_mgws does not have. A flag for each of two
 * epochs shows that the epoch has no tasks left. Because of the flags, a thief need not check the count of steal
 * attempts before it increases the count. A thief that finds no task sets the flag of its epoch before its next
 * attempt. The owner clears the flag of the epoch that it opens.
 *
 * The model checks two properties. A flag is never set in an epoch that has tasks, because no thief would steal them.
 * No two attempts get the same tasks, as would happen if the count wrapped.
 *
 *   EPOCHS      the number of epochs that the owner opens
 *   FLAGS=1     one flag for both epochs. The error needs one change of epochs between a thief's attempt and its flag
 *   FLAGS=2     one flag for each epoch. The error needs two changes, so EPOCHS=3
 *   WAIT_ALL    the first solution of the thesis: the owner waits for all attempts, which a second counter counts
 *   LAST_ONLY   the second solution: only the thief of the last task sets the flag, and the owner waits for such
 *               thieves. The count may wrap before the flag is set
 *   WRAP        the count of attempts is modulo WRAP. WRAP must exceed the sum of the steals of an epoch and the
 *               thieves, hence the thesis's limit of 2^22 - 18 workers */
#ifndef THIEVES
#define THIEVES 3
#endif
#ifndef TRIES
#define TRIES 3
#endif
#ifndef EPOCHS
#define EPOCHS 2
#endif
#ifndef FLAGS
#define FLAGS 2
#endif
#ifndef WRAP
#define WRAP 6
#endif
#define TASKS 3 /* the number of tasks of an epoch: the first attempt gets two, the second gets one */
#define LEFT(attempts) (TASKS >> (attempts))
#define FLAG(e) ((e) % FLAGS)

/* The fields of the queue's word, which change in one step. */
byte attempts;
bit epoch;
bool flag[FLAGS];

byte opened; /* the number of epochs that the owner has opened */
byte got;    /* bit i is set if attempt i of this epoch got tasks */
byte pending; /* attempts that are not complete; with LAST_ONLY only those that got the last task */

proctype owner()
{
	do
	:: opened < EPOCHS ->
#if defined(WAIT_ALL) || defined(LAST_ONLY)
		pending == 0;
#endif
		d_step {
			epoch = 1 - epoch;
			flag[FLAG(epoch)] = false;
			attempts = 0;
			got = 0;
			opened++
		}
	:: else -> break
	od
}

inline set_flag()
{
	d_step {
		assert(opened == seen || FLAG(e) != FLAG(epoch) || !LEFT(attempts));
		flag[FLAG(e)] = true
	}
}

proctype thief()
{
	byte try, a, seen;
	bit e;
	bool over;
	do
	:: try < TRIES ->
		try++;
#ifdef WAIT_ALL
		pending++;
#endif
		d_step { /* fetch-and-add */
			e = epoch;
			seen = opened;
			over = flag[FLAG(e)];
			a = attempts;
			attempts = (attempts + 1) % WRAP;
			if
			:: !over && LEFT(a) ->
				assert(!(got & (1 << a)));
				got = got | (1 << a)
			:: else
			fi
#ifdef LAST_ONLY
			if
			:: !over && LEFT(a) == 1 -> pending++
			:: else
			fi
#endif
		}
#ifdef LAST_ONLY
		if
		:: !over && LEFT(a) == 1 -> set_flag(); pending--
		:: else
		fi
#else
		if
		:: !over && !LEFT(a) -> set_flag()
		:: else
		fi
#endif
#ifdef WAIT_ALL
		pending--
#endif
	:: else -> break
	od
}

init {
	byte k;
	atomic {
		opened = 1;
		run owner();
		do
		:: k < THIEVES -> run thief(); k++
		:: else -> break
		od
	}
}
