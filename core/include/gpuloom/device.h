/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: engines that run workers and have memory. */
#ifndef GPULOOM_DEVICE_H
#define GPULOOM_DEVICE_H

#include "plugin.h"
#include "task.h"
#include "trigger.h"
#ifndef LOOM_DEVICE_COMPILE
#include <string.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct loom_interrupt;
struct loom_comm_view;
struct loom_comm_call;

/* Receives the rows of `gpuloom doctor`. `state` is "ok", "limited" or "no". row() copies the strings. */
struct loom_doctor {
	size_t size;
	void *ctx;
	void (*row)(struct loom_doctor *out, const char *topic, const char *state, const char *found,
		    const char *fix);
};

/* Receives facts of a device's hardware. row() copies the strings. `text` is the value, or NULL if `number` is the value. */
struct loom_facts {
	size_t size;
	void *ctx;
	void (*row)(struct loom_facts *out, const char *name, uint32_t flags, const char *text, double number);
};
enum {
	LOOM_FACT_FIXED = 1,   /* must be equal in results that are compared; others change during a run */
	LOOM_FACT_UNKNOWN = 2, /* `text` is the reason why the value is not known */
};

/* Memory that devices share. A device allocates its own memory, and a transport allocates that of the host. */
struct loom_memory {
	size_t size;
	uint64_t bytes;
	int fd;          /* memfd or dma-buf by which other processes can map it; -1: none */
	int32_t device;  /* index of the device that owns it, set by the transport; -1: the host */
	void *host;      /* address in the host process; NULL: the host cannot access it */
	uint64_t handle; /* for the owner's use; on a device with streams, its address of the memory */
};
/* Copies beside workers: out of a segment to host memory, into a segment from host memory, and from a segment to memory
 * of another device, at an address from mem_open(). */
enum loom_copy { LOOM_COPY_OUT, LOOM_COPY_IN, LOOM_COPY_TO, LOOM_COPIES };
enum {
	LOOM_MEMORY_HOST = 1,  /* for mem_alloc(): the host can access the memory while workers run */
	LOOM_MEMORY_PRIVATE = 2, /* a segment that no device but its owner maps */
	LOOM_MEMORY_TASKS = 4, /* a segment with the initial tasks, which workers only read */
};

/* A part of a memory. A `loom_ref` addresses bytes in it. */
struct loom_segment {
	const struct loom_memory *memory;
	uint64_t offset, bytes;
	int32_t owner; /* index of the device that owns it; -1: the stack */
	uint32_t flags; /* LOOM_MEMORY_* */
	uint64_t reserved[2]; /* 0; see struct loom_opt */
};
#define LOOM_MAX_SEGMENTS 320
#define LOOM_SEGMENT_REACHES(segment, device)                                                      \
	(!((segment)->flags & LOOM_MEMORY_PRIVATE) || (segment)->owner == (int32_t)(device))

/* Device code of the embedding program, as source text. */
struct loom_program_source {
	const char *file; /* file name for messages of the compiler */
	const char *text;
};

/* Compiled task functions of the embedding program. dev/ir.h describes them. */
struct loom_program_ir {
	const char *file; /* file name for messages */
	const void *data; /* content of the file, and a NUL byte */
	uint64_t bytes;
	const uint32_t *tag; /* [tags]; tags of the functions in `data` */
	uint32_t tags;
	uint32_t reserved;
};

/* The device code that a device composes. Plug-in pointers are NULL for kinds that are not selected. */
struct loom_program {
	size_t size;
	const struct loom_layout *layout;
	const struct loom_plugin *const *policy; /* [LOOM_KINDS_MAX]; by kind: the selected plug-ins */
	/* All task functions by tag: first those of the workload, then those of the embedding program. If `fn` is NULL,
	 * the function is in IR, or in a source, where LOOM_TAG_<name> is its tag. */
	const struct loom_task_entry *task;
	uint32_t tasks;
	uint32_t traced; /* 1: every launch has a trace; 0: no launch has one */
	const char *constants; /* #define lines for device code; NULL: none */
	uint64_t local_bytes;  /* scratchpad memory per worker that policies and task functions need, in bytes */
	const struct loom_program_source *source;
	uint32_t sources;
	uint32_t irs;
	const struct loom_program_ir *ir; /* [irs]; each device uses the IR for its kind */
	uint32_t registers; /* registers per thread of a GPU that task functions should have; 0: any number */
	uint32_t reserved;
};

