/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <limits.h>
#include <locale.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/inside.h"
#include "facts/variables.h"
#include "facts/write.h"

/* ---- helpers -------------------------------------------------------------------------------- */

static struct loom_config *cfg; /* the config of the running test */
static struct loom__diag diag;	/* the messages of the running test; said() returns and clears them */

static void renew(void)
{
	loom_config_destroy(cfg);
	if (loom_config_create(&cfg, NULL))
		abort();
}

static const char *said(void)
{
	static char text[8192];
	struct loom__text t = {0};
	loom__diag_text(&diag, &t);
	snprintf(text, sizeof(text), "%s", t.at ? t.at : "");
	loom__text_free(&t);
	loom__diag_free(&diag);
	return text;
}

static void expect(const char *got, const char *want)
{
	if (strcmp(got, want))
		printf("\n-- got:\n%s\n-- want:\n%s\n", got, want);
	CU_ASSERT_STRING_EQUAL(got, want);
}

/* Checks that the messages are `want`, in which a line "2:5 text" means "t.ini:2:5: error: text". */
static void reported(const char *want)
{
	struct loom__text t = {0};
	loom__text_put(&t, "", 0);
	while (*want) {
		int n = (int)strcspn(want, "\n"), place = (int)strspn(want, "0123456789:");
		if (place)
			loom__text_add(&t, "t.ini:%.*s: %s%.*s\n", place, want,
				       strncmp(want + place, " warning", 8) ? "error: " : "",
				       n - place - 1, want + place + 1);
		else
			loom__text_add(&t, "%.*s\n", n, want);
		want += n + (want[n] == '\n');
	}
	expect(said(), t.at);
	loom__text_free(&t);
}

static void read_string(const char *text, int code)
{
	CU_ASSERT_EQUAL(loom__config_read_text(cfg, "t.ini", text, strlen(text), &diag), code);
}

static void set_text(const char *text, int code)
{
	char from[300];
	snprintf(from, sizeof(from), "--set %.200s", text);
	const struct loom__entry where = {.source = LOOM_FROM_COMMAND_LINE, .file = from};
	CU_ASSERT_EQUAL(loom__config_set_at(cfg, text, &where, &diag), code);
}

static void declare(const char *section, const struct loom_opt *rows, const char *help)
{
	CU_ASSERT_EQUAL(loom__config_declare(cfg, section, rows, help), 0);
}

/* A conf text and the messages that it must cause. talk() expects `code` as the result if there are messages, otherwise
 * 0. */
struct talk {
	const char *text, *want;
};

static void talk(const struct talk *row, size_t rows, int code)
{
	for (size_t i = 0; i < rows; i++) {
		renew();
		read_string(row[i].text, row[i].want[0] ? code : 0);
		reported(row[i].want);
	}
}

/* Checks the effective entry of [section] key. `want` has the form "value file:line:column:value_column source", or is
 * "-" if there must be no entry. */
static void in_force(const char *section, const char *key, const char *want)
{
	struct loom__text text = {0};
	const struct loom__entry *e = loom__config_get(cfg, section, key);
	if (e)
		loom__text_add(&text, "%s %s:%d:%d:%d %s", e->value, e->file, e->line, e->column,
			       e->value_column, loom__source_name(e->source));
	expect(e ? text.at : "-", want);
	loom__text_free(&text);
}

static char folder[TEST_FOLDER];

static void enter_folder(void)
{
	test_folder(folder);
	if (chdir(folder) || mkdir("sub", 0700))
		abort();
}

static void leave_folder(void)
{
	CU_ASSERT(!chdir("/"));
	test_remove(folder);
}

static void file(const char *name, const char *text)
{
	CU_ASSERT_EQUAL(loom__write_file(name, text, strlen(text), NULL), 0);
}

static void read_files(const struct talk *row, size_t rows)
{
	for (size_t i = 0; i < rows; i++) {
		renew();
		CU_ASSERT_EQUAL(loom__config_read(cfg, row[i].text, &diag),
				row[i].want[0] ? LOOM_EINVAL : 0);
		reported(row[i].want);
	}
}

/* ---- the scanner ---------------------------------------------------------------------------- */

TEST(accepts)
{
	static const struct talk rows[] = { /* `want` is the expected entry of [s] k */
		{"[s]\nk=v", "v t.ini:2:1:3 file"},
		{"[s]\r\nk = v w \r\n", "v w t.ini:2:1:5 file"},
		{"\xef\xbb\xbf[s]\nk = v\n", "v t.ini:2:1:5 file"},
		{"; c\n# c\n\n \t [ S ]  \n\tK\t=\tv\t; comment\n", "v t.ini:5:2:6 file"},
		{"[s]\nk = \"a;b#c\" ; comment\n", "a;b#c t.ini:2:1:5 file"},
		{"[s]\nk = ' a \"b\" '# comment\n", " a \"b\"  t.ini:2:1:5 file"},
		{"[s]\nk =\n", " t.ini:2:1:4 file"},
		{"[s]\nk = \n", " t.ini:2:1:4 file"},
		{"[s]\nk = ;c\n", " t.ini:2:1:5 file"},
		{"[s]\nk = #c\n", " t.ini:2:1:5 file"},
		{"[s]\nk = \"\"\n", " t.ini:2:1:5 file"},
		{"[s]\nk = '' ;c\n", " t.ini:2:1:5 file"},
		{"[s]\nk == a = b\n", "= a = b t.ini:2:1:4 file"},
		{"[s]\nk = don't \"x\"\n", "don't \"x\" t.ini:2:1:5 file"},
		{"[s]\nk = a\\b \\ ; c\n", "a\\b \\ t.ini:2:1:5 file"},
		{"[s]\nk = \xc3\xa9\xe2\x82\xac\n", "\xc3\xa9\xe2\x82\xac t.ini:2:1:5 file"},
		{"[s]\na = 1\n[b]\n[S]\nk = 2\n", "2 t.ini:5:1:5 file"}, /* the section occurs twice */
		{"[s]\nk = 1\n[t]\nk = 2\n", "1 t.ini:2:1:5 file"},
		{"", "-"},
		{"\n\n", "-"},
		{"[s]", "-"},
	};
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		renew();
		read_string(rows[i].text, 0);
		reported("");
		in_force("s", "k", rows[i].want);
		in_force("S", "K", rows[i].want);
	}
}

#define TEN     "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define LONG_996                                                                                   \
	HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED TEN TEN TEN TEN    \
	    TEN TEN TEN TEN TEN "012345"
#define NAMED_SO                                                                                   \
	"the name of a section is made of letters, digits, '_', '-' and single dots between them"
#define LINE "expected [section], key = value, or a comment after ';'"

