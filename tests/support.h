/* SPDX-License-Identifier: Apache-2.0 */
/* The test programs share this code. Their main function runs CUnit tests and returns the number of failures. The
 * options are -l (list the tests) and -t NAME (run one test). A program that hangs is ended. */
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

/* Runs the tests. All tests together may take `limit_s` seconds on an idle machine (0 means 60), as tests/limit.c
 * measures them. Returns the exit status for main. */
int test_main(int argc, char **argv, const char *suite, unsigned limit_s);

/* Prints the reason and exits with the skip status 77. */
_Noreturn void test_skip(const char *reason);

/* Returns the build folder of this test, such as "build". It is derived from the path of the executable. */
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

/* Starts n threads and waits for their ends. Thread i gets the address of element i of the array `each`, whose elements
 * have `bytes` bytes. */
void in_threads(void *(*run)(void *), void *each, size_t bytes, unsigned n);

/* Returns the next of a sequence of pseudo-random numbers that is the same on every machine. *state must not be 0. */
uint64_t xorshift(uint64_t *state);

/* Makes a new folder below $TMPDIR. test_remove() removes the folder with its contents. */
enum { TEST_FOLDER = 100 }; /* the size of an array for the folder's name */
void test_folder(char path[TEST_FOLDER]);
void test_remove(const char *folder);

#define TEST_MAIN(suite, limit_s)                                                                  \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return test_main(argc, argv, suite, limit_s);                                      \
	}

#endif
