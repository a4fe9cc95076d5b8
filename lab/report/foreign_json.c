/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of hyperfine (--export-json), Google Benchmark (--benchmark_out, --benchmark_format=json) and nvbench (--json,
 * --jsonbin). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts/must.h"
#include "report/foreign.h"

/* Adds the samples of a list of numbers. `at` names the list, for messages. */
static int add_list(const struct loom__foreign *f, cJSON *b, const cJSON *list, const char *metric, const char *unit,
		    const char *at, struct loom_error *err)
{
	const cJSON *s;
	size_t i = 0;
	cJSON_ArrayForEach(s, list)
	{
		double v = loom__json_double(s);
		if (isnan(v))
			return LOOM__FAIL(err, LOOM_EINVAL, "'%s': %s[%zu] is not a number", f->doc->path, at, i);
		loom__foreign_value(b, metric, unit, "less", v);
		i++;
	}
	return 0;
}

/* Adds a version or a setting, of any scalar type, to the choices of the results. */
static void choose(struct loom__foreign *f, const char *name, const cJSON *item)
{
	char text[40];
	if (cJSON_IsString(item))
		loom__json_add_text(f->choices, name, item->valuestring);
	else if (cJSON_IsBool(item))
		loom__json_add_text(f->choices, name, cJSON_IsTrue(item) ? "true" : "false");
	else if (isfinite(loom__json_double(item))) {
		snprintf(text, sizeof(text), "%.15g", loom__json_double(item));
		loom__json_add_text(f->choices, name, text);
	}
}

/* ---- hyperfine -------------------------------------------------------------------------------- */

static void add_exits(cJSON *b, const cJSON *codes)
{
	const cJSON *c;
	size_t failed = 0, all = 0;
	char text[120];
	cJSON_ArrayForEach(c, codes)
	{
		failed += loom__json_double(c) != 0; /* null, after a signal, counts as failed */
		all++;
	}
	snprintf(text, sizeof(text), "%zu of %zu executions had an exit code other than 0", failed, all);
	if (failed)
		loom__foreign_failed(b, "failed", text);
}

static int add_command(struct loom__foreign *f, const cJSON *o, size_t index, struct loom_error *err)
{
	char at[60];
	const char *name = loom__json_text(o, "command");
	cJSON *b = loom__foreign_benchmark(f, *name ? name : "command", 0, err);
	const cJSON *level, *times = loom__json_list(o, "times");
	if (!b)
		return LOOM_EINVAL;
	loom__foreign_lead(b, "seconds");
	snprintf(at, sizeof(at), "results[%zu].times", index);
	int rc = add_list(f, b, times, "seconds", "s", at, err);
	if (!rc && !loom__json_length(times)) {
		double mean = loom__json_number(o, "mean");
		if (isnan(mean))
			return LOOM__FAIL(err, LOOM_EINVAL, "'%s': results[%zu] has neither times nor a mean: export it "
					  "again by hyperfine --export-json", f->doc->path, index);
		loom__foreign_value(b, "seconds", "s", "less", mean);
		loom__foreign_warn(f, "mean_only", "%.200s: the file has only the mean, which allows no verdict", name);
	}
	snprintf(at, sizeof(at), "results[%zu].memory_usage_byte", index);
	if (!rc)
		rc = add_list(f, b, loom__json_list(o, "memory_usage_byte"), "peak_bytes", "bytes", at, err);
	/* hyperfine exports only the means of these times. */
	static const char *const mean[] = {"user", "user_seconds", "system", "system_seconds"};
	for (size_t i = 0; i < LOOM__COUNT(mean); i += 2)
		if (!isnan(loom__json_number(o, mean[i])))
			loom__foreign_value(b, mean[i + 1], "s", "less", loom__json_number(o, mean[i]));
	cJSON_ArrayForEach(level, loom__json_object(o, "parameters"))
	{
		loom__foreign_level(b, level->string, loom__json_string(level));
	}
	add_exits(b, loom__json_list(o, "exit_codes"));
	return rc;
}

