/* SPDX-License-Identifier: Apache-2.0 */
/* Common part of gpu_nvshmem.cu and gpu_lsa.cu: two processes with a GPU each, and the jobs that are timed in both. A
 * job takes the operations of a library as a template argument, a struct with a member type Here, whose first member is a
 * reference to this struct. Each block of a kernel makes a Here, whose functions all threads of the block call. A job
 * compares everything that it receives with what the other rank must have sent. */
#ifndef BENCH_GPU_TWO_H
#define BENCH_GPU_TWO_H

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_must.h"

enum {
	LAUNCHES = 5,    /* timed launches, of which the median counts; one more comes first, and is not counted */
	MESSAGES = 2000, /* of each rank in a launch */
	CHECKED = 50,    /* rounds of meetings and sums that are compared one by one, in a part that is not timed */
	MEETINGS = 2000,
	SUMS = 200
};

/* ---- two processes --------------------------------------------------------------------------------------- */

/* Memory of both processes. */
struct two {
	uint32_t arrived, printed; /* printed: number of figures */
	char id[128]; /* how a library names the job */
};

static char two_wanted[64]; /* the figure to measure; empty: all */

/* Makes the name of a figure. Returns whether it is measured. */
static int figure(char (&name)[64], const char *format, size_t value)
{
	snprintf(name, sizeof(name), format, value);
	return !*two_wanted || !strcmp(name, two_wanted);
}

/* Waits until the other process calls it too. */
static void two_meet(struct two *two)
{
	uint32_t n = __atomic_add_fetch(&two->arrived, 1, __ATOMIC_ACQ_REL), both = (n + 1) / 2 * 2;
	while (__atomic_load_n(&two->arrived, __ATOMIC_ACQUIRE) < both)
		sched_yield();
}

/* Gives rank 1 the id that rank 0 has. */
static void two_share(struct two *two, int rank, void *id, size_t bytes)
{
	if (rank == 0)
		memcpy(two->id, id, bytes);
	two_meet(two);
	if (rank == 1)
		memcpy(id, two->id, bytes);
}

/* Selects the GPU of this rank. Ends the process if there are no two GPUs that reach each other. */
static void two_select(int rank)
{
	if (!two_gpus())
		exit(NOT_HERE);
	MUST(cudaSetDevice(rank));
}

/* Runs body() in two processes, which this process starts before it has used CUDA. If one of them fails, the other one
 * may wait forever: it is killed if it has not ended a second later. Returns the exit status of the first that failed,
 * or 0. Arguments of the program are a figure, or its kind and size: `put 8` is LIBRARY_put_8_us. */
