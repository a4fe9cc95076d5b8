/* SPDX-License-Identifier: Apache-2.0 */
/* The input is the environment of a rank: GPULOOM_RANK, _RANKS, _ROOT, _TOKEN, then a file for GPULOOM_TOKEN_FILE, with
 * lines "%%" between them. Accepted values must be within bounds. No connection is made. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats.h"
#include "input.h"
#include "ranks/boot.h"

static char *variable(const char *name, const char *value)
{
	char *text;
	if (asprintf(&text, "%s=%s", name, value) < 0)
		abort();
	return text;
}

static void tokens(void)
{
	unsigned char token[16];
	struct loom_error err = {0};
	if (loom__token_read(token, &err))
		fuzz_say(err.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const name[] = {"GPULOOM_RANK", "GPULOOM_RANKS", "GPULOOM_ROOT", "GPULOOM_TOKEN"};
	struct fuzz_parts parts = {data, size};
	char *own[LOOM__COUNT(name) + 2] = {0}, **real = environ;
	struct loom__boot_plan plan;
	struct loom__root root;
	struct loom_error err = {0};
	size_t n = 0, length;
	for (; n < LOOM__COUNT(name); n++) {
		char *value = fuzz_part(&parts, NULL);
		if (n == 2 && loom__root_read(value, &root, &err))
			fuzz_say(err.text);
		else if (n == 2)
			FUZZ_CHECK(*root.host && strlen(root.host) < sizeof(root.host) && atoi(root.port) > 0 &&
				   atoi(root.port) < 65536);
		own[n] = variable(name[n], value);
		free(value);
	}
	environ = own;
	if (loom__boot_plan(0, &plan, &err))
		fuzz_say(err.text);
	else if (plan.how == LOOM__BOOT_ROOT)
		FUZZ_CHECK(plan.rank < plan.ranks);
	tokens();
	char *file = fuzz_part(&parts, &length);
	own[n++] = variable("GPULOOM_TOKEN_FILE", fuzz_file(0, file, length));
	tokens();
	environ = real;
	free(file);
	while (n)
		free(own[--n]);
	return 0;
}
