/* SPDX-License-Identifier: Apache-2.0 */
/* The options of sched_mgws, and what the host half derives from them. Each is declared here, once. From this list come
 * the fields of struct sched_config, the rows that users see, and the constants of a GPU's program; SCHED_CFG() reads
 * an option in device code. sched_static uses some of the fields and has rows of its own.
 *
 *   OPTION(who, type, name, kind, default, help, bounds...)     what a user can set
 *   DERIVED(who, type, name)                                    follows from the stack
 *
 * `who`: ALL reads it; a GPU's program has it as a constant. CPU: only CPUs read it. The order leaves no padding: the struct is
 * stored in blocks and compared across ranks as bytes. */
#ifndef SCHED_OPTIONS_DEV_H
#define SCHED_OPTIONS_DEV_H

/* The same for both schedulers. */
#define SCHED_IDLE_ROW                                                                             \
	LOOM_OPT_ENUM, "park",                                                                     \
		"what a worker without work does: spin, yield its core, or park: spin for a while, " \
		"then sleep until there is work. GPUs always spin",                                \
		.choices = sched_idles
#define SCHED_SPIN_ROW LOOM_OPT_TIME, "50us", "idle = park: how long it spins first", .max = 1e9

#define SCHED_CONFIG(OPTION, DERIVED)                                                              \
	OPTION(ALL, uint32_t, local_queue, LOOM_OPT_U32, "0",                                      \
	       "tasks in a worker's private queue; a power of two from 2 on. 0: 32, or 128 with "  \
	       "granularity = lane", .min = 0, .max = 4096)                                              \
	OPTION(ALL, uint32_t, public_queue, LOOM_OPT_U32, "0",                                     \
	       "tasks in the queue that others steal from; a power of two. 0: 64, or 1024 with "   \
	       "granularity = lane", .min = 0, .max = 65536)                                             \
	OPTION(ALL, uint32_t, backlog, LOOM_OPT_U32, "0",                                          \
	       "tasks that a worker keeps for itself in a third, larger queue when both of its "   \
	       "queues are full; a power of two. 0: four times public_queue with granularity = lane, "   \
	       "at least 256 where GPUs take part, else none", .min = 0, .max = 1 << 20)           \
	OPTION(ALL, uint32_t, granularity, LOOM_OPT_ENUM, "worker",                                      \
	       "on workers of several lanes, as on a GPU: worker runs a task by all lanes "        \
	       "together, lane gives each lane a task of its own, which suits small tasks that "   \
	       "use one lane", .choices = grains)                                                  \
	OPTION(ALL, uint32_t, owners, LOOM_OPT_U32, "1",                                           \
	       "workers of a device that share a public queue: 1, 2 or 4", .min = 1, .max = 4)     \
	OPTION(ALL, uint32_t, claim, LOOM_OPT_ENUM, "guided",                                      \
	       "initial tasks that a worker claims at a time: guided takes an eighth of its "      \
	       "share of what is left, with granularity = lane half of it, fixed takes claim_size",      \
	       .choices = claims)                                                                  \
	OPTION(ALL, uint32_t, claim_size, LOOM_OPT_U32, "16", "for claim = fixed", .min = 1,       \
	       .max = 1 << 20)                                                                     \
	OPTION(ALL, uint32_t, victim, LOOM_OPT_ENUM, "random",                                     \
	       "whom to steal from: random takes any other worker, biased one of the same device " \
	       "with probability bias and else another device's, local only the same device's, "   \
	       "neighbour the next worker and then the one after it, none nobody. Of other ranks " \
	       "random takes any, neighbour one after the other, the nearest first, and biased "   \
	       "with probability bias one of the same host and NUMA node, else with probability "  \
	       "bias one of the same host, else one of another host; local none",                  \
	       .choices = victims)                                                                 \
	OPTION(CPU, double, bias, LOOM_OPT_SHARE, "90%",                                           \
	       "victim = biased: how often a victim is of the same device, or a rank of the nearest", .min = 0, .max = 1)    \
	OPTION(ALL, uint32_t, overflow, LOOM_OPT_ENUM, "two_atomics",                              \
	       "what keeps the count of steal attempts from wrapping: two_atomics looks before "   \
	       "each claim, damping only at queues that were empty last time",                     \
	       .choices = overflows)                                                               \
	OPTION(ALL, uint32_t, transfer, LOOM_OPT_ENUM, "body",                                     \
	       "what public queues carry: tasks, or ids of 4 bytes of tasks that stay in a pool",  \
	       .choices = transfers)                                                               \
	OPTION(CPU, uint32_t, idle, SCHED_IDLE_ROW)                                                \
	OPTION(ALL, uint32_t, in_place_depth, LOOM_OPT_U32, "64",                                  \
	       "when both queues are full, run new tasks inside their spawner, nested at most "    \
	       "this deep; 0 never does", .max = 4096)                                             \
	OPTION(CPU, uint64_t, spin, SCHED_SPIN_ROW)                                                \
	OPTION(ALL, uint64_t, spill, LOOM_OPT_U64, "65536",                                        \
	       "tasks that may be set aside on a list that all workers share when queues are full " \
	       "and tasks are nested too deep; 0: none", .max = 1 << 28)                           \
	OPTION(ALL, uint8_t, priorities, LOOM_OPT_BOOL, "no",                                      \
	       "heed the priority of spawned tasks: a worker runs what it holds high first and "   \
	       "low last; takes twice local_queue more private memory")                            \
	DERIVED(CPU, uint8_t, unused[3])                                                           \
	/* `bias`, of 2^32 */                                                                      \
	DERIVED(ALL, uint32_t, near_of_2_32)                                                       \
	/* the stack has devices of several kinds */                                               \
	DERIVED(ALL, uint32_t, mixed)                                                              \
	/* no word is changed by two devices: tasks go by mail */                                  \
	DERIVED(ALL, uint32_t, noncoherent)                                                              \
	/* only workers of one device steal from a queue */                                        \
	DERIVED(ALL, uint32_t, near)                                                               \
	/* queued tasks may go by mail, too */                                                     \
	DERIVED(ALL, uint32_t, mail_queued)                                                        \
	/* workers of other ranks that run the same set of tasks; 0: there are none. As a constant: 1 */             \
	DERIVED(ALL, uint32_t, far)                                                                \
	/* their memory is reached by asking the trigger */                                        \
	DERIVED(ALL, uint32_t, rma)                                                               \
	/* how long an idle worker sleeps at most */                                               \
	DERIVED(CPU, uint64_t, park_ns)

#define SCHED_FIELD(who, type, name, ...) type name;
struct sched_config {
	SCHED_CONFIG(SCHED_FIELD, SCHED_FIELD)
};

/* Who runs a task: all lanes of a worker together, or one lane of several that run a task each. */
enum sched_granularity { SCHED_WORKER, SCHED_LANE };
enum sched_idle { SCHED_SPIN, SCHED_YIELD, SCHED_PARK };
enum mgws_victim { MGWS_RANDOM, MGWS_BIASED, MGWS_LOCAL, MGWS_NEIGHBOUR, MGWS_NONE };
enum mgws_overflow { MGWS_TWO_ATOMICS, MGWS_DAMPING };
enum mgws_transfer { MGWS_BODY, MGWS_ID };

#endif
