/* SPDX-License-Identifier: Apache-2.0 */
/* Refuses an option without a sentence. */
#define NAME "term_mute"
#define CREATED(i)                                                                                 \
	if ((i)->opts->size == 1) {                                                                \
		host->free(host, (i));                                                             \
		return LOOM_EINVAL;                                                                \
	}
#include "term.h"
