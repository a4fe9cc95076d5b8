/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <iniparser/iniparser.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/inside.h"

/* ---- helpers -------------------------------------------------------------------------------- */

static struct loom_config *make(void)
{
	struct loom_config *cfg = NULL;
	if (loom_config_create(&cfg, NULL))
		abort();
	return cfg;
}

/* All of diag as text in a buffer of this function's, and diag freed. */
static const char *said(struct loom__diag *diag)
{
	static char text[8192];
	struct loom__text t = {0};
	loom__diag_text(diag, &t);
	snprintf(text, sizeof(text), "%s", t.at ? t.at : "");
	loom__text_free(&t);
	loom__diag_free(diag);
	return text;
}

static void expect(const char *got, const char *want)
{
	if (strcmp(got, want))
		printf("\n-- got:\n%s\n-- want:\n%s\n", got, want);
	CU_ASSERT_STRING_EQUAL(got, want);
}

static int read_string(struct loom_config *cfg, const char *text, struct loom__diag *diag)
{
	return loom__config_read_text(cfg, "t.ini", text, strlen(text), diag);
}

/* "value file:line:column:value_column source" of the entry in force, "-" for none. */
static const char *in_force(const struct loom_config *cfg, const char *section, const char *key)
{
	static char text[4200];
	const struct loom__entry *e = loom__config_get(cfg, section, key);
	if (!e)
		return "-";
	snprintf(text, sizeof(text), "%s %s:%d:%d:%d %s", e->value, e->file, e->line, e->column,
		 e->value_column, loom__source_name(e->source));
	return text;
}

static char folder[PATH_MAX];

static void enter_folder(void)
{
	const char *base = getenv("TMPDIR");
	snprintf(folder, sizeof(folder), "%s/gpuloom-config-XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(folder) || chdir(folder))
		abort();
}

static void leave_folder(void)
{
	char command[PATH_MAX + 16];
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	CU_ASSERT(!chdir("/") && !system(command));
}

static void file(const char *name, const char *text)
{
	struct loom_error err;
	CU_ASSERT_EQUAL(loom__write_file(name, text, strlen(text), &err), 0);
}

/* ---- the scanner ---------------------------------------------------------------------------- */

static void test_accepts(void)
{
	static const struct {
		const char *text, *want; /* of [s] k */
	} rows[] = {
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
	    {"[s]\na = 1\n[b]\n[S]\nk = 2\n", "2 t.ini:5:1:5 file"}, /* in two parts */
	    {"[s]\nk = 1\n[t]\nk = 2\n", "1 t.ini:2:1:5 file"},
	    {"", "-"},
	    {"\n\n", "-"},
	    {"[s]", "-"},
	};
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		struct loom_config *cfg = make();
		struct loom__diag diag = {0};
		CU_ASSERT_EQUAL(read_string(cfg, rows[i].text, &diag), 0);
		expect(said(&diag), "");
		expect(in_force(cfg, "s", "k"), rows[i].want);
		expect(in_force(cfg, "S", "K"), rows[i].want);
		loom_config_destroy(cfg);
	}
}

#define TEN     "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define LONG_996                                                                                   \
	HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED TEN TEN TEN TEN    \
	    TEN TEN TEN TEN TEN "012345"

static void test_refuses(void)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
	    {"[s]\nk = 1\n\n k = 2\n",
	     "t.ini:4:2: error: key 'k' stands twice in [s]; the first is on line 2\n"},
	    {"[s]\nk = 1\n[t]\n[S]\nK = 2\n",
	     "t.ini:5:1: error: key 'K' stands twice in [S]; the first is on line 2\n"},
	    {"k = 1\n[s]\n", "t.ini:1:1: error: key 'k' stands before the first section; put "
			     "it under its [section]\n"},
	    {"[s]\n  junk\n", "t.ini:2:3: error: expected [section], key = value, or a comment "
			      "after ';'\n"},
	    {"[s]\nk: 1\n", "t.ini:2:1: error: expected [section], key = value, or a comment "
			    "after ';' (with '=', not ':')\n"},
	    {" [s\nk = 1\n", "t.ini:1:2: error: no ']' after the name of the section\n"},
	    {"[s] ; c\n",
	     "t.ini:1:4: error: text after ']': a comment goes on a line of its own\n"},
	    {"[s]x\n", "t.ini:1:4: error: text after ']': a comment goes on a line of its own\n"},
	    {"[]\n", "t.ini:1:2: error: a name is missing\n"},
	    {"[sched:mgws]\n", "t.ini:1:7: error: names of sections have dots, not ':'; write "
			       "[sched.mgws]\n"},
	    {"[a b]\n", "t.ini:1:3: error: the name of a section is made of letters, digits, "
			"'_', '-' and single dots between them\n"},
	    {"[.a]\n", "t.ini:1:2: error: the name of a section is made of letters, digits, "
		       "'_', '-' and single dots between them\n"},
	    {"[a.]\n", "t.ini:1:3: error: the name of a section is made of letters, digits, "
		       "'_', '-' and single dots between them\n"},
	    {"[a..b]\n", "t.ini:1:4: error: the name of a section is made of letters, digits, "
			 "'_', '-' and single dots between them\n"},
	    {"[" TEN TEN TEN TEN TEN TEN "12345]\n",
	     "t.ini:1:2: error: the name is too long: at most 64 characters\n"},
	    {"[s]\n" TEN TEN TEN TEN TEN TEN "12345 = 1\n",
	     "t.ini:2:1: error: the name is too long: at most 64 characters\n"},
	    {"[s]\n= 1\n", "t.ini:2:1: error: a name is missing\n"},
	    {"[s]\na.b = 1\n", "t.ini:2:2: error: a key has no dots; write [s.a] and below it b = ...\n"},
	    {"[s]\nk = \"a\n", "t.ini:2:5: error: no \" ends the quoted value\n"},
	    {"[s]\nk = '\n", "t.ini:2:5: error: no ' ends the quoted value\n"},
	    {"[s]\nk = \"a\" b\n", "t.ini:2:9: error: text after the closing quote\n"},
	    {"[s]\nk = \"a\\n\"\n", "t.ini:2:7: error: '\\' inside quotes is not supported; "
				    "leave out the quotes\n"},
	    {"[s]\nk = a \\\n  b\n",
	     "t.ini:2:7: error: a line may not end in '\\': there are no continuation lines\n"
	     "t.ini:3:3: error: expected [section], key = value, or a comment after ';'\n"},
	    {"[s]\n; c:\\ \nk = 1\n",
	     "t.ini:2:5: error: a line may not end in '\\': there are no continuation lines\n"},
	    {"[s]\nk = a\rb\n", "t.ini:2:6: error: a control character\n"},
	    {"[s]\n; \033[31m\n", "t.ini:2:3: error: a control character\n"},
	    {"[s]\nk = \x7f\n", "t.ini:2:5: error: a control character\n"},
	    {"[s]\nk = a\xe9"
	     "b\n",
	     "t.ini:2:6: error: this is not UTF-8 text\n"},
	    {"\xff\xfe[\0s\0", "t.ini:1:1: error: the file is in UTF-16; save it as UTF-8\n"},
	    {"[s]\nk = 1" LONG_996 "\n", "t.ini:2:1001: error: the line has 1001 bytes; the "
					 "most is 1000\n"},
	    /* A header that is wrong is one mistake, not one for each key below it. */
	    {"[s\na = 1\nb = 2\nc\n[t]\nd = \"\n",
	     "t.ini:1:1: error: no ']' after the name of the section\n"
	     "t.ini:4:1: error: expected [section], key = value, or a comment after ';'\n"
	     "t.ini:6:5: error: no \" ends the quoted value\n"},
	    {"[s]\ninclude = x\n",
	     "t.ini:2:1: error: include goes before the first section or into [gpuloom]\n"},
	};
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		struct loom_config *cfg = make();
		struct loom__diag diag = {0};
		CU_ASSERT_EQUAL(read_string(cfg, rows[i].text, &diag), LOOM_EINVAL);
		expect(said(&diag), rows[i].want);
		loom_config_destroy(cfg);
	}
	/* The longest line, and a NUL in the middle. */
	struct loom_config *cfg = make();
	struct loom__diag diag = {0};
	CU_ASSERT_EQUAL(read_string(cfg, "[s]\nk = " LONG_996 "\n", &diag), 0);
	CU_ASSERT_EQUAL(loom__config_read_text(cfg, "n", "[s]\nk = a\0b\n", 12, &diag),
			LOOM_EINVAL);
	expect(said(&diag), "n:2:6: error: a NUL byte: this is not a text file\n");
	loom_config_destroy(cfg);
}

