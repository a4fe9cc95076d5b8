/* SPDX-License-Identifier: Apache-2.0 */
/* destroy(NULL) crashes. */
#define NAME "term_null"
#define DESTROY(i) (i)->host->free((i)->host, (i))
#include "term.h"
