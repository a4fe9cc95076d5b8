/* SPDX-License-Identifier: Apache-2.0 */
/* The context of a lane: its worker and the stack. All device code gets it as an argument. */
#ifndef GPULOOM_DEV_CTX_H
#define GPULOOM_DEV_CTX_H

#include "../plugin.h"
#include "../task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Control words of a run, in host memory that every worker reads. Groups of words have a cache line of their own. */
struct loom_ctl {
	uint32_t phase; /* LOOM_PHASE_*; the host stores it (release), workers load it (acquire) */
	uint32_t stop_graphs; /* only in host memory; 1: runs of graphs must end; it stays set until the launch ends */
	uint64_t call; /* only in a GPU's copy: the phase in the upper half, LOOM_ORDER_* in the lower half */
	uint32_t pad0[12];
	uint32_t stop; /* if not 0, workers leave every loop; it stays set until the launch ends */
	uint32_t died; /* 1 plus the index of the device whose workers are gone; set before `stop` */
	uint32_t pad1[14];
	uint32_t failed;        /* first failure of a worker: minus an enum loom_err; 0: none */
	uint32_t failed_worker; /* number of this worker; valid if `failed_ready` is 1 */
	/* details of the failure; their meaning depends on the code in `failed`; may be LOOM_LACKS_KIND() */
	uint64_t failed_info;
	uint32_t failed_ready;  /* set to 1 by a release store after the two members before it */
	uint32_t pad2[11];
	uint64_t initial_tasks; /* size of the initial set; constant while workers run */
	uint64_t sample;        /* number of this sample in this launch, from 0, with warm-ups */
	uint64_t unmeasured;    /* 1: nothing reads cpu_ns of this sample, so a device need not measure it */
	uint64_t awaited;       /* 1: the host does nothing but wait for the end of this sample */
	/* Only in a GPU's copy, of a small sample: the number of workers that have left in the upper half, and the sum of
	 * what small() of the scheduler returned to them in the lower half. */
	uint64_t small;
	uint64_t deadline_ns; /* when this sample must have ended, on the host's clock; the host thread alone reads it */
	uint64_t untimed;     /* 1: nothing reads times of this sample, so a CPU's workers need not ask the clock */
	uint64_t pad3;
};
/* Small samples (experimental): a program that embeds gpuloom has submitted no more tasks than the device has workers (or
 * the device has one worker), and wants no result. The first workers run one task each, and leave if they hold no other task then.
 * No worker searches for tasks, and no detector is asked. A worker that makes tasks available to others calls all
 * workers of the device first: it sets LOOM_ORDER_CALLED. Then the sample goes on like any other. A
 * scheduler that can do this sets LOOM_NEED_SMALL. */
/* Lower half of a GPU's order to its workers: the number of initial tasks, and these flags. */
#define LOOM_ORDER_TASKS  ((1u << 28) - 1)
#define LOOM_ORDER_QUICK  (1u << 28) /* the host wants no result, so resident workers get ready for the next sample at once */
/* Only in loom_ctl.call. ALL: the sample is not small. CALLED: it was small, and a worker has called all workers. OVER: it
 * was small, and is over. */
#define LOOM_ORDER_ALL    (1u << 29)
#define LOOM_ORDER_CALLED (1u << 30)
#define LOOM_ORDER_OVER   (1u << 31)
/* Value of failed_info, with LOOM_ENOENT: device code called an op of a kind that the conf does not select. */
#define LOOM_LACKS_KIND(kind) (1ull << 63 | (uint64_t)(kind))
/* Values of `phase`. Sample n has first 4n+2 (READY: stop sleeping and spin) and then 4n+4 (GO). Workers of devices
 * with LOOM_SHAPE_PERSISTENT may see only 4n+4. */
#define LOOM_PHASE_READY(n) ((uint32_t)(4u * (n) + 2u))
#define LOOM_PHASE_GO(n) ((uint32_t)(4u * (n) + 4u))
#define LOOM_PHASE_IS_GO(phase) (!((phase) & 3))
#define LOOM_PHASE_SAMPLE(phase) (((phase) - 2u) / 4u)
#define LOOM_PHASE_RETIRE 1u /* odd; workers leave and do not return */

/* Counters of a worker in a sample. Lane 0 writes them with plain stores, and the host reads them after the sample.
 * X(name, unit, description), for results, docs and tests. */
#define LOOM_COUNTER_MAP(X)                                                                        \
	X(executed, "tasks", "tasks that this worker ran")                                         \
	X(spawned, "tasks", "tasks that its tasks spawned")                                        \
	X(claimed, "tasks", "tasks taken from the initial set")                                    \
	X(stolen_in, "tasks", "tasks taken from other workers")                                    \
	X(stolen_out, "tasks", "tasks that other workers took from it")                            \
	X(steals, "", "successful steals by this worker")                                          \
	X(steal_attempts, "", "attempts, successful or not")                                       \
	X(published, "tasks", "moved from the local to the public queue")                           \
	X(acquired, "tasks", "moved from the public to the local queue")                           \
	X(in_place, "tasks", "run in place by their spawner because the queues were full")              \
	X(overflowed, "tasks", "moved to the overflow list because the queues were full")                  \
	X(refilled, "tasks", "taken from the overflow list")                                         \
	X(idle_entries, "", "how often it ran out of work")                                            \
	X(idle_ns, "ns", "time without work")                                                      \
	X(begin_ns, "ns", "when it began, on its device's clock")                                  \
	X(last_task_ns, "ns", "when its last task ended")                                          \
	X(end_ns, "ns", "when it left the run")                                                    \
	X(cpu_ns, "ns", "CPU time of its threads; 0 where the device has none")