static void test_cut_warning(void)
{
	static const struct {
		const char *text, *value, *want;
	} rows[] = {
	    {"[s]\nk = a;b\n", "a t.ini:2:1:5 file",
	     "t.ini:2:6: warning: value cut at ';'; quote it, or put a blank before a comment\n"},
	    {"[s]\nk = a b#c\n", "a b t.ini:2:1:5 file",
	     "t.ini:2:8: warning: value cut at '#'; quote it, or put a blank before a comment\n"},
	    {"[s]\nk = a ;b\n", "a t.ini:2:1:5 file", ""},
	};
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		struct loom_config *cfg = make();
		struct loom__diag diag = {0};
		CU_ASSERT_EQUAL(read_string(cfg, rows[i].text, &diag), 0);
		expect(said(&diag), rows[i].want);
		expect(in_force(cfg, "s", "k"), rows[i].value);
		loom_config_destroy(cfg);
	}
}

/* What is right in a file with mistakes is kept, so that later checks find the other mistakes. */
static void test_keeps_the_good(void)
{
	struct loom_config *cfg = make();
	struct loom__diag diag = {0};
	CU_ASSERT_EQUAL(read_string(cfg, "[s]\njunk\nk = 1\n", &diag), LOOM_EINVAL);
	expect(in_force(cfg, "s", "k"), "1 t.ini:3:1:5 file");
	/* But not a key whose section nobody knows. */
	CU_ASSERT_EQUAL(read_string(cfg, "[s]\n[t:u]\nlost = 1\n", &diag), LOOM_EINVAL);
	expect(in_force(cfg, "s", "lost"), "-");
	loom__diag_free(&diag);
	loom_config_destroy(cfg);
}

static void test_bounds(void)
{
	struct loom__text t = {0};
	struct loom__diag diag = {0};
	struct loom_config *cfg = make();
	loom__text_add(&t, "[s]\n");
	for (int i = 0; i < 4096; i++)
		loom__text_add(&t, "k%d = 1\n", i);
	CU_ASSERT_EQUAL(loom__config_read_text(cfg, "t.ini", t.at, t.length, &diag), LOOM_EINVAL);
	expect(said(&diag), "t.ini:4097:1: error: more than 4096 sections and keys in one file\n");
	loom_config_destroy(cfg);
	/* The same number of keys from two files. */
	cfg = make();
	t.length -= strlen("k4095 = 1\n");
	CU_ASSERT_EQUAL(loom__config_read_text(cfg, "t.ini", t.at, t.length, &diag), 0);
	CU_ASSERT_EQUAL(read_string(cfg, "[s]\na = 1\nk1 = 2\nb = 1\n", &diag), LOOM_EINVAL);
	expect(said(&diag), "t.ini:4:1: error: more than 4096 keys in one configuration\n");
	/* One key, over and over. */
	for (int i = 0; i < 16384 - 4096 - 1; i++)
		CU_ASSERT_EQUAL_FATAL(loom_config_set(cfg, "s", "k1", "2", NULL), 0);
	struct loom_error err;
	CU_ASSERT_EQUAL(loom_config_set(cfg, "s", "k1", "2", &err), LOOM_EINVAL);
	expect(err.text, "loom_config_set: error: more than 16384 values in one configuration");
	loom_config_destroy(cfg);
	loom__text_free(&t);
	/* Text without end. */
	cfg = make();
	char *large = calloc(1, (1 << 20) + 2);
	memset(large, '\n', (1 << 20) + 1);
	CU_ASSERT_EQUAL(loom_config_load_text(cfg, "t.ini", large, &err), LOOM_EINVAL);
	expect(err.text, "t.ini: error: larger than the limit of 1048576 bytes");
	large[1 << 20] = 0;
	CU_ASSERT_EQUAL(loom_config_load_text(cfg, "t.ini", large, &err), 0);
	free(large);
	loom_config_destroy(cfg);
}

/* ---- mistakes ------------------------------------------------------------------------------- */

static void test_diag(void)
{
	struct loom__diag diag = {0};
	loom__diag_add(&diag, 0, NULL, 0, 0, "one %d", 1);
	loom__diag_add(&diag, 1, "f", 0, 0, "two");
	loom__diag_add(&diag, 0, "f", 3, 0, "three");
	loom__diag_add(&diag, 0, "f\n", 3, 4, "a\033[1m\xff\xc3\xa9\x7f");
	CU_ASSERT_EQUAL(diag.errors, 3);
	CU_ASSERT_EQUAL(diag.warnings, 1);
	expect(said(&diag), "error: one 1\nf: warning: two\nf:3: error: three\n"
			    "f?:3:4: error: a?[1m?\xc3\xa9?\n");
	for (int i = 0; i < 2; i++)
		loom__diag_add(&diag, 0, "f", 1, 2, "the same");
	loom__diag_add(&diag, 1, "f", 1, 2, "the same");
	CU_ASSERT_EQUAL(diag.errors, 1);
	expect(said(&diag), "f:1:2: error: the same\nf:1:2: warning: the same\n");
	for (int i = 0; i < 25; i++)
		loom__diag_add(&diag, 1, NULL, 0, 0, "w%d", i);
	for (int i = 0; i < 19; i++)
		loom__diag_add(&diag, 0, NULL, 0, 0, "e%d", i);
	CU_ASSERT_EQUAL(diag.count, LOOM__DIAG_MOST);
	CU_ASSERT_EQUAL(diag.errors + diag.warnings, 44);
	CU_ASSERT_STRING_EQUAL(diag.list[0].text, "w0");
	CU_ASSERT_STRING_EQUAL(diag.list[1].text, "e0");
	loom__diag_add(&diag, 0, NULL, 0, 0, "e19");
	loom__diag_add(&diag, 0, NULL, 0, 0, "e20");
	CU_ASSERT_STRING_EQUAL(diag.list[0].text, "e0");
	CU_ASSERT_STRING_EQUAL(diag.list[19].text, "e19");
	CU_ASSERT_PTR_NOT_NULL(strstr(said(&diag), "error: e19\n26 more not shown\n"));
}

/* The public calls word all mistakes in one error and keep warnings for later. */
static void test_public(void)
{
	struct loom_config *cfg = make();
	struct loom__diag diag = {0};
	struct loom_error err = {0};
	CU_ASSERT_EQUAL(loom_config_load_text(cfg, "t.ini", "a\n[s]\nb\nk = 1;2\n", &err),
			LOOM_EINVAL);
	CU_ASSERT_EQUAL(err.code, LOOM_EINVAL);
	expect(err.text,
	       "t.ini:1:1: error: expected [section], key = value, or a comment after ';'\n"
	       "t.ini:3:1: error: expected [section], key = value, or a comment after ';'\n"
	       "t.ini:4:6: warning: value cut at ';'; quote it, or put a blank before a comment");
	loom_config_destroy(cfg);
	cfg = make();
	CU_ASSERT_EQUAL(loom_config_load_text(cfg, "t.ini", "[x-s]\nk = 1;2\n", NULL), 0);
	CU_ASSERT_EQUAL(loom__config_unknown(cfg, &diag), 0);
	expect(said(&diag), "t.ini:2:6: warning: value cut at ';'; quote it, or put a blank before "
			    "a comment\n");
	CU_ASSERT_EQUAL(loom__config_unknown(cfg, &diag), 0);
	expect(said(&diag), "");
	CU_ASSERT_EQUAL(loom_config_set(cfg, "a.b", "k", " v ", &err), 0);
	expect(in_force(cfg, "a.b", "k"), " v  loom_config_set:0:0:0 api");
	CU_ASSERT_EQUAL(loom_config_set(cfg, "a:b", "k", "v", &err), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom_config_set(cfg, "a", "k.k", "v", &err), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom_config_set(cfg, "a", "k", "v\n[b]", &err), LOOM_EINVAL);
	expect(err.text, "loom_config_set: error: a control character");
	CU_ASSERT_EQUAL(loom_config_load(cfg, "/nowhere", NULL), LOOM_EINVAL);
	loom_config_destroy(cfg);
	loom_config_destroy(NULL);
}

