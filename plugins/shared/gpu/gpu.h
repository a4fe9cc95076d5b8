/* SPDX-License-Identifier: Apache-2.0 */
/* What the devices for GPUs have in common: persistent workers composed at run time, between a table of
 * the vendor's driver calls (struct gpu_driver) below and the core's table of device ops above. Each
 * device plug-in compiles these files into itself. */
#ifndef GPULOOM_GPU_H
#define GPULOOM_GPU_H

#include <gpuloom/device.h>

#include "../compose/compose.h"
#include "../compose/gpu.dev.h"
#include "cache.h"
#include "rtc.h"

enum { WORKER_BLOCK, WORKER_WARP };
enum { COMPILE_CACHED, COMPILE_ALWAYS };
enum { ISOLATION_THREAD, ISOLATION_PROCESS };
enum { KERNELS_PERSISTENT, KERNELS_LAUNCHED, KERNELS_GRAPH };

/* The options that every such device has; a plug-in's own follow behind. */
struct gpu_options {
	int64_t gpu;
	uint32_t workers, lanes, worker, max_registers, nesting, compile, isolation, kernels;
	const char *arch, *cache;
	uint32_t group; /* warps or waves: workers per block, with worker = warp or wave */
	const char *compiler;
	uint32_t carveout; /* CUDA: percent of a multiprocessor's memory that is shared memory */
};
extern const char *const gpu_compile_choices[], *const gpu_isolation_choices[], *const gpu_kernels_choices[];
#define GPU_OPTIONS                                                                                \
	LOOM_OPT(struct gpu_options, gpu, LOOM_OPT_I64, "auto", \
			 "Which GPU, by the driver's number. auto: the number of the engine, so that :1 is GPU 1; a " \
			 "further rank takes the next ones, and ranks share GPUs where these are too few.", \
			 .min = -1, .max = 1023, .section = "device.gpu", .flags = LOOM_OPT_AUTO), \
	LOOM_OPT(struct gpu_options, workers, LOOM_OPT_U32, "auto", \
			 "Workers of the device. auto: as many as the GPU keeps resident at once. With more, the " \
			 "compiler spills registers until they fit.", .section = "device.gpu", .flags = LOOM_OPT_AUTO), \
	LOOM_OPT(struct gpu_options, max_registers, LOOM_OPT_U32, "128", \
			 "workers = auto: registers per thread that the program may use. A small limit lets more " \
			 "workers be resident and makes the compiler spill (--log info shows both). 0: no limit.", \
			 .max = 255, .section = "device.gpu"), \
	LOOM_OPT(struct gpu_options, nesting, LOOM_OPT_U32, "0", \
			 "How deep tasks may run inside each other when queues are full; each level takes stack of " \
			 "every thread. 0: they go to the overflow list in memory.", \
			 .max = 64, .section = "device.gpu"), \
	LOOM_OPT(struct gpu_options, isolation, LOOM_OPT_ENUM, "thread", \
			 "thread: this process drives the GPU. process: a child drives it, so that a kernel that " \
			 "hangs can be ended; all GPUs of a vendor must be set to the same.", \
			 .choices = gpu_isolation_choices, .section = "device.gpu"), \
	LOOM_OPT(struct gpu_options, kernels, LOOM_OPT_ENUM, "persistent", \
			 "persistent: one kernel runs all samples. launched: each step of the workload is a kernel, " \
			 "with trigger gds or hdn. graph (CUDA): all steps are one graph, with trigger gds.", \
			 .choices = gpu_kernels_choices, .section = "device.gpu"), \
	LOOM_OPT(struct gpu_options, cache, LOOM_OPT_PATH, "", \
			 "Folder for compiled programs. Empty: $XDG_CACHE_HOME/gpuloom or ~/.cache/gpuloom.", \
			 .flags = LOOM_OPT_TRUST, .section = "device.gpu"), \
	LOOM_OPT(struct gpu_options, compile, LOOM_OPT_ENUM, "cached", \
			 "cached: takes a program that was compiled before from the cache. always: compiles it again.", \
			 .choices = gpu_compile_choices, .section = "device.gpu")
/* An option whose name differs from its field's: what vendors call by other names. */
#define GPU_OPTION_AS(field, name_, ...)                                                           \
	{                                                                                          \
		.name = name_, .offset = offsetof(struct gpu_options, field),                      \
		.size = sizeof(((struct gpu_options *)0)->field), __VA_ARGS__                      \
	}

