/* SPDX-License-Identifier: Apache-2.0 */
/* Names of endpoints of provider shm. The provider names its shared memory after the number of the process. A killed
 * rank leaves 16 MiB behind, and a later process with the same number cannot open its own memory. Therefore this file
 * sets another name, and removes the name when all ranks have mapped the memory. The name contains the identity of the
 * process, so that a later process can remove the memory of killed ranks. */
#include "fabric_ofi.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES "gpuloom-%llu-%llu-%llu-%llu" /* PID namespace, process number, its start time, current time */

static uint64_t process_namespace(void)
{
	struct stat s;
	return stat("/proc/self/ns/pid", &s) ? 0 : s.st_ino;
}

/* Returns the start time of a process in ticks since boot, or 0 if the process does not exist. */
static uint64_t start_time(uint64_t pid)
{
	char path[64], text[512], *at;
	snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	/* The program's name may contain any character. The start time is the 20th field after the name. */
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

void fabric_sweep_shm(void)
{
	DIR *d = opendir("/dev/shm");
	uint64_t here = process_namespace();
	struct dirent *e;
	while (d && (e = readdir(d))) {
		unsigned long long space, pid, start, time;
		/* Only names of this PID namespace count, because process numbers of other namespaces mean nothing
		 * here. */
		if (sscanf(e->d_name, NAMES, &space, &pid, &start, &time) == 4 && space == here &&
		    start_time(pid) != start)
			shm_unlink(e->d_name);
	}
	if (d)
		closedir(d);
}

int fabric_name_shm(struct fabric_ofi *f)
{
	char name[FABRIC_ADDRESS];
	uint64_t me = (uint64_t)getpid();
	fabric_sweep_shm();
	snprintf(name, sizeof(name), NAMES, (unsigned long long)process_namespace(), (unsigned long long)me,
		 (unsigned long long)start_time(me), (unsigned long long)f->is.host->now_ns(f->is.host));
	char *copy = strdup(name);
	if (!copy)
		return -FI_ENOMEM;
	free(f->info->src_addr);
	f->info->src_addr = copy;
	f->info->src_addrlen = strlen(copy) + 1;
	return 0;
}

void fabric_forget_shm(const struct fabric_ofi *f)
{
	shm_unlink(f->info->src_addr);
}

int fabric_mapped_shm(const char *peer)
{
	const char *scheme = strstr(peer, "://"), *name = scheme ? scheme + 3 : peer;
	char line[512];
	int found = 0;
	FILE *maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return 1; /* it is unknown what this process has mapped, so trust the provider */
	while (!found && fgets(line, sizeof(line), maps))
		found = strstr(line, name) != NULL;
	fclose(maps);
	return found;
}
