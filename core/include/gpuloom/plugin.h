/* SPDX-License-Identifier: Apache-2.0 */
/* What every plug-in author needs: options, the host table, device code, the descriptor, and what policies share.
 *
 * A plug-in is a shared object that exports one symbol, loom_plugin_entry(), which LOOM_PLUGIN_DEFINE makes. It does
 * not link to gpuloom: the core passes it a `struct loom_host`. `gpuloom new-plugin KIND NAME` writes a small working
 * plug-in. Read, for
 *
 *   a program that embeds gpuloom: gpuloom.h and error.h; task.h and dev/dev.h for its task functions
 *   a workload: this file; workload.h, task.h; the first three groups of dev/dev.h; barrier.h, sync.h, trigger.h or
 *      qos.h for the kind whose ops its workers call
 *   a policy: this file; the header of its kind, task.h; dev/ctx.h and dev/dev.h; interrupt.h and clock.h if it has
 *      host threads beside GPUs or simulated devices
 *   a device or a transport: this file; device.h, transport.h; dev/ctx.h, dev/gpu.h and dev/probe.h
 *
 * Each table of ops starts with its size, so that later headers can append to it. */
#ifndef GPULOOM_PLUGIN_H
#define GPULOOM_PLUGIN_H

#include "dev/types.h"
#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LOOM_PLUGIN_MAGIC 0x4d4f4f4cu /* "LOOM", little-endian */
/* The version of this header and those of all kinds; a plug-in runs with cores of the same number. It rises when a
 * change does not show in the size of a table or struct. LOOM_HAS() detects appended members. */
#define LOOM_ABI 1u

/* The kinds of plug-in: X(enum name, short name for files, name of the conf section). */
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
	LOOM_KINDS /* one past the last */
};

/* 1 when the table, as its author compiled it, contains `op` and sets it. */
#define LOOM_HAS(ops, op)                                                                          \
	((ops) && (ops)->size >= (size_t)((const char *)(&(ops)->op + 1) - (const char *)(ops)) && \
	 (ops)->op)

/* Between these two, a struct with padding does not compile. They are for structs that are hashed, compared or
 * exchanged as bytes. tests/check-headers.sh demands the same of shared structs in device code. */
#define LOOM_EXACT_BEGIN _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic error \"-Wpadded\"")
#define LOOM_EXACT_END _Pragma("GCC diagnostic pop")

/* ---- options ------------------------------------------------------------------------------- */

/* X(name, C type of the field, what a user writes) */
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
	LOOM_OPT_REQUIRED = 1,   /* no default: the user must set it */
	LOOM_OPT_DEPRECATED = 2, /* read with a warning that quotes `help` */
	/* The value is run, loaded or written to. A result that serves as a conf may set it only with --trust. */
	LOOM_OPT_TRUST = 4,
	/* For a number: the word auto stands for 0 (-1 of an I64), and the plug-in finds the value as `help` says. */
	LOOM_OPT_AUTO = 8,
};

/* An option, for parsing, default, range, help, `describe`, `config show` and docs. Times are in ns, sizes in bytes,
 * shares 0..1; an ENUM is the index of its choice. The core owns strings until the instance is destroyed; "" means not
 * set. */
struct loom_opt {
	const char *name;           /* lower case with underscores; NULL ends the table */
	const char *dflt;           /* the default as a user would write it; NULL with REQUIRED */
	const char *help;           /* one or two sentences with the unit and the meaning of values */
	const char *const *choices; /* ENUM only: NULL-terminated */
	const char *section;        /* NULL: the plug-in's own; else one that plug-ins of this kind share */
	double min, max;            /* if both are 0, only the bounds of the type apply */
	uint32_t offset;            /* the offset of the field in the plug-in's option struct */
	uint16_t size;              /* the size of the field; checked against the type */
	uint8_t type;               /* enum loom_opt_type */
	uint8_t flags;
};

