/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators: collectives over the ranks of one host, in the streams and the memory of the program. */
#include <gpuloom/comm.h>
#include <gpuloom/dev/collective.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/eventcount.h"
#include "lib/fd.h"
#include "lib/peer.h"
#include "lib/poll.h"
#include "lib/thread.h"
#include "stack/stack.h"

enum {
	HEAD = 4096, /* size of the first part of a rank's file, struct head */
	GPU_SLOT = 32 << 10,
	GPU_SHARE = 64 << 10, /* all buffers fit into the cache of a GPU */
	GPU_WORDS = 128, /* of a block, if blocks are enough: four warps, one for each scheduler of a multiprocessor */
	CPU_TRACKS = 4,
	CPU_SLOT = 4 << 10,
	/* Largest vectors in bytes for marked words, for those of an allreduce, and for an allreduce of more than two ranks by
	 * stores of whole vectors: on CPUs transfers of cache lines dominate (COMM_EACH=1 bench/comm). */
	CPU_MARKED = 256,
	CPU_MARKED_SUM = 16,
	CPU_WHOLE = 512,
	CPU_SHARE = 1 << 20,
	HELPED = 256 << 10, /* smallest piece in bytes with which workers of a CPU stack help */
	TASKS = 64,         /* limit on the tasks into which such a piece is divided */
	WATCH_MS = 250,     /* how often the watcher looks for ranks that have closed */
};
#define CLOSE_NS 2000000000ull /* limit on the wait for the other ranks in loom_comm_close() */

/* The first part of a rank's file, which the other ranks map. */
struct head {
	uint32_t closed; /* 1: this rank uses the memory of the other ranks no more */
};

/* What each rank tells the others. */
struct identity {
	struct peer process;
	uint64_t device, inode;	 /* of the rank's file */
	int64_t fd;              /* descriptor of the file in the rank's process */
	uint64_t kind;		 /* LOOM_ON_* */
	struct loom_memory_key key; /* memory on a GPU */
};

struct loom_comm {
	struct loom__guest guest;
	struct loom_stack *stack; /* NULL: it was closed before the communicator */
	struct loom_comm_view view;
	struct loom_comm_words *words; /* address on the host of view.words */
	struct loom_comm_words own_words;
	int on_gpu;
	struct loom_memory memory, host_memory; /* on a GPU: the rank's memory, and the words */
	int file;
	struct head *head[LOOM_COMM_RANKS]; /* [rank]; the mapped files */
	uint64_t head_bytes[LOOM_COMM_RANKS];
	int opened[LOOM_COMM_RANKS]; /* 1: view.memory[rank] was opened by mem_open() */
	pid_t pid[LOOM_COMM_RANKS];
	uint32_t ended[LOOM_COMM_RANKS];          /* 1: the watcher has seen that the rank's process has ended */
	struct pollfd watch[LOOM_COMM_RANKS + 1]; /* processes of the ranks; last, the event that ends the watcher */
	pthread_t watcher;
	int watches;   /* 1: the watcher runs */
	uint32_t ends; /* 1: the watcher shall end */
	int helps;     /* 1: workers help */
};

/* ---- the memory of the ranks ---------------------------------------------------------------------------------- */

static int make_file(struct loom_comm *m, struct identity *mine, struct loom_error *err)
{
	uint32_t rank = m->view.rank;
	struct stat file;
	uint64_t bytes = HEAD + (m->on_gpu ? 0 : loom_comm_bytes(&m->view));
	m->file = loom_fd(memfd_create("gpuloom-comm", MFD_CLOEXEC));
	if (m->file < 0 || ftruncate(m->file, (off_t)bytes) || fstat(m->file, &file))
		return LOOM__FAIL(err, LOOM_EUNAVAIL, "cannot make shared memory: memfd_create: %s", strerror(errno));
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->file, 0);
	if (at == MAP_FAILED)
		return LOOM__FAIL(err, LOOM_ENOMEM, "cannot map %llu bytes of shared memory: %s",
				  (unsigned long long)bytes, strerror(errno));
	m->head[rank] = at;
	m->head_bytes[rank] = bytes;
	mine->device = file.st_dev;
	mine->inode = file.st_ino;
	mine->fd = m->file;
	if (!m->on_gpu)
		m->view.memory[rank] = (char *)at + HEAD;
	return 0;
}

