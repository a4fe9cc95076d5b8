/* SPDX-License-Identifier: Apache-2.0 */
#include "costs.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/replace.h"

#define FILE_MOST ((size_t)256 << 20)

#define LONGEST_NS 1e11 /* limit on the cost of a task in ns, so that sums of COSTS_MOST costs stay below 2^63 */

void costs_free(struct costs *c)
{
	free(c->cost);
	free(c->first_after);
	free(c->after);
	*c = (struct costs){0};
}

static int whole(const cJSON *item, double most, uint64_t *value)
{
	double v = cJSON_IsNumber(item) ? item->valuedouble : -1;
	if (!(v >= 0 && v <= most))
		return 0;
	*value = (uint64_t)v;
	return 1;
}

/* Stores the JSON object of task `id` in entry[id]. Adds the number of predecessors of all tasks to *edges. */
static int sort_by_id(const struct loom_host *host, const char *name, const cJSON *tasks, uint64_t n,
		      const cJSON **entry, uint64_t *edges, struct loom_error *err)
{
	const cJSON *t;
	uint64_t at = 0, id;
	cJSON_ArrayForEach(t, tasks)
	{
		const cJSON *after = cJSON_GetObjectItemCaseSensitive(t, "after");
		uint64_t cost;
		if (!whole(cJSON_GetObjectItemCaseSensitive(t, "id"), (double)n - 1, &id) || entry[id])
			return LOOM_FAIL(host, err, LOOM_EINVAL,
					 "%s: task %" PRIu64 " of the list: \"id\" must be a number from 0 to %" PRIu64
					 " that no other task has",
					 name, at, n - 1);
		if (!whole(cJSON_GetObjectItemCaseSensitive(t, "cost"), LONGEST_NS, &cost))
			return LOOM_FAIL(host, err, LOOM_EINVAL,
					 "%s: task %" PRIu64 ": \"cost\" must be a number of ns, from 0 to 10^11", name, id);
		if (after && !cJSON_IsArray(after))
			return LOOM_FAIL(host, err, LOOM_EINVAL,
					 "%s: task %" PRIu64 ": \"after\" must be a list of ids", name, id);
		*edges += after ? (uint64_t)cJSON_GetArraySize(after) : 0;
		entry[id] = t;
		at++;
	}
	return 0;
}

static int fill(const struct loom_host *host, const char *name, const cJSON **entry, struct costs *out,
		struct loom_error *err)
{
	uint64_t at = 0;
	for (uint64_t id = 0; id < out->tasks; id++) {
		const cJSON *before;
		out->first_after[id] = at;
		whole(cJSON_GetObjectItemCaseSensitive(entry[id], "cost"), LONGEST_NS, &out->cost[id]);
		cJSON_ArrayForEach(before, cJSON_GetObjectItemCaseSensitive(entry[id], "after"))
		{
			uint64_t other;
			if (!whole(before, (double)out->tasks - 1, &other) || other == id)
				return LOOM_FAIL(host, err, LOOM_EINVAL,
						 "%s: task %" PRIu64 ": \"after\" names a task that is not there, or itself",
						 name, id);
			out->after[at++] = (uint32_t)other;
		}
	}
	out->first_after[out->tasks] = at;
	return 0;
}

static int take(const struct loom_host *host, const char *name, const cJSON *root, struct costs *out,
		struct loom_error *err)
{
	const cJSON *format = cJSON_GetObjectItemCaseSensitive(root, "format"),
		    *tasks = cJSON_GetObjectItemCaseSensitive(root, "tasks");
	uint64_t n = cJSON_IsArray(tasks) ? (uint64_t)cJSON_GetArraySize(tasks) : 0, edges = 0;
	if (!cJSON_IsString(format) || strcmp(format->valuestring, "gpuloom-costs") || !n || n > COSTS_MOST)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "%s: not a trace of costs: an object is expected with \"format\": \"gpuloom-costs\" and "
				 "\"tasks\", a list of 1 to %u",
				 name, COSTS_MOST);
	const cJSON **entry = calloc(n, sizeof(*entry));
	int rc = entry ? sort_by_id(host, name, tasks, n, entry, &edges, err)
		       : LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", name);
	if (!rc) {
		out->tasks = n;
		out->cost = calloc(n, sizeof(*out->cost));
		out->first_after = calloc(n + 1, sizeof(*out->first_after));
		out->after = calloc(edges + 1, sizeof(*out->after));
		rc = out->cost && out->first_after && out->after
			     ? fill(host, name, entry, out, err)
			     : LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", name);
	}
	free(entry);
	if (!rc && costs_critical_path(out) < 0)
		rc = LOOM_FAIL(host, err, LOOM_EINVAL, "%s: some tasks come after each other in a circle", name);
	if (rc)
		costs_free(out);
	return rc;
}

