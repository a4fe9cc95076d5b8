/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that each allocation may fail while confs, --set and the environment are read. There must be no crash and no
 * leak, and no failure may be reported as success. tests/fuzz/fuzz_conf.c tests any bytes. */
#include <dlfcn.h>
#include <errno.h>
#include <iniparser/iniparser.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "support.h"
#include "facts/variables.h"
#include "facts/write.h"

/* Only with glibc can a program replace malloc() and still call the original. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define OWN_MALLOC 1

/* glibc provides the original functions under these names. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

/* LOOM_EXPORT makes the functions below visible, so that libc and the libraries call them, too. Without it,
 * -fvisibility=hidden would hide them. Allocations may fail while `armed` is 1 and `spared` is 0. */
static int armed, spared;
static long until_failure, live;
static int sticky; /* 1 if all calls after the first failure fail, too */

static int fails(void)
{
	if (!armed || spared)
		return 0;
	if (until_failure > 1) {
		until_failure--;
		return 0;
	}
	if (until_failure == 1 || sticky) {
		until_failure = 0;
		errno = ENOMEM;
		return 1;
	}
	return 0;
}

LOOM_EXPORT void *malloc(size_t n)
{
	if (fails())
		return NULL;
	live += armed;
	return __libc_malloc(n);
}

LOOM_EXPORT void *calloc(size_t n, size_t size)
{
	if (fails())
		return NULL;
	live += armed;
	return __libc_calloc(n, size);
}

LOOM_EXPORT void *realloc(void *p, size_t n)
{
	if (fails())
		return NULL;
	live += armed && !p;
	return __libc_realloc(p, n);
}

LOOM_EXPORT void free(void *p)
{
	live -= armed && p;
	__libc_free(p);
}

/* iniparser 4.1 itself crashes without memory, so its allocations do not fail. */
dictionary *iniparser_load(const char *path)
{
	dictionary *(*real)(const char *) =
	    (dictionary * (*)(const char *)) dlsym(RTLD_NEXT, "iniparser_load");
	spared = 1;
	dictionary *d = real(path);
	spared = 0;
	return d;
}

/* ---- one use of the whole config layer ---- */

struct options {
	uint64_t size, time, u64;
	int64_t i64;
	double share, f64;
	const char *path, *cores, *name;
	uint32_t count, victim;
	uint8_t flag;
};
static const char *const choices[] = {"biased", "random", NULL};
static const struct loom_opt rows[] = {
    LOOM_OPT(struct options, count, LOOM_OPT_U32, "7", "h", .min = 1, .max = 64),
    LOOM_OPT(struct options, u64, LOOM_OPT_U64, "7", "h"),
    LOOM_OPT(struct options, i64, LOOM_OPT_I64, "-7", "h"),
    LOOM_OPT(struct options, size, LOOM_OPT_SIZE, "64KiB", "h"),
    LOOM_OPT(struct options, time, LOOM_OPT_TIME, "10us", "h"),
    LOOM_OPT(struct options, share, LOOM_OPT_SHARE, "5%", "h"),
    LOOM_OPT(struct options, f64, LOOM_OPT_F64, "1.5", "h"),
    LOOM_OPT(struct options, path, LOOM_OPT_PATH, "", "h"),
    LOOM_OPT(struct options, cores, LOOM_OPT_CPUS, "0-3,8", "h"),
    LOOM_OPT(struct options, name, LOOM_OPT_STR, NULL, "h", .flags = LOOM_OPT_REQUIRED),
    LOOM_OPT(struct options, victim, LOOM_OPT_ENUM, "random", "h", .choices = choices),
    LOOM_OPT(struct options, flag, LOOM_OPT_BOOL, "on", "h"),
    {0},
};

static int see(void *arg, const struct loom__effective *e)
{
	loom__text_add(arg, "%s.%s=%s %s\n", e->section, e->key, e->value, e->shown);
	return 0;
}

