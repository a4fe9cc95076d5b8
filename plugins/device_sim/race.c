/* SPDX-License-Identifier: Apache-2.0 */
/* The machine model without the calls that the compiler inserts. The composed program has its own (gpuloom/dev/sim.h),
 * so this plug-in can be built with ThreadSanitizer, or be loaded by a program that is. */
#define RACE_NO_CALLS
#include "../device_common/explore/race.c"
