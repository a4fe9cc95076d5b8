/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/json.h"
#include "facts/text.h"
#include "facts/write.h"
#include "lib/memory_left.h"
#include "lib/number.h"

/* A message that is too long is cut between characters, and ends with "...". */
TEST(fail_cut)
{
	struct loom_error err;
	char text[1400];
	for (size_t shift = 0; shift < 3; shift++) {
		memset(text, 'x', shift);
		for (size_t i = shift; i + 3 < sizeof(text); i += 3)
			memcpy(text + i, "\xe2\x82\xac", 4); /* the euro sign */
		LOOM__FAIL(&err, LOOM_EIO, "%s", text);
		size_t n = strlen(err.text);
		CU_ASSERT(n < sizeof(err.text) && n > sizeof(err.text) - 8);
		CU_ASSERT_STRING_EQUAL(err.text + n - 3, "...");
		for (size_t i = 0, step; i < n; i += step)
			CU_ASSERT_FATAL((step = loom__utf8(err.text + i, n - i)) != 0);
	}
	memset(text, 'y', sizeof(text));
	text[sizeof(err.text) - 1] = 0; /* the longest text that fits is not cut */
	LOOM__FAIL(&err, LOOM_EIO, "%s", text);
	CU_ASSERT_STRING_EQUAL(err.text, text);
}

TEST(utf8)
{
	static const struct {
		const char *bytes;
		size_t n, want;
	} rows[] = {
		{"a", 1, 1},
		{"\0", 1, 1},
		{"\xc3\xa9", 2, 2},
		{"\xe2\x82\xac", 3, 3},
		{"\xf0\x9f\x98\x80", 4, 4},
		{"\xf4\x8f\xbf\xbf", 4, 4},
		/* cut; no continuation byte; only a continuation byte */
		{"\xc3", 1, 0}, {"\xe2\x82", 2, 0}, {"\xc3(", 2, 0}, {"\xe2\x82(", 3, 0}, {"\x80", 1, 0},
		/* overlong; a surrogate; beyond U+10FFFF */
		{"\xc0\xaf", 2, 0}, {"\xe0\x80\xaf", 3, 0}, {"\xf0\x80\x80\xaf", 4, 0}, {"\xed\xa0\x80", 3, 0},
		{"\xf4\x90\x80\x80", 4, 0}, {"\xf8\x88\x80\x80\x80", 5, 0}, {"\xff", 1, 0},
	};
	for (size_t i = 0; i < LOOM__COUNT(rows); i++)
		CU_ASSERT_EQUAL(loom__utf8(rows[i].bytes, rows[i].n), rows[i].want);
}

static void check_doubles(void)
{
	static const struct {
		const char *text;
		double value;
		size_t read; /* the number of bytes read, or 0 if the text is rejected */
	} rows[] = {
	    {"0", 0, 1},   {"12.5", 12.5, 4},  {"-1e3", -1000, 4}, {".5", 0.5, 2},
	    {"5.", 5, 2},  {"1e-2x", 0.01, 4}, {"1e", 1, 1},       {"1e+", 1, 1},
	    {"1,5", 1, 1}, {"5%", 5, 1},       {"", 0, 0},         {".", 0, 0},
	    {"-", 0, 0},   {"+1", 0, 0},       {" 1", 0, 0},       {"nan", 0, 0},
	    {"inf", 0, 0}, {"1e999", 0, 0},    {"0x10", 0, 0},     {"--1", 0, 0},
	};
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		const char *end = NULL;
		double v = -7;
		int code = loom__read_double(rows[i].text, &end, &v);
		CU_ASSERT_EQUAL(code, rows[i].read ? 0 : -1);
		CU_ASSERT_EQUAL(v, rows[i].read ? rows[i].value : -7);
		CU_ASSERT_PTR_EQUAL(end, rows[i].read ? rows[i].text + rows[i].read : NULL);
	}
	static const struct {
		double v;
		const char *text;
	} shown[] = {
	    {0.1, "0.1"},
	    {1.5, "1.5"},
	    {-3, "-3"},
	    {1e300, "1e+300"},
	    {0.1 + 0.2, "0.30000000000000004"},
	};
	for (size_t i = 0; i < LOOM__COUNT(shown); i++) {
		struct loom__text t = {0};
		loom__text_double(&t, shown[i].v);
		CU_ASSERT_STRING_EQUAL(t.at, shown[i].text);
		loom__text_free(&t);
	}
}

