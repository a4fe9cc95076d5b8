/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins that the build left out. */
#include <stdio.h>
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
	FILE *f = out->kind && n < sizeof(out->name) ? fopen(path, "re") : NULL;
	if (!f)
		return 0;
	snprintf(out->name, sizeof(out->name), "%.*s", (int)n, file);
	int whole = fgets(out->why, sizeof(out->why), f) && fgets(out->mend, sizeof(out->mend), f);
	fclose(f);
	out->why[strcspn(out->why, "\n")] = 0;
	out->mend[strcspn(out->mend, "\n")] = 0;
	loom__clean(out->why, sizeof(out->why));
	loom__clean(out->mend, sizeof(out->mend));
	return whole;
}

int loom__absent_fail(const struct loom__absent *a, struct loom_error *err)
{
	return LOOM__FAIL(err, LOOM_EUNAVAIL, "%s plug-in '%s' was left out when gpuloom was built: %s; %s",
			  loom__kind_section(a->kind), loom__absent_brief(a), a->why, a->mend);
}
