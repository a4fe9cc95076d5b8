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
 *         8 told_early    two devices: the first to come speaks for its device */
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
byte kind, fault;
byte value[20], sleepers[20], at[W], asleep[W] /* 1 plus the word */;

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
		:: seen >= want -> break
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
inline open_all()
{
	if
	:: D == 1 && KIND == central -> wake(COUNT(0, 0))
	:: D == 1 && KIND != central -> tell(OPEN(0, 0), r)
	:: else ->
		j = 0;
		do
		:: j < D -> tell(OPEN(j, d), r); j++
		:: else -> break
		od;
		j = 0
	fi
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
	byte r = 1, got, seen, k, j, d = me / PER;
	do
	:: r > R -> break
	:: else ->
		at[me] = r;
		/* arrive */
		if
		:: KIND == central || KIND == release ->
			add(COUNT(d, 0));
			if
			:: got == r * PER - (FAULT == early -> 1 : (FAULT == told_early -> PER - 1 : 0)) -> open_all()
			:: else
			fi
		:: KIND == tree -> /* groups of 2, and one of what is left */
			add(COUNT(d, (me % PER) / 2));
			if
			:: got == r * ((me % PER) / 2 * 2 + 2 <= PER -> 2 : 1) ->
				add(COUNT(d, 3));
				if
				:: got == r * ((PER + 1) / 2) || FAULT == root_alone -> open_all()
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
			:: D > 1 -> open_all(); await_open()
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
		};
		do
		:: w < W -> run worker(w); w++
		:: else -> break
		od
	}
}
