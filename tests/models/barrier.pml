/* SPDX-License-Identifier: Apache-2.0 */
/* The barriers of plugins/barrier: W workers on D devices go through R rounds, arriving and waiting in separate steps, and
 * sleep where they wait (word.dev.h). An early release is a failed assertion, a lost wake-up a state in which nobody
 * can move: the sleeps of the code end by themselves after 20 ms, those here do not.
 *   -DD=2 -DW=4    two devices, which tell each other
 * The environment says the rest, so one program serves all searches:
 *   KIND=0         central; 1 release (auto is one of these two), 2 tree, 3 dissemination, 4 flags
 *   FAULT=1 early         the last but one to come releases
 *         2 wake_first    who tells looks for sleepers before it writes the word
 *         3 unlisted      a sleeper counts itself after it has compared the word
 *         4 root_alone    tree: the last of a group releases
 *         5 step_short    dissemination: one step too few
 *         6 one_unseen    flags: the last worker's is not looked at
 *         7 own_alone     two devices: a worker waits for its own device's word alone
 *         8 told_early    two devices: the first to come speaks for its device
 *         9 one_left      those who left in even and odd rounds are counted in one word
 *        10 gone_once     who comes in place of those who left does not see that it is the last one
 *        11 unshut        two devices: all of one have left, and nobody says so
 *   LEAVE=n        central and release: the last n workers leave for good, in round 1; on one device the last but one in round 2 */
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
#define told_early 8
#define one_left 9
#define gone_once 10
#define unshut 11
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
#define OPEN(at, of) (8 + (at) * 2 + (of))
#define TOLD(w, k) (12 + (w) * 2 + (k))
byte kind, fault, leave;
byte value[20], sleepers[20], at[W], asleep[W] /* 1 plus the word */;
byte left[2 * D], gone[D];
bit shut[20];

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

inline tell(x, v)
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
		:: seen >= want || shut[x] -> break
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

/* The last of device d */
inline open_all(z)
{
	if
	:: D == 1 && KIND == central -> wake(COUNT(0, 0))
	:: D == 1 && KIND != central -> tell(OPEN(0, 0), z)
	:: else ->
		j = 0;
		do
		:: j < D -> tell(OPEN(j, d), z); j++
		:: else -> break
		od;
		j = 0
	fi
}

/* ... and it comes to the next rounds for those who have left. */
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
		gone[d] = gone[d] + got;
		got = gone[d];
		y++;
		if
		:: got == PER && D > 1 && FAULT != unshut ->
			j = 0;
			do
			:: j < D -> shut[OPEN(j, d)] = 1; j++
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
		:: got != y * PER || FAULT == gone_once -> break
		:: else
		fi
	od;
	y = 0
}

inline await_open()
{
	j = (FAULT == own_alone -> d : 0);
	do
	:: j < D -> await(OPEN(d, j), r); j = (FAULT == own_alone -> D : j + 1)
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
			:: got == r * PER - (FAULT == early -> 1 : (FAULT == told_early -> PER - 1 : 0)) -> close_for_gone()
			:: else
			fi;
			if
			:: leaves -> break
			:: else
			fi
		:: KIND == tree -> /* groups of 2, and one of what is left */
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
		:: KIND == dissemination -> tell(TOLD((me + 1) % W, 0), r)
		:: KIND == flags -> tell(TOLD(me, 0), r)
		fi;
		got = 0;
		/* await */
		if
		:: KIND == central && D == 1 -> await(COUNT(0, 0), r * W - (FAULT == early -> 1 : 0))
		:: KIND == dissemination ->
			await(TOLD(me, 0), r);
			if
			:: W > 2 && FAULT != step_short ->
				tell(TOLD((me + 2) % W, 1), r);
				await(TOLD(me, 1), r)
			:: else
			fi
		:: KIND == flags && (D == 1 || me % PER == 0) ->
			j = d * PER;
			do
			:: j < d * PER + PER - (FAULT == one_unseen -> 1 : 0) -> await(TOLD(j, 0), r); j++
			:: else -> break
			od;
			if
			:: D > 1 -> open_all(r); await_open()
			:: else
			fi
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
