/* SPDX-License-Identifier: Apache-2.0 */
/* A barrier of two GPUs whose words are in lines (plugins/barrier/state.dev.h), for R rounds. A GPU has W workers, in two
 * parts: those with even and those with odd numbers. Each part has a counter. The last arriver of a part makes one fence, and
 * writes the round into the words of its part, in both copies of both GPUs' lines. A worker polls one copy, all words of
 * which must be reached, and then fences. The link delivers data in any order, except across fences.
 * FAULT_FENCE: there is no fence before the words are written. FAULT_OWN: this fence is no acquire of the counter, and so covers
 * only the last arriver. FAULT_FIRST: the first arriver of a part writes. FAULT_PART: a worker awaits the words of one
 * part only. FAULT_COPY: only the first copy is written. FAULT_AHEAD: a worker may load data before its last poll, because no
 * fence follows the polls. */
#define W 3
#ifndef R
#define R 2
#endif
#define OTHER(d) (1 - (d))
#define SIZE(part) ((W - (part) + 1) / 2)
#define WORD(d, copy, from, part) ((d) * 8 + (copy) * 4 + (from) * 2 + (part))

byte counter[4]; /* [2 * device + part] */
byte word[16];
byte arrived[2];
byte wrote[2 * W];  /* the last round for which each worker has stored data at the other device */
byte landed[2 * W]; /* the last round whose data have arrived there */

inline write_line(at, copy)
{
	word[WORD(at, copy, d, part)] = round
}

inline poll_line(copy)
{
#ifdef FAULT_PART
	word[WORD(d, copy, 0, 0)] >= round && word[WORD(d, copy, 1, 0)] >= round
#else
	word[WORD(d, copy, 0, 0)] >= round && word[WORD(d, copy, 0, 1)] >= round &&
	    word[WORD(d, copy, 1, 0)] >= round && word[WORD(d, copy, 1, 1)] >= round
#endif
}

active [2 * W] proctype worker()
{
	byte d = _pid / W, i = _pid % W, part = _pid % W % 2, round, after, k, ahead;
	for (round : 1 .. R) {
		atomic {
			wrote[_pid] = round;
			arrived[d]++;
			counter[2 * d + part]++;
			after = counter[2 * d + part]
		}
		if
#ifdef FAULT_FIRST
		:: after == (round - 1) * SIZE(part) + 1 ->
#else
		:: after == round * SIZE(part) ->
#endif
#ifndef FAULT_FENCE
#ifdef FAULT_OWN
			landed[_pid] >= round;
#else
			atomic {
				k = part;
				do
				:: k < W && wrote[d * W + k] >= round -> landed[d * W + k] >= round; k = k + 2
				:: k < W && wrote[d * W + k] < round -> k = k + 2
				:: else -> break
				od;
				k = 0
			}
#endif
#endif
#ifndef FAULT_COPY
			d_step { write_line(OTHER(d), 1); write_line(d, 1) };
#endif
			d_step { write_line(OTHER(d), 0); write_line(d, 0) }
		:: else -> skip
		fi;
		after = 0;
#ifdef FAULT_AHEAD
		ahead = landed[OTHER(d) * W];
#endif
		poll_line(i % 2);
		atomic {
			assert(arrived[0] >= round * W && arrived[1] >= round * W);
#ifdef FAULT_AHEAD
			assert(ahead >= round);
#endif
			do
			:: k < W -> assert(landed[OTHER(d) * W + k] >= round); k++
			:: else -> break
			od;
			k = 0;
			ahead = 0
		}
	}
}

#define LAND(w) landed[w] < wrote[w] -> landed[w]++
active proctype link()
{
end:	do
	:: LAND(0)
	:: LAND(1)
	:: LAND(2)
	:: LAND(3)
	:: LAND(4)
	:: LAND(5)
	od
}