static int read_hyperfine(struct loom__foreign *f, const cJSON *results, struct loom_error *err)
{
	const cJSON *o;
	size_t i = 0;
	int rc = 0;
	cJSON_ArrayForEach(o, results)
	{
		rc = rc ? rc : add_command(f, o, i++, err);
	}
	return rc;
}

/* ---- Google Benchmark --------------------------------------------------------------------------- */

/* Numbers of a benchmark that are neither metrics nor counters of the user. */
static int is_google_index(const char *key)
{
	static const char *const other[] = {"family_index", "per_family_instance_index", "repetitions",
					    "repetition_index", "threads", "iterations", "real_time", "cpu_time"};
	for (size_t i = 0; i < LOOM__COUNT(other); i++)
		if (!strcmp(key, other[i]))
			return 1;
	return 0;
}

/* Returns the direction and unit of a counter. A user's own counter has neither. */
static const char *google_counter(const char *key, const char **unit)
{
	static const char *const rate[] = {"bytes_per_second", "bytes/s", "items_per_second", "items/s"};
	for (size_t i = 0; i < LOOM__COUNT(rate); i += 2)
		if (!strcmp(key, rate[i])) {
			*unit = rate[i + 1];
			return "more";
		}
	*unit = "";
	return "";
}

static void add_google_levels(cJSON *b, const char *name)
{
	const char *slash = strchr(name, '/');
	struct loom__text family = {0};
	loom__text_put(&family, name, slash ? (size_t)(slash - name) : strlen(name));
	loom__foreign_level(b, "benchmark", loom__must_text(&family));
	if (slash)
		loom__foreign_level(b, "arguments", slash + 1);
	loom__text_free(&family);
}

static int add_google(struct loom__foreign *f, const cJSON *o, size_t index, int aggregates, struct loom_error *err)
{
	const char *name = loom__json_text(o, "run_name"), *unit = loom__json_text(o, "time_unit"), *better;
	const cJSON *item;
	double length = 1e-9, real = loom__json_number(o, "real_time"), cpu = loom__json_number(o, "cpu_time");
	int aggregate = !strcmp(loom__json_text(o, "run_type"), "aggregate");
	name = *name ? name : loom__json_text(o, "name");
	if (aggregate && (!aggregates || strcmp(loom__json_text(o, "aggregate_name"), "mean")))
		return 0;
	if (loom__json_true(o, "error_occurred")) {
		loom__foreign_warn(f, "failed", "%.200s failed: %.200s", name, loom__json_text(o, "error_message"));
		return 0;
	}
	if (!*name || isnan(real))
		return LOOM__FAIL(err, LOOM_EINVAL, "'%s': benchmarks[%zu] has no %s", f->doc->path, index,
				  *name ? "real_time" : "name");
	if (*unit && !loom__foreign_time(unit, &length))
		return LOOM__FAIL(err, LOOM_EINVAL, "'%s': benchmarks[%zu].time_unit is '%.20s': expected ns, us, ms or s",
				  f->doc->path, index, unit);
	cJSON *b = loom__foreign_benchmark(f, name, 1, err);
	if (!b)
		return LOOM_EINVAL;
	if (aggregate)
		loom__foreign_warn(f, "mean_only", "%.200s: the file has only the mean, which allows no verdict: leave "
				   "out --benchmark_report_aggregates_only", name);
	add_google_levels(b, name);
	loom__foreign_lead(b, "seconds");
	loom__foreign_value(b, "seconds", "s", "less", real * length);
	if (!isnan(cpu))
		loom__foreign_value(b, "cpu_seconds", "s", "less", cpu * length);
	cJSON_ArrayForEach(item, o)
	{
		if (is_google_index(item->string) || isnan(loom__json_double(item)))
			continue;
		better = google_counter(item->string, &unit);
		loom__foreign_value(b, item->string, unit, better, loom__json_double(item));
	}
	return 0;
}

