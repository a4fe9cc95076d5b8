/* SPDX-License-Identifier: Apache-2.0 */
#include "report/view/document.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "facts/must.h"

/* Returns 1 if the first byte is that of a JSON object or of a gzip file. Does not wait for data of a pipe. */
static int looks_like_document(const char *path)
{
	unsigned char part[64] = "";
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) ? 0 : pread(fd, part, sizeof(part) - 1, 0);
	if (fd >= 0)
		close(fd);
	return n > 1 && (part[strspn((char *)part, " \t\r\n")] == '{' || (part[0] == 0x1f && part[1] == 0x8b));
}

enum loom__input loom__input_kind(const char *path)
{
	static const struct {
		const char *suffix;
		enum loom__input kind;
	} known[] = {{".ini", LOOM__INPUT_CONF},  {".json", LOOM__INPUT_DOCUMENT}, {".jsonl", LOOM__INPUT_DOCUMENT},
		     {".txt", LOOM__INPUT_TABLE}, {".out", LOOM__INPUT_TABLE},     {".log", LOOM__INPUT_TABLE}};
	size_t n = strlen(path);
	n -= n > 3 && !strcasecmp(path + n - 3, ".gz") ? 3 : 0;
	for (size_t i = 0; i < LOOM__COUNT(known); i++) {
		size_t length = strlen(known[i].suffix);
		if (n > length && !strncasecmp(path + n - length, known[i].suffix, length))
			return known[i].kind;
	}
	return looks_like_document(path) ? LOOM__INPUT_DOCUMENT : LOOM__INPUT_CONF;
}

static const char *const schema_name[] = {"gpuloom.result/1", "gpuloom.compare/1", "gpuloom.sweep/1"};

/* Returns an error with the line and column of `at`, so that an editor can find the place. */
static int bad_json(const struct loom__doc *doc, const char *at, struct loom_error *err)
{
	size_t line = 1, column = 1;
	for (const char *p = doc->bytes; p < at; p++) {
		column = *p == '\n' ? 1 : column + 1;
		line += *p == '\n';
	}
	if (*at && at < doc->bytes + doc->length)
		return LOOM__FAIL(err, LOOM_EINVAL, "'%s' is not JSON: error in line %zu, column %zu", doc->path, line,
				  column);
	return LOOM__FAIL(err, LOOM_EINVAL, "'%s' is incomplete: the JSON ends in line %zu", doc->path, line);
}

/* Only converted results have a list `leading`. */
static int is_foreign(const struct loom__doc *doc)
{
	const cJSON *variants = loom__json_list(doc->root, "variants"), *result = doc->root;
	if (doc->kind == LOOM__DOC_COMPARE && !loom__json_length(loom__json_list(doc->root, "comparisons")))
		result = loom__json_object(variants ? variants->child : NULL, "result");
	return loom__json_list(result, "leading") != NULL;
}

static int check_schema(struct loom__doc *doc, struct loom_error *err)
{
	const char *schema = loom__json_text(doc->root, "schema");
	for (int kind = 0; kind < (int)LOOM__COUNT(schema_name); kind++)
		if (!strcmp(schema, schema_name[kind])) {
			doc->kind = (enum loom__doc_kind)kind;
			doc->foreign = is_foreign(doc);
			return 0;
		}
	if (!strncmp(schema, "gpuloom.", 8))
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "'%s' has the schema '%.60s'; this gpuloom reads gpuloom.result/1, "
				  "gpuloom.compare/1 and gpuloom.sweep/1",
				  doc->path, schema);
	return LOOM__FAIL(err, LOOM_EINVAL,
			  "'%s' is JSON, but not a result of gpuloom: it has no \"schema\": \"gpuloom...\"", doc->path);
}

/* If the first line is the head of a sweep, parses only this line and returns it. Otherwise returns NULL. */
static cJSON *sweep_head(const struct loom__doc *doc)
{
	static const char name[] = "gpuloom.sweep/";
	const char *end = memchr(doc->bytes, '\n', doc->length);
	size_t length = end ? (size_t)(end - doc->bytes) : doc->length;
	if (!memmem(doc->bytes, length, name, sizeof(name) - 1))
		return NULL;
	const char *stop;
	cJSON *head = cJSON_ParseWithLengthOpts(doc->bytes, length, &stop, 0);
	if (!strncmp(loom__json_text(head, "schema"), name, sizeof(name) - 1))
		return head;
	cJSON_Delete(head);
	return NULL;
}

static int check_lines(struct loom__doc *doc, struct loom_error *err)
{
	const char *last = memrchr(doc->bytes, '\n', doc->length);
	size_t whole = last ? (size_t)(last - doc->bytes) + 1 : doc->length;
	doc->torn = whole < doc->length;
	doc->length = whole;
	doc->bytes[whole] = 0;
	size_t at = 0;
	for (cJSON *line; (line = loom__doc_line(doc, &at)); cJSON_Delete(line))
		if (cJSON_IsInvalid(line) || !cJSON_IsObject(line)) {
			cJSON_Delete(line);
			return bad_json(doc, doc->bytes + at - 1, err);
		}
	return 0;
}

