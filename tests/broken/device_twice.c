/* SPDX-License-Identifier: Apache-2.0 */
/* A worker runs a sample twice. */
#define NAME "device_twice"
#define RUN(d, c)                                                                                  \
	do {                                                                                       \
		(d)->run(c);                                                                       \
		(d)->run(c);                                                                       \
	} while (0)
#include "device.h"
