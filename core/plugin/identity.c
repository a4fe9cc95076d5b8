/* SPDX-License-Identifier: Apache-2.0 */
/* Checks what a plug-in says of itself: its name, kind, version and ABI. */
#include "plugin/identity.h"

#include <gpuloom/gpuloom.h>
#include <stdio.h>
#include <string.h>

const char *loom__shown(const char *path)
{
	size_t n = strlen(path);
	return n > 300 ? path + n - 300 : path;
}

void loom__manifest_clean(struct loom_manifest *m)
{
	loom__clean(m->name, sizeof(m->name));
	loom__clean(m->version, sizeof(m->version));
	loom__clean(m->license, sizeof(m->license));
	loom__clean(m->summary, sizeof(m->summary));
}

void loom__identity_of(const struct loom_plugin *p, struct loom_manifest *out)
{
	*out = (struct loom_manifest){.magic = p->magic, .abi = p->abi, .kind = p->kind};
#define TAKE(field) snprintf(out->field, sizeof(out->field), "%s", p->field ? p->field : "")
	TAKE(name);
	TAKE(version);
	TAKE(license);
	TAKE(summary);
#undef TAKE
	loom__manifest_clean(out);
}

/* Checks the name. For example, the scheduler in sched_mgws.so (or sched_mgws.so.1) must have the name "sched_mgws". */
static int judge_name(const char *path, const struct loom_manifest *m, struct loom_error *err)
{
	const char *prefix = loom__kind_name(m->kind), *file = strrchr(path, '/');
	size_t n = strlen(prefix), length = strlen(m->name);
	file = file ? file + 1 : path;
	if (!length)
		return LOOM__FAIL(err, LOOM_EPLUGIN,
				  "%s: the plug-in has no name; give LOOM_PLUGIN_DEFINE one, as in \"%s_mine\"",
				  loom__shown(path), prefix);
	if (strncmp(m->name, prefix, n) || m->name[n] != '_' || !m->name[n + 1])
		return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: plug-in '%s' is a %s, so its name must begin with '%s_'; "
				"rename it", loom__shown(path), m->name, loom__kind_section(m->kind), prefix);
	if (m->name[strspn(m->name, "abcdefghijklmnopqrstuvwxyz0123456789_")])
		return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: the name '%s' has characters other than a-z, 0-9 and "
				"'_'; rename it", loom__shown(path), m->name);
	if (strncmp(file, m->name, length) || strncmp(file + length, ".so", 3) ||
	    (file[length + 3] && file[length + 3] != '.'))
		return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: the plug-in in it calls itself '%s'; rename the file to "
				"%s.so", loom__shown(path), m->name, m->name);
	return 0;
}

int loom__identity_judge(const char *path, const struct loom_manifest *m, struct loom_error *err)
{
	const char *file = loom__shown(path), *name = m->name[0] ? m->name : "(no name)";
	if (m->magic != LOOM_PLUGIN_MAGIC)
		return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: wrong magic number 0x%08x, so this is no gpuloom plug-in "
				"or a damaged one; declare it with LOOM_PLUGIN_DEFINE", file, (unsigned)m->magic);
	if (m->abi != LOOM_ABI)
		return LOOM__FAIL(
		    err, LOOM_EABI,
		    "%s: plug-in '%s' has plug-in ABI %u, gpuloom %s has %u; rebuild it against gpuloom %s's headers%s",
		    file, name, (unsigned)m->abi, loom_version(), LOOM_ABI, loom_version(),
		    m->abi > LOOM_ABI ? " or use a newer gpuloom" : "");
	if (m->kind == LOOM_KIND_NONE || m->kind >= LOOM_KINDS)
		return LOOM__FAIL(err, LOOM_EABI, "%s: plug-in '%s' has the kind number %u, which gpuloom %s does "
				"not know; use the gpuloom that it was made for", file, name, (unsigned)m->kind,
				loom_version());
	return judge_name(path, m, err);
}

const char *loom__identity_differs(const struct loom_manifest *a, const struct loom_manifest *b)
{
	return a->kind != b->kind               ? "kind"
	       : strcmp(a->name, b->name)       ? "name"
	       : strcmp(a->version, b->version) ? "version"
	       : strcmp(a->license, b->license) ? "license"
	       : strcmp(a->summary, b->summary) ? "summary"
						: NULL;
}
