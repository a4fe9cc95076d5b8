/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOOM_LIB_NUMBER_H
#define LOOM_LIB_NUMBER_H

#include <locale.h>
#include <stdint.h>
#include <stdlib.h>

/* Works like strtod(), but the decimal mark is a point in every locale. If memory runs out, reads nothing. */
static inline double number_read(const char *text, char **end)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	double v = 0;
	*end = (char *)(uintptr_t)text;
	if (!c)
		return 0;
	v = strtod_l(text, end, c);
	freelocale(c);
	return v;
}

#endif
