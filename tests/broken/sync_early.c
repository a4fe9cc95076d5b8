/* SPDX-License-Identifier: Apache-2.0 */
/* Gives an item before it is there. */
#define NAME "sync_early"
#define REACHED(word, want) ((word) + 1 >= (want))
#include "sync.h"
