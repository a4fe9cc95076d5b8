/* SPDX-License-Identifier: Apache-2.0 */
/* Says that all is done while one worker is still at work. */
#define NAME "term_early"
#define DONE(idle, c) (idle) + 1 >= (c)->workers
#include "term.h"
