/* SPDX-License-Identifier: Apache-2.0 */
/* The input is any file. The target reads it as a trace of costs, and as a list of sequence lengths. */
#include <stdlib.h>

#include "input.h"
#include "stack/host.h"

#include "plugins/sched_common/costs.c"
#include "plugins/workloads/tasks/ragged_lengths.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct loom__host host;
	struct loom_error err;
	struct costs c;
	uint32_t *length, n;
	loom__host_init(&host, NULL);
	char *text = malloc(size + 1);
	FUZZ_CHECK(text);
	memcpy(text, data, size);
	text[size] = 0;
	if (!costs_parse(&host.table, "input", text, size, &c, &err)) {
		FUZZ_CHECK(c.tasks && c.first_after[0] == 0);
		for (uint64_t i = 0; i < c.tasks; i++)
			for (uint64_t e = c.first_after[i]; e < c.first_after[i + 1]; e++)
				FUZZ_CHECK(c.after[e] < c.tasks && c.after[e] != i);
		FUZZ_CHECK(costs_critical_path(&c) >= 0);
		costs_free(&c);
	}
	if (!ragged_parse(&host.table, "input", text, &length, &n, &err)) {
		FUZZ_CHECK(n);
		for (uint32_t i = 0; i < n; i++)
			FUZZ_CHECK(length[i] >= 1 && length[i] <= RAGGED_LONGEST);
		free(length);
	}
	free(text);
	return 0;
}
