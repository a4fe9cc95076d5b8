/* SPDX-License-Identifier: Apache-2.0 */
/* A barrier of two GPUs with W workers each, for R rounds (plugins/barrier/state.dev.h). The last arriver of a device
 * is its relaying worker: after one fence for all its workers, it writes the round into the other device's word. Then
 * it polls the word of its own device, which the other device writes, and copies the round into its device's release
 * word. The other workers poll the release word. Rarely they also poll the word itself, because the relaying worker may
 * be busy between arrive and await. In the model, worker 0 is then busy until the other worker has passed. The link
 * delivers stores in any order, except across fences. FAULT_EARLY: the relaying worker does not wait for the other
 * device. FAULT_FENCE: there is no fence before the word is written. FAULT_OWN: this fence
 * is no acquire of the counter, and so covers only the relaying worker. FAULT_ALONE: the other workers poll only the
 * release word. FAULT_AHEAD: a worker may load data before its last poll, because no fence follows the polls. */
#define W 2
#define R 2
#define OTHER(d) (1 - (d))

byte counter[2], word[2], release_word[2], passed[2];
byte wrote[2 * W];  /* the last round for which each worker has stored data at the other device */
byte landed[2 * W]; /* the last round whose data have arrived there */
#ifdef FAULT_AHEAD
#define LOADS_AHEAD ahead = landed[OTHER(d) * W + 1 - i]
#define DATA(k) (k == 1 - i -> ahead : landed[OTHER(d) * W + k])
#else
#define LOADS_AHEAD skip
#define DATA(k) landed[OTHER(d) * W + k]
#endif

active [2 * W] proctype worker()
{
	byte d = _pid / W, i = _pid % W, round, after, ahead;
	bool leads;
	for (round : 1 .. R) {
		wrote[_pid] = round;
		atomic {
			counter[d]++;
			after = counter[d]
		}
		leads = after == round * W;
		if
		:: leads ->
#ifndef FAULT_FENCE
#ifdef FAULT_OWN
			landed[_pid] >= round;
#else
			landed[d * W] >= round && landed[d * W + 1] >= round;
#endif
#endif
			word[OTHER(d)] = round
		:: else -> skip
		fi;
		/* Between arrive and await, worker 0 waits for something that the other worker does after the
		 * barrier. */
		if
		:: leads && i == 0 -> passed[d] >= round
		:: else -> skip
		fi;
		LOADS_AHEAD;
		if
#ifdef FAULT_EARLY
		:: leads -> release_word[d] = round
#else
		:: leads -> word[d] >= round; release_word[d] = round
#endif
		:: !leads ->
			if
			:: release_word[d] >= round
#ifndef FAULT_ALONE
			:: word[d] >= round && counter[d] >= round * W
#endif
			fi
		fi;
		assert(counter[0] >= round * W && counter[1] >= round * W);
		assert(DATA(0) >= round && DATA(1) >= round);
		if
		:: i == 1 -> passed[d] = round
		:: else -> skip
		fi
	}
}

active proctype link()
{
end:	do
	:: landed[0] < wrote[0] -> landed[0]++
	:: landed[1] < wrote[1] -> landed[1]++
	:: landed[2] < wrote[2] -> landed[2]++
	:: landed[3] < wrote[3] -> landed[3]++
	od
}
