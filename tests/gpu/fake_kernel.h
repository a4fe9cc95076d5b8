/* SPDX-License-Identifier: Apache-2.0 */
/* The drivers without a GPU (tests/cuda/fake_driver.c, tests/hip/fake_runtime.c) share this code. "Device memory" is
 * the heap. A module is a shared object, which fake_rtc.h has compiled from the composed program, and a launched kernel runs
 * on threads of the host (fake_blocks.h). So the drivers test a device with the real core, the real kernel and real
 * policies.
 *
 * FAKE_GPU          an error or a kind of machine: none, init, no-gpu, two-gpus, old-gpu, atomics (native with the
 *                   CPU), hang (a worker ignores the stop flag), die (the kernel fails during a sample), small
 *                   (fewer blocks are resident than promised), no-words (streams neither set nor wait for words),
 *                   mute (streams do not set words), lossy (if two devices add to a word, one addition is lost),
 *                   swapless (if two devices swap a word, one swap is lost), ranks (two GPUs, whose memory other
 *                   processes open by handles), no-peer (two GPUs that cannot access each other's memory), hopper (compute capability 9.0, to
 *                   compile programs; tasks on tiles would have too little scratchpad memory)
 * FAKE_GPU_FAIL     NAME:N: the N-th call of the driver's function NAME fails
 * FAKE_GPU_MODEL    the name of the GPU
 * FAKE_GPU_CALLS    a file to which a line "NAME COUNT" is appended at the end for each called function */
#ifndef LOOM_TEST_FAKE_KERNEL_H
#define LOOM_TEST_FAKE_KERNEL_H

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gpuloom/dev/dev.h>
#include <gpuloom/dev/probe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device_common/compose/gpu.dev.h"

#define API __attribute__((visibility("default")))
#define FAKE_FN static __attribute__((unused))

/* ---- calls ---- */

static struct {
	const char *name;
	unsigned count;
} fake_calls[128];
static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

static void fake_report(void)
{
	FILE *file = fopen(getenv("FAKE_GPU_CALLS"), "a");
	for (size_t i = 0; file && fake_calls[i].name; i++)
		fprintf(file, "%s %u\n", fake_calls[i].name, fake_calls[i].count);
	if (file)
		fclose(file);
}

/* Counts a call. Returns 1 if the call must fail. */
static int fake_fails(const char *name)
{
	const char *given = getenv("FAKE_GPU_FAIL");
	size_t i = 0, n = strlen(name);
	pthread_mutex_lock(&fake_lock);
	if (!fake_calls[0].name && getenv("FAKE_GPU_CALLS"))
		atexit(fake_report);
	while (fake_calls[i].name && strcmp(fake_calls[i].name, name))
		i++;
	fake_calls[i].name = name;
	unsigned count = ++fake_calls[i].count;
	pthread_mutex_unlock(&fake_lock);
	return given && !strncmp(given, name, n) && given[n] == ':' && (unsigned)atoi(given + n + 1) == count;
}

/* Returns how often a function was called, for tests/test_embed_gpu.c. */
API unsigned fake_gpu_count(const char *name);
API unsigned fake_gpu_count(const char *name)
{
	unsigned count = 0;
	pthread_mutex_lock(&fake_lock);
	for (size_t i = 0; fake_calls[i].name; i++)
		if (!strcmp(fake_calls[i].name, name))
			count = fake_calls[i].count;
	pthread_mutex_unlock(&fake_lock);
	return count;
}

/* FAKE(name, (parameters), body) defines a function of the driver that counts its call. Without a return in the body
 * the function succeeds. Parameters may be unused. */