enum loom_entry {
	LOOM_ENTRY_WORK = 1, /* the scheduler's run(), or the workload's kernel() */
	LOOM_ENTRY_PROBE,    /* the coherence probe of dev/probe.h, with one worker per device */
};

/* Hooks of a policy. They are called in each address space that runs workers, to set up userfaultfd, signal handlers or
 * threads there. A CPU device with isolation = process calls them in its child process. */
struct loom_attachment {
	void *self;
	uint32_t kind; /* enum loom_kind of the policy whose blocks `space` describes */
	uint32_t reserved;
	/* Called before the first worker starts. The hook may start threads. An error ends the launch. */
	int (*attach)(void *self, const struct loom_space *space, struct loom_error *err);
	/* One thread of the device calls this before every sample, while no worker of any device runs. */
	void (*ready)(void *self, uint32_t device);
	void (*detach)(void *self, uint32_t device); /* called after the last worker has left, except if the process
						      * died */
	void *reserved2[2]; /* NULL; see struct loom_opt */
};

/* A sample as a chain of kernels. Kernel n executes step(n) of the workload, for n from 0. After each kernel, the
 * trigger sends what the kernel has fired. The next kernel begins when the data that it reads have arrived. */
struct loom_chain {
	size_t size;
	uint64_t steps;
	loom_ref words; /* the trigger's block for the stack; the offsets in `edge` refer to this block */
	struct loom_edge edge;
	/* The op awaits() of struct loom_workload_ops. */
	uint32_t (*awaits)(void *self, const struct loom_layout *layout, uint64_t n, struct loom_await *out);
	void *self;
};

enum {
	/* If a sample begins by GO without READY, workers that are still asleep may miss the whole sample. So before
	 * any worker can start, the device calls the detector's idle() for all workers. Each worker that wakes calls
	 * busy(). */
	LOOM_LAUNCH_LATE = 1,
	/* The launch lasts from run to run of an embedding program. Between samples, it runs no code that takes time or
	 * memory bandwidth from other programs. Before each sample, the device carries out `reset`, so that it needs no
	 * copy from the host. A sample begins by GO without READY, or by READY, muster(), ready() and GO. Only devices
	 * with LOOM_SHAPE_KEEPS get this flag. */
	LOOM_LAUNCH_KEPT = 2,
	/* Experimental. Only with LOOM_LAUNCH_KEPT. What `reset` writes is the same for all numbers of initial tasks,
	 * and no other device takes part. So the workers may reset memory at the end of a sample, if its result is not wanted. */
	LOOM_LAUNCH_QUICK = 4,
	/* Experimental. Only with LOOM_LAUNCH_QUICK. The scheduler can run small samples: LOOM_NEED_SMALL. */
	LOOM_LAUNCH_SMALL = 8,
};

/* A part of what init() of policies writes: `words` words of 32 bits, each with `value`, from `at` on. */
struct loom_reset {
	loom_ref at;
	uint32_t value, words;
};

/* A launch of persistent workers. All pointers are valid until retire() returns. The control words have their contents
 * at launch(). Registries, blocks of policies and initial tasks have theirs at LOOM_PHASE_GO(n): the core may write them
 * before each sample, and if the host cannot access the memory, it fills the memory by copy_in() while the workers
 * exist. So workers read registries and blocks at the start of each sample, and launch() does not read them. */
