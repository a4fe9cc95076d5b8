/* SPDX-License-Identifier: Apache-2.0 */
/* One slot of sync_wic, mode = in_place, with two companion pages, one for even and one for odd rounds (-DTURNS: two
 * for each, which take turns): a producer, readers, and a Monitor that may place their page at any time. The order of steps is that of wic_channel.c and
 * wic_activate.c; each line of a process is one atomic operation there. A page under userfaultfd is mapped or armed;
 * whoever loads from an armed one is stalled until it is mapped. The item is the memory behind both pages;
 * `published` is the word `full`.
 *
 * Two readers read every round. With -DAHEAD two others read the even rounds and one the odd ones, so that some wait
 * for a round whose forerunners are still to be read. With -DTURNS the pages of even rounds are nearly used up: the first
 * round recycles all, and the third has the first's forerunner's again.
 *
 * Claims: a consumer that returns from its wait finds the item of its own round (assert), and nobody waits for
 * ever (no invalid end state). Each -D below is a mistake that must be found:
 *   NO_FULL_TEST    the consumer trusts the page when its load ends
 *   NO_LOOK_AGAIN   a consumer arms the page again and does not look at `published` after that
 *   NO_ARM          the consumer does not throw away a page that was placed for no reason: it never stalls,
 *                   found as a round without an end
 *   LOOK_FIRST      the producer looks at `sleepers` before it raises `published`
 *   COUNT_LATE      the consumer looks at `published` before it counts as a sleeper
 *   RELEASE_EARLY   the last reader frees the slot before it has thrown spent pages away (AHEAD)
 *   TURN_LATE       the last reader frees the slot before it gives the turn to the next page (TURNS)
 *
 * With -DBY_MONITOR the Monitor places the page (activate = monitor): a stall is a message to it, `available` has
 * the bits of the slot's halves in the data availability bitmap, `pending` those in the pending faults. Then two more:
 *   DROP_FAULT      the Monitor forgets a fault whose item is announced, and not there yet
 *   NO_RING         the producer does not wake the Monitor */
#ifndef ROUNDS
#ifdef BY_MONITOR
#define ROUNDS 2
#else
#define ROUNDS 3
#endif
#endif
#if defined(BY_MONITOR) || defined(AHEAD) || defined(TURNS)
#define ENDS 1
#else
#define ENDS 2
#endif
#ifdef AHEAD
#define CONSUMERS 3
#define READS(who, r) ((who == 2) == (r & 1))
#define READERS(r) (2 - (r & 1))
#else
#define CONSUMERS 2
#define READS(who, r) 1
#define READERS(r) 2
#endif

bit spent[2];   /* of the halves of the pages: whether the one whose turn it is was placed */
bit stalled[3]; /* of the readers ... */
byte on[3];     /* ... on which page */
#ifdef TURNS
#define SIDES      2
#define PAGE(half) ((half) * SIDES + side[half])
#define FIND(half) page = PAGE(half);
#define FOUND(half) page
bit mapped[4] = {1, 0, 0, 0};
bit side[2] = {1, 0}; /* whose turn it is */
byte used[2] = {1, 0};
#else
#define PAGE(half) (half)
#define FIND(half)
#define FOUND(half) (half)
bit mapped[2];
#endif
byte item, published, released, sleepers, done;
byte ends;                    /* stalls that the Monitor still ends */
bit message[3], available[2], pending[2], rung; /* BY_MONITOR */
byte idle[3];                 /* loads without a stall, in this round, by a reader who found no item */

inline resume(who, p)
{
	if
	:: stalled[who] && on[who] == (p) -> stalled[who] = 0; message[who] = 0
	:: else
	fi
}

/* UFFDIO_CONTINUE: maps the page and resumes who is stalled on it. */
inline place(p)
{
	atomic {
		mapped[p] = 1;
		resume(0, p);
		resume(1, p);
		resume(2, p)
	}
}

/* MADV_DONTNEED over all: arms them. Who is stalled remains so. */
inline throw_away()
{
	atomic {
		mapped[0] = 0;
		mapped[1] = 0;
#ifdef TURNS
		mapped[2] = 0;
		mapped[3] = 0
#endif
	}
}

