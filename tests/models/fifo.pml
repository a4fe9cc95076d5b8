/* SPDX-License-Identifier: Apache-2.0 */
/* What the models of the trigger FIFO share (plugins/trigger_nic: nic.dev.h, fifo.c): a ring of E entries, the tail that
 * producers wait by, and who reads it of the NIC for all. A producer has `n`, its ticket, `seen` and `mine`.
 *   -DFAULT_LAP: the word has no lap: the NIC takes what a slot held before
 *   -DFAULT_ROOM: a producer does not wait for room
 *   -DFAULT_LOOK: who has looked at the NIC's tail does not let others look
 *   -DFAULT_OLD: who looks keeps the tail to itself and lets others wait by what was seen before */
#ifndef P
#define P 2
#endif
#ifndef E
#define E 2
#endif

byte head, tail;
byte near;    /* the tail that producers last saw, in the device's memory */
bool looking; /* one of them reads the NIC's */
byte word[E]; /* 0: never written */
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
	:: n - near < E -> break
	:: else ->
		atomic { mine = !looking; looking = 1 }; /* exchange */
		if
		:: mine ->
			seen = tail;
#ifndef FAULT_OLD
			near = seen;
#endif
#ifndef FAULT_LOOK
			looking = 0
#endif
		:: else /* another looks: its answer does for both */
		fi
	od
#endif
}
