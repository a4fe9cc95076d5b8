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

/* One row of `gpuloom doctor`: state is "ok", "limited" or "no". Strings are copied. */
struct loom_doctor {
	size_t size;
	void *ctx;
	void (*row)(struct loom_doctor *out, const char *topic, const char *state, const char *found,
		    const char *fix);
};

/* Memory that devices share. Made by a device (its own) or a transport (the host's). */
struct loom_memory {
	size_t size;
	uint64_t bytes;
	int fd;          /* memfd or dma-buf that other processes can map; -1: none */
	int32_t device;  /* which device of the stack it belongs to; -1: the host. Set by the transport */
	void *host;      /* the host's view; NULL: not visible to the host */
	uint64_t handle; /* the owner's own */
};
enum {
	LOOM_MEMORY_HOST = 1,  /* mem_alloc: must be visible to the host while workers run */
	LOOM_MEMORY_PRIVATE = 2, /* a segment: mapped by the device that owns it, and by no other */
	LOOM_MEMORY_TASKS = 4, /* a segment that is wanted: the initial tasks, which workers only read */
};

/* A piece of a memory: what `loom_ref` addresses. */
struct loom_segment {
	const struct loom_memory *memory;
	uint64_t offset, bytes;
	int32_t owner; /* device, or -1: the stack */
	uint32_t flags; /* LOOM_MEMORY_* */
};
#define LOOM_MAX_SEGMENTS 320
#define LOOM_SEGMENT_REACHES(segment, device)                                                      \
	(!((segment)->flags & LOOM_MEMORY_PRIVATE) || (segment)->owner == (int32_t)(device))

/* Device code of the embedding program: text of a file. */
struct loom_program_source {
	const char *file; /* for compiler messages */
	const char *text;
};

/* Task functions of the embedding program that are compiled already: dev/ir.h. */
struct loom_program_ir {
	const char *file; /* for messages */
	const void *data; /* a NUL byte follows */
	uint64_t bytes;
	const uint32_t *tag; /* [tags]: which it has */
	uint32_t tags;
	uint32_t reserved;
};

/* What device code to compose. Plug-in pointers are NULL for kinds not selected. */
struct loom_program {
	size_t size;
	const struct loom_layout *layout;
	const struct loom_plugin *const *policy; /* [LOOM_KINDS] */
	/* All task functions by tag: the workload's first, then those of the embedding program. One whose `fn` is
	 * NULL is in one of the sources, where LOOM_TAG_<name> is its tag, or in IR. */
	const struct loom_task_entry *task;
	uint32_t tasks;
	uint32_t traced; /* 1: every launch will have a trace; 0: none will */
	const char *constants; /* #define lines for device code; NULL: none */
	uint64_t local_bytes;  /* private memory per worker that scheduler, detector and trigger will need */
	const struct loom_program_source *source;
	uint32_t sources;
	uint32_t irs;
	const struct loom_program_ir *ir; /* [irs]: each device takes those that are made for its kind */
};

enum loom_entry {
	LOOM_ENTRY_WORK = 1, /* the scheduler's run(), or the workload's kernel() */
	LOOM_ENTRY_PROBE,    /* dev/probe.h: one worker per device, coherence of `probe` */
};

/* What a policy does inside each address space that runs workers, because its mechanism belongs to an address
 * space: userfaultfd, signal handlers, threads beside the workers. A CPU device with isolation = process calls
 * these in the device's process. */
struct loom_attachment {
	void *self;
	uint32_t kind; /* the kind of the policy that `space` shows the blocks of: enum loom_kind */
	uint32_t reserved;
	/* Before the first worker starts; may start threads. An error ends the launch. */
	int (*attach)(void *self, const struct loom_space *space, struct loom_error *err);
	/* Once before every sample, by one thread of the device, while no worker of any device runs. */
	void (*ready)(void *self, uint32_t device);
	/* After the last worker left; not called when the process died. */
	void (*detach)(void *self, uint32_t device);
};

/* A sample as a chain of kernels: the workload's step() for n from 0. After each the trigger sends what it fired; the next
 * begins once what it reads has arrived. */
