/* SPDX-License-Identifier: Apache-2.0 */
/* The input is a text of inline PTX with three operands, which is parsed, not executed. */
#include "input.h"
#include "tests/fake_explore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_parts parts = {data, size};
	char *text = fuzz_part(&parts, NULL);
	FUZZ_CHECK(fake_parse(text, 3) == !*refusal);
	fake_forget();
	free(text);
	return 0;
}
