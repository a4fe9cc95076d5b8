/* SPDX-License-Identifier: Apache-2.0 */
/* What every test program shares: a main over CUnit that returns the number of failures, takes -l
 * (list) and -t NAME (one test), and ends a hanging test. */
#ifndef LOOM_TEST_SUPPORT_H
#define LOOM_TEST_SUPPORT_H

#include <CUnit/CUnit.h>

struct test {
	const char *name;
	void (*run)(void);
};

/* Runs the tests, each bounded by `limit_s` seconds (0: 60); returns the exit status for main. */
int test_main(int argc, char **argv, const char *suite, const struct test *tests, size_t n,
	      unsigned limit_s);

/* The skip status: prints the reason and exits 77. */
_Noreturn void test_skip(const char *reason);

/* The build folder that this test runs in, as in "build": from the path of the executable. */
const char *test_build_dir(void);

#define TEST_MAIN(suite, limit_s, tests)                                                           \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return test_main(argc, argv, suite, tests, sizeof(tests) / sizeof((tests)[0]),     \
				 limit_s);                                                         \
	}

#endif