static void put_file(const char *root, const char *path, const char *text)
{
	char command[2 * PATH_MAX + 400];
	snprintf(command, sizeof(command), "mkdir -p \"$(dirname '%s%s')\" && printf '%s' >'%s%s'", root, path, text,
		 root, path);
	CU_ASSERT_EQUAL_FATAL(system(command), 0);
}

/* The memory of the machine, of a cgroup of version 1, and of a parent in version 2. */
TEST(memory_left)
{
	char root[TEST_FOLDER], sys[TEST_FOLDER + 8];
	test_folder(root);
	snprintf(sys, sizeof(sys), "%s/sys", root);
	CU_ASSERT(memory_left(root, sys) == UINT64_MAX);
	put_file(root, "/meminfo", "MemFree: 7 kB\nMemAvailable:  1000 kB\nSwapFree: 10 kB\n");
	CU_ASSERT_EQUAL(memory_left(root, sys), 1010 << 10);
	put_file(root, "/self/cgroup", "4:memory:/job\n1:cpu:/\n0::/a/b\n");
	CU_ASSERT_EQUAL(memory_left(root, sys), 1010 << 10);
	put_file(root, "/sys/memory/job/memory.limit_in_bytes", "900000\n");
	put_file(root, "/sys/memory/job/memory.usage_in_bytes", "100000\n");
	CU_ASSERT_EQUAL(memory_left(root, sys), 800000 + (10 << 10));
	put_file(root, "/sys/a/b/memory.max", "max\n");
	put_file(root, "/sys/a/b/memory.current", "1\n");
	put_file(root, "/sys/a/memory.max", "500000\n");
	put_file(root, "/sys/a/memory.current", "490000\n");
	CU_ASSERT_EQUAL(memory_left(root, sys), 10000 + (10 << 10));
	put_file(root, "/sys/a/memory.stat", "anon 1\ninactive_file 1000\nactive_file 2000\n");
	CU_ASSERT_EQUAL(memory_left(root, sys), 13000 + (10 << 10));
	test_remove(root);
}

/* The test also runs in a locale with a decimal comma, if the system can make one. */
TEST(doubles)
{
	char folder[TEST_FOLDER], command[2 * PATH_MAX + 80];
	check_doubles();
	test_folder(folder);
	snprintf(command, sizeof(command), "localedef -i de_DE -f UTF-8 '%s/de_DE' >%s/log 2>&1",
		 folder, folder);
	if (!system(command) && !setenv("LOCPATH", folder, 1) && setlocale(LC_ALL, "de_DE")) {
		char text[8];
		snprintf(text, sizeof(text), "%.1f", 0.5);
		CU_ASSERT_STRING_EQUAL(text, "0,5");
		check_doubles();
		char *end, rest[] = "1.5k"; /* what plug-ins read of the output of programs */
		CU_ASSERT(number_read(rest, &end) == 1.5 && *end == 'k');
		snprintf(text, sizeof(text), "%.1f", 0.5); /* printf still uses the comma, so the locale is unchanged */
		CU_ASSERT_STRING_EQUAL(text, "0,5");
		setlocale(LC_ALL, "C");
	}
	unsetenv("LOCPATH");
	test_remove(folder);
}

