/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the devices for GPUs, which run persistent workers. struct gpu_driver is a table of a vendor's
 * driver calls. With it, these files implement the core's device ops. Each device plug-in compiles the files into
 * itself. */
#ifndef GPULOOM_GPU_H
#define GPULOOM_GPU_H

#include <gpuloom/device.h>

#include "../compose/compose.h"
#include "../compose/gpu.dev.h"
#include "cache.h"
#include "rtc.h"

enum { WORKER_BLOCK, WORKER_WARP };
enum { COMPILE_CACHED, COMPILE_ALWAYS };
enum { KERNELS_PERSISTENT, KERNELS_LAUNCHED, KERNELS_GRAPH };
enum { MEMORY_OWN, MEMORY_NEXT, MEMORY_HOST };

/* Options of all devices for GPUs, including options of a single plug-in. */
struct gpu_options {
	int64_t gpu;
	uint32_t workers, lanes, worker, max_registers, nesting, compile, kernels, memory;
	uint64_t idle;
	uint8_t resident, quick, flush;
	const char *arch, *cache;
	uint32_t warps; /* number of warps or waves in a block, if each of them is a worker */
	const char *compiler;
};
extern const char *const gpu_worker_choices[], *const gpu_compile_choices[], *const gpu_kernels_choices[];
extern const char *const gpu_memory_choices[];
#define GPU_OPTIONS                                                                                                    \
	LOOM_OPT(struct gpu_options, gpu, LOOM_OPT_I64, "auto",                                                        \
		 "Number of the GPU in the driver. auto: the number of the device, so that :1 is GPU 1. A further " \
		 "rank takes the next GPUs, and ranks share GPUs if there are too few.",                    \
		 .min = -1, .max = 1023, .section = "device.gpu", .flags = LOOM_OPT_AUTO),                             \
	    LOOM_OPT(struct gpu_options, workers, LOOM_OPT_U32, "auto",                                                \
		     "Workers of the device. auto: as many as the GPU keeps resident at once. For a larger number " \
		     "the compiler spills registers until they fit.",                                                  \
		     .section = "device.gpu", .flags = LOOM_OPT_AUTO),                                                 \
	    LOOM_OPT(struct gpu_options, lanes, LOOM_OPT_U32, "auto",                                                  \
		     "Threads per worker, a multiple of the 32 of a warp (AMD: of the 32 or 64 of a wavefront). auto: one " \
		     "warp, which needs no barrier of the block, so the scheduler takes the least time. More lanes suit " \
		     "tasks that use them.",                                                                           \
		     .max = 1024, .section = "device.gpu", .flags = LOOM_OPT_AUTO),                                    \
	    LOOM_OPT(struct gpu_options, worker, LOOM_OPT_ENUM, "block",                                               \
		     "block: a worker is a block of threads. warp: a worker is a warp (AMD: a wavefront), and several "  \
		     "workers share a block, so that the limit of resident blocks matters less.",                      \
		     .choices = gpu_worker_choices, .section = "device.gpu"),                                          \
	    LOOM_OPT(struct gpu_options, warps, LOOM_OPT_U32, "4", "worker = warp: workers per block.", .min = 1,      \
		     .max = 32, .section = "device.gpu"),                                                              \
	    LOOM_OPT(struct gpu_options, max_registers, LOOM_OPT_U32, "auto",                                          \
		     "workers = auto: registers per thread that the program may use. A small limit makes more " \
		     "workers resident, but the compiler spills registers (--log info shows both). auto: 128, or as many as " \
		     "the workload asks for.",                                                                         \
		     .max = 255, .section = "device.gpu", .flags = LOOM_OPT_AUTO),                                                             \
	    LOOM_OPT(struct gpu_options, nesting, LOOM_OPT_U32, "0",                                                   \
		     "How deep tasks may run inside each other when queues are full; each level takes stack of every " \
		     "thread. 0: they go to the overflow list in memory.",                                       \
		     .max = 64, .section = "device.gpu"),                                                              \
	    LOOM_OPT(struct gpu_options, kernels, LOOM_OPT_ENUM, "persistent",                                         \
		     "persistent: one kernel runs all samples. launched: each step of the workload is a kernel, "      \
		     "with trigger gds or hdn. graph (CUDA): all steps are one graph, with trigger gds.",              \
		     .choices = gpu_kernels_choices, .section = "device.gpu"),                                         \
	    LOOM_OPT(struct gpu_options, memory, LOOM_OPT_ENUM, "own",                                                 \
		     "Memory that the device's workers use as its own, for experiments of the MGWS thesis (6.7, 6.8). own: " \
		     "that of the GPU. next (CUDA): that of the GPU with the next number, or of GPU 0 after the last one, " \
		     "which runs no workers. host: host memory.",                                                       \
		     .choices = gpu_memory_choices, .section = "device.gpu"),                                          \
	    LOOM_OPT(struct gpu_options, resident, LOOM_OPT_BOOL, "no",                                                \
		     "In a program that embeds gpuloom. no: each run launches its workers. yes: workers stay on the "  \
		     "GPU after a run and wait for the next one, which then begins sooner; other kernels have less "   \
		     "of the GPU meanwhile, see workers.",                                                             \
		     .section = "device.gpu"),                                                                         \
	    LOOM_OPT(struct gpu_options, idle, LOOM_OPT_TIME, "10ms",                                                  \
		     "resident = yes: workers leave the GPU after that time without a run.", .min = 1e4, .max = 1e12,  \
		     .section = "device.gpu"),                                                                         \
	    LOOM_OPT(struct gpu_options, quick, LOOM_OPT_BOOL, "no",                                                   \
		     "In a program that embeds gpuloom: yes makes runs with few tasks shorter (docs/embedding.md). Runs "  \
		     "with many tasks then take up to a seventh longer, and programs take twice as long to compile.",      \
		     .section = "device.gpu"),                                                                         \
	    LOOM_OPT(struct gpu_options, flush, LOOM_OPT_BOOL, "no",                                                   \
		     "yes: between two samples the L2 cache is filled with other data, so that each sample begins with a cold "  \
		     "cache. Not in programs that embed gpuloom, whose runs have no time without measurement.",                \
		     .section = "device.gpu"),                                                                         \
	    LOOM_OPT(struct gpu_options, cache, LOOM_OPT_PATH, "",                                                     \
		     "Folder for compiled programs. Empty: $XDG_CACHE_HOME/gpuloom or ~/.cache/gpuloom.",              \
		     .flags = LOOM_OPT_TRUST, .section = "device.gpu"),                                                \
	    LOOM_OPT(struct gpu_options, compile, LOOM_OPT_ENUM, "cached",                                             \
		     "cached: takes the program from the cache if it was compiled before. always: compiles it " \
		     "again.",    \
		     .choices = gpu_compile_choices, .section = "device.gpu")
