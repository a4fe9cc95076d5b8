/* SPDX-License-Identifier: Apache-2.0 */
/* The barriers of plugins/barrier. W workers on D devices run R rounds, with arrive and await as separate steps, and
 * sleep while they wait (state.dev.h). An early release violates an assertion. After a lost wake-up no process can
 * continue, because sleeps in the model, unlike those in the code, have no time limit.
 *   -DD=2 -DW=4    two devices that notify each other; dissemination and flags are then like release
 * The environment selects the rest, so one program serves all searches:
 *   KIND=0         central; 1 release (auto is one of these two), 2 tree, 3 dissemination, 4 flags
 *   FAULT=1 early             the arriver before the last one releases the round
 *         2 wake_first        a notifier checks for sleepers before it writes the word
 *         3 unlisted          a sleeper counts itself after it has compared the word
 *         4 root_alone        tree: the last arriver of a group releases
 *         5 step_short        dissemination: one step too few
 *         6 one_unseen        flags: no worker polls the last worker's flag
 *         7 own_alone         two devices: a worker waits for its own device's word only
 *         8 written_early     two devices: the first arriver writes for its device
 *         9 one_left          workers that left in even and odd rounds are counted in one word
 *        10 last_missed       a worker that arrives in advance for workers that left does not check whether all have arrived
 *        11 device_open       two devices: all workers of one have left, but its word does not show it
 * LEAVE=n central and release: the last n workers leave in round 1. On one device the last but one leaves in round 2 */
#define central 0
#define release 1
#define tree 2
#define dissemination 3
#define flags 4
#define early 1
#define wake_first 2
#define unlisted 3
#define root_alone 4
#define step_short 5
#define one_unseen 6
#define own_alone 7
#define written_early 8
#define one_left 9
#define last_missed 10
#define device_open 11
#define KIND kind
#define FAULT fault
#ifndef D
#define D 1
#endif
#ifndef W
#define W 3
#endif
#ifndef R
#define R 2
#endif
#define PER (W / D)

#define COUNT(d, i) ((d) * 4 + (i))
#define RELEASED(at, of) (8 + (at) * 2 + (of))
#define STEP(w, k) (12 + (w) * 2 + (k))
byte kind, fault, leave;
byte value[20], sleepers[20], at[W], asleep[W] /* value[i] is word i plus 1 */;
byte left[2 * D], left_before[D];
bit closed[20];

inline kernel_wake(x)
{
	atomic {
		k = 0;
		do
		:: k < W ->
			if
			:: asleep[k] == x + 1 -> asleep[k] = 0
			:: else
			fi;
			k++
		:: else -> break
		od;
		k = 0
	}
}

inline wake(x)
{
	if
	:: sleepers[x] -> kernel_wake(x)
	:: else
	fi
}

inline store(x, v)
{
	if
	:: FAULT == wake_first ->
		seen = sleepers[x];
		value[x] = v;
		if
		:: seen -> kernel_wake(x)
		:: else
		fi
	:: else -> value[x] = v; wake(x)
	fi;
	seen = 0
}

inline add(x)
{
	atomic { value[x]++; got = value[x] }
}

inline await(x, want)
{
	do
	:: seen = value[x];
		if
		:: seen >= want || closed[x] -> break
		:: else
		fi;
		if
		:: FAULT != unlisted -> sleepers[x]++
		:: else
		fi;
		atomic {
			if
			:: value[x] == seen -> asleep[me] = x + 1
			:: else
			fi
		};
		if
		:: FAULT == unlisted -> sleepers[x]++
		:: else
		fi;
		!asleep[me];
		sleepers[x]--
	od;
	seen = 0
}

/* Opens the round on device d. Only the last arriver of the device executes this. */
inline open_all(z)
{
	if
	:: D == 1 && KIND == central -> wake(COUNT(0, 0))
	:: D == 1 && KIND != central -> store(RELEASED(0, 0), z)
	:: else ->
		j = 0;
		do
		:: j < D -> store(RELEASED(j, d), z); j++
		:: else -> break
		od;
		j = 0
	fi
}

