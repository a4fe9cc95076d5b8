/* SPDX-License-Identifier: Apache-2.0 */
/* Deliberately faulty plug-ins, one for each "defined BAD_NAME" below. The file has the parts of a sound termination
 * detector, and macros that define by hand what LOOM_PLUGIN_DEFINE defines correctly. */
#include <gpuloom/device.h>
#include <gpuloom/term.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BAD_UNUSED __attribute__((unused))

static BAD_UNUSED int bad_create(const struct loom_host *host, const void *opts, void **self,
				 struct loom_error *err)
{
	(void)host, (void)opts, (void)err;
	*self = NULL;
	return 0;
}

static BAD_UNUSED void bad_destroy(void *self)
{
	(void)self;
}

static BAD_UNUSED int bad_need(void *self, const struct loom_layout *layout, struct loom_need *need,
			       struct loom_error *err)
{
	(void)self, (void)layout, (void)need, (void)err;
	return 0;
}

static BAD_UNUSED int bad_init(void *self, const struct loom_layout *layout,
			       const struct loom_view *view, struct loom_error *err)
{
	(void)self, (void)layout, (void)view, (void)err;
	return 0;
}

static BAD_UNUSED void bad_step(struct loom_ctx *c)
{
	(void)c;
}

static BAD_UNUSED int bad_done(struct loom_ctx *c, uint64_t stolen_out)
{
	(void)c, (void)stolen_out;
	return 1;
}

static BAD_UNUSED const struct loom_term_ops good_ops = {
	.size = sizeof(good_ops),
	.create = bad_create,
	.destroy = bad_destroy,
	.need = bad_need,
	.init = bad_init,
};
static BAD_UNUSED const struct loom_term_dev good_dev = {
	.size = sizeof(good_dev), .idle = bad_step, .busy = bad_step, .done = bad_done};
static BAD_UNUSED const struct loom_device_code good_code = {.size = sizeof(good_code),
							     .cpu = &good_dev};

/* Defines a correct plug-in except for the arguments after the name. */
#define BAD_DEFINE(name, ...)                                                                      \
	LOOM_PLUGIN_DEFINE(TERM, name, "1.0.0", "Apache-2.0", "broken on purpose", __VA_ARGS__)
#define GOOD_PARTS .ops = &good_ops, .dev = &good_code

/* The fields of struct loom_plugin that identify a plug-in, with correct values. Later arguments of BAD_ENTRY()
 * override them. */
#define GOOD_HEAD(name_)                                                                           \
	.magic = LOOM_PLUGIN_MAGIC, .abi = LOOM_ABI, .size = sizeof(struct loom_plugin),   \
	.kind = LOOM_TERM, .name = name_, .version = "1.0.0", .license = "Apache-2.0", .summary = "broken on purpose"
#define BAD_ENTRY(...)                                                                             \
	const struct loom_plugin *loom_plugin_entry(void)                                          \
	{                                                                                          \
		static const struct loom_plugin self = {__VA_ARGS__};                              \
		return &self;                                                                      \
	}
/* The fields of a correct manifest. Later arguments of BAD_NOTE() override them. */
#define GOOD_MANIFEST(name_)                                                                       \
	.magic = LOOM_PLUGIN_MAGIC, .abi = LOOM_ABI, .kind = LOOM_TERM,                    \
	.name = name_, .version = "1.0.0", .license = "Apache-2.0", .summary = "broken on purpose"
#define BAD_NOTE(...)                                                                              \
	__attribute__((used, section(LOOM_NOTE_SECTION),                                           \
		       aligned(4))) static const struct loom_note bad_note = {                     \
		.name_size = 8,                                                                    \
		.desc_size = sizeof(struct loom_manifest),                                         \
		.type = LOOM_NOTE_TYPE,                                                            \
		.owner = "gpuloom",                                                                \
		.manifest = {__VA_ARGS__}}

#define WHEN_LOADED __attribute__((constructor)) static void when_loaded(void)

#if defined(__clang__)
#pragma clang diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif

#if defined BAD_abort /* The plug-in aborts as soon as it is loaded. */
WHEN_LOADED
{
	fputs("no luck today\n", stderr);
	abort();
}

BAD_DEFINE("term_abort", GOOD_PARTS)

