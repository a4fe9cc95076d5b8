/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are read as a conf, as --set and as environment. iniparser must read everything that the scanner accepts,
 * and values must be at the positions that the scanner reports. Then each allocation fails in turn: there is no crash
 * and no leak, and no failure is reported as success. */
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
#include "facts/write.h"

/* ---- failing allocations: only glibc lets malloc be replaced ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define OWN_MALLOC 0
static int armed;
#else
#define OWN_MALLOC 1

/* glibc provides these names for replacements of malloc. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

/* With LOOM_EXPORT below, libc and the libraries use these functions as well. The build has -fvisibility=hidden. */
static int armed, spared;
static long until_failure, live;
static int sticky; /* 1: all later calls fail, too */

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
#endif

/* ---- all of the config layer, once ---- */

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

static _Noreturn void stop(const char *why, const char *text)
{
	fprintf(stderr, "config: %s\n%s\n", why, text);
	abort();
}

static int complaint(const char *format, ...)
{
	stop("iniparser complains", format);
}

static const char *whole_text, *whole_name; /* the text that is read, and its name */

/* Checks that the value is at the position of the entry in its line, or after its quote. */
static void place(const struct loom__entry *entry)
{
	const char *at = whole_text + (strncmp(whole_text, "\xef\xbb\xbf", 3) ? 0 : 3);
	for (int line = 1; line < entry->line; line++)
		at = (const char *)rawmemchr(at, '\n') + 1; /* rawmemchr() passes over NUL bytes */
	at += entry->value_column - 1;
	at += *at == '"' || *at == '\'';
	if (strncmp(at, entry->value, strlen(entry->value)))
		stop("a value is not where it should be", entry->value);
}

static int see(void *arg, const struct loom__effective *e)
{
	if (e->entry && e->entry->source == LOOM_FROM_FILE && !strcmp(e->entry->file, whole_name))
		place(e->entry);
	loom__text_add(arg, "%s.%s=%s %s\n", e->section, e->key, e->value, e->shown);
	return 0;
}

enum { MOST = 2000 };

/* Reads each line as --set and as a variable. Returns LOOM_ENOMEM, or 0 for any text. */
static int lines(struct loom_config *cfg, const char *text, struct loom__diag *diag)
{
	int full = 0;
	for (const char *stop; (stop = strchr(text, '\n')); text = stop + 1) {
		char line[MOST + 16];
		char *const environment[] = {line, NULL};
		snprintf(line, sizeof(line), "GPULOOM_%.*s", (int)(stop - text), text);
		full |= loom__config_set_text(cfg, line + strlen("GPULOOM_"), LOOM_FROM_COMMAND_LINE, diag) ==
			LOOM_ENOMEM;
		full |= loom__config_read_environment(cfg, environment, diag) == LOOM_ENOMEM;
	}
	return full ? LOOM_ENOMEM : 0;
}

static void judge(const struct loom__diag *diag)
{
	struct loom__text text = {0};
	loom__diag_text(diag, &text);
	for (size_t i = 0, n; i < text.length; i += n) {
		n = loom__utf8(text.at + i, text.length - i);
		if (!n || (text.at[i] >= 0 && text.at[i] < ' ' && text.at[i] != '\n'))
			stop("a message that no terminal should see", text.at);
	}
	for (size_t i = 0; i < diag->count; i++)
		if (!strncmp(diag->list[i].text, "internal error", strlen("internal error")))
			stop("iniparser reads no value", text.at);
	loom__text_free(&text);
}

/* Reads a NUL-terminated text, and passes the effective values to all layers. Returns the first code that is not 0. */
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
	if (!armed && !code != !diag.errors)
		stop("verdict and mistakes differ", text);
	rc[1] = loom__config_declare(cfg, "scheduler.mgws", rows, "scheduler mgws");
	rc[2] = lines(cfg, text, &diag);
	rc[3] = loom__config_fill(cfg, sections, 2, rows, &o, sizeof(o), &diag);
	rc[4] = loom__config_unknown(cfg, &diag);
	for (size_t i = 0; i < LOOM__COUNT(rc); i++)
		code = code ? code : rc[i];
	whole_text = text;
	whole_name = name;
	loom__config_each(cfg, see, all);
	if (!armed)
		judge(&diag);
	loom__diag_free(&diag);
	loom_config_destroy(cfg);
	return code ? code : loom__text_ok(all) ? 0 : LOOM_ENOMEM;
}

