/* SPDX-License-Identifier: Apache-2.0 */
/* Does not heed the stop word. */
#define NAME "sync_deaf"
#define STOPPED(ended, c) ((void)(ended), 0)
#include "sync.h"
