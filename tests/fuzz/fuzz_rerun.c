/* SPDX-License-Identifier: Apache-2.0 */
/* The input is a result. The target runs `gpuloom rerun` of it: its conf, and the list of changes. */
#include <stdlib.h>
#include <string.h>

#include "cli/conf/conf.h"
#include "input.h"
#include "formats.h"
#include "cli/base/options.h"

static void rerun(const char *path)
{
	static const char now[] =
	    "{\"schema\": \"gpuloom.result/1\", \"gpuloom\": {\"version\": \"1\", \"revision\": \"z\"}, "
	    "\"config\": {\"run.seed\": {\"value\": \"1\"}}, \"plugins\": [{\"name\": \"sched_mgws\", "
	    "\"version\": \"3\", \"build_id\": \"9\"}], \"environment\": {\"before\": {\"cpu\": \"x\"}}}";
	struct loom__cli cli = {.out = stderr};
	struct loom_config *cfg;
	struct loom__diag diag = {0};
	struct loom__text t = {0};
	cJSON *result = cJSON_Parse(now);
	if (loom_config_create(&cfg, NULL))
		abort();
	for (int trust = 0; trust < 2; trust++)
		loom__result_conf(&cli, path, trust, cfg, &diag);
	loom__diag_text(&diag, &t);
	fuzz_printable("diag", t.at ? t.at : "", t.length);
	loom__rerun_tell(&cli, path, result);
	loom__text_free(&t);
	loom__diag_free(&diag);
	loom_config_destroy(cfg);
	cJSON_Delete(result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_parts parts = {data, size};
	size_t n;
	char *text = fuzz_part(&parts, &n);
	const char *file = fuzz_file(0, text, n);
	free(text);
	fuzz_stderr_begin();
	rerun(file);
	fuzz_stderr_end();
	return 0;
}
