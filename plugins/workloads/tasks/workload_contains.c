/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_contains, which counts the documents that contain a word. Its input may be real, and its
 * tasks have very different lengths. */
#include "workload_contains.dev.h"
#include "contains.h"
#include "../common/host.h"

#include <stdlib.h>
#include <unistd.h>

#include "lib/align.h"
#include "lib/thread.h"

#define WORD_MOST 1024u
#define CHECK_ROOM (1u << 20) /* bytes of text that the check reads at a time; many more than a word has */

static const char *const matches[] = {"substring", "word", NULL};
enum { LOAD_AUTO, LOAD_TASK, LOAD_AHEAD };
static const char *const loads[] = {"auto", "task", "ahead", NULL};

static const struct loom_opt contains_rows[] = {
	LOOM_OPT(struct contains_opts, path, LOOM_OPT_PATH, "",
			 "A folder, searched recursively, or one file; plain or gzip. Empty: documents are generated."),
	LOOM_OPT(struct contains_opts, glob, LOOM_OPT_STR, "*", "Names in the folder that are documents, as in *.gz."),
	LOOM_OPT(struct contains_opts, index, LOOM_OPT_PATH, "",
			 "A file of lines \"offset length\": each names a part of the file `path` as a document. "
			 "Empty: none."),
	LOOM_OPT(struct contains_opts, word, LOOM_OPT_STR, NULL,
			 "The word to search for, UTF-8.", .flags = LOOM_OPT_REQUIRED),
	LOOM_OPT(struct contains_opts, match, LOOM_OPT_ENUM, "substring",
			 "substring: anywhere. word: with no letter, digit, underscore or non-ASCII character on "
			 "either side.", .choices = matches),
	LOOM_OPT(struct contains_opts, load, LOOM_OPT_ENUM, "auto",
			 "task: each task opens, inflates and searches its file, or generates and searches its text (CPU "
			 "only). ahead: all texts are in "
			 "shared memory before the run. auto: task if [run] devices has a CPU, else ahead.", .choices = loads),
	LOOM_OPT(struct contains_opts, limit, LOOM_OPT_U64, "0",
			 "Number of documents that are searched, from the first one on. 0: all."),
	LOOM_OPT(struct contains_opts, documents, LOOM_OPT_U64, "0",
			 "Documents to generate if path is empty. Their lengths are log-normal (median 3,600 "
			 "bytes, mean 7,400), and the expected share with the word is 39.83 %, as in the thesis.",
			 .max = 1u << 26),
	LOOM_OPT(struct contains_opts, seed, LOOM_OPT_U64, "1", "Seed of generated documents."),
	LOOM_OPT(struct contains_opts, drift, LOOM_OPT_F64, "1",
			 "For generated documents: the mean length of the first ones divided by that of the last ones.",
			 .from = 1, .to = 1000),
	{.name = NULL},
};

struct contains {
	struct workload base;
	struct contains_list list;
	uint64_t bytes, job_bytes; /* size of all texts; size of the global block */
	int ahead; /* 1: texts are loaded ahead */
	int loaded, checked;
};

static void contains_destroy(void *self)
{
	struct contains *w = self;
	if (w)
		contains_list_free(&w->list);
	workload_destroy(w);
}

/* ---- texts, on several threads ---- */

/* The documents [first, end) that one thread loads or checks. */
struct share {
	struct contains *w;
	void (*each)(struct share *share, struct contains_reader *reader, struct contains_source *s);
	size_t first, end;
	char *text;     /* CHECK_ROOM bytes for `each` */
	uint64_t bytes; /* result: size of the texts */
	int no_memory;  /* result */
	int *stopped;   /* of all shares: 0, or the error with which the run was stopped */
	struct loom_error *err; /* only for shares of the calling thread, which asks whether the run was stopped */
};

static int stopped(struct share *share, size_t i)
{
	const struct loom_host *host = share->w->base.host;
	double done = (double)(i - share->first) / (double)(share->end - share->first);
	/* Relaxed: the shares only end earlier. The join publishes the rest. */
	if (share->err && i % 16 == 0 && LOOM_HAS(host, progress)) {
		int rc = host->progress(host, done, share->err);
		if (rc)
			__atomic_store_n(share->stopped, rc, __ATOMIC_RELAXED);
	}
	return __atomic_load_n(share->stopped, __ATOMIC_RELAXED) != 0;
}

static void *share_main(void *arg)
{
	struct share *share = arg;
	struct contains_reader reader = {0};
	share->text = malloc(CHECK_ROOM);
	share->no_memory = !share->text;
	for (size_t i = share->first; i < share->end && !share->no_memory && !stopped(share, i); i++)
		share->each(share, &reader, &share->w->list.source[i]);
	free(share->text);
	contains_reader_close(&reader);
	return NULL;
}