static int make_device_memory(struct loom_comm *m, struct identity *mine, struct loom_error *err)
{
	const struct loom__device *d = &m->stack->device[0];
	int rc = d->ops->mem_alloc(d->self, loom_comm_bytes(&m->view), 0, &m->memory, err);
	if (rc)
		return rc;
	m->view.memory[m->view.rank] = (char *)(uintptr_t)m->memory.handle;
	rc = d->ops->mem_alloc(d->self, sizeof(*m->words), LOOM_MEMORY_HOST, &m->host_memory, err);
	if (rc)
		return rc;
	m->words = m->host_memory.host;
	m->view.words = (struct loom_comm_words *)(uintptr_t)m->host_memory.handle;
	rc = m->view.ranks > 1 ? d->sharing->mem_key(d->self, &m->memory, &mine->key, err) : 0;
	return rc ? rc : d->streams->collective(d->self, &m->view, NULL, 0, NULL, err);
}

static int make_own(struct loom_comm *m, struct identity *mine, struct loom_error *err)
{
	memset(mine, 0, sizeof(*mine));
	peer_read(&mine->process);
	mine->kind = m->on_gpu ? LOOM_ON_GPU : LOOM_ON_CPU;
	int rc = make_file(m, mine, err);
	return rc || !m->on_gpu ? rc : make_device_memory(m, mine, err);
}

static int reach(struct loom_comm *m, uint32_t r, const struct identity *mine, const struct identity *other,
		 struct loom_error *err)
{
	char path[64];
	void *at = NULL;
	if (!peer_is_near(&mine->process, &other->process))
		return LOOM__FAIL(err, LOOM_ENOTSUP,
				  "rank %u is on another host or in another container than rank %u, but a communicator "
				  "needs ranks that share memory: write a workload that calls gpuloom/collective/allreduce.h, "
				  "with a trigger between hosts, as examples/workload-average does",
				  r, m->view.rank);
	if (other->process.pid == mine->process.pid)
		return LOOM__FAIL(err, LOOM_ENOTSUP, "ranks %u and %u are one process: start a process for each rank", r,
				  m->view.rank);
	if (other->kind != mine->kind)
		return LOOM__FAIL(err, LOOM_ENOTSUP,
				  "rank %u and rank %u: one uses a GPU, the other CPUs: choose the same kind of device "
				  "in all ranks",
				  r, m->view.rank);
	int code = peer_map(&other->process, other->fd, other->device, other->inode, path, &at, &m->head_bytes[r]);
	if (code)
		return LOOM__FAIL(err, LOOM_EUNAVAIL,
				  "cannot map the memory of rank %u (%s: %s): run all ranks as one user on one host", r,
				  path, strerror(code));
	m->head[r] = at;
	if (m->head_bytes[r] != m->head_bytes[m->view.rank])
		return LOOM__FAIL(err, LOOM_EINVAL, "rank %u has another version of gpuloom than rank %u", r, m->view.rank);
	if (!m->on_gpu) {
		m->view.memory[r] = (char *)at + HEAD;
		return 0;
	}
	const struct loom__device *d = &m->stack->device[0];
	uint64_t address = 0;
	int rc = d->sharing->mem_open(d->self, &other->key, &address, err);
	m->view.memory[r] = (char *)(uintptr_t)address;
	m->opened[r] = !rc;
	return rc;
}

/* Frees all but the struct. */
static void drop(struct loom_comm *m)
{
	const struct loom__device *d = &m->stack->device[0];
	if (m->host_memory.size)
		d->ops->mem_free(d->self, &m->host_memory);
	if (m->memory.size)
		d->ops->mem_free(d->self, &m->memory);
	for (uint32_t r = 0; r < m->view.ranks; r++)
		if (m->head[r])
			munmap(m->head[r], m->head_bytes[r]);
	if (m->file >= 0)
		close(m->file);
}

/* ---- the watcher: a thread that waits for the end of another rank's process -------------------------------------- */

static uint32_t lost_rank(const struct loom_comm *m)
{
	return (uint32_t)__atomic_load_n(&m->words->lost, __ATOMIC_RELAXED);
}

static int has_closed(const struct loom_comm *m, uint32_t r)
{
	/* Acquire: pairs with the release in leave(). */
	return __atomic_load_n(&m->head[r]->closed, __ATOMIC_ACQUIRE) != 0;
}

