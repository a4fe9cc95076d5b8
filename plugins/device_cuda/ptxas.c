/* SPDX-License-Identifier: Apache-2.0 */
#include "ptxas.h"

#include <stdio.h>
#include <string.h>

/* Parses these lines:
 *   ptxas info    : Function properties for NAME
 *   ptxas         .     128 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
 *   ptxas info    : Used 96 registers, used 0 barriers, 16 bytes smem */
int resources_read(const char *log, const char *kernel, struct resources *out)
{
	int of_kernel = 0, found = 0;
	*out = (struct resources){0};
	for (const char *line = log ? log : "", *next; *line; line = next) {
		char text[512], name[400];
		unsigned a, b, c;
		next = line + strcspn(line, "\n");
		snprintf(text, sizeof(text), "%.*s", (int)(next - line), line);
		next += *next == '\n';
		const char *at = strstr(text, "Function properties for ");
		if (at && sscanf(at, "Function properties for %399s", name) == 1)
			of_kernel = !strcmp(name, kernel);
		at = strstr(text, " bytes stack frame");
		if (at) {
			while (at > text && at[-1] >= '0' && at[-1] <= '9')
				at--;
			if (sscanf(at, "%u bytes stack frame, %u bytes spill stores, %u bytes spill loads", &a, &b,
				   &c) != 3)
				continue;
			out->spills += b + c;
			if (of_kernel)
				out->stack = a;
			else
				out->nested += a;
		}
		at = strstr(text, "Used ");
		if (at && of_kernel && sscanf(at, "Used %u registers", &a) == 1) {
			out->registers = a;
			found = 1;
			at = strstr(at, " bytes smem");
			while (at && at > text && at[-1] >= '0' && at[-1] <= '9')
				at--;
			if (at && sscanf(at, "%u bytes smem", &b) == 1)
				out->shared = b;
		}
	}
	return found;
}
