/* SPDX-License-Identifier: Apache-2.0 */
/* What the devices for GPUs have in common: persistent workers composed at run time. Below is a table of the driver
 * calls of a vendor (struct gpu_driver), above the table of device ops of the core. Each device plug-in compiles
 * these files into itself. */
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

/* Options of every such device; those of one plug-in are among them. */
struct gpu_options {
	int64_t gpu;
	uint32_t workers, lanes, worker, max_registers, nesting, compile, kernels;
	const char *arch, *cache;
	uint32_t group; /* warps or waves: workers per block, with worker = warp or wave */
	const char *compiler;
	uint32_t carveout; /* CUDA: percent of the on-chip memory of a multiprocessor that is shared memory */
};
extern const char *const gpu_compile_choices[], *const gpu_kernels_choices[];
#define GPU_OPTIONS                                                                                                    \
	LOOM_OPT(struct gpu_options, gpu, LOOM_OPT_I64, "auto",                                                        \
		 "Which GPU, by the driver's number. auto: the number of the engine, so that :1 is GPU 1; a "          \
		 "further rank takes the next ones, and ranks share GPUs where these are too few.",                    \
		 .min = -1, .max = 1023, .section = "device.gpu", .flags = LOOM_OPT_AUTO),                             \
	    LOOM_OPT(struct gpu_options, workers, LOOM_OPT_U32, "auto",                                                \
		     "Workers of the device. auto: as many as the GPU keeps resident at once. With more, the "         \
		     "compiler spills registers until they fit.",                                                      \
		     .section = "device.gpu", .flags = LOOM_OPT_AUTO),                                                 \
	    LOOM_OPT(struct gpu_options, max_registers, LOOM_OPT_U32, "128",                                           \
		     "workers = auto: registers per thread that the program may use. A small limit lets more "         \
		     "workers be resident and makes the compiler spill (--log info shows both). 0: no limit.",         \
		     .max = 255, .section = "device.gpu"),                                                             \
	    LOOM_OPT(struct gpu_options, nesting, LOOM_OPT_U32, "0",                                                   \
		     "How deep tasks may run inside each other when queues are full; each level takes stack of "       \
		     "every thread. 0: they go to the overflow list in memory.",                                       \
		     .max = 64, .section = "device.gpu"),                                                              \
	    LOOM_OPT(struct gpu_options, kernels, LOOM_OPT_ENUM, "persistent",                                         \
		     "persistent: one kernel runs all samples. launched: each step of the workload is a kernel, "      \
		     "with trigger gds or hdn. graph (CUDA): all steps are one graph, with trigger gds.",              \
		     .choices = gpu_kernels_choices, .section = "device.gpu"),                                         \
	    LOOM_OPT(struct gpu_options, cache, LOOM_OPT_PATH, "",                                                     \
		     "Folder for compiled programs. Empty: $XDG_CACHE_HOME/gpuloom or ~/.cache/gpuloom.",              \
		     .flags = LOOM_OPT_TRUST, .section = "device.gpu"),                                                \
	    LOOM_OPT(struct gpu_options, compile, LOOM_OPT_ENUM, "cached",                                             \
		     "cached: takes a program that was compiled before from the cache. always: compiles it again.",    \
		     .choices = gpu_compile_choices, .section = "device.gpu")
/* An option whose name differs from its field: the vendors use different words. */
#define GPU_OPTION_AS(field, name_, ...)                                                                               \
	{                                                                                                              \
		.name = name_, .offset = offsetof(struct gpu_options, field),                                          \
		.size = sizeof(((struct gpu_options *)0)->field), __VA_ARGS__                                          \
	}

/* Limits of this model of GPU. */
struct gpu_limits {
	int multiprocessors;
	int blocks, threads, registers, shared; /* per multiprocessor */
	int shared_per_block, shared_reserved;
	int threads_per_block;
	int wave;         /* threads of a warp or wavefront */
	int words;        /* streams can set and wait for words of 64 bits: set_word(), await_word() */
	int parts;        /* partitions of a multiprocessor, each with registers of its own for whole waves */
	int time_slicing; /* the driver reports that kernels of several processes take turns on this GPU */
};

