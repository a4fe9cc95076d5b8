/* SPDX-License-Identifier: Apache-2.0 */
/* Reads small languages: expressions, constraints, rules and values of papers. `at` is the position in a text. A
 * function that finds what it looks for moves `at` past it and returns 1; otherwise it returns 0, and `at` stays.
 * Blanks before it are skipped in both cases, so that `at` is the place of a mistake. */
#ifndef LOOM_TOKEN_H
#define LOOM_TOKEN_H

#include <stddef.h>

int loom__take(const char **at, const char *token);
int loom__take_number(const char **at, double *value);
/* Copies the text before the first of `stops`, or before the end, without blanks around it. Returns 0 if it is empty or
 * has no room. */
int loom__take_until(const char **at, const char *stops, char *word, size_t room);
/* Moves past the parenthesis that closes the one before `at`. Parentheses in quotes do not count. */
int loom__take_group(const char **at);
/* Copies the next name of a list "a, b,c", cut to `room`, and moves past it. Returns 0 at the end of the list. */
int loom__take_name(const char **list, char *name, size_t room);
int loom__take_end(const char **at); /* returns 1 if only blanks are left */

#endif
