/* SPDX-License-Identifier: Apache-2.0 */
/* Does not clear private memory between samples. */
#define NAME "device_local"
#define CLEAR_LOCAL(w, d) (void)(w)
#include "device.h"