#elif defined BAD_answer /* Before the plug-in crashes, it writes the answer that the probe would give. */
WHEN_LOADED
{
	for (int fd = 3; fd < 8; fd++)
		if (write(fd, "ok\n", 3) < 0)
			continue;
	abort();
}

BAD_DEFINE("term_answer", GOOD_PARTS)

#elif defined BAD_destructor /* The plug-in aborts when the process that loaded it ends. */
__attribute__((destructor)) static void when_over(void)
{
	fputs("too late\n", stderr);
	abort();
}

BAD_DEFINE("term_destructor", GOOD_PARTS)

#elif defined BAD_dev_op /* The table of device functions lacks the mandatory 'done'. */
static const struct loom_term_dev dev = {.size = sizeof(dev), .idle = bad_step, .busy = bad_step};
static const struct loom_device_code code = {.size = sizeof(code), .cpu = &dev};

BAD_DEFINE("term_dev_op", .ops = &good_ops, .dev = &code)

#elif defined BAD_doctor /* The plug-in is a device whose doctor() reports once and then crashes. It has an extension "later". */
static int nothing(void)
{
	return 0;
}

static void doctor(const struct loom_host *host, struct loom_doctor *out)
{
	(void)host;
	out->row(out, "ill engine", "limited", "one of two", "take a rest");
	abort();
}

/* This function is never called, because the test calls only doctor(). */
#define ANY (void *)nothing
/* An extension that no core knows. Its table would be refused. */
static const struct loom_extension later[] = {{"later", &(const size_t){0}}, {NULL, NULL}};
static const struct loom_device_ops ops = {
	.size = sizeof(ops), .create = ANY, .destroy = ANY, .shape = ANY, .mem_alloc = ANY, .mem_free = ANY,
	.mem_map = ANY, .mem_unmap = ANY, .build = ANY, .launch = ANY, .ready = ANY, .go = ANY, .wait = ANY,
	.retire = ANY, .doctor = doctor, .extensions = later,
};

LOOM_PLUGIN_DEFINE(DEVICE, "device_ill", "1.0.0", "Apache-2.0", "broken on purpose", .ops = &ops)

#elif defined BAD_endless /* The table of options has no end. */
struct opts {
	uint32_t depth;
};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct opts, depth, LOOM_OPT_U32, "5", "how deep"),
	{.name = (const char *)64},
};

BAD_DEFINE("term_endless", GOOD_PARTS, .opts = rows, .opts_size = sizeof(struct opts))

#elif defined BAD_exit /* The plug-in ends the process that loads it. */
WHEN_LOADED
{
	_exit(0);
}

BAD_DEFINE("term_exit", GOOD_PARTS)

#elif defined BAD_foreign /* The entry symbol resolves to code of another file. */
typedef const struct loom_plugin *entry(void);

static BAD_UNUSED __attribute__((no_sanitize("address", "thread", "undefined"))) entry *
elsewhere(void)
{
	return (entry *)(void *)&getpid;
}

const struct loom_plugin *loom_plugin_entry(void) __attribute__((ifunc("elsewhere")));

#elif defined BAD_hang /* The plug-in never returns from loading, and leaves a child that would outlive it. */
WHEN_LOADED
{
	if (!fork())
		pause();
	for (;;)
		pause();
}

BAD_DEFINE("term_hang", GOOD_PARTS)

#elif defined BAD_kind /* The kind of the plug-in does not exist. */
BAD_ENTRY(GOOD_HEAD("term_kind"), GOOD_PARTS, .kind = 77)

#elif defined BAD_lie /* The manifest and the descriptor do not agree. */
BAD_NOTE(GOOD_MANIFEST("term_lie"), .version = "9.9.9");
BAD_ENTRY(GOOD_HEAD("term_lie"), GOOD_PARTS)

#elif defined BAD_magic /* The descriptor has a wrong magic number. */
BAD_ENTRY(GOOD_HEAD("term_magic"), GOOD_PARTS, .magic = 0x21212121)

#elif defined BAD_major /* The manifest and the descriptor have another major ABI, so the loader must not run the code. */
WHEN_LOADED
{
	abort();
}

BAD_NOTE(GOOD_MANIFEST("term_major"), .abi = 7);
BAD_ENTRY(GOOD_HEAD("term_major"), GOOD_PARTS, .abi = 7)

