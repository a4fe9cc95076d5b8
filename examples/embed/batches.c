/* SPDX-License-Identifier: Apache-2.0 */
/* Executes many short runs on one open stack. The program prepares the next run while one is in progress. It sums the
 * squares of 0 to 1000 * N - 1, a thousand at a time.
 *   ./batches N */
#include <gpuloom/dev/dev.h>
#include <gpuloom/gpuloom.h>

#include <stdio.h>
#include <stdlib.h>

#define PIECE 100u

static const char conf[] = "[run]\ndevices = cpu:0\ntimeout = 10s\n[transport]\nuse = host\n"
			   "[scheduler]\nuse = mgws\n[termination]\nuse = counter\n";

/* param[0]: the first number; param[1]: the index of the slot for the sum. */
static void square(struct loom_ctx *c, const struct loom_task *t)
{
	uint64_t sum = 0;
	for (uint64_t i = t->param[0]; i < t->param[0] + PIECE; i++)
		sum += i * i;
	((uint64_t *)loom_at(c, t->data.ref))[t->param[1]] = sum;
}

static int die(const struct loom_error *err)
{
	fprintf(stderr, "batches: %s\n", err->text);
	return 1;
}

int main(int argc, char **argv)
{
	struct loom_error err = {0};
	struct loom_config *cfg;
	struct loom_stack *stack;
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 100, sum = 0;
	uint32_t tag;
	loom_ref ref;
	void *slot;
	if (loom_config_create(&cfg, &err) || loom_config_load_text(cfg, "built in", conf, &err) ||
	    loom_stack_open(cfg, NULL, &stack, &err) || loom_stack_task(stack, "square", square, &tag, &err) ||
	    loom_stack_alloc(stack, 1000 / PIECE * sizeof(uint64_t), &ref, &slot, &err))
		return die(&err);
	for (uint64_t batch = 0; batch <= n; batch++) {
		/* At this point the previous run is in progress. */
		for (uint64_t i = 0; i < 1000 / PIECE && batch < n; i++) {
			struct loom_task t = {.tag = tag, .param = {batch * 1000 + i * PIECE, i}, .data = {.ref = ref}};
			if (loom_stack_submit(stack, &t, 1, &err))
				return die(&err);
		}
		if (batch) {
			int rc;
			while ((rc = loom_stack_wait(stack, 1000000, NULL, &err)) == LOOM_EAGAIN)
				; /* returns each millisecond, so that the program could do other work */
			if (rc)
				return die(&err);
			for (uint64_t i = 0; i < 1000 / PIECE; i++)
				sum += ((uint64_t *)slot)[i];
		}
		if (batch < n && loom_stack_start(stack, &err))
			return die(&err);
	}
	printf("%llu\n", (unsigned long long)sum);
	loom_stack_close(stack);
	loom_config_destroy(cfg);
	return 0;
}