static void *watch(void *arg)
{
	struct loom_comm *m = arg;
	uint32_t ranks = m->view.ranks;
	const struct timespec most = {.tv_nsec = WATCH_MS * 1000000};
	while (!__atomic_load_n(&m->ends, __ATOMIC_RELAXED)) {
		if (poll_or_nap(m->watch, ranks + 1, &most) < 0)
			continue;
		for (uint32_t r = 0; r < ranks; r++) {
			int closed = r != m->view.rank && has_closed(m, r);
			/* Release: pairs with the acquire in loom_comm_gives_up(), which then sees what the rank sent
			 * before it closed. */
			if (closed)
				__atomic_fetch_or(&m->words->lost, 1ull << 32 << r, __ATOMIC_RELEASE);
			if (m->watch[r].fd < 0 || !m->watch[r].revents)
				continue;
			/* A rank that has closed its communicator may end. */
			if (!closed && !lost_rank(m))
				__atomic_fetch_or(&m->words->lost, (uint64_t)r + 1, __ATOMIC_RELAXED);
			__atomic_store_n(&m->ended[r], 1u, __ATOMIC_RELAXED);
			close(m->watch[r].fd);
			m->watch[r].fd = -1;
		}
	}
	return NULL;
}

static int start_watcher(struct loom_comm *m, const struct identity *all, struct loom_error *err)
{
	uint32_t ranks = m->view.ranks;
	sigset_t none, before;
	for (uint32_t r = 0; r < ranks; r++) {
		m->pid[r] = (pid_t)all[r].process.pid;
		int rc = r == m->view.rank ? 0 : loom__watch_rank(m->stack, r, &all[r].process, &m->watch[r], err);
		if (rc)
			return rc;
	}
	m->watch[ranks] = (struct pollfd){.fd = eventcount_fd_open(), .events = POLLIN};
	if (m->watch[ranks].fd < 0)
		return LOOM__FAIL(err, LOOM_EUNAVAIL, "eventfd: %s", strerror(errno));
	sigfillset(&none); /* signals are for the threads of the program */
	pthread_sigmask(SIG_SETMASK, &none, &before);
	int code = thread_create(&m->watcher, watch, m);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (code)
		return LOOM__FAIL(err, code == ENOMEM ? LOOM_ENOMEM : LOOM_EUNAVAIL, "cannot create a thread: %s", strerror(code));
	m->watches = 1;
	return 0;
}

static void end_watcher(struct loom_comm *m)
{
	uint32_t ranks = m->view.ranks;
	if (m->watches) {
		__atomic_store_n(&m->ends, 1u, __ATOMIC_RELAXED);
		eventcount_fd_notify(m->watch[ranks].fd);
		pthread_join(m->watcher, NULL);
	}
	for (uint32_t r = 0; r <= ranks; r++)
		if (m->watch[r].fd >= 0)
			close(m->watch[r].fd);
}

/* ---- open and close ------------------------------------------------------------------------------------------------ */

static int check_stack(struct loom_stack *s, struct loom_error *err)
{
	uint32_t gpus = 0;
	for (uint32_t d = 0; d < s->layout.devices; d++)
		gpus += s->shape[d].kind == LOOM_ON_GPU;
	if (s->layout.clock)
		return LOOM__FAIL(err, LOOM_ENOTSUP, "a communicator needs real devices, and those of this stack have virtual time");
	if (gpus && s->layout.devices > 1)
		return LOOM__FAIL(err, LOOM_ENOTSUP,
				  "a communicator has one GPU of each rank, or CPUs only: name one GPU in [run] devices");
	if (gpus && (!s->device[0].streams || !s->device[0].sharing))
		return LOOM__FAIL(err, LOOM_ENOTSUP, "%s has no streams", s->shape[0].name);
	return 0;
}

/* Makes the memory of all ranks known to each. */
static int connect_ranks(struct loom_comm *m, struct loom__exchange *x, struct loom_error *err)
{
	uint32_t ranks = m->view.ranks;
	struct identity *all = calloc(ranks, sizeof(*all)), mine;
	int rc = all ? make_own(m, &mine, err) : LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	rc = rc || ranks == 1 ? rc : loom__exchange(x, &mine, all, sizeof(mine), err);
	for (uint32_t r = 0; r < ranks && !rc; r++)
		if (r != m->view.rank)
			rc = reach(m, r, &mine, &all[r], err);
	rc = rc || ranks == 1 ? rc : start_watcher(m, all, err);
	free(all);
	return rc;
}

