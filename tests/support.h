/* SPDX-License-Identifier: Apache-2.0 */
/* What every test program shares: a main over CUnit that returns the number of failures, takes -l
 * (list) and -t NAME (one test), and ends a hanging test. */
#ifndef LOOM_TEST_SUPPORT_H
#define LOOM_TEST_SUPPORT_H

#include <CUnit/CUnit.h>

struct test {
	const char *name;
	void (*run)(void);
	struct test *next;
};

/* TEST(name) { ... } is a test of this program; they run in the order in which they stand. */
#define TEST(name_)                                                                                \
	static void test_##name_(void);                                                            \
	__attribute__((constructor)) static void add_##name_(void)                                 \
	{                                                                                          \
		static struct test of_##name_ = {.name = #name_, .run = test_##name_};             \
		test_add(&of_##name_);                                                             \
	}                                                                                          \
	static void test_##name_(void)
void test_add(struct test *test);

/* Runs the tests, each bounded by `limit_s` seconds (0: 60); returns the exit status for main. */
int test_main(int argc, char **argv, const char *suite, unsigned limit_s);

/* The skip status: prints the reason and exits 77. */
_Noreturn void test_skip(const char *reason);

/* The build folder that this test runs in, as in "build": from the path of the executable. */
const char *test_build_dir(void);

#define TEST_MAIN(suite, limit_s)                                                                  \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return test_main(argc, argv, suite, limit_s);                                      \
	}

#endif
