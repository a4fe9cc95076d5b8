/* SPDX-License-Identifier: Apache-2.0 */
/* Installs a signal handler. */
#define NAME "term_handler"
#define CREATED(i) signal(SIGUSR1, SIG_IGN)
#include "term.h"
