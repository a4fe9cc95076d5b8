/* SPDX-License-Identifier: Apache-2.0 */
/* The options of sched_mgws, and the values that its host half derives from them. Each option and value is declared
 * once, in a list. The list becomes the fields of struct sched_config, the rows that users see, and the constants of a
 * GPU's program. SCHED_CFG() reads an option in device code. Other schedulers use some of the fields, with rows of
 * their own.
 *   OPTION(where, type, name, kind, default, help, bounds...)     set by users
 *   DERIVED(where, type, name)                                     computed from the options and the stack
 * where = ALL: all devices read the field, and a GPU's program has it as a constant. where = CPU: only CPUs read it.
 * The fields are in an order without padding, because ranks compare the struct byte by byte. */
#ifndef SCHED_OPTIONS_DEV_H
#define SCHED_OPTIONS_DEV_H

/* Rows that several schedulers share. */
#define SCHED_SHARED .section = "scheduler"
#define SCHED_WAIT_ROW                                                                             \
	LOOM_OPT_ENUM, "sleep", "How a worker on a CPU waits for tasks. spin: polls. yield: yields its core between polls. " \
		"sleep: polls for `spin`, then sleeps until it is woken. A GPU polls.", .choices = sched_waits, SCHED_SHARED
#define SCHED_SPIN_ROW                                                                             \
	LOOM_OPT_TIME, "50us", "wait = sleep: time for which a worker polls before it sleeps.", .max = 1e9, SCHED_SHARED
#define SCHED_GRANULARITY_ROW                                                                      \
	LOOM_OPT_ENUM, "worker", "How workers of several lanes, as on a GPU, run tasks. worker: all lanes run a task " \
		"together. lane: each lane runs a task, which suits small tasks that use one " \
		"lane.", .choices = sched_grains, SCHED_SHARED
#define SCHED_IN_PLACE_ROW                                                                         \
	LOOM_OPT_U32, "64", "When the queues of a worker are full, new tasks run inside their spawner, nested at " \
		"most this deep. 0: never.", .max = 4096, SCHED_SHARED