#define FAKE(name, parameters, ...)                                                                \
	API FAKE_RESULT name parameters                                                            \
	{                                                                                          \
		if (fake_fails(#name)) /* headers rename some functions to name_v2 */              \
			return FAKE_ERROR;                                                         \
		__VA_ARGS__                                                                        \
		return FAKE_OK;                                                                    \
	}
#pragma GCC diagnostic ignored "-Wunused-parameter"

FAKE_FN int wrong(const char *what)
{
	const char *set = getenv("FAKE_GPU");
	return set && !strcmp(set, what);
}

FAKE_FN int fake_has_ranks(void);
#include "fake_blocks.h"

/* ---- modules ---- */

struct module {
	void *so;
	const struct block_program *program; /* NULL: machine code of the vendor, which cannot be launched */
	struct loom_gpu_launch unused;	     /* the launch record of such code */
};

/* Loads a shared object, or machine code of the vendor. Returns NULL if it is neither. */
FAKE_FN struct module *fake_load(const char *image)
{
	char path[] = "/tmp/fake-gpu-XXXXXX";
	const Elf64_Ehdr *elf = (const void *)image;
	if (memcmp(image, ELFMAG, SELFMAG) != 0)
		return NULL;
	struct module *m = calloc(1, sizeof(*m));
	if (elf->e_type != ET_DYN || elf->e_machine == EM_AMDGPU)
		return m;
	/* The sections' headers are the last part of the file. Each load has its own file, and so its own variables. */
	size_t bytes = elf->e_shoff + (size_t)elf->e_shnum * elf->e_shentsize;
	int fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0 || write(fd, image, bytes) != (ssize_t)bytes)
		exit(99);
	close(fd);
	m->so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	unlink(path);
	m->program = m->so ? dlsym(m->so, BLOCK_PROGRAM) : NULL;
	if (!m->program) {
		fprintf(stderr, "fake driver: %s\n", dlerror());
		exit(99);
	}
	return m;
}

FAKE_FN void fake_unload(struct module *m)
{
	if (m->so)
		dlclose(m->so);
	free(m);
}

FAKE_FN void *fake_record(struct module *m, size_t *bytes)
{
	*bytes = m->program ? m->program->launch_bytes : sizeof(m->unused);
	return m->program ? m->program->launch : &m->unused;
}

/* Returns 1 if the module has a kernel of that name. */
FAKE_FN int fake_has_kernel(const struct module *m, const char *name)
{
	return !m->program || !strcmp(m->program->kernel, name);
}

/* ---- streams ---- */

#define CALLS 4096
#define PARAMETER_MOST 640

/* A call in a stream launches a kernel, copies, sets a word, waits for a word, or records an event. Calls are executed in
 * order. */
struct call {
	const struct module *kernel;
	uint32_t blocks, threads;
	char parameter[PARAMETER_MOST] __attribute__((aligned(16)));
	uint64_t *word, value;
	int awaits;
	struct fake_event *event; /* the event that the call records, or NULL */
	void *to; /* where the call copies `bytes` bytes, or NULL */
	const void *from;
	size_t bytes;
};

struct fake_event {
	pthread_mutex_t lock;
	pthread_cond_t happens;
	uint64_t asked, happened; /* numbers of records that were requested and that were executed; protected by the lock */
};

struct stream {
	pthread_mutex_t lock;	/* protects `called`, `done` and `quit` */
	pthread_cond_t changes; /* one of them has changed */
	uint32_t failed;	/* 1 after an error of the device; atomic */
	uint32_t running, quit; /* 1 if `thread` was started; 1 if it must end */
	uint64_t called, done;	/* numbers of calls that were appended and that have ended */
	pthread_t thread;
	struct graph *kept; /* the graph that records the calls during a capture, or NULL */
	struct call call[CALLS];
};

struct graph {
	uint32_t calls;
	struct call call[CALLS];
};

/* Returns the stream of a handle. A NULL handle is the default stream. */
FAKE_FN struct stream *fake_stream(void *stream)
{
	static struct stream by_default;
	return stream ? stream : &by_default;
}

static int dropped(struct stream *s)
{
	return __atomic_load_n(&s->failed, __ATOMIC_ACQUIRE) || __atomic_load_n(&s->quit, __ATOMIC_ACQUIRE);
}

FAKE_FN void fake_copy(void *to, const void *from, size_t bytes);

static void execute(struct stream *s, const struct call *call)
{
	if (call->kernel && !dropped(s))
		blocks_run(call->kernel->program, call->blocks, call->threads, call->parameter, &s->failed);
	if (call->to && !dropped(s))
		fake_copy(call->to, call->from, call->bytes);
	while (call->awaits && !dropped(s) && (int64_t)(__atomic_load_n(call->word, __ATOMIC_ACQUIRE) - call->value) < 0)
		usleep(20);
	if (call->word && !call->awaits && !dropped(s) && !wrong("mute"))
		__atomic_store_n(call->word, call->value, __ATOMIC_RELEASE);
	if (!call->event)
		return;
	pthread_mutex_lock(&call->event->lock);
	call->event->happened++;
	pthread_cond_broadcast(&call->event->happens);
	pthread_mutex_unlock(&call->event->lock);
}

static void *stream_main(void *arg)
{
	struct stream *s = arg;
	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (s->called == s->done && !s->quit)
			pthread_cond_wait(&s->changes, &s->lock);
		if (s->quit)
			break;
		const struct call *call = &s->call[s->done % CALLS];
		pthread_mutex_unlock(&s->lock);
		execute(s, call);
		pthread_mutex_lock(&s->lock);
		__atomic_store_n(&s->done, s->done + 1, __ATOMIC_RELEASE);
		pthread_cond_broadcast(&s->changes);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Waits until no more than `most` calls are left. */
static void await_calls(struct stream *s, uint64_t most)
{
	while (s->called - s->done > most)
		pthread_cond_wait(&s->changes, &s->lock);
}

/* Appends a call to the stream, or to the graph during a capture. Waits while the stream is full, as a real driver
 * does. */
FAKE_FN void fake_call(struct stream *s, const struct call *call)
{
	if (s->kept) {
		s->kept->call[s->kept->calls++] = *call;
		return;
	}
	pthread_mutex_lock(&s->lock);
	await_calls(s, CALLS - 1);
	s->call[s->called % CALLS] = *call;
	__atomic_store_n(&s->called, s->called + 1, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&s->changes);
	if (!s->running && pthread_create(&s->thread, NULL, stream_main, s) != 0)
		exit(99);
	s->running = 1;
	pthread_mutex_unlock(&s->lock);
}

FAKE_FN void fake_await(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	await_calls(s, 0);
	pthread_mutex_unlock(&s->lock);
}

FAKE_FN void fake_destroy(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	__atomic_store_n(&s->quit, 1, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&s->changes);
	pthread_mutex_unlock(&s->lock);
	if (s->running)
		pthread_join(s->thread, NULL);
	free(s);
}

/* Returns 1 if the kernel was launched. */
FAKE_FN int fake_launch(const struct module *m, struct stream *s, uint32_t blocks, uint32_t threads, const void *parameter)
{
	struct call call = {.kernel = m, .blocks = blocks, .threads = threads / BLOCK_FEWER};
	if (!m->program || m->program->parameter_bytes > sizeof(call.parameter))
		return 0;
	memcpy(call.parameter, parameter, m->program->parameter_bytes);
	fake_call(s, &call);
	return 1;
}

/* Ends the kernels after an error of the device, so that they do not access memory that the host then frees. */
FAKE_FN void fake_kill(struct stream *s)
{
	__atomic_store_n(&s->failed, 1, __ATOMIC_RELEASE);
	fake_await(s);
}

/* Returns -1 after an error of the device, 1 while calls are left, and else 0. */
FAKE_FN int fake_state(struct stream *s)
{
	if (__atomic_load_n(&s->failed, __ATOMIC_ACQUIRE))
		return -1;
	return __atomic_load_n(&s->called, __ATOMIC_ACQUIRE) != __atomic_load_n(&s->done, __ATOMIC_ACQUIRE);
}

/* ---- memory ---- */

/* The memory is not zeroed, as on a GPU. */
FAKE_FN void *fake_memory(size_t align, size_t bytes)
{
	void *at = aligned_alloc(align, (bytes + align - 1) & ~(align - 1));
	return at ? memset(at, 0xa5, bytes) : NULL;
}

/* Copies aligned data in words of 4 bytes, so that workers that poll such a word never see half of it. */
FAKE_FN void fake_copy(void *to, const void *from, size_t bytes)
{
	size_t i = 0;
	if (((uintptr_t)to | (uintptr_t)from) % 4 == 0)
		for (; i + 4 <= bytes; i += 4)
			__atomic_store_n((uint32_t *)to + i / 4,
					 __atomic_load_n((const uint32_t *)from + i / 4, __ATOMIC_ACQUIRE),
					 __ATOMIC_RELAXED);
	memcpy((char *)to + i, (const char *)from + i, bytes - i);
}

static struct {
	char *at;
	size_t bytes;
	int fd; /* the descriptor of the file that other processes map, or 0 */
} fake_owned[64];

/* Protects the tables of memory, which the stacks of several threads use. FAKE_LOCKED() holds the lock until the end of
 * the function. */
static pthread_mutex_t fake_tables = PTHREAD_MUTEX_INITIALIZER;

static void fake_unlock(pthread_mutex_t **held)
{
	pthread_mutex_unlock(*held);
}
#define FAKE_LOCKED()                                                                                                  \
	pthread_mutex_lock(&fake_tables);                                                                              \
	__attribute__((cleanup(fake_unlock), unused)) pthread_mutex_t *held = &fake_tables

FAKE_FN int fake_has_ranks(void)
{
	return wrong("ranks") || wrong("no-peer") || wrong("mps");
}

/* Allocates memory in a file, so that other processes can map it. *fd is the file's descriptor. */
FAKE_FN char *fake_file(size_t bytes, int *fd)
{
	*fd = memfd_create("fake GPU", MFD_CLOEXEC);
	if (*fd < 0 || ftruncate(*fd, (off_t)bytes) != 0)
		return NULL;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	return at == MAP_FAILED ? NULL : memset(at, 0xa5, bytes);
}

FAKE_FN void *fake_device_memory(size_t bytes)
{
	FAKE_LOCKED();
	for (int i = 0; i < 64; i++)
		if (!fake_owned[i].at) {
			fake_owned[i].at =
			    fake_has_ranks() ? fake_file(bytes, &fake_owned[i].fd) : fake_memory(256, bytes);
			fake_owned[i].bytes = bytes;
			return fake_owned[i].at;
		}
	return NULL;
}

#define FAKE_CACHE 65536 /* size of the L2 cache in bytes */

/* Counts memory of twice the size of the cache that was overwritten after its allocation: the option `flush`. */
static void fake_flushed(const char *at, size_t bytes)
{
	size_t same = 0;
	while (same < bytes && at[same] == (char)0xa5)
		same++;
	if (bytes == 2 * FAKE_CACHE && !same && !memcmp(at, at + 8, bytes - 8))
		(void)fake_fails("Flushed"); /* counts it */
}

FAKE_FN void fake_device_free(void *at)
{
	await_kernels();
	FAKE_LOCKED();
	for (int i = 0; i < 64; i++)
		if (fake_owned[i].at == at && at) {
			fake_flushed(at, fake_owned[i].bytes);
			fake_owned[i].at = NULL;
			if (!fake_has_ranks()) {
				free(at);
				return;
			}
			munmap(at, fake_owned[i].bytes);
			close(fake_owned[i].fd);
			return;
		}
}

/* A handle exports memory of the device to another process. */
struct fake_handle {
	pid_t owner;
	int fd;
	size_t bytes;
};

FAKE_FN int fake_lend(const void *at, struct fake_handle *h)
{
	FAKE_LOCKED();
	for (int i = 0; i < 64; i++)
		if (fake_owned[i].at == at && fake_has_ranks()) {
			*h = (struct fake_handle){
			    .owner = getpid(), .fd = fake_owned[i].fd, .bytes = fake_owned[i].bytes};
			return 1;
		}
	return 0;
}

static struct {
	void *at;
	size_t bytes;
} fake_borrowed[64];

FAKE_FN void *fake_borrow(const struct fake_handle *h)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)h->owner, h->fd);
	int fd = h->owner == getpid() ? -1 : open(path, O_RDWR | O_CLOEXEC); /* a process cannot open its own handle */
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	FAKE_LOCKED();
	for (int i = 0; i < 64 && at != MAP_FAILED; i++)
		if (!fake_borrowed[i].at) {
			fake_borrowed[i].at = at;
			fake_borrowed[i].bytes = h->bytes;
			return at;
		}
	return NULL;
}