active proctype producer()
{
	byte r, page;
	bit wanted;
	for (r : 0 .. ROUNDS - 1) {
		released == r;
		item = r;
		FIND(r & 1)
#if defined(BY_MONITOR)
		available[r & 1] = 1;
		published = r + 1;
		wanted = 0;
#ifndef NO_RING
		rung = 1;
#endif
#elif defined(LOOK_FIRST)
		wanted = sleepers > 0;
		published = r + 1;
#else
		published = r + 1;
		wanted = sleepers > 0;
#endif
		if
		:: wanted -> spent[r & 1] = 1; place(FOUND(r & 1))
		:: else
		fi
	}
}

active [CONSUMERS] proctype consumer()
{
	byte r, me = _pid - 1;
	bit last;
	for (r : 0 .. ROUNDS - 1) {
		if
		:: !READS(me, r) -> goto next
		:: else
		fi;
		idle[me] = 0;
		if
		:: published == r + 1 -> goto have
		:: else
		fi;
#ifndef COUNT_LATE
		sleepers++;
#endif
	again:
		if
		:: published == r + 1 -> goto leave
		:: else
		fi;
		/* The round before the last has the same page. */
		published == r + 1 || released + 1 >= r;
#ifdef COUNT_LATE
		if
		:: idle[me] == 0 -> sleepers++
		:: else
		fi;
#endif
	load:
		atomic { /* a load: mapped, or queued with a look at the page under the lock of the queue */
			if
			:: mapped[PAGE(r & 1)] -> idle[me]++
			:: else ->
				stalled[me] = 1;
				on[me] = PAGE(r & 1);
#ifdef BY_MONITOR
				message[me] = 1
#endif
			fi
		}
		if
		:: stalled[me] -> !stalled[me]; goto load
		:: else
		fi;
		assert(idle[me] < 12); /* more than anybody can place in vain */
#ifdef NO_FULL_TEST
		goto leave;
#endif
		if
		:: published == r + 1 -> goto leave
		:: else
		fi;
#ifndef NO_ARM
		mapped[PAGE(r & 1)] = 0;
#endif
#ifndef NO_LOOK_AGAIN
		if
		:: published == r + 1 -> spent[r & 1] = 1; place(PAGE(r & 1)); goto leave
		:: else
		fi;
#endif
		goto again;
	leave:
		sleepers--;
	have:
		assert(item == r);
		atomic {
			done++;
			last = done == READERS(r);
			if
			:: last -> done = 0
			:: else
			fi
		}
		if
		:: last ->
#ifdef BY_MONITOR
			available[r & 1] = 0;
#endif
#ifdef RELEASE_EARLY
			released = r + 1;
#endif
			if
			:: spent[r & 1] ->
				spent[r & 1] = 0;
#ifdef TURN_LATE
				released = r + 1;
#endif
#ifdef TURNS
				side[r & 1] = 1 - side[r & 1];
				used[r & 1]++;
				if
				:: used[r & 1] == SIDES -> used[0] = 0; used[1] = 0; throw_away()
				:: else
				fi
#else
				throw_away()
#endif
			:: else
			fi;
#ifndef RELEASE_EARLY
			released = r + 1
#else
			skip
#endif
		:: else
		fi;
	next:
		skip
	}
}

/* A deadline or a stop: places a page on which it believes a reader to be. BY_MONITOR: reads messages and is
 * rung; where a fault is pending and its item announced, it looks whether the item is there. */
active proctype monitor()
{
	bit p;
	byte round, page;
end:
	do
	:: ends < ENDS ->
		ends++;
		if
		:: p = 0
		:: p = 1
		fi;
		FIND(p)
		spent[p] = 1;
		place(FOUND(p))
#ifdef BY_MONITOR
	:: atomic { message[0] -> message[0] = 0; pending[on[0]] = 1 }; goto look
	:: atomic { message[1] -> message[1] = 0; pending[on[1]] = 1 }; goto look
	:: atomic { message[2] -> message[2] = 0; pending[on[2]] = 1 }; goto look
	:: atomic { rung -> rung = 0 }; goto look
#endif
	od;
#ifdef BY_MONITOR
look:
	p = 0;
look_at_half:
	if
	:: pending[p] && available[p] ->
		round = released;
		if
		:: (round & 1) != p -> round++
		:: else
		fi;
		if
		:: published >= round + 1 -> spent[p] = 1; place(PAGE(p)); pending[p] = 0
		:: else ->
#ifdef DROP_FAULT
			pending[p] = 0
#else
			skip
#endif
		fi
	:: else
	fi;
	if
	:: p == 0 -> p = 1; goto look_at_half
	:: else
	fi;
	goto end
#endif
}
