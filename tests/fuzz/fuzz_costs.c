/* SPDX-License-Identifier: Apache-2.0 */
/* The input is any file. The target reads it as a trace of costs, as a list of sequence lengths, and as the choices of experts. */
#include <stdlib.h>

#include "input.h"
#include "stack/host.h"

#include "plugins/sched_common/costs.c"
#include "plugins/workloads/tasks/experts_routing.c"
#include "plugins/workloads/tasks/ragged_lengths.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct loom__host host;
	struct loom_error err;
	struct costs c;
	uint32_t *length, n;
	struct routing r;
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
	if (!routing_parse(&host.table, "input", text, &r, &err)) {
		for (uint64_t i = 0; i < (uint64_t)r.steps * r.tokens; i++)
			for (uint32_t k = 0; k < r.top; k++)
				FUZZ_CHECK(r.choice[i * r.top + k] < r.experts && r.source[i] < r.ranks);
		routing_free(&r);
	}
	free(text);
	return 0;
}