TEST(refuses)
{
	static const struct talk rows[] = {
		{"[s]\nk = 1\n\n k = 2\n", "4:2 key 'k' is twice in [s]; the first is on line 2"},
		{"[s]\nk = 1\n[t]\n[S]\nK = 2\n", "5:1 key 'K' is twice in [S]; the first is on line 2"},
		{"k = 1\n[s]\n", "1:1 key 'k' is before the first section; put it under its [section]"},
		{"[s]\n  junk\n", "2:3 " LINE},
		{"[s]\nk: 1\n", "2:1 " LINE " (with '=', not ':')"},
		{" [s\nk = 1\n", "1:2 no ']' after the name of the section"},
		{"[s] ; c\n", "1:4 text after ']': a comment goes on a line of its own"},
		{"[s]x\n", "1:4 text after ']': a comment goes on a line of its own"},
		{"[]\n", "1:2 a name is missing"},
		{"[sched:mgws]\n", "1:7 names of sections have dots, not ':'; write [sched.mgws]"},
		{"[a b]\n", "1:3 " NAMED_SO},
		{"[.a]\n", "1:2 " NAMED_SO},
		{"[a.]\n", "1:3 " NAMED_SO},
		{"[a..b]\n", "1:4 " NAMED_SO},
		{"[" TEN TEN TEN TEN TEN TEN "12345]\n", "1:2 the name is too long: at most 64 characters"},
		{"[s]\n" TEN TEN TEN TEN TEN TEN "12345 = 1\n", "2:1 the name is too long: at most 64 characters"},
		{"[s]\n= 1\n", "2:1 a name is missing"},
		{"[s]\na.b = 1\n", "2:2 a key has no dots; write [s.a] and below it b = ..."},
		{"[s]\nk = \"a\n", "2:5 no \" ends the quoted value"},
		{"[s]\nk = '\n", "2:5 no ' ends the quoted value"},
		{"[s]\nk = \"a\" b\n", "2:9 text after the closing quote"},
		{"[s]\nk = \"a\\n\"\n", "2:7 '\\' inside quotes is not supported; leave out the quotes"},
		{"[s]\nk = a \\\n  b\n",
		 "2:7 a line may not end in '\\': there are no continuation lines\n3:3 " LINE},
		{"[s]\n; c:\\ \nk = 1\n", "2:5 a line may not end in '\\': there are no continuation lines"},
		{"[s]\nk = a\rb\n", "2:6 a control character"},
		{"[s]\n; \033[31m\n", "2:3 a control character"},
		{"[s]\nk = \x7f\n", "2:5 a control character"},
		{"[s]\nk = a\xe9" "b\n", "2:6 this is not UTF-8 text"},
		{"\xff\xfe[\0s\0", "1:1 the file is in UTF-16; save it as UTF-8"},
		{"[s]\nk = 1" LONG_996 "\n", "2:1001 the line has 1001 bytes; the most is 1000"},
		{"[s]\nk = " LONG_996 "\n", ""},
		/* A wrong header is one error, not one for each key below the header. */
		{"[s\na = 1\nb = 2\nc\n[t]\nd = \"\n", "1:1 no ']' after the name of the section\n4:1 " LINE
							 "\n6:5 no \" ends the quoted value"},
		{"[s]\ninclude = x\n", "2:1 include goes before the first section or into [gpuloom]"},
	};
	talk(rows, LOOM__COUNT(rows), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__config_read_text(cfg, "t.ini", "[s]\nk = a\0b\n", 12, &diag), LOOM_EINVAL);
	reported("2:6 a NUL byte: this is not a text file");
}

#define CUT "quote it, or put a blank before a comment"

TEST(cut_warning)
{
	static const struct talk rows[] = {{"[s]\nk = a;b\n", "2:6 warning: value cut at ';'; " CUT},
					   {"[s]\nk = a b#c\n", "2:8 warning: value cut at '#'; " CUT},
					   {"[s]\nk = a ;b\n", ""}};
	talk(rows, LOOM__COUNT(rows), 0);
	in_force("s", "k", "a t.ini:2:1:5 file");
}

/* The valid lines of a file with errors are kept, so that later checks can report further errors. */
TEST(keeps_the_good)
{
	renew();
	read_string("[s]\njunk\nk = 1\n", LOOM_EINVAL);
	in_force("s", "k", "1 t.ini:3:1:5 file");
	/* A key of an unknown section is not kept. */
	read_string("[s]\n[t:u]\nlost = 1\n", LOOM_EINVAL);
	in_force("s", "lost", "-");
	said();
}

TEST(bounds)
{
	struct loom__text t = {0};
	struct loom_error err;
	loom__text_add(&t, "[s]\n");
	for (int i = 0; i < 4096; i++)
		loom__text_add(&t, "k%d = 1\n", i);
	renew();
	read_string(t.at, LOOM_EINVAL);
	reported("4097:1 more than 4096 sections and keys in one file");
	/* Two files together exceed the limit. */
	renew();
	t.at[t.length - strlen("k4095 = 1\n")] = 0;
	read_string(t.at, 0);
	read_string("[s]\na = 1\nk1 = 2\nb = 1\n", LOOM_EINVAL);
	reported("4:1 more than 4096 keys in one configuration");
	for (int i = 0; i < 16384 - 4096 - 1; i++)
		CU_ASSERT_EQUAL_FATAL(loom_config_set(cfg, "s", "k1", "2", NULL), 0);
	CU_ASSERT_EQUAL(loom_config_set(cfg, "s", "k1", "2", &err), LOOM_EINVAL);
	expect(err.text, "loom_config_set: error: more than 16384 values in one configuration");
	loom__text_free(&t);
	renew();
	char *large = calloc(1, (1 << 20) + 2);
	memset(large, '\n', (1 << 20) + 1);
	CU_ASSERT_EQUAL(loom_config_load_text(cfg, "t.ini", large, &err), LOOM_EINVAL);
	expect(err.text, "t.ini: error: larger than the limit of 1048576 bytes");
	large[1 << 20] = 0;
	CU_ASSERT_EQUAL(loom_config_load_text(cfg, "t.ini", large, &err), 0);
	free(large);
}

/* ---- mistakes ------------------------------------------------------------------------------- */

TEST(diag)
{
	loom__diag_add(&diag, 0, NULL, 0, 0, "one %d", 1);
	loom__diag_add(&diag, 1, "f", 0, 0, "two");
	loom__diag_add(&diag, 0, "f", 3, 0, "three");
	loom__diag_add(&diag, 0, "f\n", 3, 4, "a\033[1m\xff\xc3\xa9\x7f");
	expect(said(), "error: one 1\nf: warning: two\nf:3: error: three\n"
		       "f :3:4: error: a?[1m?\xc3\xa9?\n");
	for (int i = 0; i < 3; i++)
		loom__diag_add(&diag, i == 2, "f", 1, 2, "the same");
	expect(said(), "f:1:2: error: the same\nf:1:2: warning: the same\n");
	/* Errors have priority over earlier warnings. */
	for (int i = 0; i < 25; i++)
		loom__diag_add(&diag, 1, NULL, 0, 0, "w%d", i);
	for (int i = 0; i < 21; i++)
		loom__diag_add(&diag, 0, NULL, 0, 0, "e%d", i);
	const char *text = said();
	CU_ASSERT_EQUAL(strncmp(text, "error: e0\nerror: e1\n", 20), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "error: e19\n26 more not shown\n"));
}