/* A compiled program on the GPU. */
struct gpu_kernel {
	void *module; /* NULL: none */
	void *function;
	uint64_t launch; /* struct loom_gpu_launch */
	struct resources resources;
	size_t launch_bytes;
	int stepped;           /* 1: launched for each step, with its number; 0: persistent */
	int registers, shared; /* as the driver reports: per thread; static, per block */
};

#define GPU_HANDLE 64

/* Which of the 64-bit operations that gpuloom needs are atomic over the link to the host or to another GPU. */
struct gpu_atomics {
	int known;              /* the driver reports it */
	int native;             /* all of them are */
	int add, cas, exchange; /* when known */
};

struct gpu;

/* A composed program, and the IR that it is linked with. */
struct gpu_program {
	struct loom__text text;
	const struct loom_program_ir *const *ir; /* [irs] */
	uint32_t irs;
};

/* Driver calls of a vendor. They return codes of the driver, 0 for success (open and find: LOOM_E*); the last one
 * that failed left its name in gpu.call. Those from `alloc` on need enter() before and leave() after. Addresses are
 * the GPU's. */
struct gpu_driver {
	const char *name;             /* "cuda": devices are "cuda:0", options are in [device.cuda] */
	const char *vendor;           /* "NVIDIA" */
	const char *library;          /* what open() loads: "driver" */
	const char *fix;              /* what to do when no GPU is visible ... */
	const char *atomics_fix;      /* ... when the driver does not report host_atomics() ... */
	const char *call, *call_fix;  /* ... and when this call fails; NULL: none */
	const char *time_slicing_fix; /* how kernels of several processes can run concurrently; NULL: not known */
	const char *const *dialect;   /* compose_cuda */
	const struct rtc_kind *compiler;
	int out_of_memory;   /* code for a lack of memory */
	int most_registers;  /* per thread */
	int watches;         /* a block can have a wave for a monitor beside those of its workers */
	int ir;              /* formats that compile() links with: enum compose_format ... */
	const char *ir_text; /* ... in words; NULL: none */
	int lanes_shared;    /* bytes of shared memory per block that dev/NAME.h uses for barriers of lanes ... */
	int lanes_dynamic;   /* ... and how many of these are dynamic */

	/* Loads the library of the driver. LOOM_EUNAVAIL with what is missing and how to fix it. */
	int (*open)(struct gpu *d, struct loom_error *err);
	int (*count)(struct gpu *d, int *count);
	/* Selects GPU `number`: its name and limits. LOOM_EUNAVAIL if it cannot run workers. */
	int (*find)(struct gpu *d, int number, struct loom_error *err);
	void (*host_atomics)(const struct gpu *d, struct gpu_atomics *out);
	int (*peers)(struct gpu *d, int from, int to, int *can);
	/* Of `from` on memory of `to`. NULL: the driver does not report it. */
	void (*peer_atomics)(const struct gpu *d, int from, int to, struct gpu_atomics *out);
	/* A context and two streams. detach() undoes all or a part of attach(). */
	int (*attach)(struct gpu *d);
	void (*detach)(struct gpu *d);
	const char *(*text)(const struct gpu *d, int rc); /* in a buffer of the calling thread */
	int (*enter)(struct gpu *d);
	void (*leave)(struct gpu *d);

	/* Memory of the GPU, for workers and for copies of the host while a kernel runs. */
	int (*alloc)(struct gpu *d, uint64_t bytes, uint64_t *at);
	void (*free)(struct gpu *d, uint64_t at);
	/* Host memory that is coherent with the GPU while kernels run. */
	int (*host_alloc)(struct gpu *d, uint64_t bytes, void **host, uint64_t *view);
	void (*host_free)(struct gpu *d, void *host);
	/* Registers host memory of another owner. *ours: this call registered it, so host_unmap() is due. */
	int (*host_map)(struct gpu *d, void *host, uint64_t bytes, uint64_t *view, int *ours);
	void (*host_unmap)(struct gpu *d, void *host);
	/* Access to alloc() memory by other processes: lend() exports a handle of GPU_HANDLE bytes, borrow() opens
	 * one, give_back() closes it. locate(): the number of the GPU at `bus` in this process. */
	int (*lend)(struct gpu *d, uint64_t at, void *handle);
	int (*borrow)(struct gpu *d, const void *handle, uint64_t *at);
	void (*give_back)(struct gpu *d, uint64_t at);
	int (*locate)(struct gpu *d, const char *bus, int *number);
	int (*owner)(struct gpu *d, uint64_t at, int *number);          /* number of the GPU that owns it */
	int (*reach)(struct gpu *d, uint64_t at, int number, int *can); /* enables access; *can: 0 if the GPU cannot */
	/* Copies concurrent with the kernel; complete on return. */
	int (*write)(struct gpu *d, uint64_t to, const void *from, uint64_t bytes);
	int (*read)(struct gpu *d, void *to, uint64_t from, uint64_t bytes);
	int (*clear)(struct gpu *d, uint64_t at, uint64_t bytes);

