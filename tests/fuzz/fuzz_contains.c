/* SPDX-License-Identifier: Apache-2.0 */
/* The input has an index of `contains` ("offset length" per line) and, after a line "%%", its document, plain or gzip.
 * The listed texts, the texts that the host reads, and those that a task searches must be the same. */
#include <stdlib.h>
#include <string.h>

#include "formats.h"
#include "input.h"
#include "stack/host.h"

#include "plugins/workloads/tasks/contains_corpus.c"
#include "plugins/workloads/tasks/contains_files.c"
#define add contains_add
#include "plugins/workloads/tasks/contains_read.c"
#undef add

enum { MOST = 1 << 20, LISTED = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_parts parts = {data, size};
	struct loom__host host;
	struct loom_error err = {0};
	struct contains_list list = {0};
	struct contains_reader r = {0};
	size_t n;
	char *index = fuzz_part(&parts, &n);
	struct contains_opts o = {
	    .path = fuzz_file(1, parts.at, parts.left), .index = fuzz_file(0, index, n), .glob = "*"};
	uint64_t bytes;
	uint8_t bad;
	loom__host_init(&host, NULL);
	if (contains_scan(&host.table, &o, &list, &err))
		fuzz_say(err.text);
	for (size_t i = 0; i < list.count && i < LISTED; i++) {
		const struct contains_source *s = &list.source[i];
		FUZZ_CHECK(s->bytes);
		if (s->bytes > MOST || s->at > MOST)
			continue;
		char *text = contains_read(&r, s, &bytes, &bad);
		FUZZ_CHECK(text && bytes <= s->bytes && (bad || bytes == s->bytes));
		free(text);
	}
	contains_reader_close(&r);
	const struct contains_source all = {.path = (char *)(uintptr_t)o.path};
	free(contains_read(&r, &all, &bytes, &bad));
	contains_reader_close(&r);
	contains_list_free(&list);
	free(index);
	return 0;
}
