/* SPDX-License-Identifier: Apache-2.0 */
/* What every plug-in author needs: options, the host table, device code, the descriptor, and what policies share.
 *
 * A plug-in is a shared object that exports one symbol, loom_plugin_entry(), made by LOOM_PLUGIN_DEFINE. It links to nothing
 * of gpuloom: the core hands it a `struct loom_host`. `gpuloom new-plugin KIND NAME` writes a small one that works. What to
 * read, by what you write:
 *
 *   a program that embeds gpuloom   gpuloom.h and error.h; task.h and dev/dev.h for its task functions
 *   a workload                      this file; workload.h, task.h; the first three groups of dev/dev.h; barrier.h, sync.h,
 *                                   trigger.h or qos.h for the kind whose ops its workers call
 *   a policy                        this file; the header of its kind, task.h; dev/ctx.h and dev/dev.h; interrupt.h and
 *                                   clock.h if it has host threads beside GPUs or simulated devices
 *   a device or a transport         this file; device.h, transport.h; dev/ctx.h, dev/gpu.h and dev/probe.h
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
/* The interface of this header and of those of all kinds. It rises when a table or struct changes in a way that its size
 * cannot tell: what is only appended is known by LOOM_HAS(). A plug-in runs with cores of the same number. */
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

/* 1 when the table, as its author compiled it, reaches as far as `op` and sets it. */
#define LOOM_HAS(ops, op)                                                                          \
	((ops) && (ops)->size >= (size_t)((const char *)(&(ops)->op + 1) - (const char *)(ops)) && \
	 (ops)->op)

/* For a struct that is hashed, compared or exchanged as bytes: between these two, one with padding does not compile. Padding
 * of a struct that is copied by value is not initialised. Structs of device code, which are in shared blocks, have none
 * either (tests/check-headers.sh). */
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
	LOOM_OPT_REQUIRED = 1,   /* no default: the user must give it */
	LOOM_OPT_DEPRECATED = 2, /* still read, with a warning that quotes `help` */
	LOOM_OPT_TRUST = 4, /* its value is run, loaded or written to: from a result as a conf only with --trust */
	/* Of a number: the word auto is 0, of an I64 -1, and the plug-in finds the value: `help` says how. */
	LOOM_OPT_AUTO = 8,
};

/* One option: serves parsing, default, range, help, `describe`, `config show`, docs. Times are
 * stored in ns, sizes in bytes, shares as 0..1, an ENUM as the index of its choice. Strings belong
 * to the core and live as long as the plug-in's instance; "" means not given. */
struct loom_opt {
	const char *name;           /* lower case with underscores; NULL ends the table */
	const char *dflt;           /* default as a user would write it; NULL with REQUIRED */
	const char *help;           /* one or two sentences, with the unit and the meaning of values */
	const char *const *choices; /* ENUM only: NULL-terminated */
	const char *section;        /* NULL: the plug-in's own; else one that plug-ins of this kind share, see below */
	double min, max;            /* both 0: no bounds beyond those of the type */
	uint32_t offset;            /* of the field in the plug-in's option struct */
	uint16_t size;              /* of the field; checked against the type */
	uint8_t type;               /* enum loom_opt_type */
	uint8_t flags;
};

/* An option that several plug-ins of a kind have is declared by a row that all of them include, with the shared section:
 * that of the kind, "trigger", or one below it, "workload.exchange". It is set once for all of them there, and for one plug-in
 * alone in that plug-in's own section, which counts over the shared one. Two plug-ins that declare it differently are refused. */

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
	LOOM_BETTER_SAME, /* neither: of the answer, the same in each right result of a job, however it is run */
};

struct loom_report; /* the results of one sample, filled through the host table */

/* The host table: created by the core, constant, valid until destroy() of the instance returns.
 * Appended only; check LOOM_HAS() for members past `metric` when your plug-in may meet older cores:
 * LOOM_HAS(host, allgather) covers rank and ranks.
 * Every function may be called from any thread unless its comment says otherwise. */