static int read_google(struct loom__foreign *f, const cJSON *file, struct loom_error *err)
{
	static const char *const setting[] = {"library_version", "library_build_type", "cpu_scaling_enabled",
					      "aslr_enabled"};
	const cJSON *o, *context = loom__json_object(file, "context"), *list = loom__json_list(file, "benchmarks");
	size_t i = 0;
	int rc = 0, single = 0;
	for (size_t k = 0; k < LOOM__COUNT(setting); k++)
		choose(f, setting[k], cJSON_GetObjectItemCaseSensitive(context, setting[k]));
	if (!isnan(loom__json_number(context, "num_cpus")))
		loom__json_add_number(f->before, "cores_online", loom__json_number(context, "num_cpus"));
	if (!strcmp(loom__json_text(context, "library_build_type"), "debug"))
		loom__foreign_warn(f, "debug_build", "the benchmark library is a debug build, which is slower");
	cJSON_ArrayForEach(o, list)
	{
		single |= strcmp(loom__json_text(o, "run_type"), "aggregate") != 0;
	}
	cJSON_ArrayForEach(o, list)
	{
		rc = rc ? rc : add_google(f, o, i++, !single, err);
	}
	return rc;
}

/* ---- nvbench ------------------------------------------------------------------------------------ */

static const cJSON *summary_of(const cJSON *state, const char *tag)
{
	const cJSON *s;
	cJSON_ArrayForEach(s, loom__json_list(state, "summaries"))
	{
		if (!strcmp(loom__json_text(s, "tag"), tag))
			return s;
	}
	return NULL;
}

/* nvbench writes the values of a summary as a list of named texts. */
static const char *datum(const cJSON *summary, const char *name)
{
	const cJSON *d;
	cJSON_ArrayForEach(d, loom__json_list(summary, "data"))
	{
		if (!strcmp(loom__json_text(d, "name"), name))
			return loom__json_text(d, "value");
	}
	return "";
}

static double number_of(const cJSON *state, const char *tag)
{
	const char *text = datum(summary_of(state, tag), "value"), *end;
	double v;
	return !*text || loom__read_double(text, &end, &v) || *end ? NAN : v;
}

/* Returns 1 if a file beside the document may have this name. Names that lead out of the folder are not followed,
 * because the document is from outside. */
static int is_beside(const char *name)
{
	for (const char *at = name; at;) {
		if (!*at || *at == '/' || !strncmp(at, "../", 3) || !strcmp(at, ".."))
			return 0;
		at = strchr(at, '/');
		if (at)
			at++;
	}
	return 1;
}

/* Adds the samples of a file that nvbench --jsonbin has written: float32, little-endian, in seconds. Returns 1 if there
 * is no such file. */
static int add_samples(const struct loom__foreign *f, cJSON *b, const cJSON *state, struct loom_error *err)
{
	const char *name = datum(summary_of(state, "nv/json/bin:nv/cold/sample_times"), "filename");
	struct loom__text path = {0};
	char *bytes;
	size_t length;
	if (!*name || !is_beside(name))
		return 1;
	loom__beside(&path, f->doc->path, name);
	int rc = loom__read_file(loom__must_text(&path), LOOM__DOC_MOST / 16, &bytes, &length, err);
	if (rc) {
		loom__text_free(&path);
		return rc == LOOM_ENOENT ? 1 : rc;
	}
	if (!length || length % 4)
		rc = LOOM__FAIL(err, LOOM_EINVAL, "'%s' has %zu bytes: expected samples of 4 bytes each", path.at, length);
	for (size_t i = 0; i + 4 <= length && !rc; i += 4) {
		const unsigned char *p = (const unsigned char *)bytes + i;
		uint32_t word = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
		float v;
		memcpy(&v, &word, sizeof(v));
		if (!isfinite(v))
			rc = LOOM__FAIL(err, LOOM_EINVAL, "'%s': sample %zu is not a number", path.at, i / 4);
		else
			loom__foreign_value(b, "seconds", "s", "less", (double)v);
	}
	free(bytes);
	loom__text_free(&path);
	return rc;
}

static const char *device_name(const cJSON *file, double id)
{
	const cJSON *d;
	cJSON_ArrayForEach(d, loom__json_list(file, "devices"))
	{
		if (loom__json_number(d, "id") == id)
			return loom__json_text(d, "name");
	}
	return "";
}