/* ---- files ---------------------------------------------------------------------------------- */

static void test_files(void)
{
	static const struct {
		const char *path, *want;
	} rows[] = {
	    {"bench.in", "bench.in: error: cannot read 'bench.in': No such file or directory; did "
			 "you mean 'bench.ini'?\n"},
	    {"sub/deap.ini", "sub/deap.ini: error: cannot read 'sub/deap.ini': No such file or "
			     "directory; did you mean 'sub/deep.ini'?\n"},
	    {"quite_else", "quite_else: error: cannot read 'quite_else': No such file or "
			   "directory\n"},
	    {"no/where", "no/where: error: cannot read 'no/where': No such file or directory\n"},
	    {"sub", "sub: error: 'sub' is a folder, not a file\n"},
	    {"/dev/null", "/dev/null: error: '/dev/null' is not a regular file\n"},
	    {"bench.ini", ""},
	};
	enter_folder();
	file("bench.ini", "[s]\nk = 1\n");
	CU_ASSERT_EQUAL(mkdir("sub", 0700), 0);
	file("sub/deep.ini", "");
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		struct loom_config *cfg = make();
		struct loom__diag diag = {0};
		CU_ASSERT_EQUAL(loom__config_read(cfg, rows[i].path, &diag),
				rows[i].want[0] ? LOOM_EINVAL : 0);
		expect(said(&diag), rows[i].want);
		loom_config_destroy(cfg);
	}
	leave_folder();
}

static void test_include(void)
{
	struct loom_config *cfg = make();
	struct loom__diag diag = {0};
	enter_folder();
	CU_ASSERT_EQUAL(mkdir("sub", 0700), 0);
	file("top.ini", "[s]\na = top\n[gpuloom]\ninclude = sub/one.ini\ninclude = 'two.ini'\n");
	file("sub/one.ini", "include = ../three.ini\n[s]\na = one\nb = one\nc = one\n");
	file("two.ini", "[s]\nb = two\n");
	file("three.ini", "[s]\nc = three\nd = three\n");
	CU_ASSERT_EQUAL(loom__config_read(cfg, "top.ini", &diag), 0);
	expect(said(&diag), "");
	expect(in_force(cfg, "s", "a"), "top top.ini:2:1:5 file");
	expect(in_force(cfg, "s", "b"), "two two.ini:2:1:5 file");
	expect(in_force(cfg, "s", "c"), "one sub/one.ini:5:1:5 file");
	expect(in_force(cfg, "s", "d"), "three sub/../three.ini:3:1:5 file");
	expect(in_force(cfg, "gpuloom", "include"), "-");
	const struct loom__entry *a = loom__config_get(cfg, "s", "a");
	CU_ASSERT_PTR_NOT_NULL_FATAL(a->was);
	CU_ASSERT_STRING_EQUAL(a->was->file, "sub/one.ini");
	CU_ASSERT_PTR_NULL(a->was->was);
	loom_config_destroy(cfg);
	leave_folder();
}

static void test_include_mistakes(void)
{
	static const struct {
		const char *path, *want;
	} rows[] = {
	    {"loop.ini", "loop2.ini:2:11: error: 'loop.ini' includes itself, directly or through "
			 "others\n"},
	    {"self.ini", "self.ini:1:11: error: './self.ini' includes itself, directly or "
			 "through others\n"},
	    {"gone.ini", "gone.ini:1:13: error: cannot read 'self.in': No such file or directory; "
			 "did you mean 'self.ini'?\n"},
	    {"none.ini", "none.ini:1:10: error: include needs the name of a file\n"},
	    {"bad.ini", "junk.ini:1:1: error: expected [section], key = value, or a comment after "
			"';'\n"},
	    {"d0.ini", "d7.ini:1:11: error: more than 8 files inside each other\n"},
	    {"d1.ini", ""},
	    {"wide.ini", "wide.ini:64:11: error: more than 64 files in one configuration\n"},
	};
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
	struct loom__text wide = {0};
	for (int i = 0; i < 64; i++)
		loom__text_add(&wide, "include = d8.ini\n");
	file("wide.ini", wide.at);
	loom__text_free(&wide);
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		struct loom_config *cfg = make();
		struct loom__diag diag = {0};
		CU_ASSERT_EQUAL(loom__config_read(cfg, rows[i].path, &diag),
				rows[i].want[0] ? LOOM_EINVAL : 0);
		expect(said(&diag), rows[i].want);
		loom_config_destroy(cfg);
	}
	leave_folder();
}

/* ---- where values come from ----------------------------------------------------------------- */

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
    LOOM_OPT(struct options, name, LOOM_OPT_STR, "anna", "who"),
    LOOM_OPT(struct options, victim, LOOM_OPT_ENUM, "random", "from whom", .choices = victims),
    LOOM_OPT(struct options, flag, LOOM_OPT_BOOL, "on", "whether"),
    {0},
};
static const char *const one_section[] = {"s"};

static void test_precedence(void)
{
	char *environment[] = {"GPULOOM_S__COUNT=3", NULL};
	struct loom_config *cfg = make();
	struct loom__diag diag = {0};
	struct loom_error err;
	/* In the opposite order of what they are worth. */
	CU_ASSERT_EQUAL(loom_config_set(cfg, "s", "count", "5", &err), 0);
	CU_ASSERT_EQUAL(loom__config_set_text(cfg, "s.count=4", LOOM_FROM_COMMAND_LINE, &diag), 0);
	CU_ASSERT_EQUAL(loom__config_read_environment(cfg, environment, &diag), 0);
	CU_ASSERT_EQUAL(read_string(cfg, "[s]\ncount = 1\n", &diag), 0);
	CU_ASSERT_EQUAL(read_string(cfg, "\n[s]\ncount = 2\n", &diag), 0);
	CU_ASSERT_EQUAL(loom__config_declare(cfg, "s", rows_all, "s"), 0);
	const struct loom__entry *e = loom__config_get(cfg, "s", "count");
	static const char *const files[] = {"loom_config_set", "--set s.count=4",
					    "GPULOOM_S__COUNT", "t.ini", "t.ini"};
	for (int i = 0; i < 5; i++, e = e->was) {
		CU_ASSERT_PTR_NOT_NULL_FATAL(e);
		CU_ASSERT_EQUAL(atoi(e->value), 5 - i);
		CU_ASSERT_STRING_EQUAL(e->file, files[i]);
	}
	CU_ASSERT_PTR_NULL(e);
	/* Of the same source the later wins. */
	CU_ASSERT_EQUAL(loom_config_set(cfg, "s", "count", "6", &err), 0);
	expect(in_force(cfg, "s", "count"), "6 loom_config_set:0:0:0 api");
	CU_ASSERT_EQUAL(loom__config_unknown(cfg, &diag), 0);
	expect(said(&diag), "");
	loom_config_destroy(cfg);
}