static void help(struct loom_ctx *c, const struct loom_task *t);

/* Lets workers help, if they access the program's memory and nothing else uses them. */
static void offer_help(struct loom_comm *m)
{
	struct loom_stack *s = m->stack;
	m->helps = !m->on_gpu && !s->selected[LOOM_WORKLOAD] && !s->host.exchange.ranks && s->layout.workers > 1 &&
		   !s->run.running;
	for (uint32_t d = 0; d < s->layout.devices; d++)
		m->helps &= (s->shape[d].flags & LOOM_SHAPE_PERSISTENT) != 0;
	if (m->helps && !s->code.helper)
		loom__code_help(s, help);
}

static void close_memory(struct loom_comm *m)
{
	const struct loom__device *d = &m->stack->device[0];
	for (uint32_t r = 0; r < m->view.ranks; r++)
		if (m->opened[r])
			d->sharing->mem_close(d->self, (uint64_t)(uintptr_t)m->view.memory[r]);
}

/* Waits until the other ranks use this rank's memory no more. Returns 1 if so. */
static int are_others_closed(const struct loom_comm *m)
{
	for (uint64_t until = loom__now_ns() + CLOSE_NS;;) {
		uint32_t open = 0;
		for (uint32_t r = 0; r < m->view.ranks; r++)
			open +=
			    r != m->view.rank && !has_closed(m, r) && !__atomic_load_n(&m->ended[r], __ATOMIC_RELAXED);
		if (!open || loom__now_ns() > until)
			return !open;
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	}
}

/* Ends the use of the stack. Called when the communicator or its stack is closed. */
static void leave(struct loom__guest *guest)
{
	struct loom_comm *m = (struct loom_comm *)guest;
	struct loom__guest **at = &m->stack->guests;
	while (*at != guest)
		at = &(*at)->next;
	*at = guest->next;
	if (!loom__stack_own(m->stack, NULL)) {
		close_memory(m);
		/* Release: pairs with the acquire in has_closed(). */
		__atomic_store_n(&m->head[m->view.rank]->closed, 1u, __ATOMIC_RELEASE);
		int leak = m->on_gpu && !are_others_closed(m);
		end_watcher(m);
		if (leak) /* kernels of a rank that has not closed may still load from this memory */
			m->memory.size = 0;
		drop(m);
	}
	m->stack = NULL;
}

static int open_comm(struct loom_stack *stack, const struct loom_ranks *ranks, struct loom__exchange *x,
		     struct loom_comm **comm, struct loom_error *err)
{
	int rc = loom__stack_room(err);
	rc = rc ? rc : check_stack(stack, err);
	if (rc)
		return rc;
	struct loom_comm *m = calloc(1, sizeof(*m));
	if (!m)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	m->stack = stack;
	m->guest.leave = leave;
	m->file = -1;
	m->on_gpu = stack->shape[0].kind == LOOM_ON_GPU;
	m->words = &m->own_words;
	m->view = (struct loom_comm_view){.kind = m->on_gpu ? LOOM_ON_GPU : LOOM_ON_CPU,
					  .rank = ranks->rank,
					  .ranks = ranks->ranks,
					  .tracks = m->on_gpu ? LOOM_COMM_TRACKS : CPU_TRACKS,
					  .slot = m->on_gpu ? GPU_SLOT : CPU_SLOT,
					  .share = m->on_gpu ? GPU_SHARE : CPU_SHARE,
					  .timeout_ns = stack->plan.run.timeout,
					  .words = &m->own_words};
	for (uint32_t r = 0; r <= LOOM_COMM_RANKS; r++)
		m->watch[r].fd = -1;
	rc = connect_ranks(m, x, err);
	/* Afterwards all ranks have mapped the memory, or none continues. */
	rc = rc || ranks->ranks == 1 ? rc : loom__exchange(x, "", NULL, 0, err);
	if (rc) {
		end_watcher(m);
		close_memory(m);
		drop(m);
		free(m);
		return rc;
	}
	offer_help(m);
	m->guest.next = stack->guests;
	stack->guests = &m->guest;
	*comm = m;
	return 0;
}