/* The messages of all calls end without a newline. */
TEST(no_newline_docs_13)
{
	struct loom_error err = {0};
	struct loom_stack *stack;
	renew();
	CU_ASSERT_EQUAL(loom_config_load_text(cfg, "t.ini", "a\n", &err), LOOM_EINVAL);
	CU_ASSERT(err.text[0] && err.text[strlen(err.text) - 1] != '\n');
	renew();
	CU_ASSERT_EQUAL(loom_config_load_text(cfg, "t.ini", "[run]\ndevices = cpu:0\nsamplse = 3\n", &err), 0);
	CU_ASSERT_EQUAL(loom_stack_open(cfg, NULL, &stack, &err), LOOM_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "samplse"));
	CU_ASSERT(err.text[0] && err.text[strlen(err.text) - 1] != '\n');
}

/* The public calls report all errors in one text and keep warnings for later. */
TEST(public)
{
	struct loom_error err = {0};
	renew();
	CU_ASSERT_EQUAL(loom_config_load_text(cfg, "t.ini", "a\n[s]\nb\nk = 1;2\n", &err), LOOM_EINVAL);
	CU_ASSERT_EQUAL(err.code, LOOM_EINVAL);
	expect(err.text, "t.ini:1:1: error: " LINE "\nt.ini:3:1: error: " LINE
			 "\nt.ini:4:6: warning: value cut at ';'; " CUT);
	renew();
	CU_ASSERT_EQUAL(loom_config_load_text(cfg, "t.ini", "[x-s]\nk = 1;2\n", NULL), 0);
	CU_ASSERT_EQUAL(loom__config_unknown(cfg, &diag), 0);
	reported("2:6 warning: value cut at ';'; " CUT);
	CU_ASSERT_EQUAL(loom__config_unknown(cfg, &diag), 0);
	reported("");
	CU_ASSERT_EQUAL(loom_config_set(cfg, "a.b", "k", " v ", &err), 0);
	in_force("a.b", "k", " v  loom_config_set:0:0:0 api");
	CU_ASSERT_EQUAL(loom_config_set(cfg, "a:b", "k", "v", &err), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom_config_set(cfg, "a", "k.k", "v", &err), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom_config_set(cfg, "a", "k", "v\n[b]", &err), LOOM_EINVAL);
	expect(err.text, "loom_config_set: error: a control character");
	CU_ASSERT_EQUAL(loom_config_load(cfg, "/nowhere", NULL), LOOM_EINVAL);
	loom_config_destroy(NULL);
}

/* ---- files ---------------------------------------------------------------------------------- */

#define CANNOT(path) path ": error: cannot read '" path "': No such file or directory"

TEST(files)
{
	static const struct talk rows[] = {
		{"bench.in", CANNOT("bench.in") "; did you mean 'bench.ini'?"},
		{"sub/deap.ini", CANNOT("sub/deap.ini") "; did you mean 'sub/deep.ini'?"},
		{"quite_else", CANNOT("quite_else")},
		{"no/where", CANNOT("no/where")},
		{"sub", "sub: error: 'sub' is a folder, not a file"},
		{"/dev/null", "/dev/null: error: '/dev/null' is not a regular file"},
		{"bench.ini", ""},
	};
	enter_folder();
	file("bench.ini", "[s]\nk = 1\n");
	file("sub/deep.ini", "");
	read_files(rows, LOOM__COUNT(rows));
	leave_folder();
}

TEST(include)
{
	enter_folder();
	file("top.ini", "[s]\na = top\n[gpuloom]\ninclude = sub/one.ini\ninclude = 'two.ini'\n");
	file("sub/one.ini", "include = ../three.ini\n[s]\na = one\nb = one\nc = one\n");
	file("two.ini", "[s]\nb = two\n");
	file("three.ini", "[s]\nc = three\nd = three\n");
	read_files(&(const struct talk){"top.ini", ""}, 1);
	in_force("s", "a", "top top.ini:2:1:5 file");
	in_force("s", "b", "two two.ini:2:1:5 file");
	in_force("s", "c", "one sub/one.ini:5:1:5 file");
	in_force("s", "d", "three sub/../three.ini:3:1:5 file");
	in_force("gpuloom", "include", "-");
	leave_folder();
}

TEST(include_mistakes)
{
	static const struct talk rows[] = {
		{"loop.ini", "loop2.ini:2:11: error: 'loop.ini' includes itself, directly or through others"},
		{"self.ini", "self.ini:1:11: error: './self.ini' includes itself, directly or through others"},
		{"gone.ini", "gone.ini:1:13: error: cannot read 'self.in': No such file or directory; "
			     "did you mean 'self.ini'?"},
		{"none.ini", "none.ini:1:10: error: include needs the name of a file"},
		{"bad.ini", "junk.ini:1:1: error: " LINE},
		{"d0.ini", "d7.ini:1:11: error: more than 8 files inside each other"},
		{"d1.ini", ""},
		{"wide.ini", "wide.ini:64:11: error: more than 64 files in one configuration"},
	};
	struct loom__text wide = {0};
	enter_folder();
	file("loop.ini", "include = loop2.ini\n");
	file("loop2.ini", "\ninclude = loop.ini\n");
	file("self.ini", "include = ./self.ini\n");
	file("gone.ini", "include =   self.in\n");
	file("none.ini", "include =\n");
	file("bad.ini", "include = junk.ini\n");
	file("junk.ini", "junk\n");
	for (int i = 0; i < 9; i++) {
		char name[20], text[40] = "[s]\n";
		snprintf(name, sizeof(name), "d%d.ini", i);
		if (i < 8)
			snprintf(text, sizeof(text), "include = d%d.ini\n", i + 1);
		file(name, text);
	}
	for (int i = 0; i < 64; i++)
		loom__text_add(&wide, "include = d8.ini\n");
	file("wide.ini", wide.at);
	loom__text_free(&wide);
	read_files(rows, LOOM__COUNT(rows));
	leave_folder();
}

/* ---- origins of values ----------------------------------------------------------------- */

