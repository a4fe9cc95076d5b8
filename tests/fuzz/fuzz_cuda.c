/* SPDX-License-Identifier: Apache-2.0 */
/* The input is a preprocessed CUDA source for the rewriter of `gpuloom explore`. */
#include <stdlib.h>
#include <string.h>

#include "explore/rewrite.c"
#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_parts parts = {data, size};
	size_t n, bytes;
	char *text = fuzz_part(&parts, &n), *out, why[300] = "";
	FILE *f = open_memstream(&out, &bytes);
	FUZZ_CHECK(f);
	int rc = explore_rewrite(text, n, f, why, sizeof(why));
	fclose(f);
	FUZZ_CHECK(rc ? strchr(why, ':') != NULL : !*why);
	free(out);
	free(text);
	return 0;
}
