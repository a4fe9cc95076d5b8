/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives over the ranks of one host, for programs with kernels and streams of their own. Each rank is a process
 * that has opened a stack, on one GPU or on CPUs. A communicator connects these stacks: it has memory that all ranks
 * load and store, and the calls below work on memory of the program.
 *
 * On a GPU a call puts one kernel into a stream and returns. The call may be captured in a graph. Kernels of the
 * program can execute the same collectives by the functions of gpuloom/dev/collective.h. On CPUs a call returns when
 * the collective is complete; the workers of the stack help with large vectors.
 *
 * All ranks make the same calls in the same order, with the same sizes, types, operations and roots. Graphs that
 * contain calls are launched in the same order on all ranks, and never two of them at the same time. On CPUs, ranks
 * that make different calls get LOOM_EINVAL, with the difference. GPUs do not compare calls: there, different calls
 * have undefined results, or end with LOOM_ETIMEDOUT.
 *
 * Errors: when a rank dies or closes its communicator, or waits for another rank longer than [run] timeout, the
 * collectives that need this rank end with undefined results. Every later call returns LOOM_EDIED, LOOM_EINVAL or
 * LOOM_ETIMEDOUT, with the number of the rank. The death of a rank, and that it has closed, are noticed within a
 * second. loom_comm_stop() has the same effect, with LOOM_EINTR. The communicator cannot be used again after such an
 * error: close it.
 *
 * Threads and forks: as for the stack (gpuloom.h). Calls for a communicator must not overlap with each other, nor with
 * runs of its stack. */
#ifndef GPULOOM_COMM_H
#define GPULOOM_COMM_H

#include <gpuloom/dev/types.h>
#include <gpuloom/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Types of elements. Sums of 16-bit floating-point numbers are computed in float, and rounded once. */
enum loom_comm_type { LOOM_COMM_FLOAT = 0, LOOM_COMM_BFLOAT16, LOOM_COMM_HALF, LOOM_COMM_INT32 };
enum loom_comm_op { LOOM_COMM_SUM = 0, LOOM_COMM_MAX };
enum loom_comm_what {
	LOOM_COMM_ALLREDUCE = 0,
	LOOM_COMM_REDUCE_SCATTER,
	LOOM_COMM_ALLGATHER,
	LOOM_COMM_BROADCAST,
	LOOM_COMM_BARRIER
};

#define LOOM_COMM_RANKS 16u    /* limit on the number of ranks */
#define LOOM_COMM_TRACKS 128u /* limit on the number of tracks */

#define LOOM_COMM_STOPPED 0xffffffffu

/* Words in host memory. The host sets `lost`, and device code the others. */
struct loom_comm_words {
	/* Low 32 bits: 1 + number of a rank that has died; LOOM_COMM_STOPPED: loom_comm_stop() was called; 0: neither.
	 * Bit 32 + r: rank r has closed its communicator. */
	uint64_t lost;
	uint64_t failed; /* 1: a collective has ended early */
	uint64_t late;	 /* 1 + number of a rank that has closed or for which a collective has waited too long; or 0 */
	/* 1 + number of a rank that has made another call; 0: none. loom_comm_code() of this rank's call and of the
	 * other. */
	uint64_t unequal, own, other;
	uint64_t pad[2];
};

/* What device code needs of a communicator. It is the same for the whole time that the communicator is open, so kernels
 * take it by value. Addresses are those of the device. */
struct loom_comm_view {
	uint32_t rank, ranks;
	uint32_t tracks; /* blocks that use different tracks do not disturb each other */
	uint32_t kind;	   /* LOOM_ON_CPU or LOOM_ON_GPU */
	uint64_t slot;	     /* size in bytes of a track's slot for marked words from one rank; half of it is data */
	uint64_t share;	     /* size in bytes of a track's buffer */
	uint64_t timeout_ns; /* limit on each wait for another rank */
	struct loom_comm_words *words;
	char *memory[LOOM_COMM_RANKS]; /* [rank]; memory of that rank */
};

/* A collective. `in` and `out` may be equal. With ALLGATHER, `in` may also be the part of `out` that belongs to this
 * rank. With REDUCE_SCATTER, `out` may be that part of `in`. Otherwise they must not overlap. */
