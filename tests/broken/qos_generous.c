/* SPDX-License-Identifier: Apache-2.0 */
/* Allows more requests than the policies before it left. */
#define NAME "qos_generous"
#define ADMIT(load, turn) ((void)(load), (turn)->requests += 5)
#include "qos.h"
