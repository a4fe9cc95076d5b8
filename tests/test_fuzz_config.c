/* SPDX-License-Identifier: Apache-2.0 */
#define LOOM_FUZZ_NO_MAIN
#include "fuzz_config.c"

#include "support.h"

/* A fixed seed: the same inputs on every machine. A mistake ends in abort(). */
static void test_mutations(void)
{
	fuzz_config(1, 20000);
}

static const struct test tests[] = {{"mutations", test_mutations}};

TEST_MAIN("fuzz_config", 300, tests)
