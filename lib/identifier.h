/* SPDX-License-Identifier: Apache-2.0 */
/* Names that device code is composed of. */
#ifndef LOOM_LIB_IDENTIFIER_H
#define LOOM_LIB_IDENTIFIER_H

#include <string.h>

/* Returns 1 for an identifier of C in ASCII characters; NULL and "" are none. */
static inline int loom__is_identifier(const char *name)
{
	return name && *name && (*name < '0' || *name > '9') &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")];
}

#endif