/* The path of the vendor's run-time compiler, which is loaded. */
#define GPU_COMPILER(name_, help_)                                                                                     \
	{                                                                                                              \
		.name = name_, .type = LOOM_OPT_PATH, .dflt = "", .help = help_, .flags = LOOM_OPT_TRUST,               \
		.offset = offsetof(struct gpu_options, compiler),                                                      \
		.size = sizeof(((struct gpu_options *)0)->compiler)                                                    \
	}

/* Limits of a GPU model. */
struct gpu_limits {
	int multiprocessors;
	int blocks, threads, registers, shared; /* limits of a multiprocessor */
	int shared_per_block, shared_reserved;
	int threads_per_block;
	int cache;        /* size of the L2 cache in bytes; 0: not reported */
	int wave;         /* number of threads of a warp or wavefront */
	int words;        /* 1: streams can set and await words of 64 bits: set_word(), await_word() */
	int parts;        /* number of partitions of a multiprocessor; all registers of a wave are in one partition */
	int products;     /* 1: the flag LOOM_SHAPE_PRODUCTS */
	int time_slicing; /* 1: the driver reports that kernels of several processes take turns on this GPU */
};

/* A compiled program on the GPU. */
struct gpu_kernel {
	void *module; /* NULL: not loaded */
	void *function;
	uint64_t launch; /* address on the GPU of the program's struct loom_gpu_launch */
	struct resources resources;
	size_t launch_bytes;
	/* 1: the kernel is launched for each step, with the step's number, or for each collective; 0: it is
	 * persistent */
	int stepped;
	int is_collective;     /* 1: the kernel for collectives, which has no launch record */
	int registers, shared; /* reported by the driver: registers per thread, static shared memory per block */
};

#define GPU_HANDLE 64

/* The 64-bit atomics that gpuloom needs, over the link from a GPU to the host or to another GPU. */
struct gpu_atomics {
	int known;              /* 1: the driver reports which operations are atomic */
	int native;             /* 1: all 64-bit operations are atomic */
	int add, cas, exchange; /* 1: the operation of that name is atomic; valid if `known` is 1 */
};

struct gpu;

/* A composed program, and the IR that is linked to it. */
struct gpu_program {
	struct loom__text text;
	const struct loom_program_ir *const *ir; /* [irs] */
	uint32_t irs;
	const char *kernel; /* name of the kernel; NULL: COMPOSE_KERNEL */
};