int loom_comm_open(struct loom_stack *stack, const struct loom_ranks *ranks, struct loom_comm **comm,
		   struct loom_error *err)
{
	struct loom__exchange x;
	struct loom_error own;
	err = err ? err : &own;
	if (!stack || !ranks || !comm)
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "a communicator needs a stack, the ranks, and a place for its address");
	if (loom__stack_own(stack, err))
		return LOOM_EBUSY;
	int rc = loom__exchange_create(&x, ranks, err);
	if (!rc && ranks->ranks > LOOM_COMM_RANKS)
		rc = LOOM__FAIL(err, LOOM_ENOTSUP, "%u ranks, but a communicator has at most %u", ranks->ranks,
				LOOM_COMM_RANKS);
	if (!rc) {
		loom__exchange_begin(&x);
		rc = loom__exchange_end(&x, open_comm(stack, ranks, &x, comm, err), err);
	}
	loom__exchange_destroy(&x);
	return rc;
}

void loom_comm_close(struct loom_comm *m)
{
	if (m && m->stack)
		leave(&m->guest);
	free(m);
}

/* ---- calls ------------------------------------------------------------------------------------------------------------ */

/* Describes a call, from its loom_comm_code(). */
static const char *describe(uint64_t code, char text[80])
{
	static const char *const whats[] = {"allreduce", "reduce_scatter", "allgather", "broadcast", "barrier"};
	static const char *const types[] = {"float", "bfloat16", "half", "int32"}, *const ops[] = {", sum", ", maximum"};
	uint32_t what = code & 7;
	if (what >= LOOM_COMM_BARRIER)
		return whats[LOOM_COMM_BARRIER];
	int n =
	    snprintf(text, 80, "%s of %llu x %s", whats[what], (unsigned long long)(code >> LOOM_COMM_CODE_COUNT), types[code >> 3 & 3]);
	if (what == LOOM_COMM_BROADCAST)
		n += snprintf(text + n, (size_t)(80 - n), " from rank %u", (unsigned)(code >> 6 & 15));
	snprintf(text + n, (size_t)(80 - n), "%s (pulls = %u)", what < LOOM_COMM_ALLGATHER ? ops[code >> 5 & 1] : "",
		 (unsigned)(code >> 10 & 3));
	return text;
}

static int failure(const struct loom_comm *m, struct loom_error *err)
{
	const struct loom_comm_words *words = m->words;
	uint64_t late = __atomic_load_n(&words->late, __ATOMIC_RELAXED),
		 unequal = __atomic_load_n(&words->unequal, __ATOMIC_RELAXED);
	uint32_t lost = lost_rank(m), rank = late ? (uint32_t)late - 1 : 0;
	char mine[80], other[80];
	if (unequal)
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "rank %llu calls %s, and rank %u calls %s: all ranks make the same calls",
				  (unsigned long long)unequal - 1, describe(words->other, other), m->view.rank,
				  describe(words->own, mine));
	if (lost == LOOM_COMM_STOPPED)
		return LOOM__FAIL(err, LOOM_EINTR, "the communicator was stopped");
	if (lost)
		return LOOM__FAIL(err, LOOM_EDIED, "rank %u (process %d) has ended without closing its communicator",
				  lost - 1, (int)m->pid[lost - 1]);
	if (late && has_closed(m, rank))
		return LOOM__FAIL(
		    err, LOOM_EINVAL,
		    "rank %u has closed its communicator, and rank %u waits for it in a collective: all ranks make "
		    "the same calls",
		    rank, m->view.rank);
	return LOOM__FAIL(err, LOOM_ETIMEDOUT,
			  "rank %u has waited %.3g s for rank %u in a collective: look for a rank that makes other "
			  "calls, or raise timeout in [run]",
			  m->view.rank, (double)m->view.timeout_ns / 1e9, rank);
}

static int check_open(const struct loom_comm *m, struct loom_error *err)
{
	if (!m || !m->stack)
		return LOOM__FAIL(err, LOOM_EINVAL,
				  m ? "the stack of this communicator was closed" : "no communicator");
	return loom__stack_own(m->stack, err);
}

int loom_comm_status(struct loom_comm *m, struct loom_error *err)
{
	int rc = check_open(m, err);
	return rc || !__atomic_load_n(&m->words->failed, __ATOMIC_RELAXED) ? rc : failure(m, err);
}