/* Reads each line as an assignment of --set and as an environment variable. Returns LOOM_ENOMEM if memory was short,
 * and 0 for any other result. */
static int lines(struct loom_config *cfg, const char *text, struct loom__diag *diag)
{
	int full = 0;
	for (const char *stop; (stop = strchr(text, '\n')); text = stop + 1) {
		char line[2016];
		char *const environment[] = {line, NULL};
		snprintf(line, sizeof(line), "GPULOOM_%.*s", (int)(stop - text), text);
		const struct loom__entry where = {.source = LOOM_FROM_COMMAND_LINE, .file = "--set"};
		full |= loom__config_set_at(cfg, line + strlen("GPULOOM_"), &where, diag) == LOOM_ENOMEM;
		full |= loom__config_read_environment(cfg, environment, diag) == LOOM_ENOMEM;
	}
	return full ? LOOM_ENOMEM : 0;
}

/* Reads a NUL-terminated conf, and uses its effective values in each way once. Returns the first code that is not 0. */
static int try(const char *name, const char *text, size_t size, struct loom__text *all)
{
	static const char *const sections[] = {"run", "scheduler.mgws"};
	struct loom_config *cfg;
	struct loom__diag diag = {0};
	struct options o;
	int code = loom_config_create(&cfg, NULL), rc[5];
	if (code)
		return code;
	rc[0] = loom__config_declare(cfg, "run", rows, "run");
	code = loom__config_read_text(cfg, name, text, size, &diag);
	CU_ASSERT(armed || !code == !diag.errors);
	rc[1] = loom__config_declare(cfg, "scheduler.mgws", rows, "scheduler mgws");
	rc[2] = lines(cfg, text, &diag);
	rc[3] = loom__config_fill(cfg, sections, 2, rows, &o, sizeof(o), &diag);
	rc[4] = loom__config_unknown(cfg, &diag);
	for (size_t i = 0; i < LOOM__COUNT(rc); i++)
		code = code ? code : rc[i];
	loom__config_each(cfg, see, all);
	loom__diag_free(&diag);
	loom_config_destroy(cfg);
	return code ? code : loom__text_ok(all) ? 0 : LOOM_ENOMEM;
}

static void run_out(const char *text, int good)
{
	struct loom__text want = {0};
	CU_ASSERT_EQUAL(try("t.ini", text, strlen(text), &want), good ? 0 : LOOM_EINVAL);
	for (sticky = 0; sticky < 2; sticky++) {
		for (long n = 1, failed = 1; failed; n++) {
			struct loom__text got = {0};
			live = 0;
			until_failure = n;
			armed = 1;
			int code = try("t.ini", text, strlen(text), &got);
			failed = until_failure <= 0;
			int right = code || (got.length == want.length && !memcmp(got.at, want.at, got.length));
			loom__text_free(&got);
			armed = 0;
			CU_ASSERT_EQUAL(live, 0);
			CU_ASSERT(right);
			CU_ASSERT(good || code);
		}
	}
	loom__text_free(&want);
}
#endif

TEST(memory_runs_out)
{
#if OWN_MALLOC
	char folder[TEST_FOLDER];
	test_folder(folder);
	CU_ASSERT_EQUAL_FATAL(chdir(folder), 0);
	CU_ASSERT_EQUAL(loom__write_file("base.ini", "[run]\nname = x\nshare = 1%;\n", 27, NULL), 0);
	run_out("include = base.ini\n[scheduler.mgws]\npath = data\nx-me.k=v\n\nRUN__SHAER=8%\n", 0);
	run_out("include = base.ini\n[scheduler.mgws]\npath = data\n", 1);
	run_out("[run]\nname = x\n[scheduler.mgws]\nvictim = baised\n", 0);
	run_out("[run]\nname = x\nviktim = 1\n[S.v]\n", 0);
	run_out("include = bas.ini\n[run]\njunk\n", 0);
	CU_ASSERT(!chdir("/"));
	test_remove(folder);
#endif
}

TEST_MAIN("config_memory", 300)