struct loom_host {
	size_t size;
	uint32_t abi; /* of the core */
	uint32_t reserved;
	void *ctx; /* the core's own */
	/* 1 when a message of that level would be seen: test before costly formatting. */
	int (*log_on)(const struct loom_host *host, int level);
	/* One line for stderr or the embedder's callback, without newline. */
	void (*log)(const struct loom_host *host, int level, const char *who, const char *fmt, ...)
		LOOM_PRINTF(4, 5);
	/* Fills *err (may be NULL) with one message and returns `code`. */
	int (*fail)(const struct loom_host *host, struct loom_error *err, int code, const char *file,
		    int line, const char *fmt, ...) LOOM_PRINTF(6, 7);
	/* Zeroed memory, or NULL; free with `free`. Aligned to 64 bytes. */
	void *(*alloc)(const struct loom_host *host, size_t bytes);
	void (*free)(const struct loom_host *host, void *p);
	uint64_t (*now_ns)(const struct loom_host *host); /* CLOCK_MONOTONIC */
	/* Adds one figure to a sample's report; only inside the ops that receive `report`. `unit` as
	 * in "tasks/s", "" for a count. The same name twice in a sample is an error of the plug-in. */
	int (*metric)(const struct loom_host *host, struct loom_report *report, const char *name,
		      const char *unit, enum loom_better better, double value);
	/* This process among the ranks of the job: 0 of 1 unless ranks were asked for. Constant. */
	uint32_t rank, ranks;
	/* Gives every rank what each gave: `bytes` of `mine` into all[rank * bytes]. Collective, in
	 * the same order everywhere, by the core's thread alone. LOOM_EDIED: a rank is gone. */
	int (*allgather)(const struct loom_host *host, const void *mine, void *all, size_t bytes,
			 struct loom_error *err);
	/* The same for all ranks where they are threads of one process, under one virtual clock; NULL where each is a
	 * process. Only to be compared. */
	const void *job;
	/* What this instance chose where its conf left the choice to it, or got in place of what it asked for: a name as
	 * in "trigger.provider", section first, and a short text. Results have it among `choices`, `run -v` prints it, and a
	 * comparison of two results says where it differs. Copied; the last text of a name counts. By the core's thread, in
	 * any op from create() to a launch. */
	void (*choice)(const struct loom_host *host, const char *name, const char *text);
	/* By verify() of a workload where it may take seconds, some times a second or more often: `done`, from 0 to 1, of the
	 * check is over. Users see it. Not 0: the check is to end, with this code: LOOM_EINTR, the run was stopped;
	 * LOOM_ETIMEDOUT, its time is over ([run] time_limit). */
	int (*progress)(const struct loom_host *host, double done, struct loom_error *err);
};

/* As printf(), where the core has fact(); for files that include stdio.h. */
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

/* The half of a policy that workers execute. Written once over gpuloom/dev/dev.h in a file
 * NAME.dev.h whose functions are called NAME_OP: the CPU uses `cpu`, a table of pointers to them;
 * GPU back ends compile the embedded text of the file with the rest of the stack. */
struct loom_device_code {
	size_t size;
	const void *cpu;         /* struct loom_<kind>_dev */
	const char *source_name; /* for compiler messages, as in "term_counter.dev.h" */
	const char *source;      /* text of the file, not NUL-terminated; NULL: CPU only */
	const char *source_end;
	uint32_t flags; /* LOOM_CODE_* */
	uint32_t reserved;
};
/* On a GPU one wave more per block belongs to this code, in the device half's text:
 *   void NAME_watch_begin(void)               every thread of the block, once, before all else; ends with a
 *                                             barrier of the block
 *   void NAME_watch(struct loom_ctx *c)       that wave, c->lane its lanes; returns when all workers have ended
 *   void NAME_watch_end(struct loom_ctx *c)   each worker, collective, when it leaves the kernel */
enum {
	LOOM_CODE_WATCHES = 1,
	/* Where time is virtual, the host half has no threads: what they would do are agents (clock.h). */
	LOOM_CODE_VIRTUAL = 2,
};

