/* SPDX-License-Identifier: Apache-2.0 */
#include "conform/footprint.h"

#include <dirent.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "lib/hash.h"

static size_t entries(const char *folder)
{
	DIR *d = opendir(folder);
	size_t n = 0;
	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static size_t lines(const char *path)
{
	FILE *f = fopen(path, "re");
	size_t n = 0;
	int c;
	if (!f)
		return 0;
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static unsigned long long hash_more(unsigned long long hash, const char *text)
{
	return loom__fnv1a(hash, text, strlen(text)) ^ 0xff;
}

static unsigned long long surroundings(void)
{
	unsigned long long hash = LOOM__FNV1A;
	char here[4096];
	for (char **e = environ; e && *e; e++)
		hash = hash_more(hash, *e);
	if (getcwd(here, sizeof(here)))
		hash = hash_more(hash, here);
	mode_t mask = umask(0);
	umask(mask);
	return hash * 31 + mask;
}

void loom__footprint_take(struct loom__footprint *f)
{
	siginfo_t info;
	memset(f, 0, sizeof(*f));
	f->mappings = lines("/proc/self/maps");
	f->fds = entries("/proc/self/fd");
	f->threads = entries("/proc/self/task");
	f->heap = mallinfo2().uordblks;
	f->children = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
	for (int s = 1; s < LOOM__SIGNALS; s++) {
		struct sigaction a;
		if (!sigaction(s, NULL, &a))
			f->handler[s] = a.sa_flags & SA_SIGINFO ? (void *)(uintptr_t)a.sa_sigaction
								: (void *)(uintptr_t)a.sa_handler;
	}
	sigprocmask(SIG_SETMASK, NULL, &f->mask);
	f->environment = surroundings();
}

static const char *differs_in(const struct loom__footprint *a, const struct loom__footprint *b, size_t rounds,
			      char *text, size_t room)
{
	if (b->fds > a->fds)
		snprintf(text, room, "%zu file descriptors stay open", b->fds - a->fds);
	else if (b->threads > a->threads)
		snprintf(text, room, "%zu threads stay behind", b->threads - a->threads);
	else if (b->children && !a->children)
		snprintf(text, room, "a child process stays behind");
	else if (b->environment != a->environment)
		snprintf(text, room,
			 "it changed the environment, the working directory or the umask");
	else if (memcmp(&a->mask, &b->mask, sizeof(a->mask)))
		snprintf(text, room, "it changed the signal mask");
	else if (rounds && b->mappings >= a->mappings + rounds)
		snprintf(text, room, "%zu memory mappings stay behind", b->mappings - a->mappings);
	else if (rounds && b->heap >= a->heap + rounds * 16)
		snprintf(text, room, "%zu bytes of memory stay allocated", b->heap - a->heap);
	else {
		for (int s = 1; s < LOOM__SIGNALS; s++)
			if (a->handler[s] != b->handler[s]) {
				snprintf(text, room, "it changed the handler of SIG%s",
					 sigabbrev_np(s) ? sigabbrev_np(s) : "RT");
				return text;
			}
		return NULL;
	}
	return text;
}

const char *loom__footprint_settles(const struct loom__footprint *before, size_t rounds, char *text,
				    size_t room)
{
	const char *differs = NULL;
	for (int i = 0; i < 100; i++) {
		struct loom__footprint now;
		loom__footprint_take(&now);
		differs = differs_in(before, &now, rounds, text, room);
		if (!differs)
			break;
		usleep(10000);
	}
	return differs;
}

static int is_loaded(struct dl_phdr_info *info, size_t size, void *library)
{
	(void)size;
	const char *name = strrchr(info->dlpi_name, '/');
	return name && !strncmp(name + 1, library, strlen(library));
}

/* The largest number of objects of a library per instance. */
#define OBJECTS 4u

/* Memory that libraries never free: bytes of each object, as mallinfo2() counts them. libfabric keeps a list of names for
 * its signal handler. A node has 288 bytes: a name of 256 bytes, an address, and two links. */
static const struct {
	const char *library; /* soname without the number */
	size_t bytes;
	const char *what;
} known[] = {{"libfabric.so", 288,
	      "libfabric 1.17 keeps the name of each endpoint of its provider shm, 288 bytes, until the process ends"}};

const char *loom__footprint_known(const struct loom__footprint *before, size_t rounds)
{
	struct loom__footprint now;
	loom__footprint_take(&now);
	size_t grown = now.heap > before->heap ? now.heap - before->heap : 0;
	for (size_t i = 0; rounds && i < LOOM__COUNT(known); i++) {
		size_t each = rounds * known[i].bytes;
		if (grown % each == 0 && grown / each - 1 < OBJECTS &&
		    dl_iterate_phdr(is_loaded, (void *)known[i].library))
			return known[i].what;
	}
	return NULL;
}

int loom__hush_begin(struct loom__hush *h)
{
	fflush(NULL);
	h->file = memfd_create("output", MFD_CLOEXEC);
	h->out = dup(1);
	h->err = dup(2);
	if (h->file < 0 || h->out < 0 || h->err < 0 || dup2(h->file, 1) < 0 || dup2(h->file, 2) < 0)
		return -1;
	return 0;
}

size_t loom__hush_end(struct loom__hush *h, char *text, size_t room)
{
	fflush(NULL);
	off_t n = lseek(h->file, 0, SEEK_END);
	ssize_t got = pread(h->file, text, room - 1, 0);
	text[got > 0 ? got : 0] = 0;
	text[strcspn(text, "\r\n")] = 0;
	dup2(h->out, 1);
	dup2(h->err, 2);
	close(h->out);
	close(h->err);
	close(h->file);
	return n > 0 ? (size_t)n : 0;
}
