/* SPDX-License-Identifier: Apache-2.0 */
/* Runs out of memory at every allocation in turn: nothing may crash, leak, or pass for success. */
#include "support.h"

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

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define OWN_MALLOC 0
#else
#define OWN_MALLOC 1

/* glibc's own, under the names that it keeps for those who replace malloc. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

/* LOOM_EXPORT below: libc and the libraries must find these too, in spite of -fvisibility=hidden.
 */
static int armed, spared;
static long until_failure, live;
static int sticky; /* fail once, or from then on */

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

/* iniparser 4.1 itself crashes when it gets no memory: nothing that we could test. */
dictionary *iniparser_load(const char *path)
{
	dictionary *(*real)(const char *) =
	    (dictionary * (*)(const char *)) dlsym(RTLD_NEXT, "iniparser_load");
	spared = 1;
	dictionary *d = real(path);
	spared = 0;
	return d;
}

struct options {
	const char *path;
	double share;
	uint32_t victim;
};
static const char *const victims[] = {"biased", "random", NULL};
static const struct loom_opt rows[] = {
    LOOM_OPT(struct options, path, LOOM_OPT_PATH, "", "where"),
    LOOM_OPT(struct options, share, LOOM_OPT_SHARE, "5%", "how much"),
    LOOM_OPT(struct options, victim, LOOM_OPT_ENUM, "random", "whom", .choices = victims),
    {0},
};

static int list(void *arg, const struct loom__effective *e)
{
	loom__text_add(arg, "%s.%s=%s\n", e->section, e->key, e->value);
	return 0;
}

/* All of the config layer once; what it found goes to out, mistakes too. */
static int everything(const char *file, struct loom__text *out)
{
	static const char *const sections[] = {"s", "s.t"};
	char *environment[] = {"GPULOOM_S_T__SHARE=7%", "GPULOOM_S_T__SHAER=8%", NULL};
	struct loom_config *cfg = NULL;
	struct loom__diag diag = {0};
	struct options o;
	struct loom_error err;
	int code = loom_config_create(&cfg, NULL);
	if (code)
		return code;
	code = code ? code : loom_config_load(cfg, file, &err);
	code = code ? code : loom_config_set(cfg, "x-me", "k", "v", &err);
	code = code ? code : loom__config_declare(cfg, "s", rows, "s");
	code = code ? code : loom__config_read_environment(cfg, environment, &diag);
	code = code ? code : loom__config_declare(cfg, "s.t", rows, "s t");
	code = code ? code
		    : loom__config_set_text(cfg, "s.victim=biased", LOOM_FROM_COMMAND_LINE, &diag);
	code = code ? code : loom__config_fill(cfg, sections, 2, rows, &o, sizeof(o), &diag);
	int unknown = loom__config_unknown(cfg, &diag);
	code = code ? code : unknown;
	loom__config_each(cfg, list, out);
	loom__diag_free(&diag);
	loom_config_destroy(cfg);
	return code ? code : loom__text_ok(out) ? 0 : LOOM_ENOMEM;
}

static void sweep(const char *file, int good)
{
	struct loom__text want = {0};
	CU_ASSERT_EQUAL(everything(file, &want), good ? 0 : LOOM_EINVAL);
	for (sticky = 0; sticky < 2; sticky++) {
		for (long n = 1, failed = 1; failed; n++) {
			struct loom__text got = {0};
			live = 0;
			until_failure = n;
			armed = 1;
			int code = everything(file, &got);
			failed = until_failure <= 0;
			int right = code || (got.length == want.length &&
					     !memcmp(got.at, want.at, got.length));
			loom__text_free(&got);
			armed = 0;
			CU_ASSERT_EQUAL(live, 0);
			CU_ASSERT(right);
			CU_ASSERT(good || code);
		}
	}
	loom__text_free(&want);
}

static void test_out_of_memory(void)
{
	static const char *const texts[] = {
	    "include = base.ini\n[s.t]\npath = data\n",
	    "[s.t]\nvictim = baised\n",
	    "[s]\nviktim = 1\n[S.v]\n",
	    "include = bas.ini\n[s]\njunk\n",
	};
	const char *base = getenv("TMPDIR");
	char folder[PATH_MAX], command[PATH_MAX + 16];
	snprintf(folder, sizeof(folder), "%s/gpuloom-memory-XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(folder) || chdir(folder))
		abort();
	CU_ASSERT_EQUAL(loom__write_file("base.ini", "[s]\nshare = 1%;\n", 15, NULL), 0);
	for (size_t i = 0; i < LOOM__COUNT(texts); i++) {
		CU_ASSERT_EQUAL(loom__write_file("t.ini", texts[i], strlen(texts[i]), NULL), 0);
		sweep("t.ini", i == 0);
	}
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	CU_ASSERT(!chdir("/") && !system(command));
}
#endif

#if !OWN_MALLOC
static void test_out_of_memory(void)
{
	test_skip("the sanitizer has its own malloc");
}
#endif

static const struct test tests[] = {{"out_of_memory", test_out_of_memory}};

TEST_MAIN("config_memory", 120, tests)