void loom_comm_stop(struct loom_comm *m)
{
	if (!check_open(m, NULL))
		__atomic_fetch_or(&m->words->lost, (uint64_t)LOOM_COMM_STOPPED, __ATOMIC_RELAXED);
}

void loom_comm_view(const struct loom_comm *m, struct loom_comm_view *view)
{
	*view = m->view;
}

static int check_call(const struct loom_comm *m, const struct loom_comm_call *call, const void *stream,
		      struct loom_error *err)
{
	uint64_t each = call->type <= LOOM_COMM_INT32 ? loom_comm_size(call->type) : 1, most = UINT64_MAX / 8 / LOOM_COMM_RANKS;
	if (call->what > LOOM_COMM_BARRIER || call->type > LOOM_COMM_INT32 || call->op > LOOM_COMM_MAX)
		return LOOM__FAIL(err, LOOM_EINVAL, "a collective of kind %u, type %u and operation %u does not exist", call->what,
				  call->type, call->op);
	if (call->chosen && call->pulls > 3)
		return LOOM__FAIL(err, LOOM_EINVAL, "pulls = %u does not exist: choose 0 to 3, or set chosen = 0", call->pulls);
	if (call->root >= m->view.ranks)
		return LOOM__FAIL(err, LOOM_EINVAL, "there is no rank %u that could broadcast", call->root);
	if (call->count > most)
		return LOOM__FAIL(err, LOOM_EINVAL, "%llu elements are too many", (unsigned long long)call->count);
	int reads = call->what != LOOM_COMM_BROADCAST || call->root == m->view.rank;
	if (call->what != LOOM_COMM_BARRIER && call->count &&
	    (!call->out || (reads && !call->in) || (uintptr_t)call->out % each || (reads && (uintptr_t)call->in % each)))
		return LOOM__FAIL(err, LOOM_EINVAL, "vectors at %p and %p: NULL, or not aligned to elements of %u bytes", call->in,
				  call->out, (unsigned)each);
	if (stream && !m->on_gpu)
		return LOOM__FAIL(err, LOOM_EINVAL, "a stack of CPUs has no streams: pass NULL");
	return 0;
}

enum { SUM = 1 << LOOM_COMM_ALLREDUCE, BROADCAST = 1 << LOOM_COMM_BROADCAST, ANY = (2 << LOOM_COMM_BARRIER) - 1 };
/* How GPUs execute a call: by the first row that fits. `sent` is the limit on the bytes of N - 1 vectors, for N ranks.
 *
 * The link of an H200 carries 450 GB/s each way. About 0.85 of it can be reached, so a megabyte takes 2.6 us. A rank sends
 * 2 (N - 1) vectors as marked words, N - 1 by stores of whole vectors or by loads, and 2 (N - 1) / N by stores of parts. A flag
 * needs a fence, which waits for the stores before it. By estimate, a first crossing by flags takes 2.5 us more than one by marked words,
 * and a second crossing 3.5 us. The floor of 64 MiB is 175 us for two ranks and 263 us for four. */
static const struct gpu_way {
	uint64_t sent;
	uint32_t ranks; /* 0: any number */
	uint32_t calls; /* bits: kinds of calls */
	uint32_t pulls;
} gpu_ways[] = {
	/* Measured on two H200s: us by words, loads and parts. */
	{256 << 10, 2, SUM, 0},	 /* 256 KiB: 7.4, 7.4, 11.7 */
	{2 << 20, 2, SUM, 1},	 /* 512 KiB: 8.9, 8.8, 13.0; 2 MiB: 23.4, 15.1, 17.5 */
	{UINT64_MAX, 2, SUM, 3}, /* 4 MiB: 41.0, 25.5, 23.4; 32 MiB: 224, 142, 130 */
	{1 << 20, 0, SUM, 0},	 /* on four, by words, loads, stores and parts: 256 KiB: 11.4, 16.2, 11.8, 13.7 */
	{2 << 20, 0, SUM, 2},	 /* 512 KiB: 16.5, 17.2, 15.6, 17.0 */
	{96 << 20, 0, SUM, 1},	 /* 1 MiB: 30.3, 18.2, 19.6, 19.3; 8 MiB: 165, 55.3, 107, 63.6; 32 MiB: 616, 211, 377, 211 */
	{UINT64_MAX, 0, SUM, 3}, /* 64 MiB: 1210, 416, 735, 400 */
	/* A broadcast by words would need flags, too, since ranks that receive nothing must know that their words were read. */
	{256 << 10, 0, ANY & ~BROADCAST, 0}, /* allgather of 128 KiB: 5.2, 6.0; of 2 MiB: 18.5, 12.4 */
	{UINT64_MAX, 0, ANY, 1},
};