#define SCHED_CONFIG(OPTION, DERIVED)                                                              \
	OPTION(ALL, uint32_t, local_queue, LOOM_OPT_U32, "auto",                                   \
	       "Tasks in the local queue of a worker; a power of two, at least 2. auto: 32, or 128 with granularity " \
	       "= lane.", .max = 4096, .flags = LOOM_OPT_AUTO)                         \
	OPTION(ALL, uint32_t, public_queue, LOOM_OPT_U32, "auto",                                  \
	       "Tasks in the public queue of a worker; a power of two. auto: 64, or 1024 with "    \
	       "granularity = lane.", .max = 65536, .flags = LOOM_OPT_AUTO)                        \
	OPTION(ALL, uint32_t, backlog, LOOM_OPT_U32, "auto",                                       \
	       "Tasks in a third queue of a worker, used when its other queues are full; a power of two. auto: four " \
	       "times public_queue with granularity = lane, else none, but at least 256 if GPUs take part.", \
	       .max = 1 << 20, .flags = LOOM_OPT_AUTO)                                             \
	OPTION(ALL, uint32_t, granularity, SCHED_GRANULARITY_ROW)                                  \
	OPTION(ALL, uint32_t, owners, LOOM_OPT_U32, "1",                                           \
	       "Workers of a device that share a public queue: 1, 2 or 4.", .min = 1, .max = 4)    \
	OPTION(ALL, uint32_t, claim, LOOM_OPT_ENUM, "guided",                                      \
	       "Initial tasks that a worker claims at a time. guided: an eighth of its share of what is left, with " \
	       "granularity = lane half of it; on a CPU at most as many as last about 50 us. fixed: " \
	       "claim_size. queues: as many as fill the public queue and half " \
	       "of the local queue, through which they pass, as in the MGWS thesis.", .choices = claims)             \
	OPTION(ALL, uint32_t, claim_size, LOOM_OPT_U32, "16", "claim = fixed: tasks of a claim.", .min = 1, .max = 1 << 20) \
	OPTION(ALL, uint32_t, victim, LOOM_OPT_ENUM, "random",                                     \
	       "Worker to steal from. random: any other worker. biased: a worker of the same device with probability " \
	       "bias, else of another one. local: a worker of the same device. neighbour: the next worker, then the " \
	       "one after it. none: no stealing. Among other ranks, random takes any; neighbour takes one after the " \
	       "other, the nearest first; local takes none. biased takes, with probability bias, a rank of the same " \
	       "host and NUMA node; else, with probability bias, one of the same host; else one of another " \
	       "host.", .choices = victims)                                    \
	OPTION(CPU, double, bias, LOOM_OPT_SHARE, "90%",                                           \
	       "victim = biased: probability that a victim is of the same device, or a nearest rank.", .from = 0, .to = 1) \
	OPTION(ALL, uint32_t, attempts, LOOM_OPT_ENUM, "two_atomics",                              \
	       "How the counter of steal attempts is kept from wrapping. two_atomics: a load before each attempt. " \
	       "damping: a load only at queues that were found empty last time.", .choices = attempts_choices)                  \
	OPTION(ALL, uint32_t, transfer, LOOM_OPT_ENUM, "body",                                     \
	       "What public queues contain. body: tasks. id: 4-byte ids of tasks that stay in a pool.", \
	       .choices = transfers)                                                               \
	OPTION(CPU, uint32_t, wait, SCHED_WAIT_ROW)                                                \
	OPTION(ALL, uint32_t, in_place_depth, SCHED_IN_PLACE_ROW)                                  \
	OPTION(CPU, uint64_t, spin, SCHED_SPIN_ROW)                                                \
	OPTION(ALL, uint64_t, overflow_list, LOOM_OPT_U64, "65536",                                        \
	       "Tasks in the overflow list that all workers share. It is used when queues are full and tasks are " \
	       "nested too deep. 0: no list.", .max = 1 << 28)                                                \
	DERIVED(CPU, uint32_t, unused) /* else the struct would have padding, whose bytes the core compares */     \
	/* `bias` times 2^32 */                                                                    \
	DERIVED(ALL, uint32_t, bias_of_2_32)                                                       \
	/* 1: the stack has devices of several kinds */                                            \
	DERIVED(ALL, uint32_t, mixed)                                                              \
	/* 1: no two devices may change the same word, so tasks move between devices through mailboxes */ \
	DERIVED(ALL, uint32_t, noncoherent)                                                              \
	/* 1: a queue is used by workers of one device only */                                     \
	DERIVED(ALL, uint32_t, one_device)                                                               \
	/* 1: there are several coherent devices, and each has a range of the initial set */       \
	DERIVED(ALL, uint32_t, spread)                                                             \
	DERIVED(CPU, uint32_t, unused32)                                                           \
	/* 1: not only initial tasks, but also queued tasks may move through mailboxes */          \
	DERIVED(ALL, uint32_t, mailbox_queued)                                                        \
	/* number of workers of other ranks that share tasks with this rank; in a GPU's program: 0 or 1 */ \
	DERIVED(ALL, uint32_t, remote_workers)                                                                \
	/* 1: workers access the memory of other ranks by the trigger's rma() */                   \
	DERIVED(ALL, uint32_t, rma)                                                               \
	/* longest sleep of an idle worker in ns */                                                \
	DERIVED(CPU, uint64_t, park_ns)

#define SCHED_FIELD(where, type, name, ...) type name;
struct sched_config {
	SCHED_CONFIG(SCHED_FIELD, SCHED_FIELD)
};

/* SCHED_WORKER: all lanes of a worker run one task together. SCHED_LANE: each lane runs a task of its own. */
enum sched_granularity { SCHED_WORKER, SCHED_LANE };
enum sched_wait { SCHED_SPIN, SCHED_YIELD, SCHED_SLEEP };
enum mgws_claims { MGWS_GUIDED, MGWS_FIXED, MGWS_QUEUES };
enum mgws_victim { MGWS_RANDOM, MGWS_BIASED, MGWS_LOCAL, MGWS_NEIGHBOUR, MGWS_NONE };
enum mgws_attempts { MGWS_TWO_ATOMICS, MGWS_DAMPING };
enum mgws_transfer { MGWS_BODY, MGWS_ID };

#endif