static void test_set(void)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
	    {"a.b.c=v", ""},
	    {" a.b . c = v.w=x ", ""},
	    {"a.b", "--set a.b: error: expected section.key=value\n"},
	    {"ab=c.d", "--set ab=c.d: error: expected section.key=value\n"},
	    {"", "--set : error: expected section.key=value\n"},
	    {".k=v", "--set .k=v: error: a name is missing\n"},
	    {"s.=v", "--set s.=v: error: a name is missing\n"},
	    {"s.k k=v", "--set s.k k=v: error: the name of a key is made of letters, digits, "
			"'_' and '-'\n"},
	    {"a:b.k=v", "--set a:b.k=v: error: the name of a section is made of letters, digits, "
			"'_', '-' and single dots between them\n"},
	    {"s.k=\xff", "--set s.k=?: error: this is not UTF-8 text\n"},
	    {"gpuloom.include=x", "--set gpuloom.include=x: error: include works in files "
				  "alone; name another file instead\n"},
	};
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		struct loom_config *cfg = make();
		struct loom__diag diag = {0};
		CU_ASSERT_EQUAL(
		    loom__config_set_text(cfg, rows[i].text, LOOM_FROM_COMMAND_LINE, &diag),
		    rows[i].want[0] ? LOOM_EINVAL : 0);
		expect(said(&diag), rows[i].want);
		if (i == 0)
			expect(in_force(cfg, "a.b", "c"), "v --set a.b.c=v:0:0:0 command line");
		if (i == 1)
			expect(in_force(cfg, "a.b", "c"),
			       "v.w=x --set  a.b . c = v.w=x :0:0:0 command line");
		loom_config_destroy(cfg);
	}
	char longest[4200] = "s.k=";
	memset(longest + 4, 'x', 4097);
	struct loom_config *cfg = make();
	struct loom__diag diag = {0};
	CU_ASSERT_EQUAL(loom__config_set_text(cfg, longest, LOOM_FROM_API, &diag), LOOM_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(said(&diag), "error: the value is too long: at most 4096"));
	longest[4 + 4096] = 0;
	CU_ASSERT_EQUAL(loom__config_set_text(cfg, longest, LOOM_FROM_API, &diag), 0);
	loom_config_destroy(cfg);
}

/* A second table of variables adds to the first. */
static void test_environment_twice(void)
{
	char *first[] = {"GPULOOM_S__COUNT=3", NULL}, *second[] = {"GPULOOM_S__NAME=x", NULL};
	struct loom_config *cfg = make();
	struct loom__diag diag = {0};
	CU_ASSERT_EQUAL(loom__config_read_environment(cfg, first, &diag), 0);
	CU_ASSERT_EQUAL(loom__config_read_environment(cfg, second, &diag), 0);
	CU_ASSERT_EQUAL(loom__config_declare(cfg, "s", rows_all, ""), 0);
	expect(in_force(cfg, "s", "count"), "3 GPULOOM_S__COUNT:0:0:0 environment");
	expect(in_force(cfg, "s", "name"), "x GPULOOM_S__NAME:0:0:0 environment");
	loom_config_destroy(cfg);
}

static void test_environment(void)
{
	char *environment[] = {
	    "PATH=/bin",
	    "GPULOOM_SCHEDULER_MGWS__COUNT= 3 ",
	    "GPULOOM_A_B__NAME=x",
	    "GPULOOM_PLUGIN_PATH=/p",
	    "GPULOOM_LOG=debug",
	    "GPULOOM_RUN__SAMPELS=3",
	    "GPULOOM_LOGG=debug",
	    "GPULOOM_NOTHING_LIKE_IT=1",
	    "GPULOOM_RUN__NAME=\xff",
	    "GPULOOM",
	    NULL,
	};
	static const struct loom_opt samples[] = {
	    LOOM_OPT(struct options, count, LOOM_OPT_U32, "1", "h"), {0}};
	struct loom_opt renamed[] = {samples[0], {0}};
	renamed[0].name = "samples";
	/* Declared before or after, it makes no difference. */
	for (int late = 0; late < 2; late++) {
		struct loom_config *cfg = make();
		struct loom__diag diag = {0};
		if (late)
			CU_ASSERT_EQUAL(loom__config_read_environment(cfg, environment, &diag),
					LOOM_EINVAL);
		CU_ASSERT_EQUAL(loom__config_declare(cfg, "scheduler.mgws", samples, ""), 0);
		CU_ASSERT_EQUAL(loom__config_declare(cfg, "run", renamed, ""), 0);
		CU_ASSERT_EQUAL(loom__config_declare(cfg, "a.b", samples, ""), 0);
		CU_ASSERT_EQUAL(loom__config_declare(cfg, "a-b", rows_all, ""), 0);
		if (!late)
			CU_ASSERT_EQUAL(loom__config_read_environment(cfg, environment, &diag),
					LOOM_EINVAL);
		expect(in_force(cfg, "scheduler.mgws", "count"),
		       "3 GPULOOM_SCHEDULER_MGWS__COUNT:0:0:0 environment");
		/* [a.b] has no such key: it must be the other one. */
		expect(in_force(cfg, "a.b", "name"), "-");
		expect(in_force(cfg, "a-b", "name"), "x GPULOOM_A_B__NAME:0:0:0 environment");
		CU_ASSERT_EQUAL(loom__config_unknown(cfg, &diag), 0);
		expect(said(&diag),
		       "GPULOOM_RUN__NAME: error: this is not UTF-8 text\n"
		       "GPULOOM_RUN__SAMPELS: warning: unknown variable; did you mean "
		       "'GPULOOM_RUN__SAMPLES'?\n"
		       "GPULOOM_LOGG: warning: unknown variable; did you mean 'GPULOOM_LOG'?\n"
		       "GPULOOM_NOTHING_LIKE_IT: warning: unknown variable\n");
		loom_config_destroy(cfg);
	}
}

/* ---- values --------------------------------------------------------------------------------- */

