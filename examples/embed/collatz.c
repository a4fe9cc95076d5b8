/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the Collatz steps of the numbers from 1 to N on any devices. The task function is given as source or as IR.
 *
 *   ./collatz N [DEVICES [FILE...]]      DEVICES: "cpu:0" (default), "cuda:0", ...
 *
 * A FILE *.h is source, which is compiled for each device when the run starts. The default is collatz.dev.h. Other
 * files are made from collatz_ir.c, one per kind of device: collatz.so for CPUs, collatz.ltoir or collatz.ptx for
 * NVIDIA GPUs. */
#include <gpuloom/gpuloom.h>
#include <gpuloom/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int die(const struct loom_error *err)
{
	fprintf(stderr, "collatz: %s\n", err->text);
	return 1;
}

static int add_file(struct loom_stack *stack, const char *file, uint32_t *tag, struct loom_error *err)
{
	static const char *const names[] = {"collatz_range"};
	const char *end = strrchr(file, '.');
	return end && !strcmp(end, ".h") ? loom_stack_source(stack, file, NULL, names, 1, tag, err) :
					   loom_stack_ir(stack, file, NULL, 0, names, 1, tag, err);
}

int main(int argc, char **argv)
{
	struct loom_error err = {0};
	struct loom_config *cfg;
	struct loom_stack *stack;
	struct loom_result *result = NULL;
	char conf[400];
	uint32_t tag;
	loom_ref ref;
	void *host;
	if (argc < 2) {
		fprintf(stderr, "usage: collatz N [DEVICES [FILE...]]\n");
		return 2;
	}
	snprintf(conf, sizeof(conf),
		 "[run]\ndevices = %s\n[transport]\nuse = p2p\n[scheduler]\nuse = mgws\n[scheduler.mgws]\n"
		 "granularity = lane\n[termination]\nuse = hcounter\n", /* each lane runs a task of its own */
		 argc > 2 ? argv[2] : "cpu:0");
	if (loom_config_create(&cfg, &err) || loom_config_load_text(cfg, "built in", conf, &err) ||
	    loom_stack_open(cfg, NULL, &stack, &err) ||
	    add_file(stack, argc > 3 ? argv[3] : "collatz.dev.h", &tag, &err) ||
	    loom_stack_alloc(stack, LOOM_MAX_DEVICES * 64, &ref, &host, &err))
		return die(&err);
	for (int i = 4; i < argc; i++)
		if (add_file(stack, argv[i], &tag, &err))
			return die(&err);
	struct loom_task all = {.tag = tag, .param = {1, strtoull(argv[1], NULL, 10)}, .data = {.ref = ref}};
	if (loom_stack_submit(stack, &all, 1, &err) || loom_stack_run(stack, &result, &err))
		return die(&err);
	uint64_t steps = 0;
	for (int d = 0; d < LOOM_MAX_DEVICES; d++)
		steps += ((const uint64_t *)host)[8 * d];
	printf("%llu\n", (unsigned long long)steps);
	loom_result_destroy(result);
	loom_stack_close(stack);
	loom_config_destroy(cfg);
	return 0;
}
