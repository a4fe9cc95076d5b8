/* SPDX-License-Identifier: Apache-2.0 */
/* The gate synchronises host and lanes. The host writes ctl->phase, which belongs to the stack. The workers reply
 * through struct gate_words, which belongs to the device. A device process shares these words with the host. The
 * workers notify the host, which sleeps on an eventcount (lib/eventcount.h). */
#ifndef GPULOOM_CPU_GATE_H
#define GPULOOM_CPU_GATE_H

#include <gpuloom/dev/dev.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

struct gate_words {
	uint32_t arrived; /* number of lanes that have arrived for the next sample */
	uint32_t ready;   /* the READY phase that all lanes have reached */
	uint32_t started; /* 1: the threads of a device process run, or failed to start (`failure`) */
	uint32_t pin_errno;
	uint32_t finished __attribute__((aligned(64))); /* number of workers that have finished the sample */
	uint32_t done;                                  /* the GO phase that all workers have finished */
	uint64_t end_ns;                                /* latest end time of a worker so far */
	uint64_t ended_ns;                              /* end time of the sample of phase `done` */
	uint32_t gone;                                  /* number of threads that have left the launch */
	uint32_t event;   /* the eventcount on which the host sleeps if the workers are threads */
	uint32_t waiting; /* 1: the host sleeps or is about to sleep */
	/* For a sample whose workers may be late. The upper half is the phase. The lower half is the number of workers
	 * in the sample, plus GATE_CLOSED after a worker has seen the end. The last worker to leave notifies the host.
	 * Model: tests/models/gate.pml. */
	uint64_t team __attribute__((aligned(64)));
	uint32_t watching __attribute__((aligned(64))); /* number of lanes that spin between samples */
	uint32_t sleeping; /* number of lanes that sleep between samples, or are about to */
	uint32_t woken;    /* 1: workers that sleep were woken, and none has gone to sleep since */
	uint32_t turn;     /* futex of the thread of worker 0 if the caller executes this worker in other samples */
	uint32_t call_due; /* 1: the first worker to join wakes the workers that sleep */
	uint32_t host_cpu; /* core of the host thread when it began the last sample */
	char failure[512] __attribute__((aligned(64)));
};

#define GATE_CLOSED 0x80000000ull

struct gate {
	struct gate_words *words; /* mapped at the same address in host and child */
	int event_fd;             /* eventfd by which a device process notifies the host; -1: the workers are threads */
	uint32_t nudged;          /* 1: the next wait with a stop word ends at once; used by the host only */
};

int gate_open(struct gate *g, int process); /* returns 0 or errno */
void gate_close(struct gate *g);
void gate_reset(struct gate *g); /* called while no workers exist */

/* ---- the workers' side */

/* Waits until the host leaves phase `last`. Spins for a while, then sleeps. Returns READY, GO or RETIRE. */
uint32_t gate_park(struct gate *g, const struct loom_ctx *c, uint32_t last, uint64_t spin_ns);
/* Returns 1 if the caller executes worker 0 of the sample that began by GO. The value may belong to the next sample, if
 * this worker is late. Then this sample is over. */
int gate_is_callers(const struct loom_ctx *c);
/* Replaces gate_park() for the thread of worker 0 if the caller executes this worker in some samples. Does not spin,
 * and does not return for these samples. */
uint32_t gate_park_apart(struct gate *g, const struct loom_ctx *c, uint32_t last);
/* Reports that this lane has arrived and polls for GO. The last of `lanes` notifies the host. */
void gate_arrive(struct gate *g, uint32_t lanes, uint32_t phase);
/* Spins until the host leaves READY. Returns GO or RETIRE. */
uint32_t gate_spin(struct gate *g, const struct loom_ctx *c, uint32_t ready);
/* Called when a worker has finished the sample that `phase` started. The last of `workers` notifies the host. A worker
 * that left because it was `stopped` does so, too, because the host may have to wake other workers. */
void gate_finish(struct gate *g, uint32_t workers, uint32_t phase, uint64_t now_ns, int stopped);
/* For a sample whose workers may be late. Returns 1 if this worker takes part, 0 if it came too late. */
int gate_join(struct gate *g, const struct loom_ctx *c, uint32_t phase);
/* Called after gate_join(). If the host has left it to the workers, wakes those that sleep. */
void gate_call(struct gate *g, struct loom_ctl *ctl);
/* Replaces gate_finish() for a worker of a sample whose workers may be late. */
void gate_part(struct gate *g, uint32_t phase, uint64_t now_ns, int stopped);
/* Called when a thread leaves the launch; the last of `threads` notifies the host. */
void gate_leave(struct gate *g, uint32_t threads);
/* Stores `value`, for which the host waits, and notifies the host. */
void gate_tell(struct gate *g, uint32_t *word, uint32_t value);

/* ---- the host's side */

/* Wakes the workers that sleep in gate_park(). gate_wake_apart() wakes the thread in gate_park_apart(). */
void gate_wake(const struct gate *g, struct loom_ctl *ctl);
void gate_wake_apart(struct gate *g);
/* Admits workers to a sample whose workers may be late. Called before the first worker can join. `members`: number of
 * workers that are in the sample from the start, and call gate_part() without gate_join(). */
void gate_admit(struct gate *g, uint32_t phase, uint32_t members);
/* Polls until *word is `value`, for at most `most_ns`. Returns 1 if it is. */
int gate_watch(const uint32_t *word, uint32_t value, uint64_t most_ns);
/* Ends the gate_await() in progress, or the next one. Any thread and signal handlers may call it. */
void gate_nudge(struct gate *g);
/* Waits until *word is `value`, and then returns 0. Returns LOOM_ETIMEDOUT at `end_ns`, and LOOM_EINTR after a signal.
 * Returns LOOM_EDIED if the process of `pidfd` has ended; pidfd = -1: there is no process. If `stop` is not NULL, it
 * also returns LOOM_EINTR after a nudge, or after a notification if *stop is set. */
int gate_await(struct gate *g, const uint32_t *word, uint32_t value, const uint32_t *stop, int pidfd, uint64_t end_ns);
/* Like gate_await(), but with a time span, for work of threads of this process. If the process is stopped, the clock
 * continues but the threads do not. So the span is divided into ten waits, and a stop uses up at most one of them. */
int gate_await_within(struct gate *g, const uint32_t *word, uint32_t value, int pidfd, uint64_t span_ns);

static inline uint64_t gate_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t gate_deadline(uint64_t timeout_ns)
{
	uint64_t now = gate_clock();
	return timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
}

#endif
