/* SPDX-License-Identifier: Apache-2.0 */
/* Units of sizes and times. If several units have the same scale, messages use the first of them. */
#ifndef LOOM_CONFIG_UNITS_H
#define LOOM_CONFIG_UNITS_H

#include <stdint.h>

struct loom__unit {
	const char *name; /* in upper or lower case (KiB, kib); NULL ends a table */
	uint64_t scale;
};

/* A single letter has base 1024, as is usual for memory sizes. */
static const struct loom__unit loom__size_units[] = {
    {"B", 1},
    {"KiB", UINT64_C(1) << 10},
    {"MiB", UINT64_C(1) << 20},
    {"GiB", UINT64_C(1) << 30},
    {"TiB", UINT64_C(1) << 40},
    {"KB", UINT64_C(1000)},
    {"MB", UINT64_C(1000000)},
    {"GB", UINT64_C(1000000000)},
    {"TB", UINT64_C(1000000000000)},
    {"K", UINT64_C(1) << 10},
    {"M", UINT64_C(1) << 20},
    {"G", UINT64_C(1) << 30},
    {"T", UINT64_C(1) << 40},
    {0},
};

static const struct loom__unit loom__time_units[] = {
    {"ns", 1},
    {"us", UINT64_C(1000)},
    {"ms", UINT64_C(1000000)},
    {"s", UINT64_C(1000000000)},
    {"min", UINT64_C(60000000000)},
    {"m", UINT64_C(60000000000)},
    {"h", UINT64_C(3600000000000)},
    {0},
};

#endif
