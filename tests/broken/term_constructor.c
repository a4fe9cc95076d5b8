/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a file when it is loaded. */
#define NAME "term_constructor"
#include "term.h"

__attribute__((constructor)) static void when_loaded(void)
{
	(void)!open("/dev/null", O_RDONLY);
}