static int two_run(void (*body)(int rank, struct two *two), const char *library, int argc, char **argv)
{
	if (argc == 3)
		snprintf(two_wanted, sizeof(two_wanted), "%s_%s_%s_us", library, argv[1], argv[2]);
	else if (argc == 2)
		snprintf(two_wanted, sizeof(two_wanted), "%s", argv[1]);
	struct two *two =
	    (struct two *)mmap(NULL, sizeof(*two), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child[2] = {0, 0};
	int failed = 0, status;
	if (two == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	setvbuf(stdout, NULL, _IOLBF, 0); /* so the lines before a time limit are not lost */
	for (int rank = 0; rank < 2; rank++) {
		child[rank] = fork();
		if (child[rank] < 0) {
			perror("fork");
			failed = 1;
			break;
		}
		if (child[rank] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			body(rank, two);
			exit(0);
		}
	}
	for (int left = (child[0] > 0) + (child[1] > 0), late = 0; left > 0;) {
		pid_t ended = waitpid(-1, &status, failed ? WNOHANG : 0);
		if (ended > 0) {
			left--;
			child[child[1] == ended] = 0;
			if (!failed)
				failed = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		} else if (failed) {
			usleep(10000);
			if (++late == 100)
				kill(child[0] > 0 ? child[0] : child[1], SIGKILL);
		}
	}
	if (!failed && !two->printed) {
		fprintf(stderr, "there is no figure %s\n", two_wanted);
		failed = 2;
	}
	return failed;
}

/* What a process needs for its jobs. */
struct job {
	int rank;
	struct two *two;
	uint64_t next;             /* number of the next message, meeting or sum; it only grows */
	uint64_t *ns;              /* times, in the GPU's memory */
	unsigned long long *wrong; /* number of wrong words, in the GPU's memory */
};

static struct job job_of(int rank, struct two *two)
{
	struct job job = {rank, two, 2, NULL, NULL};
	MUST(cudaMalloc(&job.ns, MESSAGES * sizeof(*job.ns)));
	MUST(cudaMalloc(&job.wrong, sizeof(*job.wrong)));
	MUST(cudaMemset(job.wrong, 0, sizeof(*job.wrong)));
	return job;
}

/* Waits for the end of a kernel, and fetches its times. Ends the process if anything received was wrong. */
static void job_end(const struct job *job, const char *what, size_t bytes, uint64_t *ns, size_t n)
{
	unsigned long long wrong;
	MUST(cudaDeviceSynchronize());
	MUST(cudaMemcpy(&wrong, job->wrong, sizeof(wrong), cudaMemcpyDeviceToHost));
	if (wrong) {
		fprintf(stderr, "%s, %zu bytes: rank %d received %llu wrong words\n", what, bytes, job->rank, wrong);
		exit(1);
	}
	MUST(cudaMemcpy(ns, job->ns, n * sizeof(*ns), cudaMemcpyDeviceToHost));
}

/* Stores n after all that this thread has stored or seen. */
static __device__ void store_release(uint64_t *at, uint64_t n)
{
	asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(at), "l"(n) : "memory");
}

/* Waits for n, and then sees what precedes its release. */
static __device__ void await_acquire(const uint64_t *at, uint64_t n)
{
	uint64_t seen = 0;
	while (seen < n)
		asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(seen) : "l"(at) : "memory");
}

/* ---- messages: one way, as workload_pingpong measures it ---------------------------------------------------- */

struct message {
	uint64_t *from, *to; /* what this rank sends, and where the other rank's message arrives */
	size_t words;
};

static __device__ uint64_t message_value(uint64_t n, size_t word, int rank)
{
	return (n + 1) * 0x9e3779b97f4a7c15ull + word + (uint64_t)rank * 0x10000001ull;
}

static __device__ void message_fill(const struct message &m, uint64_t n, int rank)
{
	for (size_t i = threadIdx.x; i < m.words; i += blockDim.x)
		m.from[i] = message_value(n, i, rank);
}

/* Reads by volatile loads, as a library's wait need not be an acquire. */
static __device__ void message_compare(const struct message &m, uint64_t n, int rank, unsigned long long *wrong)
{
	unsigned long long bad = 0;
	for (size_t i = threadIdx.x; i < m.words; i += blockDim.x)
		bad += ((const volatile uint64_t *)m.to)[i] != message_value(n, i, rank);
	if (bad)
		atomicAdd(wrong, bad);
}

/* L::Here has put(m, n), which sends message n, and await(m, n), which returns when message n is in m.to. As in
 * workload_pingpong, a rank compares each message and writes a new one, and half of it is part of the time one way. */
template <class L>
static __global__ void __launch_bounds__(1024) messages(const __grid_constant__ L link, struct message m, int rank,
							uint64_t first, uint64_t *ns, unsigned long long *wrong)
{
	typename L::Here here{link};
	for (uint64_t n = first; n < first + MESSAGES; n++) {
		uint64_t begin = 0;
		if (rank == 0) {
			message_fill(m, n, rank);
			begin = gpu_ns();
			here.put(m, n);
		}
		here.await(m, n);
		if (threadIdx.x == 0)
			ns[n - first] = gpu_ns() - begin;
		message_compare(m, n, 1 - rank, wrong);
		if (rank == 1) {
			message_fill(m, n, rank);
			here.put(m, n);
		}
	}
}