/* Driver calls of a vendor. They return codes of the driver, with 0 for success, but open() and find() return LOOM_E*.
 * gpu_failed_call() returns the name of a failed call. The calls from alloc() on must be between enter() and leave(). Addresses
 * are those of the GPU. */
struct gpu_driver {
	const char *name;             /* name of the plug-in: "cuda" for devices "cuda:0" and options in [device.cuda] */
	const char *vendor;           /* name of the vendor in messages: "NVIDIA" */
	const char *library;          /* what open() loads, as a noun for messages: "driver" */
	const char *fix;              /* what to do if no GPU is visible */
	const char *atomics_fix;      /* what to do if the driver does not report host_atomics() */
	/* The name of a driver function whose failure has a known fix, and that fix for the error message. NULL:
	 * none. */
	const char *call, *call_fix;
	const char *time_slicing_fix; /* how kernels of several processes can run concurrently; NULL: unknown */
	const struct rtc_kind *compiler;
	int out_of_memory;   /* the driver's code for a lack of memory */
	int most_registers;  /* limit on the registers of a thread */
	int watches;         /* 1: a block can have a monitor's wave in addition to the waves of its workers */
	int ir;              /* formats of IR that compile() links: bits of enum compose_format */
	const char *ir_text; /* these formats in words; NULL: none */
	int lanes_shared;    /* bytes of shared memory per block for barriers of lanes in dev/NAME.h */
	int lanes_dynamic;   /* bytes of lanes_shared that are in dynamic shared memory */

	/* Loads the driver's library. Returns LOOM_EUNAVAIL, with an error that says what is missing and how to fix
	 * it. */
	int (*open)(struct gpu *d, struct loom_error *err);
	int (*count)(struct gpu *d, int *count);
	/* Selects GPU `number`, and finds its name and limits. Returns LOOM_EUNAVAIL if it cannot run workers. */
	int (*find)(struct gpu *d, int number, struct loom_error *err);
	void (*host_atomics)(const struct gpu *d, struct gpu_atomics *out);
	int (*peers)(struct gpu *d, int from, int to, int *can);
	/* Finds the atomics of GPU `from` on memory of GPU `to`. NULL: the driver does not report them. */
	void (*peer_atomics)(const struct gpu *d, int from, int to, struct gpu_atomics *out);
	/* Creates a context and two streams. detach() undoes attach(), also if attach() failed halfway. */
	int (*attach)(struct gpu *d);
	void (*detach)(struct gpu *d);
	const char *(*text)(const struct gpu *d, int rc); /* returns the text of code `rc`, in a buffer of the calling thread */
	int (*enter)(struct gpu *d);
	void (*leave)(struct gpu *d);

	/* Memory of the GPU. Workers use it, and the host copies to and from it while a kernel runs. alloc_next(): memory of
	 * GPU d->next instead. NULL: not supported. */
	int (*alloc)(struct gpu *d, uint64_t bytes, uint64_t *at);
	int (*alloc_next)(struct gpu *d, uint64_t bytes, uint64_t *at);
	void (*free)(struct gpu *d, uint64_t at);
	/* Host memory that is coherent with the GPU while kernels run. *view: its address on the GPU. */
	int (*host_alloc)(struct gpu *d, uint64_t bytes, void **host, uint64_t *view);
	void (*host_free)(struct gpu *d, void *host);
	/* Registers host memory of another owner. *ours: 1 if this call has registered the memory, so that host_unmap()
	 * must follow. */
	int (*host_map)(struct gpu *d, void *host, uint64_t bytes, uint64_t *view, int *ours);
	void (*host_unmap)(struct gpu *d, void *host);
	/* Access of other processes to memory from alloc(). lend() exports a handle of GPU_HANDLE bytes, borrow() opens
	 * such a handle, and give_back() closes it. locate() finds the number that the GPU with PCI address `bus` has
	 * in this process. */
	int (*lend)(struct gpu *d, uint64_t at, void *handle);
	int (*borrow)(struct gpu *d, const void *handle, uint64_t *at);
	void (*give_back)(struct gpu *d, uint64_t at);
	int (*locate)(struct gpu *d, const char *bus, int *number);
	int (*owner)(struct gpu *d, uint64_t at, int *number);          /* *number: the GPU that owns the memory */
	/* Enables access of this device to memory of GPU `number`. *can: 0 if access is impossible, else 1. */
	int (*reach)(struct gpu *d, uint64_t at, int number, int *can);
	/* Both copies run while the kernel runs, and are complete on return. */
	int (*write)(struct gpu *d, uint64_t to, const void *from, uint64_t bytes);
	int (*read)(struct gpu *d, void *to, uint64_t from, uint64_t bytes);
	int (*clear)(struct gpu *d, uint64_t at, uint64_t bytes);

