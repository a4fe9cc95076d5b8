/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom doctor --profile: what a device's memory costs, as a conf for simulated devices. */
#ifndef LOOM_CLI_PROFILE_H
#define LOOM_CLI_PROFILE_H

#include "cli/options.h"

/* Measures on `devices`, as in [run] devices: on the first of them; a second one is the peer. `plugin_path`, `set`: the
 * command line's; plugin_path may be NULL. The conf goes to standard output. An exit code. */
int loom__profile(const struct loom__cli *cli, const char *devices, const char *plugin_path, const struct loom__settings *set);

#endif