struct loom_launch {
	size_t size;
	uint32_t entry;  /* enum loom_entry */
	uint32_t device; /* index of this device in the layout */
	const struct loom_layout *layout;
	const struct loom_segment *segment; /* [segments]; the memory of the stack; index 0 is unused */
	uint32_t segments;
	uint32_t flags;    /* LOOM_LAUNCH_* */
	loom_ref ctl;      /* the control words: struct loom_ctl */
	loom_ref counters; /* struct loom_counters for each worker of the stack */
	loom_ref initial;  /* the initial set: array of struct loom_task; 0: none */
	loom_ref probe;    /* struct loom_probe, for LOOM_ENTRY_PROBE */
	/* [LOOM_KINDS_MAX]; by kind: */
	const loom_ref *global;           /* the policy's block for the stack; 0: none */
	const loom_ref *on_device;        /* the policy's block for this device; 0: none */
	const loom_ref *registry;         /* loom_ref[workers]: this device's copy of the registry */
	const uint64_t *local_bytes;      /* private bytes per worker, zeroed before every sample */
	const struct loom_attachment *attachment; /* [attachments]; called in this order; hooks may be NULL */
	uint32_t attachments;
	uint32_t reserved2;
	loom_ref trace;       /* struct loom_trace for each worker of the stack; 0: no trace */
	uint64_t trace_bytes; /* distance in bytes between the buffers of two workers */
	const struct loom_chain *chain; /* NULL: workload or trigger do not support steps */
	/* Only with LOOM_LAUNCH_KEPT. `reset` is an array of struct loom_reset[resets] in memory of this device.
	 * `tasks` is where the host writes the initial tasks, which the device copies to `initial` before each sample.
	 * If `tasks` is 0, the tasks are already in place. */
	loom_ref reset;
	uint64_t resets;
	loom_ref tasks;
};

/* Counts of the samples in streams of the program. Samples of graphs are counted by `replayed`, and not by `ended`. */
struct loom_enqueued {
	uint64_t ended, replayed;
	uint64_t wrong; /* samples in which the sum of LOOM_TALLY() was not the number of initial tasks */
	uint64_t ns, initial_tasks; /* duration and number of initial tasks of the last sample */
};

/* Bits of loom_plugin.caps for devices. */
enum {
	LOOM_CAP_DEVICE_IS_CPU = 1, /* the device runs `dev->cpu` tables, and task functions of the embedding program */
	/* the clock is virtual; ranks are threads of one process, and share the clock */
	LOOM_CAP_DEVICE_IS_VIRTUAL = 2,
};

