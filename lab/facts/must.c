/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/must.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <unistd.h>

/* Ends the process without cleaning up, because workers may still run plug-in code. */
static void out_of_memory(void)
{
	static const char text[] = "gpuloom: error: out of memory\n";
	if (write(2, text, sizeof(text) - 1) < 0)
		_exit(1);
	_exit(1);
}

void *loom__must(void *p)
{
	if (!p)
		out_of_memory();
	return p;
}

static void *must_malloc(size_t bytes)
{
	return loom__must(malloc(bytes));
}

void loom__must_begin(void)
{
	cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = must_malloc, .free_fn = free});
}

const char *loom__must_text(const struct loom__text *t)
{
	if (!loom__text_ok(t))
		out_of_memory();
	return t->at ? t->at : "";
}
