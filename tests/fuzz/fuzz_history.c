/* SPDX-License-Identifier: Apache-2.0 */
/* The input has up to three results. The target runs `gpuloom history` of them, as a table and as JSON, and `gpuloom
 * rerun` of the first result: its conf, and the list of changes. */
#include <stdlib.h>
#include <string.h>

#include "cli/conf.h"
#include "input.h"
#include "formats.h"
#include "cli/options.h"

extern const struct loom__usage loom__history_usage;

static void history(char *const *file, int files, int json)
{
	char command[] = "history", option[] = "--json", *argv[6] = {command}, *text;
	size_t n;
	struct loom__cli cli = {.out = open_memstream(&text, &n)};
	memcpy(argv + 1, file, (size_t)files * sizeof(*file));
	if (json)
		argv[1 + files] = option;
	int status = loom__command_run(&cli, &loom__history_usage, 1 + files + json, argv);
	fclose(cli.out);
	if (json && !status)
		fuzz_is_json(text, n);
	else
		fuzz_is_text(text, n);
	free(text);
}

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
	char *file[3];
	int files = 0;
	do {
		size_t n;
		char *text = fuzz_part(&parts, &n);
		file[files] = (char *)(uintptr_t)fuzz_file((unsigned)files, text, n);
		files++;
		free(text);
	} while (parts.left && files < 3);
	fuzz_stderr_begin();
	history(file, files, 0);
	history(file, files, 1);
	rerun(file[0]);
	fuzz_stderr_end();
	return 0;
}