/* Calls `each` for all documents. One thread takes a second to generate 100,000 texts, so that sweeps would mostly wait
 * for it. Files are read by one thread, because several would have to seek in a compressed file. */
static int for_each(struct contains *w,
		    void (*each)(struct share *, struct contains_reader *, struct contains_source *), uint64_t *bytes,
		    struct loom_error *err)
{
	enum { MOST = 16, DOCUMENTS = 250 }; /* threads; documents that are worth a thread */
	struct share share[MOST];
	pthread_t thread[MOST];
	uint8_t started[MOST] = {0}, no_memory = 0;
	int rc = 0;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t n = w->list.spacing > 0 ? w->list.count / DOCUMENTS : 1;
	n = cores > 0 && n > (size_t)cores ? (size_t)cores : n;
	n = n > MOST ? MOST : n < 1 ? 1 : n;
	*bytes = 0;
	for (size_t i = 0; i < n; i++) {
		share[i] = (struct share){.w = w,
					  .each = each,
					  .first = w->list.count * i / n,
					  .end = w->list.count * (i + 1) / n,
					  .stopped = &rc};
		started[i] = i && !thread_create(&thread[i], share_main, &share[i]);
	}
	for (size_t i = 0; i < n; i++) {
		if (started[i]) {
			pthread_join(thread[i], NULL);
		} else {
			share[i].err = err;
			share_main(&share[i]);
		}
		*bytes += share[i].bytes;
		no_memory |= share[i].no_memory != 0;
	}
	return rc ? rc : no_memory ? LOOM_FAIL(w->base.host, err, LOOM_ENOMEM, "contains: out of memory") : 0;
}

static void load_one(struct share *share, struct contains_reader *reader, struct contains_source *s)
{
	s->text = contains_read(reader, s, &s->text_bytes, &s->bad);
	share->bytes += s->text_bytes;
	share->no_memory = !s->text;
}

static int contains_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct contains_opts *o = opts;
	size_t n = strlen(o->word);
	if (n < 1 || n > WORD_MOST)
		return LOOM_REFUSE(host, err, "word", "word has %zu bytes: must be from 1 to %u", n, WORD_MOST);
	if (!o->path[0] && !o->documents)
		return LOOM_REFUSE(host, err, "path", "no documents: set path, or the number of `documents` to generate");
	return 0;
}

static int contains_create(const struct loom_host *host, const void *opts, void **self,
			   struct loom_error *err)
{
	const struct contains_opts *o = opts;
	void *made = NULL;
	int rc = workload_create(host, opts, sizeof(struct contains), &made, err);
	if (rc)
		return rc;
	struct contains *w = made;
	rc = contains_scan(host, o, &w->list, err);
	if (rc)
		contains_destroy(w);
	else
		*self = w;
	return rc;
}

static uint64_t aligned(uint64_t at)
{
	return loom__align(at, CONTAINS_ALIGN);
}

/* Loads the texts if they are loaded ahead. Only CPUs can open files. */
static int load_texts(struct contains *w, const struct loom_layout *layout, struct loom_error *err)
{
	const struct contains_opts *o = w->base.opts;
	int cpus = 0;
	for (uint32_t d = 0; d < layout->devices; d++)
		cpus |= layout->device[d].kind == LOOM_ON_CPU;
	if (!cpus && o->load == LOAD_TASK)
		return LOOM_REFUSE(w->base.host, err, "load",
				   "load = task lets a CPU read each document, and [run] devices has none: set load = ahead");
	w->ahead = o->load == LOAD_AHEAD || !cpus;
	if (!w->ahead || w->loaded)
		return 0;
	w->loaded = 1;
	return for_each(w, load_one, &w->bytes, err);
}

/* Computes the size of the block, which has job, documents, word, names and texts. */
static int contains_need(void *self, const struct loom_layout *layout, struct loom_need *need,
			 struct loom_error *err)
{
	struct contains *w = self;
	const struct contains_opts *o = w->base.opts;
	int rc = load_texts(w, layout, err);
	if (rc)
		return rc;
	w->job_bytes = sizeof(struct contains_job) +
		       w->list.count * sizeof(struct contains_document) + strlen(o->word);
	for (size_t i = 0; i < w->list.count; i++) {
		const struct contains_source *s = &w->list.source[i];
		w->job_bytes += s->owned ? strlen(s->path) + 1 : 0;
		w->job_bytes = aligned(w->job_bytes) + s->text_bytes;
	}
	need->global = aligned(w->job_bytes) + CONTAINS_ALIGN;
	need->device = w->list.count * sizeof(uint32_t);
	need->device_place = LOOM_PLACE_DEVICE;
	need->flags = LOOM_NEED_CONSTANT;
	return 0;
}

