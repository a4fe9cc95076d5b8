/* SPDX-License-Identifier: Apache-2.0 */
/* Converts an SVG to PNG or PDF. The program rsvg-convert (librsvg) does the work. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"
#include "facts/must.h"
#include "lib/child.h"

int loom__report_draw(const struct loom__text *svg, enum loom__report_format format, struct loom__text *out,
		      struct loom_error *err)
{
	static char png[] = "--format=png", pdf[] = "--format=pdf", name[] = "rsvg-convert", twice[] = "--zoom=2";
	char *const command[] = {name, format == LOOM__AS_PNG ? png : pdf, format == LOOM__AS_PNG ? twice : NULL, NULL};
	FILE *in = tmpfile(), *drawn = tmpfile();
	struct child child;
	const char *step;
	int status = 0, rc = in && drawn ? 0 : errno;
	if (!rc) {
		loom__must_text(svg);
		rc = fwrite(svg->at, 1, svg->length, in) != svg->length || fflush(in) ? errno : 0;
	}
	if (!rc) {
		rewind(in);
		rc = child_start(
		    &child,
		    &(struct child_program){
			.argv = command, .in = fileno(in), .out = fileno(drawn), .err = STDERR_FILENO, .end = SIGKILL},
		    &step);
		status = rc ? 0 : child_wait(&child, NULL);
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
		return LOOM__FAIL(err, LOOM_ENOENT,
				  "rsvg-convert, which converts plots to PNG and PDF, is not installed (Debian: "
				  "librsvg2-bin); or write a file that ends in .svg");
	if (rc || status || !out->length)
		return LOOM__FAIL(err, LOOM_EIO, "rsvg-convert failed: %s", rc ? strerror(rc) : "unknown error");
	return 0;
}