struct options {
	uint64_t size, time;
	double share;
	const char *path, *cores, *name;
	uint32_t count, victim;
	uint8_t flag;
};
static const char *const victims[] = {"biased", "random", NULL};
static const struct loom_opt rows_all[] = {
	LOOM_OPT(struct options, count, LOOM_OPT_U32, "7", "how many", .min = 1, .max = 64),
	LOOM_OPT(struct options, size, LOOM_OPT_SIZE, "64KiB", "how large"),
	LOOM_OPT(struct options, time, LOOM_OPT_TIME, "10us", "how long"),
	LOOM_OPT(struct options, share, LOOM_OPT_SHARE, "5%", "how much"),
	LOOM_OPT(struct options, path, LOOM_OPT_PATH, "", "where"),
	LOOM_OPT(struct options, cores, LOOM_OPT_CPUS, "0-3,8", "on which"),
	LOOM_OPT(struct options, name, LOOM_OPT_STR, "anna", "the name"),
	LOOM_OPT(struct options, victim, LOOM_OPT_ENUM, "random", "the victim", .choices = victims),
	LOOM_OPT(struct options, flag, LOOM_OPT_BOOL, "on", "whether"),
	{0},
};
static const char *const sections[] = {"s", "s.t"};
static struct options o;

/* Fills `o` from the first n of `sections`, and checks the result. */
static void fill(size_t n, int code)
{
	memset(&o, 0xff, sizeof(o));
	CU_ASSERT_EQUAL(loom__config_fill(cfg, sections, n, rows_all, &o, sizeof(o), &diag), code);
}

TEST(precedence)
{
	char *environment[] = {"GPULOOM_S__COUNT=3", NULL};
	static const char *const files[] = {"loom_config_set", "--set s.count=4", "GPULOOM_S__COUNT", "t.ini",
					    "t.ini"};
	renew();
	/* The values are set in the opposite order of precedence. */
	CU_ASSERT_EQUAL(loom_config_set(cfg, "s", "count", "5", NULL), 0);
	set_text("s.count=4", 0);
	CU_ASSERT_EQUAL(loom__config_read_environment(cfg, environment, &diag), 0);
	read_string("[s]\ncount = 1\n", 0);
	read_string("\n[s]\ncount = 2\n", 0);
	declare("s", rows_all, "s");
	const struct loom__entry *e = loom__config_get(cfg, "s", "count");
	for (int i = 0; i < 5; i++, e = e->was) {
		CU_ASSERT_PTR_NOT_NULL_FATAL(e);
		CU_ASSERT_EQUAL(atoi(e->value), 5 - i);
		CU_ASSERT_STRING_EQUAL(e->file, files[i]);
	}
	CU_ASSERT_PTR_NULL(e);
	/* If one source sets a key twice, the last value is effective. */
	CU_ASSERT_EQUAL(loom_config_set(cfg, "s", "count", "6", NULL), 0);
	in_force("s", "count", "6 loom_config_set:0:0:0 api");
	CU_ASSERT_EQUAL(loom__config_unknown(cfg, &diag), 0);
	reported("");
}

TEST(set)
{
	static const struct talk rows[] = {
		{"a.b", "expected section.key=value"},
		{"ab=c.d", "expected section.key=value"},
		{"", "expected section.key=value"},
		{".k=v", "a name is missing"},
		{"s.=v", "a name is missing"},
		{"s.k k=v", "the name of a key is made of letters, digits, '_' and '-'"},
		{"a:b.k=v", NAMED_SO},
		{"gpuloom.include=x", "include works in files alone; name another file instead"},
	};
	renew();
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		char want[300];
		snprintf(want, sizeof(want), "--set %s: error: %s\n", rows[i].text, rows[i].want);
		set_text(rows[i].text, LOOM_EINVAL);
		expect(said(), want);
	}
	set_text("s.k=\xff", LOOM_EINVAL);
	expect(said(), "--set s.k=?: error: this is not UTF-8 text\n");
	set_text("a.b.c=v", 0);
	in_force("a.b", "c", "v --set a.b.c=v:0:0:0 command line");
	set_text(" a.b . c = v.w=x ", 0);
	in_force("a.b", "c", "v.w=x --set  a.b . c = v.w=x :0:0:0 command line");
	char longest[4200] = "s.k=";
	memset(longest + 4, 'x', 4097);
	set_text(longest, LOOM_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(said(), "error: the value is too long: at most 4096"));
	longest[4 + 4096] = 0;
	set_text(longest, 0);
}

TEST(environment)
{
	char *environment[] = {"PATH=/bin",
			       "GPULOOM_SCHEDULER_MGWS__COUNT= 3 ",
			       "GPULOOM_A_B__NAME=x",
			       "GPULOOM_PLUGIN_PATH=/p",
			       "GPULOOM_RUN__SAMPELS=3",
			       "GPULOOM_LIBRAY=/x",
			       "GPULOOM_NOTHING__LIKE_IT=1",
			       "GPULOOM_RUN__SAMPLES=\xff",
			       "GPULOOM_LIBRARY=/usr/lib/libgpuloom.so.0",
			       "GPULOOM_HOME=/sw",
			       "GPULOOM_SERVICE_HOST=10.0.0.1",
			       "GPULOOM_DIR=/d",
			       "GPULOOM_VERSION=1",
			       "GPULOOM_X=a\001b",
			       "GPULOOM",
			       NULL};
	char *more[] = {"GPULOOM_A_B__TIME=1s", NULL};
	const struct loom_opt count[] = {rows_all[0], {0}};
	struct loom_opt samples[] = {rows_all[0], {0}};
	samples[0].name = "samples";
	/* The result is the same whether keys are declared before or after their assignment. */
	for (int late = 0; late < 2; late++) {
		renew();
		if (late)
			loom__config_read_environment(cfg, environment, &diag);
		declare("scheduler.mgws", count, "");
		declare("run", samples, "");
		declare("a.b", count, "");
		declare("a-b", rows_all, "");
		if (!late)
			loom__config_read_environment(cfg, environment, &diag);
		CU_ASSERT_EQUAL(diag.errors, (size_t)!late); /* a value is checked when its key is declared */
		in_force("scheduler.mgws", "count", "3 GPULOOM_SCHEDULER_MGWS__COUNT:0:0:0 environment");
		/* The variable's name fits both sections, but only [a-b] has this key. */
		in_force("a.b", "name", "-");
		in_force("a-b", "name", "x GPULOOM_A_B__NAME:0:0:0 environment");
		CU_ASSERT_EQUAL(loom__config_unknown(cfg, &diag), late ? LOOM_EINVAL : 0);
		reported("GPULOOM_RUN__SAMPLES: error: this is not UTF-8 text\n"
		     "GPULOOM_RUN__SAMPELS: warning: unknown variable; did you mean 'GPULOOM_RUN__SAMPLES'?\n"
		     "GPULOOM_LIBRAY: warning: unknown variable; did you mean 'GPULOOM_LIBRARY'?\n"
		     "GPULOOM_NOTHING__LIKE_IT: warning: unknown variable");
		/* gpuloom does not warn about variables that have another meaning for gpuloom or for other programs. A
		 * second environment adds to the first. */
		CU_ASSERT_EQUAL(loom__config_read_environment(cfg, more, &diag), 0);
		in_force("a-b", "time", "1s GPULOOM_A_B__TIME:0:0:0 environment");
		in_force("a-b", "name", "x GPULOOM_A_B__NAME:0:0:0 environment");
	}
}

