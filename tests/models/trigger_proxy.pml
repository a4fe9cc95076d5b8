/* SPDX-License-Identifier: Apache-2.0 */
/* The table of trigger_proxy. The host replaces entries, from which devices build descriptors. Devices copy the entries
 * (proxy_publish and proxy_read_entry). A copy that a device accepts must be one complete entry of the host. FAULT_ODD:
 * the host does not mark that it is writing. FAULT_AGAIN: the device does not check the version again. */
#ifndef N
#define N 3 /* the number of posts */
#endif
#ifndef D
#define D 2 /* the number of devices */
#endif

byte version, id, place; /* the fields of one entry */
bool torn;

active proctype host()
{
	byte k = 1;
	do
	:: k <= N ->
#ifndef FAULT_ODD
		version++;
#endif
		id = k;
		place = k;
#ifdef FAULT_ODD
		version = version + 2;
#else
		version++;
#endif
		k++
	:: else -> break
	od
}

active [D] proctype device()
{
	byte seen, i, p, copies;
	do
	:: copies < 2 ->
		seen = version;
		i = id;
		p = place;
#ifndef FAULT_AGAIN
		if
		:: seen % 2 == 0 && version == seen -> torn = torn || i != p
		:: else -> skip /* the copy is rejected, so the device sends only the tag */
		fi;
#else
		if
		:: seen % 2 == 0 -> torn = torn || i != p
		:: else -> skip
		fi;
#endif
		copies++
	:: else -> break
	od
}

ltl whole { [] !torn }