/* An option that several plug-ins of a kind have is a row that they all include, with a shared `section`: that of the
 * kind, "trigger", or one below it, "workload.exchange". A value there holds for all of them; one in a plug-in's own
 * section overrides it. The core refuses two plug-ins that declare such an option differently. */

/* LOOM_OPT(struct my_opts, field, LOOM_OPT_U32, "default", "help", .min = 1, .max = 256) */
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
	LOOM_BETTER_SAME, /* neither: part of the answer, the same in each right result of a job, however it is run */
};

struct loom_report; /* the results of one sample, filled through the host table */

/* The host table: the core creates it; it is constant and valid until destroy() of the instance returns. It is only
 * appended to: check LOOM_HAS() for members after `metric`; LOOM_HAS(host, allgather) covers rank and ranks. Any thread
 * may call its functions unless stated otherwise. */
struct loom_host {
	size_t size;
	uint32_t abi; /* the ABI of the core */
	uint32_t reserved;
	void *ctx; /* private to the core */
	/* Returns 1 when a message of that level would be shown: for a test before costly formatting. */
	int (*log_on)(const struct loom_host *host, int level);
	/* Logs one line, without newline, to stderr or the callback of the embedding program. */
	void (*log)(const struct loom_host *host, int level, const char *who, const char *fmt, ...)
		LOOM_PRINTF(4, 5);
	/* Fills *err (may be NULL) with one message, and returns `code`. */
	int (*fail)(const struct loom_host *host, struct loom_error *err, int code, const char *file,
		    int line, const char *fmt, ...) LOOM_PRINTF(6, 7);
	/* Returns zeroed memory, 64-byte aligned, or NULL. Free it with `free`. */
	void *(*alloc)(const struct loom_host *host, size_t bytes);
	void (*free)(const struct loom_host *host, void *p);
	uint64_t (*now_ns)(const struct loom_host *host); /* CLOCK_MONOTONIC */
	/* Adds a metric to a sample's report, only in ops that receive `report`. `unit` is as in "tasks/s", "" for a
	 * count. It is an error of the plug-in to add a name twice in a sample. */
	int (*metric)(const struct loom_host *host, struct loom_report *report, const char *name,
		      const char *unit, enum loom_better better, double value);
	/* The rank of this process in the job, and the number of ranks: 0 of 1 without ranks. Constant. */
	uint32_t rank, ranks;
	/* Gathers the `bytes` at `mine` of every rank into all[rank * bytes] on every rank. Collective, in the same
	 * order on all ranks, by the core's thread alone. LOOM_EDIED: a rank is gone. */
	int (*allgather)(const struct loom_host *host, const void *mine, void *all, size_t bytes,
			 struct loom_error *err);
	/* For comparison: equal for all ranks that are threads under one virtual clock; NULL: processes. */
	const void *job;
	/* Records a choice that the conf left to this instance, or that differs from what the conf asked for. `name` is
	 * as in "trigger.provider", section first; both strings are copied. The last text of a name counts. Results
	 * list it under `choices`, `run -v` prints it, and a comparison reports differences. By the core's thread, in
	 * any op from create() to a launch. */
	void (*choice)(const struct loom_host *host, const char *name, const char *text);
	/* In a verify() that may take seconds, at least once a second: reports the checked fraction `done`, from 0 to
	 * 1, for display. Not 0: verify() must end with this code: LOOM_EINTR, the run was stopped; LOOM_ETIMEDOUT, its
	 * time is over ([run] time_limit). */
	int (*progress)(const struct loom_host *host, double done, struct loom_error *err);
};

/* Records a choice, with a format as for printf(), where the core has choice(). The file must include stdio.h. */
#define LOOM_CHOICE(host, name, ...)                                                                 \
	do {                                                                                       \
		char loom_choice_text[120];                                                          \
		snprintf(loom_choice_text, sizeof(loom_choice_text), __VA_ARGS__);                     \
		if (LOOM_HAS(host, choice))                                                          \
			(host)->choice((host), (name), loom_choice_text);                              \
	} while (0)

