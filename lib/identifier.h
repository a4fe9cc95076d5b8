/* SPDX-License-Identifier: Apache-2.0 */
/* A check of names that become identifiers in composed device code: of plug-ins and of task functions. */
#ifndef LOOM_LIB_IDENTIFIER_H
#define LOOM_LIB_IDENTIFIER_H

#include <string.h>

/* Returns 1 if the name is a C identifier of ASCII characters. NULL and "" are not. */
static inline int loom__is_identifier(const char *name)
{
	return name && *name && (*name < '0' || *name > '9') &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")];
}

#endif