TEST(nearest)
{
	static const char *const names[] = {"blocksize", "iodepth", "runtime", "use", "seed", "b"};
	static const struct {
		const char *word, *want;
	} rows[] = {
	    {"blocsize", "blocksize"}, /* a letter is missing */
	    {"iodpeth", "iodepth"},    /* two letters are swapped */
	    {"ruuntime", "runtime"},   /* a letter is added */
	    {"RUNTIME", "runtime"},    /* case is ignored */
	    {"us", "use"},
	    {"sead", "seed"},
	    {"seda", NULL},             /* two edits in four letters are too many */
	    {"blxxxsize", "blocksize"}, /* three edits in nine letters are accepted */
	    {"blxxxsizy", NULL},        /* four edits in nine letters are too many */
	    {"foobar", NULL},
	    {"a", NULL}, /* all letters are replaced */
	    {"", NULL},
	};
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		const char *got = loom__nearest(rows[i].word, names, LOOM__COUNT(names));
		CU_ASSERT_STRING_EQUAL(got ? got : "-", rows[i].want ? rows[i].want : "-");
	}
	CU_ASSERT_PTR_NULL(loom__nearest("use", NULL, 0));
	static const char *const ties[] = {"cat", "car"};
	CU_ASSERT_STRING_EQUAL(loom__nearest("cab", ties, 2), "cat");
	CU_ASSERT_STRING_EQUAL(loom__nearest("car", ties, 2), "car");
	char longest[200];
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	const char *const one[] = {longest};
	CU_ASSERT_PTR_NULL(loom__nearest(longest, one, 1));
	CU_ASSERT_PTR_NULL(loom__nearest("aaa", one, 1));
}

TEST(beside)
{
	static const char *const rows[][3] = {
	    {"dir/a.ini", "b.ini", "dir/b.ini"},
	    {"a.ini", "b.ini", "b.ini"},
	    {"/x/a.ini", "../b", "/x/../b"},
	    {"dir/a.ini", "/b", "/b"},
	    {"/a", "b", "/b"},
	    {"", "b", "b"},
	};
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		struct loom__text t = {0};
		loom__beside(&t, rows[i][0], rows[i][1]);
		CU_ASSERT_STRING_EQUAL(t.at, rows[i][2]);
		loom__text_free(&t);
	}
}

TEST(read_file)
{
	char folder[TEST_FOLDER], path[PATH_MAX + 8], pipe_path[PATH_MAX + 8];
	char *bytes = NULL, want[40100];
	size_t n = 7;
	struct loom_error err;
	test_folder(folder);
	snprintf(path, sizeof(path), "%s/file", folder);
	snprintf(pipe_path, sizeof(pipe_path), "%s/pipe", folder);
	memset(want, 'z', sizeof(want));
	want[5] = 0;
	CU_ASSERT_EQUAL(loom__write_file(path, want, 40000, NULL), 0);
	CU_ASSERT_EQUAL(loom__read_file(path, 40000, &bytes, &n, &err), 0);
	CU_ASSERT_EQUAL(n, 40000);
	CU_ASSERT(!memcmp(bytes, want, n) && !bytes[n]);
	free(bytes);
	REFUSED(loom__read_file(path, 39999, &bytes, &n, &err), LOOM_EINVAL, err,
		"larger than the limit of 39999 bytes");
	CU_ASSERT_EQUAL(loom__write_file(path, "", 0, NULL), 0);
	CU_ASSERT_EQUAL(loom__read_file(path, 10, &bytes, &n, &err), 0);
	CU_ASSERT(n == 0 && !bytes[0]);
	free(bytes);
	REFUSED(loom__read_file(folder, 10, &bytes, &n, &err), LOOM_EINVAL, err, "is a folder, not a file");
	CU_ASSERT_EQUAL(mkfifo(pipe_path, 0600), 0);
	REFUSED(loom__read_file(pipe_path, 10, &bytes, &n, &err), LOOM_EINVAL, err,
		"is a pipe: write its content to a file");
	CU_ASSERT_EQUAL(loom__read_file("/nowhere/x", 10, &bytes, &n, &err), LOOM_ENOENT);
	CU_ASSERT_STRING_EQUAL(err.text, "cannot read '/nowhere/x': No such file or directory");
	/* The size of this file is 0 until it is read. */
	CU_ASSERT_EQUAL(loom__read_file("/proc/self/status", 100000, &bytes, &n, &err), 0);
	CU_ASSERT(n > 100);
	free(bytes);
	test_remove(folder);
}

