/* SPDX-License-Identifier: Apache-2.0 */
/* Loses the last byte of an item. */
#define NAME "sync_short"
#define COPIED(bytes) ((bytes) - 1)
#include "sync.h"
