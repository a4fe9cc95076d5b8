/* SPDX-License-Identifier: Apache-2.0 */
/* The input is any file, as the journal of a sweep that is started, resumed or restarted. A rejected file must not
 * change. A continued file must at the end have all samples of all configurations, in complete lines. */
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "sweep/sweep.h"

enum { CONFIGS = 6, SAMPLES = 2 };

static const char header[] =
    "{\"schema\":\"gpuloom.sweep/1\",\"factors\":{\"a.x\":[\"1\",\"2\",\"3\"],\"a.y\":[\"p\",\"q\"]},"
    "\"constraints\":[],\"seed\":1}";

static int open_configuration(void *arg, size_t i, void **run, struct loom_error *err)
{
	(void)arg, (void)err;
	*run = (void *)(i + 1);
	return i == 5 ? LOOM__FAIL(err, LOOM_EUNAVAIL, "configuration 5 cannot be run") : 0;
}

static int sample(void *arg, void *run, cJSON *line, struct loom_error *err)
{
	(void)arg, (void)err;
	loom__json_add_number(line, "seconds", (double)(uintptr_t)run);
	return 0;
}

static void close_configuration(void *arg, void *run)
{
	(void)arg, (void)run;
}

static const struct loom__sweep_ops ops = {.open = open_configuration, .sample = sample, .close = close_configuration};

static void make_configurations(struct loom__sweep *s)
{
	for (size_t i = 0; i < CONFIGS; i++) {
		struct loom__sweep_config *c = &s->config[i];
		snprintf(c->id, sizeof(c->id), "%032zx", i);
		c->values = cJSON_CreateObject();
		loom__json_add_number(c->values, "a.x", (double)(i / 2));
		loom__json_add_text(c->values, "a.y", i % 2 ? "q" : "p");
		if (i == 4)
			c->skipped = strdup("no use");
	}
}

static void whole(const struct loom__journal *j, const struct loom__sweep *s)
{
	struct loom__doc doc;
	struct loom_error err;
	size_t at = 0, count[CONFIGS] = {0};
	FUZZ_CHECK(!loom__journal_read(j, &doc, &err));
	FUZZ_CHECK(doc.kind == LOOM__DOC_SWEEP && !doc.torn);
	for (cJSON *line; (line = loom__doc_line(&doc, &at)); cJSON_Delete(line))
		for (size_t i = 0; i < CONFIGS; i++)
			count[i] += !strcmp(loom__json_text(line, "configuration"), s->config[i].id);
	for (size_t i = 0; i < CONFIGS; i++)
		FUZZ_CHECK(count[i]);
	loom__doc_free(&doc);
}

static void go_on(struct loom__journal *j, int restart)
{
	struct loom_error err = {0};
	size_t n, m;
	cJSON *head = cJSON_Parse(header);
	struct loom__sweep s = {.config = calloc(CONFIGS, sizeof(*s.config)), .configs = CONFIGS, .samples = SAMPLES, .seed = 1,
				.journal = j, .ops = &ops};
	make_configurations(&s);
	char *was = fuzz_file_bytes(0, &n);
	int rc = loom__sweep_resume(&s, head, &err);
	if (!rc && !j->before.root)
		rc = loom__journal_add(j, head, &err);
	if (!rc) {
		FUZZ_CHECK(!loom__sweep_run(&s, &err));
		whole(j, &s);
	}
	char *is = fuzz_file_bytes(0, &m);
	/* The sweep replaces an incomplete line at the end by new lines. */
	const char *last = memrchr(was, '\n', n);
	size_t kept = rc ? n : restart || !last ? 0 : (size_t)(last - was) + 1;
	FUZZ_CHECK(rc ? m == n : m >= kept);
	FUZZ_CHECK(!memcmp(is, was, kept));
	free(is);
	free(was);
	FUZZ_CHECK(!rc || *err.text);
	loom__sweep_free(&s);
	cJSON_Delete(head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum loom__journal_mode way[] = {LOOM__JOURNAL_NEW, LOOM__JOURNAL_RESUME, LOOM__JOURNAL_RESTART};
	for (size_t i = 0; i < LOOM__COUNT(way); i++) {
		const char *path = fuzz_file(0, data, size);
		struct loom__journal j;
		struct loom_error err = {0};
		if (loom__journal_open(path, NULL, way[i], &j, &err)) {
			size_t n;
			char *is = fuzz_file_bytes(0, &n);
			FUZZ_CHECK(*err.text);
			FUZZ_CHECK(n == size && !memcmp(is, data, n));
			free(is);
			continue;
		}
		int ours =
		    size && (memchr(data, '\n', size) ? !!memmem(data, size, "gpuloom.sweep", 13) : data[0] == '{');
		FUZZ_CHECK(!size || (ours && way[i] != LOOM__JOURNAL_NEW));
		go_on(&j, way[i] == LOOM__JOURNAL_RESTART);
		loom__journal_close(&j);
	}
	return 0;
}
