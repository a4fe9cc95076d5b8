/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of CPUs in the format that options and files of /sys use. */
#ifndef LOOM_LIB_CPU_LIST_H
#define LOOM_LIB_CPU_LIST_H

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Parses a list such as "0-3,8", which may contain blanks, into `set`, which has `bytes` bytes. Returns 0, or -1 for
 * bad text. */
static inline int loom__cpu_list(const char *text, cpu_set_t *set, size_t bytes)
{
	CPU_ZERO_S(bytes, set);
	while (*(text += strspn(text, ", \n"))) {
		char *end;
		unsigned long from = strtoul(text, &end, 10), to = from;
		if (end == text)
			return -1;
		if (*end == '-') {
			to = strtoul(text = end + 1, &end, 10);
			if (end == text)
				return -1;
		}
		if (to < from || to >= 8 * bytes || !strchr(", \n", *end))
			return -1;
		for (; from <= to; from++)
			CPU_SET_S(from, bytes, set);
		text = end;
	}
	return 0;
}

#endif
