/* SPDX-License-Identifier: Apache-2.0 */
/* Does not close the descriptors of its memory. */
#define NAME "transport_descriptor"
#define CLOSE(fd) (void)(fd)
#include "transport.h"