TEST(write_file)
{
	char folder[TEST_FOLDER], path[PATH_MAX + 8], link_path[PATH_MAX + 8], command[2 * PATH_MAX];
	struct loom_error err;
	struct stat st;
	char seen[8] = "";
	test_folder(folder);
	snprintf(path, sizeof(path), "%s/out", folder);
	snprintf(link_path, sizeof(link_path), "%s/link", folder);
	mode_t mask = umask(027);
	CU_ASSERT_EQUAL(loom__write_file(path, "one", 3, &err), 0);
	umask(mask);
	CU_ASSERT(!stat(path, &st) && (st.st_mode & 0777) == 0640);
	CU_ASSERT_EQUAL(symlink("out", link_path), 0);
	CU_ASSERT_EQUAL(loom__write_file(link_path, "two!", 4, &err), 0);
	CU_ASSERT(!lstat(link_path, &st) && S_ISLNK(st.st_mode));
	/* The file is replaced and not overwritten, so a reader that has the file open still sees the old text. */
	int fd = open(path, O_RDONLY);
	CU_ASSERT_EQUAL(loom__write_file(path, "three", 5, &err), 0);
	CU_ASSERT_EQUAL(read(fd, seen, sizeof(seen)), 4);
	CU_ASSERT_STRING_EQUAL(seen, "two!");
	close(fd);
	CU_ASSERT_EQUAL(loom__write_file(folder, "x", 1, &err), LOOM_EIO);
	CU_ASSERT_EQUAL(loom__write_file("/nowhere/x", "x", 1, &err), LOOM_ENOENT);
	CU_ASSERT_STRING_EQUAL(err.text, "cannot write '/nowhere/x': No such file or directory");
	CU_ASSERT_EQUAL(loom__write_file("/dev/null", "x", 1, &err), 0);
	CU_ASSERT(!stat("/dev/null", &st) && S_ISCHR(st.st_mode));
	CU_ASSERT_EQUAL(loom__write_file("/dev/full", "x", 1, &err), LOOM_EIO);
	/* A link to a file that does not exist yet stays a link, and its target is made. */
	snprintf(link_path, sizeof(link_path), "%s/dangling", folder);
	snprintf(path, sizeof(path), "%s/new", folder);
	CU_ASSERT_EQUAL(symlink("new", link_path), 0);
	CU_ASSERT_EQUAL(loom__write_check(link_path, &err), 0);
	CU_ASSERT_EQUAL(loom__write_file(link_path, "four", 4, &err), 0);
	CU_ASSERT(!lstat(link_path, &st) && S_ISLNK(st.st_mode));
	CU_ASSERT(!lstat(path, &st) && S_ISREG(st.st_mode) && st.st_size == 4);
	/* No temporary file is left, not even by failures. */
	snprintf(command, sizeof(command), "test \"$(ls -A '%s' | tr '\\n' ' ')\" = 'dangling link new out '", folder);
	CU_ASSERT_EQUAL(system(command), 0);
	/* A link to itself has no target. */
	unlink(link_path);
	CU_ASSERT_EQUAL(symlink("dangling", link_path), 0);
	REFUSED(loom__write_check(link_path, &err), LOOM_EIO, err, "cannot write&Too many levels of symbolic links");
	test_remove(folder);
}

/* Checks whether two names in the folder have the same key. */
static int same_key(const char *folder, const char *a, const char *b)
{
	struct loom__text path[2] = {{0}, {0}}, key[2] = {{0}, {0}};
	const char *name[] = {a, b};
	int same = 1;
	for (int i = 0; i < 2; i++) {
		loom__text_add(&path[i], "%s%s%s", *name[i] == '/' ? "" : folder, *name[i] == '/' ? "" : "/", name[i]);
		same &= loom__file_key(path[i].at, &key[i]);
	}
	same = same && !strcmp(key[0].at, key[1].at);
	for (int i = 0; i < 2; i++) {
		loom__text_free(&path[i]);
		loom__text_free(&key[i]);
	}
	return same;
}