cJSON *loom__doc_line(const struct loom__doc *doc, size_t *at)
{
	const char *begin = doc->bytes + *at;
	const char *first = *at ? begin : memchr(begin, '\n', doc->length);
	if (!*at && first)
		begin = first + 1;
	while (first && begin < doc->bytes + doc->length) {
		const char *end = memchr(begin, '\n', doc->length - (size_t)(begin - doc->bytes));
		size_t length = end ? (size_t)(end - begin) : doc->length - (size_t)(begin - doc->bytes);
		if (strspn(begin, " \t\r") >= length) { /* an empty line is skipped */
			begin += length + 1;
			continue;
		}
		const char *stop = NULL;
		cJSON *line = cJSON_ParseWithLengthOpts(begin, length, &stop, 0);
		*at = (size_t)(begin - doc->bytes) + length + 1;
		if (line && strspn(stop, " \t\r") >= (size_t)(begin + length - stop))
			return line;
		cJSON_Delete(line);
		/* If a line is invalid, *at is the place of the error plus 1, which check_lines() reports. Only
		 * check_lines() meets invalid lines, because it rejects such a document. */
		*at = (size_t)(begin - doc->bytes) + 1;
		return cJSON_CreateNull();
	}
	return NULL;
}

int loom__doc_parse(const char *path, char *bytes, size_t length, struct loom__doc *doc, struct loom_error *err)
{
	*doc = (struct loom__doc){.path = path, .bytes = bytes, .length = length};
	const char *end = NULL;
	int rc = 0;
	if (!length) {
		rc = LOOM__FAIL(err, LOOM_EINVAL, "'%s' is empty", path);
	} else if (strlen(bytes) != length) {
		rc = LOOM__FAIL(err, LOOM_EINVAL, "'%s' is not JSON: it has a NUL byte at offset %zu", path,
				strlen(bytes));
	} else if ((doc->root = sweep_head(doc))) {
		rc = check_schema(doc, err);
		if (!rc)
			rc = check_lines(doc, err);
	} else if (!(doc->root = cJSON_ParseWithLengthOpts(bytes, length + 1, &end, 0)) ||
		   strspn(end, " \t\r\n") < (size_t)(bytes + length - end)) {
		rc = bad_json(doc, end + strspn(end, " \t\r\n"), err);
	} else {
		rc = check_schema(doc, err);
		/* The lines of samples follow the head, so the head must be a line. */
		if (!rc && doc->kind == LOOM__DOC_SWEEP)
			rc = LOOM__FAIL(err, LOOM_EINVAL,
					"'%s': the head of a sweep has several lines: join them to one line", path);
	}
	if (rc)
		loom__doc_free(doc);
	return rc;
}

/* Replaces the bytes of a gzip file by its content. Other bytes stay as they are. */
static int inflate_file(const char *path, char **bytes, size_t *length, struct loom_error *err)
{
	z_stream z = {.next_in = (unsigned char *)*bytes, .avail_in = (unsigned)*length};
	char *text = NULL;
	size_t n = 0;
	int code = Z_OK;
	if (*length < 2 || memcmp(*bytes, "\x1f\x8b", 2))
		return 0;
	if (*length > LOOM__DOC_MOST || inflateInit2(&z, 15 + 16)) /* 16: with the header of gzip */
		return LOOM__FAIL(err, LOOM_ENOMEM, "'%s': no memory to read it", path);
	while (code == Z_OK && n < LOOM__DOC_MOST) {
		size_t room = 2 * n + (1 << 16);
		text = loom__must(realloc(text, room + 1));
		z.next_out = (unsigned char *)text + n;
		z.avail_out = (unsigned)(room - n);
		code = inflate(&z, Z_NO_FLUSH);
		n = room - z.avail_out;
	}
	inflateEnd(&z);
	free(*bytes);
	*bytes = text;
	*length = n;
	if (code != Z_STREAM_END || n > LOOM__DOC_MOST) {
		free(text);
		*bytes = NULL;
		return LOOM__FAIL(err, LOOM_EINVAL, "'%s' is a damaged gzip file, or too large", path);
	}
	text[n] = 0;
	return 0;
}

/* Returns 1 if the text, which may be incomplete, has a schema of gpuloom. */
static int names_schema(const char *text)
{
	static const char key[] = "\"schema\"", blank[] = " \t\r\n";
	while ((text = strstr(text, key))) {
		text += sizeof(key) - 1;
		text += strspn(text, blank);
		text += *text == ':';
		text += strspn(text, blank);
		if (!strncmp(text, "\"gpuloom.", 9))
			return 1;
	}
	return 0;
}

int loom__doc_read(const char *path, struct loom__doc *doc, struct loom_error *err)
{
	char *bytes;
	size_t length;
	*doc = (struct loom__doc){0};
	int rc = loom__read_file(path, LOOM__DOC_MOST, &bytes, &length, err);
	rc = rc ? rc : inflate_file(path, &bytes, &length, err);
	if (rc)
		return rc;
	int strange = length && strlen(bytes) == length && !names_schema(bytes);
	rc = loom__doc_parse(path, bytes, length, doc, err);
	doc->strange = rc == LOOM_EINVAL && strange;
	return rc;
}

void loom__doc_free(struct loom__doc *doc)
{
	cJSON_Delete(doc->root);
	free(doc->bytes);
	*doc = (struct loom__doc){0};
}
