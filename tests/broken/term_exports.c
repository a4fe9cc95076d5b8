/* SPDX-License-Identifier: Apache-2.0 */
/* Exports a function of its own. */
#define NAME "term_exports"
#include "term.h"

LOOM_EXPORT void term_exports_helper(void);
void term_exports_helper(void)
{
}
