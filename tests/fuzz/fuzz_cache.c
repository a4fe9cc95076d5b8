/* SPDX-License-Identifier: Apache-2.0 */
/* A file of the program cache. If the first byte of the input is odd, the rest are edits of a valid file, each an
 * offset and a byte. If it is even, the rest is the file. An edited file must be read with its original contents, or
 * rejected. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "input.h"
#include "stack/host.h"

/* The target replaces all files of the cache folder by one file, which cache_put() writes. */
static const char *file;
static int open_file(const char *path, int how, ...);
static int new_file(const char *path, int how);
#define open open_file
#define mkostemp new_file
#define mkdir(path, mode) ((void)(path), 0)
#define rename(from, to) ((void)(from), (void)(to), 0)
#include "plugins/device_common/gpu/cache.c"
#undef open
#undef mkostemp
#undef mkdir
#undef rename

static const char key[] = "a key of forty bytes, with what it names";
static const char code[] = "code code code code code";
static const struct resources known = {.registers = 96, .shared = 16, .stack = 128, .spills = 4, .nested = 64};

static int open_file(const char *path, int how, ...)
{
	(void)path;
	return open(file, how & ~O_NOFOLLOW); /* the path is a link of /proc, so O_NOFOLLOW would fail */
}

static int new_file(const char *path, int how)
{
	file = fuzz_file(0, "", 0);
	return open_file(path, O_RDWR | how);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct loom__host host;
	struct cached c = {0};
	const struct cached good = {.resources = known, .code = (char *)(uintptr_t)code, .bytes = sizeof(code)};
	size_t n;
	if (cache_put("/nowhere", key, sizeof(key), &good))
		abort();
	char *bytes = fuzz_file_bytes(0, &n);
	int edits = size && data[0] & 1;
	for (size_t i = 1; edits && i + 1 < size; i += 2)
		bytes[data[i] % n] = (char)data[i + 1];
	if (!edits)
		fuzz_file(0, data + !!size, size - !!size);
	else
		fuzz_file(0, bytes, n);
	loom__host_init(&host, NULL);
	if (cache_get(&host.table, "/nowhere", key, sizeof(key), &c)) {
		FUZZ_CHECK(c.bytes <= size + n);
		if (edits) {
			FUZZ_CHECK(c.bytes == sizeof(code) && !memcmp(c.code, code, sizeof(code)));
			FUZZ_CHECK(!memcmp(&c.resources, &known, sizeof(known)));
		}
		host.table.free(&host.table, c.code);
	}
	free(bytes);
	return 0;
}