static void test_values(void)
{
	enum {
		U32 = LOOM_OPT_U32,
		U64 = LOOM_OPT_U64,
		I64 = LOOM_OPT_I64,
		SIZE = LOOM_OPT_SIZE,
		TIME = LOOM_OPT_TIME,
		F64 = LOOM_OPT_F64,
		SHARE = LOOM_OPT_SHARE,
		BOOL = LOOM_OPT_BOOL,
		ENUM = LOOM_OPT_ENUM,
		CPUS = LOOM_OPT_CPUS
	};
	static const struct {
		uint8_t type;
		const char *text;
		double want;
		const char *refusal; /* then `want` means nothing */
		double min, max;
	} rows[] = {
#define IS(type_, text_, want_) {.type = type_, .text = text_, .want = want_}
#define IS_IN(type_, text_, want_, min_, max_)                                                     \
	{                                                                                          \
		.type = type_, .text = text_, .want = want_, .min = min_, .max = max_              \
	}
#define NOT(type_, text_, why)                                                                     \
	{                                                                                          \
		.type = type_, .text = text_, .refusal = why                                       \
	}
#define NOT_IN(type_, text_, min_, max_, why)                                                      \
	{                                                                                          \
		.type = type_, .text = text_, .refusal = why, .min = min_, .max = max_             \
	}
	    IS(U32, "0", 0),
	    IS(U32, "4294967295", 4294967295.0),
	    IS(U32, "0x10", 16),
	    IS(U32, "0XfF", 255),
	    NOT(U32, "4294967296", "'4294967296' is too large: the most is 4294967295"),
	    NOT(U32, "99999999999999999999999", "'99999999999999999999999' is too large"),
	    NOT(U32, "", "'' is not a valid integer"),
	    NOT(U32, "abc", "'abc' is not a valid integer"),
	    NOT(U32, "64k5", "'64k5' is not a valid integer: 'k5' is left over"),
	    NOT(U32, "1_000", "'1_000' is not a valid integer: '_000' is left over"),
	    NOT(U32, "1.5", "'1.5' is not a valid integer: '.5' is left over"),
	    NOT(U32, "010",
		"'010' is not a valid integer: a 0 in front would mean octal "
		"elsewhere; write 10"),
	    NOT(U32, "000",
		"'000' is not a valid integer: a 0 in front would mean octal "
		"elsewhere; write 0"),
	    NOT(U32, "0x", "'0x' is not a valid integer: 'x' is left over"),
	    NOT(U32, "-1", "'-1' is not a valid integer: it may not be negative"),
	    NOT(U32, "+1", "'+1' is not a valid integer"),
	    NOT(U32, " 1", "' 1' is not a valid integer"),
	    NOT_IN(U32, "65", 1, 64, "'65' is out of range: from 1 to 64"),
	    NOT_IN(U32, "0", 1, 64, "'0' is out of range: from 1 to 64"),
	    IS_IN(U32, "64", 64, 1, 64),
	    IS(U64, "18446744073709551615", 18446744073709551615.0),
	    NOT(U64, "18446744073709551616", "'18446744073709551616' is too large"),
	    IS(I64, "-9223372036854775808", -9223372036854775808.0),
	    IS(I64, "9223372036854775807", 9223372036854775807.0),
	    NOT(I64, "-9223372036854775809",
		"'-9223372036854775809' is too small: the limit is "
		"-9223372036854775808"),
	    NOT(I64, "9223372036854775808",
		"'9223372036854775808' is too large: the limit is 9223372036854775807"),
	    NOT(I64, "-1x", "'-1x' is not a valid integer: 'x' is left over"),
	    NOT(I64, "--1", "'--1' is not a valid integer"),
	    NOT_IN(I64, "-6", -5, 5, "'-6' is out of range: from -5 to 5"),
	    IS(SIZE, "4096", 4096),
	    IS(SIZE, "64KiB", 65536),
	    IS(SIZE, "64 kib", 65536),
	    IS(SIZE, "64KB", 64000),
	    IS(SIZE, "64k", 65536),
	    IS(SIZE, "64K", 65536),
	    IS(SIZE, "1M", 1048576),
	    IS(SIZE, "1.5GiB", 1610612736),
	    IS(SIZE, "2T", 2199023255552),
	    IS(SIZE, "3TB", 3e12),
	    IS(SIZE, "0x10", 16),
	    NOT(SIZE, "64k5",
		"'64k5' is not a valid size, as in 64KiB: unknown unit 'k5'; there are "
		"B, KiB, MiB, GiB, TiB (or K, M, G, T) and KB, MB, GB, TB of 1000"),
	    NOT(SIZE, "0.1KiB",
		"'0.1KiB' is not a valid size, as in 64KiB: it is not a whole number "
		"of bytes"),
	    NOT(SIZE, "16777216T", "'16777216T' is too large"),
	    IS(SIZE, "16777215.999999TB", 16777215.999999e12),
	    NOT_IN(SIZE, "2MiB", 65536, 1048576, "'2MiB' is out of range: from 64KiB to 1MiB"),
	    NOT_IN(SIZE, "1001", 0, 1000, "'1001' is out of range: from 0B to 1KB"),
	    IS(TIME, "0", 0),
	    IS(TIME, "10ns", 10),
	    IS(TIME, "10us", 10000),
	    IS(TIME, "1.5ms", 1500000),
	    IS(TIME, "2 s", 2e9),
	    IS(TIME, "1m", 60e9),
	    IS(TIME, "1min", 60e9),
	    IS(TIME, "2h", 7200e9),
	    NOT(TIME, "10", "'10' has no unit; give one, as in 10us"),
	    NOT(TIME, "0.5", "'0.5' has no unit; give one, as in 10us"),
	    NOT(TIME, "0.5ns",
		"'0.5ns' is not a valid time, as in 10us: it is not a whole number of "
		"ns"),
	    NOT(TIME, "10sec",
		"'10sec' is not a valid time, as in 10us: unknown unit 'sec'; there "
		"are ns, us, ms, s, m (min), h"),
	    NOT_IN(TIME, "2s", 1e4, 1e9, "'2s' is out of range: from 10us to 1s"),
	    NOT(TIME, "0.0000001s",
		"'0.0000001s' is not a valid time, as in 10us: unknown unit '1s'; "
		"there are ns, us, ms, s, m (min), h"),
	    IS(F64, "-1.5e3", -1500),
	    NOT(F64, "1,5", "'1,5' is not a valid number: ',5' is left over"),
	    NOT(F64, "nan", "'nan' is not a valid number"),
	    NOT(F64, "1e999", "'1e999' is not a valid number"),
	    NOT(F64, "5%", "'5%' is not a valid number: '%' is left over"),
	    NOT_IN(F64, "3", 0.5, 2.5, "'3' is out of range: from 0.5 to 2.5"),
	    IS(SHARE, "5%", 0.05),
	    IS(SHARE, "5 %", 0.05),
	    IS(SHARE, "0.05", 0.05),
	    IS(SHARE, "1", 1),
	    IS(SHARE, "100%", 1),
	    NOT(SHARE, "5", "'5' is out of range: from 0% to 100%; did you mean 5%?"),
	    NOT(SHARE, "101%", "'101%' is out of range: from 0% to 100%"),
	    NOT(SHARE, "-1%", "'-1%' is out of range: from 0% to 100%"),
	    IS_IN(SHARE, "150%", 1.5, 0, 2),
	    NOT(SHARE, "5%%", "'5%%' is not a valid share, as in 5% or 0.05: '%' is left over"),
	    IS(BOOL, "yes", 1),
	    IS(BOOL, "No", 0),
	    IS(BOOL, "on", 1),
	    IS(BOOL, "off", 0),
	    IS(BOOL, "TRUE", 1),
	    IS(BOOL, "false", 0),
	    IS(BOOL, "1", 1),
	    IS(BOOL, "0", 0),
	    NOT(BOOL, "Tango", "'Tango' is neither yes nor no (nor on, off, true, false, 1, 0)"),
	    NOT(BOOL, "y", "'y' is neither yes nor no (nor on, off, true, false, 1, 0)"),
	    IS(ENUM, "biased", 0),
	    IS(ENUM, "Random", 1),
	    NOT(ENUM, "ramdom", "'ramdom' is none of biased, random; did you mean 'random'?"),
	    NOT(ENUM, "x", "'x' is none of biased, random"),
	    IS(CPUS, "", 0),
	    IS(CPUS, "0-3,8", 0),
	    IS(CPUS, "8191", 0),
	    NOT(CPUS, "0-3,2",
		"'0-3,2' is not a valid list of cores, as in 0-3,8: core 2 stands "
		"twice"),
	    NOT(CPUS, "3-0", "'3-0' is not a valid list of cores, as in 0-3,8: 3-0 runs backwards"),
	    NOT(CPUS, "0-8192",
		"'0-8192' is not a valid list of cores, as in 0-3,8: there is no core "
		"8192"),
	    NOT(CPUS, "1,", "'1,' is not a valid list of cores, as in 0-3,8"),
	    NOT(CPUS, "1-", "'1-' is not a valid list of cores, as in 0-3,8"),
	    NOT(CPUS, "1 2", "'1 2' is not a valid list of cores, as in 0-3,8: ' 2' is left over"),
	};
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		struct loom_opt row = {.name = "o",
				       .type = rows[i].type,
				       .min = rows[i].min,
				       .max = rows[i].max,
				       .choices = victims};
		union loom__value v;
		struct loom_error err = {0};
		memset(&v, 0x5a, sizeof(v));
		int code = loom__value_parse(&row, rows[i].text, &v, &err);
		if (rows[i].refusal) {
			CU_ASSERT_EQUAL(code, LOOM_EINVAL);
			expect(err.text, rows[i].refusal);
			CU_ASSERT_EQUAL(v.u64, 0x5a5a5a5a5a5a5a5a); /* untouched */
			continue;
		}
		expect(code ? err.text : "", "");
		double got = rows[i].type == BOOL                           ? v.u8
			     : rows[i].type == U32 || rows[i].type == ENUM  ? v.u32
			     : rows[i].type == I64                          ? (double)v.i64
			     : rows[i].type == F64 || rows[i].type == SHARE ? v.f64
			     : rows[i].type == CPUS                         ? 0
									    : (double)v.u64;
		CU_ASSERT_EQUAL(got, rows[i].want);
		if (rows[i].type == CPUS)
			CU_ASSERT_PTR_EQUAL(v.text, rows[i].text);
	}
}

