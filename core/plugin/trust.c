/* SPDX-License-Identifier: Apache-2.0 */
/* Checks file modes: which users can have written the code that this process is about to load. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/identity.h"

static int is_ours(const struct stat *st)
{
	return st->st_uid == geteuid() || st->st_uid == 0;
}

static int reject(const char *path, const char *at, const char *why, const char *fix, struct loom_error *err)
{
	int same = !strcmp(path, at);
	return LOOM__FAIL(err, LOOM_EINVAL, "%s: %s%s%s, so any user's code could run as you; %s", loom__shown(path), why,
			  same ? "" : " ", same ? "" : loom__shown(at), fix);
}

/* A set-user-id program, or a program with capabilities, serves users that it must not trust. So no file or folder of
 * the path may belong to another user, except root, or be writable for a group. Other programs accept both, because a
 * group may maintain the installation. */
static int check_privileged(const char *path, const char *at, const struct stat *st, struct loom_error *err)
{
	if (!is_ours(st))
		return reject(path, at, "a program with privileges must not use a plug-in from another user's", "chown it to root", err);
	if (st->st_mode & 022 && !(S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX))
		return reject(path, at, "a program with privileges must not use a plug-in that a group may write to:", "chmod go-w it",
			      err);
	return 0;
}

int loom__trusted(const char *real, struct loom_error *err)
{
	char at[PATH_MAX];
	struct stat st, inner;
	int secure = getauxval(AT_SECURE) != 0, n = snprintf(at, sizeof(at), "%s", real), rc = 0;
	if (n <= 0 || (size_t)n >= sizeof(at) || stat(at, &st))
		return LOOM__FAIL(err, LOOM_ENOENT, "%s: %s; check the path", loom__shown(real),
				  strerror(n <= 0 || (size_t)n >= sizeof(at) ? ENAMETOOLONG : errno));
	if (st.st_mode & S_IWOTH)
		return reject(real, at,
			      S_ISDIR(st.st_mode) ? "every user may write to this plug-in folder" : "every user may write to this file",
			      "chmod o-w it or leave it out", err);
	if (secure)
		rc = check_privileged(real, at, &st, err);
	while (!rc && strcmp(at, "/")) {
		char *slash = strrchr(at, '/');
		slash[slash == at] = 0;
		inner = st;
		if (stat(at, &st))
			return LOOM__FAIL(err, LOOM_EIO, "%s: %s: %s", loom__shown(real), at, strerror(errno));
		/* In a folder with the sticky bit, such as /tmp, every user may create a file, but only its owner may
		 * replace it. */
		if (st.st_mode & S_IWOTH && !(st.st_mode & S_ISVTX && is_ours(&inner)))
			rc = reject(real, at, "every user may write to a folder above it,", "chmod o-w that, or put the plug-in elsewhere",
				    err);
		if (!rc && secure)
			rc = check_privileged(real, at, &st, err);
	}
	return rc;
}
