/* SPDX-License-Identifier: Apache-2.0 */
/* What every plug-in author needs: options, the host table, device code, the descriptor, and what policies share.
 *
 * A plug-in is a shared object that exports one symbol, loom_plugin_entry(), which LOOM_PLUGIN_DEFINE makes. It does
 * not link to gpuloom: the core passes it a `struct loom_host`. `gpuloom new-plugin KIND NAME` writes a small working
 * plug-in. These are the headers to read for
 *
 *   a program that embeds gpuloom: gpuloom.h and error.h; task.h and dev/dev.h for its task functions
 *   a workload: this file; workload.h, task.h; the first three groups of dev/dev.h; barrier.h, sync.h, trigger.h or
 *      qos.h for the kind whose ops its workers call
 *   a policy: this file; the header of its kind, task.h; dev/ctx.h and dev/dev.h; interrupt.h and clock.h if it has
 *      host threads that work with GPUs or simulated devices
 *   a device or a transport: this file; device.h, transport.h; dev/ctx.h, dev/gpu.h and dev/probe.h
 *
 * Each table of ops starts with its size, so that later versions of a header can append ops. */
#ifndef GPULOOM_PLUGIN_H
#define GPULOOM_PLUGIN_H

#include "dev/types.h"
#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LOOM_PLUGIN_MAGIC 0x4d4f4f4cu /* "LOOM", little-endian */
/* The version of this header and of the headers of all kinds. A plug-in runs only with a core that has the same number.
 * The number rises with each change that does not show in the size of a table or struct. LOOM_HAS() detects members
 * that were appended. What is marked as experimental is not in version 1: it may change, or go, without a new number. */
#define LOOM_ABI 1u

/* The kinds of plug-in. X(enum name, short name for files, name of the conf section) */
#define LOOM_KIND_MAP(X)                                                                           \
	X(DEVICE, device, device)                                                                  \
	X(TRANSPORT, transport, transport)                                                         \
	X(SCHED, sched, scheduler)                                                                 \
	X(TERM, term, termination)                                                                 \
	X(SYNC, sync, sync)                                                                        \
	X(BARRIER, barrier, barrier)                                                               \
	X(TRIGGER, trigger, trigger)                                                               \
	X(QOS, qos, qos)                                                                           \
	X(WORKLOAD, workload, workload)

enum loom_kind {
	LOOM_KIND_NONE = 0,
#define LOOM_KIND_ENUM(NAME, file, section) LOOM_##NAME,
	LOOM_KIND_MAP(LOOM_KIND_ENUM)
#undef LOOM_KIND_ENUM
	LOOM_KINDS /* one past the last kind */
};
/* Arrays by kind in structs that core and plug-ins share have this size, so that a later version can add kinds. Elements
 * without a kind are 0. */
#define LOOM_KINDS_MAX 16

/* 1 if the table, as its author compiled it, contains `op` and sets it. */
#define LOOM_HAS(ops, op)                                                                          \
	((ops) && (ops)->size >= (size_t)((const char *)(&(ops)->op + 1) - (const char *)(ops)) && \
	 (ops)->op)

/* ---- options ------------------------------------------------------------------------------- */

/* X(name, C type of the field, description of what a user writes) */
#define LOOM_OPT_MAP(X)                                                                            \
	X(BOOL, uint8_t, "yes|no")                                                                 \
	X(U32, uint32_t, "integer")                                                                \
	X(U64, uint64_t, "integer")                                                                \
	X(I64, int64_t, "integer")                                                                 \
	X(SIZE, uint64_t, "size, as in 64KiB")                                                     \
	X(TIME, uint64_t, "time, as in 10us")                                                      \
	X(F64, double, "number")                                                                   \
	X(SHARE, double, "share, as in 5% or 0.05")                                                \
	X(STR, const char *, "text")                                                               \
	X(PATH, const char *, "path, relative to the conf file")                                   \
	X(ENUM, uint32_t, "one of the choices")                                                    \
	X(CPUS, const char *, "list of cores, as in 0-3,8")

