/* SPDX-License-Identifier: Apache-2.0 */
/* The input is a report of a GPU compiler about a program: a log of ptxas, or the notes in a code object. */
#include <stdlib.h>

#include "input.h"

#include "plugins/device_cuda/ptxas.c"
#include "plugins/device_hip/codeobject.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_parts parts = {data, size};
	struct resources r;
	char *log = fuzz_part(&parts, NULL);
	resources_read(log, "loom_kernel", &r);
	code_resources((const char *)data, size, &r);
	FUZZ_CHECK(r.nested <= r.stack);
	free(log);
	return 0;
}
