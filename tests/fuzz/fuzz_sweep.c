/* SPDX-License-Identifier: Apache-2.0 */
/* The input has the conf of a sweep, with factors, points, rules, claims of a paper and settings of the report. The
 * target applies the configurations to the conf. After a line "%%" follow expressions and lists as in options, one per
 * line. */
#include <stdlib.h>
#include <string.h>

#include "compare/rules.h"
#include "input.h"
#include "papers/papers.h"
#include "sweep/spec.h"

enum { CONFIGS = 64 };

static void printable(struct loom__diag *diag)
{
	struct loom__text t = {0};
	loom__diag_text(diag, &t);
	fuzz_printable("diag", t.at ? t.at : "", t.length);
	loom__text_free(&t);
	loom__diag_free(diag);
}

/* Checks that each configuration has one value of each factor, and applies it to a copy of the conf. */
static void configs(const struct loom__sweep_spec *spec, const char *text, size_t n)
{
	struct loom__configs configs;
	struct loom_error err;
	if (loom__configs_make(spec->factor, spec->factors, &configs, &err)) {
		FUZZ_CHECK(*err.text);
		return;
	}
	for (size_t i = 0; i < configs.count && i < CONFIGS; i++) {
		const size_t *pick = configs.pick + i * configs.factors;
		struct loom_config *config;
		struct loom__diag diag = {0};
		for (size_t f = 0; f < configs.factors; f++)
			FUZZ_CHECK(pick[f] < spec->factor[f].values);
		const struct loom__constraint *c = loom__constraint_of(spec->constraint, spec->constraints, pick);
		FUZZ_CHECK(!c || *c->reason);
		if (loom_config_create(&config, NULL))
			abort();
		loom__config_read_text(config, "x.ini", text, n, &diag);
		loom__sweep_spec_overruled(spec, pick, config, &diag);
		loom__sweep_spec_apply(spec, pick, config, &diag);
		printable(&diag);
		loom_config_destroy(config);
	}
	loom__configs_free(&configs);
}

static void expression(void *arg, char *line)
{
	struct loom__derived derived;
	struct loom__gate_rule rule;
	struct loom__bar bar;
	struct loom__factor factor = {0};
	struct loom__compare_metric metric;
	struct loom_error err = {0};
	unsigned plots;
	(void)arg;
	double low, high;
	loom__derived_read(line, &derived, &err);
	FUZZ_CHECK(loom__claim_range(line, &low, &high, &err) || low <= high);
	loom__gate_rule_parse(line, &rule, &err);
	loom__bar_parse(line, &bar, &err);
	loom__compare_metric_parse(line, &metric, &err);
	loom__report_plots(line, &plots, &err);
	if (!loom__factor_parse(line, &factor, &err))
		FUZZ_CHECK(factor.values && *factor.key);
	loom__factor_free(&factor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_parts parts = {data, size};
	size_t n;
	char *text = fuzz_part(&parts, &n), *lines = fuzz_part(&parts, NULL);
	struct loom_config *cfg;
	struct loom__diag diag = {0};
	struct loom__sweep_spec spec;
	if (loom_config_create(&cfg, NULL))
		abort();
	loom__config_read_text(cfg, "x.ini", text, n, &diag);
	if (loom__sweep_spec_in(cfg) && !loom__sweep_spec_read(cfg, &spec, &diag)) {
		struct loom__figure figure;
		configs(&spec, text, n);
		if (!loom__figure_read(cfg, &spec, &figure, &diag) && figure.entry) {
			cJSON *json = loom__figure_json(&figure);
			FUZZ_CHECK(*figure.of && *figure.shows && figure.numbers && !loom__json_broken(json));
			cJSON_Delete(json);
		}
		loom__figure_free(&figure);
		loom__sweep_spec_free(&spec);
	}
	printable(&diag);
	fuzz_lines(lines, expression, NULL);
	loom_config_destroy(cfg);
	free(text);
	free(lines);
	return 0;
}
