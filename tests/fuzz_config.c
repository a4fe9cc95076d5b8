/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a conf, as --set and as environment. iniparser is the oracle: whatever the scanner
 * lets through, both must read alike, and iniparser must have nothing to complain about.
 *
 * With libFuzzer: clang -fsanitize=fuzzer,address -DLOOM_LIBFUZZER. Without, main() mutates a small
 * corpus: fuzz_config [SEED [ITERATIONS]]. */
#include <iniparser/iniparser.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_options {
	uint64_t size, time, u64;
	int64_t i64;
	double share, f64;
	const char *path, *cores, *name;
	uint32_t count, victim;
	uint8_t flag;
};
static const char *const fuzz_choices[] = {"biased", "random", NULL};
static const struct loom_opt fuzz_rows[] = {
    LOOM_OPT(struct fuzz_options, count, LOOM_OPT_U32, "7", "h", .min = 1, .max = 64),
    LOOM_OPT(struct fuzz_options, u64, LOOM_OPT_U64, "7", "h"),
    LOOM_OPT(struct fuzz_options, i64, LOOM_OPT_I64, "-7", "h"),
    LOOM_OPT(struct fuzz_options, size, LOOM_OPT_SIZE, "64KiB", "h"),
    LOOM_OPT(struct fuzz_options, time, LOOM_OPT_TIME, "10us", "h"),
    LOOM_OPT(struct fuzz_options, share, LOOM_OPT_SHARE, "5%", "h"),
    LOOM_OPT(struct fuzz_options, f64, LOOM_OPT_F64, "1.5", "h"),
    LOOM_OPT(struct fuzz_options, path, LOOM_OPT_PATH, "", "h"),
    LOOM_OPT(struct fuzz_options, cores, LOOM_OPT_CPUS, "0-3,8", "h"),
    LOOM_OPT(struct fuzz_options, name, LOOM_OPT_STR, NULL, "h", .flags = LOOM_OPT_REQUIRED),
    LOOM_OPT(struct fuzz_options, victim, LOOM_OPT_ENUM, "random", "h", .choices = fuzz_choices),
    LOOM_OPT(struct fuzz_options, flag, LOOM_OPT_BOOL, "on", "h"),
    {0},
};

static _Noreturn void fuzz_stop(const char *why, const char *text)
{
	fprintf(stderr, "fuzz_config: %s\n%s\n", why, text);
	abort();
}

static int fuzz_complaint(const char *format, ...)
{
	fuzz_stop("iniparser complains", format);
}

static int fuzz_see(void *arg, const struct loom__effective *e)
{
	loom__text_add(arg, "%s.%s=%s %s\n", e->section, e->key, e->value, e->shown);
	return 0;
}

static void fuzz_lines(struct loom_config *cfg, const char *text, struct loom__diag *diag)
{
	for (const char *stop; (stop = strchr(text, '\n')); text = stop + 1) {
		struct loom__text line = {0};
		loom__text_add(&line, "GPULOOM_%.*s", (int)(stop - text), text);
		char *const environment[] = {line.at, NULL};
		loom__config_set_text(cfg, line.at + strlen("GPULOOM_"), LOOM_FROM_COMMAND_LINE,
				      diag);
		loom__config_read_environment(cfg, environment, diag);
		loom__text_free(&line);
	}
}

static void fuzz_judge(const struct loom__diag *diag)
{
	struct loom__text text = {0};
	loom__diag_text(diag, &text);
	for (size_t i = 0, n; i < text.length; i += n) {
		n = loom__utf8(text.at + i, text.length - i);
		if (!n || (text.at[i] >= 0 && text.at[i] < ' ' && text.at[i] != '\n'))
			fuzz_stop("a message that no terminal should see", text.at);
	}
	for (size_t i = 0; i < diag->count; i++)
		if (!strncmp(diag->list[i].text, "internal error", strlen("internal error")))
			fuzz_stop("the scanner and iniparser differ", text.at);
	loom__text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const sections[] = {"run", "scheduler.mgws"};
	struct loom_config *cfg;
	struct loom__diag diag = {0};
	struct loom__text text = {0};
	struct fuzz_options o;
	iniparser_set_error_callback(fuzz_complaint);
	if (loom_config_create(&cfg, NULL))
		return 0;
	loom__text_put(&text, (const char *)data, size);
	loom__config_declare(cfg, "run", fuzz_rows, "run");
	/* A folder that does not exist: no include leads anywhere but to absolute paths. */
	int code = loom__config_read_text(cfg, "/nowhere/fuzz.ini", text.at, size, &diag);
	if (!code != !diag.errors)
		fuzz_stop("verdict and mistakes differ", text.at);
	loom__config_declare(cfg, "scheduler.mgws", fuzz_rows, "scheduler mgws");
	fuzz_lines(cfg, text.at, &diag);
	loom__config_fill(cfg, sections, 2, fuzz_rows, &o, sizeof(o), &diag);
	loom__config_unknown(cfg, &diag);
	text.length = 0;
	loom__config_each(cfg, fuzz_see, &text);
	fuzz_judge(&diag);
	loom__text_free(&text);
	loom__diag_free(&diag);
	loom_config_destroy(cfg);
	return 0;
}

