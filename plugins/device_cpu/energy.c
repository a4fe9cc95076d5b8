/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of the CPU packages, from the counters of powercap. A counter has microjoules, and wraps at a range that the
 * kernel states. Kernels let only root read it, because its changes reveal what other programs compute. */
#include <errno.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_cpu.h"

/* Reads a file of a zone as one line. Returns 0 or an errno. */
static int read_line(const char *folder, const char *zone, const char *file, char *out, size_t room)
{
	char path[600];
	snprintf(path, sizeof(path), "%s/%s/%s", folder, zone, file);
	FILE *f = fopen(path, "re");
	if (!f)
		return errno;
	int rc = fgets(out, (int)room, f) ? 0 : ferror(f) ? errno : EINVAL;
	fclose(f);
	out[rc ? 0 : strcspn(out, "\n")] = 0;
	return rc;
}

static int read_number(const char *folder, const char *zone, const char *file, double *out)
{
	char text[40], *end;
	int rc = read_line(folder, zone, file, text, sizeof(text));
	if (rc)
		return rc;
	*out = (double)strtoull(text, &end, 10);
	return end == text || *end ? EINVAL : 0;
}

/* Returns 1 if the folder is the zone of a whole package. Zones of intel-rapl-mmio count the same packages again, and zones
 * with two colons are parts of a package. */
static int is_package(const char *folder, const char *zone)
{
	static const char prefix[] = "intel-rapl:"; /* the kernel also uses this name on CPUs of AMD */
	char name[40];
	return !strncmp(zone, prefix, sizeof(prefix) - 1) && !strchr(zone + sizeof(prefix) - 1, ':') &&
	       strlen(zone) < sizeof(((struct energy_zone *)0)->name) && !read_line(folder, zone, "name", name, sizeof(name)) &&
	       !strncmp(name, "package", 7);
}

static void find_zones(struct device *d)
{
	const char *folder = d->options->powercap;
	struct dirent *entry;
	DIR *dir = opendir(folder);
	while (dir && d->zones < ENERGY_ZONES && (entry = readdir(dir)))
		if (is_package(folder, entry->d_name)) {
			struct energy_zone *z = &d->zone[d->zones++];
			strcpy(z->name, entry->d_name);
			z->last = -1;
			if (read_number(folder, z->name, "max_energy_range_uj", &z->range))
				z->range = 0;
		}
	if (dir)
		closedir(dir);
}

int device_energy(void *self, uint64_t *source, double *joules, struct loom_error *err)
{
	static const char packages; /* its address identifies the counters of all packages */
	struct device *d = self;
	const char *folder = d->options->powercap;
	double now;
	if (!d->zones)
		find_zones(d);
	if (!d->zones)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: no energy counter: %s has no zone of a CPU package, as in virtual machines: set joules = "
				 "no in [run]", d->name, folder);
	*joules = 0;
	for (uint32_t i = 0; i < d->zones; i++) {
		struct energy_zone *z = &d->zone[i];
		int failed = read_number(folder, z->name, "energy_uj", &now);
		if (failed)
			return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL, "%s: %s/%s/energy_uj: %s%s", d->name, folder, z->name,
					 strerror(failed),
					 failed == EACCES ? ": as root, run chmod a+r on it, or set joules = no in [run]" : "");
		if (z->last >= 0)
			z->total += now - z->last + (now < z->last ? z->range : 0);
		z->last = now;
		*joules += z->total / 1e6;
	}
	*source = (uint64_t)(uintptr_t)&packages;
	return 0;
}
