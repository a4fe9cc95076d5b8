/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the folders in which plug-ins are searched. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/identity.h"
#include "plugin/registry.h"

static int no_memory(struct loom_error *err)
{
	return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory while listing plug-in folders");
}

/* Adds a folder if it is not in the list. `folder`, a real path, belongs to the list afterwards. */
static int add(struct loom__search *s, char *folder, struct loom_error *err)
{
	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->folder[i], folder)) {
			free(folder);
			return 0;
		}
	char **more = loom__more(s->folder, s->count, sizeof(*more));
	if (!more) {
		free(folder);
		return no_memory(err);
	}
	s->folder = more;
	s->folder[s->count++] = folder;
	return 0;
}

/* Adds a folder if plug-ins may be loaded from it. `origin` is the option or variable that names the folder; NULL for a
 * default folder, which may be absent. */
static int consider(struct loom__search *s, const char *folder, const char *origin, struct loom_error *err)
{
	struct stat st;
	char *real = realpath(folder, NULL);
	if (!real || stat(real, &st)) {
		int why = errno;
		free(real);
		if (why == ENOMEM)
			return no_memory(err);
		return !origin ? 0
			       : LOOM__FAIL(err, LOOM_ENOENT, "%s: plug-in folder of %s: %s; correct the path or "
					"leave it out", loom__shown(folder), origin, strerror(why));
	}
	if (!S_ISDIR(st.st_mode)) {
		free(real);
		return !origin ? 0
			       : LOOM__FAIL(err, LOOM_EINVAL, "%s: %s names a file where a folder of plug-ins is "
					"needed; name the folder that it is in", loom__shown(folder), origin);
	}
	int rc = loom__trusted(real, err);
	if (!rc)
		return add(s, real, err);
	free(real);
	return rc;
}

static int consider_list(struct loom__search *s, const char *list, const char *origin, struct loom_error *err)
{
	char *copy = strdup(list), *rest = copy, *one;
	int rc = copy ? 0 : LOOM__FAIL(err, LOOM_ENOMEM, "out of memory while reading %s", origin);
	while (!rc && (one = loom__word(&rest, ":")))
		rc = consider(s, one, origin, err);
	free(copy);
	return rc;
}

/* Returns the folder of the executable or library that contains this function, which the caller frees, or NULL. Here
 * and in the functions that open a stack, paths are not on the stack of the thread, which the program may have made
 * small. */
static char *own_folder(void)
{
	Dl_info info;
	struct link_map *map = NULL;
	if (!dladdr1((void *)(uintptr_t)&own_folder, &info, (void **)&map, RTLD_DL_LINKMAP))
		return NULL;
	/* For the executable, the link map has an empty name. /proc/self/exe is used then, because info.dli_fname would
	 * be argv[0]. Without /proc, the path that was passed to execve() serves, which may be relative. */
	const char *file = map && map->l_name[0] ? map->l_name : "/proc/self/exe";
	char *path = realpath(file, NULL);
	if (!path && errno != ENOMEM)
		path = realpath((const char *)getauxval(AT_EXECFN), NULL);
	if (!path)
		return NULL;
	char *slash = strrchr(path, '/');
	slash[slash == path] = 0;
	return path;
}

static int consider_own(struct loom__search *s, struct loom_error *err)
{
	static const char *const places[] = {
	    "plugins",                                  /* in the build folder */
	    "gpuloom/plugins",                          /* in the folder of the installed library */
	    LOOM_LIBDIR_FROM_BINDIR "/gpuloom/plugins", /* from the executable's folder; see the Makefile */
	};
	errno = 0;
	char *own = own_folder();
	int rc = own || errno != ENOMEM ? 0 : no_memory(err);
	for (size_t i = 0; own && !rc && i < LOOM__COUNT(places); i++) {
		struct loom__text folder = {0};
		loom__text_add(&folder, "%s/%s", own, places[i]);
		rc = folder.failed ? no_memory(err) : consider(s, folder.at, NULL, err);
		loom__text_free(&folder);
	}
	free(own);
	return rc;
}

int loom__search_create(const char *configured, struct loom__search *out, struct loom_error *err)
{
	struct loom__search s = {0};
	const char *environment = secure_getenv("GPULOOM_PLUGIN_PATH");
	int rc = 0;
	if (configured)
		rc = consider_list(&s, configured, "plugin_path", err);
	if (!rc && environment)
		rc = consider_list(&s, environment, "GPULOOM_PLUGIN_PATH", err);
	if (!rc)
		rc = consider_own(&s, err);
	if (rc) {
		loom__search_free(&s);
		return rc;
	}
	*out = s;
	return 0;
}

void loom__search_free(struct loom__search *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->folder[i]);
	free(s->folder);
	*s = (struct loom__search){0};
}
