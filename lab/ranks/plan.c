/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out from the environment how this process was started. */
#include <stdlib.h>
#include <string.h>

#include "ranks/boot.h"

static int number(const char *name, uint32_t *value)
{
	const char *text = getenv(name);
	char *end;
	if (!text || !*text)
		return 0;
	unsigned long n = strtoul(text, &end, 10);
	if (*end || n > UINT32_MAX)
		return 0;
	*value = (uint32_t)n;
	return 1;
}

/* Launchers: the variable with the number of processes, the name, and advice on how to provide PMIx. */
static const struct {
	const char *size, *launcher, *fix;
} launchers[] = {
    {"SLURM_STEP_NUM_TASKS", "srun", "start it with `srun --mpi=pmix`"},
    {"OMPI_COMM_WORLD_SIZE", "mpirun", "use an mpirun with PMIx (Open MPI 4 or later)"},
    {"PMI_SIZE", "the launcher", "use a launcher with PMIx, such as `mpirun` of Open MPI or `srun --mpi=pmix`"},
};

int loom__boot_plan(uint32_t wanted, struct loom__boot_plan *plan, struct loom_error *err)
{
	uint32_t n = 0;
	int pmix = getenv("PMIX_RANK") && getenv("PMIX_NAMESPACE");
	*plan = (struct loom__boot_plan){.ranks = 1};
	/* A command in a shell that a launcher has started also has these variables, so it cannot be distinguished from
	 * a rank. */
	if (wanted && pmix)
		return LOOM__FAIL(err, LOOM_EINVAL, "-n %u under a launcher that starts the ranks (PMIX_RANK is "
				"set): remove -n; if no launcher started this process, `unset PMIX_RANK "
				"PMIX_NAMESPACE` first", wanted);
	if (wanted > 1)
		*plan = (struct loom__boot_plan){.how = LOOM__BOOT_FORK, .ranks = wanted};
	if (wanted)
		return 0;
	if (pmix) {
		plan->how = LOOM__BOOT_PMIX;
		return 0;
	}
	for (size_t i = 0; i < LOOM__COUNT(launchers); i++)
		if (number(launchers[i].size, &n) && n > 1)
			return LOOM__FAIL(err, LOOM_EUNAVAIL, "%s started %u processes (%s) that cannot connect: "
					"each would be a separate job; %s, or let gpuloom start them with -n %u",
					launchers[i].launcher, n, launchers[i].size, launchers[i].fix, n);
	return 0;
}

int loom__boot_alone(const char *command, struct loom_error *err)
{
	static const char fix[] = "each would run the whole command: start it once";
	uint32_t n = 0;
	for (size_t i = 0; i < LOOM__COUNT(launchers); i++)
		if (number(launchers[i].size, &n) && n > 1)
			return LOOM__FAIL(err, LOOM_EINVAL, "%s: %s started %u processes (%s): %s", command,
					  launchers[i].launcher, n, launchers[i].size, fix);
	return 0;
}