static int call_gpu(struct loom_comm *m, struct loom_comm_call *call, uint64_t bytes, void *stream, struct loom_error *err)
{
	const struct loom__device *d = &m->stack->device[0];
	const struct loom_comm_view *v = &m->view;
	const struct gpu_way *way = gpu_ways;
	uint64_t blocks = (bytes + 8 * GPU_WORDS - 1) / (8 * GPU_WORDS), sent = bytes * (v->ranks > 1 ? v->ranks - 1 : 1);
	while (sent > way->sent || (way->ranks && way->ranks != v->ranks) || !(way->calls >> call->what & 1))
		way++;
	call->pulls = call->chosen ? call->pulls : way->pulls;
	blocks = blocks < 1 ? 1 : blocks > v->tracks ? v->tracks : blocks;
	return d->streams->collective(d->self, v, call, (uint32_t)blocks, stream, err);
}

/* ---- on CPUs: the calling thread, and the workers for large pieces --------------------------------------------------- */

struct job {
	const struct loom_comm_view *view;
	const struct loom_comm_call *call;
	struct loom_comm_piece piece;
	uint64_t round, buffered; /* as in struct loom_comm_track */
	uint32_t phase; /* 0: stage; 1, 2: fetch */
	uint32_t tasks;
	uint32_t done[TASKS]; /* [task]; 1: the task has ended */
};

static void do_part(struct job *j, uint32_t part)
{
	if (j->phase)
		loom_comm_fetch(j->view, j->call, j->piece, 0, j->buffered, j->phase, part, j->tasks);
	else
		loom_comm_stage(j->view, j->call, j->piece, 0, j->buffered, part, j->tasks);
	/* Release: pairs with the acquire in do_phase(). */
	__atomic_store_n(&j->done[part], 1u, __ATOMIC_RELEASE);
}

static void help(struct loom_ctx *c, const struct loom_task *t)
{
	if (c->lane == 0)
		do_part((struct job *)(uintptr_t)t->param[0], (uint32_t)t->param[1]);
}

/* Executes a phase. If the run of the workers fails or is stopped, the calling thread does the rest. */
static void do_phase(struct loom_comm *m, struct job *j, uint32_t phase)
{
	struct loom_stack *s = m->stack;
	struct loom_task task[TASKS];
	uint32_t n = s->layout.workers < TASKS ? s->layout.workers : TASKS;
	int helps = m->helps && j->piece.bytes >= HELPED && !s->run.running && !s->initial.count && !s->launch.stuck;
	j->phase = phase;
	j->tasks = helps ? n : 1;
	memset(j->done, 0, sizeof(j->done));
	for (uint32_t i = 0; helps && i < n; i++)
		task[i] = (struct loom_task){.tag = s->code.tasks, .param = {(uint64_t)(uintptr_t)j, i}};
	if (helps && !loom__submit(s, task, n, NULL)) {
		(void)loom_stack_run(s, NULL, NULL);
		loom__initial_begun(s); /* if the run has not begun */
	}
	for (uint32_t i = 0; i < j->tasks; i++)
		if (!__atomic_load_n(&j->done[i], __ATOMIC_ACQUIRE))
			do_part(j, i);
}