/* Returns half of the median time of a message there and back. Only rank 0's result counts. */
template <class L> static double one_way_us(struct job *job, const L &link, const struct message &m, int lanes)
{
	static uint64_t ns[MESSAGES];
	double half[LAUNCHES];
	for (int i = -1; i < LAUNCHES; i++) {
		two_meet(job->two);
		messages<<<1, lanes>>>(link, m, job->rank, job->next, job->ns, job->wrong);
		MUST(cudaGetLastError());
		job->next += MESSAGES;
		job_end(job, "messages", m.words * 8, ns, MESSAGES);
		if (i >= 0)
			half[i] = (double)median(ns, MESSAGES) / 2e3;
	}
	return median(half, LAUNCHES);
}

/* ---- meetings: barriers of both GPUs ------------------------------------------------------------------------ */

/* Words by which the blocks of a GPU meet, in its own memory. */
struct local {
	unsigned arrived;
	char pad[124];
	uint64_t released;
};

static struct local *local_make(void)
{
	struct local *l;
	MUST(cudaMalloc(&l, sizeof(*l)));
	MUST(cudaMemset(l, 0, sizeof(*l)));
	return l;
}

/* All blocks arrive at a word of their GPU, the last one meets the other GPU by cross(), and then releases the others. */
template <class F> static __device__ void meet_by_last(struct local *l, uint64_t n, F cross)
{
	uint64_t released = 0;
	unsigned before;
	__syncthreads();
	if (threadIdx.x == 0) {
		asm volatile("atom.acq_rel.gpu.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(&l->arrived) : "memory");
		if (before + 1 == gridDim.x) {
			l->arrived = 0;
			cross();
			asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(&l->released), "l"(n) : "memory");
		} else {
			while (released < n)
				asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(released) : "l"(&l->released) : "memory");
		}
	}
	__syncthreads();
}

/* S::Here has meet(n), where the numbers n of meetings grow by 1. In the part that is checked a block records its
 * arrival, and then reads the record of a block of the other rank. */
template <class S>
static __global__ void __launch_bounds__(1024)
    meetings(const __grid_constant__ S sync, volatile uint64_t *mine, const volatile uint64_t *theirs, uint64_t first,
	     uint64_t *ns, unsigned long long *wrong)
{
	typename S::Here here{sync};
	uint64_t n = first;
	for (; n < first + CHECKED; n++) {
		if (threadIdx.x == 0) {
			mine[blockIdx.x] = n;
			__threadfence_system(); /* sync_all of NVSHMEM orders no data */
		}
		here.meet(n);
		if (threadIdx.x == 0 && theirs[(blockIdx.x + n) % gridDim.x] < n)
			atomicAdd(wrong, 1ull);
	}
	uint64_t begin = gpu_ns();
	for (; n < first + CHECKED + MEETINGS; n++)
		here.meet(n);
	if (blockIdx.x == 0 && threadIdx.x == 0)
		*ns = gpu_ns() - begin;
}

/* Returns the time of a meeting of `blocks` blocks of each rank. `mine` and `theirs` have a word for each block, 0 at
 * first. */
template <class S>
static double meeting_us(struct job *job, S sync, uint64_t *mine, uint64_t *theirs, unsigned blocks, unsigned lanes)
{
	double us[LAUNCHES];
	for (int i = -1; i < LAUNCHES; i++) {
		uint64_t ns, first = job->next;
		void *arguments[] = {&sync, &mine, &theirs, &first, &job->ns, &job->wrong};
		two_meet(job->two);
		MUST(cudaLaunchCooperativeKernel((const void *)meetings<S>, blocks, lanes, arguments, 0, NULL));
		job->next += CHECKED + MEETINGS;
		job_end(job, "meetings", 0, &ns, 1);
		if (i >= 0)
			us[i] = (double)ns / (1000.0 * (int)MEETINGS);
	}
	return median(us, LAUNCHES);
}

/* ---- sums of a vector of both ranks -------------------------------------------------------------------------- */

/* Round n has the input in[n & 1] and the output out[n & 1]. With two sets a rank may write the input of round n as
 * soon as it has the sums of round n - 1: for these the other rank must have read the input of round n - 2. */
struct vectors {
	float *in[2], *out[2];
	size_t floats;
};

/* Inputs are whole numbers, so that sums are exact. In the part that is timed the inputs depend on n & 1 alone. */
static __device__ float vector_element(uint64_t tag, size_t i, int rank)
{
	return (float)((i * 3 + tag * 1021 + (uint64_t)rank * 2053) % 8192);
}