/* A value of any length leaves room for what is wrong with it. */
static void test_values_long(void)
{
	const struct loom_opt row = {.name = "o", .type = LOOM_OPT_U32};
	struct loom_error err;
	char text[4000];
	uint32_t v;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	text[0] = '1';
	CU_ASSERT_EQUAL(loom__value_parse(&row, text, &v, &err), LOOM_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is left over"));
	const struct loom_opt none = {.name = "o", .type = 99};
	CU_ASSERT_EQUAL(loom__value_parse(&none, "1", &v, &err), LOOM_EINTERNAL);
}

static void test_rows_check(void)
{
	static const char *const nothing[] = {NULL};
	static const struct loom_opt good = {"a", "1", "h", NULL, 0, 0, 4, 4, LOOM_OPT_U32, 0};
	struct {
		struct loom_opt row;
		const char *want;
	} rows[16];
	size_t n = 0;
#define ROW(text, ...)                                                                             \
	do {                                                                                       \
		struct loom_opt r = good;                                                          \
		__VA_ARGS__;                                                                       \
		rows[n].row = r;                                                                   \
		rows[n++].want = text;                                                             \
	} while (0)
	ROW("option name 'A' is not made of a-z, 0-9 and '_'", r.name = "A");
	ROW("option name '' is not made of a-z, 0-9 and '_'", r.name = "");
	ROW("option name '1a' is not made of a-z, 0-9 and '_'", r.name = "1a");
	ROW("option name 'include' is taken by the configuration itself", r.name = "include");
	ROW("option 'a' has no help", r.help = "");
	ROW("option 'a' has the unknown type 99", r.type = 99);
	ROW("option 'a' has a field of 8 bytes; its type needs 4", r.size = 8);
	ROW("option 'a' lies outside of the option struct", r.offset = 5);
	ROW("option 'a' lies outside of the option struct", r.offset = UINT32_MAX);
	ROW("option 'a' has no choices", r.type = LOOM_OPT_ENUM);
	ROW("option 'a' has no choices", r.type = LOOM_OPT_ENUM, r.choices = nothing);
	ROW("option 'a' has a minimum above its maximum; give both", r.min = 1);
	ROW("option 'a' is required and has a default", r.flags = LOOM_OPT_REQUIRED);
	ROW("option 'a' has no default and is not required", r.dflt = NULL);
	ROW("the default of option 'a' is wrong: 'x' is not a valid integer", r.dflt = "x");
	ROW("the default of option 'a' is wrong: '1' is out of range: from 2 to 3", r.min = 2,
	    r.max = 3);
#undef ROW
	struct loom_error err;
	for (size_t i = 0; i < n; i++) {
		const struct loom_opt table[] = {rows[i].row, {0}};
		CU_ASSERT_EQUAL(loom__rows_check(table, 8, &err), LOOM_EPLUGIN);
		expect(err.text, rows[i].want);
	}
	const struct loom_opt twice[] = {good, good, {0}};
	CU_ASSERT_EQUAL(loom__rows_check(twice, 8, &err), LOOM_EPLUGIN);
	expect(err.text, "option 'a' stands twice in its table");
	CU_ASSERT_EQUAL(loom__rows_check(rows_all, sizeof(struct options), &err), 0);
	CU_ASSERT_EQUAL(loom__rows_check(NULL, 0, &err), 0);
}

/* ---- schema --------------------------------------------------------------------------------- */

static void test_fill(void)
{
	static const char *const two_sections[] = {"s", "s.t"};
	struct loom_config *cfg = make();
	struct loom__diag diag = {0};
	struct options o;
	memset(&o, 0xff, sizeof(o));
	CU_ASSERT_EQUAL(loom__config_fill(cfg, one_section, 1, rows_all, &o, sizeof(o), &diag), 0);
	CU_ASSERT(o.count == 7 && o.size == 65536 && o.time == 10000 && o.share == 0.05);
	CU_ASSERT(o.victim == 1 && o.flag == 1);
	CU_ASSERT_STRING_EQUAL(o.path, "");
	CU_ASSERT_STRING_EQUAL(o.cores, "0-3,8");
	CU_ASSERT_STRING_EQUAL(o.name, "anna");
	CU_ASSERT_EQUAL(
	    read_string(cfg, "[s]\ncount = 1\nsize = 1\n[s.t]\nsize = 2\nname = bob\n", &diag), 0);
	CU_ASSERT_EQUAL(loom__config_fill(cfg, two_sections, 2, rows_all, &o, sizeof(o), &diag), 0);
	CU_ASSERT(o.count == 1 && o.size == 2);
	CU_ASSERT_STRING_EQUAL(o.name, "bob");
	expect(said(&diag), "");
	loom_config_destroy(cfg);
}

/* Every mistake has its place, and leaves the default. */
static void test_fill_mistakes(void)
{
	char *environment[] = {"GPULOOM_S__TIME=5", NULL};
	struct loom_config *cfg = make();
	struct loom__diag diag = {0};
	struct options o;
	CU_ASSERT_EQUAL(loom__config_declare(cfg, "s", rows_all, ""), 0);
	CU_ASSERT_EQUAL(read_string(cfg, "[s]\nCount =  65\n\tflag = \"maybe\"\n", &diag), 0);
	CU_ASSERT_EQUAL(loom__config_read_environment(cfg, environment, &diag), 0);
	CU_ASSERT_EQUAL(loom__config_set_text(cfg, "s.size=2q", LOOM_FROM_COMMAND_LINE, &diag), 0);
	CU_ASSERT_EQUAL(loom__config_fill(cfg, one_section, 1, rows_all, &o, sizeof(o), &diag),
			LOOM_EINVAL);
	expect(
	    said(&diag),
	    "t.ini:2:10: error: Count in [s]: '65' is out of range: from 1 to 64\n"
	    "--set s.size=2q: error: size in [s]: '2q' is not a valid size, as in 64KiB: unknown "
	    "unit 'q'; there are B, KiB, MiB, GiB, TiB (or K, M, G, T) and KB, MB, GB, TB of "
	    "1000\n"
	    "GPULOOM_S__TIME: error: time in [s]: '5' has no unit; give one, as in 10us\n"
	    "t.ini:3:9: error: flag in [s]: 'maybe' is neither yes nor no (nor on, off, true, "
	    "false, 1, 0)\n");
	CU_ASSERT(o.count == 7 && o.size == 65536 && o.time == 10000 && o.flag == 1);
	/* A table that was not checked does no harm. */
	CU_ASSERT_EQUAL(loom__config_fill(cfg, one_section, 1, rows_all, &o, 8, &diag),
			LOOM_EPLUGIN);
	expect(said(&diag), "error: option 'count' lies outside of the option struct\n");
	loom_config_destroy(cfg);
}

static void test_required(void)
{
	static const struct loom_opt rows[] = {
	    LOOM_OPT(struct options, name, LOOM_OPT_STR, NULL, "who does it",
		     .flags = LOOM_OPT_REQUIRED),
	    LOOM_OPT(struct options, count, LOOM_OPT_U32, NULL, "how many",
		     .flags = LOOM_OPT_REQUIRED),
	    {0},
	};
	static const struct {
		const char *text, *want;
	} cases[] = {
	    {"", "error: [s] needs 'name': who does it\nerror: [s] needs 'count': how many\n"},
	    {"[t]\n[s]\nname =\n", "t.ini:2:1: error: [s] needs 'name': who does it\n"
				   "t.ini:2:1: error: [s] needs 'count': how many\n"},
	    {"[s]\nname = x\ncount =\n",
	     "t.ini:3:8: error: count in [s]: '' is not a valid integer\n"},
	    {"[s]\nname = x\ncount = 2\n", ""},
	};
	for (size_t i = 0; i < LOOM__COUNT(cases); i++) {
		struct loom_config *cfg = make();
		struct loom__diag diag = {0};
		struct options o;
		CU_ASSERT_EQUAL(read_string(cfg, cases[i].text, &diag), 0);
		CU_ASSERT_EQUAL(loom__config_fill(cfg, one_section, 1, rows, &o, sizeof(o), &diag),
				cases[i].want[0] ? LOOM_EINVAL : 0);
		expect(said(&diag), cases[i].want);
		CU_ASSERT_PTR_NOT_NULL(o.name);
		loom_config_destroy(cfg);
	}
}

static void test_deprecated(void)
{
	static const struct loom_opt rows[] = {
	    LOOM_OPT(struct options, count, LOOM_OPT_U32, "1", "use 'size'",
		     .flags = LOOM_OPT_DEPRECATED),
	    {0},
	};
	struct loom_config *cfg = make();
	struct loom__diag diag = {0};
	struct options o;
	CU_ASSERT_EQUAL(loom__config_fill(cfg, one_section, 1, rows, &o, sizeof(o), &diag), 0);
	expect(said(&diag), "");
	CU_ASSERT_EQUAL(read_string(cfg, "[s]\ncount = 2\n", &diag), 0);
	CU_ASSERT_EQUAL(loom__config_fill(cfg, one_section, 1, rows, &o, sizeof(o), &diag), 0);
	expect(said(&diag), "t.ini:2:1: warning: 'count' in [s] is deprecated: use 'size'\n");
	CU_ASSERT_EQUAL(o.count, 2);
	loom_config_destroy(cfg);
}

static void test_paths(void)
{
	static const struct {
		const char *file, *value, *want; /* %s of want: the folder */
	} rows[] = {
	    {"top.ini", "data", "%s/data"},
	    {"sub/a.ini", "data", "%s/sub/data"},
	    {"sub/a.ini", "../data", "%s/sub/../data"},
	    {"/etc/a.ini", "data", "/etc/data"},
	    {"sub/a.ini", "/data", "/data"},
	    {"sub/a.ini", "~/data", "%s/sub/~/data"},
	    {NULL, "data", "%s/data"},
	    {"sub/a.ini", "", ""},
	};
	enter_folder();
	char here[PATH_MAX];
	CU_ASSERT_PTR_NOT_NULL_FATAL(getcwd(here, sizeof(here)));
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		struct loom_config *cfg = make();
		struct loom__diag diag = {0};
		struct loom__text text = {0}, want = {0};
		struct options o;
		loom__text_add(&text, "[s]\npath = %s\n", rows[i].value);
		int code = rows[i].file ? loom_config_load_text(cfg, rows[i].file, text.at, NULL)
					: loom_config_set(cfg, "s", "path", rows[i].value, NULL);
		CU_ASSERT_EQUAL(code, 0);
		CU_ASSERT_EQUAL(
		    loom__config_fill(cfg, one_section, 1, rows_all, &o, sizeof(o), &diag), 0);
		const char *rest = rows[i].want;
		if (!strncmp(rest, "%s", 2)) {
			loom__text_add(&want, "%s", here);
			rest += 2;
		}
		loom__text_add(&want, "%s", rest);
		expect(o.path, want.at);
		loom__text_free(&text);
		loom__text_free(&want);
		loom_config_destroy(cfg);
	}
	leave_folder();
}