	/* Adds the compiler options to the key of the cache. */
	void (*identify)(const struct gpu *d, struct loom__text *key);
	int (*compile)(struct gpu *d, const struct gpu_program *program, struct cached *out, struct loom_error *err);
	/* Loads a program, and reserves the stack for nested tasks. If k->module is set, unload() must follow, even
	 * after a failure. */
	int (*load)(struct gpu *d, const struct cached *code, struct gpu_kernel *k);
	void (*unload)(struct gpu *d, struct gpu_kernel *k);
	/* *blocks: number of blocks that can be resident on a multiprocessor, if each has `threads` threads and
	 * `shared` bytes of dynamic shared memory. If `wanted` is not 0, the kernel gets shared memory for so many blocks,
	 * and the cache the rest. */
	int (*occupancy)(struct gpu *d, const struct gpu_kernel *k, int threads, uint64_t shared, int wanted, int *blocks);
	/* If k->stepped is 0: launches persistent workers by a cooperative launch, which fails if not all blocks can be
	 * resident at once; `parameter` is a struct loom_gpu_order. If it is 1: queues the kernel in the stream; `parameter` is
	 * the step's number, a uint64_t. */
	int (*launch)(struct gpu *d, const struct gpu_kernel *k, uint32_t blocks, uint32_t threads, uint32_t shared,
		      const void *parameter);
	/* enqueue() is like launch(), but in a stream of the program, which may be in capture. captures() sets *is to 1
	 * if the stream is being captured. stream_is_ours() sets *is to 1 if the stream belongs to this GPU. NULL: not
	 * supported. */
	int (*enqueue)(struct gpu *d, void *stream, const struct gpu_kernel *k, uint32_t blocks, uint32_t threads,
		       uint32_t shared, const void *parameter);
	int (*captures)(struct gpu *d, void *stream, int *is);
	int (*stream_is_ours)(struct gpu *d, void *stream, int *is);
	/* Finds the allocation that contains `at`, in GPU memory or managed memory: its GPU, start and size. For other
	 * memory, such as host memory, *number is -1. */
	int (*range)(struct gpu *d, uint64_t at, int *number, uint64_t *begin, uint64_t *bytes);
	/* Operations in the order of the stream. set_word() stores a word, after it has released all writes of earlier
	 * kernels. await_word() delays the stream until the word is at least `value`, as a signed number. */
	int (*set_word)(struct gpu *d, uint64_t at, uint64_t value);
	int (*await_word)(struct gpu *d, uint64_t at, uint64_t value);
	int (*running)(struct gpu *d, int *running);
	/* As the ops of the same names. facts() reports what the common code does not know. NULL: not supported. Called outside
	 * of enter() and leave(). */
	void (*facts)(struct gpu *d, struct loom_facts *out);
	int (*throttled)(struct gpu *d, uint64_t ns);
	/* Between record() and recorded(), calls of launch(), set_word() and await_word() are recorded instead of
	 * executed. replay() executes the recorded calls, and forget() frees them. NULL: not supported. */
	int (*record)(struct gpu *d);
	int (*recorded)(struct gpu *d, void **graph);
	int (*replay)(struct gpu *d, void *graph);
	void (*forget)(struct gpu *d, void *graph);
	/* Notification of host threads. notify_await() sleeps until a word of GPU memory is at least `value`, as a
	 * signed number. Threads other than the core's thread call it, each with its own channel, and outside of
	 * enter() and leave(). NULL: there are no interrupts. */
	int (*notify_open)(struct gpu *d, void **channel);
	void (*notify_close)(struct gpu *d, void *channel);
	int (*notify_await)(struct gpu *d, void *channel, uint64_t at, uint64_t value);
	/* For the same threads. notify_copy() copies in the stream of the channel: from the GPU to `to` if `to` is not
	 * NULL, else from `from` to the GPU. notify_flush() waits for the copies of the channel. */
	int (*notify_copy)(struct gpu *d, void *channel, uint64_t at, void *to, const void *from, uint64_t bytes);
	int (*notify_flush)(struct gpu *d, void *channel);
	/* Copies in the stream of the channel, and then stores `value` at `word`, without waiting. The copy needs no
	 * multiprocessor, unless both addresses are on one GPU. Called between enter() and leave(). NULL: not supported. */
	int (*queue_copy)(struct gpu *d, void *channel, uint64_t to, uint64_t from, uint64_t bytes, uint64_t word,
			  uint64_t value);
};

