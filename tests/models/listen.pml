/* SPDX-License-Identifier: Apache-2.0 */
/* The listener of sync_futex and sync_wic (plugins/shared/sync/listen.c) with interrupts: a GPU and a CPU each raise a word of
 * theirs K times. The GPU's count in its memory may get ahead of its words, as the host sees them, or lag behind; the CPU
 * counts before it raises. The listener looks at the words, and sleeps until the GPU has counted more than the words
 * have risen, less what CPUs have counted. A consumer of the GPU's, which the listener alone wakes, must get through.
 *   FAULT=counted_late   CPUs count after they have raised
 *   FAULT=cpus_first     what CPUs have counted is read before what was seen
 *   FAULT=cpus_ignored   it is not taken off */
#include "fault.pml"
#ifndef K
#define K 2
#endif
#define counted_late 1
#define cpus_first 2
#define cpus_ignored 3

byte told, posted, raised, by_cpus, seen, taken;

active proctype gpu()
{
	do
	:: told < K -> told++
	:: else -> break
	od
}

active proctype counts()
{
	do
	:: posted < K -> posted++
	:: else -> break
	od
}

active proctype cpu()
{
	byte i = 0;
	do
	:: i < K ->
		if
		:: FAULT == counted_late -> raised++; by_cpus++
		:: else -> by_cpus++; raised++
		fi;
		i++
	:: else -> break
	od
}

active proctype listener()
{
	byte have, cpus, least;
end:	do
	:: d_step { seen = told; taken = seen + raised } /* and wakes */
		if
		:: FAULT == cpus_first -> cpus = by_cpus; have = taken
		:: FAULT == cpus_ignored -> cpus = 0; have = taken
		:: else -> have = taken; cpus = by_cpus
		fi;
		least = 1 + (have > cpus -> have - cpus : 0);
end_w:		posted >= least
	od
}

/* The listener's other thread, which somebody rang. */
active proctype looks()
{
	d_step { seen = told; taken = seen + raised }
}

active proctype consumer()
{
	seen == K
}