static void test_unknown(void)
{
	static const struct loom_opt limit[] = {
	    LOOM_OPT(struct options, count, LOOM_OPT_U32, "1", "h"), {0}};
	struct loom_opt throttle[] = {limit[0], limit[0], {0}};
	throttle[0].name = "limit";
	throttle[1].name = "twin";
	static const struct {
		const char *text, *want;
	} rows[] = {
	    {"[s]\ncount = 1\nx-note = 1\n[x-mine]\na = 1\n[X-Mine]\nb = 1\n", ""},
	    {"[s]\ncuont = 1\n", "t.ini:2:1: error: unknown key 'cuont' in [s]; did you mean "
				 "'count'?\n"},
	    {"[s]\nLimit = 1\n", "t.ini:2:1: error: unknown key 'Limit' in [s]; it belongs in "
				 "[qos.throttle]\n"},
	    {"[s]\ntwin = 1\n", "t.ini:2:1: error: unknown key 'twin' in [s] (see: gpuloom "
				"describe sched s)\n"},
	    {"[s]\nfoobar = 1\n", "t.ini:2:1: error: unknown key 'foobar' in [s] (see: gpuloom "
				  "describe sched s)\n"},
	    {"[empty]\nfoobar = 1\n", "t.ini:2:1: error: unknown key 'foobar' in [empty]\n"},
	    {"\n[qos.throtle]\na = 1\nb = 2\n[nothing]\n",
	     "t.ini:2:1: error: unknown section [qos.throtle]; did you mean [qos.throttle]?\n"
	     "t.ini:5:1: error: unknown section [nothing]\n"},
	};
	for (size_t i = 0; i <= LOOM__COUNT(rows); i++) {
		struct loom_config *cfg = make();
		struct loom__diag diag = {0};
		CU_ASSERT_EQUAL(loom__config_declare(cfg, "s", rows_all, "sched s"), 0);
		CU_ASSERT_EQUAL(loom__config_declare(cfg, "qos.throttle", throttle, NULL), 0);
		CU_ASSERT_EQUAL(loom__config_declare(cfg, "other", throttle + 1, NULL), 0);
		CU_ASSERT_EQUAL(loom__config_declare(cfg, "empty", NULL, NULL), 0);
		if (i < LOOM__COUNT(rows)) {
			CU_ASSERT_EQUAL(read_string(cfg, rows[i].text, &diag), 0);
			CU_ASSERT_EQUAL(loom__config_unknown(cfg, &diag),
					rows[i].want[0] ? LOOM_EINVAL : 0);
			expect(said(&diag), rows[i].want);
		} else {
			/* Overridden or not, each place is named. */
			loom_config_set(cfg, "sched", "a", "1", NULL);
			loom_config_set(cfg, "s", "foo_bar", "1", NULL);
			CU_ASSERT_EQUAL(read_string(cfg, "[s]\nfoo_bar = 2\n", &diag), 0);
			CU_ASSERT_EQUAL(loom__config_unknown(cfg, &diag), LOOM_EINVAL);
			expect(
			    said(&diag),
			    "loom_config_set: error: unknown section [sched]\n"
			    "loom_config_set: error: unknown key 'foo_bar' in [s] (see: gpuloom "
			    "describe sched s)\n"
			    "t.ini:2:1: error: unknown key 'foo_bar' in [s] (see: gpuloom describe "
			    "sched s)\n");
		}
		loom_config_destroy(cfg);
	}
}

/* What the plan asks about sections whose plug-in it has yet to find. */
static void test_sections(void)
{
	struct loom_config *cfg = make();
	struct loom__diag diag = {0};
	size_t n = 7;
	int line = 7;
	CU_ASSERT_PTR_NULL(loom__config_sections(cfg, &n));
	CU_ASSERT_EQUAL(n, 0);
	CU_ASSERT_EQUAL(read_string(cfg, "[B]\nk = 1\n[a]\n[b]\n[gone]\nk = 1\n", &diag), 0);
	loom_config_set(cfg, "c", "k", "1", NULL);
	char **names = loom__config_sections(cfg, &n);
	static const char *const want[] = {"b", "a", "gone", "c"};
	CU_ASSERT_EQUAL_FATAL(n, LOOM__COUNT(want));
	for (size_t i = 0; i < n; i++) {
		CU_ASSERT_STRING_EQUAL(names[i], want[i]);
		free(names[i]);
	}
	free(names);
	CU_ASSERT_STRING_EQUAL(loom__config_section_at(cfg, "A", &line), "t.ini");
	CU_ASSERT_EQUAL(line, 3);
	CU_ASSERT_STRING_EQUAL(loom__config_section_at(cfg, "c", &line), "loom_config_set");
	CU_ASSERT_EQUAL(line, 0);
	CU_ASSERT_PTR_NULL(loom__config_section_at(cfg, "none", &line));
	CU_ASSERT(!loom__config_declared(cfg, "b"));
	loom__config_declare(cfg, "b", rows_all, "");
	CU_ASSERT(loom__config_declared(cfg, "B"));
	loom__config_ignore(cfg, "B");
	loom__config_ignore(cfg, "gone");
	loom__config_ignore(cfg, "none");
	CU_ASSERT_EQUAL(loom__config_unknown(cfg, &diag), LOOM_EINVAL);
	expect(said(&diag), "t.ini:3:1: error: unknown section [a]\n"
			    "loom_config_set: error: unknown section [c]\n");
	loom_config_destroy(cfg);
}

static int say_nothing(const char *format, ...)
{
	(void)format;
	return 0;
}