/* What the model of GPU offers. */
struct gpu_limits {
	int multiprocessors;
	int blocks, threads, registers, shared; /* per multiprocessor */
	int shared_per_block, shared_reserved;
	int threads_per_block;
	int wave; /* threads that run in step */
	int words; /* its streams can set and await words of 64 bits: set_word(), await_word() */
	int parts; /* of a multiprocessor, each with registers of its own for whole waves */
	int time_slicing; /* the driver says that kernels of several processes take turns on this GPU */
};

/* A compiled program on the GPU. */
struct gpu_kernel {
	void *module; /* NULL: none */
	void *function;
	uint64_t launch; /* struct loom_gpu_launch */
	struct resources resources;
	size_t launch_bytes;
	int stepped; /* launched with the number of a step; else it is persistent */
	int registers, shared; /* as the driver tells: per thread; static, per block */
};

#define GPU_HANDLE 64

/* Which operations on memory of the host, or of another GPU, are atomic towards its owner, of those that gpuloom
 * needs. */
struct gpu_atomics {
	int known;              /* the driver can tell */
	int native;             /* all of them are */
	int add, cas, exchange; /* 64-bit; when known */
};

struct gpu;

/* A composed program, and what it is to be linked with: IR of this device's formats. */
struct gpu_program {
	struct loom__text text;
	const struct loom_program_ir *const *ir; /* [irs] */
	uint32_t irs;
};

/* A vendor's driver. Calls return its own codes, 0 for success (open and find: LOOM_E*); the last that
 * failed left its name in `call`. From `alloc` on they are made between enter() and leave(). Addresses
 * are the GPU's. */
struct gpu_driver {
	const char *name;   /* "cuda": devices are "cuda:0", options stand in [device.cuda] */
	const char *vendor; /* "NVIDIA" */
	const char *library;      /* what open() loads: "driver" */
	const char *fix;         /* what to do when no GPU is seen ... */
	const char *atomics_mend; /* ... and when the driver does not tell about host_atomics() */
	const char *call, *call_mend; /* ... and when this call fails, a clause; NULL: none */
	const char *turns_mend; /* what lets kernels of several processes run side by side; NULL: not known */
	const char *const *dialect; /* compose_cuda */
	const struct rtc_kind *compiler;
	int out_of_memory; /* the code that says so */
	int most_registers; /* that a thread can have */
	int watches;       /* a block can have a wave besides its workers' */
	int ir;		   /* formats that compile() links with: enum compose_format ... */
	const char *ir_text; /* ... in words; NULL: none */
	int lanes_shared;  /* bytes per block that dev/NAME.h takes of shared memory for lanes to meet ... */
	int lanes_dynamic; /* ... and how many of them are dynamic */

	/* Loads the driver's library. LOOM_EUNAVAIL with what is missing and what to do. */
	int (*open)(struct gpu *d, struct loom_error *err);
	int (*count)(struct gpu *d, int *count);
	/* GPU `number` from now on: its name and limits. LOOM_EUNAVAIL when it cannot run workers. */
	int (*find)(struct gpu *d, int number, struct loom_error *err);
	void (*host_atomics)(const struct gpu *d, struct gpu_atomics *out);
	int (*peers)(struct gpu *d, int from, int to, int *can);
	/* Of `from` on memory of `to`. NULL: the driver does not tell. */
	void (*peer_atomics)(const struct gpu *d, int from, int to, struct gpu_atomics *out);
	/* A context and two streams. detach() takes down what attach() made, all or a part. */
	int (*attach)(struct gpu *d);
	void (*detach)(struct gpu *d);
	const char *(*text)(const struct gpu *d, int rc); /* in a buffer of the calling thread */
	int (*enter)(struct gpu *d);
	void (*leave)(struct gpu *d);

