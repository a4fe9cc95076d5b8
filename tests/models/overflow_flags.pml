/* SPDX-License-Identifier: Apache-2.0 */
/* The overflow flags OE1 and OE2 of the MGWS thesis (4.3), which sched_mgws does not have: a flag for each of two epochs
 * says that the epoch has no tasks left, so that the count of steal attempts need not be checked before it is increased.
 * A thief that finds no task sets the flag of its epoch, and makes no further attempt before. The owner clears the flag
 * of the epoch that it opens.
 *
 * Two properties: a flag is never set in an epoch that has tasks, which no thief would then steal; and no attempt gets
 * tasks that another one got, as when the count wraps.
 *
 *   EPOCHS      epochs that the owner opens
 *   FLAGS=1     one flag for both epochs. It takes one change of epochs between a thief's attempt and its flag
 *   FLAGS=2     it takes two changes: EPOCHS=3
 *   WAIT_ALL    the first cure of the thesis: the owner waits for all attempts, which a further counter counts
 *   LAST_ONLY   the second: only the thief of the last task sets the flag, and the owner waits for such thieves. The
 *               count may wrap before it does
 *   WRAP        the count of attempts is modulo this. It must be greater than the steals of an epoch and the thieves
 *               together: the thesis's limit of 2^22 - 18 workers */
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
#define TASKS 3 /* of an epoch: the first attempt gets two of them, the second one */
#define LEFT(attempts) (TASKS >> (attempts))
#define FLAG(e) ((e) % FLAGS)

/* The word, which changes at once. */
byte attempts;
bit epoch;
bool flag[FLAGS];

byte opened; /* epochs so far */
byte got;    /* a bit per attempt of this epoch that got tasks */
byte pending; /* attempts that are not complete: all, or those of thieves of last tasks */

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
