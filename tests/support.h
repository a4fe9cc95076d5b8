/* SPDX-License-Identifier: Apache-2.0 */
/* The test programs share this code: a main over CUnit that returns the number of failures. It takes -l (list) and -t
 * NAME (one test), and ends when a test hangs. */
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

/* TEST(name) { ... } is a test of this program. Tests run in the order of the file. */
#define TEST(name_)                                                                                \
	static void test_##name_(void);                                                            \
	__attribute__((constructor)) static void add_##name_(void)                                 \
	{                                                                                          \
		static struct test of_##name_ = {.name = #name_, .run = test_##name_};             \
		test_add(&of_##name_);                                                             \
	}                                                                                          \
	static void test_##name_(void)
void test_add(struct test *test);

/* Runs the tests. Together they may take `limit_s` seconds of an idle machine (0 means 60; tests/limit.c). Returns the
 * exit status for main. */
int test_main(int argc, char **argv, const char *suite, unsigned limit_s);

/* Prints the reason and exits with the skip status 77. */
_Noreturn void test_skip(const char *reason);

/* Returns the build folder of this test, such as "build", from the path of the executable. */
const char *test_build_dir(void);

/* Returns whether the text contains all words, which are separated by '&'. Prints the text and the words if it does
 * not. */
int test_says(const char *text, const char *words);

/* Checks that a call fails with this code, and with these words in *err. */
#define REFUSED(call, code_, err, words)                                                           \
	do {                                                                                       \
		CU_ASSERT_EQUAL(call, code_);                                                      \
		CU_ASSERT(test_says((err).text, words));                                           \
	} while (0)

/* Runs n threads to their end. Each thread gets one element of a list with elements of `bytes` bytes. */
void in_threads(void *(*run)(void *), void *each, size_t bytes, unsigned n);

/* Returns pseudo-random numbers that are the same on every machine. *state is not 0. */
uint64_t xorshift(uint64_t *state);

/* Makes a new folder below $TMPDIR. test_remove() removes the folder with its contents. */
enum { TEST_FOLDER = 100 }; /* bytes of the folder's name */
void test_folder(char path[TEST_FOLDER]);
void test_remove(const char *folder);

#define TEST_MAIN(suite, limit_s)                                                                  \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return test_main(argc, argv, suite, limit_s);                                      \
	}

#endif