	/* Adds compiler options to the key of the cache. */
	void (*identify)(const struct gpu *d, struct loom__text *key);
	int (*compile)(struct gpu *d, const struct gpu_program *program, struct cached *out, struct loom_error *err);
	/* Also reserves the stack for nested tasks. k->module is set as soon as it must be unloaded. */
	int (*load)(struct gpu *d, const struct cached *code, struct gpu_kernel *k);
	void (*unload)(struct gpu *d, struct gpu_kernel *k);
	/* Resident blocks per multiprocessor, with that many threads and bytes of dynamic shared memory. */
	int (*occupancy)(struct gpu *d, const struct gpu_kernel *k, int threads, uint64_t shared, int *blocks);
	/* A cooperative launch, which fails if the grid is not resident as a whole. A stepped kernel gets its number
	 * and is queued in the stream. */
	int (*launch)(struct gpu *d, const struct gpu_kernel *k, uint32_t blocks, uint32_t threads, uint32_t shared,
		      uint64_t step);
	/* In stream order: sets the word, with a release of all that earlier kernels wrote; or waits until the word
	 * is `value` or more, as a signed number. */
	int (*set_word)(struct gpu *d, uint64_t at, uint64_t value);
	int (*await_word)(struct gpu *d, uint64_t at, uint64_t value);
	int (*running)(struct gpu *d, int *running);
	/* Between record() and recorded() the three calls above are recorded, not executed; replay() executes them
	 * all. NULL: not supported. */
	int (*record)(struct gpu *d);
	int (*recorded)(struct gpu *d, void **graph);
	int (*replay)(struct gpu *d, void *graph);
	void (*forget)(struct gpu *d, void *graph);
	/* Notification of host threads: notify_await() sleeps until a word of GPU memory is `value` or more, as a
	 * signed number. Called by other threads than the core's, each with a channel of its own, outside of enter()
	 * and leave(). NULL: there are no interrupts. */
	int (*notify_open)(struct gpu *d, void **channel);
	void (*notify_close)(struct gpu *d, void *channel);
	int (*notify_await)(struct gpu *d, void *channel, uint64_t at, uint64_t value);
	/* Copies by such a thread in the stream of its channel: to the GPU, or from it if `to` is not NULL; flush()
	 * waits for them. */
	int (*notify_copy)(struct gpu *d, void *channel, uint64_t at, void *to, const void *from, uint64_t bytes);
	int (*notify_flush)(struct gpu *d, void *channel);
};

/* Fields of the table whose functions have the same name, except for names of C. */
#define GPU_DRIVER_CALLS                                                                                               \
	.open = open_driver, .count = count_gpus, .find = find, .host_atomics = host_atomics, .peers = peers,          \
	.attach = attach, .detach = detach, .text = text, .enter = enter, .leave = leave, .alloc = allocate,           \
	.free = release, .host_alloc = host_alloc, .host_free = host_free, .host_map = host_map,                       \
	.host_unmap = host_unmap, .owner = owner, .reach = reach, .write = write_gpu, .read = read_gpu,                \
	.clear = clear, .compile = compile, .load = load, .unload = unload, .occupancy = occupancy, .launch = launch,  \
	.set_word = set_word, .await_word = await_word, .running = running

/* Memory as this device sees it: its own or of another owner. */
struct mapping {
	struct mapping *next;
	const struct loom_memory *memory;
	uint64_t view;
	uint64_t base;  /* own: the address from alloc() */
	int own;        /* made by mem_alloc() */
	int registered; /* by this device: unregister it at the end */
};

/* A kernel hangs, so that calls which wait for it must be avoided; or the context is dead. */
enum { LOST_HUNG = 1, LOST_DEAD };

