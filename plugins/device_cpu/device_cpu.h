/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the CPU device share. An instance (struct device) has cores and a program. A launch
 * has workers, which have lanes. Host and lanes synchronise by the gate. */
#ifndef GPULOOM_DEVICE_CPU_H
#define GPULOOM_DEVICE_CPU_H

#include <gpuloom/dev/probe.h>
#include <gpuloom/device.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/types.h>

#include "lib/child.h"
#include "cores.h"
#include "gate.h"

enum { ISOLATION_THREAD, ISOLATION_PROCESS };
enum { PIN_CORE, PIN_SET, PIN_NO };
enum { WAIT_AUTO, WAIT_YIELD, WAIT_SPIN };

struct options {
	uint32_t workers;
	uint32_t lanes;
	uint32_t isolation;
	const char *cores;
	uint8_t oversubscribe;
	uint32_t pin;
	uint64_t spin;
	uint32_t wait;
	uint64_t launch_cost, teardown_cost;
	uint8_t caller;
	const char *powercap;
};

/* Limit on a worker's scratchpad memory in bytes, for all policies together. Host memory needs no limit. With this one, a
 * policy chooses the size of its private queue as it does on a GPU. */
#define LOCAL_BYTES_MAX (1u << 20)

/* The composed device code: a table of functions for each kind, and the task functions by tag. */
struct program {
	const void *table[LOOM_KINDS_MAX];
	loom_task_fn **task;
	uint32_t tasks;
};

/* A zone of powercap: the energy counter of a CPU package. */
struct energy_zone {
	char name[32]; /* name of its folder */
	double range;  /* the counter wraps at this value, in microjoules */
	double last;   /* the last value that was read; -1: none */
	double total;  /* microjoules since the first reading */
};
enum { ENERGY_ZONES = 64 };

/* The thread that starts samples, if it executes worker 0 itself (caller.c). */
struct caller {
	uint32_t lock;     /* 1: a thread uses the context of worker 0 */
	uint32_t due;      /* 1: the sample has begun, and the caller has not begun to work */
	uint32_t state;    /* the number of the caller's sample, and whether the caller is in it */
	uint32_t asleep;   /* futex: 1: the watchdog sleeps until the next sample */
	uint32_t leave;    /* futex: 1: the watchdog must end */
	uint32_t *stop;    /* the word that stops the launch */
	uint64_t until_ns; /* deadline of the sample */
	int on;            /* 1: the watchdog runs */
	pthread_t watchdog;
};

struct device {
	const struct loom_host *host;
	const struct options *options;
	char name[24]; /* name in messages: "cpu:0" */
	struct cores cores;
	uint32_t workers, lanes;
	struct program program;
	struct gate gate;
	struct launch *launch; /* NULL: no launch */
	struct caller caller;
	uint32_t zones;	       /* 0: none was found yet */
	struct energy_zone zone[ENERGY_ZONES];
};
int device_energy(void *self, uint64_t *source, double *joules, struct loom_error *err);

/* State that the lanes of a worker share. It is private to the process that runs the lanes. */
struct worker {
	struct loom_lanes together __attribute__((aligned(64)));
	uint32_t left __attribute__((aligned(64))); /* number of lanes that have left this sample */
	uint64_t agreed;                            /* word for agree() in worker.c */
	uint64_t cpu_ns;                            /* CPU time of the lanes in this sample */
	char *local;                                /* the worker's private blocks, one after the other */
	struct loom_counters unseen;                /* counters for a launch without counters, which is the probe */
};

#define CORE_ANY (~0u)
enum { START_GO = 1, START_LEAVE = 2 };

struct lane {
	struct loom_ctx ctx __attribute__((aligned(64)));
	struct launch *launch;
	struct worker *worker;
	uint64_t cpu_begin_ns; /* CPU time of the thread at the start of the sample */
	uint32_t core;         /* core to which the thread is pinned, or CORE_ANY */
	pthread_t thread;
};

/* A launch, which the host thread creates. With isolation = process the child has a copy. In the copy, `view` and all
 * pointers that are computed from it are addresses of the child. */
