/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the names of metrics to show. Only samples show which metrics exist. After the first sample, an unknown name
 * that is similar to an existing one ends the sweep. Any other unknown name ends the sweep only after the first round
 * over all configurations, because some metrics exist only in some configurations. The samples stay in the file, so the
 * user can resume the sweep with the right name. */
#include <stdio.h>
#include <string.h>

#include "cli/base/session.h"
#include "cli/sweep/sweep.h"
#include "facts/must.h"
#include "facts/token.h"
#include "facts/write.h"

void loom__sweep_note_line(void *session, const cJSON *line)
{
	struct loom__sweep_session *s = session;
	const cJSON *metric, *report = loom__json_object(line, "report");
	cJSON_ArrayForEach(metric, loom__json_object(line, "metrics"))
	{
		if (metric->string)
			loom__names_add(&s->arena, &s->metric, metric->string);
	}
	if (!report)
		return;
	cJSON_Delete(s->report);
	s->report = cJSON_Duplicate(report, 1);
}

const char *loom__sweep_output(const struct loom__sweep_session *s)
{
	const char *path = s->params->output ? s->params->output : s->spec->opts.output;
	return *path && !loom__names_stdout(path) ? path : NULL;
}

static void look_for(struct loom__sweep_session *s, const char *list, int certain)
{
	const char *file = loom__sweep_output(s);
	struct loom__text some = {0}, kept = {0};
	if (file)
		loom__text_add(&kept, ". The samples are in '%s': --resume continues", file);
	for (size_t i = 0; i < s->metric.count && i < 12; i++)
		loom__text_add(&some, "%s%.48s", i ? ", " : "", s->metric.name[i]);
	for (char name[80]; !s->mistake.code && loom__take_name(&list, name, sizeof(name));) {
		if (loom__names_find(&s->metric, name) != LOOM__NO_NAME)
			continue;
		const char *near = loom__nearest(name, s->metric.name, s->metric.count);
		if (near)
			LOOM__FAIL(&s->mistake, LOOM_EINVAL, "no metric '%s'; did you mean '%s'?%s", name, near,
				   kept.at ? kept.at + 1 : "");
		else if (certain)
			LOOM__FAIL(&s->mistake, LOOM_EINVAL, "no metric '%s' in any configuration; there are %s%s%s",
				   name, some.at ? some.at : "none", s->metric.count > 12 ? ", ..." : "",
				   loom__must_text(&kept));
		else
			loom__say_warning(s->cli, "no metric '%s' in the first sample", name);
	}
	loom__text_free(&some);
	loom__text_free(&kept);
}

static void look(struct loom__sweep_session *s, int certain)
{
	look_for(s, s->spec->opts.metric, certain);
	look_for(s, s->spec->opts.pareto, certain);
}

void loom__sweep_note_sample(struct loom__sweep_session *s, const struct loom__sample *sample)
{
	for (size_t i = 0; i < sample->report.count; i++)
		loom__names_add(&s->arena, &s->metric, sample->report.list[i].name);
	if (!s->looked++)
		look(s, 0);
}

void loom__sweep_check_metrics(struct loom__sweep_session *s)
{
	if (!s->sure++ && s->metric.count)
		look(s, 1);
}
