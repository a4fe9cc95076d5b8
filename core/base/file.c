/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/base.h"

void loom__beside(struct loom__text *path, const char *file, const char *name)
{
	const char *slash = strrchr(file, '/');
	if (name[0] != '/' && slash)
		loom__text_put(path, file, (size_t)(slash - file) + 1);
	loom__text_add(path, "%s", name);
}

int loom__read_file(const char *path, size_t most, char **bytes, size_t *length, struct loom_error *err)
{
	struct loom__text text = {0};
	const char *why = loom__text_read(&text, path, most);
	int number = errno;
	if (!why) {
		*bytes = text.at;
		*length = text.length;
		return 0;
	}
	int large = !number && text.length > most;
	loom__text_free(&text);
	if (large)
		return LOOM__FAIL(err, LOOM_EINVAL, "'%s' %s of %zu bytes", path, why, most);
	return number ? LOOM__FAIL(err, loom__errno_code(number), "cannot read '%s': %s", path, why)
		      : LOOM__FAIL(err, LOOM_EINVAL, "'%s' %s", path, why);
}
