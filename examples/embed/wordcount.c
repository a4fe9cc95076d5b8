/* SPDX-License-Identifier: Apache-2.0 */
/* Counts words in files, like `wc -w`, with a gpuloom stack inside a program.
 *
 *   ./wordcount FILE...
 *
 * There is one initial task per file. It cuts the file into pieces at white space, and spawns a task for each piece.
 * Work stealing distributes these tasks over the workers. Each piece has its own result slot, so no atomics are
 * needed. */
#include <gpuloom/dev/dev.h>
#include <gpuloom/gpuloom.h>
#include <gpuloom/sched.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 65536u

/* Returns 1 for characters that separate words, as isspace() in the C locale. */
static int is_space(unsigned char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static uint32_t count_tag;

/* param[0]: the file's offset in the text; param[1]: its length; param[2]: the index of its first result slot;
 * param[3]: a reference to the slots. data: the text. */
static void split_file(struct loom_ctx *c, const struct loom_task *t)
{
	const char *text = loom_at(c, t->data.ref);
	uint64_t at = t->param[0], end = at + t->param[1], slot = t->param[2];
	while (at < end) {
		uint64_t cut = at + PIECE < end ? at + PIECE : end;
		while (cut < end && !is_space((unsigned char)text[cut]))
			cut++;
		struct loom_task piece = *t;
		piece.tag = count_tag;
		piece.param[0] = at;
		piece.param[1] = cut - at;
		piece.param[2] = slot++;
		if (LOOM_CALL(sched, spawn, c, &piece))
			return; /* the run has failed, and the host reports the error */
		at = cut;
	}
}

static void count_piece(struct loom_ctx *c, const struct loom_task *t)
{
	const char *text = (const char *)loom_at(c, t->data.ref) + t->param[0];
	uint64_t *slots = loom_at(c, t->param[3]), words = 0;
	int inside = 0;
	for (uint64_t i = 0; i < t->param[1]; i++) {
		int space = is_space((unsigned char)text[i]);
		words += !space && !inside;
		inside = !space;
	}
	if (c->lane == 0)
		slots[t->param[2]] = words;
}

static void die(const struct loom_error *err)
{
	fprintf(stderr, "wordcount: %s\n", err->text);
	exit(1);
}

static long size_of(const char *path)
{
	FILE *f = fopen(path, "rb");
	long n = f && !fseek(f, 0, SEEK_END) ? ftell(f) : -1;
	if (f)
		fclose(f);
	return n;
}

static const char conf[] = "[run]\n"
			   "devices = cpu:0\n"
			   "[transport]\n"
			   "use = host\n"
			   "[scheduler]\n"
			   "use = mgws\n"
			   "[termination]\n"
			   "use = counter\n";

int main(int argc, char **argv)
{
	struct loom_error err = {0};
	struct loom_config *cfg;
	struct loom_stack *stack;
	if (argc < 2) {
		fprintf(stderr, "usage: wordcount FILE...\n");
		return 2;
	}
	if (loom_config_create(&cfg, &err) || loom_config_load_text(cfg, "built in", conf, &err) ||
	    loom_stack_open(cfg, NULL, &stack, &err))
		die(&err);

	uint64_t bytes = 0, slots = 0;
	for (int i = 1; i < argc; i++) {
		long n = size_of(argv[i]);
		if (n < 0) {
			perror(argv[i]);
			return 1;
		}
		bytes += (uint64_t)n;
		slots += (uint64_t)n / PIECE + 1;
	}
	uint32_t split_tag;
	loom_ref text_ref, slot_ref;
	void *text, *slot;
	if (loom_stack_task(stack, "split_file", split_file, &split_tag, &err) ||
	    loom_stack_task(stack, "count_piece", count_piece, &count_tag, &err) ||
	    loom_stack_alloc(stack, bytes + 1, &text_ref, &text, &err) ||
	    loom_stack_alloc(stack, slots * sizeof(uint64_t), &slot_ref, &slot, &err))
		die(&err);

	uint64_t at = 0, first = 0;
	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");
		size_t n = f ? fread((char *)text + at, 1, bytes - at, f) : 0;
		if (f)
			fclose(f);
		struct loom_task task = {.tag = split_tag,
					 .param = {at, n, first, slot_ref},
					 .data = {.ref = text_ref, .bytes = bytes, .access = LOOM_READ}};
		if (loom_stack_submit(stack, &task, 1, &err))
			die(&err);
		at += n;
		first += n / PIECE + 1;
	}
	struct loom_result *result;
	if (loom_stack_run(stack, &result, &err))
		die(&err);

	uint64_t words = 0;
	double seconds = 0, executed = 0;
	for (uint64_t i = 0; i < slots; i++)
		words += ((uint64_t *)slot)[i];
	loom_result_median(result, "seconds", &seconds);
	loom_result_median(result, "executed", &executed);
	printf("%llu\n", (unsigned long long)words);
	fprintf(stderr, "wordcount: %.0f tasks in %.3g ms\n", executed, seconds * 1e3);
	loom_result_destroy(result);
	loom_stack_close(stack);
	loom_config_destroy(cfg);
	return 0;
}