/* ---- values --------------------------------------------------------------------------------- */

enum { U32 = LOOM_OPT_U32, U64 = LOOM_OPT_U64, I64 = LOOM_OPT_I64, SIZE = LOOM_OPT_SIZE, TIME = LOOM_OPT_TIME,
       F64 = LOOM_OPT_F64, SHARE = LOOM_OPT_SHARE, BOOL = LOOM_OPT_BOOL, ENUM = LOOM_OPT_ENUM, CPUS = LOOM_OPT_CPUS };

static int parse(uint8_t type, const char *text, double min, double max, union loom__value *v,
		 struct loom_error *err)
{
	int real = type == F64 || type == SHARE;
	const struct loom_opt row = {.name = "o", .type = type, .choices = victims, .min = real ? 0 : (int64_t)min,
				     .max = real ? 0 : (uint64_t)(int64_t)max, .from = real ? min : 0, .to = real ? max : 0};
	memset(v, 0x5a, sizeof(*v));
	return loom__value_parse(&row, text, v, err);
}

TEST(values)
{
	static const struct {
		uint8_t type;
		const char *text;
		double want;
	} rows[] = {
		{U32, "0", 0}, {U32, "4294967295", 4294967295.0}, {U32, "0x10", 16},
		{U32, "0XfF", 255}, {U64, "18446744073709551615", 18446744073709551615.0},
		{I64, "-9223372036854775808", -9223372036854775808.0},
		{I64, "9223372036854775807", 9223372036854775807.0}, {SIZE, "4096", 4096},
		{SIZE, "64KiB", 65536}, {SIZE, "64 kib", 65536}, {SIZE, "64KB", 64000},
		{SIZE, "64k", 65536}, {SIZE, "1M", 1048576}, {SIZE, "1.5GiB", 1610612736},
		{SIZE, "2T", 2199023255552}, {SIZE, "3TB", 3e12}, {SIZE, "0x10", 16},
		{SIZE, "16777215.999999TB", 16777215.999999e12}, {TIME, "0", 0},
		{TIME, "10ns", 10}, {TIME, "10us", 10000}, {TIME, "1.5ms", 1500000},
		{TIME, "2 s", 2e9}, {TIME, "1m", 60e9}, {TIME, "1min", 60e9},
		{TIME, "2h", 7200e9}, {F64, "-1.5e3", -1500}, {SHARE, "5%", 0.05},
		{SHARE, "5 %", 0.05}, {SHARE, "0.05", 0.05}, {SHARE, "1", 1}, {SHARE, "100%", 1},
		{BOOL, "yes", 1}, {BOOL, "No", 0}, {BOOL, "on", 1}, {BOOL, "off", 0},
		{BOOL, "TRUE", 1}, {BOOL, "false", 0}, {BOOL, "1", 1}, {BOOL, "0", 0},
		{ENUM, "biased", 0}};
	static const char *const cores[] = {"", "0-3,8", "8191"};
	union loom__value v;
	struct loom_error err;
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		int code = parse(rows[i].type, rows[i].text, 0, 0, &v, &err);
		expect(code ? err.text : "", "");
		double got = rows[i].type == BOOL                           ? v.u8
			     : rows[i].type == U32 || rows[i].type == ENUM  ? v.u32
			     : rows[i].type == I64                          ? (double)v.i64
			     : rows[i].type == F64 || rows[i].type == SHARE ? v.f64
									    : (double)v.u64;
		CU_ASSERT_EQUAL(got, rows[i].want);
	}
	CU_ASSERT(!parse(U32, "64", 1, 64, &v, &err) && v.u32 == 64);
	CU_ASSERT(!parse(SHARE, "150%", 0, 2, &v, &err) && v.f64 == 1.5);
	/* no double has this bound */
	const struct loom_opt large = {.name = "o", .type = U64, .min = 1, .max = UINT64_MAX - 1};
	CU_ASSERT(!loom__value_parse(&large, "18446744073709551614", &v, &err));
	CU_ASSERT_EQUAL(loom__value_parse(&large, "18446744073709551615", &v, &err), LOOM_EINVAL);
	expect(err.text, "'18446744073709551615' is out of range: from 1 to 18446744073709551614");
	for (size_t i = 0; i < LOOM__COUNT(cores); i++) {
		CU_ASSERT_EQUAL(parse(CPUS, cores[i], 0, 0, &v, &err), 0);
		CU_ASSERT_PTR_EQUAL(v.text, cores[i]);
	}
}

#define NO_INT   "is not a valid integer"
#define NO_SIZE  "is not a valid size, as in 64KiB: "
#define NO_TIME  "is not a valid time, as in 10us: "
#define NO_CORES "is not a valid list of cores, as in 0-3,8"
#define NO_BOOL  "is neither yes nor no (nor on, off, true, false, 1, 0)"
#define OCTAL    ": a 0 in front would mean octal elsewhere; write "

