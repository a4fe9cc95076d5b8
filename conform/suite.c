/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "conform/tests.h"

#define ROW(name_, fn, kind_, level_, flags_, seconds, what_)                                      \
	{                                                                                          \
		.name = name_, .what = what_, .run = loom__test_##fn, .kind = LOOM_##kind_,        \
		.level = level_, .flags = flags_, .limit_ms = (seconds)*1000                       \
	},
#define UNLOADED LOOM__TEST_UNLOADED
#define POLICY   LOOM__TEST_POLICY
#define ROUGH    LOOM__TEST_ROUGH
#define FUZZ     LOOM__TEST_FUZZ

static const struct loom__test tests[] = {
#include "conform/suite.def"
};

const struct loom__test *loom__suite(size_t *n)
{
	*n = LOOM__COUNT(tests);
	return tests;
}

void loom__validate_test_command(const char *self, int argc, char **argv)
{
	for (size_t i = 0; argc > 3 && i < LOOM__COUNT(tests); i++)
		if (!strcmp(tests[i].name, argv[1]))
			loom__trial_command(self, &tests[i], argc, argv);
}