	/* Memory of the GPU: what workers and the host's copies both touch while a kernel runs. */
	int (*alloc)(struct gpu *d, uint64_t bytes, uint64_t *at);
	void (*free)(struct gpu *d, uint64_t at);
	/* Memory of the host that the GPU sees, and sees change. */
	int (*host_alloc)(struct gpu *d, uint64_t bytes, void **host, uint64_t *view);
	void (*host_free)(struct gpu *d, void *host);
	/* Memory of others: `ours` when this call registered it, so that host_unmap() must be called. `fd`: where
	 * another process finds it; -1: it cannot. */
	int (*host_map)(struct gpu *d, void *host, int fd, uint64_t bytes, uint64_t *view, int *ours);
	void (*host_unmap)(struct gpu *d, void *host);
	/* Memory of the GPU that other processes can have, too: sizes are rounded up; share() gives a
	 * descriptor, import() makes it memory of this process, unshare() takes either back. NULL: there is none. */
	int (*share)(struct gpu *d, uint64_t *bytes, uint64_t *at, int *fd);
	int (*import)(struct gpu *d, int fd, uint64_t *bytes, uint64_t *at);
	void (*unshare)(struct gpu *d, uint64_t at, uint64_t bytes);
	/* What alloc() gave, for processes that have GPUs of their own: a handle of GPU_HANDLE bytes; their memory by it;
	 * the end of that. locate(): this process's number of the GPU at `bus`. */
	int (*lend)(struct gpu *d, uint64_t at, void *handle);
	int (*borrow)(struct gpu *d, const void *handle, uint64_t *at);
	void (*give_back)(struct gpu *d, uint64_t at);
	int (*locate)(struct gpu *d, const char *bus, int *number);
	int (*owner)(struct gpu *d, uint64_t at, int *number); /* which GPU's it is */
	int (*reach)(struct gpu *d, uint64_t at, int number, int *can); /* from now on, if it can */
	/* Copies beside the running kernel, done when they return. */
	int (*write)(struct gpu *d, uint64_t to, const void *from, uint64_t bytes);
	int (*read)(struct gpu *d, void *to, uint64_t from, uint64_t bytes);
	int (*clear)(struct gpu *d, uint64_t at, uint64_t bytes);

	/* What tells compiled programs of one compiler and one choice of options from others. */
	void (*identify)(const struct gpu *d, struct loom__text *key);
	int (*compile)(struct gpu *d, const struct gpu_program *program, struct cached *out,
		       struct loom_error *err);
	/* With the stack that its nested tasks need. Of `k`, module is set as soon as it must be unloaded. */
	int (*load)(struct gpu *d, const struct cached *code, struct gpu_kernel *k);
	void (*unload)(struct gpu *d, struct gpu_kernel *k);
	/* Blocks of so many threads and bytes of dynamic shared memory that a multiprocessor holds at once. */
	int (*occupancy)(struct gpu *d, const struct gpu_kernel *k, int threads, uint64_t shared,
			 int *blocks);
	/* Cooperative, which refuses a grid that is not resident as a whole; a stepped kernel with its number, behind what
	 * was launched before. */
	int (*launch)(struct gpu *d, const struct gpu_kernel *k, uint32_t blocks, uint32_t threads,
		      uint32_t shared, uint64_t step);
	/* Behind what was launched before, and before what will be: the word becomes `value`, and all that kernels wrote is
	 * seen by who sees that; or it is awaited until it is `value` or more, as a signed number. */
	int (*set_word)(struct gpu *d, uint64_t at, uint64_t value);
	int (*await_word)(struct gpu *d, uint64_t at, uint64_t value);
	int (*running)(struct gpu *d, int *running);
	/* Between record() and recorded() the three calls above are kept, not done; replay() does them all, as often as it is
	 * called. NULL: there is nothing of the kind. */
	int (*record)(struct gpu *d);
	int (*recorded)(struct gpu *d, void **graph);
	int (*replay)(struct gpu *d, void *graph);
	void (*forget)(struct gpu *d, void *graph);
	/* What a thread of the host sleeps on until a word of the GPU's memory is `value` or more, as a signed number. NULL: there
	 * are no interrupts. bell_await() is called by other threads than the core's, each with a bell of its own, and not between
	 * enter() and leave(). */
	int (*bell_open)(struct gpu *d, void **bell);
	void (*bell_close)(struct gpu *d, void *bell);
	int (*bell_await)(struct gpu *d, void *bell, uint64_t at, uint64_t value);
	/* Copies by such a thread, in the bell's stream: to the GPU, or from it where `to` is not NULL; and their end. */
	int (*bell_copy)(struct gpu *d, void *bell, uint64_t at, void *to, const void *from, uint64_t bytes);
	int (*bell_settle)(struct gpu *d, void *bell);
};

/* The calls of a table whose functions have the names of its fields, but for C's own. */
#define GPU_DRIVER_CALLS \
	.open = open_driver, .count = count_gpus, .find = find, .host_atomics = host_atomics, \
	.peers = peers, .attach = attach, .detach = detach, .text = text, .enter = enter, \
	.leave = leave, .alloc = allocate, .free = release, .host_alloc = host_alloc, \
	.host_free = host_free, .host_map = host_map, .host_unmap = host_unmap, .owner = owner, \
	.reach = reach, .write = write_gpu, .read = read_gpu, .clear = clear, \
	.compile = compile, .load = load, .unload = unload, .occupancy = occupancy, \
	.launch = launch, .set_word = set_word, .await_word = await_word, .running = running

