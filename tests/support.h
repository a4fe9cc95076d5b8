/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of the test programs: a main over CUnit that returns the number of failures, takes -l (list) and -t NAME
 * (one test), and ends when a test hangs. */
#ifndef LOOM_TEST_SUPPORT_H
#define LOOM_TEST_SUPPORT_H

#include <CUnit/CUnit.h>
#include <stdint.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct test {
	const char *name;
	void (*run)(void);
	struct test *next;
};

/* TEST(name) { ... } is a test of this program; tests run in the order of the file. */
#define TEST(name_)                                                                                \
	static void test_##name_(void);                                                            \
	__attribute__((constructor)) static void add_##name_(void)                                 \
	{                                                                                          \
		static struct test of_##name_ = {.name = #name_, .run = test_##name_};             \
		test_add(&of_##name_);                                                             \
	}                                                                                          \
	static void test_##name_(void)
void test_add(struct test *test);

/* Runs the tests, which together are bounded by `limit_s` seconds of an idle machine (0: 60; tests/limit.c). Returns
 * the exit status for main. */
int test_main(int argc, char **argv, const char *suite, unsigned limit_s);

/* The skip status: prints the reason and exits 77. */
_Noreturn void test_skip(const char *reason);

/* The build folder that this test runs in, as in "build": from the path of the executable. */
const char *test_build_dir(void);

/* Whether the text contains all words, which are separated by '&'. Prints both if not. */
int test_says(const char *text, const char *words);

/* A call that must fail with this code, and with these words in *err. */
#define REFUSED(call, code_, err, words)                                                           \
	do {                                                                                       \
		CU_ASSERT_EQUAL(call, code_);                                                      \
		CU_ASSERT(test_says((err).text, words));                                           \
	} while (0)

/* Runs n threads to their end, each with its own element, of size `bytes`, of a list. */
void in_threads(void *(*run)(void *), void *each, size_t bytes, unsigned n);

/* The same numbers on every machine. *state is not 0. */
uint64_t xorshift(uint64_t *state);

/* A new folder below $TMPDIR. test_remove() removes it with its contents. */
enum { TEST_FOLDER = 100 }; /* bytes of its name */
void test_folder(char path[TEST_FOLDER]);
void test_remove(const char *folder);

#define TEST_MAIN(suite, limit_s)                                                                  \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return test_main(argc, argv, suite, limit_s);                                      \
	}

#endif