enum loom_opt_type {
	LOOM_OPT_NONE = 0,
#define LOOM_OPT_ENUM_ROW(name, type, text) LOOM_OPT_##name,
	LOOM_OPT_MAP(LOOM_OPT_ENUM_ROW)
#undef LOOM_OPT_ENUM_ROW
};
enum {
	LOOM_OPT_REQUIRED = 1,   /* has no default: the user must set it */
	LOOM_OPT_DEPRECATED = 2, /* setting it gives a warning that quotes `help` */
	/* The value names a file to run, load or write. If a result serves as a conf, it may set the option only with
	 * --trust. */
	LOOM_OPT_TRUST = 4,
	/* For a number: the word auto is a value, stored as 0 (as -1 in an I64). For `auto` the plug-in chooses the
	 * number itself, as `help` describes. */
	LOOM_OPT_AUTO = 8,
};

/* An option. Its row serves for parsing, the default, the range, help, `describe`, `config show` and docs. Times are in
 * ns, sizes in bytes, shares from 0 to 1; an ENUM is the index of its choice. The core owns strings until the instance
 * is destroyed. The string "" means that the option is not set. */
struct loom_opt {
	const char *name;           /* lower case with underscores; NULL ends the table */
	const char *dflt;           /* the default as a user writes it; NULL with REQUIRED */
	const char *help;           /* one or two sentences about meaning, unit and values */
	const char *const *choices; /* only for ENUM; ends with NULL */
	const char *section;        /* section that plug-ins of this kind share; NULL: the plug-in's own section */
	/* Bounds of an integer, size or time; if both are 0, only the bounds of the type apply. A negative minimum is for
	 * an I64. */
	int64_t min;
	uint64_t max;
	double from, to;            /* the same for an F64 or SHARE */
	uint32_t offset;            /* offset of the field in the plug-in's option struct */
	uint16_t size;              /* size of the field in bytes; checked against the type */
	uint8_t type;               /* enum loom_opt_type */
	uint8_t flags;              /* LOOM_OPT_REQUIRED, LOOM_OPT_DEPRECATED and so on */
	uint64_t reserved[2];       /* 0; the struct is in arrays, so its size stays: later versions name these words */
};

/* If several plug-ins of a kind have the same option, they all include one row with a shared `section`. This is the
 * section of the kind, such as "trigger", or one below it, such as "workload.exchange". A value in the shared section
 * holds for all these plug-ins. A value in a plug-in's own section overrides it. The core rejects two plug-ins that
 * declare such an option differently. */

/* An example of a row: LOOM_OPT(struct my_opts, field, LOOM_OPT_U32, "default", "help", .min = 1, .max = 256) */
#define LOOM_OPT(S, field, opt_type, default_, help_, ...)                                         \
	{                                                                                          \
		.name = #field, .dflt = default_, .help = help_, .offset = offsetof(S, field),     \
		.size = sizeof(((S *)0)->field), .type = opt_type, __VA_ARGS__                     \
	}

/* ---- what the core offers a plug-in --------------------------------------------------------- */

enum loom_level { LOOM_LOG_ERROR = 0, LOOM_LOG_WARN, LOOM_LOG_INFO, LOOM_LOG_DEBUG };
enum loom_better {
	LOOM_BETTER_NONE = 0,
	LOOM_BETTER_MORE,
	LOOM_BETTER_LESS,
	LOOM_BETTER_SAME, /* neither more nor less: a part of the answer, which is the same in all right results of a job */
};

struct loom_report; /* the metrics of one sample; plug-ins add to it through the host table */

/* The host table. The core makes it. It is constant, and valid until destroy() of the instance returns. Later versions
 * append members. Check for members after `metric` by LOOM_HAS(). LOOM_HAS(host, allgather) covers rank and ranks. Any
 * thread may call the functions, unless stated otherwise. */