/* Memory of another owner as this device sees it, or its own. */
struct mapping {
	struct mapping *next;
	const struct loom_memory *memory;
	uint64_t view;
	uint64_t base; /* own: what alloc() gave */
	uint64_t shared; /* bytes, as share() rounded them; 0: no memory of several processes */
	int own;       /* made by mem_alloc */
	int registered; /* by us: to be unregistered */
};

/* A kernel did not leave, so that what would wait for it must not be called; or the context is dead. */
enum { LOST_HUNG = 1, LOST_DEAD };

/* First member of the plug-in's own. */
struct gpu {
	const struct gpu_driver *driver;
	struct remote *remote; /* the process that makes the driver's calls; NULL: this one */
	const struct loom_host *host;
	const struct gpu_options *options;
	struct rtc compiler;
	char name[24]; /* "cuda:0"; of gpu_doctor(): "cuda" */
	char call[96]; /* the driver's function that failed */
	int number;    /* of the GPU, by the driver's count */
	char arch[64]; /* "sm_90" */
	char bus[32];  /* PCI, as the driver writes it; "" when it does not tell */
	char model[96], version[32]; /* the GPU's name; the driver's: "CUDA 13.0" */
	uint64_t memory;	     /* bytes that the GPU has */
	char defines[96]; /* lines in front of composed programs: what dev/NAME.h must know of this GPU */
	int attached;
	struct gpu_limits limits;
	int node; /* NUMA */
	uint32_t workers, lanes, per_block;
	uint32_t watch;       /* threads of a block besides its workers': those that the program wants */
	uint32_t bound;       /* blocks per multiprocessor that the compiler must let fit ... */
	uint32_t residency;   /* ... and those that do */
	uint32_t local_bytes; /* of shared memory that a worker may have */
	struct gpu_kernel kernel[LOOM_ENTRY_PROBE + 1]; /* by enum loom_entry */
	struct mapping *mappings;
	struct borrowed *borrowed; /* memory of other processes that is open */
	struct loom_gpu_words *words; /* host memory */
	uint64_t words_view;
	uint64_t gate; /* struct loom_gpu_gate, then one stage word per worker */
	struct launch *launch; /* NULL: none */
	int lost;              /* LOST_*; 0: usable */
	int died_of;           /* what the driver said; 0: its process was killed */
	uint32_t nudged;       /* the next look of gpu_wait() ends it */
};

/* kernels = launched or graph: a sample on its way. */
struct chain {
	const struct loom_chain *what;
	char *words;   /* the trigger's block as the host sees it ... */
	uint64_t view; /* ... and the GPU */
	uint64_t most; /* kernels in the stream at once */
	void *graph;   /* all of them; NULL: they are launched one by one */
	uint64_t launched, ended;
	uint64_t moved_ns;  /* when either last grew */
	uint64_t looked_ns; /* when the stream was last asked whether its kernels live */
};

/* One launch of persistent workers, or what is launched step by step. */
struct launch {
	const struct loom_launch *what;
	struct loom_ctl *ctl; /* the host's view */
	uint32_t count;       /* workers of this launch */
	uint32_t phase;       /* the last that ready() or go() saw */
	uint64_t began_ns;    /* when go() was called */
	int stop_passed;      /* the stop word is in the device's copy */
	uint32_t blocks, threads, shared;
	struct chain chain; /* .what NULL: persistent */
};

/* instance.c. gpu_create() makes a `bytes` long struct that begins with a struct gpu. */
int gpu_create(const struct loom_host *host, const struct gpu_driver *driver, size_t bytes,
	       const struct gpu_options *options, uint32_t instance, uint32_t instances, void **self,
	       struct loom_error *err);
void gpu_destroy(void *self);
/* Every op begins with enter() and ends with leave(). 0 or an error. */
int gpu_enter(struct gpu *d, struct loom_error *err);
void gpu_leave(struct gpu *d);
/* Fails with the driver's words for `rc`, and what was tried: NULL: the call that failed. */
int gpu_fail(struct gpu *d, struct loom_error *err, int rc, const char *what);
/* A driver call says that the kernel failed: such errors stay with the context. */
int gpu_dead(struct gpu *d, int rc, struct loom_error *err);

