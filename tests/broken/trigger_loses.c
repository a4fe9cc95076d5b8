/* SPDX-License-Identifier: Apache-2.0 */
/* Loses every 100th fire. */
#define NAME "trigger_loses"
#define FIRED(n, ticket) ((ticket) % 100 == 99 ? 0 : (n))
#include "trigger.h"