struct loom_host {
	size_t size;
	uint32_t abi; /* value of LOOM_ABI with which the core was built */
	uint32_t reserved;
	void *ctx; /* private to the core */
	/* Returns 1 if messages of that level are shown. Call it before formatting that takes long. */
	int (*log_on)(const struct loom_host *host, int level);
	/* Logs one line without a newline, to stderr or to the function of the embedding program. */
	void (*log)(const struct loom_host *host, int level, const char *who, const char *fmt, ...)
		LOOM_PRINTF(4, 5);
	/* Fills *err, which may be NULL, with one message, and returns `code`. */
	int (*fail)(const struct loom_host *host, struct loom_error *err, int code, const char *file,
		    int line, const char *fmt, ...) LOOM_PRINTF(6, 7);
	/* Returns zeroed memory, aligned to 64 bytes, or NULL. Free it with `free`. */
	void *(*alloc)(const struct loom_host *host, size_t bytes);
	void (*free)(const struct loom_host *host, void *p);
	uint64_t (*now_ns)(const struct loom_host *host); /* returns the time of CLOCK_MONOTONIC */
	/* Adds a metric to the report of a sample. Only ops that receive `report` may call this. `unit` is as in
	 * "tasks/s"; "" for a count. A plug-in must not add a name twice in a sample. */
	int (*metric)(const struct loom_host *host, struct loom_report *report, const char *name,
		      const char *unit, enum loom_better better, double value);
	/* The rank of this process in the job, and the number of ranks. They are constant, and 0 and 1 without
	 * ranks. */
	uint32_t rank, ranks;
	/* Copies the `bytes` at `mine` of each rank r to all[r * bytes], on every rank. All ranks must call it in the
	 * same order, from the thread that runs the core. If an op of another rank has failed, returns that rank's
	 * error, so an op may return after an error without further exchanges. Returns LOOM_EDIED if a rank is gone. */
	int (*allgather)(const struct loom_host *host, const void *mine, void *all, size_t bytes,
			 struct loom_error *err);
	/* Only for comparison: the same pointer for all ranks that are threads under one virtual clock; NULL: ranks are
	 * processes. */
	const void *job;
	/* Records a choice that the conf left to this instance, or that differs from what the conf demands. `name`
	 * begins with the section, as in "trigger.provider". Both strings are copied. A later text replaces an earlier
	 * one of the same name. Results list choices under `choices`, `run -v` prints them, and a comparison reports
	 * differences. Only the core's thread may call this, in any op from create() to a launch. */
	void (*choice)(const struct loom_host *host, const char *name, const char *text);
	/* Called at least once a second by a create(), need(), tasks() or verify() that may take seconds, on the thread
	 * that called the op, and by a transport between pieces of memory. Reports the fraction that is done, from 0 to
	 * 1; that of verify() is displayed. If the result is not 0, the op must return it at once: LOOM_EINTR if the run
	 * was stopped, LOOM_ETIMEDOUT if its time is over ([run] time_limit). In other ops it does nothing and returns
	 * 0. */
	int (*progress)(const struct loom_host *host, double done, struct loom_error *err);
};

/* Records a choice, with a format as for printf(), if the core has choice(). The file must include stdio.h. */
#define LOOM_CHOICE(host, name, ...)                                                                 \
	do {                                                                                       \
		char loom_choice_text[120];                                                          \
		snprintf(loom_choice_text, sizeof(loom_choice_text), __VA_ARGS__);                     \
		if (LOOM_HAS(host, choice))                                                          \
			(host)->choice((host), (name), loom_choice_text);                              \
	} while (0)

#define LOOM_FAIL(host, err, code, ...)                                                            \
	((host)->fail((host), (err), (code), __FILE__, __LINE__, __VA_ARGS__))
/* For check(): rejects the value of `option`, and returns LOOM_EINVAL. */
#define LOOM_REFUSE(host, err, option, ...) \
	(LOOM_FAIL(host, err, LOOM_EINVAL, __VA_ARGS__), loom_refuse((err), (option)))
#ifndef LOOM_DEVICE_COMPILE
static inline int loom_refuse(struct loom_error *err, const char *option)
{
	if (err)
		err->option = option;
	return LOOM_EINVAL;
}
#endif
#define LOOM_LOG(host, level, who, ...)                                                            \
	do {                                                                                       \
		if ((host)->log_on((host), (level)))                                               \
			(host)->log((host), (level), (who), __VA_ARGS__);                          \
	} while (0)

/* ---- device code ----------------------------------------------------------------------------- */

/* The device half of a policy. Its source is written over gpuloom/dev/dev.h in a file NAME.dev.h, with functions
 * NAME_OP. The CPU uses `cpu`, a table of pointers to these functions. GPU back ends compile the embedded text together
 * with the rest of the stack. */