/* One of the driver's calls: its code; its name is kept when it fails. */
#define GPU_CALL(d, table, function, ...)                                                          \
	gpu_called(d, (int)(table)->function(__VA_ARGS__), #function)
int gpu_called(struct gpu *d, int rc, const char *name);

/* Fills a table of functions from a library: NULL, or the name that it lacks. */
struct gpu_symbol {
	void *to;
	const char *name;
};
const char *gpu_symbols(void *library, const struct gpu_symbol *symbol, size_t n);

/* shape.c */
int shape_find(struct gpu *d, struct loom_error *err);
/* With the program, which may leave room for more. */
int shape_again(struct gpu *d, const struct gpu_kernel *k, uint64_t local_bytes, struct loom_error *err);
/* Dynamic shared memory of a block whose workers have so many bytes each. */
uint32_t shape_shared(const struct gpu *d, uint32_t lanes, uint32_t per_block, uint64_t local_bytes);
int gpu_shape(void *self, struct loom_device_shape *shape, struct loom_error *err);
const char *gpu_turns(void *self, char *name, size_t size);

/* program.c */
int gpu_build(void *self, const struct loom_program *program, struct loom_error *err);
int program_probe(struct gpu *d, struct loom_error *err);
void program_finish(struct gpu *d);

/* memory.c. Within enter() and leave(): memory_*. */
int gpu_mem_alloc(void *self, uint64_t bytes, uint32_t flags, struct loom_memory *memory,
		  struct loom_error *err);
void gpu_mem_free(void *self, struct loom_memory *memory);
int gpu_mem_map(void *self, const struct loom_memory *memory, struct loom_error *err);
void gpu_mem_unmap(void *self, const struct loom_memory *memory);
int gpu_copy_in(void *self, const struct loom_memory *memory, uint64_t offset, const void *from,
		uint64_t bytes, struct loom_error *err);
int gpu_copy_out(void *self, const struct loom_memory *memory, uint64_t offset, void *to,
		 uint64_t bytes, struct loom_error *err);
int gpu_mem_key(void *self, const struct loom_memory *memory, struct loom_memory_key *key, struct loom_error *err);
int gpu_mem_open(void *self, const struct loom_memory_key *key, uint64_t *at, struct loom_error *err);
void gpu_mem_close(void *self, uint64_t at);
int memory_view(struct gpu *d, const struct loom_segment *segment, uint64_t *view,
		struct loom_error *err);

/* launch.c */
int gpu_launch(void *self, const struct loom_launch *what, struct loom_error *err);

/* alarm.c */
int gpu_alarm(void *self, const struct loom_segment *segment, uint64_t offset, struct loom_interrupt **alarm,
	      struct loom_error *err);

/* chain.c */
/* Whether the program can be launched step by step: 0, or the reason in words. */
int chain_check(const struct gpu *d, const struct loom_program *program, struct loom_error *err);
int chain_find(struct gpu *d, struct launch *l, struct loom_error *err);
/* With kernels = graph: before the first sample, what all samples replay; and its end. */
int chain_record(struct gpu *d, struct launch *l);
void chain_forget(struct gpu *d, struct launch *l);
/* Launches what may be by now: 1 when the sample is over, 0 when it is not, or an error. */
int chain_go_on(struct gpu *d, struct launch *l, struct loom_error *err);
/* Ends what the stream awaits: what is behind it leaves at once. To be repeated until nothing runs. */
void chain_release(struct launch *l);

/* wait.c */
int gpu_ready(void *self, uint64_t timeout_ns, struct loom_error *err);
int gpu_go(void *self, struct loom_error *err);
int gpu_wait(void *self, uint64_t timeout_ns, uint64_t *end_ns, struct loom_error *err);
void gpu_wake(void *self);
int gpu_states(void *self, uint32_t *out, uint32_t workers);
int gpu_retire(void *self, uint64_t timeout_ns, struct loom_error *err);

/* The ops of a device plug-in, but for create and doctor. */
#define GPU_DEVICE_OPS                                                                             \
	.destroy = gpu_destroy, .shape = gpu_shape, .mem_alloc = gpu_mem_alloc,                    \
	.mem_free = gpu_mem_free, .mem_map = gpu_mem_map, .mem_unmap = gpu_mem_unmap,              \
	.mem_key = gpu_mem_key, .mem_open = gpu_mem_open, .mem_close = gpu_mem_close,              \
	.build = gpu_build, .launch = gpu_launch, .ready = gpu_ready, .go = gpu_go,                \
	.wait = gpu_wait, .wake = gpu_wake, .states = gpu_states, .retire = gpu_retire, .copy_in = gpu_copy_in, .copy_out = gpu_copy_out, \
	.interrupt = gpu_alarm, .time_slicing = gpu_turns

/* doctor.c: with a zeroed struct of the plug-in's own. */
void gpu_doctor(struct gpu *d, const struct gpu_driver *driver, const struct loom_host *host,
		struct loom_doctor *out);

#endif