/* Initialisers of struct gpu_driver. Each function has the name of its field, except where this name has another
 * meaning in C. */
#define GPU_DRIVER_CALLS                                                                                               \
	.open = open_driver, .count = count_gpus, .find = find, .host_atomics = host_atomics, .peers = peers,          \
	.attach = attach, .detach = detach, .text = text, .enter = enter, .leave = leave, .alloc = allocate,           \
	.free = release, .host_alloc = host_alloc, .host_free = host_free, .host_map = host_map,                       \
	.host_unmap = host_unmap, .owner = owner, .reach = reach, .write = write_gpu, .read = read_gpu,                \
	.enqueue = enqueue, .captures = captures, .stream_is_ours = stream_is_ours, .range = range,                    \
	.clear = clear, .compile = compile, .load = load, .unload = unload, .occupancy = occupancy, .launch = launch,  \
	.set_word = set_word, .await_word = await_word, .running = running

/* Memory that this device can access, with its address on this device in `view`. */
struct mapping {
	struct mapping *next;
	const struct loom_memory *memory;
	uint64_t view;
	uint64_t base;  /* address from alloc(), which free() takes; only if `own` is 1 */
	int own;        /* 1: gpu_mem_alloc() made it */
	int registered; /* 1: this device registered the memory, and must unregister it */
};

/* Copies beside workers, which end in order. */
struct gpu_queue {
	void *channel;	  /* from notify_open(); NULL: not prepared */
	uint64_t *ended;  /* number of the last copy that has ended, in host memory; the stream stores it */
	uint64_t view;	  /* address of that word on the GPU */
	uint64_t started; /* number of the last copy that was started */
};

/* Why the device is unusable. LOST_HUNG: the kernel hangs, so no call may wait for it. LOST_DEAD: the context is
 * unusable. */
enum { LOST_HUNG = 1, LOST_DEAD };

/* A GPU device. It is the first member of the plug-in's struct. */
struct gpu {
	const struct gpu_driver *driver;
	const struct loom_host *host;
	const struct gpu_options *options;
	struct rtc compiler;
	char name[24];               /* name in messages: "cuda:0"; in gpu_doctor(): "cuda" */
	int number, next;            /* the driver's number of the GPU, and of the next GPU */
	char arch[64];               /* architecture, such as "sm_90" */
	char bus[32];                /* PCI address in the driver's format; "": not reported */
	char model[96], version[32]; /* name of the GPU; version of the driver: "CUDA 13.0" */
	uint64_t memory;             /* size of GPU memory in bytes */
	char defines[128];            /* first lines of composed programs, which dev/NAME.h needs for this GPU */
	int attached;
	struct gpu_limits limits;
	int node; /* NUMA node of the GPU; -1: unknown */
	uint32_t workers, lanes, per_block;
	uint32_t watch;       /* number of threads of a block in the monitor's wave; 0: no monitor */
	uint32_t bound;       /* number of blocks per multiprocessor that the compiler must make fit */
	uint32_t residency;   /* number of blocks per multiprocessor that fit */
	uint32_t local_bytes; /* shared memory per worker, in bytes */
	struct gpu_kernel kernel[LOOM_ENTRY_PROBE + 1]; /* [enum loom_entry] */
	struct gpu_kernel collective; /* the kernel for collectives, if the program has used one */
	struct mapping *mappings;
	struct borrowed *borrowed;    /* list of the open memory of other processes */
	struct gpu_queue queue[LOOM_COPIES]; /* [enum loom_copy] */
	struct loom_gpu_words *words; /* words in host memory that the host polls */
	uint64_t words_view;
	uint64_t flush;        /* with the option `flush`: address of gpu_flush_bytes(); else 0 */
	uint64_t gate;         /* address of a struct loom_gpu_gate and of one stage word per worker after it */
	struct launch *launch; /* NULL: no launch */
	int lost;              /* LOST_*; 0: the device is usable */
	int died_of;           /* with LOST_DEAD: the driver's error code */
	struct gpu *next_lost; /* in the list lost_devices of instance.c */
	uint32_t launches;     /* number of kept launches */
	uint32_t nudged;       /* 1: gpu_wake() was called, so gpu_wait() returns at its next poll */
};

/* Size of the memory that a flush overwrites. Its second half replaces what the first half has left in the cache. */
static inline uint64_t gpu_flush_bytes(const struct gpu *d)
{
	return 2 * (uint64_t)d->limits.cache;
}

