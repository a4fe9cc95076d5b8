/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: engines that run workers and own memory. */
#ifndef GPULOOM_DEVICE_H
#define GPULOOM_DEVICE_H

#include "plugin.h"
#include "task.h"
#include "trigger.h"

#ifdef __cplusplus
extern "C" {
#endif

struct loom_interrupt;

/* One row of `gpuloom doctor`: state is "ok", "limited" or "no". The strings are copied. */
struct loom_doctor {
	size_t size;
	void *ctx;
	void (*row)(struct loom_doctor *out, const char *topic, const char *state, const char *found,
		    const char *fix);
};

/* Memory that devices share. A device makes its own, a transport that of the host. */
struct loom_memory {
	size_t size;
	uint64_t bytes;
	int fd;          /* memfd or dma-buf that other processes can map; -1: none */
	int32_t device;  /* the device of the stack that owns it; -1: the host. Set by the transport */
	void *host;      /* the host's address; NULL: not visible to the host */
	uint64_t handle; /* private to the owner */
};
enum {
	LOOM_MEMORY_HOST = 1,  /* mem_alloc: memory that the host can access while workers run */
	LOOM_MEMORY_PRIVATE = 2, /* a segment that only its owner's device maps */
	LOOM_MEMORY_TASKS = 4, /* a requested segment: the initial tasks, which workers only read */
};

/* A part of a memory, which a `loom_ref` addresses. */
struct loom_segment {
	const struct loom_memory *memory;
	uint64_t offset, bytes;
	int32_t owner; /* device, or -1: the stack */
	uint32_t flags; /* LOOM_MEMORY_* */
};
#define LOOM_MAX_SEGMENTS 320
#define LOOM_SEGMENT_REACHES(segment, device)                                                      \
	(!((segment)->flags & LOOM_MEMORY_PRIVATE) || (segment)->owner == (int32_t)(device))

/* Device code of the embedding program: the text of a file. */
struct loom_program_source {
	const char *file; /* file name for messages of the compiler */
	const char *text;
};

/* Compiled task functions of the embedding program: dev/ir.h. */
struct loom_program_ir {
	const char *file; /* file name for messages */
	const void *data; /* a NUL byte follows */
	uint64_t bytes;
	const uint32_t *tag; /* [tags]: the functions that it has */
	uint32_t tags;
	uint32_t reserved;
};

/* The device code to compose. Plug-in pointers are NULL for kinds that are not selected. */
struct loom_program {
	size_t size;
	const struct loom_layout *layout;
	const struct loom_plugin *const *policy; /* [LOOM_KINDS] */
	/* All task functions by tag: those of the workload, then those of the embedding program. One whose `fn` is NULL
	 * is in IR, or in a source, where LOOM_TAG_<name> is its tag. */
	const struct loom_task_entry *task;
	uint32_t tasks;
	uint32_t traced; /* 1: every launch has a trace; 0: none has */
	const char *constants; /* #define lines for device code; NULL: none */
	uint64_t local_bytes;  /* private memory per worker that scheduler, detector and trigger need */
	const struct loom_program_source *source;
	uint32_t sources;
	uint32_t irs;
	const struct loom_program_ir *ir; /* [irs]: each device uses those for its kind */
};

enum loom_entry {
	LOOM_ENTRY_WORK = 1, /* the scheduler's run(), or the workload's kernel() */
	LOOM_ENTRY_PROBE,    /* dev/probe.h: one worker per device tests the coherence of `probe` */
};

/* Hooks of a policy in each address space that runs workers, for userfaultfd, signal handlers or threads there. A CPU
 * device with isolation = process calls them in its process. */
struct loom_attachment {
	void *self;
	uint32_t kind; /* enum loom_kind: the kind of the policy whose blocks `space` describes */
	uint32_t reserved;
	/* Before the first worker starts. The hook may start threads. An error ends the launch. */
	int (*attach)(void *self, const struct loom_space *space, struct loom_error *err);
	/* One thread of the device calls this before every sample, while no worker of any device runs. */
	void (*ready)(void *self, uint32_t device);
	void (*detach)(void *self, uint32_t device); /* After the last worker has left, unless the process died. */
};

/* A sample as a chain of kernels: the workload's step() for n from 0. After each kernel the trigger sends what the
 * kernel fired. The next kernel begins once the data that it reads has arrived. */
struct loom_chain {
	size_t size;
	uint64_t steps;
	loom_ref words; /* the block that `edge` refers to */
	struct loom_edge edge;
	/* The op awaits() of struct loom_workload_ops. */
	uint32_t (*awaits)(void *self, const struct loom_layout *layout, uint64_t n, struct loom_await *out);
	void *self;
};

enum {
	/* Workers that are still asleep may miss the whole sample where GO alone begins it. Before any worker can
	 * start, the device calls the detector's idle() for all of them. Each worker that wakes calls busy(). */
	LOOM_LAUNCH_LATE = 1,
	/* The launch lasts from run to run of a program that embeds. Between samples nothing of it runs that costs others
	 * anything; before each sample the device carries out `reset`, so that its memory needs no copy from the host. A sample
	 * begins by GO alone, or by READY, muster(), ready() and GO. Of devices with LOOM_SHAPE_KEEPS. */
	LOOM_LAUNCH_KEPT = 2,
};

/* A piece of what policies' init() writes: `words` times `value`, from `at` on. */
struct loom_reset {
	loom_ref at;
	uint32_t value, words;
};

/* One launch of persistent workers. All pointers are valid until retire() returns. */
struct loom_launch {
	size_t size;
	uint32_t entry;  /* enum loom_entry */
	uint32_t device; /* the index of this device in the layout */
	const struct loom_layout *layout;
	const struct loom_segment *segment; /* [segments]; index 0 is unused */
	uint32_t segments;
	uint32_t flags;    /* LOOM_LAUNCH_* */
	loom_ref ctl;      /* struct loom_ctl */
	loom_ref counters; /* struct loom_counters, one per worker of the stack */
	loom_ref initial;  /* struct loom_task[]; 0: none */
	loom_ref probe;    /* struct loom_probe, for LOOM_ENTRY_PROBE */
	const loom_ref *global;           /* [LOOM_KINDS]; 0: the policy has no block */
	const loom_ref *on_device;        /* [LOOM_KINDS]: of this device */
	const loom_ref *registry;         /* [LOOM_KINDS]: loom_ref[workers], the copy for this device */
	const uint64_t *local_bytes;      /* [LOOM_KINDS] per worker; zeroed before every sample */
	const struct loom_attachment *attachment; /* [attachments], in order; members may be NULL */
	uint32_t attachments;
	uint32_t reserved2;
	loom_ref trace;       /* struct loom_trace, one per worker of the stack; 0: no trace */
	uint64_t trace_bytes; /* the stride between the buffers of two workers */
	const struct loom_chain *chain; /* NULL: workload or trigger lack support for ends of kernels */
	/* With LOOM_LAUNCH_KEPT: struct loom_reset[resets], in memory of this device. `tasks` is where the host writes the initial
	 * tasks, which the device copies to `initial` before each sample; 0: the tasks are in place. */
	loom_ref reset;
	uint64_t resets;
	loom_ref tasks;
};

/* Counts of the samples in streams of the program. Samples of graphs are not among `ended`. */
struct loom_enqueued {
	uint64_t ended, replayed;
	uint64_t wrong; /* samples whose LOOM_TALLY() was not the number of initial tasks */
	uint64_t ns, initial_tasks; /* duration and number of initial tasks of the last sample */
};

/* Bits of loom_plugin.caps for devices. */
enum {
	LOOM_CAP_DEVICE_IS_CPU = 1, /* the device runs `dev->cpu` tables and task functions of the embedding program */
	/* the clock is virtual; ranks are threads of one process, which share the clock */
	LOOM_CAP_DEVICE_IS_VIRTUAL = 2,
};

/* One thread of the core calls all ops but wake(). The ops down to `retire` are mandatory. */
struct loom_device_ops {
	size_t size;
	/* Opens engine number `instance` ("cpu:1" is instance 1) of the `instances` of this plug-in that the stack
	 * uses. `opts` are [device.NAME], overridden by [device.NAME.instance]. */
	int (*create)(const struct loom_host *host, const void *opts, uint32_t instance,
		      uint32_t instances, void **self, struct loom_error *err);
	void (*destroy)(void *self);
	/* Fills workers, lanes, numa_node, local_bytes and kind. The core calls this after create() and after build(),
	 * and keeps the second answer: on a GPU the code determines how many workers are resident. */
	int (*shape)(void *self, struct loom_device_shape *shape, struct loom_error *err);
	/* Allocates zeroed, page-aligned memory on this device. `flags`: LOOM_MEMORY_*. */
	int (*mem_alloc)(void *self, uint64_t bytes, uint32_t flags, struct loom_memory *memory,
			 struct loom_error *err);
	void (*mem_free)(void *self, struct loom_memory *memory);
	/* Makes the memory of another owner accessible here, before launch, until mem_unmap() with the same pointer.
	 * Returns LOOM_EUNAVAIL with the reason when the two cannot share. */
	int (*mem_map)(void *self, const struct loom_memory *memory, struct loom_error *err);
	void (*mem_unmap)(void *self, const struct loom_memory *memory);
	/* Composes the device code, before the first LOOM_ENTRY_WORK launch. */
	int (*build)(void *self, const struct loom_program *program, struct loom_error *err);
	/* Starts the workers, which wait for ctl->phase. */
	int (*launch)(void *self, const struct loom_launch *launch, struct loom_error *err);
	/* After the core has stored LOOM_PHASE_READY(n): returns when all workers are awake and poll for
	 * LOOM_PHASE_GO(n), or LOOM_ETIMEDOUT. */
	int (*ready)(void *self, uint64_t timeout_ns, struct loom_error *err);
	/* After the core has stored LOOM_PHASE_GO(n): rings a doorbell, if one is needed. */
	int (*go)(void *self, struct loom_error *err);
	/* Waits for the end of the sample. Returns 0 with the time of the last worker in *end_ns (CLOCK_MONOTONIC; the
	 * duration of the sample if the device has a clock()). LOOM_EAGAIN: timeout_ns have passed, a signal or wake()
	 * came, or a worker left because `stop` was set. LOOM_EDIED: the sample cannot end. */
	int (*wait)(void *self, uint64_t timeout_ns, uint64_t *end_ns, struct loom_error *err);
	/* Ends the launch after the core has stored LOOM_PHASE_RETIRE (and `stop` in mid-sample). Waits up to
	 * timeout_ns, then uses force. Afterwards nothing of the launch remains. On LOOM_ETIMEDOUT threads that cannot
	 * be killed still use the launch's memory, which must stay. The call may then be repeated. */
	int (*retire)(void *self, uint64_t timeout_ns, struct loom_error *err);
	/* Copy between host bytes and memory that the host cannot access. Another thread may call them while workers
	 * run, unless mem_key() returns LOOM_ENOTSUP. NULL: the host can access all memory. */
	int (*copy_in)(void *self, const struct loom_memory *memory, uint64_t offset, const void *from,
		       uint64_t bytes, struct loom_error *err);
	int (*copy_out)(void *self, const struct loom_memory *memory, uint64_t offset, void *to,
			uint64_t bytes, struct loom_error *err);
	/* Reports what this machine offers to such devices, and how to get what is missing. Needs no instance. */
	void (*doctor)(const struct loom_host *host, struct loom_doctor *out);
	/* Any thread or signal handler may call this: it ends the wait() in progress, else the next one, early. NULL: a
	 * stop request of another thread takes effect when wait() reaches its timeout_ns. */
	void (*wake)(void *self);
	/* Between go() and the end of a sample: sets out[i] to the enum loom_worker_state of worker i of this device.
	 * NULL: the core uses the workers' counters. */
	int (*states)(void *self, uint32_t *out, uint32_t workers);
	/* After a failed sample, with its launch: writes to `text` what in a conf repeats exactly that sample, and
	 * returns its length, or 0 (as NULL) when nothing repeats it. */
	int (*repeat)(void *self, char *text, size_t size);
	/* Returns the virtual clock: one for all devices of a stack, and for all ranks with the same host->job. Valid
	 * until destroy(). NULL: time is the host's. */
	const struct loom_clock *(*clock)(void *self);
	/* Exports a handle by which other processes of this host open mem_alloc() memory. An open mapping outlives the
	 * free by its maker. NULL: no other process reaches the memory of this device. */
	int (*mem_key)(void *self, const struct loom_memory *memory, struct loom_memory_key *key, struct loom_error *err);
	/* Opens the memory of another process at an address where workers of this device may load, store and add.
	 * mem_close() takes that address. Returns LOOM_EUNAVAIL with the reason where they cannot. */
	int (*mem_open)(void *self, const struct loom_memory_key *key, uint64_t *at, struct loom_error *err);
	void (*mem_close)(void *self, uint64_t at);
	/* Makes an interrupt for the uint64_t at `offset` in a segment of this device's memory. Returns LOOM_ENOTSUP
	 * with the reason. NULL: the device has no such interrupts. */
	int (*interrupt)(void *self, const struct loom_segment *segment, uint64_t offset, struct loom_interrupt **interrupt,
		     struct loom_error *err);
	/* Where kernels of several processes take turns on this hardware: writes its name, the same in all processes of
	 * the host, to `name`. Returns a clause after "or" about how to run them side by side. NULL, or returning NULL: they run side by side, or it is unknown. */
	const char *(*time_slicing)(void *self, char *name, size_t size);
	/* Only for a launch with LOOM_LAUNCH_KEPT, after the core has stored LOOM_PHASE_READY(n): begins what
	 * ready() waits for, so that several devices get ready at the same time. */
	int (*muster)(void *self, struct loom_error *err);
	/* Only for such a launch, after the core has read all that it needs of a sample: workers that stay may
	 * prepare for the next one, LOOM_PHASE_READY(n). NULL: they do so when it begins. */
	int (*rest)(void *self, uint32_t ready, struct loom_error *err);
	/* Only for such a launch, after wait() has returned 0: returns the sum of LOOM_TALLY() over the counters of
	 * all workers in that sample. The device has computed it. */
	uint64_t (*tally)(void *self);
	/* Only for such a launch on a device with streams: adds a sample to `stream`, after the earlier and before
	 * the later work of the caller there. The call does not wait for the sample. If the stream is being captured,
	 * the sample becomes a part of a graph. The op makes no call of the driver that waits or allocates. `tasks` is
	 * where the host wrote the tasks. LOOM_EBUSY: samples in another stream have not ended. NULL: no streams. */
	int (*enqueue)(void *self, void *stream, loom_ref tasks, uint64_t initial_tasks, struct loom_error *err);
	/* Stores 1 in *is if the stream is being captured now, else 0. */
	int (*captures)(void *self, void *stream, int *is, struct loom_error *err);
	/* Waits until all such samples have ended, as wait() does. */
	int (*drain)(void *self, uint64_t timeout_ns, struct loom_enqueued *out, struct loom_error *err);
	/* Memory of the program at address `at`: 0: it is this device's, and *memory is filled, which mem_map() of other devices
	 * accepts; disown() ends that. LOOM_ENOENT: it is not this device's; LOOM_EINVAL with the reason. NULL: never its. */
	int (*adopt)(void *self, void *at, uint64_t bytes, struct loom_memory *memory, struct loom_error *err);
	void (*disown)(void *self, struct loom_memory *memory);
};

#ifdef __cplusplus
}
#endif
#endif