/* The second opinion: a scanner that went wrong would be found out. */
static void test_cross_check(void)
{
	enum { NOTHING, CUT, LEFT_OUT, ASTRAY, BROKEN };
	static const struct {
		int fault;
		const char *want;
	} rows[] = {
	    {NOTHING, ""},
	    {CUT, "t.ini:2:5: error: internal error, please report: iniparser reads 'ab', "
		  "gpuloom reads 'a'\n"},
	    {LEFT_OUT, "t.ini: error: internal error, please report: iniparser finds 1 keys "
		       "more than gpuloom\n"},
	    {ASTRAY, "t.ini:2:5: error: internal error, please report: iniparser reads "
		     "'(nothing)', gpuloom reads 'ab'\n"},
	    {BROKEN, "t.ini: error: internal error, please report: iniparser refuses what "
		     "gpuloom accepts\n"},
	};
	iniparser_set_error_callback(say_nothing);
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		char text[] = "[s]\nk = ab\n";
		struct loom__items items = {0};
		struct loom__diag diag = {0};
		loom__scan("t.ini", text, strlen(text), &items, &diag);
		CU_ASSERT_EQUAL_FATAL(items.count, 2);
		items.at[1].value.n -= rows[i].fault == CUT;
		items.count -= rows[i].fault == LEFT_OUT;
		if (rows[i].fault == ASTRAY)
			items.at[1].section = items.at[1].key;
		if (rows[i].fault == BROKEN)
			*strchr(text, '=') = ':';
		CU_ASSERT_EQUAL(loom__cross_check("t.ini", text, strlen(text), &items, &diag),
				rows[i].want[0] ? LOOM_EINVAL : 0);
		expect(said(&diag), rows[i].want);
		free(items.at);
	}
	iniparser_set_error_callback(NULL);
}

/* Declaring a section again adds keys to it. */
static void test_declare_twice(void)
{
	struct loom_opt more[] = {rows_all[0], {0}};
	more[0].name = "more";
	struct loom_config *cfg = make();
	struct loom__diag diag = {0};
	CU_ASSERT_EQUAL(loom__config_declare(cfg, "s", rows_all, ""), 0);
	CU_ASSERT_EQUAL(loom__config_declare(cfg, "S", more, ""), 0);
	CU_ASSERT_EQUAL(read_string(cfg, "[s]\ncount = 1\nmore = 2\nmoer = 3\n", &diag), 0);
	CU_ASSERT_EQUAL(loom__config_unknown(cfg, &diag), LOOM_EINVAL);
	expect(said(&diag), "t.ini:4:1: error: unknown key 'moer' in [s]; did you mean 'more'?\n");
	loom_config_destroy(cfg);
}

static int list_effective(void *arg, const struct loom__effective *e)
{
	loom__text_add(arg, "%s.%s=%s|%s|%s%s\n", e->section, e->key, e->value, e->shown,
		       e->entry ? loom__source_name(e->entry->source) : "default",
		       e->row ? "" : " free");
	return 0;
}

static int stop_at_once(void *arg, const struct loom__effective *e)
{
	(void)e;
	++*(int *)arg;
	return 42;
}

static void test_each(void)
{
	static const char *const a[] = {"a"}, *const b[] = {"b", "b.c"};
	struct loom_config *cfg = make();
	struct loom__diag diag = {0};
	struct loom__text text = {0};
	struct options o;
	CU_ASSERT_EQUAL(loom__config_declare(cfg, "b", rows_all, ""), 0);
	CU_ASSERT_EQUAL(loom__config_declare(cfg, "b.c", rows_all, ""), 0);
	CU_ASSERT_EQUAL(loom__config_declare(cfg, "b.c", NULL, ""), 0);
	CU_ASSERT_EQUAL(
	    read_string(cfg, "[x-me]\nk = v\n[b]\nsize = 2k\nx-n = 1\n[a]\nflag = 0\n", &diag), 0);
	/* Filling again replaces what was recorded. */
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(loom__config_fill(cfg, a, 1, rows_all, &o, sizeof(o), &diag), 0);
		CU_ASSERT_EQUAL(loom__config_fill(cfg, b, 2, rows_all, &o, sizeof(o), &diag), 0);
		CU_ASSERT_EQUAL(loom_config_set(cfg, "b.c", "name", "eve", NULL), 0);
	}
	CU_ASSERT_EQUAL(loom__config_each(cfg, list_effective, &text), 0);
	expect(text.at, "b.c.count=7|7|default\n"
			"b.c.size=2048|2k|file\n"
			"b.c.time=10000|10us|default\n"
			"b.c.share=0.05|5%|default\n"
			"b.c.path=||default\n"
			"b.c.cores=0-3,8|0-3,8|default\n"
			"b.c.name=eve|eve|api\n"
			"b.c.victim=random|random|default\n"
			"b.c.flag=yes|on|default\n"
			"a.count=7|7|default\n"
			"a.size=65536|64KiB|default\n"
			"a.time=10000|10us|default\n"
			"a.share=0.05|5%|default\n"
			"a.path=||default\n"
			"a.cores=0-3,8|0-3,8|default\n"
			"a.name=anna|anna|default\n"
			"a.victim=random|random|default\n"
			"a.flag=no|0|file\n"
			"x-me.k=v|v|file free\n"
			"b.x-n=1|1|file free\n");
	int calls = 0;
	CU_ASSERT_EQUAL(loom__config_each(cfg, stop_at_once, &calls), 42);
	CU_ASSERT_EQUAL(calls, 1);
	loom__text_free(&text);
	loom__diag_free(&diag);
	loom_config_destroy(cfg);
}

/* ---- the process around us ------------------------------------------------------------------ */

/* iniparser folds names in the process's locale, where a Turkish I is no i. */
static void test_locale(void)
{
	char command[2 * PATH_MAX + 80];
	enter_folder();
	snprintf(command, sizeof(command),
		 "localedef -i tr_TR -f ISO-8859-9 '%s/tr_TR' >%s/log 2>&1", folder, folder);
	if (!system(command) && !setenv("LOCPATH", folder, 1) && setlocale(LC_ALL, "tr_TR")) {
		struct loom_config *cfg = make();
		struct loom__diag diag = {0};
		CU_ASSERT_EQUAL(read_string(cfg, "[SIZE]\nLIMIT = 1\n", &diag), 0);
		expect(said(&diag), "");
		expect(in_force(cfg, "size", "limit"), "1 t.ini:2:1:9 file");
		loom_config_destroy(cfg);
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
		struct loom_config *cfg = make();
		struct loom__diag diag = {0};
		struct options o = {0};
		if (read_string(cfg, text, &diag) ||
		    loom__config_fill(cfg, one_section, 1, rows_all, &o, sizeof(o), &diag) ||
		    o.count != *(uint32_t *)arg)
			*(int *)arg = -1;
		loom__diag_free(&diag);
		loom_config_destroy(cfg);
	}
	return NULL;
}

/* Configs of different threads know nothing of each other. */
static void test_threads(void)
{
	pthread_t thread[4];
	int number[4] = {1, 2, 3, 4};
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread[i], NULL, load_often, &number[i]), 0);
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(pthread_join(thread[i], NULL), 0);
		CU_ASSERT_EQUAL(number[i], i + 1);
	}
}

static void test_source_names(void)
{
	CU_ASSERT_STRING_EQUAL(loom__source_name(LOOM_FROM_DEFAULT), "default");
	CU_ASSERT_STRING_EQUAL(loom__source_name(LOOM_FROM_COMMAND_LINE), "command line");
	CU_ASSERT_STRING_EQUAL(loom__source_name(LOOM_FROM_API), "api");
	CU_ASSERT_STRING_EQUAL(loom__source_name(77), "unknown");
}

static const struct test tests[] = {
    {"accepts", test_accepts},
    {"refuses", test_refuses},
    {"cut_warning", test_cut_warning},
    {"keeps_the_good", test_keeps_the_good},
    {"bounds", test_bounds},
    {"diag", test_diag},
    {"public", test_public},
    {"files", test_files},
    {"include", test_include},
    {"include_mistakes", test_include_mistakes},
    {"precedence", test_precedence},
    {"set", test_set},
    {"environment", test_environment},
    {"environment_twice", test_environment_twice},
    {"values", test_values},
    {"values_long", test_values_long},
    {"rows_check", test_rows_check},
    {"fill", test_fill},
    {"fill_mistakes", test_fill_mistakes},
    {"required", test_required},
    {"deprecated", test_deprecated},
    {"paths", test_paths},
    {"unknown", test_unknown},
    {"sections", test_sections},
    {"cross_check", test_cross_check},
    {"declare_twice", test_declare_twice},
    {"each", test_each},
    {"source_names", test_source_names},
    {"locale", test_locale},
    {"threads", test_threads},
};

TEST_MAIN("config", 60, tests)
