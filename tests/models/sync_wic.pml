/* SPDX-License-Identifier: Apache-2.0 */
/* One slot of sync_wic, mode = in_place, with two companion pages, one for even and one for odd rounds (-DTURNS: two
 * for each, used in turn). There are a producer, readers, and a Monitor that may place the readers' page at any time.
 * The order of steps is that of wic_channel.c and wic_activate.c, where each line of a process is one atomic operation.
 * A page under userfaultfd is mapped or armed. A load from an armed page stalls until the page is mapped. Both pages
 * map the same memory, which holds the item. `published` is the word `full` of the code.
 *
 * Two readers read every round. With -DAHEAD two readers read the even rounds and one reads the odd ones, so some wait
 * for a round whose predecessors are still to be read. With -DTURNS the pages of even rounds are nearly used up. The
 * first round recycles all pages, and the third round uses the page before that of the first round again.
 *
 * A consumer that returns from its wait finds the item of its own round (assert), and each wait ends (no invalid end
 * state). Each -D below is a planted fault:
 *   NO_FULL_TEST    the consumer uses the page when its load ends, without a check of `published`
 *   NO_CHECK_AGAIN  a consumer arms the page again and does not check `published` after that
 *   NO_ARM          the consumer does not arm a page that was placed without a reason, so it never stalls: the
 *                   round does not end
 *   LOAD_FIRST      the producer loads `sleepers` before it increments `published`
 *   COUNT_LATE      the consumer loads `published` before it counts as a sleeper
 *   RELEASE_EARLY   the last reader frees the slot before it has armed spent pages (AHEAD)
 *   TURN_LATE       the last reader frees the slot before it selects the next page (TURNS)
 *
 * With -DBY_MONITOR the Monitor places the page (activate = monitor). A stall is a message to the Monitor. `available`
 * has the bits of the slot's halves in the data availability bitmap, `pending` those in the pending faults queue. Two
 * faults are added:
 *   DROP_FAULT      the Monitor drops a fault whose item is announced, and not published yet
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
#define READS(reader, r) ((reader == 2) == (r & 1))
#define READERS(r) (2 - (r & 1))
#else
#define CONSUMERS 2
#define READS(reader, r) 1
#define READERS(r) 2
#endif

bit spent[2];   /* spent[h] is 1 if the current page of half h was placed */
bit stalled[3]; /* whether each reader is stalled */
byte on[3];     /* the page on which each reader is stalled */
#ifdef TURNS
#define SIDES      2
#define PAGE(half) ((half) * SIDES + current[half])
#define FIND(half) page = PAGE(half);
#define FOUND(half) page
bit mapped[4] = {1, 0, 0, 0};
bit current[2] = {1, 0}; /* the current page of each half */
byte used[2] = {1, 0};
#else
#define PAGE(half) (half)
#define FIND(half)
#define FOUND(half) (half)
bit mapped[2];
#endif
byte item, published, released, sleepers, done;
byte ends;                    /* how many stalls the Monitor may still end without an item */
bit message[3], available[2], pending[2], notified; /* only used with BY_MONITOR */
byte idle[3];                 /* the number of loads in this round that found neither a stall nor an item */

inline resume(reader, p)
{
	if
	:: stalled[reader] && on[reader] == (p) -> stalled[reader] = 0; message[reader] = 0
	:: else
	fi
}

/* UFFDIO_CONTINUE maps the page and resumes the threads that are stalled on the page. */
inline place(p)
{
	atomic {
		mapped[p] = 1;
		resume(0, p);
		resume(1, p);
		resume(2, p)
	}
}

/* MADV_DONTNEED removes all pages of the slot, so that they are armed again. A stalled thread remains stalled. */
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
		notified = 1;
#endif
#elif defined(LOAD_FIRST)
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
		/* The round before the last one uses the same page. All its readers must have released it. */
		published == r + 1 || released + 1 >= r;
#ifdef COUNT_LATE
		if
		:: idle[me] == 0 -> sleepers++
		:: else
		fi;
#endif
	load:
		atomic { /* a load from a mapped page, or a stall, which the kernel decides under a lock */
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
		assert(idle[me] < 12); /* the bound exceeds the number of pages that can be placed without a reason */
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
#ifndef NO_CHECK_AGAIN
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
				current[r & 1] = 1 - current[r & 1];
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

/* At a deadline or a stop the Monitor places a page on which a reader may be stalled. With BY_MONITOR it also reads
 * messages and notifications. If a fault is pending and its item announced, it checks `published`. */
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
	:: atomic { message[0] -> message[0] = 0; pending[on[0]] = 1 }; goto check
	:: atomic { message[1] -> message[1] = 0; pending[on[1]] = 1 }; goto check
	:: atomic { message[2] -> message[2] = 0; pending[on[2]] = 1 }; goto check
	:: atomic { notified -> notified = 0 }; goto check
#endif
	od;
#ifdef BY_MONITOR
check:
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