/* One thread of the core calls all ops, also of extensions, unless stated otherwise. All up to `retire` are mandatory. */
struct loom_device_ops {
	size_t size;
	/* Opens engine number `instance` ("cpu:1" is instance 1). `instances` is the number of engines of this plug-in
	 * that the stack uses. `opts` has the values of [device.NAME], which values of [device.NAME.instance]
	 * override. */
	int (*create)(const struct loom_host *host, const void *opts, uint32_t instance,
		      uint32_t instances, void **self, struct loom_error *err);
	void (*destroy)(void *self);
	/* Fills in workers, lanes, numa_node, local_bytes and kind. The core calls this after create() and after
	 * build(). It uses the second answer, because on a GPU the code determines how many workers are resident. */
	int (*shape)(void *self, struct loom_device_shape *shape, struct loom_error *err);
	/* Allocates zeroed, page-aligned memory on this device. `flags` are LOOM_MEMORY_*. Without LOOM_MEMORY_HOST, the
	 * memory may have no host address; then copy_in() and copy_out() are mandatory. */
	int (*mem_alloc)(void *self, uint64_t bytes, uint32_t flags, struct loom_memory *memory,
			 struct loom_error *err);
	void (*mem_free)(void *self, struct loom_memory *memory);
	/* Called before launch. Makes the memory of another owner accessible to this device, until mem_unmap() with the
	 * same pointer. Returns LOOM_EUNAVAIL with the reason if the two devices cannot share memory. */
	int (*mem_map)(void *self, const struct loom_memory *memory, struct loom_error *err);
	void (*mem_unmap)(void *self, const struct loom_memory *memory);
	/* Composes the device code. Called before the first launch with LOOM_ENTRY_WORK. */
	int (*build)(void *self, const struct loom_program *program, struct loom_error *err);
	/* Starts the workers. They wait for ctl->phase. Registries and blocks may still be empty (struct loom_launch). */
	int (*launch)(void *self, const struct loom_launch *launch, struct loom_error *err);
	/* Called after the core has stored LOOM_PHASE_READY(n). Returns 0 when all workers are awake and poll for
	 * LOOM_PHASE_GO(n), or LOOM_ETIMEDOUT. */
	int (*ready)(void *self, uint64_t timeout_ns, struct loom_error *err);
	/* Called after the core has stored LOOM_PHASE_GO(n). Rings a doorbell, if the workers need one. */
	int (*go)(void *self, struct loom_error *err);
	/* Waits for the end of the sample. Returns 0 when the last worker has left, with this time in *end_ns: on
	 * CLOCK_MONOTONIC, or the duration of the sample if the device has a clock(). Returns LOOM_EAGAIN if timeout_ns
	 * have passed, if a signal or wake() came, or if a worker left because `stop` was set. Returns LOOM_EDIED if
	 * the sample cannot end. If ctl->awaited is 1 and there is no workload, because the program has submitted
	 * tasks, the call may execute a worker itself. While it does, neither timeout_ns nor signals end the call, and
	 * wake() stops the sample. */
	int (*wait)(void *self, uint64_t timeout_ns, uint64_t *end_ns, struct loom_error *err);
	/* Ends the launch after the core has stored LOOM_PHASE_RETIRE (and `stop`, if a sample is in progress). Waits
	 * up to timeout_ns, then uses force. Afterwards nothing of the launch remains. After LOOM_ETIMEDOUT, threads
	 * that cannot be killed still use the launch's memory, so it must stay. retire() may be called again after
	 * LOOM_ETIMEDOUT. */
	int (*retire)(void *self, uint64_t timeout_ns, struct loom_error *err);
	/* Copy between host bytes and memory that the host cannot access. If mem_key() does not return LOOM_ENOTSUP,
	 * another thread may call these ops while workers run. NULL: the host can access all memory. */
	int (*copy_in)(void *self, const struct loom_memory *memory, uint64_t offset, const void *from,
		       uint64_t bytes, struct loom_error *err);
	int (*copy_out)(void *self, const struct loom_memory *memory, uint64_t offset, void *to,
			uint64_t bytes, struct loom_error *err);
	/* Reports what this machine offers to devices of this plug-in, and how to get what is missing. Needs no
	 * instance. */
	void (*doctor)(const struct loom_host *host, struct loom_doctor *out);
	/* Any thread or signal handler may call this. It ends the wait() in progress early. If no wait() is in
	 * progress, it ends the next wait() early. NULL: a stop request of another thread takes effect when wait()
	 * reaches its timeout_ns. */
	void (*wake)(void *self);
	/* Called between go() and the end of a sample. Sets out[i] to the enum loom_worker_state of worker i of this
	 * device. NULL: the core reads the states from the workers' counters. */
	int (*states)(void *self, uint32_t *out, uint32_t workers);
	/* Called after a failed sample, while its launch exists. Writes to `text` the setting that repeats exactly this
	 * sample, and returns its length. Returns 0 if no setting does. NULL: no setting does. */
	int (*repeat)(void *self, char *text, size_t size);
	/* Returns the virtual clock. All devices of a stack, and all ranks with the same host->job, have the same
	 * clock. It is valid until destroy(). NULL: the device uses the clock of the host. */
	const struct loom_clock *(*clock)(void *self);
	/* What the device has beyond these ops: a list that ends with a row {NULL, NULL}. It is constant. NULL: nothing. */
	const struct loom_extension *extensions;
};