/* The last arriver arrives at the next rounds in advance for workers that have left. */
inline close_for_gone()
{
	y = r;
	do
	:: open_all(y);
		if
		:: leave == 0 -> break
		:: else
		fi;
		got = left[d * 2 + (FAULT == one_left -> 0 : y % 2)];
		left[d * 2 + (FAULT == one_left -> 0 : y % 2)] = 0;
		left_before[d] = left_before[d] + got;
		got = left_before[d];
		y++;
		if
		:: got == PER && D > 1 && FAULT != device_open ->
			j = 0;
			do
			:: j < D -> closed[RELEASED(j, d)] = 1; j++
			:: else -> break
			od;
			open_all(y)
		:: else
		fi;
		if
		:: got == 0 || got == PER -> break
		:: else
		fi;
		atomic { value[COUNT(d, 0)] = value[COUNT(d, 0)] + got; got = value[COUNT(d, 0)] };
		if
		:: got != y * PER || FAULT == last_missed -> break
		:: else
		fi
	od;
	y = 0
}

inline await_open()
{
	j = (FAULT == own_alone -> d : 0);
	do
	:: j < D -> await(RELEASED(d, j), r); j = (FAULT == own_alone -> D : j + 1)
	:: else -> break
	od;
	j = 0
}

proctype worker(byte me)
{
	byte r = 1, got, seen, k, j, y, d = me / PER;
	bit leaves;
	do
	:: r > R -> break
	:: else ->
		leaves = me >= W - leave && r == (D == 1 && me == W - 2 -> 2 : 1);
		at[me] = (leaves -> 100 : r);
		/* arrive */
		if
		:: KIND == central || KIND == release ->
			if
			:: leaves -> atomic { left[d * 2 + (FAULT == one_left -> 0 : r % 2)]++ }
			:: else
			fi;
			add(COUNT(d, 0));
			if
			:: got == r * PER - (FAULT == early -> 1 : (FAULT == written_early -> PER - 1 : 0)) -> close_for_gone()
			:: else
			fi;
			if
			:: leaves -> break
			:: else
			fi
		:: KIND == tree -> /* the groups have 2 workers, except that the last may have fewer */
			add(COUNT(d, (me % PER) / 2));
			if
			:: got == r * ((me % PER) / 2 * 2 + 2 <= PER -> 2 : 1) ->
				add(COUNT(d, 3));
				if
				:: got == r * ((PER + 1) / 2) || FAULT == root_alone -> open_all(r)
				:: else
				fi
			:: else
			fi
		:: KIND == dissemination -> store(STEP((me + 1) % W, 0), r)
		:: KIND == flags -> store(STEP(me, 0), r)
		fi;
		got = 0;
		/* await */
		if
		:: KIND == central && D == 1 -> await(COUNT(0, 0), r * W - (FAULT == early -> 1 : 0))
		:: KIND == dissemination ->
			await(STEP(me, 0), r);
			if
			:: W > 2 && FAULT != step_short ->
				store(STEP((me + 2) % W, 1), r);
				await(STEP(me, 1), r)
			:: else
			fi
		:: KIND == flags ->
			j = 0;
			do
			:: j < W - (FAULT == one_unseen -> 1 : 0) -> await(STEP(j, 0), r); j++
			:: else -> break
			od;
			j = 0
		:: else -> await_open()
		fi;
		atomic {
			j = 0;
			do
			:: j < W -> assert(at[j] >= r); j++
			:: else -> break
			od;
			j = 0
		};
		r++
	od
}

init {
	byte w;
	atomic {
		c_code {
			now.kind = getenv("KIND") ? atoi(getenv("KIND")) : 0;
			now.fault = getenv("FAULT") ? atoi(getenv("FAULT")) : 0;
			now.leave = getenv("LEAVE") ? atoi(getenv("LEAVE")) : 0;
		};
		do
		:: w < W -> run worker(w); w++
		:: else -> break
		od
	}
}