struct loom_comm_call {
	uint32_t what, type, op; /* enums loom_comm_what, loom_comm_type, loom_comm_op */
	uint32_t root;		 /* BROADCAST: the rank whose `in` all ranks receive; `in` of other ranks is not used */
	const void *in;
	void *out;
	/* Number of elements of the vector. With ALLGATHER: of `in`, so that `out` has `ranks` times as many. With
	 * REDUCE_SCATTER: of `out`. */
	uint64_t count;
	/* 0: ranks store marked words; 1: they load from each other's buffers; 2, 3: they store whole vectors or parts of them into
	 * each other's buffers, or as 1, if `what` is no allreduce. gpuloom/dev/collective.h explains this. */
	uint32_t pulls;
	uint32_t chosen; /* loom_comm_call(): 1: `pulls` is used; 0: the algorithm follows from the size */
};

#ifndef LOOM_DEVICE_COMPILE
struct loom_comm;
struct loom_ranks; /* gpuloom.h */
struct loom_stack;

/* Opens a communicator on a stack that was opened without ranks. All ranks call it; `ranks` has their number and the
 * function by which they find each other. Its memory is used only during the call. On a GPU the call compiles the
 * kernel. After loom_stack_close(), the communicator can only be closed. Returns LOOM_EINVAL if `ranks` are wrong,
 * LOOM_ENOTSUP if the stack has several GPUs, or
 * GPUs and CPUs, or virtual time, if ranks are not processes of one host and container, or if there are more than
 * LOOM_COMM_RANKS. Returns LOOM_EUNAVAIL with the reason if the GPUs cannot access each other's memory, LOOM_EDIED if a
 * rank has died, and LOOM_ENOMEM. */
LOOM_EXPORT int loom_comm_open(struct loom_stack *stack, const struct loom_ranks *ranks, struct loom_comm **comm,
			       struct loom_error *err);
/* Waits for collectives in streams, for at most a second, and frees the communicator. Other ranks need not close
 * theirs. `comm` may be NULL. In a fork of the process, frees only private memory. */
LOOM_EXPORT void loom_comm_close(struct loom_comm *comm);

/* Executes a collective. stream: of the GPU (cudaStream_t, hipStream_t), or NULL for its default stream; with CPUs it
 * must be NULL. Returns LOOM_EINVAL if a field of the
 * call is wrong or an address is not a multiple of the size of an element; other ranks do not learn of this. On a GPU
 * the results are valid when the stream has reached this point and loom_comm_status() then returns 0. */
LOOM_EXPORT int loom_comm_call(struct loom_comm *comm, const struct loom_comm_call *call, void *stream,
			       struct loom_error *err);
/* These functions call loom_comm_call(). */
LOOM_EXPORT int loom_comm_allreduce(struct loom_comm *comm, const void *in, void *out, uint64_t count,
				    enum loom_comm_type type, enum loom_comm_op op, void *stream,
				    struct loom_error *err);
LOOM_EXPORT int loom_comm_reduce_scatter(struct loom_comm *comm, const void *in, void *out, uint64_t count,
					 enum loom_comm_type type, enum loom_comm_op op, void *stream,
					 struct loom_error *err);
LOOM_EXPORT int loom_comm_allgather(struct loom_comm *comm, const void *in, void *out, uint64_t count,
				    enum loom_comm_type type, void *stream, struct loom_error *err);
LOOM_EXPORT int loom_comm_broadcast(struct loom_comm *comm, const void *in, void *out, uint64_t count,
				    enum loom_comm_type type, uint32_t root, void *stream, struct loom_error *err);
LOOM_EXPORT int loom_comm_barrier(struct loom_comm *comm, void *stream, struct loom_error *err);

/* Returns 0, or the error that has ended a collective. It does not wait, so synchronise with the stream first. */
LOOM_EXPORT int loom_comm_status(struct loom_comm *comm, struct loom_error *err);
/* Ends collectives in progress with undefined results. Later calls of this rank return LOOM_EINTR, and other ranks wait
 * until their time limit. Any thread or signal handler may call this until the communicator is closed. */
LOOM_EXPORT void loom_comm_stop(struct loom_comm *comm);
/* Returns what kernels of the program need for gpuloom/dev/collective.h. */
LOOM_EXPORT void loom_comm_view(const struct loom_comm *comm, struct loom_comm_view *view);
#endif

#ifdef __cplusplus
}
#endif
#endif