/* ---- mutations ---- */

static const char *const corpus[] = {
    "[run]\nname = contains ; which job\ncount = 10\nsize=64KiB\ntime = 10us\nshare = 5%\n",
    "[run]\nname=\"a;b#c\"\npath='x y'\n[scheduler.mgws]\nvictim = biased\nflag=off\ni64=-3\n",
    ("\xef\xbb\xbf"
     "include = other.ini\r\n[gpuloom]\r\ninclude=\"x\"\r\n[x-me]\r\nk = \r\n"),
    "run.count=3\nRUN__COUNT=4\nSCHEDULER_MGWS__SIZE=1.5MiB\nscheduler.mgws.cores=0-3,8\n",
    "# c\n\n[RUN]\n k == v = \"w\" ;\nf64 = -1.5e3\n[run]\nu64 = 0x10\nunknown = \xe2\x82\xac\n",
    "[a:b]\n[c\njunk\nk: v\n= x\nk = \"open\nk = a\\\n[d]]\n[e] ; c\n[]\n",
};

static uint64_t draw(uint64_t *state, uint64_t below)
{
	return xorshift(state) % below;
}

/* Makes one edit of the n bytes at s, which has room for MOST. Returns the new length. */
static size_t mutate(char *s, size_t n, uint64_t *state)
{
	static const char special[] = "[]=;#\"'\\\n\r\t .:-_%0\x7f\x80\xff\xc3\xa9xX";
	size_t at = draw(state, n + 1), run = 1 + draw(state, 8);
	const char *other = corpus[draw(state, LOOM__COUNT(corpus))];
	size_t from = draw(state, strlen(other));
	switch (draw(state, 6)) {
	case 0: /* flips a bit */
		if (at < n)
			s[at] = (char)(s[at] ^ 1 << draw(state, 8));
		return n;
	case 1: /* replaces a byte; NUL is one of the replacements */
		if (at < n)
			s[at] = special[draw(state, sizeof(special))];
		return n;
	case 2: /* inserts a byte */
		other = special;
		from = draw(state, sizeof(special));
		run = 1;
		break;
	case 3: /* omits bytes */
		run = run < n - at ? run : n - at;
		memmove(s + at, s + at + run, n - at - run);
		return n - run;
	case 4: /* inserts bytes from elsewhere */
		run = run * 4 < strlen(other) - from ? run * 4 : strlen(other) - from;
		break;
	default: /* repeats one byte, rarely to a long line */
		run = draw(state, 50) ? run : 1200;
		if (n + run > MOST)
			return n;
		memmove(s + at + run, s + at, n - at);
		memset(s + at, special[draw(state, sizeof(special))], run);
		return n + run;
	}
	if (n + run > MOST)
		return n;
	memmove(s + at + run, s + at, n - at);
	memcpy(s + at, other + from, run);
	return n + run;
}

/* A fixed seed gives the same inputs on every machine. A mistake ends in abort(). */
TEST(mutations)
{
	char text[MOST + 1];
	uint64_t state = 3;
	iniparser_set_error_callback(complaint);
	for (unsigned long i = 0; i < 20000; i++) {
		struct loom__text all = {0};
		const char *start = corpus[i % LOOM__COUNT(corpus)];
		size_t n = strlen(start);
		memcpy(text, start, n);
		for (uint64_t edits = draw(&state, 9); edits; edits--)
			n = mutate(text, n, &state);
		text[n] = 0;
		/* The folder does not exist, so includes reach only absolute paths. */
		try("/nowhere/fuzz.ini", text, n, &all);
		loom__text_free(&all);
	}
}

#if OWN_MALLOC
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

TEST_MAIN("config_fuzz", 300)
