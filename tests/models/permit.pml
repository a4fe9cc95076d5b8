/* SPDX-License-Identifier: Apache-2.0 */
/* The permit of graphs (struct loom_gpu_gate; loom_gpu_enter() and loom_gpu_leave() in plugins/device_common/compose/kernel.dev.h;
 * gpu_retire() in plugins/device_common/gpu/wait.c). A program has put R launches of a graph into a stream. At any time the host may
 * be asked to stop the runs of graphs, and retires the launch, for this or another reason. Then it uses the memory of the
 * launch for a new one, while old launches of the graph are still in the stream. W workers must all end, and none of them may
 * use the memory after the launch has been retired.
 *   FAULT=reads_first   a worker reads the launch before it counts itself
 *   FAULT=hasty         the host does not wait until no worker is inside
 *   FAULT=leaves_late   a worker leaves although all workers have arrived
 *   FAULT=waits_only    a worker that waits for the others does not check the permit
 *   FAULT=stays_counted a worker leaves without withdrawing its arrival
 *   FAULT=cleared       a new launch clears the whole word */
#include "fault.pml"
#ifndef W
#define W 2
#endif
#ifndef R
#define R 2
#endif
#define reads_first 1
#define hasty 2
#define leaves_late 3
#define waits_only 4
#define cleared 5
#define stays_counted 6

byte launch = 1, inside;	   /* the two halves of the word */
bit asked, met;
short arrived;
byte finished;
byte running;			   /* only in the model: workers that run the sample */
byte ended;			   /* only in the model: workers of all launches that have ended, which orders the stream */
bit retired;			   /* only in the model: the host uses the memory of the launch */

inline enter()
{
	seen = launch;
	if
	:: FAULT == reads_first -> inside++
	:: else -> atomic { inside++; seen = launch }
	fi;
	stays = seen == 1
}

inline sample()
{
	assert(!retired); /* the worker resets memory */
	if
	:: stops -> launch = 0
	:: else -> atomic { arrived++; last = arrived == W };
		if
		:: last -> finished = 0; running = 0; arrived = 0; met = 1; goes = 1
		:: else ->
			if
			:: met -> goes = 1
			:: !met && launch != 1 && FAULT != waits_only ->
				if
				:: atomic { FAULT == leaves_late || (arrived != 0 && arrived != W) ->
						arrived = (FAULT == stays_counted -> arrived : arrived - 1) };
					goes = 0
				:: atomic { FAULT != leaves_late && (arrived == 0 || arrived == W) -> goes = 1 };
					met
				fi
			fi
		fi
	fi;
	if
	:: goes ->
		assert(!retired);
		running++;
		running == W; /* no worker ends before all have their part of the sample */
		atomic { finished++; last = finished == W };
		if
		:: last -> met = 0
		:: else -> skip
		fi
	:: else -> skip
	fi;
	assert(!retired)
}

proctype worker(byte id)
{
	byte r;
	short seen;
	bit stops, stays, last, goes;
	do
	:: r < R ->
		ended >= W * r; /* a kernel begins when the kernel before it has ended */
		stops = id == 0 && asked;
		enter();
		if
		:: stays -> sample()
		:: else -> skip
		fi;
		inside--;
		ended++;
		r++;
		seen = 0; stops = 0; stays = 0; last = 0; goes = 0
	:: else -> break
	od
}

init
{
	byte i;
	atomic {
		do
		:: i < W -> run worker(i); i++
		:: else -> break
		od
	};
	if
	:: asked = 1
	:: asked = 1; ended == W * R /* the program waits for its stream first */
	:: skip /* memory is added, for example */
	fi;
	launch = 0;
	inside == 0 || FAULT == hasty;
	assert(arrived == 0 || FAULT == hasty);
	retired = 1;
	if
	:: FAULT == cleared -> inside = 0
	:: else -> skip
	fi;
	launch = 2;
	ended == W * R && inside == 0
}
