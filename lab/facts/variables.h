/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOOM_VARIABLES_H
#define LOOM_VARIABLES_H

#include "config/config.h"

/* Reads variables of the form GPULOOM_SECTION__KEY, where '_' stands for dots and dashes of the section. So one
 * variable may stand for several sections; the section that has declared the key gets the value. If no section has
 * declared it, loom__config_unknown() may warn. */
int loom__config_read_environment(struct loom_config *cfg, char *const *environment, struct loom__diag *diag);

#endif
