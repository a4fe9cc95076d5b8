/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers whose decimal mark is a point in every locale. */
#ifndef LOOM_LIB_NUMBER_H
#define LOOM_LIB_NUMBER_H

#include <locale.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

static locale_t number__plain;

static inline void number__make_plain(void)
{
	number__plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* glibc has this one built in, and allocates nothing */
}

/* Returns the locale "C", which is never freed, or (locale_t)0 if memory has run out. */
static inline locale_t number_locale(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, number__make_plain);
	return number__plain;
}

/* Works like strtod(), but the decimal mark is a point in every locale. If memory runs out, reads nothing. */
static inline double number_read(const char *text, char **end)
{
	locale_t c = number_locale();
	*end = (char *)(uintptr_t)text;
	return c ? strtod_l(text, end, c) : 0;
}

#endif