#ifndef LOOM_LIBFUZZER
static const char *const fuzz_corpus[] = {
    "[run]\nname = contains ; which job\ncount = 10\nsize=64KiB\ntime = 10us\nshare = 5%\n",
    "[run]\nname=\"a;b#c\"\npath='x y'\n[scheduler.mgws]\nvictim = biased\nflag=off\ni64=-3\n",
    "\xef\xbb\xbf"
    "include = other.ini\r\n[gpuloom]\r\ninclude=\"x\"\r\n[x-me]\r\nk = \r\n",
    "run.count=3\nRUN__COUNT=4\nSCHEDULER_MGWS__SIZE=1.5MiB\nscheduler.mgws.cores=0-3,8\n",
    "# c\n\n[RUN]\n k == v = \"w\" ;\nf64 = -1.5e3\n[run]\nu64 = 0x10\nunknown = \xe2\x82\xac\n",
    "[a:b]\n[c\njunk\nk: v\n= x\nk = \"open\nk = a\\\n[d]]\n[e] ; c\n[]\n",
};

static uint64_t fuzz_random(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % below;
}

enum { FUZZ_MOST = 2000 };

/* One edit of the n bytes at s, which has room for FUZZ_MOST; the new length. */
static size_t fuzz_mutate(char *s, size_t n, uint64_t *state)
{
	static const char special[] = "[]=;#\"'\\\n\r\t .:-_%0\x7f\x80\xff\xc3\xa9xX";
	size_t at = fuzz_random(state, n + 1), run = 1 + fuzz_random(state, 8);
	const char *other = fuzz_corpus[fuzz_random(state, LOOM__COUNT(fuzz_corpus))];
	size_t from = fuzz_random(state, strlen(other));
	switch (fuzz_random(state, 6)) {
	case 0: /* flip a bit */
		if (at < n)
			s[at] = (char)(s[at] ^ 1 << fuzz_random(state, 8));
		return n;
	case 1: /* replace; the table's NUL is one of its bytes */
		if (at < n)
			s[at] = special[fuzz_random(state, sizeof(special))];
		return n;
	case 2: /* insert one */
		other = special;
		from = fuzz_random(state, sizeof(special));
		run = 1;
		break;
	case 3: /* leave out */
		run = run < n - at ? run : n - at;
		memmove(s + at, s + at + run, n - at - run);
		return n - run;
	case 4: /* insert from elsewhere */
		run = run * 4 < strlen(other) - from ? run * 4 : strlen(other) - from;
		break;
	default: /* repeat one byte, rarely a long line */
		run = fuzz_random(state, 50) ? run : 1200;
		if (n + run > FUZZ_MOST)
			return n;
		memmove(s + at + run, s + at, n - at);
		memset(s + at, special[fuzz_random(state, sizeof(special))], run);
		return n + run;
	}
	if (n + run > FUZZ_MOST)
		return n;
	memmove(s + at + run, s + at, n - at);
	memcpy(s + at, other + from, run);
	return n + run;
}

static void fuzz_config(uint64_t seed, unsigned long iterations)
{
	char text[FUZZ_MOST];
	uint64_t state = seed * 2 + 1; /* never 0 */
	for (unsigned long i = 0; i < iterations; i++) {
		const char *start = fuzz_corpus[i % LOOM__COUNT(fuzz_corpus)];
		size_t n = strlen(start);
		memcpy(text, start, n);
		for (uint64_t edits = fuzz_random(&state, 9); edits; edits--)
			n = fuzz_mutate(text, n, &state);
		LLVMFuzzerTestOneInput((const uint8_t *)text, n);
	}
}

#ifndef LOOM_FUZZ_NO_MAIN
int main(int argc, char **argv)
{
	fuzz_config(argc > 1 ? strtoull(argv[1], NULL, 0) : 1,
		    argc > 2 ? strtoul(argv[2], NULL, 0) : 100000);
	return 0;
}
#endif
#endif