/* Progress of a sample with kernels = launched or graph. */
struct chain {
	const struct loom_chain *what;
	char *words;   /* the trigger's block at the host's address */
	uint64_t view; /* the same block at the GPU's address */
	uint64_t most; /* limit on the number of kernels in the stream */
	void *graph;   /* recorded calls of a sample; NULL: kernels are launched one by one */
	uint64_t launched, ended;
	uint64_t moved_ns;  /* time of the last progress */
	uint64_t looked_ns; /* time of the last check that the stream is alive */
};

/* A launch. It has persistent workers, or one kernel per sample, or one kernel per step. */
struct launch {
	const struct loom_launch *what;
	struct loom_ctl *ctl; /* control words at the host's address */
	uint32_t count;       /* number of workers of this launch */
	uint32_t phase;       /* phase of the last ready() or go() */
	uint64_t began_ns;    /* time of go() */
	int stop_passed;      /* 1: the stop flag was copied to the device in this launch */
	uint32_t blocks, threads, shared;
	int kept;     /* 1: a kept launch (LOOM_LAUNCH_KEPT) */
	int mustered; /* 1: gpu_muster() has launched the kernel of this sample */
	int resident;    /* 1: the workers stay after a sample */
	int may_be_quick; /* 1: LOOM_LAUNCH_QUICK */
	int may_be_small; /* 1: LOOM_LAUNCH_SMALL */
	uint32_t ends;	  /* number of words `end` by which a small sample ends; 0: it has none */
	int quick; /* 1: the last sample has LOOM_ORDER_QUICK. After it, resident workers get ready for the next sample */
	int resides;	 /* 1: resident workers exist, as far as the host knows */
	uint32_t posted; /* phase of the last order to resident workers */
	uint64_t tasks;    /* address on the GPU of the tasks that the host wrote; 0: the tasks are in place */
	void *stream;      /* stream of the program in which the last sample is */
	uint64_t enqueued; /* number of samples in streams of the program, without captured ones */
	uint64_t captured;
	uint32_t number;   /* number of this launch, from 1 on; kernels of graphs carry it */
	struct chain chain; /* used if kernels are launched per step; else chain.what is NULL */
};

/* instance.c. gpu_create() allocates the plug-in's struct of `bytes`, which begins with a struct gpu. */
int gpu_create(const struct loom_host *host, const struct gpu_driver *driver, size_t bytes,
	       const struct gpu_options *options, uint32_t instance, uint32_t instances, void **self,
	       struct loom_error *err);
void gpu_destroy(void *self);
/* Every op calls gpu_enter() first and gpu_leave() last. gpu_enter() returns 0 or an error. */
int gpu_enter(struct gpu *d, struct loom_error *err);
void gpu_leave(struct gpu *d);
/* Returns an error with the text of the driver's code `rc`. what: the action that failed, for the message; NULL: the
 * name of the driver function that failed. */
int gpu_fail(struct gpu *d, struct loom_error *err, int rc, const char *what);
/* Called when a driver call reports that the kernel has failed. Afterwards the context is unusable. */
int gpu_dead(struct gpu *d, int rc, struct loom_error *err);

/* Calls a driver function and records its name if it fails. */
#define GPU_CALL(d, table, function, ...) gpu_called((int)(table)->function(__VA_ARGS__), #function)
int gpu_called(int rc, const char *name);
/* Returns the name of the function that failed last in this thread. */
const char *gpu_failed_call(void);

/* Fills a table of functions from a library. Returns NULL, or the name of a missing function. */
struct gpu_symbol {
	void *to;
	const char *name;
};
const char *gpu_symbols(void *library, const struct gpu_symbol *symbol, size_t n);

/* shape.c */
int shape_find(struct gpu *d, struct loom_error *err);
/* Sets d->bound for a program whose task functions should have this many registers; 0: any number is allowed. */
void shape_bind(struct gpu *d, uint32_t registers, uint64_t local_bytes);
/* Finds the shape a second time, when the program is compiled, because the program may need fewer resources than the
 * bound. */
int shape_again(struct gpu *d, const struct gpu_kernel *k, uint64_t local_bytes, struct loom_error *err);
/* Returns the dynamic shared memory of a block in bytes, if each worker has `local_bytes`. */
uint32_t shape_shared(const struct gpu *d, uint32_t lanes, uint32_t per_block, uint64_t local_bytes);
int gpu_shape(void *self, struct loom_device_shape *shape, struct loom_error *err);
const char *gpu_time_slicing(void *self, char *name, size_t size);
void gpu_facts(void *self, struct loom_facts *out);
int gpu_throttled(void *self, uint64_t ns);

/* program.c */
int gpu_build(void *self, const struct loom_program *program, struct loom_error *err);
int program_probe(struct gpu *d, struct loom_error *err);
/* Compiles and loads a program, which unload() of the driver frees. k->is_collective must be set. */
int program_make(struct gpu *d, const struct gpu_program *program, struct gpu_kernel *k,
		 struct loom_error *err);
