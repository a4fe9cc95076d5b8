/* SPDX-License-Identifier: Apache-2.0 */
/* Reading memory whose address a plug-in gave, without trusting the address. */
#ifndef LOOM_PEEK_H
#define LOOM_PEEK_H

#include <stddef.h>

/* Copies n bytes; returns how many could be read. */
size_t loom__peek(void *to, const void *from, size_t n);
/* Copies a string into to[room], always terminated. 0: it fitted or was cut; -1: not readable. */
int loom__peek_string(char *to, size_t room, const char *from);

#endif
