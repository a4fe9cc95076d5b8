/* SPDX-License-Identifier: Apache-2.0 */
/* A paired post of trigger_peer (trigger_peer.dev.h). L lanes write a word each, and add to the counter. The lane that
 * reaches the threshold sends W words, each with the number of the message as its mark. The link delivers stores to one
 * address in order, and stores to different addresses in any order. Before the first message, the sender writes the
 * line that tells the receiver where the words go. Two lanes of the receiver copy one word each to its place, and wait
 * for each other. Then the sender may count towards the next message. FAULT_TORN: a mark is visible before its word.
 * FAULT_FIRST: both lanes check only the mark of the first word. FAULT_LINE: there is no fence after the line.
 * FAULT_PACE: the sender counts towards the next message before this one is taken. FAULT_LANE: a lane sends before the
 * others have counted. With BASE = 1 the first fire counts for one more message, so that the first message to be sent has
 * number 2. FAULT_COUNT: the sender writes the line if the number of the message is 1, not if no message was sent. */
#define L 2
#define W 2
#define N 3
#ifndef BASE
#define BASE 0
#endif

byte payload[L], counted = BASE * L;
chan link[W] = [3] of { byte, byte };
bool line_leaves, line;
byte mark[W], word[W], place[W], met, taken;

inline send(n)
{
	if
#ifdef FAULT_COUNT
	:: n + BASE == 1 ->
#else
	:: n == 1 ->
#endif
		line_leaves = true;
#ifndef FAULT_LINE
		line
#endif
	:: else -> skip
	fi;
	if
	:: link[0]!n+BASE,payload[0]; link[1]!n+BASE,payload[1]
	:: link[1]!n+BASE,payload[1]; link[0]!n+BASE,payload[0]
	fi
}

active [L] proctype lane()
{
	byte n, after;
	for (n : 1 .. N) {
#ifndef FAULT_PACE
		taken >= n - 1;
#endif
		payload[_pid] = n;
		atomic {
			counted++;
			after = counted
		}
		if
#ifdef FAULT_LANE
		:: after % L == 1 && after < L * (N + BASE) -> send(n)
#endif
		:: after % L == 0 -> send(n)
		:: else -> skip
		fi
	}
}

active [W] proctype receiver()
{
	byte n, i = _pid - L;
	for (n : 1 .. N) {
#ifdef FAULT_FIRST
		mark[0] >= n + BASE;
#else
		mark[i] >= n + BASE;
#endif
		assert(line);
		place[i] = word[i];
		atomic {
			met++;
			if
			:: met == W * n ->
				assert(place[0] == n && place[1] == n);
				taken = n
			:: else -> skip
			fi
		}
		met >= W * n
	}
}

active proctype carrier()
{
	byte m, d;
end:	do
	:: line_leaves -> line_leaves = false; line = true
#ifdef FAULT_TORN
	:: link[0]?m,d -> mark[0] = m; word[0] = d
	:: link[1]?m,d -> mark[1] = m; word[1] = d
#else
	:: atomic { link[0]?m,d -> mark[0] = m; word[0] = d }
	:: atomic { link[1]?m,d -> mark[1] = m; word[1] = d }
#endif
	od
}

ltl all_taken { <> (taken == N) }