/* LOOM_EMBED(symbol, "path"): the bytes of a file as symbol..symbol_end, at compile time. */
#define LOOM_EMBED(symbol, path) LOOM_EMBED_TEXT(symbol, ".incbin \"" path "\"\n")
#define LOOM_EMBED_TEXT(symbol, text)                                                              \
	__asm__(".pushsection .rodata\n.local " #symbol "\n.local " #symbol "_end\n" #symbol       \
		":\n" text #symbol "_end:\n.byte 0\n.popsection\n");                               \
	extern const char symbol[] __attribute__((visibility("hidden")));                          \
	extern const char symbol##_end[] __attribute__((visibility("hidden")))
/* LOOM_DEVICE_CODE(symbol, cpu_table, "a.dev.h", LOOM_CODE_FILE("b.dev.h") LOOM_CODE_FILE("a.dev.h"), fields...): a table
 * over these files' texts, which follow each other. Messages of compilers then name the file and the line in it. */
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
	const char *name; /* with the short prefix of its kind: "term_counter" in term_counter.so */
	const char *version;
	const char *license; /* SPDX expression */
	const char *summary; /* one line */
	const struct loom_opt *opts; /* ends with .name == NULL; NULL: no options */
	size_t opts_size;            /* sizeof the struct that the rows describe */
	uint64_t caps;               /* LOOM_CAP_* of the kind's header */
	const void *ops;             /* struct loom_<kind>_ops */
	const struct loom_device_code *dev; /* NULL for device and transport */
	/* Whether options fit each other, beyond what the rows say: 0, or LOOM_REFUSE() with the option at fault and one
	 * sentence. Called for every conf before anything is opened, also for `gpuloom config check` and all cells of a sweep,
	 * so it reads `opts` alone: no device, no file, no rank. NULL: they always fit. */
	int (*check)(const struct loom_host *host, const void *opts, struct loom_error *err);
	/* For `gpuloom validate`, which prints each that it finds: what libraries of the plug-in do not free. The last one
	 * has no library. NULL: they free all. */
	const struct loom_known_leak *known_leaks;
};

/* So many bytes of malloc(), as mallinfo2() counts them, or a multiple, are lost at each create() and destroy(). */
struct loom_known_leak {
	const char *library; /* its soname without the number: "libfabric.so" */
	size_t bytes;
	const char *what; /* a sentence: which object of which versions, so that a reader can check it */
};

#ifndef LOOM_DEVICE_COMPILE
/* The only exported symbol. Pure: touches no device, starts no thread, writes nothing. */
LOOM_EXPORT const struct loom_plugin *loom_plugin_entry(void);
#endif

/* The same identity as an ELF note, so that `gpuloom list` need not run the plug-in's code. */
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
	uint32_t first_worker; /* filled by the core: global id of its first worker */
	uint32_t workers, lanes;
	int32_t numa_node;       /* -1: none or not known */
	uint64_t local_bytes;    /* most private memory per worker, e.g. a GPU's shared memory */
	uint32_t kind;           /* LOOM_ON_CPU ... : which tasks it may run, by affinity */
	uint32_t flags;          /* LOOM_SHAPE_* */
	/* For a device that has no kernel launches, such as a CPU: what a launch and its end are made to cost, as a
	 * model. 0: nothing. */
	uint64_t launch_ns, teardown_ns;
};
enum { LOOM_ON_ANY = 0, LOOM_ON_CPU = 1, LOOM_ON_GPU = 2 };
enum {
	/* Its read-modify-writes of host memory are not atomic with those of CPUs: x86 over PCIe. */
	LOOM_SHAPE_NO_LINK_ATOMICS = 1,
	/* Its workers cost nothing between samples, see the host's memory as it is, and start at GO if no READY
	 * came before: they may stay launched from run to run. */
	LOOM_SHAPE_PERSISTENT = 2,
	/* Its clock is virtual: what its wait() calls the end of a sample is how long the sample took. */
	LOOM_SHAPE_IS_VIRTUAL = 4,
	/* Set by the core, from the first sample on: another rank's device is the same hardware, which runs the kernels of
	 * processes in turns. Each wait for that rank takes a turn: milliseconds. */
	LOOM_SHAPE_TIME_SLICED = 8,
};

struct loom_clock;
struct loom_interrupts;

