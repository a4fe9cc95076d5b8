/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the models of the trigger FIFO (plugins/trigger_common/nic: nic.dev.h, fifo.c). The FIFO is a ring of E
 * entries. Producers poll a copy of the tail. One producer at a time reads the NIC's tail for all producers. A process
 * that includes this model's code declares `n` (its ticket), `seen` and `mine`.
 *   -DFAULT_LAP: the word has no lap, so the NIC may take an old word of the slot
 *   -DFAULT_ROOM: a producer does not wait for room
 *   -DFAULT_POLL: the producer that has polled the NIC's tail does not let others poll
 *   -DFAULT_OLD: the producer that polls does not publish the tail, so others use the old one */
#ifndef P
#define P 2
#endif
#ifndef E
#define E 2
#endif

byte head, tail;
byte cached;    /* a copy of the tail, in the device's memory */
bool polling; /* 1 while a producer reads the NIC's tail */
byte word[E]; /* 0 for a word that was never written */
bool lap[E];

#define LAP(n) ((((n) / E) % 2) == 0)

#ifdef FAULT_LAP
#define filled(cursor) (w != 0)
#else
#define filled(cursor) (w != 0 && l == LAP(cursor))
#endif

inline take_ticket()
{
	atomic { n = head; head++ };
#ifndef FAULT_ROOM
	do
	:: n - cached < E -> break
	:: else ->
		atomic { mine = !polling; polling = 1 }; /* an atomic exchange */
		if
		:: mine ->
			seen = tail;
#ifndef FAULT_OLD
			cached = seen;
#endif
#ifndef FAULT_POLL
			polling = 0
#endif
		:: else /* another producer reads the tail for this one, too */
		fi
	od
#endif
}