TEST(values_refused)
{
	static const struct {
		uint8_t type;
		const char *text, *why; /* the part of the message after the quoted text */
		double min, max;
	} rows[] = {
	    {U32, "4294967296", "is too large: the most is 4294967295", 0, 0},
	    {U32, "99999999999999999999999", "is too large", 0, 0},
	    {U32, "", NO_INT, 0, 0},
	    {U32, "abc", NO_INT, 0, 0},
	    {U32, "64k5", NO_INT ": 'k5' is left over", 0, 0},
	    {U32, "1_000", NO_INT ": '_000' is left over", 0, 0},
	    {U32, "1.5", NO_INT ": '.5' is left over", 0, 0},
	    {U32, "010", NO_INT OCTAL "10", 0, 0},
	    {U32, "000", NO_INT OCTAL "0", 0, 0},
	    {U32, "0x", NO_INT ": 'x' is left over", 0, 0},
	    {U32, "-1", NO_INT ": it may not be negative", 0, 0},
	    {U32, "+1", NO_INT, 0, 0},
	    {U32, " 1", NO_INT, 0, 0},
	    {U32, "65", "is out of range: from 1 to 64", 1, 64},
	    {U32, "0", "is out of range: from 1 to 64", 1, 64},
	    {U64, "18446744073709551616", "is too large", 0, 0},
	    {I64, "-9223372036854775809", "is too small: the limit is -9223372036854775808", 0, 0},
	    {I64, "9223372036854775808", "is too large: the limit is 9223372036854775807", 0, 0},
	    {I64, "-1x", NO_INT ": 'x' is left over", 0, 0},
	    {I64, "--1", NO_INT, 0, 0},
	    {I64, "-6", "is out of range: from -5 to 5", -5, 5},
	    {SIZE, "64k5",
	     NO_SIZE "unknown unit 'k5'; there are B, KiB, MiB, GiB, TiB (or K, M, G, T) and KB, MB, GB, TB of 1000", 0,
	     0},
	    {SIZE, "0.1KiB", NO_SIZE "it is not a whole number of bytes", 0, 0},
	    {SIZE, "16777216T", "is too large", 0, 0},
	    {SIZE, "2MiB", "is out of range: from 64KiB to 1MiB", 65536, 1048576},
	    {SIZE, "1001", "is out of range: from 0B to 1KB", 0, 1000},
	    {TIME, "10", "has no unit; give one, as in 10us", 0, 0},
	    {TIME, "0.5", "has no unit; give one, as in 10us", 0, 0},
	    {TIME, "0.5ns", NO_TIME "it is not a whole number of ns", 0, 0},
	    {TIME, "10sec", NO_TIME "unknown unit 'sec'; there are ns, us, ms, s, m (min), h", 0, 0},
	    {TIME, "2s", "is out of range: from 10us to 1s", 1e4, 1e9},
	    {TIME, "0.0000001s", NO_TIME "unknown unit '1s'; there are ns, us, ms, s, m (min), h", 0, 0},
	    {F64, "1,5", "is not a valid number: ',5' is left over", 0, 0},
	    {F64, "nan", "is not a valid number", 0, 0},
	    {F64, "1e999", "is not a valid number", 0, 0},
	    {F64, "5%", "is not a valid number: '%' is left over", 0, 0},
	    {F64, "3", "is out of range: from 0.5 to 2.5", 0.5, 2.5},
	    {SHARE, "5", "is out of range: from 0% to 100%; did you mean 5%?", 0, 0},
	    {SHARE, "101%", "is out of range: from 0% to 100%", 0, 0},
	    {SHARE, "-1%", "is out of range: from 0% to 100%", 0, 0},
	    {SHARE, "5%%", "is not a valid share, as in 5% or 0.05: '%' is left over", 0, 0},
	    {BOOL, "Tango", NO_BOOL, 0, 0},
	    {BOOL, "y", NO_BOOL, 0, 0},
	    {ENUM, "ramdom", "is none of biased, random; did you mean 'random'?", 0, 0},
	    {ENUM, "x", "is none of biased, random", 0, 0},
	    {CPUS, "0-3,2", NO_CORES ": core 2 appears twice", 0, 0},
	    {CPUS, "3-0", NO_CORES ": 3-0 runs backwards", 0, 0},
	    {CPUS, "0-8192", NO_CORES ": there is no core 8192", 0, 0},
	    {CPUS, "1,", NO_CORES, 0, 0},
	    {CPUS, "1-", NO_CORES, 0, 0},
	    {CPUS, "1 2", NO_CORES ": ' 2' is left over", 0, 0},
	};
	union loom__value v;
	struct loom_error err;
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		char want[300];
		snprintf(want, sizeof(want), "'%s' %s", rows[i].text, rows[i].why);
		CU_ASSERT_EQUAL(parse(rows[i].type, rows[i].text, rows[i].min, rows[i].max, &v, &err),
				LOOM_EINVAL);
		expect(err.text, want);
		CU_ASSERT_EQUAL(v.u64, 0x5a5a5a5a5a5a5a5a); /* a rejected text leaves the value unchanged */
	}
	/* However long the value is, the message still has the reason. */
	char text[4000] = "";
	memset(text, 'x', sizeof(text) - 1);
	text[0] = '1';
	REFUSED(parse(U32, text, 0, 0, &v, &err), LOOM_EINVAL, err, "is left over");
}

TEST(rows_check)
{
	static const char *const nothing[] = {NULL};
	static const struct loom_opt good = {
		.name = "a", .dflt = "1", .help = "h", .offset = 4, .size = 4, .type = LOOM_OPT_U32};
	struct loom_error err;
#define ROW(want, ...)                                                                             \
	do {                                                                                       \
		struct loom_opt r = good;                                                          \
		__VA_ARGS__;                                                                       \
		const struct loom_opt table[] = {r, {0}};                                          \
		CU_ASSERT_EQUAL(loom__rows_check(table, 8, &err), LOOM_EPLUGIN);                   \
		expect(err.text, want);                                                            \
	} while (0)
	ROW("option name 'A' is not made of a-z, 0-9 and '_'", r.name = "A");
	ROW("option name '' is not made of a-z, 0-9 and '_'", r.name = "");
	ROW("option name '1a' is not made of a-z, 0-9 and '_'", r.name = "1a");
	ROW("option name 'include' is taken by the configuration itself", r.name = "include");
	ROW("option 'a' has no help", r.help = "");
	ROW("option 'a' has the unknown type 99", r.type = 99);
	ROW("option 'a' has a field of 8 bytes; its type needs 4", r.size = 8);
	ROW("option 'a' is outside of the option struct", r.offset = 5);
	ROW("option 'a' is outside of the option struct", r.offset = UINT32_MAX);
	ROW("option 'a' has no choices", r.type = LOOM_OPT_ENUM);
	ROW("option 'a' has no choices", r.type = LOOM_OPT_ENUM, r.choices = nothing);
	ROW("option 'a' has a minimum above its maximum; give both", r.min = 1);
	ROW("option 'a' has an empty section", r.section = "");
	ROW("option 'a' has auto as a value and is no integer, size or time", r.type = LOOM_OPT_STR, r.size = 8,
	    r.offset = 0, r.flags = LOOM_OPT_AUTO);
	ROW("option 'a' is required and has a default", r.flags = LOOM_OPT_REQUIRED);
	ROW("option 'a' has no default and is not required", r.dflt = NULL);
	ROW("the default of option 'a' is wrong: 'x' is not a valid integer", r.dflt = "x");
	ROW("the default of option 'a' is wrong: '1' is out of range: from 2 to 3", r.min = 2,
	    r.max = 3);
#undef ROW
	const struct loom_opt twice[] = {good, good, {0}};
	CU_ASSERT_EQUAL(loom__rows_check(twice, 8, &err), LOOM_EPLUGIN);
	expect(err.text, "option 'a' is twice in its table");
	CU_ASSERT_EQUAL(loom__rows_check(rows_all, sizeof(struct options), &err), 0);
	CU_ASSERT_EQUAL(loom__rows_check(NULL, 0, &err), 0);
}

/* ---- schema --------------------------------------------------------------------------------- */

