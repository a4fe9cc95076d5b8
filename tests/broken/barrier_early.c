/* SPDX-License-Identifier: Apache-2.0 */
/* Lets workers go before the last one has come. */
#define NAME "barrier_early"
#define COUNT(count) ((count) > 2 ? (count) - 1 : (count))
#include "barrier.h"