static uint64_t contains_count(void *self, const struct loom_layout *layout)
{
	(void)layout;
	return ((struct contains *)self)->list.count;
}

static struct contains_document *documents(const struct loom_view *view)
{
	return (struct contains_document *)((struct contains_job *)view->global + 1);
}

#define NOT_RUN (~0u)
static int contains_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			 struct loom_error *err)
{
	const struct contains *w = self;
	(void)err;
	for (uint32_t d = 0; d < layout->devices; d++)
		for (size_t i = 0; i < w->list.count; i++)
			((uint32_t *)view->device[d])[i] = NOT_RUN;
	return 0;
}

/* Adds the results of a device or of a rank. A document that has results from two of them gets CONTAINS_TWICE. */
static void contains_merge(uint32_t *result, const uint32_t *here, size_t documents)
{
	for (size_t i = 0; i < documents; i++)
		if (here[i] != NOT_RUN)
			result[i] = result[i] == NOT_RUN ? here[i] : CONTAINS_TWICE;
}

/* Gets the results of all documents, from all devices and ranks. */
static int contains_found(const struct contains *w, const struct loom_layout *layout, const struct loom_view *view,
			  uint32_t *result, struct loom_error *err)
{
	const struct loom_host *host = w->base.host;
	size_t n = w->list.count;
	uint32_t ranks;
	void *all;
	memset(result, 0xff, n * sizeof(*result));
	for (uint32_t d = 0; d < layout->devices; d++)
		contains_merge(result, view->device[d], n);
	int rc = workload_gather(host, layout, result, n * sizeof(*result), &all, &ranks, err);
	if (rc)
		return rc;
	memset(result, 0xff, n * sizeof(*result));
	for (uint32_t r = 0; r < ranks; r++)
		contains_merge(result, (const uint32_t *)all + r * n, n);
	host->free(host, all);
	return 0;
}

static uint64_t put(char *block, uint64_t *used, const void *from, size_t bytes)
{
	uint64_t at = *used;
	memcpy(block + at, from, bytes);
	*used += bytes;
	return at;
}

static int contains_tasks(void *self, const struct loom_layout *layout,
			  const struct loom_view *view, loom_ref global, struct loom_task *tasks,
			  struct loom_error *err)
{
	struct contains *w = self;
	const struct contains_opts *o = w->base.opts;
	struct contains_document *d = documents(view);
	char *block = view->global;
	uint64_t used = sizeof(struct contains_job) + w->list.count * sizeof(*d), name = 0;
	(void)layout;
	*(struct contains_job *)block =
		(struct contains_job){.documents = w->list.count,
				      .list = sizeof(struct contains_job),
				      .word = used,
				      .word_bytes = (uint32_t)strlen(o->word),
				      .spacing = w->list.spacing,
				      .match = o->match};
	put(block, &used, o->word, strlen(o->word));
	for (size_t i = 0; i < w->list.count; i++) {
		struct contains_source *s = &w->list.source[i];
		int rc = workload_goes_on(w->base.host, i, w->list.count, err);
		if (rc)
			return rc;
		if (s->owned)
			name = put(block, &used, s->path, strlen(s->path) + 1);
		d[i] = (struct contains_document){
			.name = name, .at = s->list ? s->seed : s->at, .bytes = s->bytes, .text_bytes = s->text_bytes, .bad = s->bad};
		tasks[i].tag = !w->ahead;
		tasks[i].param[0] = i;
		if (!w->ahead) {
			tasks[i].affinity = LOOM_ON_CPU;
			continue;
		}
		used = aligned(used);
		d[i].text = put(block, &used, s->text, s->text_bytes);
		tasks[i].data.ref = global + d[i].text;
		tasks[i].data.bytes = s->text_bytes;
		tasks[i].data.access = LOOM_READ;
		free(s->text); /* the check reads the file again */
		s->text = NULL;
	}
	return 0;
}

/* ---- the check: by another reader and another search ---- */

static int letter(unsigned char b)
{
	return b >= 128 || b == '_' || (b >= '0' && b <= '9') || (b >= 'A' && b <= 'Z') ||
	       (b >= 'a' && b <= 'z');
}

/* Searches from text[*at] on, and advances *at. If `last` is 1, the document ends with `text`. Otherwise the search
 * stops where the byte behind a match is not in `text` yet. */
static int naive(const struct contains_opts *o, const unsigned char *text, uint64_t bytes, int last, uint64_t *at)
{
	const unsigned char *word = (const unsigned char *)o->word;
	uint64_t n = strlen(o->word);
	for (uint64_t i = *at; last ? i + n <= bytes : i + n < bytes; *at = ++i) {
		uint64_t k = 0;
		while (k < n && text[i + k] == word[k])
			k++;
		if (k < n)
			continue;
		if (o->match == CONTAINS_SUBSTRING)
			return 1;
		if ((i == 0 || !letter(text[i - 1])) && (i + n == bytes || !letter(text[i + n])))
			return 1;
	}
	return 0;
}