TEST(fill)
{
	renew();
	fill(1, 0);
	CU_ASSERT(o.count == 7 && o.size == 65536 && o.time == 10000 && o.share == 0.05);
	CU_ASSERT(o.victim == 1 && o.flag == 1);
	CU_ASSERT_STRING_EQUAL(o.path, "");
	CU_ASSERT_STRING_EQUAL(o.cores, "0-3,8");
	CU_ASSERT_STRING_EQUAL(o.name, "anna");
	read_string("[s]\ncount = 1\nsize = 1\n[s.t]\nsize = 2\nname = bob\n", 0);
	fill(2, 0);
	CU_ASSERT(o.count == 1 && o.size == 2);
	CU_ASSERT_STRING_EQUAL(o.name, "bob");
	reported("");
}

/* Several plug-ins share an option. The shared section sets the option for all of them, and a plug-in's own section for
 * this plug-in alone. */
static int list_shared(void *arg, const struct loom__effective *e)
{
	loom__text_add(arg, "%s.%s=%s ", e->section, e->key, e->value);
	return 0;
}

static struct two { uint32_t own, common; } two_of(const char *section, const struct loom_opt *rows)
{
	struct two two;
	CU_ASSERT_EQUAL(loom__config_fill(cfg, &section, 1, rows, &two, sizeof(two), &diag), 0);
	return two;
}

TEST(shared_section)
{
	static const struct loom_opt rows[] = {
		LOOM_OPT(struct two, own, LOOM_OPT_U32, "1", "own"),
		LOOM_OPT(struct two, common, LOOM_OPT_U32, "auto", "common", .max = 100, .section = "k",
			 .flags = LOOM_OPT_AUTO), {0}};
	struct loom_opt other[] = {rows[0], rows[1], {0}};
	struct loom__text text = {0};
	char *environment[] = {"GPULOOM_K__COMMON=9", NULL};
	renew();
	declare("k.a", rows, "a");
	declare("k.b", rows, "b");
	CU_ASSERT_EQUAL(two_of("k.a", rows).common, 0);
	read_string("[k]\ncommon = 5\n[k.b]\ncommon = 6\nown = 2\n", 0);
	CU_ASSERT_EQUAL(two_of("k.a", rows).common, 5);
	CU_ASSERT_EQUAL(two_of("k.b", rows).common, 6);
	loom__config_each(cfg, list_shared, &text);
	CU_ASSERT_STRING_EQUAL(text.at, "k.a.own=1 k.common=5 k.b.own=2 k.b.common=6 ");
	loom__text_free(&text);
	reported("");
	/* A source of higher precedence overrides a more specific section. */
	set_text("k.common=7", 0);
	CU_ASSERT_EQUAL(two_of("k.b", rows).common, 7);
	set_text("k.b.common=auto", 0);
	CU_ASSERT_EQUAL(two_of("k.b", rows).common, 0);
	CU_ASSERT_EQUAL(two_of("k.a", rows).common, 7);
	set_text("k.comon=1", 0);
	CU_ASSERT_EQUAL(loom__config_unknown(cfg, &diag), LOOM_EINVAL);
	reported("--set k.comon=1: error: unknown key 'comon' in [k]; did you mean 'common'?\n");
	renew();
	CU_ASSERT_EQUAL(loom__config_read_environment(cfg, environment, &diag), 0);
	declare("k.a", rows, "a");
	CU_ASSERT_EQUAL(two_of("k.a", rows).common, 9);
	other[1].max = 200;
	declare("k.b", other, "b");
	CU_ASSERT_EQUAL(loom__config_unknown(cfg, &diag), LOOM_EINVAL);
	reported("error: a and b declare the option 'common' of [k], which they share, in different ways\n");
}

/* Each error has its position, and the option keeps its default. */
TEST(fill_mistakes)
{
	char *environment[] = {"GPULOOM_S__TIME=5", NULL};
	renew();
	declare("s", rows_all, "");
	read_string("[s]\nCount =  65\n\tflag = \"maybe\"\n", 0);
	CU_ASSERT_EQUAL(loom__config_read_environment(cfg, environment, &diag), 0);
	set_text("s.size=2q", 0);
	fill(1, LOOM_EINVAL);
	reported("2:10 Count in [s]: '65' is out of range: from 1 to 64\n"
	     "--set s.size=2q: error: size in [s]: '2q' " NO_SIZE "unknown unit 'q'; there are B, KiB, MiB, GiB, "
	     "TiB (or K, M, G, T) and KB, MB, GB, TB of 1000\n"
	     "GPULOOM_S__TIME: error: time in [s]: '5' has no unit; give one, as in 10us\n"
	     "3:9 flag in [s]: 'maybe' " NO_BOOL);
	CU_ASSERT(o.count == 7 && o.size == 65536 && o.time == 10000 && o.flag == 1);
	/* An option whose field is outside of the struct is rejected. */
	CU_ASSERT_EQUAL(loom__config_fill(cfg, sections, 1, rows_all, &o, 8, &diag), LOOM_EPLUGIN);
	reported("error: option 'count' is outside of the option struct");
}

TEST(required)
{
	static const struct loom_opt rows[] = {
		LOOM_OPT(struct options, name, LOOM_OPT_STR, NULL, "its name", .flags = LOOM_OPT_REQUIRED),
		LOOM_OPT(struct options, count, LOOM_OPT_U32, NULL, "how many", .flags = LOOM_OPT_REQUIRED),
		LOOM_OPT(struct options, size, LOOM_OPT_SIZE, "1", "use 'count'", .flags = LOOM_OPT_DEPRECATED),
		{0},
	};
	static const struct talk cases[] = {
		{"", "error: [s] needs 'name': its name\nerror: [s] needs 'count': how many"},
		{"[t]\n[s]\nname =\n", "2:1 [s] needs 'name': its name\n2:1 [s] needs 'count': how many"},
		{"[s]\nname = x\ncount =\n", "3:8 count in [s]: '' is not a valid integer"},
		{"[s]\nname = x\ncount = 2\n", ""},
		{"[s]\nname = x\ncount = 2\nsize = 3\n", "4:1 warning: 'size' in [s] is deprecated: use 'count'"},
	};
	for (size_t i = 0; i < LOOM__COUNT(cases); i++) {
		renew();
		read_string(cases[i].text, 0);
		CU_ASSERT_EQUAL(loom__config_fill(cfg, sections, 1, rows, &o, sizeof(o), &diag),
				i < 3 ? LOOM_EINVAL : 0);
		reported(cases[i].want);
		CU_ASSERT_PTR_NOT_NULL(o.name);
	}
	CU_ASSERT_EQUAL(o.size, 3);
}

