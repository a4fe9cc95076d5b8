/* SPDX-License-Identifier: Apache-2.0 */
/* destroy() frees twice. */
#define NAME "term_twice"
#define DESTROY(i)                                                                                 \
	do {                                                                                       \
		const struct loom_host *host = (i) ? (i)->host : NULL;                             \
		if (i) {                                                                           \
			host->free(host, (i));                                                     \
			host->free(host, (i));                                                     \
		}                                                                                  \
	} while (0)
#include "term.h"
