/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the loader with faulty files. The faulty plug-ins are in tests/plugins. A test copies a plug-in into its
 * folder, under the name that the plug-in claims. */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <gpuloom/term.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "conform/footprint.h"
#include "inspect/describe.h"
#include "plugin/identity.h"
#include "inspect/probe.h"
#include "inspect/candidates.h"
#include "support.h"

static char folder[TEST_FOLDER];
static char self[PATH_MAX];

/* ---- helpers -------------------------------------------------------------------------------- */

static char *in_folder(const char *name)
{
	static char path[4][PATH_MAX];
	static unsigned turn;
	char *at = path[turn++ % 4];
	snprintf(at, PATH_MAX, "%s/%s", folder, name);
	return at;
}

static void store(const char *path, const char *bytes, size_t n)
{
	unlink(path); /* the old file may be loaded, so its contents must not change */
	FILE *f = fopen(path, "w");
	CU_ASSERT_FATAL(f != NULL);
	CU_ASSERT_EQUAL(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

static void fixture_bytes(const char *fixture, char **bytes, size_t *n)
{
	char path[PATH_MAX];
	struct loom_error err = {0};
	snprintf(path, sizeof(path), "%s/tests/plugins/%s.so", test_build_dir(), fixture);
	int rc = loom__read_file(path, 64 << 20, bytes, n, &err);
	if (rc)
		puts(err.text);
	CU_ASSERT_FATAL(!rc);
}

/* Copies the fixture to NAME.so in the test's folder. */
static char *place(const char *fixture, const char *name)
{
	char file[100], *bytes;
	size_t n;
	snprintf(file, sizeof(file), "%s.so", name);
	char *path = in_folder(file);
	fixture_bytes(fixture, &bytes, &n);
	store(path, bytes, n);
	free(bytes);
	return path;
}

static int one_sentence(const char *text)
{
	size_t n = strlen(text);
	return n > 20 && n < sizeof(((struct loom_error *)0)->text) - 1 && !strchr(text, '\n') && text[n - 1] != '.';
}

static void refused(const char *path, enum loom_kind kind, int code, const char *words)
{
	struct loom_error err = {0};
	const struct loom_plugin *p = NULL;
	int rc = loom__plugin_load(path, kind, &p, &err);
	CU_ASSERT_EQUAL(rc, code);
	CU_ASSERT_EQUAL(err.code, code);
	CU_ASSERT_PTR_NULL(p);
	CU_ASSERT(test_says(err.text, words));
	CU_ASSERT(test_says(err.text, strrchr(path, '/') + 1));
	CU_ASSERT(one_sentence(err.text));
}

/* Returns the number of other processes whose command line names the test's folder. */
static unsigned left_running(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc");
	for (struct dirent *e; (e = readdir(d));) {
		char path[300], line[1024];
		snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
		FILE *f = atoi(e->d_name) > 0 && atoi(e->d_name) != getpid() ? fopen(path, "r") : NULL;
		size_t got = f ? fread(line, 1, sizeof(line) - 1, f) : 0;
		if (f)
			fclose(f);
		n += got && memmem(line, got, folder, strlen(folder));
	}
	closedir(d);
	return n;
}

/* ---- refusals ------------------------------------------------------------------------------- */

TEST(refusals)
{
	static const struct {
		const char *fixture, *name;
		int code;
		const char *words;
	} bad[] = {
	    {"bad_magic", "term_magic", LOOM_EPLUGIN, "wrong magic&0x21212121&LOOM_PLUGIN_DEFINE"},
	    {"bad_major", "term_major", LOOM_EABI, "'term_major'&ABI 7&has 1;&rebuild it against"},
	    {"bad_major_late", "term_major_late", LOOM_EABI, "ABI 7&has 1;&rebuild it against"},
	    {"bad_kind", "term_kind", LOOM_EABI, "kind number 77&does not know"},
	    {"bad_size", "term_size", LOOM_EABI, "'term_size'&40 bytes&rebuild"},
	    {"bad_prefix", "sched_prefix", LOOM_EPLUGIN, "'sched_prefix'&termination&'term_'&rename"},
	    {"bad_name", "term_name", LOOM_EPLUGIN, "has no name"},
	    {"bad_print", "term_other", LOOM_EPLUGIN, "calls itself 'term_print'&rename"},
	    {"bad_op", "term_op", LOOM_EPLUGIN, "'term_op'&lacks 'init'&ops table&termination"},
	    {"bad_dev_op", "term_dev_op", LOOM_EPLUGIN, "lacks 'done'&device functions"},
	    {"bad_no_size", "term_no_size", LOOM_EPLUGIN, "ops table&begin with its size"},
	    {"bad_rows", "term_rows", LOOM_EPLUGIN, "'term_rows'&bad option row&'depth'"},
	    {"bad_width", "term_width", LOOM_EPLUGIN, "bad option row&'depth'&bytes"},
	    {"bad_lie", "term_lie", LOOM_EPLUGIN, "manifest&'term_lie'&differ in version"},
	    {"bad_null", "term_null", LOOM_EPLUGIN, "returned NULL"},
	    {"bad_none", "term_none", LOOM_EPLUGIN, "exports no loom_plugin_entry"},
	    {"bad_foreign", "term_foreign", LOOM_EPLUGIN, "comes from another file&lib"},
	};
	for (size_t i = 0; i < LOOM__COUNT(bad); i++)
		refused(place(bad[i].fixture, bad[i].name), LOOM_KIND_NONE, bad[i].code, bad[i].words);
}

TEST(wrong_kind)
{
	refused(place("bad_print", "term_print"), LOOM_SCHED, LOOM_EINVAL,
		"'term_print'&is a termination plug-in&scheduler is needed");
	/* The wrong kind is also reported if the plug-in has no manifest. */
	refused(place("bad_unmarked", "term_unmarked"), LOOM_SCHED, LOOM_EINVAL, "is a termination plug-in");
}

static volatile sig_atomic_t asked_to_stop;
static void on_stop(int number)
{
	(void)number;
	asked_to_stop++;
}

/* When it is loaded, one of the plug-ins sets signal handlers that end the process, and raises the signal. The signal
 * must only reach the process's own handlers. */
TEST(accepted)
{
	static const char *const good[][2] = {
	    {"bad_longer", "term_longer"}, {"bad_unmarked", "term_unmarked"}, {"bad_doctor", "device_ill"}};
	struct sigaction now;
	signal(SIGTERM, on_stop);
	setenv("LOOM_TEST_STOP", "1", 1);
	for (size_t i = 0; i < LOOM__COUNT(good); i++) {
		struct loom_error err = {0};
		const struct loom_plugin *p = NULL;
		int rc = loom__plugin_load(place(good[i][0], good[i][1]), i < 2 ? LOOM_TERM : LOOM_DEVICE, &p, &err);
		CU_ASSERT_EQUAL(rc, 0);
		CU_ASSERT_PTR_NOT_NULL_FATAL(p);
		CU_ASSERT_STRING_EQUAL(p->name, good[i][1]);
		CU_ASSERT_STRING_EQUAL(loom__plugin_short(p), strchr(good[i][1], '_') + 1);
	}
	CU_ASSERT_EQUAL(asked_to_stop, 1);
	CU_ASSERT(!sigaction(SIGUSR1, NULL, &now) && now.sa_handler == SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	unsetenv("LOOM_TEST_STOP");
}

/* A plug-in can be loaded by a link from its plain name to a versioned file name. */
TEST(versioned_name)
{
	const struct loom_plugin *p = NULL;
	char *plain = place("bad_unmarked", "term_unmarked"), *full = in_folder("term_unmarked.so.1.2");
	CU_ASSERT_EQUAL(rename(plain, full), 0);
	CU_ASSERT_EQUAL(symlink(full, plain), 0);
	CU_ASSERT_EQUAL(loom__plugin_load(plain, LOOM_TERM, &p, NULL), 0);
	unlink(plain);
	unlink(full);
}

/* ---- calls that fail ------------------------------------------------------------------------- */

/* These functions replace those of the C library for the loader, which is part of this program. */
static enum { NOTHING, READ_FAILS, READ_STOPS, LINK_FAILS, PATH_FAILS } broken;
static unsigned reads;

LOOM_EXPORT ssize_t pread(int fd, void *to, size_t n, off_t at)
{
	reads++;
	if (broken == READ_FAILS || (broken == READ_STOPS && reads % 2)) {
		errno = broken == READ_FAILS ? EIO : EINTR;
		return -1;
	}
	return syscall(SYS_pread64, fd, to, broken == READ_STOPS && n > 1 ? n / 2 : n, at);
}

LOOM_EXPORT void *dlopen(const char *path, int flags)
{
	void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
	void *handle = next(broken == LINK_FAILS ? "/no/such.so" : path, flags);
	if (broken == LINK_FAILS)
		errno = ENOMEM; /* dlerror() reports a missing file, but errno shows the true cause */
	return handle;
}

LOOM_EXPORT char *realpath(const char *path, char *to)
{
	char *(*next)(const char *, char *) = (char *(*)(const char *, char *))dlsym(RTLD_NEXT, "realpath");
	errno = ENOMEM;
	return broken == PATH_FAILS ? NULL : next(path, to);
}

TEST(calls_that_fail)
{
	const struct loom_plugin *p = NULL;
	struct loom__search search = {0};
	struct loom_error err;
	char *path = place("bad_unmarked", "term_unmarked"), *found = NULL;
	broken = READ_FAILS;
	refused(path, LOOM_TERM, LOOM_EPLUGIN, "cannot be read&Input/output error");
	broken = READ_STOPS;
	reads = 0;
	CU_ASSERT_EQUAL(loom__plugin_load(path, LOOM_TERM, &p, NULL), 0);
	CU_ASSERT(reads > 4);
	broken = LINK_FAILS;
	refused(path, LOOM_TERM, LOOM_ENOMEM, "out of memory");
	broken = NOTHING;
	CU_ASSERT_FATAL(!loom__search_create(folder, &search, NULL));
	broken = PATH_FAILS;
	refused(path, LOOM_TERM, LOOM_ENOMEM, "out of memory");
	CU_ASSERT_EQUAL(loom__plugin_find(&search, LOOM_TERM, "unmarked", &found, &err), LOOM_ENOMEM);
	CU_ASSERT_PTR_NULL(found);
	loom__search_free(&search);
	CU_ASSERT_EQUAL(loom__search_create(NULL, &search, &err), LOOM_ENOMEM); /* with no folder given */
	broken = NOTHING;
}

/* ---- files that are no plug-ins ------------------------------------------------------------- */

TEST(not_a_file)
{
	char *text = in_folder("term_text_file.so"), *sub = in_folder("term_folder.so");
	char *fifo = in_folder("term_fifo.so"), *empty = in_folder("term_empty.so");
	store(text, "#!/bin/sh\n", 10);
	store(empty, "", 0);
	mkdir(sub, 0700);
	mkfifo(fifo, 0600);
	refused(text, LOOM_KIND_NONE, LOOM_EPLUGIN, "not an ELF file");
	refused(empty, LOOM_KIND_NONE, LOOM_EPLUGIN, "not an ELF file");
	refused(sub, LOOM_KIND_NONE, LOOM_EPLUGIN, "a folder");
	refused(fifo, LOOM_KIND_NONE, LOOM_EPLUGIN, "not a regular file");
	refused(in_folder("term_absent.so"), LOOM_KIND_NONE, LOOM_ENOENT, "no such plug-in file");
	rmdir(sub);
	unlink(fifo);
}

TEST(other_machine)
{
	char *path = in_folder("term_print.so"), *bytes;
	size_t n;
	fixture_bytes("bad_print", &bytes, &n);
	((Elf64_Ehdr *)(void *)bytes)->e_machine = EM_SPARC;
	store(path, bytes, n);
	refused(path, LOOM_KIND_NONE, LOOM_EPLUGIN, "another kind of machine&build it");
	free(bytes);
}

TEST(cut_short)
{
	char *path = in_folder("term_print.so"), *bytes;
	struct loom_manifest m;
	size_t n;
	fixture_bytes("bad_print", &bytes, &n);
	store(path, bytes, n / 2);
	refused(path, LOOM_KIND_NONE, LOOM_EPLUGIN, "cut short");
	for (size_t cut = 0; cut < n; cut += 1 + n / 200) {
		store(path, bytes, cut);
		CU_ASSERT_NOT_EQUAL(loom__manifest_read(path, &m, NULL), 0);
	}
	free(bytes);
}

TEST(missing_library)
{
	char *path = in_folder("term_abort.so"), *bytes, *at;
	size_t n;
	fixture_bytes("bad_abort", &bytes, &n);
	while ((at = memmem(bytes, n, "libc.so.6", 9)))
		at[3] = 'q';
	store(path, bytes, n);
	refused(path, LOOM_KIND_NONE, LOOM_EPLUGIN, "dynamic linker&libq.so.6&install");
	free(bytes);
}

/* ---- manifests ------------------------------------------------------------------------------ */

TEST(manifest)
{
	struct loom_manifest m;
	struct loom_error err = {0};
	CU_ASSERT_EQUAL(loom__manifest_read(place("bad_abort", "term_abort"), &m, &err), 0);
	CU_ASSERT_STRING_EQUAL(m.name, "term_abort");
	CU_ASSERT_STRING_EQUAL(m.license, "Apache-2.0");
	CU_ASSERT_EQUAL(m.kind, LOOM_TERM);
	CU_ASSERT_EQUAL(loom__manifest_read(place("bad_text", "term_text"), &m, &err), 0);
	CU_ASSERT_STRING_EQUAL(m.summary, "red ?[31m, bell ?, broken ? UTF-8");
	REFUSED(loom__manifest_read(place("bad_unmarked", "term_unmarked"), &m, &err), LOOM_EPLUGIN, err,
		"no gpuloom manifest&LOOM_PLUGIN_DEFINE");
}

/* Without section headers, as after sstrip, the program headers still lead to the note. */
TEST(manifest_without_sections)
{
	char *path = in_folder("term_abort.so"), *bytes;
	struct loom_manifest m;
	size_t n;
	fixture_bytes("bad_abort", &bytes, &n);
	Elf64_Ehdr *h = (Elf64_Ehdr *)(void *)bytes;
	h->e_shoff = 0;
	h->e_shnum = 0;
	store(path, bytes, n);
	CU_ASSERT_EQUAL(loom__manifest_read(path, &m, NULL), 0);
	CU_ASSERT_STRING_EQUAL(m.name, "term_abort");
	free(bytes);
}

/* ---- probing -------------------------------------------------------------------------------- */

static void probe_refused(const char *path, unsigned limit_ms, const char *words)
{
	struct loom_error err = {0};
	REFUSED(loom__plugin_examine(self, path, limit_ms, NULL, &err), LOOM_EPLUGIN, err, words);
	CU_ASSERT(one_sentence(err.text));
}

TEST(probe)
{
	struct loom__footprint before;
	char text[200];
	loom__footprint_take(&before);
	struct loom_error err = {0};
	struct loom__probed probed;

	probe_refused(place("bad_abort", "term_abort"), 20000,
		      "term_abort.so&constructor&crashed (SIGABRT)&no luck today");
	/* These plug-ins have unmapped addresses. Only the child that probes them crashes. */
	static const char *const wild[] = {"wild", "ops_wild", "endless"};
	for (size_t i = 0; i < LOOM__COUNT(wild); i++) {
		char fixture[20], name[20];
		snprintf(fixture, sizeof(fixture), "bad_%s", wild[i]);
		snprintf(name, sizeof(name), "term_%s", wild[i]);
		probe_refused(place(fixture, name), 20000, "entry point&report it to its author");
	}
	probe_refused(place("bad_exit", "term_exit"), 20000, "ended the process (status 0)");
	probe_refused(place("bad_answer", "term_answer"), 20000, "crashed (SIGABRT)");
	uint64_t begin = loom__now_ns();
	probe_refused(place("bad_hang", "term_hang"), 500, "did not return within 500 ms");
	CU_ASSERT(loom__now_ns() - begin < 15000000000u);

	/* The message and the error code of the child are passed on unchanged. */
	char *path = place("bad_major_late", "term_major_late");
	REFUSED(loom__plugin_examine(self, path, 20000, NULL, &err), LOOM_EABI, err, "ABI 7&rebuild it against");
	CU_ASSERT_EQUAL(loom__plugin_examine(self, in_folder("absent.so"), 20000, NULL, &err), LOOM_ENOENT);

	CU_ASSERT_EQUAL(loom__plugin_examine(self, place("bad_print", "term_print"), 20000, &probed, &err), 0);
	CU_ASSERT_STRING_EQUAL(probed.noise, "hello from a constructor");
	CU_ASSERT_EQUAL(loom__plugin_examine(self, place("bad_unmarked", "term_unmarked"), 20000, &probed, &err), 0);
	CU_ASSERT_STRING_EQUAL(probed.identity.name, "term_unmarked");
	CU_ASSERT_EQUAL(probed.identity.kind, LOOM_TERM);
	CU_ASSERT_STRING_EQUAL(probed.noise, "");

	REFUSED(loom__plugin_examine("/nonexistent/gpuloom", path, 20000, NULL, &err), LOOM_EIO, err,
		"/nonexistent/gpuloom&cannot be started");

	CU_ASSERT_PTR_NULL(loom__footprint_settles(&before, 0, text, sizeof(text)));
	for (int i = 0; left_running() && i < 200; i++)
		usleep(10000);
	CU_ASSERT_EQUAL(left_running(), 0);
}

/* ---- search path ---------------------------------------------------------------------------- */

static void renew_folder(void)
{
	test_remove(folder);
	CU_ASSERT_EQUAL(mkdir(folder, 0700), 0);
}

/* A file or folder to which every user may write is rejected. A file or folder below such a folder is also rejected. A
 * folder below a sticky folder, such as /tmp, is accepted. */
TEST(open_to_all_S15_T32b)
{
	struct loom__search s = {0};
	struct loom_error err = {0};
	const struct loom_plugin *plugin;
	char so[PATH_MAX], *open = in_folder("open"), *inner = in_folder("open/inner");
	snprintf(so, sizeof(so), "%s/open/inner/term_counter.so", folder);
	mkdir(open, 0755);
	mkdir(inner, 0755);
	char command[3 * PATH_MAX];
	snprintf(command, sizeof(command), "cp '%s/plugins/term_counter.so' '%s'", test_build_dir(), so);
	CU_ASSERT_EQUAL_FATAL(system(command), 0);
	CU_ASSERT_EQUAL(loom__plugin_load(so, LOOM_TERM, &plugin, &err), 0);
	CU_ASSERT_EQUAL(chmod(so, 0666), 0);
	REFUSED(loom__plugin_load(so, LOOM_TERM, &plugin, &err), LOOM_EINVAL, err,
		"term_counter.so&every user may write&chmod o-w");
	CU_ASSERT_EQUAL(chmod(so, 0644), 0);
	CU_ASSERT_EQUAL(chmod(open, 0777), 0);
	REFUSED(loom__plugin_load(so, LOOM_TERM, &plugin, &err), LOOM_EINVAL, err, "folder above it&open&chmod o-w");
	REFUSED(loom__search_create(inner, &s, &err), LOOM_EINVAL, err, "folder above it&open&chmod o-w");
	CU_ASSERT_EQUAL(chmod(open, 01777), 0);
	CU_ASSERT_EQUAL(loom__plugin_load(so, LOOM_TERM, &plugin, &err), 0);
	CU_ASSERT_EQUAL(loom__search_create(inner, &s, &err), 0);
	loom__search_free(&s);
}

TEST(search)
{
	struct loom__search s = {0};
	struct loom_error err = {0};
	char *one = in_folder("one"), *two = in_folder("two"), list[2 * PATH_MAX];
	mkdir(one, 0755);
	mkdir(two, 0755);

	setenv("GPULOOM_PLUGIN_PATH", two, 1);
	snprintf(list, sizeof(list), ":%s:%s/../one:", one, one);
	CU_ASSERT_EQUAL(loom__search_create(list, &s, &err), 0);
	CU_ASSERT_FATAL(s.count >= 2);
	CU_ASSERT_STRING_EQUAL(s.folder[0], one);
	CU_ASSERT_STRING_EQUAL(s.folder[1], two);
	loom__search_free(&s);

	chmod(two, 0777);
	REFUSED(loom__search_create(NULL, &s, &err), LOOM_EINVAL, err, "two&every user may write&chmod o-w");
	chmod(two, 0755);
	setenv("GPULOOM_PLUGIN_PATH", in_folder("three"), 1);
	REFUSED(loom__search_create(NULL, &s, &err), LOOM_ENOENT, err, "three&GPULOOM_PLUGIN_PATH");
	unsetenv("GPULOOM_PLUGIN_PATH");
	REFUSED(loom__search_create(self, &s, &err), LOOM_EINVAL, err, "plugin_path&names a file");

	/* The folder "plugins" beside this executable is searched without being named. */
	CU_ASSERT_EQUAL(loom__search_create(NULL, &s, &err), 0);
	CU_ASSERT_FATAL(s.count >= 1);
	CU_ASSERT(test_says(s.folder[0], "/plugins"));
	loom__search_free(&s);
	rmdir(one);
	rmdir(two);
}

TEST(scan)
{
	struct loom__candidates all = {0};
	struct loom_error err = {0};
	renew_folder();
	char *other = strdup(in_folder("other")), file[PATH_MAX];
	mkdir(other, 0700);
	mkdir(in_folder("term_folder.so"), 0700);
	store(in_folder("readme.txt"), "x", 1);
	store(in_folder(".so"), "x", 1);
	char *abort_path = place("bad_abort", "term_abort");
	snprintf(file, sizeof(file), "%s/term_abort.so", other);
	CU_ASSERT_EQUAL(link(abort_path, file), 0);
	place("bad_major", "term_major");
	place("bad_unmarked", "term_unmarked");

	char *folders[] = {folder, other};
	struct loom__search s = {folders, 2};
	CU_ASSERT_EQUAL(loom__candidates_scan(&s, &all, &err), 0);
	CU_ASSERT_EQUAL_FATAL(all.count, 5);
	CU_ASSERT(test_says(all.list[0].path, "term_abort.so"));
	CU_ASSERT_STRING_EQUAL(all.list[0].fault, ""); /* the plug-in's code has not run */
	CU_ASSERT_EQUAL(all.list[0].has_manifest, 1);
	CU_ASSERT(test_says(all.list[1].fault, "a folder"));
	CU_ASSERT_EQUAL(strncmp(all.list[1].fault, "a folder", 8), 0);
	CU_ASSERT(test_says(all.list[2].fault, "ABI 7"));
	CU_ASSERT_EQUAL(all.list[3].has_manifest, 0);
	CU_ASSERT_STRING_EQUAL(all.list[3].fault, "");
	CU_ASSERT(test_says(all.list[4].fault, "hidden by&term_abort.so"));
	loom__candidates_free(&all);
	unlink(file);
	rmdir(other);
	free(other);
	renew_folder();
}

TEST(find)
{
	char *folders[] = {folder}, *path = NULL;
	struct loom__search s = {folders, 1}, none = {0};
	struct loom_error err = {0};
	renew_folder();
	place("bad_abort", "term_abort");
	place("bad_print", "term_print");
	place("bad_prefix", "sched_prefix");

	CU_ASSERT_EQUAL(loom__plugin_find(&s, LOOM_TERM, "print", &path, &err), 0);
	CU_ASSERT_STRING_EQUAL(path, in_folder("term_print.so"));
	free(path);
	CU_ASSERT_EQUAL(loom__plugin_find(&s, LOOM_TERM, "term_print", &path, &err), 0);
	CU_ASSERT_STRING_EQUAL(path, in_folder("term_print.so"));
	free(path);
	CU_ASSERT_EQUAL(loom__plugin_find(&none, LOOM_TERM, in_folder("term_abort.so"), &path, &err), 0);
	free(path);
	REFUSED(loom__plugin_find(&s, LOOM_TERM, "pritn", &path, &err), LOOM_ENOENT, err,
		"no termination plug-in 'pritn'&did you mean 'print'?&abort, print");
	CU_ASSERT(test_says(err.text, folder));
	CU_ASSERT_PTR_NULL(strstr(err.text, "prefix"));
	REFUSED(loom__plugin_find(&s, LOOM_QOS, "print", &path, &err), LOOM_ENOENT, err,
		"no qos plug-in&none of that kind");
	REFUSED(loom__plugin_find(&none, LOOM_QOS, "print", &path, &err), LOOM_ENOENT, err, "plugin_path");
	CU_ASSERT_EQUAL(loom__plugin_find(&s, LOOM_TERM, "./absent.so", &path, &err), LOOM_ENOENT);
	renew_folder();
}

/* ---- description ---------------------------------------------------------------------------- */

struct opts {
	uint64_t bytes, delay;
	double share;
	uint32_t depth, how;
	const char *file;
};
static const char *const ways[] = {"fast", "slow|careful", NULL};
static const struct loom_opt rows[] = {
    LOOM_OPT(struct opts, bytes, LOOM_OPT_SIZE, "64KiB", "Bytes.", .min = 4096, .max = 1 << 30),
    LOOM_OPT(struct opts, delay, LOOM_OPT_TIME, "10us", "Delay.", .min = 500, .max = 2e9),
    LOOM_OPT(struct opts, share, LOOM_OPT_SHARE, "5%", "Share.", .from = 0.01, .to = 0.5),
    LOOM_OPT(struct opts, depth, LOOM_OPT_U32, "8", "Depth <of> a | b.", .min = 1, .max = 1e19),
    LOOM_OPT(struct opts, how, LOOM_OPT_ENUM, "fast", "How.", .choices = ways),
    LOOM_OPT(struct opts, file, LOOM_OPT_PATH, NULL, "File.", .flags = LOOM_OPT_REQUIRED),
    {0},
};
static const char source[] = "text for a compiler";
static const struct loom_term_dev dev_table = {.size = sizeof(dev_table)};
static const struct loom_device_code code = {.size = sizeof(code),
					     .cpu = &dev_table,
					     .source_name = "term_demo.dev.h",
					     .source = source,
					     .source_end = source + sizeof(source) - 1};
static const struct loom_plugin demo = {.abi = LOOM_ABI,
					.kind = LOOM_TERM,
					.name = "term_demo",
					.version = "2.1.0",
					.license = "MIT",
					.summary = "for a \033test",
					.opts = rows,
					.opts_size = sizeof(struct opts),
					.dev = &code};

TEST(describe_text)
{
	struct loom__text t = {0};
	loom__describe_text(&demo, "/x/term_demo.so", 0, &t);
	CU_ASSERT(test_says(t.at, "termination.demo 2.1.0&for a ?test&/x/term_demo.so&CPU and GPU"));
	CU_ASSERT(test_says(t.at, "4KiB..1GiB&500ns..2s&1%..50%&1 or more&fast|slow|careful&(required)"));
	CU_ASSERT(test_says(t.at, "[termination]\nuse = demo\n[termination.demo]\nbytes = 64KiB\n"));
	CU_ASSERT_PTR_NULL(strchr(t.at, '\033'));
	loom__text_free(&t);
}

TEST(describe_markdown)
{
	struct loom__text t = {0};
	loom__describe_markdown(&demo, &t);
	CU_ASSERT(test_says(t.at, "### termination.demo\n&`term_demo.so`&| `depth` | integer | `8` | 1 or more"));
	CU_ASSERT(test_says(t.at, "Depth &lt;of> a \\| b.&slow\\|careful"));
	CU_ASSERT_PTR_NULL(
	    strchr(t.at, '/')); /* documents are generated from this text, so it must not contain paths */
	loom__text_free(&t);
}

static const char *string_at(const cJSON *object, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
	return text ? text : "(none)";
}

TEST(describe_json)
{
	char *text = loom__describe_json(&demo, "/x/term_demo.so", 0);
	cJSON *j = cJSON_ParseWithOpts(text, NULL, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(j);
	CU_ASSERT_STRING_EQUAL(string_at(j, "schema"), "gpuloom.plugin/1");
	CU_ASSERT_STRING_EQUAL(string_at(j, "kind"), "termination");
	CU_ASSERT_STRING_EQUAL(string_at(j, "summary"), "for a ?test");
	CU_ASSERT_EQUAL(cJSON_GetObjectItem(j, "abi")->valueint, 1);
	const cJSON *options = cJSON_GetObjectItemCaseSensitive(j, "options");
	CU_ASSERT_EQUAL(cJSON_GetArraySize(options), 6);
	CU_ASSERT_STRING_EQUAL(string_at(cJSON_GetArrayItem(options, 0), "default"), "64KiB");
	CU_ASSERT_STRING_EQUAL(string_at(cJSON_GetArrayItem(options, 0), "type"), "size");
	CU_ASSERT(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(options, 5), "default")));
	cJSON_Delete(j);
	free(text);
}

int main(int argc, char **argv)
{
	/* A probe runs this executable again, with the argument "probe". */
	if (argc > 1 && !strcmp(argv[1], "probe")) {
		loom__probe_command(argc - 1, argv + 1);
		return 2;
	}
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return 99;
	test_folder(folder);
	unsetenv("GPULOOM_PLUGIN_PATH");
	int rc = test_main(argc, argv, "plugin", 120);
	test_remove(folder);
	return rc;
}