/* All workers of a stack. Constant from the first need() to destroy(). */
struct loom_layout {
	size_t size;
	uint32_t devices, workers;
	const struct loom_device_shape *device;
	uint64_t initial_tasks; /* 0 while need() runs before the workload is prepared */
	uint64_t seed;          /* [run] seed: the same seed gives the same choices */
	/* 1: between devices only loads and stores are atomic, so no word may be changed by two devices. A policy
	 * that needs such a word fails in need(). */
	uint32_t noncoherent;
	/* 1: workers reach the memory of other ranks by the trigger's rma() alone. 0: by loads, stores and atomics of the
	 * scope of all. Of ranks that share tasks. */
	uint32_t rma;
	/* The clock of the devices where it is virtual: clock.h. NULL: theirs is the host's. */
	const struct loom_clock *clock;
	/* Interrupts of devices: interrupt.h. NULL: none, as in a test without a core. */
	const struct loom_interrupts *interrupts;
	/* Ranks that run one set of tasks together ([run] tasks = shared): this one, and how many. 0 or 1: tasks stay
	 * here. Workers and devices of the others, in sum, are known once the device code is composed. */
	uint32_t rank, ranks, remote_workers, remote_devices;
	const struct loom_barrier_scopes *barrier_scopes; /* of the workload: barrier.h. NULL: none */
	/* What workload and barrier need of the trigger; all 0 before their need(). NULL: not known. */
	const struct loom_net_need *net;
	uint32_t reaches; /* 1: the selected trigger has reach(), so that workers may do without posts */
};

/* Where a block is. */
enum loom_place {
	LOOM_PLACE_ANY = 0, /* where the transport puts memory of its owner */
	LOOM_PLACE_HOST,    /* in host memory: the host reads or writes it while workers run */
	/* Of blocks per device alone: in that device's own memory, whatever the transport. No other device reaches
	 * it, and the host only while no worker runs. */
	LOOM_PLACE_DEVICE,
	/* Of blocks for the stack alone: where the selected trigger sends from and to. That is host memory, unless that
	 * trigger reaches all (`anywhere` in struct loom_trigger_ops); then it is as ANY. */
	LOOM_PLACE_NET,
	LOOM_PLACES
};

/* What is posted and fired in a sample (trigger.h), as far as it is known before. The tables of a trigger have as many places,
 * unless the conf sets them. */
struct loom_net_need {
	uint32_t posts; /* operations that are posted at once */
	uint32_t tags;	/* that are fired, posted for or chained to; arrivals that posts wait for are some, too */
	uint32_t slots, arrivals; /* the highest completion slot and arrival word, and 1 more */
};

/* Bytes that a policy needs; the core makes them through the transport, zeroed and 64-byte aligned. */
struct loom_need {
	size_t size;
	uint64_t global; /* one block for the stack */
	uint64_t device; /* one block per device, owned by it */
	uint64_t worker; /* one block per worker, owned by its device, seen by all */
	uint64_t local;  /* one private block per worker: shared memory on a GPU */
	uint32_t flags;  /* LOOM_NEED_* */
	uint8_t global_place, device_place, worker_place; /* enum loom_place of the first three */
	uint8_t reserved;
	struct loom_net_need net; /* of workloads and barriers */
};
enum {
	/* For workloads: tasks() fills the block for the stack, and nothing writes to it afterwards. So devices that
	 * are non-coherent (loom_layout) may read copies in their own memory. */
	LOOM_NEED_CONSTANT = 1,
	/* Of a scheduler: all work is there for every worker, so a run may end without one that is slow to wake up.
	 * Of a detector: the host may call idle() for a worker before the run begins, and the worker, if it comes,
	 * calls busy() first, though done() may have said 1 to another. On one device alone, where both say so. */
	LOOM_NEED_LATE = 2,
};

/* The same blocks as the host sees them, or images that the core copies to and from the device.
 * `device` and `worker` are arrays over layout->devices and layout->workers. */
struct loom_view {
	size_t size;
	void *global;
	void *const *device;
	void *const *worker;
};

/* The blocks that the same policy has in another rank, with which this one shares tasks. Pointers are addresses for the workers
 * of this rank, and for the host where these are CPUs. Where layout->rma they are references for the trigger's rma(). */