/* ---- extensions ------------------------------------------------------------------------------- */

/* Tables of further ops, found by name. A device that has an extension has all ops of its table, unless stated otherwise.
 * Later versions append ops to a table, or add tables. The core ignores names that it does not know. */
struct loom_extension {
	const char *name;
	const void *table; /* begins with its size; valid while the plug-in is loaded */
};
/* The extensions that the core knows. X(name): the table is a struct loom_device_<name>. */
#define LOOM_EXTENSION_MAP(X) X(sharing) X(kept) X(streams) X(copies) X(interrupts) X(hardware)
/* A row of the list, as in LOOM_EXTENSION(kept, &my_table). The table must have the type that belongs to the name. */
#define LOOM_EXTENSION(name, table) {#name, 1 ? (table) : (const struct loom_device_##name *)NULL}
/* The table of an extension, or NULL if the device lacks it. */
#define LOOM_EXTENSION_OF(ops, name) ((const struct loom_device_##name *)loom_extension_find((ops), #name))
#ifndef LOOM_DEVICE_COMPILE
static inline const void *loom_extension_find(const struct loom_device_ops *ops, const char *name)
{
	const struct loom_extension *e = LOOM_HAS(ops, extensions) ? ops->extensions : NULL;
	while (e && e->name && strcmp(e->name, name) != 0)
		e++;
	return e && e->name ? e->table : NULL;
}
#endif

/* Memory that the device shares with other processes of the host, and with the embedding program. */
struct loom_device_sharing {
	size_t size;
	/* Exports a key by which other processes of this host open memory of mem_alloc(). A mapping that they have
	 * opened stays valid after mem_free(). Returns LOOM_ENOTSUP with the reason if they cannot access it. */
	int (*mem_key)(void *self, const struct loom_memory *memory, struct loom_memory_key *key, struct loom_error *err);
	/* Opens the memory of another process, and sets *at to its address. Workers of this device may load, store and
	 * add there. Returns LOOM_EUNAVAIL with the reason if they cannot. mem_close() takes the address. */
	int (*mem_open)(void *self, const struct loom_memory_key *key, uint64_t *at, struct loom_error *err);
	void (*mem_close)(void *self, uint64_t at);
	/* Adopts memory of the program at address `at`. If the memory is on this device, fills *memory and returns 0.
	 * mem_map() of other devices accepts *memory until disown(). Returns LOOM_ENOENT if the memory is not on this
	 * device, and LOOM_EINVAL with the reason if it cannot be adopted. */
	int (*adopt)(void *self, void *at, uint64_t bytes, struct loom_memory *memory, struct loom_error *err);
	void (*disown)(void *self, struct loom_memory *memory);
};

/* Experimental. Launches with LOOM_LAUNCH_KEPT. A device with LOOM_SHAPE_KEEPS must have this extension. */
struct loom_device_kept {
	size_t size;
	/* Called after the core has stored LOOM_PHASE_READY(n). Begins what ready() waits for, so that several devices get
	 * ready at the same time. In a launch without LOOM_LAUNCH_KEPT it does nothing. */
	int (*muster)(void *self, struct loom_error *err);
	/* Called after the core has read all that it needs of a sample. Workers that stay may prepare for the next sample,
	 * whose LOOM_PHASE_READY(n) is `ready`, or do so when the next sample begins. */
	int (*rest)(void *self, uint32_t ready, struct loom_error *err);
	/* Called after wait() has returned 0. Returns the sum of LOOM_TALLY() over the counters of all workers in that
	 * sample, which the device has computed. */
	uint64_t (*tally)(void *self);
};

