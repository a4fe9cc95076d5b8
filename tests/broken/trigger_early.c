/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an operation one count too early. */
#define NAME "trigger_early"
#define DUE(count, at) ((count) + 1 >= (at))
#include "trigger.h"
