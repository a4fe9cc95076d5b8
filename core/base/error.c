/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuloom/gpuloom.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

const char *loom_version(void)
{
	return LOOM_VERSION_TEXT;
}

const char *loom_strerror(int code)
{
	switch (code) {
	case LOOM_OK:
		return "success";
#define TEXT(name, value, text)                                                                    \
	case LOOM_##name:                                                                          \
		return text;
		LOOM_ERR_MAP(TEXT)
#undef TEXT
	}
	return "unknown error code";
}

int loom__vfail(struct loom_error *err, int code, const char *file, int line, const char *fmt, va_list args)
{
	if (!err)
		return code;
	err->code = code;
	err->file = file;
	err->line = line;
	err->option = NULL;
	int n = vsnprintf(err->text, sizeof(err->text), fmt, args);
	if (n < 0) {
		snprintf(err->text, sizeof(err->text), "%s", loom_strerror(code));
	} else if ((size_t)n >= sizeof(err->text)) {
		/* Mark the cut by dots. The cut must not be inside a UTF-8 character. */
		size_t end = sizeof(err->text) - sizeof("...");
		while (end && ((unsigned char)err->text[end] & 0xc0) == 0x80)
			end--;
		memcpy(err->text + end, "...", sizeof("..."));
	}
	return code;
}

int loom__fail(struct loom_error *err, int code, const char *file, int line, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	loom__vfail(err, code, file, line, fmt, args);
	va_end(args);
	return code;
}
