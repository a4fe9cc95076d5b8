/* SPDX-License-Identifier: Apache-2.0 */
/* Writes into its options. */
#define NAME "term_options"
#define CREATED(i) ((struct opts *)(uintptr_t)(i)->opts)->size++
#include "term.h"
