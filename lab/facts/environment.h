/* SPDX-License-Identifier: Apache-2.0 */
/* What a measurement depends on and its conf does not say. An allow-list: no name of the machine, of a
 * user or of a path under a home, and no environment variables. */
#ifndef LOOM_ENVIRONMENT_H
#define LOOM_ENVIRONMENT_H

#include "base/json.h"

#include "base/base.h"

/* Every fact as it is now: a value, or {"null_because": text}. NULL: out of memory. */
cJSON *loom__environment(void);

/* Facts that two results must share to be comparable, by name; NULL ends the list. The others say
 * how busy the machine was, or which gpuloom it was. */
extern const char *const loom__environment_fixed[];

/* A fact for people: its value, or "not known (why)". */
void loom__environment_text(const cJSON *fact, struct loom__text *out);

/* How busy the machine was between two captures, as shares of the time; NaN: not known. */
struct loom__activity {
	double seconds;
	double others;              /* CPU time of programs that are not ours, of all cores' time */
	double steal;               /* CPU time that the hypervisor gave to others */
	double throttled;           /* periods in which the CPU quota was used up */
	double cpu, memory, io;     /* time in which some task waited for it: pressure stall */
};
void loom__environment_activity(const cJSON *before, const cJSON *after, struct loom__activity *out);

/* Says in words what was not quiet, one string each; returns how many were added to `reasons`. */
size_t loom__environment_disturbed(const cJSON *before, const cJSON *after, cJSON *reasons);

/* ---- for the files that gather facts */

/* A short file without its last newline; 0, or -1 with the reason in `why`. */
int loom__fact_read(const char *path, char *out, size_t room, char why[200]);
void loom__fact_none(cJSON *facts, const char *name, const char *fmt, ...) LOOM_PRINTF(3, 4);
/* The content of a file as a fact. */
void loom__fact_file(cJSON *facts, const char *name, const char *path);

void loom__environment_machine(cJSON *facts); /* environment_machine.c */
void loom__environment_load(cJSON *facts);    /* environment_load.c */
/* Since boot, of all cores. 0, or -1 with the reason where `why` is not NULL. */
int loom__cpu_seconds(double *busy, double *idle, double *steal, char why[200]);
/* Of this process and the children that it has waited for; NAN: not known. */
double loom__own_cpu_seconds(void);

#endif
