/* SPDX-License-Identifier: Apache-2.0 */
/* A trace of costs says how long each task takes, and which tasks must end before it. It is a JSON file:
 *
 *   {"format": "gpuloom-costs", "tasks": [{"id": 0, "cost": 1200}, {"id": 1, "cost": 300, "after": [0]}]}
 *
 * `id` counts from 0 without gaps. Tasks may be in any order. `cost` is in ns. `after` has the ids of the tasks that
 * must end before this task begins. Other keys are skipped. */
#ifndef SHARED_COSTS_H
#define SHARED_COSTS_H

#include <gpuloom/plugin.h>

struct costs {
	uint64_t tasks;
	uint64_t *cost;	       /* [tasks]: cost of each task in ns */
	uint64_t *first_after; /* [tasks + 1]: index in `after` of a task's first predecessor */
	uint32_t *after;
};

#define COSTS_MOST (1u << 24) /* limit on the number of tasks in a file */

/* Reads a file of costs. Returns 0, or an error with the names of the file and the task. */
int costs_read(const struct loom_host *host, const char *path, struct costs *out, struct loom_error *err);
/* Parses the text of such a JSON file. name: what error messages call the text. */
int costs_parse(const struct loom_host *host, const char *name, const char *text, size_t length, struct costs *out,
		struct loom_error *err);
void costs_free(struct costs *c);
/* Writes a file of costs without `after`. */
int costs_write(const struct loom_host *host, const char *path, const uint64_t *cost, uint64_t tasks,
		struct loom_error *err);
/* Returns the length in ns of the longest chain of tasks that wait for each other. Returns -1 if some tasks wait in a
 * circle, or if memory is short. */
int64_t costs_critical_path(const struct costs *c);

#endif
