/* SPDX-License-Identifier: Apache-2.0 */
/* Draws what each worker did in the sample nearest to the median: when the worker ran, for how long it was idle, and
 * how many tasks it executed and stole. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/plot/plot.h"
#include "report/text/table.h"

#define MOST_WORKERS 48

struct crew {
	const cJSON *worker[MOST_WORKERS];
	size_t shown, all, row;
	double until, most; /* ends of the two axes; until: ns; most: tasks */
};

static double counter(const struct crew *c, size_t i, const char *name)
{
	double v = loom__view_counter(c->worker[i], name, c->row);
	return v > 0 ? v : 0;
}

static void gather(struct crew *c, const struct loom__view *view, const struct loom__variant *v)
{
	const cJSON *item, *workers = loom__json_list(v->result, "workers");
	size_t i = 0;
	c->row = loom__view_typical(view, v);
	c->all = c->row == SIZE_MAX ? 0 : loom__json_length(workers);
	cJSON_ArrayForEach(item, workers)
	{
		/* If there are too many workers, an even selection is drawn. */
		if (c->shown < MOST_WORKERS && (c->all <= MOST_WORKERS || i * MOST_WORKERS / c->all >= c->shown))
			c->worker[c->shown++] = item;
		i++;
	}
	c->shown = c->all ? c->shown : 0;
	for (i = 0; i < c->shown; i++) {
		c->until = fmax(c->until, counter(c, i, "end_ns"));
		c->most = fmax(c->most, counter(c, i, "executed"));
	}
}

static void draw_time(struct loom__text *out, const struct crew *c, const struct loom__scale *s, size_t i, double y,
		      double thick)
{
	double begin = counter(c, i, "begin_ns"), end = counter(c, i, "end_ns");
	double idle = counter(c, i, "idle_ns"), last = counter(c, i, "last_task_ns");
	char tip[600];
	if (end < begin)
		end = begin;
	idle = fmin(idle, end - begin);
	loom__svg_box(out, "idle", loom__scale_at(s, begin), y, loom__scale_at(s, end) - loom__scale_at(s, begin),
		      thick, 2);
	loom__text_add(out, "<rect class=\"fill s0\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"2\">",
		       LOOM__XY(loom__scale_at(s, begin)), LOOM__XY(y),
		       LOOM__XY(loom__scale_at(s, end - idle) - loom__scale_at(s, begin)), LOOM__XY(thick));
	snprintf(tip, sizeof(tip), "from %s to %s, %s of it (%.0f %%) without work", LOOM__FIGURE(begin, "ns"),
		 LOOM__FIGURE(end, "ns"), LOOM__FIGURE(idle, "ns"), end > begin ? 100 * idle / (end - begin) : 0);
	loom__svg_tip(out, tip);
	loom__text_add(out, "</rect>\n");
	if (last > 0)
		loom__svg_line(out, "last", loom__scale_at(s, last), y - 2, loom__scale_at(s, last), y + thick + 2);
}

static void draw_tasks(struct loom__text *out, const struct crew *c, const struct loom__scale *s, size_t i, double y,
		       double thick)
{
	double run = counter(c, i, "executed"), taken = fmin(counter(c, i, "stolen_in"), run);
	double given = counter(c, i, "stolen_out");
	char tip[600];
	double from = loom__scale_at(s, 0), middle = loom__scale_at(s, run - taken);
	double to = loom__scale_at(s, run);
	loom__svg_box(out, "fill s0", from, y, middle - from, thick, 2);
	loom__text_add(out, "<rect class=\"fill s1\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"2\">",
		       LOOM__XY(middle), LOOM__XY(y), LOOM__XY(fmax(0, to - middle)), LOOM__XY(thick));
	snprintf(tip, sizeof(tip), "executed %s tasks, %s of them stolen; %s were stolen from it",
		 LOOM__FIGURE(run, ""), LOOM__FIGURE(taken, ""), LOOM__FIGURE(given, ""));
	loom__svg_tip(out, tip);
	loom__text_add(out, "</rect>\n");
	loom__svg_text(out, "note", to + 6, y + thick / 2 + 4, 's', LOOM__FIGURE(run, ""), 20);
}

static void draw_panel(struct loom__text *out, const struct crew *c, int tasks, double left, double right, double top,
		       double pitch)
{
	static const struct {
		const char *style[2], *text[2];
	} key[] = {{{"fill s0", "idle"}, {"with work", "without"}}, {{"fill s0", "fill s1"}, {"own tasks", "stolen"}}};
	struct loom__scale s;
	double bottom = top + pitch * (double)c->shown + 4, thick = fmin(14, pitch - 4), x = left;
	char label[40], title[80];
	loom__scale_fit(&s, 0, tasks ? c->most : c->until, tasks ? "tasks" : "ns", left, tasks ? right - 52 : right,
			72);
	s.lo = 0;
	snprintf(title, sizeof(title), tasks ? "executed, %s" : "time, %s", s.unit);
	loom__svg_text(out, "name", left, top - 34, 's', title, 60);
	for (int k = 0; k < 2; k++) {
		loom__svg_box(out, key[tasks].style[k], x, top - 24, 10, 10, 2);
		loom__svg_text(out, "note", x + 15, top - 15, 's', key[tasks].text[k], 20);
		x += 96;
	}
	loom__svg_axis_x(out, &s, bottom, top);
	for (size_t i = 0; i < c->shown; i++) {
		double y = top + pitch * (double)i + (pitch - thick) / 2,
		       id = loom__json_number(c->worker[i], "worker");
		snprintf(label, sizeof(label), "%.0f", id >= 0 && id < 1e9 ? id : (double)i);
		if (pitch >= 14 || i % 4 == 0)
			loom__svg_text(out, "tick", left - 8, y + thick / 2 + 4, 'e', label, 10);
		if (tasks)
			draw_tasks(out, c, &s, i, y, thick);
		else
			draw_time(out, c, &s, i, y, thick);
	}
}

double loom__plot_workers(struct loom__text *out, const struct loom__view *view, const struct loom__variant *v,
			  double width)
{
	struct crew c = {0};
	int narrow = width < 600;
	gather(&c, view, v);
	if (!c.shown || c.until <= 0)
		return 0;
	double pitch = c.shown <= 16 ? 22 : 15, rows = pitch * (double)c.shown, left = 36;
	int tasks = c.most > 0;
	double panel = 44 + rows + 34, height = narrow && tasks ? 2 * panel + 14 : panel;
	height += c.all > c.shown ? 18 : 0;
	loom__svg_begin(out, width, height, "What each worker did in a typical sample");
	if (!tasks) {
		draw_panel(out, &c, 0, left, width - 14, 44, pitch);
	} else if (narrow) {
		draw_panel(out, &c, 0, left, width - 14, 44, pitch);
		draw_panel(out, &c, 1, left, width, 44 + panel + 14, pitch);
	} else {
		draw_panel(out, &c, 0, left, width * 0.56, 44, pitch);
		draw_panel(out, &c, 1, width * 0.56 + 60, width, 44, pitch);
	}
	if (c.all > c.shown) {
		char text[80];
		snprintf(text, sizeof(text), "%zu of %zu workers, evenly selected", c.shown, c.all);
		loom__svg_text(out, "note", left, height - 4, 's', text, 80);
	}
	loom__svg_end(out);
	return height;
}