/* All names of a file have one key, before it exists and afterwards. */
TEST(file_keys)
{
	static const char *const same[] = {"x", "./x", "link", "to/x", "to/link", "twice"};
	static const char *const other[] = {"X", "sub/x", "x.json", "sub", "none/x", "/dev/null"};
	char folder[TEST_FOLDER];
	struct loom__text command = {0};
	test_folder(folder);
	loom__text_add(&command, "cd '%s' && mkdir sub && ln -s x link && ln -s link twice && ln -s . to", folder);
	CU_ASSERT_EQUAL_FATAL(system(command.at), 0);
	for (int exists = 0; exists < 2; exists++) {
		for (size_t i = 0; i < COUNT(same); i++)
			CU_ASSERT(same_key(folder, "x", same[i]));
		for (size_t i = 0; i < COUNT(other); i++)
			CU_ASSERT(!same_key(folder, "x", other[i]));
		command.length = 0;
		loom__text_add(&command, "cd '%s' && touch x X && ln x hard", folder);
		CU_ASSERT_EQUAL_FATAL(exists ? 0 : system(command.at), 0);
	}
	CU_ASSERT(same_key(folder, "x", "hard"));
	loom__text_free(&command);
	test_remove(folder);
}

static void quote(struct loom__text *t, const char *text, size_t most)
{
	loom__text_add(t, "<%.*s>", most < 100 ? (int)most : 100, text);
}

/* Each directive of a format reads an argument of the right width. */
TEST(format)
{
	struct loom__text t = {0};
	loom__text_with(&t, quote, "%s %.2s %llu %ld %zu %d%% %.1f%c %s", "a", "bcd", ULLONG_MAX, -5000000000l,
			(size_t)7, 8, 0.25, 'x', "e");
	CU_ASSERT_STRING_EQUAL(t.at, "<a> <bc> 18446744073709551615 -5000000000 7 8% 0.2x <e>");
	loom__text_free(&t);
}

/* Widths count characters, and may be arguments. */
TEST(format_widths)
{
	struct loom__text t = {0};
	loom__line_add(&t, "%-6s|%6s|%*s|%-*.2s|%5d|%02x", "h\xc3\xa9", "h\xc3\xa9", 4, "ab", 3, "cde", 42, 10);
	CU_ASSERT_STRING_EQUAL(t.at, "h\xc3\xa9    |    h\xc3\xa9|  ab|cd |   42|0a");
	loom__text_free(&t);
}

/* Invalid UTF-8, control characters of all kinds and direction marks are replaced. An incomplete character is
 * removed. */