struct loom_device_code {
	size_t size;
	const void *cpu;         /* table of device functions: struct loom_<kind>_dev */
	const char *source_name; /* file name for messages of the compiler, such as "term_counter.dev.h" */
	const char *source;      /* text of the file, without a NUL at its end; NULL: the code is only for the CPU */
	const char *source_end;
	uint32_t flags; /* LOOM_CODE_* */
	uint32_t reserved;
};
/* With LOOM_CODE_WATCHES, each block on a GPU has one more wave. The device half's text must define
 *   void NAME_watch_begin(void): called once by every thread of the block, before all else; ends with a block barrier
 *   void NAME_watch(struct loom_ctx *c): called by that wave, with c->lane as its lane; returns when all workers ended
 *   void NAME_watch_end(struct loom_ctx *c): called by each worker when it leaves the kernel; collective */
enum {
	LOOM_CODE_WATCHES = 1,
	LOOM_CODE_VIRTUAL = 2, /* in virtual time, the host half runs agents (clock.h) in place of threads */
};

/* LOOM_EMBED(symbol, "path") embeds the bytes of a file as symbol..symbol_end at compile time. */
#define LOOM_EMBED(symbol, path) LOOM_EMBED_TEXT(symbol, ".incbin \"" path "\"\n")
#define LOOM_EMBED_TEXT(symbol, text)                                                              \
	__asm__(".pushsection .rodata\n.local " #symbol "\n.local " #symbol "_end\n" #symbol       \
		":\n" text #symbol "_end:\n.byte 0\n.popsection\n");                               \
	extern const char symbol[] __attribute__((visibility("hidden")));                          \
	extern const char symbol##_end[] __attribute__((visibility("hidden")))
/* LOOM_DEVICE_CODE(symbol, cpu_table, "a.dev.h", LOOM_CODE_FILE("b.dev.h") LOOM_CODE_FILE("a.dev.h"), fields...)
 * defines a table whose source is the texts of these files, one after the other. Messages of compilers name the right
 * file and line. */
#define LOOM_DEVICE_CODE(symbol, table, name, files, ...)                                          \
	LOOM_EMBED_TEXT(symbol##_text, files);                                                     \
	static const struct loom_device_code symbol = {.size = sizeof(symbol), .cpu = &(table), .source_name = name, \
		.source = symbol##_text, .source_end = symbol##_text_end, __VA_ARGS__}
#define LOOM_CODE_FILE(path) ".ascii \"\\n#line 1 \\\"" path "\\\"\\n\"\n.incbin \"" path "\"\n"

/* ---- descriptor ------------------------------------------------------------------------------ */

struct loom_plugin {
	uint32_t magic, abi; /* LOOM_PLUGIN_MAGIC, LOOM_ABI */
	size_t size;
	uint32_t kind, reserved;
	const char *name; /* begins with the short name of its kind: "term_counter" in term_counter.so */
	const char *version;
	const char *license; /* SPDX expression */
	const char *summary; /* one line about the plug-in */
	const struct loom_opt *opts; /* ends with a row whose name is NULL; NULL: no options */
	size_t opts_size;            /* size of the struct that the rows describe */
	uint64_t caps;               /* capabilities: LOOM_CAP_* of the kind's header */
	const void *ops;             /* table of host functions: struct loom_<kind>_ops */
	const struct loom_device_code *dev; /* NULL for devices and transports */
	/* Checks that options fit each other, beyond what the rows say. Returns 0, or LOOM_REFUSE() with the wrong
	 * option and one sentence. Every conf is checked before anything is opened, by `gpuloom config check`, and for
	 * all cells of a sweep. So the function reads only `opts`, and no device, file or rank. NULL: options always
	 * fit. */
	int (*check)(const struct loom_host *host, const void *opts, struct loom_error *err);
};

#ifndef LOOM_DEVICE_COMPILE
/* The only symbol that a plug-in exports. The function must use no device, start no thread and write nothing. */
LOOM_EXPORT const struct loom_plugin *loom_plugin_entry(void);
#endif

/* The identity of a plug-in as an ELF note, so that `gpuloom list` need not run its code. */
struct loom_manifest {
	uint32_t magic, abi, kind;
	char name[40], version[24], license[32], summary[160];
};
struct loom_note {
	uint32_t name_size, desc_size, type;
	char owner[8]; /* "gpuloom" */
	struct loom_manifest manifest;
};
#define LOOM_NOTE_TYPE 1u
#define LOOM_NOTE_SECTION ".note.gpuloom"

/* Defines the entry function and the note from one declaration:
 *   LOOM_PLUGIN_DEFINE(TERM, "term_counter", "1.0.0", "Apache-2.0", "one line",
 *                      .opts = rows, .opts_size = sizeof(struct opts), .ops = &ops, .dev = &dev) */
#define LOOM_PLUGIN_DEFINE(KIND, NAME, VERSION, LICENSE, SUMMARY, ...)                             \
	__attribute__((used, section(LOOM_NOTE_SECTION),                                           \
		       aligned(4))) static const struct loom_note loom_plugin_note = {             \
		.name_size = 8,                                                                    \
		.desc_size = sizeof(struct loom_manifest),                                         \
		.type = LOOM_NOTE_TYPE,                                                            \
		.owner = "gpuloom",                                                                \
		.manifest = {LOOM_PLUGIN_MAGIC, LOOM_ABI, LOOM_##KIND, NAME, VERSION, LICENSE,     \
			     SUMMARY}};                                                            \
	const struct loom_plugin *loom_plugin_entry(void)                                          \
	{                                                                                          \
		static const struct loom_plugin self = {.magic = LOOM_PLUGIN_MAGIC,                \
							.abi = LOOM_ABI,                           \
							.size = sizeof(struct loom_plugin),        \
							.kind = LOOM_##KIND,                       \
							.name = NAME,                              \
							.version = VERSION,                        \
							.license = LICENSE,                        \
							.summary = SUMMARY,                        \
							__VA_ARGS__};                              \
		return &self;                                                                      \
	}

/* ---- what policies share: the layout of workers, and the memory that they request ----------- */

#define LOOM_MAX_DEVICES 64

/* What a device contributes to a stack. */
struct loom_device_shape {
	char name[48];         /* name, such as "cpu:0" */
	uint32_t first_worker; /* number of the device's first worker in the stack; the core sets it */
	uint32_t workers, lanes;
	int32_t numa_node;       /* -1: none, or not known */
	uint64_t local_bytes;    /* limit on the scratchpad memory of a worker in bytes, such as a GPU's shared memory */
	uint32_t kind;           /* LOOM_ON_CPU or LOOM_ON_GPU: the affinity of tasks that the device may run */
	uint32_t flags;          /* LOOM_SHAPE_* */
	/* Modelled times of a kernel launch and of its end, for a device without kernels, such as a CPU. 0: they take
	 * no time. */
	uint64_t launch_ns, teardown_ns;
	uint64_t reserved[4]; /* 0; see struct loom_opt */
};
enum { LOOM_ON_ANY = 0, LOOM_ON_CPU = 1, LOOM_ON_GPU = 2 };
enum {
	/* Read-modify-writes of the device on host memory are not atomic with read-modify-writes of CPUs, as on x86
	 * over PCIe. */
	LOOM_SHAPE_NO_LINK_ATOMICS = 1,
	/* Between samples, the workers take no resources, and they see host memory as it is. They start at GO even if
	 * no READY came before. They may stay launched from run to run. */
	LOOM_SHAPE_PERSISTENT = 2,
	/* The core sets this flag from the first sample on if a device of another rank is the same hardware, which runs
	 * kernels of processes in turns. Each wait for that rank then lasts at least one turn, which takes
	 * milliseconds. */
	LOOM_SHAPE_TIME_SLICED = 4,
	/* The device supports LOOM_LAUNCH_KEPT. */
	LOOM_SHAPE_KEEPS = 8,
	/* Experimental. Warps multiply matrices of float16 and bfloat16 as plugins/workloads/tasks/tile.dev.h does. */
	LOOM_SHAPE_PRODUCTS = 16,
};

struct loom_clock;
struct loom_interrupts;

/* All workers of a stack. It is constant from the first need() to destroy(). */
struct loom_layout {
	size_t size;
	uint32_t devices, workers;
	const struct loom_device_shape *device;
	uint64_t initial_tasks; /* 0 in a need() that is called before the workload is prepared */
	uint64_t seed;          /* [run] seed: the same seed gives the same choices */
	/* 1: between devices, only loads and stores are atomic, so no two devices may change the same word. The need()
	 * of a policy that needs such a word fails. */
	uint32_t noncoherent;
	/* 1: if ranks share tasks, workers can access the memory of other ranks only by rma() of the trigger. 0: they
	 * access it by loads, stores and atomics of scope sys. */
	uint32_t rma;
	const struct loom_clock *clock; /* virtual clock of the devices (clock.h); NULL: they use the host's clock */
	/* Interrupts of devices (interrupt.h). NULL: none, as in a test without a core. */
	const struct loom_interrupts *interrupts;
	/* If ranks share tasks ([run] tasks = shared): the number of this rank, the number of ranks, and the sums of
	 * workers and devices of other ranks. The sums are known after the device code was composed. If `ranks` is 0 or
	 * 1, tasks stay in this rank. */
	uint32_t rank, ranks, remote_workers, remote_devices;
	const struct loom_barrier_scopes *barrier_scopes; /* scopes of the workload (barrier.h); NULL: none */
	/* What workload and barrier need of the trigger. All members are 0 until need() of workload and barrier was
	 * called. NULL: not known. */
	const struct loom_net_need *net;
	uint32_t reaches; /* 1: the trigger has reach(), so workers may access other ranks without posts */
	uint32_t reserved;
	uint64_t costs; /* enum loom_costs */
};

/* What declares the costs of initial tasks, for schedulers that plan: nothing; cost() of the workload's device half
 * (workload.h); the data descriptors of a program's tasks (task.h). */
enum loom_costs { LOOM_COSTS_UNKNOWN, LOOM_COSTS_OF_WORKLOAD, LOOM_COSTS_OF_DATA };

/* The memory in which a block is. */
enum loom_place {
	LOOM_PLACE_ANY = 0, /* where the transport places memory of the block's owner */
	LOOM_PLACE_HOST,    /* host memory: the host reads or writes the block while workers run */
	/* Only for blocks per device, and the block for a stack of one device whose rank shares no tasks: memory of that device,
	 * whatever the transport. No other device can access it, and the host only while no worker runs. */
	LOOM_PLACE_DEVICE,
	/* Only for blocks for the stack: memory that the selected trigger accepts as source and target of operations.
	 * If the trigger accepts all memory (`anywhere` in struct loom_trigger_ops), this is LOOM_PLACE_ANY, else
	 * LOOM_PLACE_HOST. */
	LOOM_PLACE_NET,
	LOOM_PLACES
};

/* What a sample posts and fires (trigger.h), as far as known. If the conf sets no sizes, this sizes the trigger's
 * tables. */
struct loom_net_need {
	uint32_t posts; /* operations that are posted at the same time */
	uint32_t tags;	/* tags that are fired, posted for or chained to, and arrivals for which posts wait */
	uint32_t slots, arrivals; /* 1 plus the highest completion slot; 1 plus the highest arrival word */
};

/* The parts of a block that init() writes: so many bytes at its beginning and at its end, multiples of 4. */
struct loom_need_reset {
	uint64_t head, tail;
};

/* The memory that a policy needs, in bytes. The core allocates it through the transport, zeroed and aligned to 64
 * bytes; a block of 64 KiB or more to 4,096. */
struct loom_need {
	size_t size;
	uint64_t global; /* bytes of the block for the stack */
	uint64_t device; /* bytes of the block for each device, which the device owns */
	uint64_t worker; /* bytes of the block for each worker, which its device owns; all workers can access it */
	uint64_t local;  /* bytes of the private block for each worker, in shared memory on a GPU */
	uint32_t flags;  /* LOOM_NEED_* */
	uint8_t global_place, device_place, worker_place; /* enum loom_place of the first three blocks */
	uint8_t reserved;
	struct loom_net_need net; /* what a workload or barrier needs of the trigger */
	struct loom_need_reset reset_global, reset_device, reset_worker; /* for LOOM_NEED_RESET */
};
enum {
	/* For workloads: tasks() fills the block for the stack, and nothing writes to it afterwards. So devices may
	 * read copies of the block in their own memory. */
	LOOM_NEED_CONSTANT = 1,
	/* A run may end without workers that are slow to wake. This requires one device, and that scheduler and
	 * detector both set the flag. A scheduler that sets it promises that every worker can get all work. A detector
	 * that sets it promises that the host may call idle() for a worker before the run. A worker that wakes first
	 * calls busy(), even after done() has returned 1 to another worker. */
	LOOM_NEED_LATE = 2,
	/* `reset_global`, `reset_device` and `reset_worker` name all that init() writes, and what it writes depends only on
	 * options and layout. So GPUs of an embedding program reset these parts themselves before each sample, and the core
	 * need not call init() (core/stack/reset.c). Words of the parts that init() does not write may then have any value.
	 * Without the flag, the core calls init() before each sample. */
	LOOM_NEED_RESET = 4,
	/* Experimental. For a scheduler: it can run small samples (dev/ctx.h). */
	LOOM_NEED_SMALL = 8,
	/* With LOOM_NEED_RESET: what init() writes depends on the number of initial tasks. */
	LOOM_NEED_VARIES = 16,
};

/* The blocks of a policy at addresses of the host, or images of them that the core copies to and from the device.
 * `device` and `worker` are arrays over layout->devices and layout->workers. */
struct loom_view {
	size_t size;
	void *global;
	void *const *device;
	void *const *worker;
};

/* The blocks of the same policy in another rank that shares tasks. The pointers are addresses for workers of this rank;
 * if these workers run on CPUs, also for the host. With layout->rma they are references for rma() of the trigger. */
struct loom_remote_blocks {
	size_t size;
	uint32_t workers, devices; /* numbers of workers and devices of that rank */
	void *global;	     /* block for the stack; NULL: none */
	void *const *worker; /* [workers]; block of each worker; NULL: none */
};

/* The address space that runs the workers of `device`. The pointers are valid in this address space, until detach(). */
struct loom_space {
	size_t size;
	uint32_t device;
	uint32_t reserved;
	const struct loom_layout *layout;
	void *global;    /* the policy's block for the stack; NULL: none */
	void *on_device; /* the policy's block for this device */
	void *ctl;       /* the control words: struct loom_ctl */
};

/* A key by which other processes of this host open a device's memory. Its bytes must be passed on unchanged. */
struct loom_memory_key {
	char maker[16]; /* kind of the device, such as "cpu"; "": no key */
	unsigned char bytes[112];
};

/* The host address of each segment that a loom_ref may name, for host threads and networks. Index 0 is unused. at[i] is
 * NULL if the host cannot access the segment while workers run. */
struct loom_segments {
	size_t size;
	uint32_t count; /* number of segments, with index 0 */
	uint32_t reserved;
	void *const *at;
	const uint64_t *bytes;
	/* For other processes: this process's descriptor of the memory, or -1, and the offset of the segment in it. */
	const int *fd;
	const uint64_t *offset;
	/* A host copy of a segment that the host cannot access. It is copied before and after a sample. NULL: none. */
	void *const *image;
	/* For other ranks of this host. `key` exports the device memory that contains the segment at `offset`. `open`
	 * maps memory of another rank for workers of `device`, until `close`. Only the core's thread may call these
	 * functions. They and `ctx` are valid until the policy's destroy(). They return LOOM_ENOTSUP or LOOM_EUNAVAIL
	 * with the reason. */
	void *ctx;
	int (*key)(void *ctx, uint32_t segment, struct loom_memory_key *key, struct loom_error *err);
	int (*open)(void *ctx, uint32_t device, const struct loom_memory_key *key, uint64_t *at,
		    struct loom_error *err);
	void (*close)(void *ctx, uint32_t device, uint64_t at);
	/* Copies between `host` and a segment that the host cannot access: into the segment if `in` is 1, else out of
	 * it. If key() does not return LOOM_ENOTSUP, one thread of the policy may call this while workers run. */
	int (*copy)(void *ctx, uint32_t segment, uint64_t offset, void *host, uint64_t bytes, int in,
		    struct loom_error *err);
	/* The same without waiting, and also to memory of other ranks: copy_start() and copy_ended() of struct
	 * loom_device_copies, for the device of a segment. An address for LOOM_COPY_TO comes from open() for device 0. With 0
	 * bytes, start_copy() also prepares image[segment] for such copies, and only the core's thread may call it. Other calls
	 * come from one thread of the policy. */
	int (*start_copy)(void *ctx, uint32_t segment, uint64_t offset, uint64_t other, uint64_t bytes, uint32_t how,
			  uint64_t *number, struct loom_error *err);
	int (*copy_ended)(void *ctx, uint32_t segment, uint32_t how, uint64_t number);
};

/* The host half of every policy (sched, term, sync, barrier, trigger, qos). One thread of the core calls all ops, and
 * never while workers run, unless stated otherwise. A NULL op does nothing.
 *
 *   create: makes an instance from filled options, which are valid until destroy. Mandatory.
 *   destroy: frees the instance, after the workers are gone. `self` may be NULL. Mandatory.
 *   need: returns the memory that the policy needs. Mandatory.
 *   init: initialises the blocks before every sample, while workers are parked. Mandatory.
 *   collect: reads statistics after a sample and adds metrics. Returns LOOM_EWRONG if an invariant did not hold, which
 *      makes the sample wrong.
 *   start: begins host threads (monitors, progress engines), which run at the same time as workers and these ops.
 *      Called after all memory is allocated, before workers are launched.
 *   stop: ends these threads, after the workers are gone. Called after every successful start().
 *   constants: writes values that are constant under the options as #define lines, with a NUL at the end. They precede
 *      the device code of a program for GPUs. Called before programs are composed.
 *   explain: writes into *err what a worker's failure (`code` and `info` of loom_worker_fail) means, and what to do.
 *      Returns `code`, or 0 if the failure belongs to another policy. NULL: the core writes the message.
 *   wire: posts network operations for the next sample, after all init() and before the workers start. Called for
 *      barriers with the scope LOOM_SCOPE_JOB, and then for workloads. If a workload has this op, the conf must select a
 *      trigger; for a barrier, only if that scope is used.
 *   connect: for schedulers and detectors, if ranks share tasks (loom_layout.ranks): makes them serve the workers of
 *      all ranks. remote[r] has the policy's blocks in rank r, and is empty for this rank. It is valid until destroy().
 *      Called once on all ranks, after start() and before workers are launched, so it may allgather. NULL: the policy
 *      serves only this rank, and the core rejects a conf that shares tasks. */
#define LOOM_POLICY_OPS                                                                            \
	size_t size;                                                                               \
	int (*create)(const struct loom_host *host, const void *opts, void **self,                 \
		      struct loom_error *err);                                                     \
	void (*destroy)(void *self);                                                               \
	int (*need)(void *self, const struct loom_layout *layout, struct loom_need *need,          \
		    struct loom_error *err);                                                       \
	int (*init)(void *self, const struct loom_layout *layout, const struct loom_view *view,    \
		    struct loom_error *err);                                                       \
	int (*collect)(void *self, const struct loom_layout *layout, const struct loom_view *view, \
		       struct loom_report *report, struct loom_error *err);                        \
	int (*start)(void *self, const struct loom_layout *layout, const struct loom_view *view,   \
		     const struct loom_segments *segments, struct loom_error *err);                \
	void (*stop)(void *self);                                                                  \
	int (*constants)(void *self, const struct loom_layout *layout, char *text, size_t room,    \
			 struct loom_error *err);                                                  \
	int (*explain)(void *self, uint32_t worker, int code, uint64_t info,                       \
		       struct loom_error *err);                                                    \
	int (*wire)(void *self, const struct loom_layout *layout, const struct loom_view *view,    \
		    uint64_t global, const struct loom_trigger *trigger, struct loom_error *err);  \
	int (*connect)(void *self, const struct loom_layout *layout,                               \
		       const struct loom_remote_blocks *remote, struct loom_error *err);

struct loom_trigger;
struct loom_policy_ops {
	LOOM_POLICY_OPS
};

#ifdef __cplusplus
}
#endif
#endif
