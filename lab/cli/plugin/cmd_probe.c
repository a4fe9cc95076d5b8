/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom probe QUESTION FD PATH (hidden): the child process that loads code which may crash or hang. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/doctor/doctor.h"
#include "inspect/child.h"
#include "inspect/probe.h"

int loom__cmd_probe(struct loom__cli *cli, int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "fabric")) {
		int fd = atoi(argv[2]);
		loom__child_begin(fd);
		loom__fabric_answer(fd);
		_exit(0);
	}
	loom__probe_command(argc, argv);
	return loom__refuse(cli, LOOM_EXIT_USAGE, "probe is an internal command of gpuloom: "
			    "use `gpuloom describe NAME`");
}