struct loom_chain {
	size_t size;
	uint64_t steps;
	loom_ref words; /* the block that `edge` is about */
	struct loom_edge edge;
	/* As in struct loom_workload_ops. */
	uint32_t (*awaits)(void *self, const struct loom_layout *layout, uint64_t n, struct loom_await *out);
	void *self;
};

enum {
	/* A sample that GO alone begins may end without workers that have not woken up by then: the device calls the
	 * detector's idle() for all before the first may come, and each that comes calls busy(). */
	LOOM_LAUNCH_LATE = 1,
};

/* One launch of persistent workers. Everything is valid until retire() returns. */
struct loom_launch {
	size_t size;
	uint32_t entry;  /* enum loom_entry */
	uint32_t device; /* which of the layout's devices this is */
	const struct loom_layout *layout;
	const struct loom_segment *segment; /* [segments]; index 0 is unused */
	uint32_t segments;
	uint32_t flags;    /* LOOM_LAUNCH_* */
	loom_ref ctl;      /* struct loom_ctl */
	loom_ref counters; /* struct loom_counters, one per worker of the stack */
	loom_ref initial;  /* struct loom_task[]; 0: none */
	loom_ref probe;    /* struct loom_probe, for LOOM_ENTRY_PROBE */
	const loom_ref *global;           /* [LOOM_KINDS]; 0: the policy needs none */
	const loom_ref *on_device;        /* [LOOM_KINDS], this device's */
	const loom_ref *registry;         /* [LOOM_KINDS]: loom_ref[workers], this device's replica */
	const uint64_t *local_bytes;      /* [LOOM_KINDS] per worker; zeroed before every sample */
	const struct loom_attachment *attachment; /* [attachments], in order; members may be NULL */
	uint32_t attachments;
	uint32_t reserved2;
	loom_ref trace;       /* struct loom_trace, one per worker of the stack; 0: no trace is wanted */
	uint64_t trace_bytes; /* from one worker's to the next */
	const struct loom_chain *chain; /* NULL: workload or trigger do not support ends of kernels */
};

/* Bits of loom_plugin.caps for devices. */
enum {
	LOOM_CAP_DEVICE_IS_CPU = 1, /* runs `dev->cpu` tables and task functions of the embedder */
	LOOM_CAP_DEVICE_IS_VIRTUAL = 2, /* its clock is virtual; ranks are threads of one process, which share it */
};