/* Must be the first member of the plug-in's struct. */
struct gpu {
	const struct gpu_driver *driver;
	const struct loom_host *host;
	const struct gpu_options *options;
	struct rtc compiler;
	char name[24];               /* "cuda:0"; in gpu_doctor(): "cuda" */
	char call[96];               /* the driver function that failed last */
	int number;                  /* of the GPU, as the driver counts */
	char arch[64];               /* "sm_90" */
	char bus[32];                /* PCI address in the format of the driver; "": not reported */
	char model[96], version[32]; /* name of the GPU; version of the driver: "CUDA 13.0" */
	uint64_t memory;             /* bytes of GPU memory */
	char defines[96];            /* lines before composed programs: what dev/NAME.h needs of this GPU */
	int attached;
	struct gpu_limits limits;
	int node; /* NUMA */
	uint32_t workers, lanes, per_block;
	uint32_t watch;       /* threads of a block beside those of its workers */
	uint32_t bound;       /* blocks per multiprocessor that the compiler must make fit ... */
	uint32_t residency;   /* ... and those that fit */
	uint32_t local_bytes; /* of shared memory per worker */
	struct gpu_kernel kernel[LOOM_ENTRY_PROBE + 1]; /* by enum loom_entry */
	struct mapping *mappings;
	struct borrowed *borrowed;    /* memory of other processes that is open */
	struct loom_gpu_words *words; /* host memory */
	uint64_t words_view;
	uint64_t gate;         /* struct loom_gpu_gate, then one stage word per worker */
	struct launch *launch; /* NULL: none */
	int lost;              /* LOST_*; 0: usable */
	int died_of;           /* code of the driver */
	uint32_t nudged;       /* 1: gpu_wait() returns at its next poll */
};

/* kernels = launched or graph: progress of a sample. */
struct chain {
	const struct loom_chain *what;
	char *words;   /* the block of the trigger, at the host's address ... */
	uint64_t view; /* ... and at the GPU's */
	uint64_t most; /* most kernels in the stream at once */
	void *graph;   /* recorded calls; NULL: kernels are launched one by one */
	uint64_t launched, ended;
	uint64_t moved_ns;  /* time of the last progress */
	uint64_t looked_ns; /* time of the last check whether the stream is alive */
};

/* A launch: persistent workers, or a sequence of steps. */
struct launch {
	const struct loom_launch *what;
	struct loom_ctl *ctl; /* the host's address */
	uint32_t count;       /* workers of this launch */
	uint32_t phase;       /* phase of the last ready() or go() */
	uint64_t began_ns;    /* time of go() */
	int stop_passed;      /* the stop flag was copied to the device */
	uint32_t blocks, threads, shared;
	struct chain chain; /* .what NULL: persistent */
};

/* instance.c. gpu_create() allocates `bytes`, which begin with a struct gpu. */
int gpu_create(const struct loom_host *host, const struct gpu_driver *driver, size_t bytes,
	       const struct gpu_options *options, uint32_t instance, uint32_t instances, void **self,
	       struct loom_error *err);
void gpu_destroy(void *self);
/* Every op calls enter() first and leave() last. 0 or an error. */
int gpu_enter(struct gpu *d, struct loom_error *err);
void gpu_leave(struct gpu *d);
/* Fails with the text of code `rc`, and what was tried; NULL: the driver function that failed. */
int gpu_fail(struct gpu *d, struct loom_error *err, int rc, const char *what);
/* A driver call reports that the kernel failed: the context is unusable from now on. */
int gpu_dead(struct gpu *d, int rc, struct loom_error *err);

/* Calls a driver function and records its name if it fails. */
#define GPU_CALL(d, table, function, ...) gpu_called(d, (int)(table)->function(__VA_ARGS__), #function)
int gpu_called(struct gpu *d, int rc, const char *name);

/* Fills a table of functions from a library. Returns NULL, or the name that is missing. */
struct gpu_symbol {
	void *to;
	const char *name;
};
const char *gpu_symbols(void *library, const struct gpu_symbol *symbol, size_t n);

