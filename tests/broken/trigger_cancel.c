/* SPDX-License-Identifier: Apache-2.0 */
/* cancel() says 0 and does nothing. */
#define NAME "trigger_cancel"
#define CANCEL(w) (void)(w)
#include "trigger.h"
