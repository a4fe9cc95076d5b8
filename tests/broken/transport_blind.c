/* SPDX-License-Identifier: Apache-2.0 */
/* Goes on when a device refuses to map. */
#define NAME "transport_blind"
#define REFUSED(code) ((code) && (code = 0))
#include "transport.h"