struct loom_remote_blocks {
	size_t size;
	uint32_t workers, devices; /* of that rank */
	void *global;	     /* NULL: none */
	void *const *worker; /* [workers]; NULL: none */
};

/* An address space that runs workers of `device`: what a policy finds there. The pointers are those of
 * this space; they hold until detach(). */
struct loom_space {
	size_t size;
	uint32_t device;
	uint32_t reserved;
	const struct loom_layout *layout;
	void *global;    /* the policy's block for the stack; NULL: none */
	void *on_device; /* and for this device */
	void *ctl;       /* struct loom_ctl */
};

/* A key with which other processes of this host open a device's memory. The bytes are passed to them unchanged. */
struct loom_memory_key {
	char maker[16]; /* the device's kind: "cuda"; "": no key */
	unsigned char bytes[112];
};

/* The host's address of each segment that a loom_ref may name: for host threads and networks. Index 0 is
 * unused; at[i] is NULL where the host cannot reach the memory while workers run. */
struct loom_segments {
	size_t size;
	uint32_t count; /* one past the last */
	uint32_t reserved;
	void *const *at;
	const uint64_t *bytes;
	/* For other processes: a file of this one that holds the memory, -1: none, and where in it the segment begins. */
	const int *fd;
	const uint64_t *offset;
	/* The host's copy of a segment that it cannot reach, made before and after a sample; NULL: none. */
	void *const *image;
	/* A device's memory that contains the segment, at `offset`, for other ranks of this host: its key; their memory by
	 * its key, as workers of `device` address it; and the end of that. Functions and `ctx` hold until the policy's
	 * destroy(). LOOM_ENOTSUP, LOOM_EUNAVAIL with the reason. By the core's thread. */
	void *ctx;
	int (*key)(void *ctx, uint32_t segment, struct loom_memory_key *key, struct loom_error *err);
	int (*open)(void *ctx, uint32_t device, const struct loom_memory_key *key, uint64_t *at,
		    struct loom_error *err);
	void (*close)(void *ctx, uint32_t device, uint64_t at);
	/* Between `host` and a segment that the host cannot reach: into it or out of it, beside workers, by one thread of the
	 * policy; not where key() says LOOM_ENOTSUP. */
	int (*copy)(void *ctx, uint32_t segment, uint64_t offset, void *host, uint64_t bytes, int in,
		    struct loom_error *err);
};

/* The host half that every policy has in common (sched, term, sync, barrier, trigger, qos). All ops
 * are called by one thread of the core, never while workers run, except where said.
 *
 *   create   makes an instance from filled options (valid until destroy). Mandatory.
 *   destroy  NULL is legal. Called after the workers are gone. Mandatory.
 *   need     the memory that the policy needs. Mandatory.
 *   init     puts the blocks into their starting state; before every sample, workers parked. Mandatory.
 *   collect  reads statistics after a sample and adds metrics. NULL: none. LOOM_EWRONG: an
 *            invariant did not hold, and the sample is wrong.
 *   start    before workers are launched, all memory in place: begins host threads (monitors, progress
 *            engines), which then run beside the workers and the ops above. NULL: none.
 *   stop     after the workers are gone: ends those threads. Follows every successful start().
 *   constants  writes what is constant under the options as #define lines, NUL-terminated, in front of the device code
 *            of a program for GPUs. Once, before programs are composed. NULL: nothing is constant.
 *   explain  puts into *err what a worker's failure (loom_worker_fail: code, info) means and what to do about it; returns
 *            `code`, or 0 when the failure is not this policy's. NULL: the core words it.
 *   wire     posts network operations for the sample to come: after every init(), before the workers start. Of workloads,
 *            and, before these, of barriers whose scope is all ranks. Not NULL: the conf must select a trigger, a barrier's
 *            for that scope alone.
 *   connect  where ranks share tasks (loom_layout.ranks): remote[r] are this policy's blocks in rank r; that of this rank is
 *            empty. Of schedulers and detectors: these then serve the workers of all ranks. Once, on all ranks, after
 *            start() and before workers are launched: it may allgather. `remote` is valid until destroy(). NULL: it
 *            serves this rank alone, and a conf that shares tasks is rejected. */
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