#define LOOM_FAIL(host, err, code, ...)                                                            \
	((host)->fail((host), (err), (code), __FILE__, __LINE__, __VA_ARGS__))
/* In check(): refuses the value of `option`, and returns LOOM_EINVAL. */
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

/* The device half of a policy, written once over gpuloom/dev/dev.h in a file NAME.dev.h, with functions NAME_OP. The
 * CPU uses `cpu`, a table of pointers to them. GPU back ends compile the embedded text with the rest of the stack. */
struct loom_device_code {
	size_t size;
	const void *cpu;         /* struct loom_<kind>_dev */
	const char *source_name; /* file name for messages of the compiler: "term_counter.dev.h" */
	const char *source;      /* text of the file, not NUL-terminated; NULL: CPU only */
	const char *source_end;
	uint32_t flags; /* LOOM_CODE_* */
	uint32_t reserved;
};
/* On a GPU each block has one wave more for this code, with these functions in the device half's text:
 *   void NAME_watch_begin(void): every thread of the block, once, before all else; ends with a block barrier
 *   void NAME_watch(struct loom_ctx *c): that wave, c->lane its lanes; returns when all workers have ended
 *   void NAME_watch_end(struct loom_ctx *c): each worker, collective, when it leaves the kernel */
enum {
	LOOM_CODE_WATCHES = 1,
	LOOM_CODE_VIRTUAL = 2, /* Where time is virtual, the host half runs agents (clock.h) in place of threads. */
};

