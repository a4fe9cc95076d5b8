/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a child that has loaded a plug-in. The plug-in may have written the answer itself. The input has the
 * child's exit status (two bytes), its answer and, after a line "%%", its output. All text must be printable. */
#include <stdlib.h>
#include <string.h>

#include "input.h"

#define loom__child_run answer_instead
#include "lab/inspect/probe.c"

static struct loom__child child;

int answer_instead(const char *const *argv, unsigned limit_ms, struct loom__child *out, struct loom_error *err)
{
	(void)argv, (void)limit_ms, (void)err;
	*out = (struct loom__child){.timed_out = child.timed_out, .status = child.status};
	loom__text_put(&out->answer, child.answer.at, child.answer.length);
	loom__text_put(&out->noise, child.noise.at, child.noise.length);
	return 0;
}

static void row(void *arg, const char *topic, const char *state, const char *found, const char *mend)
{
	const char *field[] = {topic, state, found, mend};
	(void)arg;
	for (size_t i = 0; i < LOOM__COUNT(field); i++)
		fuzz_printable("row", field[i], strlen(field[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct loom__probed out;
	struct loom_error err = {0};
	if (size < 2)
		return 0;
	struct fuzz_parts parts = {data + 2, size - 2};
	size_t n;
	char *answer = fuzz_part(&parts, &n);
	child = (struct loom__child){.timed_out = data[0] & 1,
				     .status = data[0] & 2 ? -1 : data[1] << (data[0] & 4 ? 8 : 0)};
	child.answer = (struct loom__text){.at = answer, .length = n};
	child.noise = (struct loom__text){.at = (char *)(uintptr_t)parts.at, .length = parts.left};
	if (loom__ask_rows("/bin/false", "doctor", "/a/device_x.so", 100, row, NULL, &err))
		fuzz_printable("sentence", err.text, strlen(err.text));
	if (loom__plugin_examine("/bin/false", "/proc/self/exe", 100, &out, &err))
		fuzz_printable("sentence", err.text, strlen(err.text));
	fuzz_printable("name", out.identity.name, strlen(out.identity.name));
	fuzz_printable("noise", out.noise, strlen(out.noise));
	free(answer);
	return 0;
}