int costs_parse(const struct loom_host *host, const char *name, const char *text, size_t length, struct costs *out,
		struct loom_error *err)
{
	const char *end = NULL;
	cJSON *root = cJSON_ParseWithLengthOpts(text, length, &end, 0);
	*out = (struct costs){0};
	if (!root) {
		int line = 1;
		for (const char *p = text; end && p < end && p < text + length; p++)
			line += *p == '\n';
		return LOOM_FAIL(host, err, LOOM_EINVAL, "%s:%d: not JSON", name, line);
	}
	int rc = take(host, name, root, out, err);
	cJSON_Delete(root);
	return rc;
}

int costs_read(const struct loom_host *host, const char *path, struct costs *out, struct loom_error *err)
{
	struct loom__text text = {0};
	const char *why = loom__text_read(&text, path, FILE_MOST);
	*out = (struct costs){0};
	int rc = why ? LOOM_FAIL(host, err, loom__errno_code(errno), "%s: %s", path, why)
		     : costs_parse(host, path, text.at, text.length, out, err);
	loom__text_free(&text);
	return rc;
}

int costs_write(const struct loom_host *host, const char *path, const uint64_t *cost, uint64_t tasks,
		struct loom_error *err)
{
	struct loom__text text = {0};
	loom__text_add(&text, "{\"format\": \"gpuloom-costs\", \"tasks\": [\n");
	for (uint64_t i = 0; i < tasks; i++)
		loom__text_add(&text, "{\"id\": %" PRIu64 ", \"cost\": %" PRIu64 "}%s\n", i, cost[i], i + 1 < tasks ? "," : "");
	loom__text_add(&text, "]}\n");
	int number = loom__text_ok(&text) ? loom__replace(path, text.at, text.length) : ENOMEM;
	loom__text_free(&text);
	return number ? LOOM_FAIL(host, err, loom__errno_code(number), "%s: %s", path, strerror(number)) : 0;
}

/* Takes tasks in Kahn's order: a task is taken when all its predecessors have been taken. */
int64_t costs_critical_path(const struct costs *c)
{
	uint64_t n = c->tasks, edges = c->first_after[n], taken = 0, put = 0, longest = 0;
	uint64_t *start = calloc(n, sizeof(*start));
	uint32_t *open = calloc(n, sizeof(*open)), *queue = calloc(n, sizeof(*queue)), *next = malloc((edges + 1) * 4);
	uint64_t *first = calloc(n + 2, sizeof(*first));
	if (start && open && queue && next && first) {
		/* next[] has the successors of all tasks. The successors of task i are at first[i] to first[i + 1]. */
		for (uint64_t e = 0; e < edges; e++)
			first[c->after[e] + 2]++;
		for (uint64_t i = 0; i <= n; i++)
			first[i + 1] += first[i];
		for (uint64_t i = 0; i < n; i++)
			for (uint64_t e = c->first_after[i]; e < c->first_after[i + 1]; e++)
				next[first[c->after[e] + 1]++] = (uint32_t)i;
		for (uint64_t i = 0; i < n; i++) {
			open[i] = (uint32_t)(c->first_after[i + 1] - c->first_after[i]);
			if (!open[i])
				queue[put++] = (uint32_t)i;
		}
		while (taken < put) {
			uint32_t i = queue[taken++];
			uint64_t end = start[i] + c->cost[i];
			longest = end > longest ? end : longest;
			for (uint64_t e = first[i]; e < first[i + 1]; e++) {
				start[next[e]] = end > start[next[e]] ? end : start[next[e]];
				if (!--open[next[e]])
					queue[put++] = next[e];
			}
		}
	}
	free(start);
	free(open);
	free(queue);
	free(next);
	free(first);
	return taken == n ? (int64_t)longest : -1;
}