/* Works like loom_comm_some(), but lets workers help. */
static int call_helped(struct loom_comm *m, const struct loom_comm_call *call, uint64_t bytes)
{
	const struct loom_comm_view *v = &m->view;
	struct loom_comm_track *own = loom_comm_track(v, 0);
	struct loom_comm_wait w = {.code = loom_comm_code(call)};
	const struct loom_comm_team all = {.count = 1, .lanes = 1};
	uint64_t most = loom_comm_most(v, call);
	for (uint64_t at = 0; at < bytes && !w.failed; at += most) {
		struct job j = {.view = v,
				.call = call,
				.piece = {at, bytes - at < most ? bytes - at : most},
				.round = ++own->round,
				.buffered = ++own->buffered};
		w = (struct loom_comm_wait){.code = w.code, .round = j.round};
		do_phase(m, &j, 0);
		if (loom_comm_meet(v, &w, &all, 0, 2 * j.round + 1))
			break;
		do_phase(m, &j, 1);
		if (loom_comm_is_parted(v, call) && !loom_comm_meet(v, &w, &all, 0, 2 * j.round + 2))
			do_phase(m, &j, 2);
	}
	own->layout = 1;
	own->failed = w.failed;
	if (w.failed)
		m->words->failed = 1;
	return (int)(int64_t)w.failed;
}

static int call_cpu(struct loom_comm *m, struct loom_comm_call *call, uint64_t bytes, struct loom_error *err)
{
	int sums = call->what == LOOM_COMM_ALLREDUCE, whole = sums && m->view.ranks > 2 && bytes <= CPU_WHOLE;
	if (!call->chosen)
		call->pulls = bytes <= (sums ? CPU_MARKED_SUM : CPU_MARKED) ? 0 : whole ? 2 : 1;
	int rc = m->helps && call->pulls == 1 && bytes && m->view.ranks > 1 ? call_helped(m, call, bytes) :
								loom_comm_block(&m->view, call, 0, 0, 1);
	return rc ? failure(m, err) : 0;
}

int loom_comm_call(struct loom_comm *m, const struct loom_comm_call *given, void *stream, struct loom_error *err)
{
	struct loom_comm_call call = given ? *given : (struct loom_comm_call){.what = ~0u};
	int rc = check_open(m, err);
	rc = rc ? rc : check_call(m, &call, stream, err);
	if (rc)
		return rc;
	if (lost_rank(m) || __atomic_load_n(&m->words->failed, __ATOMIC_RELAXED))
		return failure(m, err);
	/* To end a collective, a rank must receive from all others. So a rank that has closed expects no call. */
	for (uint32_t r = 0; r < m->view.ranks; r++)
		if (r != m->view.rank && has_closed(m, r))
			return LOOM__FAIL(err, LOOM_EINVAL, "rank %u has closed its communicator", r);
	uint64_t bytes = call.what == LOOM_COMM_BARRIER ? 0 : call.count * loom_comm_size(call.type);
	return m->on_gpu ? call_gpu(m, &call, bytes, stream, err) : call_cpu(m, &call, bytes, err);
}

int loom_comm_allreduce(struct loom_comm *m, const void *in, void *out, uint64_t count, enum loom_comm_type type,
			enum loom_comm_op op, void *stream, struct loom_error *err)
{
	const struct loom_comm_call call = {
		.what = LOOM_COMM_ALLREDUCE, .type = type, .op = op, .in = in, .out = out, .count = count};
	return loom_comm_call(m, &call, stream, err);
}

int loom_comm_reduce_scatter(struct loom_comm *m, const void *in, void *out, uint64_t count, enum loom_comm_type type,
			     enum loom_comm_op op, void *stream, struct loom_error *err)
{
	const struct loom_comm_call call = {
		.what = LOOM_COMM_REDUCE_SCATTER, .type = type, .op = op, .in = in, .out = out, .count = count};
	return loom_comm_call(m, &call, stream, err);
}

int loom_comm_allgather(struct loom_comm *m, const void *in, void *out, uint64_t count, enum loom_comm_type type,
			void *stream, struct loom_error *err)
{
	const struct loom_comm_call call = {
		.what = LOOM_COMM_ALLGATHER, .type = type, .in = in, .out = out, .count = count};
	return loom_comm_call(m, &call, stream, err);
}

int loom_comm_broadcast(struct loom_comm *m, const void *in, void *out, uint64_t count, enum loom_comm_type type,
			uint32_t root, void *stream, struct loom_error *err)
{
	const struct loom_comm_call call = {
		.what = LOOM_COMM_BROADCAST, .type = type, .root = root, .in = in, .out = out, .count = count};
	return loom_comm_call(m, &call, stream, err);
}

int loom_comm_barrier(struct loom_comm *m, void *stream, struct loom_error *err)
{
	const struct loom_comm_call call = {.what = LOOM_COMM_BARRIER};
	return loom_comm_call(m, &call, stream, err);
}
