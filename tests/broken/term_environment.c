/* SPDX-License-Identifier: Apache-2.0 */
/* Changes the environment. */
#define NAME "term_environment"
#define CREATED(i) setenv("TERM_ENVIRONMENT", "1", 1)
#include "term.h"
