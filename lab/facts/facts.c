/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/facts.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

#include "facts/build.h"
#include "facts/environment.h"

void loom__build_revision(cJSON *gpuloom)
{
	if (*LOOM_BUILD_REVISION)
		loom__json_add_text(gpuloom, "revision", LOOM_BUILD_REVISION);
	else
		loom__fact_none(gpuloom, "revision", "not built in a git checkout");
}

void loom__command_line(cJSON *doc, int argc, char *const *argv)
{
	cJSON *command = loom__json_add_array(doc, "command");
	loom__json_append_text(command, "gpuloom");
	for (int i = 0; i < argc; i++)
		loom__json_append_text(command, argv[i]);
}

struct wanted {
	const char *path;
	char id[2 * 64 + 1];
};

/* Copies the build ID from the ELF note in memory of the file w->path. The build ID is a digest of the linked
 * content. */
static int find_build_id(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct wanted *w = arg;
	(void)size;
	if (strcmp(info->dlpi_name, w->path))
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const unsigned char *at = (const unsigned char *)(uintptr_t)(info->dlpi_addr + p->p_vaddr);
		const ElfW(Nhdr) *note;
		for (size_t left = p->p_type == PT_NOTE ? p->p_memsz : 0, n; left >= sizeof(*note);
		     at += n, left -= n) {
			note = (const void *)at;
			n = sizeof(*note) + ((note->n_namesz + 3u) & ~3u) + ((note->n_descsz + 3u) & ~3u);
			if (n > left)
				break;
			if (note->n_type != NT_GNU_BUILD_ID || note->n_namesz != 4 ||
			    memcmp(at + sizeof(*note), "GNU", 4))
				continue;
			for (unsigned k = 0; k < note->n_descsz && k < 64; k++)
				snprintf(w->id + (size_t)2 * k, 3, "%02x", at[sizeof(*note) + 4 + k]);
		}
	}
	return 1;
}

void loom__facts_begin(void *arg, const struct loom_stack *s, struct loom_result *r)
{
	cJSON *plugin;
	(void)arg;
	loom__build_revision(cJSON_GetObjectItemCaseSensitive(r->about, "gpuloom"));
	cJSON_ArrayForEach(plugin, cJSON_GetObjectItemCaseSensitive(r->about, "plugins"))
	{
		const char *path = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(plugin, "path"));
		struct wanted w = {.path = path ? path : ""};
		dl_iterate_phdr(find_build_id, &w);
		if (*w.id)
			loom__json_add_text(plugin, "build_id", w.id);
		else
			loom__fact_none(plugin, "build_id", "linked without --build-id");
	}
	loom__json_add(loom__json_add_object(r->about, "environment"), "before", loom__environment());
	loom__facts_look(s, r);
	r->watched = 1;
}

void loom__facts_end(const struct loom_stack *s, struct loom_result *r)
{
	cJSON *environment = cJSON_GetObjectItemCaseSensitive(r->about, "environment");
	if (environment) {
		loom__json_add(environment, "after", loom__environment());
		loom__facts_look(s, r);
	}
}
