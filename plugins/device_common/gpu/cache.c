/* SPDX-License-Identifier: Apache-2.0 */
#include "cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/hash.h"
#include "lib/io.h"

#define MAGIC 0x3245444f434f4f4cull /* "LOOCODE2", little-endian */
enum {
	MOST_PROGRAMS = 512, /* limit on the programs in a folder; above it the least recently used one is removed */
	STALE_S = 3600,      /* age in seconds of a temporary file whose writer must have died */
};

struct head {
	uint64_t magic, key_bytes, code_bytes, sum; /* sum: FNV-1a of this struct with sum = 0, and of the code */
	struct resources resources;
	uint32_t pad;
};

static uint64_t sum_of(struct head head, const char *code)
{
	head.sum = 0;
	return loom__fnv1a(loom__fnv1a(LOOM__FNV1A, &head, sizeof(head)), code, head.code_bytes);
}

void cache_folder(const char *path, char *folder, size_t room)
{
	const char *xdg = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	int n = 0;
	if (path && *path)
		n = snprintf(folder, room, "%s", path);
	else if (xdg && *xdg == '/') /* the XDG specification requires that relative paths are ignored */
		n = snprintf(folder, room, "%s/gpuloom", xdg);
	else if (home && *home)
		n = snprintf(folder, room, "%s/.cache/gpuloom", home);
	if (n <= 0 || (size_t)n >= room)
		*folder = 0;
}

static int file_name(const char *folder, const char *key, size_t key_bytes, char *path, size_t room)
{
	int n = snprintf(path, room, "%s/%016llx.code", folder, (unsigned long long)loom__fnv1a(LOOM__FNV1A, key, key_bytes));
	return *folder && n > 0 && (size_t)n < room;
}

/* Returns 1 if no other user can write the file. Other files are not loaded, because the code runs with the rights of
 * this process. */
static int is_ours(int fd, uint64_t *bytes)
{
	struct stat st;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
		return 0;
	*bytes = (uint64_t)st.st_size;
	return 1;
}

static char *read_file(const struct loom_host *host, int fd, const char *key, size_t key_bytes, struct head *head)
{
	uint64_t bytes;
	if (!is_ours(fd, &bytes) || loom__read_all(fd, head, sizeof(*head)) || head->magic != MAGIC ||
	    head->key_bytes != key_bytes || head->code_bytes > bytes ||
	    bytes != sizeof(*head) + key_bytes + head->code_bytes)
		return NULL;
	char *all = host->alloc(host, key_bytes + head->code_bytes);
	if (!all)
		return NULL;
	char *code = all + key_bytes;
	if (!loom__read_all(fd, all, key_bytes + head->code_bytes) && !memcmp(all, key, key_bytes) &&
	    sum_of(*head, code) == head->sum) {
		memmove(all, code, head->code_bytes);
		return all;
	}
	host->free(host, all);
	return NULL;
}

int cache_get(const struct loom_host *host, const char *folder, const char *key, size_t key_bytes, struct cached *out)
{
	char path[PATH_MAX];
	struct head head;
	if (!file_name(folder, key, key_bytes, path, sizeof(path)))
		return 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); /* O_NONBLOCK: opening a FIFO returns at once */
	if (fd < 0)
		return 0;
	char *code = read_file(host, fd, key, key_bytes, &head);
	if (code)
		(void)futimens(fd, NULL); /* sets the time of the last use, for prune() */
	close(fd);
	if (!code)
		return 0;
	*out = (struct cached){.resources = head.resources, .code = code, .bytes = head.code_bytes};
	return 1;
}

/* Creates the folder and its parents. */
static int make_folder(const char *folder)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s", folder);
	if (n <= 0 || (size_t)n >= sizeof(path))
		return ENAMETOOLONG;
	for (char *at = path + 1;; at++) {
		if (*at && *at != '/')
			continue;
		char was = *at;
		*at = 0;
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			return errno;
		if (!was)
			return 0;
		*at = was;
	}
}

/* Returns 1 for the name of a program in the cache: 16 hexadecimal digits and ".code". If `whole` is 0, also returns 1
 * for a temporary file, whose name has the suffix of mkostemp() at its end. */
static int is_program(const char *name, int whole)
{
	size_t n = strlen(name);
	return strspn(name, "0123456789abcdef") == 16 && !strncmp(name + 16, ".code", 5) &&
	       (whole ? n == 21 : n == 28 && name[21] == '.');
}

/* Removes temporary files of writers that have died, and the least recently used program if there are too many. Other
 * processes may do the same concurrently. */
static void prune(const char *folder)
{
	DIR *dir = opendir(folder);
	char oldest[64] = "";
	struct timespec now, least = {0};
	uint32_t programs = 0;
	struct stat st;
	clock_gettime(CLOCK_REALTIME, &now);
	for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
		int whole = is_program(e->d_name, 1);
		if ((!whole && !is_program(e->d_name, 0)) ||
		    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		programs += (uint32_t)whole;
		if (!whole && st.st_mtim.tv_sec + STALE_S < now.tv_sec)
			unlinkat(dirfd(dir), e->d_name, 0);
		if (whole && (!*oldest || st.st_mtim.tv_sec < least.tv_sec ||
			      (st.st_mtim.tv_sec == least.tv_sec && st.st_mtim.tv_nsec < least.tv_nsec))) {
			least = st.st_mtim;
			snprintf(oldest, sizeof(oldest), "%.60s", e->d_name);
		}
	}
	if (programs > MOST_PROGRAMS)
		unlinkat(dirfd(dir), oldest, 0);
	if (dir)
		closedir(dir);
}

int cache_put(const char *folder, const char *key, size_t key_bytes, const struct cached *in)
{
	char path[PATH_MAX], temporary[PATH_MAX + 16];
	struct head head = {
	    .magic = MAGIC, .key_bytes = key_bytes, .code_bytes = in->bytes, .resources = in->resources};
	head.sum = sum_of(head, in->code);
	if (!file_name(folder, key, key_bytes, path, sizeof(path)))
		return ENOENT;
	int code = make_folder(folder);
	if (code)
		return code;
	snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
	int fd = mkostemp(temporary, O_CLOEXEC); /* the file has mode 0600 */
	if (fd < 0)
		return errno;
	code = loom__write_all(fd, &head, sizeof(head));
	if (!code)
		code = loom__write_all(fd, key, key_bytes);
	if (!code)
		code = loom__write_all(fd, in->code, in->bytes);
	if (close(fd) != 0 && !code)
		code = errno;
	if (!code && rename(temporary, path) != 0)
		code = errno;
	if (code)
		unlink(temporary);
	prune(folder);
	return code;
}
