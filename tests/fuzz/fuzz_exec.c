/* SPDX-License-Identifier: Apache-2.0 */
/* The input has the output of an external program and, after lines "%%", the options `metrics`, `expect`, `command` and
 * `cores` of the workload that runs the program. Values of figures must be numbers. Names, units and messages must be
 * printable. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "input.h"
#include "formats.h"
#include "stack/host.h"

#include "plugins/workloads/exec/command.c"
#include "plugins/workloads/exec/output.c"

static void split_command(struct instance *x)
{
	struct request *r = calloc(1, sizeof(*r));
	struct loom_error err = {0};
	if (!command_split(x, r, &err)) {
		const char *at = r->text, *end = r->text + sizeof(r->text);
		FUZZ_CHECK(r->args && r->args < EXEC_ARGS);
		for (uint32_t i = 0; i < r->args; i++) {
			const char *stop = memchr(at, 0, (size_t)(end - at));
			FUZZ_CHECK(stop != NULL);
			at = stop + 1;
		}
	}
	free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct answer answer;
	static struct request request = {.path = "/bin/true"};
	struct fuzz_parts parts = {data, size};
	struct loom__host host;
	struct loom_report report = {0};
	struct loom_error err = {0};
	size_t n;
	char *out = fuzz_part(&parts, &n), *metrics = fuzz_part(&parts, NULL), *expect = fuzz_part(&parts, NULL);
	char *command = fuzz_part(&parts, NULL), *cores = fuzz_part(&parts, NULL);
	const struct options o = {.command = command, .metrics = metrics, .expect = expect, .cores = cores};
	struct instance x = {.host = &host.table, .options = &o, .request = &request};
	loom__host_init(&host, NULL);
	split_command(&x);
	answer.out_total = n;
	if (n > sizeof(answer.out)) /* `out` is a ring, which keeps only the end of a long output */
		n = sizeof(answer.out);
	memcpy(answer.out, out, n);
	if (!output_check(&x, &err) && !output_add(&x, &answer, &report, &err)) {
		cJSON *all = cJSON_CreateObject();
		for (size_t i = 0; i < report.count; i++) {
			const struct loom__metric *m = &report.list[i];
			FUZZ_CHECK(isfinite(m->value) && *m->name);
			cJSON *one = loom__json_add_object(all, m->name);
			loom__json_add_text(one, "unit", m->unit);
			loom__json_add_number(one, "value", m->value);
		}
		char *json = loom__json_print(all, 1);
		fuzz_is_json(json, strlen(json));
		free(json);
		cJSON_Delete(all);
	}
	fuzz_say(err.text);
	loom__report_clear(&report);
	free(out), free(metrics), free(expect), free(command), free(cores);
	return 0;
}