void program_finish(struct gpu *d);

/* memory.c. memory_*() are called between enter() and leave(). */
int gpu_mem_alloc(void *self, uint64_t bytes, uint32_t flags, struct loom_memory *memory, struct loom_error *err);
void gpu_mem_free(void *self, struct loom_memory *memory);
int gpu_mem_map(void *self, const struct loom_memory *memory, struct loom_error *err);
void gpu_mem_unmap(void *self, const struct loom_memory *memory);
int gpu_copy_in(void *self, const struct loom_memory *memory, uint64_t offset, const void *from, uint64_t bytes,
		struct loom_error *err);
int gpu_copy_out(void *self, const struct loom_memory *memory, uint64_t offset, void *to, uint64_t bytes,
		 struct loom_error *err);
extern const struct loom_device_sharing gpu_sharing;
/* copies.c. copies_close() is called between enter() and leave(). */
extern const struct loom_device_copies gpu_copies;
void copies_close(struct gpu *d);
/* Returns 1 if `at` is from gpu_mem_open(), and the memory is on another GPU. */
int memory_is_remote(const struct gpu *d, uint64_t at);
int memory_view(struct gpu *d, const struct loom_segment *segment, uint64_t *view, struct loom_error *err);

/* launch.c */
int gpu_launch(void *self, const struct loom_launch *what, struct loom_error *err);
/* Launches the kernel of one sample with phase l->phase, in a kept launch. Called between enter() and leave(). */
int launch_sample(struct gpu *d, struct launch *l, struct loom_error *err);
/* Returns the LOOM_ORDER_* of the sample that begins, and sets l->quick. */
uint32_t launch_flags(struct launch *l);

/* resident.c: workers that stay. These functions are called between enter() and leave(). resident_ready() orders the
 * workers to get ready for a sample, and launches them if they have left. resident_go() waits until they are ready and
 * begins the sample. resident_retire() orders them to leave. */
int resident_ready(struct gpu *d, struct launch *l, uint32_t ready, struct loom_error *err);
int resident_go(struct gpu *d, struct launch *l, struct loom_error *err);
/* Begins a sample for workers that are ready after a quick sample, without a call of the driver. Returns 0 if this is not
 * possible. */
int resident_go_on(struct gpu *d, struct launch *l);
void resident_retire(struct gpu *d, struct launch *l);
int gpu_rest(void *self, uint32_t ready, struct loom_error *err);

/* enqueue.c: samples in streams of the program. */
int gpu_enqueue(void *self, void *stream, loom_ref tasks, uint64_t initial_tasks, struct loom_error *err);
int gpu_captures(void *self, void *stream, int *is, struct loom_error *err);
int gpu_drain(void *self, uint64_t timeout_ns, struct loom_enqueued *out, struct loom_error *err);
/* Returns 1 if not all enqueued samples have ended. */
int enqueued_left(const struct gpu *d, const struct launch *l);
/* The permit of graphs (struct loom_gpu_gate). Both are called between enter() and leave(), and return the driver's code.
 * enqueue_permit() permits kernels of graphs that carry the number `launch`; 0: none. *inside: number of their workers that
 * are inside. */
int enqueue_permit(struct gpu *d, uint32_t launch);
int enqueue_inside(struct gpu *d, uint32_t *inside);
/* Returns an error if the stream does not belong to this GPU. *captures: 1 if it is being captured. Called between enter()
 * and leave() of the driver. */
int enqueue_check(struct gpu *d, void *stream, int *captures, struct loom_error *err);
/* collective.c */
extern const struct loom_device_streams gpu_streams;
/* interrupt.c */
extern const struct loom_device_interrupts gpu_interrupts;

/* chain.c */
/* Returns 0, or an error with the reason why the program cannot be launched step by step. */
int chain_check(const struct gpu *d, const struct loom_program *program, struct loom_error *err);
int chain_find(struct gpu *d, struct launch *l, struct loom_error *err);
/* With kernels = graph, chain_record() records the calls that all samples replay. chain_forget() frees the record. */
int chain_record(struct gpu *d, struct launch *l);
void chain_forget(struct gpu *d, struct launch *l);
/* Launches the steps that may start. Returns 1 when the sample has ended, 0 before that, or an error. */
int chain_go_on(struct gpu *d, struct launch *l, struct loom_error *err);
/* Ends all waits in the stream, so that its kernels return. Callers repeat it until no kernel runs. */
void chain_release(struct launch *l);

