/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <CUnit/Basic.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void test_skip(const char *reason)
{
	printf("skipped: %s\n", reason);
	fflush(stdout);
	_exit(77);
}

const char *test_build_dir(void)
{
	static char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (n < 0)
		abort();
	path[n] = 0;
	/* the program is BUILD/tests/test_x, so its grandparent is BUILD */
	return dirname(dirname(path));
}

int test_says(const char *text, const char *words)
{
	char copy[400], *rest = copy, *word;
	int all = 1;
	snprintf(copy, sizeof(copy), "%s", words);
	while ((word = strsep(&rest, "&")))
		all &= strstr(text, word) != NULL;
	if (!all)
		printf("\n  wanted: %s\n  said:   %s\n", words, text);
	return all;
}

void in_threads(void *(*run)(void *), void *each, size_t bytes, unsigned n)
{
	pthread_t thread[64];
	if (n > COUNT(thread))
		abort();
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, run, (char *)each + i * bytes))
			abort();
	for (unsigned i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

uint64_t xorshift(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

void test_folder(char path[TEST_FOLDER])
{
	const char *base = getenv("TMPDIR");
	int length = snprintf(path, TEST_FOLDER, "%s/gpuloom-test-XXXXXX", base ? base : "/tmp");
	if (length >= TEST_FOLDER || !mkdtemp(path))
		abort();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

void test_remove(const char *folder)
{
	if (nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS))
		abort();
}

/* Options of ThreadSanitizer. The child process of a device with isolation = process must be able to start threads,
 * although its parent has threads. A test may replace this function. */
__attribute__((visibility("default"), weak)) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

static struct test *first, **last = &first;

void test_add(struct test *test)
{
	*last = test;
	last = &test->next;
}

/* Restarts the program under tests/limit, which ends a program that hangs, unless the program already runs there. */
static void under_limit(char **argv, int argc, unsigned limit_s)
{
	static char path[PATH_MAX + 16], seconds[16];
	char *args[32] = {path, seconds, argv[0]};
	if (getenv("LOOM_TEST_LIMIT") || argc > 16)
		return;
	snprintf(path, sizeof(path), "%s/tests/limit", test_build_dir());
	snprintf(seconds, sizeof(seconds), "%u", limit_s ? limit_s : 60);
	for (int i = 1; i < argc; i++)
		args[2 + i] = argv[i];
	execv(path, args); /* if execv() fails, the test runs without a limit */
}

int test_main(int argc, char **argv, const char *suite_name, unsigned limit_s)
{
	const char *only = NULL;
	int option;
	while ((option = getopt(argc, argv, "lt:")) != -1) {
		if (option == 'l') {
			for (struct test *t = first; t; t = t->next)
				puts(t->name);
			return 0;
		}
		if (option != 't')
			return 2;
		only = optarg;
	}
	under_limit(argv, argc, limit_s);
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 99;
	CU_pSuite suite = CU_add_suite(suite_name, NULL, NULL);
	size_t added = 0;
	for (struct test *t = first; t; t = t->next)
		if (!only || !strcmp(only, t->name)) {
			CU_add_test(suite, t->name, t->run);
			added++;
		}
	if (!suite || !added) {
		fprintf(stderr, "%s: no such test\n", suite_name);
		return 99;
	}
	CU_basic_set_mode(CU_BRM_NORMAL);
	setvbuf(stdout, NULL, _IONBF, 0); /* stdout is unbuffered, so that the name of a test that hangs is printed */
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures > 98 ? 98 : (int)failures;
}