TEST(paths)
{
	static const struct {
		const char *file, *value, *want; /* if `want` begins with '/', the test's folder precedes it */
		int outside;
	} rows[] = {
		{"top.ini", "data", "/data", 0},
		{"sub/a.ini", "data", "/sub/data", 0},
		{"sub/a.ini", "../data", "/sub/../data", 0},
		{"/etc/a.ini", "data", "/etc/data", 1},
		{"sub/a.ini", "/data", "/data", 1},
		{"sub/a.ini", "~/data", "/sub/~/data", 0},
		{NULL, "data", "/data", 0},
		{"sub/a.ini", "", "", 1},
	};
	enter_folder();
	char here[PATH_MAX], text[100], want[PATH_MAX + 20];
	CU_ASSERT_PTR_NOT_NULL_FATAL(getcwd(here, sizeof(here)));
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		renew();
		snprintf(text, sizeof(text), "[s]\npath = %s\n", rows[i].value);
		CU_ASSERT_EQUAL(rows[i].file ? loom_config_load_text(cfg, rows[i].file, text, NULL)
					     : loom_config_set(cfg, "s", "path", rows[i].value, NULL),
				0);
		fill(1, 0);
		snprintf(want, sizeof(want), "%s%s", rows[i].outside ? "" : here, rows[i].want);
		expect(o.path, want);
	}
	leave_folder();
}

#define SEE " (see: gpuloom describe sched s)"

TEST(unknown)
{
	struct loom_opt throttle[] = {rows_all[0], rows_all[0], {0}};
	throttle[0].name = "limit";
	throttle[1].name = "twin";
	static const struct talk rows[] = {
		{"[s]\ncount = 1\nx-note = 1\n[x-mine]\na = 1\n[X-Mine]\nb = 1\n", ""},
		{"[x-mine]\na.b = 1\na.c-d = 2\n", ""}, /* keys of the user's own sections may contain dots */
		{"[s]\ncuont = 1\n", "2:1 unknown key 'cuont' in [s]; did you mean 'count'?"},
		{"[s]\nLimit = 1\n", "2:1 unknown key 'Limit' in [s]; it belongs in [qos.throttle]"},
		{"[s]\ntwin = 1\n", "2:1 unknown key 'twin' in [s]; it belongs in [qos.throttle] or [other]"},
		{"[s]\nfoobar = 1\n", "2:1 unknown key 'foobar' in [s]" SEE},
		{"[empty]\nfoobar = 1\n", "2:1 unknown key 'foobar' in [empty]"},
		/* A section that is declared twice has the keys of both declarations. */
		{"[other]\ncount = 1\ntwin = 2\ntwni = 3\n", "4:1 unknown key 'twni' in [other]; did you mean 'twin'?"},
		{"\n[qos.throtle]\na = 1\nb = 2\n[nothing]\n",
		 "2:1 unknown section [qos.throtle]; did you mean [qos.throttle]?\n5:1 unknown section [nothing]"},
		/* The messages name every place that sets an unknown key, also an overridden one. */
		{"[s]\nfoo_bar = 2\n", "--set sched.a=1: error: unknown section [sched]\n"
				       "--set s.foo_bar=1: error: unknown key 'foo_bar' in [s]" SEE
				       "\n2:1 unknown key 'foo_bar' in [s]" SEE},
	};
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		renew();
		declare("s", rows_all, "sched s");
		declare("qos.throttle", throttle, NULL);
		declare("other", throttle + 1, NULL);
		declare("Other", rows_all, NULL);
		declare("empty", NULL, NULL);
		if (i + 1 == LOOM__COUNT(rows)) {
			set_text("sched.a=1", 0);
			set_text("s.foo_bar=1", 0);
		}
		read_string(rows[i].text, 0);
		CU_ASSERT_EQUAL(loom__config_unknown(cfg, &diag), *rows[i].want ? LOOM_EINVAL : 0);
		reported(rows[i].want);
	}
}

static int list_effective(void *arg, const struct loom__effective *e)
{
	loom__text_add(arg, "%s.%s=%s|%s|%s%s\n", e->section, e->key, e->value, e->shown,
		       e->entry ? loom__source_name(e->entry->source) : "default", e->row ? "" : " free");
	return 0;
}

TEST(each)
{
	struct loom__text text = {0};
	renew();
	declare("s", rows_all, "");
	read_string("[x-me]\nk = v\n[s]\nsize = 2k\nx-n = 1\nflag = 0\n", 0);
	/* A second fill replaces the values that the first one recorded. */
	for (int i = 0; i < 2; i++) {
		fill(1, 0);
		CU_ASSERT_EQUAL(loom_config_set(cfg, "s", "name", "eve", NULL), 0);
	}
	CU_ASSERT_EQUAL(loom__config_each(cfg, list_effective, &text), 0);
	expect(text.at, "s.count=7|7|default\n"
			"s.size=2048|2k|file\n"
			"s.time=10000|10us|default\n"
			"s.share=0.05|5%|default\n"
			"s.path=||default\n"
			"s.cores=0-3,8|0-3,8|default\n"
			"s.name=eve|eve|api\n"
			"s.victim=random|random|default\n"
			"s.flag=no|0|file\n"
			"x-me.k=v|v|file free\n"
			"s.x-n=1|1|file free\n");
	loom__text_free(&text);
}

/* ---- the locale of the process ------------------------------------------------------------------ */

/* iniparser folds names in the process's locale. In a Turkish locale, I does not become i. */
TEST(locale)
{
	char command[2 * PATH_MAX + 80];
	enter_folder();
	snprintf(command, sizeof(command), "localedef -i tr_TR -f ISO-8859-9 '%s/tr_TR' >%s/log 2>&1", folder,
		 folder);
	if (!system(command) && !setenv("LOCPATH", folder, 1) && setlocale(LC_ALL, "tr_TR")) {
		renew();
		read_string("[SIZE]\nLIMIT = 1\n", 0);
		reported("");
		in_force("size", "limit", "1 t.ini:2:1:9 file");
		setlocale(LC_ALL, "C");
	}
	unsetenv("LOCPATH");
	leave_folder();
}

static void *load_often(void *arg)
{
	char text[40];
	snprintf(text, sizeof(text), "[s]\ncount = %d\n", *(int *)arg);
	for (int i = 0; i < 100; i++) {
		struct loom_config *own = NULL;
		struct loom__diag told_it = {0};
		struct options got = {0};
		if (loom_config_create(&own, NULL) || loom_config_load_text(own, "t.ini", text, NULL) ||
		    loom__config_fill(own, sections, 1, rows_all, &got, sizeof(got), &told_it) ||
		    got.count != *(uint32_t *)arg)
			*(int *)arg = -1;
		loom__diag_free(&told_it);
		loom_config_destroy(own);
	}
	return NULL;
}

TEST(threads)
{
	int number[4] = {1, 2, 3, 4};
	in_threads(load_often, number, sizeof(*number), 4);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(number[i], i + 1);
}

TEST_MAIN("config", 60)