#elif defined BAD_major_late /* Without a manifest, the loader finds the other major ABI only after it has run code. */
BAD_ENTRY(GOOD_HEAD("term_major_late"), GOOD_PARTS, .abi = 7)

#elif defined BAD_longer /* The descriptor is longer, as in a later version of this ABI. It must be accepted. */
static void leave(int number)
{
	(void)number;
	_exit(1);
}

WHEN_LOADED
{
	signal(SIGTERM, leave);
	if (getenv("LOOM_TEST_STOP"))
		raise(SIGTERM);
	signal(SIGUSR1, leave);
}

static const struct {
	struct loom_plugin plugin;
	void *later[4];
} self = {.plugin = {GOOD_HEAD("term_longer"), GOOD_PARTS,
		     .size = sizeof(self)}};

BAD_NOTE(GOOD_MANIFEST("term_longer"));

const struct loom_plugin *loom_plugin_entry(void)
{
	return &self.plugin;
}

#elif defined BAD_name /* The name is empty. */
BAD_ENTRY(GOOD_HEAD(NULL), GOOD_PARTS)

#elif defined BAD_no_size /* The ops table does not begin with its size. */
static const struct loom_term_ops ops = {.create = bad_create, .destroy = bad_destroy};

BAD_DEFINE("term_no_size", .ops = &ops, .dev = &good_code)

#elif defined BAD_none /* The file is a shared object but no plug-in. */
LOOM_EXPORT int bad_nothing_here(void);

int bad_nothing_here(void)
{
	return 0;
}

#elif defined BAD_null /* The entry point returns NULL. */
const struct loom_plugin *loom_plugin_entry(void)
{
	return NULL;
}

#elif defined BAD_op /* The ops table ends before the mandatory 'init'. */
static const struct loom_term_ops short_ops = {
	.size = offsetof(struct loom_term_ops, init),
	.create = bad_create,
	.destroy = bad_destroy,
	.need = bad_need,
	.init = bad_init,
};

BAD_DEFINE("term_op", .ops = &short_ops, .dev = &good_code)

#elif defined BAD_ops_wild /* The address of the ops table is unmapped. */
BAD_DEFINE("term_ops_wild", .ops = (const void *)64, .dev = &good_code)

#elif defined BAD_prefix /* The name of a termination detector has the prefix of schedulers. */
BAD_DEFINE("sched_prefix", GOOD_PARTS)

#elif defined BAD_print /* The plug-in prints to stdout, where only data belong, but it is usable. */
WHEN_LOADED
{
	printf("hello from a constructor");
}

BAD_DEFINE("term_print", GOOD_PARTS)

#elif defined BAD_rows /* The default of an option is outside of the option's range. */
struct opts {
	uint32_t depth;
};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct opts, depth, LOOM_OPT_U32, "500", "how deep", .min = 1, .max = 256),
	{0},
};

BAD_DEFINE("term_rows", GOOD_PARTS, .opts = rows, .opts_size = sizeof(struct opts))

#elif defined BAD_size /* The descriptor is smaller than that of ABI 1.0. */
BAD_ENTRY(GOOD_HEAD("term_size"), GOOD_PARTS, .size = 40)

#elif defined BAD_text /* The strings contain characters that must not reach a terminal or a document. */
BAD_NOTE(GOOD_MANIFEST("term_text"), .summary = "red \033[31m, bell \a, broken \xff UTF-8");
BAD_ENTRY(GOOD_HEAD("term_text"), GOOD_PARTS, .summary = "red \033[31m, bell \a, broken \xff UTF-8")

#elif defined BAD_unmarked /* The plug-in is correct, but has no manifest. */
BAD_ENTRY(GOOD_HEAD("term_unmarked"), GOOD_PARTS)

#elif defined BAD_width /* The field of an option is narrower than the option's type. */
struct opts {
	uint16_t depth;
};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct opts, depth, LOOM_OPT_U64, "5", "how deep"),
	{0},
};

BAD_DEFINE("term_width", GOOD_PARTS, .opts = rows, .opts_size = sizeof(struct opts))

#elif defined BAD_wild /* The entry point returns an unmapped address. */
const struct loom_plugin *loom_plugin_entry(void)
{
	return (const struct loom_plugin *)4096;
}

#endif
