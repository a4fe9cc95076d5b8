/* SPDX-License-Identifier: Apache-2.0 */
/* Where host and lanes meet. The host speaks through ctl->phase, which belongs to the stack; the
 * workers answer through the words of `struct gate_words`, which belong to the device and are
 * shared with its process, and notify the host, which sleeps on an eventcount (lib/eventcount.h). */
#ifndef GPULOOM_CPU_GATE_H
#define GPULOOM_CPU_GATE_H

#include <gpuloom/dev/dev.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

struct gate_words {
	uint32_t arrived; /* lanes at the gate, of the sample to come */
	uint32_t ready;   /* the READY phase that all lanes have reached */
	uint32_t started; /* process isolation: 1 threads run, or they could not: `failure` */
	uint32_t pin_errno;
	uint32_t finished __attribute__((aligned(64))); /* workers done with the sample */
	uint32_t done;     /* the GO phase that all workers have finished */
	uint64_t end_ns;   /* when the last of them did, so far ... */
	uint64_t ended_ns; /* ... and of that phase */
	uint32_t gone;     /* threads that have left the launch */
	uint32_t event;    /* an eventcount, on which the host sleeps if the workers are threads; */
	uint32_t waiting;  /* 1: it does, or is about to */
	/* Of a sample whose workers may be late: its phase << 32 | GATE_CLOSED when one has seen its end | workers in
	 * it. The last of them to leave tells the host. Model: tests/models/gate.pml. */
	uint64_t team __attribute__((aligned(64)));
	uint32_t watching __attribute__((aligned(64))); /* lanes that spin between samples */
	uint32_t host_cpu; /* where the host's thread was when it began the last one */
	char failure[512] __attribute__((aligned(64)));
};

#define GATE_CLOSED 0x80000000ull

struct gate {
	struct gate_words *words; /* at the same address in host and child */
	int event_fd;             /* eventfd of a device process; -1: the workers are threads */
	uint32_t nudged;          /* the host's alone: the next wait with a stop word ends at once */
};

int gate_open(struct gate *g, int process); /* 0 or errno */
void gate_close(struct gate *g);
void gate_reset(struct gate *g); /* no workers exist */

/* ---- the workers' side */

/* Until the host moves on from phase `last`: gives READY, GO or RETIRE. Spins for a while, then sleeps. */
uint32_t gate_park(struct gate *g, const struct loom_ctx *c, uint32_t last, uint64_t spin_ns);
/* This lane watches from now on; the last of `lanes` tells the host. */
void gate_arrive(struct gate *g, uint32_t lanes, uint32_t phase);
/* Spins until the host moves on from READY: gives GO or RETIRE. */
uint32_t gate_spin(struct gate *g, const struct loom_ctx *c, uint32_t ready);
/* A worker has finished the sample that `phase` started; the last of `workers` tells the host, and so does
 * any that left because it was `stopped`: the host may have to wake the others. */
void gate_finish(struct gate *g, uint32_t workers, uint32_t phase, uint64_t now_ns,
		 int stopped);
/* Of a sample whose workers may be late: 1 when this one takes part, 0 when it came too late ... */
int gate_join(struct gate *g, const struct loom_ctx *c, uint32_t phase);
/* ... and when it has finished, in the place of gate_finish(). */
void gate_part(struct gate *g, uint32_t phase, uint64_t now_ns, int stopped);
/* A thread leaves the launch; the last of `threads` tells the host. */
void gate_leave(struct gate *g, uint32_t threads);
/* Stores `value` and notifies: what the host awaits. */
void gate_tell(struct gate *g, uint32_t *word, uint32_t value);

/* ---- the host's side */

/* Wakes the workers that sleep on the phase word. */
void gate_wake(const struct gate *g, struct loom_ctl *ctl);
/* Before the first worker can join. */
void gate_admit(struct gate *g, uint32_t phase);
/* Until *word is `value`, at most for so long: 1 when it is. Without sleep. */
int gate_watch(const uint32_t *word, uint32_t value, uint64_t most_ns);
/* Ends the gate_await() in progress, or the next one. From any thread, and from signal handlers. */
void gate_nudge(struct gate *g);
/* Until *word is `value`: 0; LOOM_ETIMEDOUT at `end_ns`; LOOM_EINTR when a signal came, and with `stop` (NULL: not)
 * also after a nudge, or when it was notified and *stop is set; LOOM_EDIED when pidfd (-1: none) says that the process has ended. */
int gate_await(struct gate *g, const uint32_t *word, uint32_t value, const uint32_t *stop, int pidfd,
	       uint64_t end_ns);
/* The same within a span, for what threads of this process shall do. The clock goes on while the process is stopped, and
 * they do not: a stop takes a tenth of the span at most. */
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
