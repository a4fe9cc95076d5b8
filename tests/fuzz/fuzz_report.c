/* SPDX-License-Identifier: Apache-2.0 */
/* The input has one or two documents, and options of `gpuloom report`, one per line. The target makes a report in each
 * format. Contents of a document must remain text: no control character, no tag of a page, no formula. The summary must
 * be JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/report/report.h"
#include "input.h"
#include "formats.h"

extern const struct loom__usage loom__report_usage;

static const struct {
	const char *name;
	void (*check)(const char *text, size_t n);
} format[] = {{"html", fuzz_is_html}, {"md", fuzz_is_text},   {"csv", fuzz_is_csv},
	      {"svg", fuzz_is_svg},   {"json", fuzz_is_json}, {"xml", fuzz_is_svg}, {"tex", fuzz_is_text}};

enum { MOST = 16 };
struct words {
	char *at[MOST];
	int n;
};

/* Takes options that select the contents, but not options that name files. */
static void take(void *arg, char *line)
{
	static const char *const known[] = {"--metric=", "--derive=", "--pareto=", "--plot=", "--x=", "--lines=",
					    "--facet=",  "--show=",   "--axes=", "--base=", "--mean=",  "--width="};
	struct words *w = arg;
	for (size_t i = 0; i < LOOM__COUNT(known); i++)
		if (!strncmp(line, known[i], strlen(known[i])) && w->n < MOST - 1)
			w->at[w->n++] = line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_parts parts = {data, size};
	size_t n, m;
	char *first = fuzz_part(&parts, &n), *second = fuzz_part(&parts, &m), *options = fuzz_part(&parts, NULL);
	char command[] = "report", as[] = "--format";
	struct words w = {.at = {command, (char *)(uintptr_t)fuzz_file(0, first, n)}, .n = 2};
	if (m)
		w.at[w.n++] = (char *)(uintptr_t)fuzz_file(1, second, m);
	fuzz_lines(options, take, &w);
	for (size_t i = 0; i < LOOM__COUNT(format); i++) {
		char *argv[MOST + 3], *text;
		size_t bytes;
		struct loom__cli cli = {.out = open_memstream(&text, &bytes)};
		memcpy(argv, w.at, sizeof(w.at));
		argv[w.n] = as;
		argv[w.n + 1] = (char *)(uintptr_t)format[i].name;
		argv[w.n + 2] = NULL;
		fuzz_stderr_begin();
		int status = loom__command_run(&cli, &loom__report_usage, w.n + 2, argv);
		fuzz_stderr_end();
		fclose(cli.out);
		FUZZ_CHECK(!status || !bytes);
		if (!status)
			format[i].check(text, bytes);
		free(text);
		if (status && format[i].check != fuzz_is_svg) /* a picture may lack data */
			break; /* the other formats have the same text */
	}
	free(first);
	free(second);
	free(options);
	return 0;
}
