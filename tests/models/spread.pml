/* SPDX-License-Identifier: Apache-2.0 */
/* The initial set on several coherent devices (sched_mgws/claim.dev.h). Each device has a range of tasks in one word.
 * Its workers claim tasks by adding to this word, and when their own range is used up, to the words of other devices.
 * An addition beyond the end of a range claims nothing. A device remembers which ranges it has seen used up. Each task
 * must be claimed once, and a claim may fail only when all ranges are used up. FAULT_LOAD: a worker takes the task
 * whose number it loaded before the addition, not the number that the addition returned. FAULT_OWN: it does not claim
 * from other ranges. FAULT_MARK: it marks a range as used up by the loaded word, before its addition. FAULT_END: it
 * does not compare with the end. */
#define D 2
#define WORKERS 3 /* the number of workers; the first and the last are on device 0 */
#define T 2 /* the number of tasks of device 0; device 1 has one task */
#define ALL (T + 1)

byte next[D], end[D], runs[ALL];
bool used_up[D * D];
byte done;

inline take(at)
{
	assert(at < ALL && runs[at] == 0);
	runs[at]++
}

inline claim(d, n)
{
	seen = next[d];
	if
	:: seen >= end[d] -> got = ALL
	:: else ->
#ifdef FAULT_MARK
		if
		:: d != own && seen + n + 1 >= end[d] -> used_up[own * D + d] = true
		:: else -> skip
		fi;
#endif
		atomic {
			got = next[d];
			next[d] = next[d] + n
		}
#ifdef FAULT_LOAD
		got = seen
#endif
	fi;
#ifndef FAULT_END
	if
	:: got >= end[d] -> got = ALL
	:: else -> skip
	fi
#endif
}

active [WORKERS] proctype worker()
{
	byte own = _pid % D, other = 1 - _pid % D, seen, got;
	end[0] > 0;
	do
	:: claim(own, 1);
		if
		:: got < ALL -> take(got)
#ifndef FAULT_OWN
		:: got == ALL && !used_up[own * D + other] ->
			claim(other, 1);
			if
			:: got < ALL -> take(got)
			:: else -> used_up[own * D + other] = true
			fi
#endif
		:: else -> break
		fi
	od;
	assert(next[0] >= end[0] && next[1] >= end[1]); /* the worker leaves, so all ranges must be used up */
	atomic {
		done++;
		assert(done < WORKERS || (runs[0] == 1 && runs[1] == 1 && runs[2] == 1))
	}
}

init {
	atomic {
		next[1] = T;
		end[1] = ALL;
		end[0] = T
	}
}