/* shape.c */
int shape_find(struct gpu *d, struct loom_error *err);
/* Again with the compiled program, which may need less. */
int shape_again(struct gpu *d, const struct gpu_kernel *k, uint64_t local_bytes, struct loom_error *err);
/* Dynamic shared memory of a block, with that many bytes per worker. */
uint32_t shape_shared(const struct gpu *d, uint32_t lanes, uint32_t per_block, uint64_t local_bytes);
int gpu_shape(void *self, struct loom_device_shape *shape, struct loom_error *err);
const char *gpu_time_slicing(void *self, char *name, size_t size);

/* program.c */
int gpu_build(void *self, const struct loom_program *program, struct loom_error *err);
int program_probe(struct gpu *d, struct loom_error *err);
void program_finish(struct gpu *d);

/* memory.c. memory_*: between enter() and leave(). */
int gpu_mem_alloc(void *self, uint64_t bytes, uint32_t flags, struct loom_memory *memory, struct loom_error *err);
void gpu_mem_free(void *self, struct loom_memory *memory);
int gpu_mem_map(void *self, const struct loom_memory *memory, struct loom_error *err);
void gpu_mem_unmap(void *self, const struct loom_memory *memory);
int gpu_copy_in(void *self, const struct loom_memory *memory, uint64_t offset, const void *from, uint64_t bytes,
		struct loom_error *err);
int gpu_copy_out(void *self, const struct loom_memory *memory, uint64_t offset, void *to, uint64_t bytes,
		 struct loom_error *err);
int gpu_mem_key(void *self, const struct loom_memory *memory, struct loom_memory_key *key, struct loom_error *err);
int gpu_mem_open(void *self, const struct loom_memory_key *key, uint64_t *at, struct loom_error *err);
void gpu_mem_close(void *self, uint64_t at);
int memory_view(struct gpu *d, const struct loom_segment *segment, uint64_t *view, struct loom_error *err);

/* launch.c */
int gpu_launch(void *self, const struct loom_launch *what, struct loom_error *err);

/* interrupt.c */
int gpu_interrupt(void *self, const struct loom_segment *segment, uint64_t offset, struct loom_interrupt **interrupt,
		  struct loom_error *err);

/* chain.c */
/* 0, or an error with the reason why the program cannot be launched step by step. */
int chain_check(const struct gpu *d, const struct loom_program *program, struct loom_error *err);
int chain_find(struct gpu *d, struct launch *l, struct loom_error *err);
/* With kernels = graph: records what all samples replay; and frees it. */
int chain_record(struct gpu *d, struct launch *l);
void chain_forget(struct gpu *d, struct launch *l);
/* Launches the steps that may start. 1: the sample has ended, 0: not yet, or an error. */
int chain_go_on(struct gpu *d, struct launch *l, struct loom_error *err);
/* Ends all waits of the stream, so that the kernels in it return. Repeat until no kernel runs. */
void chain_release(struct launch *l);

/* wait.c */
int gpu_ready(void *self, uint64_t timeout_ns, struct loom_error *err);
int gpu_go(void *self, struct loom_error *err);
int gpu_wait(void *self, uint64_t timeout_ns, uint64_t *end_ns, struct loom_error *err);
void gpu_wake(void *self);
int gpu_states(void *self, uint32_t *out, uint32_t workers);
int gpu_retire(void *self, uint64_t timeout_ns, struct loom_error *err);

/* Ops of a device plug-in, except create and doctor. */
#define GPU_DEVICE_OPS                                                                                                 \
	.destroy = gpu_destroy, .shape = gpu_shape, .mem_alloc = gpu_mem_alloc, .mem_free = gpu_mem_free,              \
	.mem_map = gpu_mem_map, .mem_unmap = gpu_mem_unmap, .mem_key = gpu_mem_key, .mem_open = gpu_mem_open,          \
	.mem_close = gpu_mem_close, .build = gpu_build, .launch = gpu_launch, .ready = gpu_ready, .go = gpu_go,        \
	.wait = gpu_wait, .wake = gpu_wake, .states = gpu_states, .retire = gpu_retire, .copy_in = gpu_copy_in,        \
	.copy_out = gpu_copy_out, .interrupt = gpu_interrupt, .time_slicing = gpu_time_slicing

/* doctor.c: takes a zeroed struct of the plug-in. */
void gpu_doctor(struct gpu *d, const struct gpu_driver *driver, const struct loom_host *host, struct loom_doctor *out);

#endif