/* watch.c. These functions are called between enter() and leave(). */
/* Polls over() until it returns 1, and then returns 0. Returns LOOM_EAGAIN at the deadline `until` or, if nudged is not
 * NULL, after gpu_wake(). Returns LOOM_EDIED if the kernel has failed. ends: 1 if the kernel is in the device's own
 * stream; if this stream is empty before over() returns 1, the kernel has failed. */
int watch_until(struct gpu *d, struct launch *l, int (*over)(const struct gpu *d, const struct launch *l), int ends,
		uint64_t since_ns, uint64_t until, uint32_t *nudged, struct loom_error *err);
int watch_is_ready(const struct gpu *d, const struct launch *l);
/* Returns LOOM_ETIMEDOUT, with an error that describes the workers that are not ready. */
int watch_not_ready(struct gpu *d, const struct launch *l, uint64_t timeout_ns, struct loom_error *err);
uint64_t watch_deadline(const struct gpu *d, uint64_t timeout_ns);
void watch_nap(const struct gpu *d, uint64_t since_ns);
/* Returns the stages of all workers, which the caller must free. NULL: they cannot be read. */
uint32_t *watch_stages(struct gpu *d, const struct launch *l);
/* Describes in words how many workers are not at `stage`. */
void watch_late(struct gpu *d, const struct launch *l, uint32_t stage, char *out, size_t room);
/* Both functions write to the device's copy of struct loom_ctl. watch_pass_on() writes the word at `offset`.
 * watch_pass_stop() writes the stop flag, which running workers poll in this copy. */
int watch_pass_on(struct gpu *d, size_t offset, uint32_t value);
void watch_pass_stop(struct gpu *d, struct launch *l);

/* wait.c */
extern const struct loom_device_kept gpu_kept;
int gpu_ready(void *self, uint64_t timeout_ns, struct loom_error *err);
int gpu_go(void *self, struct loom_error *err);
int gpu_wait(void *self, uint64_t timeout_ns, uint64_t *end_ns, struct loom_error *err);
void gpu_wake(void *self);
int gpu_states(void *self, uint32_t *out, uint32_t workers);
int gpu_retire(void *self, uint64_t timeout_ns, struct loom_error *err);

/* Ops of a device plug-in, except create, doctor and extensions; and its extensions, except hardware. */
#define GPU_DEVICE_OPS                                                                                                 \
	.destroy = gpu_destroy, .shape = gpu_shape, .mem_alloc = gpu_mem_alloc, .mem_free = gpu_mem_free,              \
	.mem_map = gpu_mem_map, .mem_unmap = gpu_mem_unmap, .build = gpu_build, .launch = gpu_launch,                  \
	.ready = gpu_ready, .go = gpu_go, .wait = gpu_wait, .wake = gpu_wake, .states = gpu_states,                    \
	.retire = gpu_retire, .copy_in = gpu_copy_in, .copy_out = gpu_copy_out
#define GPU_EXTENSIONS                                                                                                 \
	LOOM_EXTENSION(sharing, &gpu_sharing), LOOM_EXTENSION(kept, &gpu_kept), LOOM_EXTENSION(streams, &gpu_streams), \
	LOOM_EXTENSION(copies, &gpu_copies), LOOM_EXTENSION(interrupts, &gpu_interrupts)

/* Lists the driver functions that all vendors have. api: the prefix of their names; `cu` gives X(cuInit). */
#define GPU_CALLS_MAP(X, api)											\
	X(api##Init) X(api##GetErrorName) X(api##GetErrorString) X(api##DeviceGetName)				\
	X(api##DeviceGetAttribute) X(api##DeviceGetPCIBusId) X(api##DeviceGetByPCIBusId)			\
	X(api##DeviceTotalMem) X(api##DeviceCanAccessPeer) X(api##ModuleLoadData) X(api##ModuleUnload)		\
	X(api##ModuleGetFunction) X(api##ModuleGetGlobal) X(api##FuncGetAttribute)				\
	X(api##StreamWriteValue64) X(api##StreamWaitValue64) X(api##StreamDestroy) X(api##StreamQuery)		\
	X(api##StreamIsCapturing)										\
	X(api##IpcGetMemHandle) X(api##IpcOpenMemHandle) X(api##IpcCloseMemHandle) X(api##MemcpyHtoDAsync)	\
	X(api##MemcpyDtoHAsync) X(api##MemsetD8Async) X(api##PointerGetAttribute)

/* doctor.c. gpu_doctor() takes a zeroed struct of the plug-in. */
void gpu_doctor(struct gpu *d, const struct gpu_driver *driver, const struct loom_host *host, struct loom_doctor *out);

#endif
