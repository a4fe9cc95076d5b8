/* SPDX-License-Identifier: Apache-2.0 */
/* One slot of sync_wic with two sides: a producer, two readers and a Monitor that may end stalls at any
 * time. The order of steps is that of wic_channel.c, wic_activate.c and wic_pages.c; each line of a process
 * is one atomic operation there. A page under userfaultfd is ABSENT, ZERO (poisoned) or holds a round.
 *
 * Claims: a consumer that returns from its wait finds its own round on the page (assert), and nobody waits
 * for ever (no invalid end state). Each -D below is a mistake that must be found:
 *   NO_RECHECK      the producer does not look at `sleepers` again after placing without a wake
 *   NO_POISON_TEST  the consumer trusts `full` alone when its load ends
 *   POISON_LATE     the Monitor sets `poison` after it made the page present
 *   RELEASE_EARLY   the slot is released before the companion page was recycled
 *   NO_ARM          the consumer does not throw a poisoned page away
 *   NO_SECOND_LOAD  the consumer believes the first load, which another reader's poisoned page may have ended */
#ifndef ROUNDS
#define ROUNDS 3
#endif
#define ABSENT 255
#define ZERO 254

byte page[2] = ABSENT;
byte announced, placed, released, sleepers;
bit poison, slot_lock, stall_lock[2], in_stall[2], stalled[2], dirty[2];
byte polls; /* deadlines that may still pass */
byte reader_round[2], done;

#define LOCK(l) atomic { l == 0 -> l = 1 }
#define UNLOCK(l) l = 0

active proctype producer()
{
	byte r, side;
	bit wake, exists;
	for (r : 0 .. ROUNDS - 1) {
		side = r & 1;
		released == r;
		announced = r + 1;
		wake = sleepers > 0;
	again:
		atomic { /* UFFDIO_COPY */
			if
			:: page[side] == ABSENT ->
				page[side] = r;
				exists = 0;
				if
				:: wake -> stalled[0] = 0; stalled[1] = 0
				:: else
				fi
			:: else -> exists = 1
			fi
		}
		if
		:: exists -> wake = 1; page[side] == ABSENT; goto again
		:: else
		fi;
		placed = r + 1;
#ifndef NO_RECHECK
		if
		:: !wake && sleepers > 0 -> stalled[0] = 0; stalled[1] = 0 /* UFFDIO_WAKE */
		:: else
		fi
#endif
	}
}

active [2] proctype consumer()
{
	byte r, side, me = _pid - 1;
	bit there;
	for (r : 0 .. ROUNDS - 1) {
		side = r & 1;
		reader_round[me] = r;
		if
		:: placed == r + 1 -> goto have
		:: else
		fi;
		sleepers++;
	again:
		if
		:: placed == r + 1 -> goto leave
		:: else
		fi;
		/* The other reader may still be in the round before: the page is not armed yet. */
		announced == r + 1 || released == r;
		LOCK(stall_lock[me]); in_stall[me] = 1; UNLOCK(stall_lock[me]);
	load:
		atomic { /* a load: present, or queued with a look at the page under the lock of the queue */
			if
			:: page[side] == ABSENT -> stalled[me] = 1
			:: else
			fi
		}
		if
		:: stalled[me] -> stalled[me] == 0; goto load
		:: else
		fi;
		there = 0;
		if
		:: announced == r + 1 ->
#ifdef NO_POISON_TEST
			there = 1
#else
			there = poison == 0
#endif
		:: else
		fi;
#ifndef NO_SECOND_LOAD
		if
		:: there -> page[side] != ABSENT /* stalls like the first; woken since it is counted */
		:: else
		fi;
#endif
		LOCK(stall_lock[me]); in_stall[me] = 0; UNLOCK(stall_lock[me]);
		if
		:: there -> goto leave
		:: else
		fi;
		LOCK(slot_lock);
		if
		:: poison ->
#ifndef NO_ARM
			page[side] = ABSENT;
#endif
			poison = 0
		:: else
		fi;
		UNLOCK(slot_lock);
		goto again;
	leave:
		sleepers--;
	have:
		/* The bytes are read: a stall here would not be counted, and nobody would end it. */
		assert(page[side] == r);
		bit last;
		atomic { done++; last = done == 2 * (r + 1) }
		if
		:: last ->
#ifdef RELEASE_EARLY
			released = r + 1;
#endif
			dirty[side] = 1;
			if
			:: dirty[1 - side] -> page[1 - side] = ABSENT; dirty[1 - side] = 0
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

active proctype monitor()
{
	byte side, who;
end:
	do
	:: polls < 2 ->
		polls++;
		if
		:: who = 0
		:: who = 1
		fi;
		LOCK(stall_lock[who]);
		if
		:: in_stall[who] ->
			side = reader_round[who] & 1;
			LOCK(slot_lock);
			if
			:: poison -> stalled[0] = 0; stalled[1] = 0
			:: else ->
#ifndef POISON_LATE
				poison = 1;
#endif
				if
				:: announced == reader_round[who] + 1 -> poison = 0
				:: else ->
					atomic { /* UFFDIO_ZEROPAGE */
						if
						:: page[side] == ABSENT -> page[side] = ZERO
						:: else -> side = 2
						fi;
						stalled[0] = 0;
						stalled[1] = 0
					}
					if
					:: side == 2 -> poison = 0
					:: else ->
#ifdef POISON_LATE
						poison = 1
#else
						skip
#endif
					fi
				fi
			fi;
			UNLOCK(slot_lock)
		:: else
		fi;
		UNLOCK(stall_lock[who])
	od
}
