/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of the machine that affect a measurement and are not in its conf. An allow-list: no host name, no user
 * name, no path under a home, no environment variables. */
#ifndef LOOM_ENVIRONMENT_H
#define LOOM_ENVIRONMENT_H

#include "base/json.h"

#include "base/base.h"

/* All facts as of now: a value, or {"null_because": text}. NULL: out of memory. */
cJSON *loom__environment(void);

/* Facts that must agree for two results to be comparable, by name; NULL-terminated. The others describe the load and
 * the version of gpuloom. */
extern const char *const loom__environment_fixed[];

/* A fact as text: its value, or "not known (why)". */
void loom__environment_text(const cJSON *fact, struct loom__text *out);

/* The load of the machine between two captures, as shares of the time; NaN: not known. */
struct loom__activity {
	double seconds;
	double others;              /* CPU time of other programs, of the time of all cores */
	double steal;               /* CPU time that the hypervisor gave to other guests */
	double throttled;           /* periods in which the CPU quota was used up */
	double cpu, memory, io;     /* time in which some task waited for the resource: pressure stall information */
};
void loom__environment_activity(const cJSON *before, const cJSON *after, struct loom__activity *out);

/* Describes disturbances, one string each; returns the number of strings added to `reasons`. */
size_t loom__environment_disturbed(const cJSON *before, const cJSON *after, cJSON *reasons);

/* ---- for the files that collect facts -------------------------------------------------------- */

/* A short file without its last newline; returns 0, or -1 with the reason in `why`. */
int loom__fact_read(const char *path, char *out, size_t room, char why[200]);
void loom__fact_none(cJSON *facts, const char *name, const char *fmt, ...) LOOM_PRINTF(3, 4);
/* The content of a file as a fact. */
void loom__fact_file(cJSON *facts, const char *name, const char *path);

void loom__environment_machine(cJSON *facts); /* environment_machine.c */
void loom__environment_load(cJSON *facts);    /* environment_load.c */
/* Since boot, over all cores. Returns 0, or -1 with the reason in `why` unless NULL. */
int loom__cpu_seconds(double *busy, double *idle, double *steal, char why[200]);
/* Of this process and its reaped children; NAN: not known. */
double loom__own_cpu_seconds(void);

#endif
