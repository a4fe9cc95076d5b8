/* SPDX-License-Identifier: Apache-2.0 */
/* Leaks one descriptor per instance. */
#define NAME "term_leak"
#define CREATED(i) ((void)!open("/dev/null", O_RDONLY | O_CLOEXEC))
#include "term.h"