/* Experimental. Streams of the embedding program. */
struct loom_device_streams {
	size_t size;
	/* Only for a launch with LOOM_LAUNCH_KEPT. Adds a sample to `stream`. In the stream, the sample follows the
	 * earlier work of the caller, and later work follows the sample. The call does not wait for the sample. If the
	 * stream is being captured, the sample becomes a part of a graph. The op must call no function of the driver that
	 * waits or allocates. `tasks` is where the host has written the tasks. Returns LOOM_EBUSY if samples in another
	 * stream have not ended. */
	int (*enqueue)(void *self, void *stream, loom_ref tasks, uint64_t initial_tasks, struct loom_error *err);
	/* Sets *is to 1 if the stream is being captured, else to 0. */
	int (*captures)(void *self, void *stream, int *is, struct loom_error *err);
	/* Waits until all samples in streams have ended, as wait() does for one sample. */
	int (*drain)(void *self, uint64_t timeout_ns, struct loom_enqueued *out, struct loom_error *err);
	/* Adds a kernel to `stream` that executes a collective with `blocks` blocks, which use the tracks from 0 on
	 * (dev/collective.h). The stream may be in capture. NULL for `call`: only compiles the kernel, which must
	 * precede a capture. `view` has addresses of the device: members `handle` of memory that this device has
	 * allocated, and addresses from mem_open(). */
	int (*collective)(void *self, const struct loom_comm_view *view, const struct loom_comm_call *call,
			  uint32_t blocks, void *stream, struct loom_error *err);
};

/* Copies while workers run. */
struct loom_device_copies {
	size_t size;
	/* Starts a copy, and returns before it has ended. `how` is an enum loom_copy. `other` is an address of the host,
	 * or for LOOM_COPY_TO one from mem_open(). Copies with the same `how` end in order, and *number counts them from
	 * 1. 0 bytes: only prepares such copies, which must precede the launch. Returns LOOM_ENOTSUP with the reason if
	 * such copies would wait for the workers. One thread at a time calls it. */
	int (*copy_start)(void *self, const struct loom_memory *memory, uint64_t offset, uint64_t other, uint64_t bytes,
			  uint32_t how, uint64_t *number, struct loom_error *err);
	/* Returns 1 if copy `number` has ended, else 0, or LOOM_EDIED if the device has failed. What the copy has written
	 * is then visible to workers and host threads that are notified afterwards. */
	int (*copy_ended)(void *self, uint32_t how, uint64_t number);
};

/* Interrupts, which workers cause by a store. */
struct loom_device_interrupts {
	size_t size;
	/* Makes an interrupt for the uint64_t at `offset` in a segment of this device's memory. Returns LOOM_ENOTSUP
	 * with the reason if that is impossible. */
	int (*interrupt)(void *self, const struct loom_segment *segment, uint64_t offset, struct loom_interrupt **interrupt,
			 struct loom_error *err);
};

/* What is known about the hardware. Each op may be NULL. */
struct loom_device_hardware {
	size_t size;
	/* Reads a counter of the energy that the hardware has consumed since any fixed time, in joules. It includes what
	 * other programs consume. *source identifies the counter in this process, so that a counter which several
	 * devices share is counted once. Returns LOOM_EUNAVAIL with the reason if there is no counter. */
	int (*energy)(void *self, uint64_t *source, double *joules, struct loom_error *err);
	/* Writes to `name` the name of this hardware, which is the same in all processes of the host, if the hardware
	 * runs kernels of several processes in turns. Then returns words for a message that tell how to run the kernels
	 * side by side; they follow "or". Returns NULL if kernels run side by side, or if that is unknown. */
	const char *(*time_slicing)(void *self, char *name, size_t size);
	/* Reports facts of the hardware on which measurements depend, such as model and clock rates, and `clock`: what the
	 * time of a sample includes. A fact may have several rows. */
	void (*facts)(void *self, struct loom_facts *out);
	/* Called before a sample with ns = 0, and after it with its duration. Returns 1 after a sample during which heat or
	 * a lack of power has slowed the hardware down, as far as the hardware tells; else 0. */
	int (*throttled)(void *self, uint64_t ns);
};

#ifdef __cplusplus
}
#endif
#endif
