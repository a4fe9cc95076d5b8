/* SPDX-License-Identifier: Apache-2.0 */
/* One slot of sync_wic, mode = in_place, with two companion pages: a producer, two readers, and a Monitor that
 * may place their page at any time. The order of steps is that of wic_channel.c and wic_activate.c; each line
 * of a process is one atomic operation there. A page under userfaultfd is mapped or armed; whoever loads from
 * an armed one is stalled until it is mapped. The item is the memory behind both pages; `published` is the word `full`.
 *
 * Claims: a consumer that returns from its wait finds the item of its own round (assert), and nobody waits for
 * ever (no invalid end state). Each -D below is a mistake that must be found:
 *   NO_FULL_TEST    the consumer trusts the page when its load ends
 *   NO_LOOK_AGAIN   a consumer arms the page again and does not look at `published` after that
 *   NO_ARM          the consumer does not throw away a page that was placed for no reason: it never stalls,
 *                   found as a round without an end
 *   LOOK_FIRST      the producer looks at `sleepers` before it raises `published`
 *   COUNT_LATE      the consumer looks at `published` before it counts as a sleeper
 *   RELEASE_EARLY   the last reader frees the slot before it has thrown spent pages away
 *
 * With -DBY_MONITOR the Monitor places the page (activate = monitor): a stall is a message to it, `available` is
 * the slot's bit in the data availability bitmap, `pending` that in the pending faults. Then two more:
 *   DROP_FAULT      the Monitor forgets a fault whose item is announced, and not there yet
 *   NO_RING         the producer does not wake the Monitor */
#ifndef ROUNDS
#ifdef BY_MONITOR
#define ROUNDS 2
#else
#define ROUNDS 3
#endif
#endif
#ifdef BY_MONITOR
#define ENDS 1
#else
#define ENDS 2
#endif

bit mapped[2], spent, side;
bit stalled[2], on_side[2]; /* of the readers */
byte item, published, released, sleepers, done;
byte ends;                   /* stalls that the Monitor still ends */
bit message[2], available, pending, rung; /* BY_MONITOR */
byte idle[2];                /* loads without a stall, in this round, by a reader who found no item */

/* UFFDIO_CONTINUE: maps the page and resumes who is stalled on it. */
inline place(p)
{
	atomic {
		mapped[p] = 1;
		if
		:: stalled[0] && on_side[0] == p -> stalled[0] = 0; message[0] = 0
		:: else
		fi;
		if
		:: stalled[1] && on_side[1] == p -> stalled[1] = 0; message[1] = 0
		:: else
		fi
	}
}

active proctype producer()
{
	byte r;
	bit p, wanted;
	for (r : 0 .. ROUNDS - 1) {
		released == r;
		item = r;
		p = side; /* before `published`: the round may be over soon after */
#if defined(BY_MONITOR)
		available = 1;
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
		:: wanted -> spent = 1; place(p)
		:: else
		fi
	}
}

active [2] proctype consumer()
{
	byte r, me = _pid - 1;
	bit p, last;
	for (r : 0 .. ROUNDS - 1) {
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
		/* The other reader may still be in the round before. */
		published == r + 1 || released == r;
		p = side;
#ifdef COUNT_LATE
		if
		:: idle[me] == 0 -> sleepers++
		:: else
		fi;
#endif
	load:
		atomic { /* a load: mapped, or queued with a look at the page under the lock of the queue */
			if
			:: mapped[p] -> idle[me]++
			:: else ->
				stalled[me] = 1;
				on_side[me] = p;
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
		mapped[p] = 0;
#endif
#ifndef NO_LOOK_AGAIN
		if
		:: published == r + 1 -> spent = 1; place(p); goto leave
		:: else
		fi;
#endif
		goto again;
	leave:
		sleepers--;
	have:
		assert(item == r);
		atomic { done++; last = done == 2 * (r + 1) }
		if
		:: last ->
#ifdef BY_MONITOR
			available = 0;
#endif
#ifdef RELEASE_EARLY
			released = r + 1;
#endif
			if
			:: spent ->
				spent = 0;
				if
				:: side == 0 -> side = 1
				:: else -> atomic { mapped[0] = 0; mapped[1] = 0 }; side = 0
				fi
			:: else
			fi;
#ifndef RELEASE_EARLY
			released = r + 1
#else
			skip
#endif
		:: else
		fi
	}
}

/* A deadline or a stop: places the page on which it believes the reader to be. BY_MONITOR: reads messages and is
 * rung; where a fault is pending and its item announced, it looks whether the item is there. */
active proctype monitor()
{
	bit p;
	byte before;
end:
	do
	:: ends < ENDS ->
		ends++;
		p = side;
		spent = 1;
		place(p)
#ifdef BY_MONITOR
	:: atomic { message[0] -> message[0] = 0; pending = 1 }; goto look
	:: atomic { message[1] -> message[1] = 0; pending = 1 }; goto look
	:: atomic { rung -> rung = 0 }; goto look
#endif
	od;
#ifdef BY_MONITOR
look:
	if
	:: pending && available ->
		p = side;
		before = released;
		if
		:: published == before + 1 -> spent = 1; place(p); pending = 0
		:: else ->
#ifdef DROP_FAULT
			pending = 0
#else
			skip
#endif
		fi
	:: else
	fi;
	goto end
#endif
}