/* Computes the expected result of a document. Reads it in pieces, because a small file may inflate to a large text. */
static void check_one(struct share *share, struct contains_reader *reader, struct contains_source *s)
{
	const struct contains_opts *o = share->w->base.opts;
	uint64_t have = 0, at = 0, done = 0, n;
	uint8_t bad;
	int found = 0;
	do {
		n = contains_next(reader, s, done, share->text + have, CHECK_ROOM - have, &bad);
		done += n;
		have += n;
		found = found || naive(o, (unsigned char *)share->text, have, !n, &at);
		if (found)
			at = have;
		/* Keep the text that was not searched, and the byte before it. */
		uint64_t gone = at ? at - 1 : 0;
		memmove(share->text, share->text + gone, have - gone);
		have -= gone;
		at -= gone;
	} while (n);
	share->bytes += done;
	s->expected = found ? CONTAINS_YES : bad ? CONTAINS_UNREADABLE : CONTAINS_NO;
}

/* Computes the expected results once. All samples are compared with them. */
static int check(struct contains *w, struct loom_error *err)
{
	int rc = w->checked ? 0 : for_each(w, check_one, &w->bytes, err);
	w->checked = w->checked || !rc;
	return rc;
}

static const char *say(uint32_t result)
{
	return result == CONTAINS_YES          ? "contains it"
	       : result == CONTAINS_NO         ? "does not"
	       : result == CONTAINS_UNREADABLE ? "cannot be read"
	       : result == CONTAINS_TWICE      ? "was searched twice"
					       : "was not searched";
}

static int contains_verify(void *self, const struct loom_layout *layout,
			   const struct loom_view *view, struct loom_report *report,
			   struct loom_error *err)
{
	struct contains *w = self;
	const struct loom_host *host = w->base.host;
	uint64_t found = 0, expect = 0, unreadable = w->list.skipped, wrong = 0;
	uint32_t *result = host->alloc(host, w->list.count * sizeof(*result)), says = 0;
	size_t first = 0;
	int rc = result ? check(w, err) : LOOM_FAIL(host, err, LOOM_ENOMEM, "contains: out of memory");
	if (!rc)
		rc = contains_found(w, layout, view, result, err);
	for (size_t i = w->list.count; !rc && i-- > 0;) {
		found += result[i] == CONTAINS_YES;
		unreadable += result[i] == CONTAINS_UNREADABLE;
		expect += w->list.source[i].expected == CONTAINS_YES;
		if (result[i] != w->list.source[i].expected) {
			wrong++;
			first = i;
			says = result[i];
		}
	}
	host->free(host, result);
	if (rc)
		return rc;
	if (wrong)
		return LOOM_FAIL(
			host, err, LOOM_EWRONG,
			"contains: expected %llu documents, found %llu; %llu differ, the first "
			"is number %zu, %s: by the task it %s, by the check it %s",
			(unsigned long long)expect, (unsigned long long)found,
			(unsigned long long)wrong, first, w->list.source[first].path ? w->list.source[first].path : "generated",
			say(says), say(w->list.source[first].expected));
	host->metric(host, report, "documents", "", LOOM_BETTER_SAME, (double)w->list.count);
	host->metric(host, report, "matches", "", LOOM_BETTER_SAME, (double)found);
	host->metric(host, report, "bytes", "B", LOOM_BETTER_SAME, (double)w->bytes);
	host->metric(host, report, "unreadable", "", LOOM_BETTER_SAME, (double)unreadable);
	return 0;
}

WORKLOAD_OPS(contains, .inputs = contains_inputs, .create = contains_create, .destroy = contains_destroy,
	     .task_count = contains_count, .tasks = contains_tasks, .work = "documents");

/* Indexed by tag, which is 1 if the option `load` is task. */
static const struct loom_task_entry contains_entries[] = {
	{"workload_contains_search", workload_contains_search},
	{"workload_contains_file", workload_contains_file},
};
WORKLOAD_CODE(workload_contains, contains_entries, LOOM_CODE_FILE("workload_contains.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_contains", "0.1.0", "Apache-2.0",
		   "How many documents contain a word: files or generated texts, tasks of very different length",
		   .opts = contains_rows, .opts_size = sizeof(struct contains_opts),
		   .caps = LOOM_CAP_WORKLOAD_IS_SHARED, .check = contains_check, .ops = &contains_ops,
		   .dev = &workload_contains_code)
