/* SPDX-License-Identifier: Apache-2.0 */
/* Task functions that come as source: counts the Collatz steps of the numbers from 1 to N on any devices.
 *
 *   ./collatz N [DEVICES [SOURCE]]      DEVICES: "cpu:0" (default), "cuda:0", ...
 *
 * SOURCE (default: collatz.dev.h) is compiled when the run begins, for each device. */
#include <gpuloom/gpuloom.h>

#include <stdio.h>
#include <stdlib.h>

static int die(const struct loom_error *err)
{
	fprintf(stderr, "collatz: %s\n", err->text);
	return 1;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"collatz_range"};
	struct loom_error err = {0};
	struct loom_config *cfg;
	struct loom_stack *stack;
	struct loom_result *result = NULL;
	char conf[400];
	uint32_t tag;
	loom_ref ref;
	void *host;
	if (argc < 2) {
		fprintf(stderr, "usage: collatz N [DEVICES [SOURCE]]\n");
		return 2;
	}
	snprintf(conf, sizeof(conf),
		 "[run]\ndevices = %s\n[transport]\nuse = host\n[scheduler]\nuse = mgws\n"
		 "[termination]\nuse = counter\n",
		 argc > 2 ? argv[2] : "cpu:0");
	if (loom_config_create(&cfg, &err) || loom_config_load_text(cfg, "built in", conf, &err) ||
	    loom_stack_open(cfg, NULL, &stack, &err) ||
	    loom_stack_source(stack, argc > 3 ? argv[3] : "collatz.dev.h", NULL, names, 1, &tag, &err) ||
	    loom_stack_alloc(stack, sizeof(uint64_t), &ref, &host, &err))
		return die(&err);
	struct loom_task all = {.tag = tag, .param = {1, strtoull(argv[1], NULL, 10)}, .data = {.ref = ref}};
	if (loom_stack_submit(stack, &all, 1, &err) || loom_stack_run(stack, &result, &err))
		return die(&err);
	printf("%llu\n", (unsigned long long)*(uint64_t *)host);
	loom_result_destroy(result);
	loom_stack_close(stack);
	loom_config_destroy(cfg);
	return 0;
}
