/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of the machine that affect a measurement and are not in the conf. Only the properties in a fixed list are
 * recorded: no host name, no user name, no path under a home directory and no environment variable. */
#ifndef LOOM_ENVIRONMENT_H
#define LOOM_ENVIRONMENT_H

#include "base/json.h"

#include "base/base.h"

/* Captures all facts. Each is a value, or {"null_because": text} if the value is not known. Returns NULL if memory runs
 * out. */
cJSON *loom__environment(void);

/* The names of the facts that must agree if two results are to be comparable, ended by NULL. The facts that are not
 * listed describe the load and the version of gpuloom. */
extern const char *const loom__environment_fixed[];

/* Appends a fact as text: its value, or "not known (REASON)". */
void loom__environment_text(const cJSON *fact, struct loom__text *out);

/* The load of the machine between two captures of the environment. A member is NaN if it is not known. */
struct loom__activity {
	double seconds;
	double others;              /* CPU time of other programs, as a share of the time of all cores */
	double steal;               /* CPU time that the hypervisor took, as a share of the time of all cores */
	double throttled;           /* number of scheduler periods in which the CPU quota was used up */
	double cpu, memory, io;     /* shares of the time in which a task waited for CPU, memory or I/O (PSI) */
};
void loom__environment_activity(const cJSON *before, const cJSON *after, struct loom__activity *out);

/* Appends a description of each disturbance to `reasons`, and returns the number of disturbances. */
size_t loom__environment_disturbed(const cJSON *before, const cJSON *after, cJSON *reasons);

/* ---- for the files that collect facts -------------------------------------------------------- */

/* Reads a short file without its last newline. Returns 0. On failure, returns -1 and writes the reason to `why`. */
int loom__fact_read(const char *path, char *out, size_t room, char why[200]);
/* The same for a file such as "always [madvise] never", of which `out` gets the selected word. */
int loom__fact_chosen(const char *path, char *out, size_t room, char why[200]);
void loom__fact_none(cJSON *facts, const char *name, const char *fmt, ...) LOOM_PRINTF(3, 4);
/* Adds the content of the file `path` as the fact `name`. */
void loom__fact_file(cJSON *facts, const char *name, const char *path);

void loom__environment_machine(cJSON *facts); /* defined in environment_machine.c */
void loom__environment_load(cJSON *facts);    /* defined in environment_load.c */
/* Sets the seconds that all cores together have been busy, idle or taken by the hypervisor since boot. Returns 0. On
 * failure, returns -1 and writes the reason to `why` if it is not NULL. */
int loom__cpu_seconds(double *busy, double *idle, double *steal, char why[200]);
/* Returns the CPU time of this process and its reaped children in seconds, or NAN if it is not known. */
double loom__own_cpu_seconds(void);

#endif
