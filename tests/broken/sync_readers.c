/* SPDX-License-Identifier: Apache-2.0 */
/* Frees a slot when the first of its readers has released it. */
#define NAME "sync_readers"
#define RELEASED(k) ((k)->readers > 1 ? 2u : 1u)
#include "sync.h"
