/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins that the build left out. A file FOLDER/KIND_NAME.absent replaces each of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/identity.h"
#include "plugin/registry.h"

const char *loom__absent_brief(const struct loom__absent *a)
{
	return a->name + strlen(loom__kind_name(a->kind)) + 1;
}

int loom__absent_read(const char *path, struct loom__absent *out)
{
	const char *file = strrchr(path, '/') + 1, *brief;
	size_t n = strcspn(file, ".");
	out->kind = loom__kind_of_file(file, &brief);
	char *text = NULL;
	size_t length;
	if (!out->kind || n >= sizeof(out->name) || loom__read_file(path, 4096, &text, &length, NULL))
		return 0;
	char *fix = strchr(text, '\n');
	if (fix) {
		*fix++ = 0;
		fix[strcspn(fix, "\n")] = 0;
		snprintf(out->name, sizeof(out->name), "%.*s", (int)n, file);
		snprintf(out->why, sizeof(out->why), "%s", text);
		snprintf(out->fix, sizeof(out->fix), "%s", fix);
		loom__clean(out->why, sizeof(out->why));
		loom__clean(out->fix, sizeof(out->fix));
	}
	int complete = fix && *fix;
	free(text);
	return complete;
}

int loom__absent_fail(const struct loom__absent *a, struct loom_error *err)
{
	return LOOM__FAIL(err, LOOM_EUNAVAIL, "%s plug-in '%s' was left out when gpuloom was built: %s; %s",
			  loom__kind_section(a->kind), loom__absent_brief(a), a->why, a->fix);
}