/* All ops but wake() are called by one thread of the core. Mandatory down to `retire`. */
struct loom_device_ops {
	size_t size;
	/* Opens engine number `instance` ("cpu:1" is instance 1) of the `instances` of this plug-in
	 * that the stack uses. `opts` hold [device.NAME] overlaid with [device.NAME.instance]. */
	int (*create)(const struct loom_host *host, const void *opts, uint32_t instance,
		      uint32_t instances, void **self, struct loom_error *err);
	void (*destroy)(void *self);
	/* Fills workers, lanes, numa_node, local_bytes, kind. Called after create(), and again after
	 * build(): on a GPU the code decides how many workers are resident. The second answer holds;
	 * its workers and local_bytes may differ from the first. */
	int (*shape)(void *self, struct loom_device_shape *shape, struct loom_error *err);
	/* Zeroed memory on this device, page-aligned. `flags`: LOOM_MEMORY_*. */
	int (*mem_alloc)(void *self, uint64_t bytes, uint32_t flags, struct loom_memory *memory,
			 struct loom_error *err);
	void (*mem_free)(void *self, struct loom_memory *memory);
	/* Makes another owner's memory usable here, before launch; -LOOM_EUNAVAIL with the reason
	 * when the two cannot share. unmap with the same pointer. */
	int (*mem_map)(void *self, const struct loom_memory *memory, struct loom_error *err);
	void (*mem_unmap)(void *self, const struct loom_memory *memory);
	/* Composes the device code. Before the first LOOM_ENTRY_WORK launch. */
	int (*build)(void *self, const struct loom_program *program, struct loom_error *err);
	/* Starts the workers; they wait for ctl->phase. */
	int (*launch)(void *self, const struct loom_launch *launch, struct loom_error *err);
	/* The core has stored LOOM_PHASE_READY(n): returns when all workers are awake and watch for
	 * LOOM_PHASE_GO(n), or LOOM_ETIMEDOUT. */
	int (*ready)(void *self, uint64_t timeout_ns, struct loom_error *err);
	/* The core has stored LOOM_PHASE_GO(n): ring a doorbell if one is needed. */
	int (*go)(void *self, struct loom_error *err);
	/* Waits until all workers have finished the sample. 0: they have; *end_ns says when the last one did
	 * (CLOCK_MONOTONIC; LOOM_SHAPE_IS_VIRTUAL). LOOM_EAGAIN: not yet, but timeout_ns have passed, a signal or wake() came, or a
	 * worker left because `stop` was set. LOOM_EDIED: they never will. */
	int (*wait)(void *self, uint64_t timeout_ns, uint64_t *end_ns, struct loom_error *err);
	/* Ends the launch: the core has stored LOOM_PHASE_RETIRE (and `stop` when in mid-sample).
	 * Waits up to timeout_ns, then uses force. Afterwards nothing of the launch is left. LOOM_ETIMEDOUT is
	 * the exception: threads that cannot be killed still use the launch's memory, so it must stay. The
	 * call may then be repeated. */
	int (*retire)(void *self, uint64_t timeout_ns, struct loom_error *err);
	/* Between a memory that the host cannot see and host bytes; also by another thread while workers run, unless mem_key() says
	 * LOOM_ENOTSUP. NULL: all memory is host-visible. */
	int (*copy_in)(void *self, const struct loom_memory *memory, uint64_t offset, const void *from,
		       uint64_t bytes, struct loom_error *err);
	int (*copy_out)(void *self, const struct loom_memory *memory, uint64_t offset, void *to,
			uint64_t bytes, struct loom_error *err);
	/* Reports what this machine offers such devices, and how to get what is missing. Needs no instance. */
	void (*doctor)(const struct loom_host *host, struct loom_doctor *out);
	/* From any thread and from signal handlers: ends the wait() in progress early, or the next one if none is in
	 * progress. NULL: another thread's stop request is seen when a wait() has reached its timeout_ns. */
	void (*wake)(void *self);
	/* Between go() and the end of a sample: out[i] is the state of worker i of this device, enum loom_worker_state.
	 * NULL: the workers' counters are used. */
	int (*states)(void *self, uint32_t *out, uint32_t workers);
	/* After a sample that failed, while the launch is there: what in a conf repeats exactly that sample, to `text`. How
	 * many characters; 0: nothing repeats it. NULL: the same. */
	int (*repeat)(void *self, char *text, size_t size);
	/* The clock of a device whose time is virtual: one for all devices of a stack, and for all ranks with the same
	 * host->job. Valid until destroy(). NULL: the host's. */
	const struct loom_clock *(*clock)(void *self);
	/* Exports a handle by which other processes of this host open mem_alloc() memory. It stays valid where it is open, even
	 * after its maker has freed it. NULL: no other process reaches this device's memory. */
	int (*mem_key)(void *self, const struct loom_memory *memory, struct loom_memory_key *key, struct loom_error *err);
	/* Another process's memory: its address for workers here, which may load, store and add as in their own.
	 * LOOM_EUNAVAIL with the reason where they cannot. mem_close with the same address. */
	int (*mem_open)(void *self, const struct loom_memory_key *key, uint64_t *at, struct loom_error *err);
	void (*mem_close)(void *self, uint64_t at);
	/* An interrupt for the uint64_t at `offset` in a segment of this device's memory. LOOM_ENOTSUP with the reason; NULL: this
	 * device has no interrupts of this kind. */
	int (*interrupt)(void *self, const struct loom_segment *segment, uint64_t offset, struct loom_interrupt **interrupt,
		     struct loom_error *err);
	/* Where kernels of several processes take turns on what these workers run on: its name, alike in all processes of the
	 * host, to `name`, and what lets them run side by side, a clause that goes on behind "or". NULL, also of the
	 * function: they do run so, or it is not known. */
	const char *(*time_slicing)(void *self, char *name, size_t size);
};

#ifdef __cplusplus
}
#endif
#endif