static const struct {
	const char *text, *line, *lines;
} unclean[] = {
	{"plain h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "plain h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
	 "plain h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
	{"a\033[2J\x07z", "a?[2J?z", "a?[2J?z"},
	{"two\n\tlines\r", "two  lines ", "two\n\tlines "},
	{"\x7f\xc2\x9b\xc2\x80.", "???.", "???."},
	{"\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8f\xd8\x9c\xe2\x80\xa8.", "?????.", "?????."},
	{"n\xf6n \xed\xa0\x80 \xc0\xaf \xf4\x90\x80\x80", "n?n ??? ?? ????", "n?n ??? ?? ????"},
	{"x\xc3\ny \xe2\x82 z \xf0\x9f\x98", "x y  z ", "x\ny  z "},
	{"\xef\xbf\xbe\xef\xbf\xbd", "?\xef\xbf\xbd", "?\xef\xbf\xbd"},
};

TEST(clean_F8_S8)
{
	for (size_t i = 0; i < LOOM__COUNT(unclean); i++) {
		char text[64];
		struct loom__text t = {0};
		snprintf(text, sizeof(text), "%s", unclean[i].text);
		loom__clean(text, sizeof(text));
		CU_ASSERT_STRING_EQUAL(text, unclean[i].line);
		loom__text_add(&t, "\x01%s", unclean[i].text);
		loom__text_clean(&t, 1, "\n\t");
		CU_ASSERT_STRING_EQUAL(t.at + 1, unclean[i].lines);
		CU_ASSERT(t.at[0] == 1 && t.length == strlen(t.at));
		loom__text_free(&t);
	}
	char full[4] = {'\xe2', '\x82', '\xac', 'x'};
	loom__clean(full, 3); /* the array has no room for a NUL after the character */
	CU_ASSERT(!memcmp(full, "\0\0\0x", 4));
}

/* All strings and names of a document are cleaned in the same way. */
TEST(json_clean_F8)
{
	for (size_t i = 0; i < LOOM__COUNT(unclean); i++)
		for (int pretty = 0; pretty < 2; pretty++) {
			cJSON *doc = cJSON_CreateObject();
			loom__json_add_text(doc, unclean[i].text, unclean[i].text);
			loom__json_add_text(doc, "back\\u001b \"\\n\b\f/", "\\u0007\\\\u0007");
			loom__json_add_count(doc, "count", UINT64_MAX);
			char *text = loom__json_print(doc, pretty);
			CU_ASSERT_PTR_NOT_NULL_FATAL(text);
			CU_ASSERT_PTR_NOT_NULL(strstr(text, "18446744073709551615"));
			cJSON *again = cJSON_ParseWithOpts(text, NULL, 1);
			CU_ASSERT_PTR_NOT_NULL_FATAL(again);
			CU_ASSERT_STRING_EQUAL(again->child->string, unclean[i].lines);
			CU_ASSERT_STRING_EQUAL(again->child->valuestring, unclean[i].lines);
			CU_ASSERT_STRING_EQUAL(again->child->next->string, "back\\u001b \"\\n?\?/");
			CU_ASSERT_STRING_EQUAL(again->child->next->valuestring, "\\u0007\\\\u0007");
			cJSON_Delete(again);
			cJSON_Delete(doc);
			free(text);
		}
}

static void words_are(const char *list, const char *gaps, const char *want)
{
	char copy[100], got[200] = "", *rest = copy, *word;
	struct loom__text again = {0};
	snprintf(copy, sizeof(copy), "%s", list);
	while ((word = loom__word(&rest, gaps))) {
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "<%s>", word);
		loom__text_put(&again, gaps, again.length ? 1 : 0);
		loom__word_put(&again, word, gaps);
	}
	CU_ASSERT_STRING_EQUAL(got, want);
	snprintf(copy, sizeof(copy), "%s", again.at ? again.at : "");
	got[0] = 0;
	rest = copy;
	while ((word = loom__word(&rest, gaps)))
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "<%s>", word);
	CU_ASSERT_STRING_EQUAL(got, want);
	loom__text_free(&again);
}

TEST(words_with_gaps_F19)
{
	words_are("", " ,", "");
	words_are(" , ", " ,", "");
	words_are("cpu:0 cpu:1", " \t,", "<cpu:0><cpu:1>");
	words_are(" a,, b ", " ,", "<a><b>");
	words_are("/my\\ own/x.so:1 b", " ,", "</my own/x.so:1><b>");
	words_are("a\\,b \\\\c d\\e f\\", " ,", "<a,b><\\c><d\\e><f\\>");
	words_are("/a\\:b:/c d", ":", "</a:b></c d>");
}

/* loom__json_miss() marks a document that lacks a part for want of memory. The mark is also in copies. NaN is no such
 * mark. */
TEST(json_miss_D18)
{
	cJSON *doc = cJSON_CreateObject(), *list = loom__json_add_array(doc, "list"), *copy;
	loom__json_append(list, cJSON_CreateNumber(NAN));
	CU_ASSERT(!loom__json_broken(doc));
	CU_ASSERT(cJSON_IsArray(list) && !(list->type & ~0x3ff));
	loom__json_miss(list);
	CU_ASSERT(!(list->type & ~0x3ff)); /* the mark is not in the type */
	CU_ASSERT(loom__json_broken(doc));
	CU_ASSERT_PTR_NULL(loom__json_print(doc, 0));
	copy = cJSON_Duplicate(doc, 1);
	CU_ASSERT(loom__json_broken(copy));
	cJSON_Delete(copy);
	cJSON_Delete(doc);
}

TEST_MAIN("base", 60)