FAKE_FN int fake_give_back(void *at)
{
	FAKE_LOCKED();
	for (int i = 0; i < 64; i++)
		if (fake_borrowed[i].at == at && at) {
			munmap(at, fake_borrowed[i].bytes);
			fake_borrowed[i].at = NULL;
			return 1;
		}
	return 0;
}

FAKE_FN int fake_is_ours(const void *at)
{
	FAKE_LOCKED();
	for (int i = 0; i < 64; i++)
		if (fake_owned[i].at && (size_t)((const char *)at - fake_owned[i].at) < fake_owned[i].bytes)
			return 1;
	return 0;
}

/* Returns the start of the allocation that contains `at`, and stores its size. */
FAKE_FN char *fake_range(const void *at, size_t *bytes)
{
	FAKE_LOCKED();
	for (int i = 0; i < 64; i++)
		if (fake_owned[i].at && (size_t)((const char *)at - fake_owned[i].at) < fake_owned[i].bytes) {
			if (bytes)
				*bytes = fake_owned[i].bytes;
			return fake_owned[i].at;
		}
	return NULL;
}

/* The number and the value of a device attribute. For an attribute without a row, fake_attribute() returns 0. */
struct fake_attribute {
	int which, value;
};

FAKE_FN int fake_attribute(const struct fake_attribute *rows, size_t count, int which)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].which == which)
			return rows[i].value;
	return 0;
}

static void *registered[64];

/* Returns 0 if the call registered the memory, 1 if the memory was registered before, and -1 if the table is full. */
FAKE_FN int fake_register(void *at)
{
	FAKE_LOCKED();
	for (int i = 0; i < 64; i++)
		if (registered[i] == at)
			return 1;
	for (int i = 0; i < 64; i++)
		if (!registered[i]) {
			registered[i] = at;
			return 0;
		}
	return -1;
}

FAKE_FN int fake_unregister(void *at)
{
	FAKE_LOCKED();
	for (int i = 0; i < 64; i++)
		if (registered[i] == at) {
			registered[i] = NULL;
			return 0;
		}
	return -1;
}

#endif
