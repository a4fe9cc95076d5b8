/* SPDX-License-Identifier: Apache-2.0 */
/* The input has a conf, two files that the conf may include (as "901" and "902"), and assignments of --set and of the
 * environment, one per line. iniparser must read everything that the scanner accepts, and values must be at the
 * positions that the scanner reports. All messages must be printable. The output of `config show --as-ini` must read
 * back as the same values. */
#include <iniparser/iniparser.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/cli/conf/cmd_config.c"

#include "config/config.h"
#include "facts/variables.h"
#include "input.h"

struct job {
	uint8_t yes;
	uint32_t count, kind;
	uint64_t large, bytes, wait;
	int64_t number;
	double real, part;
	const char *title, *file, *cores;
};
static const char *const kinds[] = {"baised", "random", "ring", NULL};
static const struct loom_opt rows[] = {LOOM_OPT(struct job, yes, LOOM_OPT_BOOL, "no", "a"),
				       LOOM_OPT(struct job, count, LOOM_OPT_U32, "4", "b", .min = 1, .max = 99),
				       LOOM_OPT(struct job, kind, LOOM_OPT_ENUM, "ring", "c", .choices = kinds),
				       LOOM_OPT(struct job, large, LOOM_OPT_U64, "5", "d"),
				       LOOM_OPT(struct job, bytes, LOOM_OPT_SIZE, "64KiB", "e"),
				       LOOM_OPT(struct job, wait, LOOM_OPT_TIME, "10us", "f"),
				       LOOM_OPT(struct job, number, LOOM_OPT_I64, "-1", "g"),
				       LOOM_OPT(struct job, real, LOOM_OPT_F64, "0.5", "h"),
				       LOOM_OPT(struct job, part, LOOM_OPT_SHARE, "5%", "i"),
				       LOOM_OPT(struct job, title, LOOM_OPT_STR, "", "j"),
				       LOOM_OPT(struct job, file, LOOM_OPT_PATH, "", "k"),
				       LOOM_OPT(struct job, cores, LOOM_OPT_CPUS, "", "l"),
				       {0}};
static const char *const section[] = {"run", "scheduler.mgws", "x_y"};

static void printable(struct loom__diag *diag)
{
	struct loom__text t = {0};
	loom__diag_text(diag, &t);
	for (size_t i = 0; i < diag->count; i++)
		FUZZ_CHECK(strncmp(diag->list[i].text, "internal error", strlen("internal error")));
	if (t.at)
		fuzz_printable("diag", t.at, t.length);
	loom__text_free(&t);
	loom__diag_free(diag);
}

static int complaint(const char *format, ...)
{
	fuzz_fail(__FILE__, __LINE__, format);
}

/* Checks that the value is at the position that its entry names, or after a quote at that position. */
static int at_its_place(void *arg, const struct loom__effective *e)
{
	const char *last = e->entry && e->entry->line ? strstr(e->entry->file, "/90") : NULL;
	size_t n;
	(void)arg;
	if (!last || last[3] < '0' || last[3] >= '0' + FUZZ_FILES || last[4])
		return 0;
	char *text = fuzz_file_bytes((unsigned)(last[3] - '0'), &n), *at = text, *end = text + n;
	at += n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
	for (int line = 1; line < e->entry->line && at; line++)
		at = (char *)memchr(at, '\n', (size_t)(end - at)) + 1;
	at += e->entry->value_column - 1;
	at += at < end && (*at == '"' || *at == '\'');
	FUZZ_CHECK(at <= end && (size_t)(end - at) >= strlen(e->entry->value) &&
		   !memcmp(at, e->entry->value, strlen(e->entry->value)));
	free(text);
	return 0;
}

struct setting {
	struct loom_config *cfg;
	struct loom__diag *diag;
};

static void set(void *arg, char *line)
{
	struct setting *s = arg;
	loom__config_set_at(s->cfg, line, &(struct loom__entry){.source = LOOM_FROM_COMMAND_LINE, .file = "--set"}, s->diag);
}

static void in_environment(void *arg, char *line)
{
	struct setting *s = arg;
	char *environment[] = {line, NULL};
	loom__config_read_environment(s->cfg, environment, s->diag);
}

static int fill(struct loom_config *cfg, struct loom__diag *diag)
{
	struct job job;
	for (size_t i = 0; i < LOOM__COUNT(section); i++) {
		loom__config_declare(cfg, section[i], rows, section[i]);
		loom__config_fill(cfg, &section[i], 1, rows, &job, sizeof(job), diag);
	}
	loom__config_unknown(cfg, diag);
	return diag->errors ? LOOM_EINVAL : 0;
}

static int list(void *arg, const struct loom__effective *e)
{
	if (e->row)
		loom__text_add(arg, "%s.%s=%s\n", e->section, e->key, e->value);
	return 0;
}

static void reads_back(struct loom_config *cfg)
{
	struct loom_config *again;
	struct loom__diag diag = {0};
	struct loom__text was = {0}, is = {0};
	char *ini;
	if (loom_config_create(&again, NULL))
		abort();
	if (!as_ini(cfg, &ini, &diag)) {
		fuzz_printable("as-ini", ini, strlen(ini));
		FUZZ_CHECK(!loom__config_read_text(again, "/elsewhere/again.ini", ini, strlen(ini), &diag));
		FUZZ_CHECK(!fill(again, &diag));
		loom__config_each(cfg, list, &was);
		loom__config_each(again, list, &is);
		FUZZ_CHECK(was.length == is.length && !memcmp(was.at, is.at, is.length));
	}
	loom__text_free(&was);
	loom__text_free(&is);
	free(ini);
	printable(&diag);
	loom_config_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_parts parts = {data, size};
	struct loom_config *cfg;
	struct loom__diag diag = {0};
	const char *path = NULL;
	iniparser_set_error_callback(complaint);
	if (chdir("/") || loom_config_create(&cfg, NULL)) /* "/" is the base of relative paths */
		abort();
	for (unsigned i = 0; i < 3; i++) {
		size_t n;
		char *text = fuzz_part(&parts, &n);
		const char *file = fuzz_file(i, text, n);
		path = path ? path : file;
		free(text);
	}
	char *settings = fuzz_part(&parts, NULL), *environment = fuzz_part(&parts, NULL);
	struct setting s = {cfg, &diag};
	int verdict = loom__config_read(cfg, path, &diag);
	FUZZ_CHECK(!verdict == !diag.errors);
	fuzz_lines(environment, in_environment, &s);
	fuzz_lines(settings, set, &s);
	int code = fill(cfg, &diag);
	loom__config_each(cfg, at_its_place, NULL);
	if (!code && !diag.errors)
		reads_back(cfg);
	printable(&diag);
	loom_config_destroy(cfg);
	free(settings);
	free(environment);
	return 0;
}