/* The states of a worker, for the message about a sample that does not end. Workers call loom_set_state() before and
 * after operations that may take long. X(NAME, text) */
#define LOOM_STATE_MAP(X)                                                                          \
	X(TASKS, "at work")                                                                        \
	X(SEARCH, "looking for work")                                                              \
	X(DATA, "waiting for data of others")                                                      \
	X(MESSAGE, "waiting for messages")                                                         \
	X(SERVICE, "waiting for answers to requests")                                              \
	X(BARRIER, "waiting at a barrier")                                               \
	X(DONE, "done")                                                                            \
	X(PARKED, "parked")
enum loom_worker_state {
#define LOOM_STATE_ENUM(NAME, text) LOOM_STATE_##NAME,
	LOOM_STATE_MAP(LOOM_STATE_ENUM)
#undef LOOM_STATE_ENUM
	LOOM_STATES
};

struct loom_counters {
#define LOOM_COUNTER_FIELD(name, unit, text) uint64_t name;
	LOOM_COUNTER_MAP(LOOM_COUNTER_FIELD)
#undef LOOM_COUNTER_FIELD
	uint64_t state; /* enum loom_worker_state, if the device has no op states() */
	uint64_t reserved[5]; /* pads the struct to three cache lines, so that workers share no line */
};

/* A value whose sum over all workers is checked. The sum is the number of initial tasks if each task ran once, and if
 * thief and victim have both counted each task that was stolen. So the check needs no counters of single workers. An
 * error in the first of these two sums can hide an error in the second only if it is a multiple of 2^40. */
#define LOOM_TALLY(n) ((n)->executed - (n)->spawned + (((n)->stolen_in - (n)->stolen_out) << 40))
#ifdef __cplusplus
static_assert(sizeof(struct loom_counters) == 192, "whole cache lines");
static_assert(sizeof(struct loom_ctl) == 256, "whole cache lines");
#else
_Static_assert(sizeof(struct loom_counters) == 192, "whole cache lines");
_Static_assert(sizeof(struct loom_ctl) == 256, "whole cache lines");
#endif

struct loom_sched_dev;
struct loom_term_dev;
struct loom_sync_dev;
struct loom_barrier_dev;
struct loom_trigger_dev;
struct loom_qos_dev;
struct loom_workload_dev;
struct loom_trace;
struct loom_lanes; /* shared state of a worker's lanes, private to the device */

enum { LOOM_CTX_OVERSUBSCRIBED = 1 }; /* more workers or lanes than cores, so threads that spin also yield */

/* Number of words that a scheduler has for each lane in a program for GPUs. The scheduler's op constants() may define a
 * smaller number. */
#ifndef LOOM_REGISTER_WORDS
#define LOOM_REGISTER_WORDS 8
#endif

/* The context of one lane. Only `depth`, `turn`, `stop_seen`, `polled`, `regs` and `random` change while workers
 * run. */
struct loom_ctx {
	uint32_t worker, workers; /* number of this worker in the stack; number of workers */
	uint32_t device, devices;
	uint32_t first, count; /* the workers of this device are first to first + count - 1 */
	uint32_t lane, lanes;
	uint32_t flags; /* flags: LOOM_CTX_* */
	uint32_t depth; /* number of tasks that run inside each other, for the scheduler */
	uint32_t turn;  /* next slot of loom_from_lane0(), for the device layer */
	uint32_t stop_seen; /* value of the stop word at the last poll, for the device layer */
	/* State of loom_random(), computed from seed, sample and worker. It is equal on all lanes at the start, and
	 * never 0. */
	uint64_t random;
	struct loom_ctl *ctl; /* on a GPU, a copy in the device's memory */
	struct loom_counters *counters; /* counters of this worker */
	char *const *segment;           /* addresses of the segments on this device */
	struct loom_lanes *together;
	const struct loom_task *initial;     /* [ctl->initial_tasks]; the initial set */
	void *global[LOOM_KINDS_MAX];             /* [kind]; the policy's block for the stack */
	void *on_device[LOOM_KINDS_MAX];          /* [kind]; the policy's block for this device */
	void *own[LOOM_KINDS_MAX];                /* [kind]; the policy's public block for this worker */
	void *local[LOOM_KINDS_MAX];              /* [kind]; the policy's private block for this worker */
	const loom_ref *registry[LOOM_KINDS_MAX]; /* [kind][worker]; reference of the public block of each worker */
	const struct loom_sched_dev *sched; /* tables of the selected policies on CPUs; not used on GPUs */
	const struct loom_term_dev *term;
	const struct loom_sync_dev *sync;
	const struct loom_barrier_dev *barrier;
	const struct loom_trigger_dev *trigger;
	const struct loom_qos_dev *qos;
	const struct loom_workload_dev *workload;
	loom_task_fn *const *task; /* [tag]; the task functions */
	uint32_t tasks;            /* number of tags */
	/* 0: the lanes of the worker run a task together. Otherwise this lane runs a task of its own: `lane` is 0,
	 * `lanes` is 1, and this is 1 plus the number of the lane in its worker. loom_own_add() needs this number. */
	uint32_t single_lane;
	struct loom_trace *trace; /* buffer of events (dev/trace.h); NULL: no trace */
#ifndef LOOM_DEVICE_COMPILE
	uint32_t begun; /* 1: small() of the scheduler has run in this sample, and run() follows */
#else
	uint32_t polled; /* time of the last poll (loom_poll_due()), for the device layer */
	uint64_t regs[LOOM_REGISTER_WORDS]; /* registers of this lane, for the scheduler */
#endif
};

#ifdef __cplusplus
}
#endif
#endif