/* LOOM_EMBED(symbol, "path") embeds the bytes of a file as symbol..symbol_end at compile time. */
#define LOOM_EMBED(symbol, path) LOOM_EMBED_TEXT(symbol, ".incbin \"" path "\"\n")
#define LOOM_EMBED_TEXT(symbol, text)                                                              \
	__asm__(".pushsection .rodata\n.local " #symbol "\n.local " #symbol "_end\n" #symbol       \
		":\n" text #symbol "_end:\n.byte 0\n.popsection\n");                               \
	extern const char symbol[] __attribute__((visibility("hidden")));                          \
	extern const char symbol##_end[] __attribute__((visibility("hidden")))
/* LOOM_DEVICE_CODE(symbol, cpu_table, "a.dev.h", LOOM_CODE_FILE("b.dev.h") LOOM_CODE_FILE("a.dev.h"), fields...)
 * defines a table over the concatenated texts of these files. Messages of compilers then name file and line. */
#define LOOM_DEVICE_CODE(symbol, table, name, files, ...)                                          \
	LOOM_EMBED_TEXT(symbol##_text, files);                                                     \
	static const struct loom_device_code symbol = {.size = sizeof(symbol), .cpu = &(table), .source_name = name, \
		.source = symbol##_text, .source_end = symbol##_text_end, __VA_ARGS__}
#define LOOM_CODE_FILE(path) ".ascii \"\\n#line 1 \\\"" path "\\\"\\n\"\n.incbin \"" path "\"\n"

/* ---- descriptor ------------------------------------------------------------------------------ */

struct loom_known_leak;
struct loom_plugin {
	uint32_t magic, abi; /* LOOM_PLUGIN_MAGIC, LOOM_ABI */
	size_t size;
	uint32_t kind, reserved;
	const char *name; /* begins with the short name of its kind: "term_counter" in term_counter.so */
	const char *version;
	const char *license; /* SPDX expression */
	const char *summary; /* one line */
	const struct loom_opt *opts; /* ends with .name == NULL; NULL: no options */
	size_t opts_size;            /* the size of the struct that the rows describe */
	uint64_t caps;               /* LOOM_CAP_* of the kind's header */
	const void *ops;             /* struct loom_<kind>_ops */
	const struct loom_device_code *dev; /* NULL for device and transport */
	/* Checks that options fit each other, beyond what the rows say. Returns 0, or LOOM_REFUSE() with the option at
	 * fault and one sentence. Called for every conf before anything is opened, by `gpuloom config check` and for
	 * all cells of a sweep, so it reads `opts` alone: no device, no file, no rank. NULL: options always fit. */
	int (*check)(const struct loom_host *host, const void *opts, struct loom_error *err);
	/* Memory that libraries of the plug-in do not free; `gpuloom validate` prints each leak that it finds. The last
	 * entry has no library. NULL: they free all. */
	const struct loom_known_leak *known_leaks;
};

/* Each pair of create() and destroy() loses so many bytes of malloc(), as mallinfo2() counts them, or a multiple. */
struct loom_known_leak {
	const char *library; /* the soname without the number: "libfabric.so" */
	size_t bytes;
	const char *what; /* a sentence with the object and versions, so that a reader can check the leak */
};

#ifndef LOOM_DEVICE_COMPILE
/* The only exported symbol. It must touch no device, start no thread and write nothing. */
LOOM_EXPORT const struct loom_plugin *loom_plugin_entry(void);
#endif

/* The identity as an ELF note, so that `gpuloom list` need not run code of the plug-in. */
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

/* Defines entry point and note from one declaration:
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

/* ---- what policies share: layout of workers, and memory that they ask for -------------------- */

#define LOOM_MAX_DEVICES 64

/* What one device contributes to a stack. */
struct loom_device_shape {
	char name[48];         /* "cpu:0" */
	uint32_t first_worker; /* set by the core: the global id of the device's first worker */
	uint32_t workers, lanes;
	int32_t numa_node;       /* -1: none or not known */
	uint64_t local_bytes;    /* limit on the private memory of a worker, such as a GPU's shared memory */
	uint32_t kind;           /* LOOM_ON_CPU ...: the affinity of tasks that the device may run */
	uint32_t flags;          /* LOOM_SHAPE_* */
	/* A model of the cost of a kernel launch and its end, for a device that has none, such as a CPU. 0: no cost. */
	uint64_t launch_ns, teardown_ns;
};
enum { LOOM_ON_ANY = 0, LOOM_ON_CPU = 1, LOOM_ON_GPU = 2 };
enum {
	/* Read-modify-writes of the device on host memory are not atomic with those of CPUs: x86 over PCIe. */
	LOOM_SHAPE_NO_LINK_ATOMICS = 1,
	/* The workers cost nothing between samples, see host memory as it is, and start at GO if no READY came before.
	 * They may stay launched from run to run. */
	LOOM_SHAPE_PERSISTENT = 2,
	/* Set by the core, from the first sample on: the device of another rank is the same hardware, which runs
	 * kernels of processes in turns. Each wait for that rank takes a turn: milliseconds. */
	LOOM_SHAPE_TIME_SLICED = 4,
	/* The device supports LOOM_LAUNCH_KEPT. */
	LOOM_SHAPE_KEEPS = 8,
};

struct loom_clock;
struct loom_interrupts;

/* All workers of a stack. Constant from the first need() to destroy(). */
struct loom_layout {
	size_t size;
	uint32_t devices, workers;
	const struct loom_device_shape *device;
	uint64_t initial_tasks; /* 0 while need() runs before the workload is prepared */
	uint64_t seed;          /* [run] seed: the same seed makes the same choices */
	/* 1: between devices only loads and stores are atomic, so no two devices may change the same word. A policy
	 * that needs such a word fails in need(). */
	uint32_t noncoherent;
	/* For ranks that share tasks. 1: workers reach the memory of other ranks only by rma() of the trigger. 0: by
	 * loads, stores and atomics of scope sys. */
	uint32_t rma;
	const struct loom_clock *clock; /* The virtual clock of the devices: clock.h. NULL: the clock of the host. */
	/* Interrupts of devices: interrupt.h. NULL: none, as in a test without a core. */
	const struct loom_interrupts *interrupts;
	/* If ranks share tasks ([run] tasks = shared): the number of this rank, and the number of ranks; 0 or 1:
	 * tasks stay here. The sums of workers and devices of other ranks are known once the device code is composed.
	 * */
	uint32_t rank, ranks, remote_workers, remote_devices;
	const struct loom_barrier_scopes *barrier_scopes; /* the workload's scopes: barrier.h. NULL: none */
	/* The needs of workload and barrier for the trigger; all 0 before their need(). NULL: not known. */
	const struct loom_net_need *net;
	uint32_t reaches; /* 1: the trigger has reach(), so workers may do without posts */
	uint32_t reserved;
	/* [initial_tasks]: what the workload declares that its initial tasks cost (workload.h), from the scheduler's init() on.
	 * NULL: it declares none. */
	const uint64_t *costs;
};

/* The memory that holds a block. */
enum loom_place {
	LOOM_PLACE_ANY = 0, /* where the transport places memory of its owner */
	LOOM_PLACE_HOST,    /* in host memory: the host reads or writes it while workers run */
	/* Only for blocks per device: the memory of that device, whatever the transport. No other device reaches
	 * this memory; the host reaches it only while no worker runs. */
	LOOM_PLACE_DEVICE,
	/* Only for blocks for the stack: memory that the selected trigger sends from and to. This is host memory, or
	 * the memory of LOOM_PLACE_ANY if the trigger reaches all (`anywhere` in struct loom_trigger_ops). */
	LOOM_PLACE_NET,
	LOOM_PLACES
};

/* The posts and fires of a sample (trigger.h), as far as known. They size a trigger's tables, unless the conf does. */
struct loom_net_need {
	uint32_t posts; /* operations that are posted at the same time */
	uint32_t tags;	/* tags that are fired, posted for or chained to, and arrivals that posts wait for */
	uint32_t slots, arrivals; /* 1 plus the highest completion slot; 1 plus the highest arrival word */
};

/* The bytes that a policy needs. The core allocates them through the transport, zeroed and 64-byte aligned. */
struct loom_need {
	size_t size;
	uint64_t global; /* one block for the stack */
	uint64_t device; /* one block per device, owned by it */
	uint64_t worker; /* one block per worker, owned by its device, which all workers can access */
	uint64_t local;  /* one private block per worker: shared memory on a GPU */
	uint32_t flags;  /* LOOM_NEED_* */
	uint8_t global_place, device_place, worker_place; /* enum loom_place of the three public blocks */
	uint8_t reserved;
	struct loom_net_need net; /* the network needs of workloads and barriers */
};
enum {
	/* For workloads: tasks() fills the block for the stack, and nothing writes to it afterwards. So non-coherent
	 * devices (loom_layout) may read copies in their own memory. */
	LOOM_NEED_CONSTANT = 1,
	/* A run may end without workers that are slow to wake, where scheduler and detector set this and the stack
	 * has one device. A scheduler that sets it: every worker can reach all work. A detector that sets it: the host
	 * may call idle() for a worker before the run. A worker that wakes first calls busy(), even after done() has
	 * returned 1 to another. */
	LOOM_NEED_LATE = 2,
	/* Of a scheduler or detector: what init() writes depends on earlier samples, or init() accepts one number of initial
	 * tasks only. The core then calls init() before each sample on GPUs, too (core/stack/reset.c). */
	LOOM_NEED_INIT = 4,
};

/* The blocks of a policy as the host accesses them, or images that the core copies to and from the device. `device`
 * and `worker` are arrays over layout->devices and layout->workers. */
struct loom_view {
	size_t size;
	void *global;
	void *const *device;
	void *const *worker;
};

/* The blocks of the same policy in another rank that shares tasks. Pointers are addresses for the workers of this rank,
 * and for the host where these are CPUs. With layout->rma they are references for rma() of the trigger. */
struct loom_remote_blocks {
	size_t size;
	uint32_t workers, devices; /* workers and devices of that rank */
	void *global;	     /* NULL: none */
	void *const *worker; /* [workers]; NULL: none */
};

/* The address space that runs the workers of `device`. The pointers belong to it, and are valid until detach(). */
struct loom_space {
	size_t size;
	uint32_t device;
	uint32_t reserved;
	const struct loom_layout *layout;
	void *global;    /* the policy's block for the stack; NULL: none */
	void *on_device; /* the policy's block for this device */
	void *ctl;       /* struct loom_ctl */
};

/* A key by which other processes of this host open a device's memory. The bytes are passed on unchanged. */
struct loom_memory_key {
	char maker[16]; /* the kind of the device: "cuda"; "": no key */
	unsigned char bytes[112];
};

/* The host address of each segment that a loom_ref may name, for host threads and networks. Index 0 is unused. at[i] is
 * NULL where the host cannot access the memory while workers run. */
struct loom_segments {
	size_t size;
	uint32_t count; /* one past the last */
	uint32_t reserved;
	void *const *at;
	const uint64_t *bytes;
	/* For other processes: this process's descriptor of the memory (-1: none), and the segment's offset in it. */
	const int *fd;
	const uint64_t *offset;
	/* A host copy of a segment that the host cannot access, made before and after a sample; NULL: none. */
	void *const *image;
	/* For other ranks of this host: `key` exports the device memory that contains the segment, at `offset`. `open`
	 * maps their memory for workers of `device`, until `close`. Functions and `ctx` are valid until the policy's
	 * destroy(). LOOM_ENOTSUP, LOOM_EUNAVAIL with the reason. By the core's thread. */
	void *ctx;
	int (*key)(void *ctx, uint32_t segment, struct loom_memory_key *key, struct loom_error *err);
	int (*open)(void *ctx, uint32_t device, const struct loom_memory_key *key, uint64_t *at,
		    struct loom_error *err);
	void (*close)(void *ctx, uint32_t device, uint64_t at);
	/* Copies between `host` and a segment that the host cannot access, into (`in`) or out of it. One thread of the
	 * policy calls it beside workers, except where key() returns LOOM_ENOTSUP. */
	int (*copy)(void *ctx, uint32_t segment, uint64_t offset, void *host, uint64_t bytes, int in,
		    struct loom_error *err);
};

/* The host half of every policy (sched, term, sync, barrier, trigger, qos). One thread of the core calls all ops, never
 * while workers run, unless stated otherwise. A NULL op does nothing.
 *
 *   create: makes an instance from filled options, which are valid until destroy. Mandatory.
 *   destroy: ends it, after the workers are gone. NULL is legal. Mandatory.
 *   need: returns the memory that the policy needs. Mandatory.
 *   init: initialises the blocks before every sample, while workers are parked. Mandatory.
 *   collect: reads statistics after a sample and adds metrics. Returns LOOM_EWRONG when an invariant did not hold,
 *      which makes the sample wrong.
 *   start: begins host threads (monitors, progress engines), which run beside the workers and these ops. Called when
 *      all memory is in place, before workers are launched.
 *   stop: ends those threads, after the workers are gone. Follows every successful start().
 *   constants: writes what is constant under the options as #define lines, NUL-terminated, which precede the device
 *      code of a program for GPUs. Called once, before programs are composed.
 *   explain: puts into *err what a worker's failure (loom_worker_fail: code, info) means, and what to do about it.
 *      Returns `code`, or 0 when the failure belongs to another policy. NULL: the core words it.
 *   wire: posts network operations for the next sample, after every init(), before the workers start. Of workloads, and
 *      before them of barriers with scope all ranks. Not NULL: the conf must select a trigger, for a barrier only with
 *      that scope.
 *   connect: of schedulers and detectors where ranks share tasks (loom_layout.ranks): makes them serve the workers of
 *      all ranks. remote[r], valid until destroy(), are the policy's blocks in rank r; that of this rank is empty.
 *      Called once on all ranks, after start() and before workers are launched: it may allgather. NULL: the policy
 *      serves this rank alone, and the core rejects a conf that shares tasks. */
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
