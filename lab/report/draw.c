/* SPDX-License-Identifier: Apache-2.0 */
/* PNG and PDF: the SVG file as librsvg draws it, which knows no variables of style sheets. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"
#include "facts/must.h"
#include "inspect/child.h"

/* Where the first value of a variable begins: "--name:". NULL: it has none. */
static const char *value_of(const char *svg, const char *name, size_t length)
{
	const char *at = svg;
	while ((at = strstr(at, name)) && at[length] != ':')
		at += length;
	return at ? at + length + 1 : NULL;
}

/* Writes the text with each var(--name) as its value, which is the one for light pages. */
static void write_plain(const char *svg, FILE *to)
{
	static const char head[] = "var(";
	for (const char *at = svg, *next; *at; at = next) {
		next = strstr(at, head);
		next = next ? next : at + strlen(at);
		fwrite(at, 1, (size_t)(next - at), to);
		if (!*next)
			continue;
		const char *name = next + sizeof(head) - 1;
		char copy[32];
		size_t length = strcspn(name, ")");
		snprintf(copy, sizeof(copy), "%.*s", (int)length, name);
		const char *value = value_of(svg, copy, length);
		if (value)
			fwrite(value, 1, strcspn(value, ";}"), to);
		next = name + length + 1;
	}
}

int loom__report_draw(const struct loom__text *svg, enum loom__report_format format, struct loom__text *out,
		      struct loom_error *err)
{
	static const char png[] = "--format=png", pdf[] = "--format=pdf", name[] = "rsvg-convert", twice[] = "--zoom=2";
	const char *const command[] = {name, format == LOOM__AS_PNG ? png : pdf, format == LOOM__AS_PNG ? twice : NULL, NULL};
	FILE *in = tmpfile(), *drawn = tmpfile();
	pid_t pid;
	int status = 0, rc = in && drawn ? 0 : errno;
	if (!rc) {
		write_plain(loom__must_text(svg), in);
		rc = fflush(in) ? errno : 0;
	}
	if (!rc) {
		rewind(in);
		rc = loom__child_start(command, &(struct loom__streams){fileno(in), fileno(drawn), STDERR_FILENO, -1}, &pid);
		status = rc ? 0 : loom__child_wait(pid, 0);
	}
	char room[4096];
	if (!rc && !status) {
		rewind(drawn);
		for (size_t n; (n = fread(room, 1, sizeof(room), drawn)) > 0;)
			loom__text_put(out, room, n);
	}
	if (in)
		fclose(in);
	if (drawn)
		fclose(drawn);
	if (rc == ENOENT)
		return LOOM__FAIL(err, LOOM_ENOENT, "rsvg-convert, which draws PNG and PDF, is not there: install it (Debian: "
				  "librsvg2-bin), or write a file that ends in .svg");
	if (rc || status || !out->length)
		return LOOM__FAIL(err, LOOM_EIO, "rsvg-convert did not draw: %s", rc ? strerror(rc) : "it ended badly");
	return 0;
}