static int add_state(struct loom__foreign *f, const cJSON *file, const char *benchmark, const cJSON *state,
		     struct loom_error *err)
{
	struct loom__text name = {0};
	const cJSON *axis;
	const char *own = loom__json_text(state, "name"), *device;
	double mean = number_of(state, "nv/cold/time/gpu/mean");
	if (loom__json_true(state, "is_skipped")) {
		loom__foreign_warn(f, "skipped", "%.100s %.100s was skipped: %.200s", benchmark, own,
				   loom__json_text(state, "skip_reason"));
		return 0;
	}
	loom__text_add(&name, "%s%s%s", benchmark, *own ? " " : "", own);
	cJSON *b = loom__foreign_benchmark(f, loom__must_text(&name), 0, err);
	loom__text_free(&name);
	if (!b)
		return LOOM_EINVAL;
	loom__foreign_level(b, "benchmark", benchmark);
	cJSON_ArrayForEach(axis, loom__json_list(state, "axis_values"))
	{
		loom__foreign_level(b, loom__json_text(axis, "name"), loom__json_text(axis, "value"));
	}
	device = device_name(file, loom__json_number(state, "device"));
	if (*device && !cJSON_GetObjectItemCaseSensitive(f->choices, "device"))
		loom__json_add_text(f->choices, "device", device);
	loom__foreign_lead(b, "seconds");
	int rc = add_samples(f, b, state, err);
	if (rc < 0)
		return rc;
	if (rc && !isnan(mean)) {
		loom__foreign_value(b, "seconds", "s", "less", mean);
		loom__foreign_warn(f, "mean_only", "%.200s: the file has only the mean, which allows no verdict: run the "
				   "benchmark with --jsonbin in place of --json, and keep the folder beside the file",
				   loom__json_text(b, "name"));
	}
	static const char *const rate[][3] = {
	    {"nv/cold/bw/global/bytes_per_second", "bytes_per_second", "bytes/s"},
	    {"nv/cold/bw/item_rate", "items_per_second", "items/s"},
	    {"nv/batch/time/gpu/mean", "batch_seconds", "s"},
	};
	for (size_t i = 0; i < LOOM__COUNT(rate); i++)
		if (!isnan(number_of(state, rate[i][0])))
			loom__foreign_value(b, rate[i][1], rate[i][2], i < 2 ? "more" : "less",
					    number_of(state, rate[i][0]));
	return 0;
}

static int read_nvbench(struct loom__foreign *f, const cJSON *file, struct loom_error *err)
{
	const cJSON *b, *s;
	int rc = 0;
	choose(f, "nvbench", cJSON_GetObjectItemCaseSensitive(
				 loom__json_object(loom__json_object(loom__json_object(file, "meta"), "version"), "nvbench"),
				 "string"));
	cJSON_ArrayForEach(b, loom__json_list(file, "benchmarks"))
	{
		cJSON_ArrayForEach(s, loom__json_list(b, "states"))
		{
			rc = rc ? rc : add_state(f, file, loom__json_text(b, "name"), s, err);
		}
	}
	return rc;
}

int loom__foreign_json(struct loom__doc *doc, struct loom_error *err)
{
	struct loom__foreign f;
	const cJSON *results = loom__json_list(doc->root, "results"), *list = loom__json_list(doc->root, "benchmarks");
	int rc;
	if (results && *loom__json_text(results->child, "command")) {
		loom__foreign_begin(&f, doc, "hyperfine");
		rc = read_hyperfine(&f, results, err);
	} else if (list && loom__json_list(list->child, "states")) {
		loom__foreign_begin(&f, doc, "nvbench");
		rc = read_nvbench(&f, doc->root, err);
	} else if (list && loom__json_object(doc->root, "context")) {
		loom__foreign_begin(&f, doc, "Google Benchmark");
		rc = read_google(&f, doc->root, err);
	} else {
		return LOOM_ENOENT;
	}
	return loom__foreign_end(&f, rc, doc, err);
}
