/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a target without libFuzzer: once with each file of a folder, and with N mutations of these files. Every run
 * makes the same mutations.
 *   TARGET FILE|FOLDER [N [KEEP]]
 * The program writes each input into the file KEEP before it runs the target, so that the file has the input of a
 * crash. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "input.h"

#define PATIENCE_S 60 /* seconds of CPU time for one input */
#define MOST (64u << 10) /* maximum bytes of a mutation */

struct input {
	uint8_t *bytes;
	size_t n;
};

static int keep = -1;
static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

/* Runs the target on memory of exactly this size, so that a sanitizer finds any access beyond the end. */
static void run(const uint8_t *bytes, size_t n)
{
	const struct itimerval limit = {.it_value.tv_sec = PATIENCE_S};
	uint8_t *copy = malloc(n + !n);
	if (!copy || (keep >= 0 && (ftruncate(keep, 0) || pwrite(keep, bytes, n, 0) != (ssize_t)n)))
		exit(2);
	setitimer(ITIMER_VIRTUAL, &limit, NULL); /* the timer ends the process by SIGVTALRM */
	if (n)
		memcpy(copy, bytes, n);
	LLVMFuzzerTestOneInput(copy, n);
	free(copy);
}

static struct input read_input(const char *folder, const char *name)
{
	char path[4096];
	struct input in = {0};
	snprintf(path, sizeof(path), "%s%s%s", folder, name ? "/" : "", name ? name : "");
	FILE *f = fopen(path, "re");
	if (!f || fseek(f, 0, SEEK_END))
		exit(2);
	in.n = (size_t)ftell(f);
	in.bytes = malloc(in.n + 1);
	rewind(f);
	if (!in.bytes || fread(in.bytes, 1, in.n, f) != in.n)
		exit(2);
	fclose(f);
	return in;
}

/* Mutates b: changes bits, inserts limits of integer types, omits or moves parts, or takes parts from another input. */
static size_t mutate(uint8_t *b, size_t n, const struct input *other)
{
	static const uint64_t limit[] = {0, 1, 0x7f, 0xff, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX, 1ull << 40};
	for (uint64_t edits = 1 + draw(4); edits; edits--) {
		size_t at = n ? draw(n) : 0, length = n ? 1 + draw(n - at < 64 ? n - at : 64) : 0;
		size_t word = 1u << draw(4);
		switch (draw(6)) {
		case 0:
			if (n)
				b[at] ^= (uint8_t)(1u << draw(8));
			break;
		case 1:
			if (n)
				b[at] = (uint8_t)draw(256);
			break;
		case 2:
			if (at + word <= n)
				memcpy(b + at, &limit[draw(sizeof(limit) / sizeof(limit[0]))], word);
			break;
		case 3:
			memmove(b + at, b + at + length, n - at - length);
			n -= length;
			break;
		case 4:
			if (n + length <= MOST) {
				memmove(b + at + length, b + at, n - at);
				n += length;
			}
			break;
		default:
			if (other->n && at < n) {
				size_t from = draw(other->n),
				       most = other->n - from < n - at ? other->n - from : n - at;
				memcpy(b + at, other->bytes + from, 1 + draw(most));
			}
		}
	}
	return n;
}

static int is_file(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	static uint8_t work[MOST];
	struct dirent **name = NULL;
	if (argc < 2)
		return 2;
	if (argc > 3 && (keep = open(argv[3], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) < 0)
		return 2;
	int n = scandir(argv[1], &name, is_file, alphasort), many = n > 0 ? n : 1;
	struct input *in = calloc((size_t)many, sizeof(*in));
	if (!in || !n)
		return 2;
	for (int i = 0; i < many; i++) /* all files are read first, because a target may change the working directory */
		in[i] = read_input(argv[1], name ? name[i]->d_name : NULL);
	for (int i = 0; i < many; i++)
		run(in[i].bytes, in[i].n);
	long mutations = argc > 2 ? atol(argv[2]) : 0;
	for (long i = 0; i < mutations; i++) {
		const struct input *from = &in[i % many];
		size_t bytes = from->n < MOST ? from->n : MOST;
		if (bytes)
			memcpy(work, from->bytes, bytes);
		run(work, mutate(work, bytes, &in[draw((uint64_t)many)]));
	}
	printf("%d inputs, %ld mutations\n", many, mutations);
	for (int i = 0; i < many; i++) {
		free(in[i].bytes);
		free(name ? name[i] : NULL);
	}
	free(name);
	free(in);
	return 0;
}