/* A thread has the same elements in each round, in groups of `unit`. */
template <int unit> static __device__ void vector_fill(const struct vectors &v, uint64_t n, uint64_t tag, int rank)
{
	size_t all = (size_t)gridDim.x * blockDim.x;
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < v.floats / unit; i += all)
		for (int k = 0; k < unit; k++)
			v.in[n & 1][i * unit + k] = vector_element(tag, i * unit + k, rank);
}

template <int unit>
static __device__ void vector_compare(const struct vectors &v, uint64_t n, uint64_t tag, unsigned long long *wrong)
{
	size_t all = (size_t)gridDim.x * blockDim.x;
	unsigned long long bad = 0;
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < v.floats / unit; i += all)
		for (int k = 0; k < unit; k++)
			bad += ((const volatile float *)v.out[n & 1])[i * unit + k] !=
			       vector_element(tag, i * unit + k, 0) + vector_element(tag, i * unit + k, 1);
	if (bad)
		atomicAdd(wrong, bad);
}

/* S::unit is the number of floats that a thread accesses at once, S::lanes the largest number of threads of a block.
 * S::Here has meet(), after which this block of both ranks is there, and sum(v, n). */
template <class S>
static __global__ void __launch_bounds__(S::lanes)
    sums(const __grid_constant__ S op, struct vectors v, int rank, int checked, uint64_t first, uint64_t *ns,
	 unsigned long long *wrong)
{
	typename S::Here here{op};
	uint64_t last = first + (checked ? CHECKED : SUMS);
	for (uint64_t n = first; n < first + 2; n++)
		vector_fill<S::unit>(v, n, n & 1, rank);
	__syncthreads();
	here.meet();
	uint64_t begin = gpu_ns();
	for (uint64_t n = first; n < last; n++) {
		if (checked) {
			vector_fill<S::unit>(v, n, n, rank);
			__syncthreads();
		}
		here.sum(v, n);
		if (checked) {
			__syncthreads();
			vector_compare<S::unit>(v, n, n, wrong);
		}
	}
	__syncthreads();
	if (threadIdx.x == 0)
		ns[blockIdx.x] = gpu_ns() - begin;
	for (uint64_t n = last - 2; n < last && !checked; n++)
		vector_compare<S::unit>(v, n, n & 1, wrong);
}

/* Returns the time of a sum: that of the block that took longest. */
template <class S>
static double sum_us(struct job *job, const S &op, const struct vectors &v, unsigned blocks, unsigned lanes)
{
	static uint64_t ns[MESSAGES];
	double us[LAUNCHES];
	for (int i = -1; i < LAUNCHES; i++) {
		for (int k = 0; k < 2; k++)
			MUST(cudaMemset(v.out[k], 0xff, v.floats * sizeof(float)));
		MUST(cudaDeviceSynchronize());
		two_meet(job->two);
		sums<<<blocks, lanes>>>(op, v, job->rank, i < 0, job->next, job->ns, job->wrong);
		MUST(cudaGetLastError());
		job->next += i < 0 ? CHECKED : SUMS;
		job_end(job, "sums", v.floats * sizeof(float), ns, blocks);
		if (i >= 0)
			us[i] = (double)*std::max_element(ns, ns + blocks) / (1000.0 * (int)SUMS);
	}
	return median(us, LAUNCHES);
}

/* ---- the best of several ways --------------------------------------------------------------------------------- */

struct best {
	double us;
	const char *way;
	unsigned blocks, lanes;
};

static void best_of(struct best *best, double us, const char *way, unsigned blocks, unsigned lanes)
{
	if (!best->way || us < best->us)
		*best = {us, way, blocks, lanes};
}

/* Prints the line of a figure, and how it was reached. */
static void best_print(const struct job *job, const char *name, const struct best &best)
{
	if (job->rank || !best.way)
		return;
	job->two->printed++;
	if (*two_wanted)
		printf("%s %.3f\n", name, best.us);
	else
		printf("%s %.3f %s %ux%u\n", name, best.us, best.way, best.blocks, best.lanes);
}

#endif
