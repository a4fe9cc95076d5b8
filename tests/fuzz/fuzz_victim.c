/* SPDX-License-Identifier: Apache-2.0 */
/* The input is the output of a victim of service requests, which is a program of the user. The target reads the
 * figures, and the last line as printed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"

#include "plugins/workloads/requests/victim.c"
#include "plugins/workloads/requests/victim_counters.c"
#define now_ns victims_now_ns /* both files have a function of this name */
#include "plugins/workloads/requests/victims.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct request_victim_run run = {0};
	int fd = open(fuzz_file(0, data, size), O_RDONLY | O_CLOEXEC);
	read_figures(fd, "program", &run);
	FUZZ_CHECK(run.rate >= 0 && isfinite(run.rate));
	FUZZ_CHECK(!isnan(request_victim_value(&run, "latency")));
	run.rate = 0;
	read_figures(fd, "openssl speed sha256", &run);
	FUZZ_CHECK(!isnan(run.rate));
	read_complaint(fd, &run);
	fuzz_printable("complaint", run.complaint, strlen(run.complaint));
	close(fd);
	return 0;
}
