/* SPDX-License-Identifier: Apache-2.0 */
/* All instances are one. */
#define NAME "term_shared"
#define CREATE(host)                                                                               \
	static struct instance *one;                                                               \
	if (one) {                                                                                 \
		host->free(host, i);                                                               \
		*self = one;                                                                       \
		return 0;                                                                          \
	}                                                                                          \
	one = i
#define DESTROY(i) (void)(i)
#include "term.h"
