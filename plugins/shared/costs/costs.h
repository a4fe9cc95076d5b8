/* SPDX-License-Identifier: Apache-2.0 */
/* A trace of costs: how long each task takes, and which tasks come before it. A JSON file:
 *
 *   {"format": "gpuloom-costs", "tasks": [{"id": 0, "cost": 1200}, {"id": 1, "cost": 300, "after": [0]}]}
 *
 * `id` counts from 0 without gaps, in any order. `cost` is in ns. Other keys are skipped. */
#ifndef SHARED_COSTS_H
#define SHARED_COSTS_H

#include <gpuloom/plugin.h>

struct costs {
	uint64_t tasks;
	uint64_t *cost;	       /* [tasks] */
	uint64_t *first_after; /* [tasks + 1]: where the predecessors of a task begin in `after` */
	uint32_t *after;
};

#define COSTS_MOST (1u << 24) /* limit on the tasks of a file */

/* Reads a file of costs. Returns 0, or an error that names the file and the task. */
int costs_read(const struct loom_host *host, const char *path, struct costs *out, struct loom_error *err);
/* Parses the text of such a file. Messages call the text `name`. */
int costs_parse(const struct loom_host *host, const char *name, const char *text, size_t length, struct costs *out,
		struct loom_error *err);
void costs_free(struct costs *c);
/* Writes a file of costs without predecessors. */
int costs_write(const struct loom_host *host, const char *path, const uint64_t *cost, uint64_t tasks,
		struct loom_error *err);
/* The longest chain of tasks that wait for each other, in ns; -1: some wait in a circle, or memory is short. */
int64_t costs_critical_path(const struct costs *c);

#endif
