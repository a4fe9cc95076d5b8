/* SPDX-License-Identifier: Apache-2.0 */
/* Forgets the fires that came before a post. */
#define NAME "trigger_forgets"
#define POSTED(count) (count)
#include "trigger.h"