struct launch {
	struct device *device;
	const struct loom_launch *what;
	uint32_t workers, lanes; /* numbers of this launch; the probe has one worker with one lane */
	struct worker *worker;   /* [workers] */
	struct lane *lane;       /* [workers * lanes] */
	char *local;
	size_t local_bytes; /* size of each worker's private blocks */
	char **view;        /* [segments]: address of each segment for the workers */
	struct loom_ctl *ctl;
	struct loom_ctl *host_ctl;       /* control words at the host thread's address */
	void (*run)(struct loom_ctx *c); /* the scheduler or kernel that a worker runs; NULL: the probe */
	struct loom_probe *probe;
	uint32_t start;          /* futex of the threads: 0 until they may start, then START_* */
	uint32_t here;           /* futex: number of threads that wait for `start` */
	uint32_t started;        /* number of threads that this process must join */
	uint32_t phase;          /* phase of the last ready() or go() */
	uint32_t oversubscribed; /* number of workers whose cores other processes use, too */
	int spare;               /* 1: the device has a core for the host thread in addition to those of its workers */
	int late;                /* 1: a sample that starts by GO alone may end without some of the workers */
	int by_caller;           /* 1: the caller executes worker 0 of such samples */
	int wake_due;            /* 1: workers that sleep have not been woken for the sample in progress */
	pid_t pid;               /* pid of the process with isolation = process; 0: threads */
	struct child process;    /* the process; CHILD_NONE: there is none, or it was reaped */
	int status;              /* status of the reaped process from child_wait() */
};

/* Returns 1 if a worker yields its core while it waits. */
static inline int launch_yields(const struct launch *l)
{
	const struct device *d = l->device;
	return d->options->wait == WAIT_AUTO
		   ? d->cores.shared || l->oversubscribed || l->workers * l->lanes > d->cores.count
		   : d->options->wait == WAIT_YIELD;
}

/* program.c */
int device_build(void *self, const struct loom_program *program, struct loom_error *err);
void program_finish(struct device *d);
/* object.c: fills p->task from shared objects that come with the program. */
int object_load(struct device *d, const struct loom_program *program, struct program *p, struct loom_error *err);
/* source.c: compiles the sources of the program, and fills in p->task for tags without a function. */
int source_build(struct device *d, const struct loom_program *program, struct program *p, struct loom_error *err);

/* memory.c */
int device_mem_alloc(void *self, uint64_t bytes, uint32_t flags, struct loom_memory *memory, struct loom_error *err);
void device_mem_free(void *self, struct loom_memory *memory);
int device_mem_map(void *self, const struct loom_memory *memory, struct loom_error *err);
void device_mem_unmap(void *self, const struct loom_memory *memory);
/* Called in the child. Maps all memory at other addresses, and makes the inherited mappings inaccessible. Returns 0 or
 * errno. */
int views_remap(struct launch *l);

/* worker.c: makes contexts from l->view. lane_main() is called by a lane's thread. */
void contexts_fill(struct launch *l);
/* Returns a table for a kind that is not selected. Each function in it fails the run. */
const void *lacking_table(enum loom_kind kind);
void lane_main(struct lane *me);
/* Prepares the context for a sample, and executes the sample. late: the workers of the sample may be late. */
void lane_prepare(struct lane *me, uint32_t phase);
void lane_sample(struct lane *me, uint32_t go, int late);

/* caller.c: the first two functions start and end the watchdog. caller_start() returns 0 or errno. The caller begins a
 * sample by caller_enter(), and executes it by caller_work(), which returns 1 if the sample was stopped. caller_stop()
 * stops the sample that the caller is in; any thread and signal handlers may call it. The lock protects the context and
 * the private blocks of worker 0. */
int caller_start(struct caller *k);
void caller_end(struct caller *k);
void caller_enter(struct device *d);
int caller_work(struct device *d);
void caller_stop(struct caller *k);

static inline void caller_lock(struct caller *k)
{
	/* Acquire: pairs with the release in caller_unlock(), for the context and the private blocks of worker 0. */
	while (__atomic_exchange_n(&k->lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

static inline void caller_unlock(struct caller *k)
{
	__atomic_store_n(&k->lock, 0, __ATOMIC_RELEASE);
}

/* attach.c: attaches policies to the caller's address space. After an error no policy is attached. */
int attach_all(struct launch *l, struct loom_error *err);
void attach_ready(struct launch *l); /* called once for each sample */
void detach_all(struct launch *l);

/* threads.c: threads_start() starts all threads or none. Returns 0 or errno. *pin_errno: errno of pinning, or 0. */
int threads_start(struct launch *l, int *pin_errno);
void threads_join(struct launch *l);

/* process.c */
int process_start(struct launch *l, struct loom_error *err);
int process_died(struct launch *l, struct loom_error *err); /* reaps the process; returns LOOM_EDIED with how it ended */
void process_retire(struct launch *l, uint64_t timeout_ns);

/* launch.c */
int device_launch(void *self, const struct loom_launch *what, struct loom_error *err);
int device_ready(void *self, uint64_t timeout_ns, struct loom_error *err);
int device_go(void *self, struct loom_error *err);
int device_wait(void *self, uint64_t timeout_ns, uint64_t *end_ns, struct loom_error *err);
void device_wake(void *self);
int device_retire(void *self, uint64_t timeout_ns, struct loom_error *err);

/* doctor.c */
void device_doctor(const struct loom_host *host, struct loom_doctor *out);

#endif
