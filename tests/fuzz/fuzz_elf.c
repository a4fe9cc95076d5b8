/* SPDX-License-Identifier: Apache-2.0 */
/* The input is a file. The target reads the file in two ways: as a plug-in, whose identity is read before it is
 * loaded, and as the note that a build writes in place of a plug-in that was left out. Both must give printable text.
 * */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "input.h"

static const char *note; /* the path of the file that absent.c reads */
#define loom__read_file(path, ...) loom__read_file(((void)(path), note), __VA_ARGS__)
#include "core/plugin/absent.c"
#undef loom__read_file
#include "plugin/identity.h"

static void shown(const char *text)
{
	fuzz_printable("manifest", text, strlen(text));
	FUZZ_CHECK(!strpbrk(text, "\n\t"));
}

static void as_plugin(const uint8_t *data, size_t size)
{
	struct loom_manifest m;
	struct loom_error err = {0};
	int found, rc = loom__elf_read(fuzz_file(0, data, size), &found, &m, &err);
	FUZZ_CHECK(!rc || *err.text);
	shown(m.name);
	shown(m.version);
	shown(m.license);
	shown(m.summary);
	if (!rc && found && loom__identity_judge("/a/sched_x.so", &m, &err))
		shown(err.text);
}

static void as_note(const uint8_t *data, size_t size)
{
	struct loom__absent a;
	struct loom_error err;
	note = fuzz_file(1, data, size);
	if (loom__absent_read("/a/sched_x.absent", &a)) {
		loom__absent_fail(&a, &err);
		shown(err.text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	as_plugin(data, size);
	as_note(data, size);
	return 0;
}
