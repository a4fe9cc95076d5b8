/* SPDX-License-Identifier: Apache-2.0 */
/* Serves nobody, and names no time to ask again. */
#define NAME "qos_spins"
#define ADMIT(load, turn) ((turn)->requests = (load)->waiting % 3 ? (turn)->requests : 0)
#include "qos.h"
