/* SPDX-License-Identifier: Apache-2.0 */
/* The listener of sync_futex and sync_wic (plugins/sync_common/listener.c) with interrupts. A GPU and a CPU each change
 * a word K times. The GPU counts its changes in its memory. The host may see the count before the changed words, or
 * after. The CPU counts before it changes the word. The listener polls the words. From the changes that it sees in the
 * words, it subtracts those that CPUs have counted. It sleeps until the GPU has counted more changes than this
 * difference. Only the listener wakes the consumer of the GPU's items. The consumer must receive all items.
 *   FAULT=counted_late   CPUs count after they have changed the word
 *   FAULT=cpus_first     the count of CPUs is read before the number of changes
 *   FAULT=cpus_ignored   the count of CPUs is not subtracted */
#include "fault.pml"
#ifndef K
#define K 2
#endif
#define counted_late 1
#define cpus_first 2
#define cpus_ignored 3

byte stored, counted, changed, by_cpus, seen, taken;

active proctype gpu()
{
	do
	:: stored < K -> stored++
	:: else -> break
	od
}

active proctype counts()
{
	do
	:: counted < K -> counted++
	:: else -> break
	od
}

active proctype cpu()
{
	byte i = 0;
	do
	:: i < K ->
		if
		:: FAULT == counted_late -> changed++; by_cpus++
		:: else -> by_cpus++; changed++
		fi;
		i++
	:: else -> break
	od
}

active proctype listener()
{
	byte have, cpus, least;
end:	do
	:: d_step { seen = stored; taken = seen + changed } /* the listener wakes the consumer */
		if
		:: FAULT == cpus_first -> cpus = by_cpus; have = taken
		:: FAULT == cpus_ignored -> cpus = 0; have = taken
		:: else -> have = taken; cpus = by_cpus
		fi;
		least = 1 + (have > cpus -> have - cpus : 0);
end_w:		counted >= least
	od
}

/* The polling thread, which runs after a notification. */
active proctype polls()
{
	d_step { seen = stored; taken = seen + changed }
}

active proctype consumer()
{
	seen == K
}
