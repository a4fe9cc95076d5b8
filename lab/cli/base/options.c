/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/options.h"
#include "cli/base/files.h"

#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "facts/must.h"
#include "report/text/table.h"

const char *const loom__log_levels[] = {"error", "warn", "info", "debug", NULL};

/* Returns the option of a conf that supplies the help text, or NULL. */
static const struct loom_opt *row_of(const struct loom__option *o)
{
	const struct loom_opt *row = o->rows;
	while (row && strcmp(row->name, o->name))
		row++;
	return row;
}

static int is_switch(const struct loom__option *o)
{
	return o->type == LOOM_OPT_BOOL && !o->take;
}

/* ---- help ---------------------------------------------------------------------------------- */

enum { INDENT = 26, WIDTH = LOOM__TABLE_WIDTH };

/* Appends the placeholder of the value, such as "FILE|-", or the choices: "error|warn|info|debug". */
static void add_value(struct loom__text *t, const struct loom__option *o)
{
	const struct loom_opt *row = row_of(o);
	const char *const *choices = row ? row->choices : o->choices;
	if (is_switch(o))
		return;
	loom__text_add(t, " %s", o->value ? o->value : "");
	for (size_t i = 0; !o->value && choices[i]; i++)
		loom__text_add(t, "%s%s", i ? "|" : "", choices[i]);
}

/* Appends the help of a conf option in the style of command-line options: with a lower-case first letter and no final
 * period. */
static void add_row_help(struct loom__text *t, const struct loom_opt *row)
{
	size_t n = strlen(row->help);
	loom__text_add(t, "%c%.*s", loom__lower(row->help[0]), (int)(n - 1 - (row->help[n - 1] == '.')), row->help + 1);
}

/* Prints words up to `end`, which are separated by blanks or newlines. Output continues at column `indent`, to which
 * further lines are indented. */
static void print_wrapped(FILE *out, const char *text, const char *end, size_t indent)
{
	size_t column = indent;
	while (text < end) {
		size_t n = strcspn(text, " \n");
		if (column > indent && column + 1 + n > WIDTH) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
		}
		column += (size_t)fprintf(out, "%s%.*s", column > indent ? " " : "", (int)n, text);
		text += n + (text[n] != 0);
	}
	fputc('\n', out);
}

/* Prints paragraphs of filled lines. A line that begins with a blank, or is empty, is printed as it is. */
static void print_text(FILE *out, const char *text)
{
	while (*text) {
		const char *end = strchrnul(text, '\n');
		if (*text == ' ' || *text == '\n') {
			fprintf(out, "%.*s\n", (int)(end - text), text);
		} else {
			while (*end && end[1] && end[1] != ' ' && end[1] != '\n')
				end = strchrnul(end + 1, '\n');
			print_wrapped(out, text, end, 0);
		}
		text = end + (*end == '\n');
	}
}

/* Prints each example with its comment, which stands to the right if all examples fit into their lines so. */
static void print_examples(FILE *out, const char *examples)
{
	size_t command = 0, comment = 0;
	for (const char *line = examples; *line; line += strcspn(line, "\n") + 1) {
		size_t n = strcspn(line, "\t"), rest = strcspn(line + n, "\n");
		command = n > command ? n : command;
		comment = rest > comment ? rest : comment;
	}
	size_t column = strlen("  gpuloom ") + command + 2;
	int beside = column + comment <= WIDTH;
	fputs("\nexamples:\n", out);
	for (const char *line = examples; *line; line += strcspn(line, "\n") + 1) {
		size_t n = strcspn(line, "\t"), rest = strcspn(line + n + 1, "\n");
		size_t width = (size_t)fprintf(out, "  gpuloom %.*s", (int)n, line);
		fprintf(out, "%s%*s%.*s\n", beside ? "" : "\n", (int)(beside ? column - width : 6), "", (int)rest,
			line + n + 1);
	}
}

static void print_option(FILE *out, const struct loom__option *o)
{
	struct loom__text head = {0}, help = {0};
	if (o->letter)
		loom__text_add(&head, "  -%c, --%s", o->letter, o->name);
	else
		loom__text_add(&head, "  --%s", o->name);
	add_value(&head, o);
	const struct loom_opt *row = row_of(o);
	const char *dflt = row ? row->dflt : o->dflt;
	if (row)
		add_row_help(&help, row);
	else
		loom__text_add(&help, "%s", o->help);
	if (dflt && *dflt && !is_switch(o))
		loom__text_add(&help, " (%s)", dflt);
	if (head.length + 2 > INDENT)
		fprintf(out, "%s\n%*s", loom__must_text(&head), INDENT, "");
	else
		fprintf(out, "%-*s", INDENT, loom__must_text(&head));
	print_wrapped(out, loom__must_text(&help), help.at + help.length, INDENT);
	loom__text_free(&head);
	loom__text_free(&help);
}

static void print_help(FILE *out, const struct loom__usage *u)
{
	const char *lead = "usage:";
	for (const char *line = u->synopsis; line; lead = "      ") {
		size_t n = strcspn(line, "\n");
		size_t indent = (size_t)fprintf(out, "%s gpuloom %s%s", lead, u->command, n ? " " : "");
		print_wrapped(out, line, line + n, indent);
		line = line[n] ? line + n + 1 : NULL;
	}
	fputc('\n', out);
	if (u->about)
		print_text(out, u->about);
	if (u->about && u->options)
		fputc('\n', out);
	for (const struct loom__option *o = u->options; o && o->name; o++)
		print_option(out, o);
	if (u->notes) {
		fputc('\n', out);
		print_text(out, u->notes);
	}
	if (u->examples)
		print_examples(out, u->examples);
	if (u->page)
		fprintf(out, "\npage: %s (`man gpuloom` says where pages are)\n", u->page);
}

/* ---- reading ------------------------------------------------------------------------------- */

struct reader {
	const struct loom__cli *cli;
	const struct loom__usage *usage;
	int argc;
	char **argv;
	void *args;
};

static void add_word(const struct reader *r, size_t offset, const char *word)
{
	struct loom__words *words = (void *)((char *)r->args + offset);
	if (!words->at)
		words->at = loom__must(calloc((size_t)r->argc, sizeof(*words->at)));
	words->at[words->n++] = word;
}

static void add_setting(const struct reader *r, const struct loom__option *o, const char *value)
{
	struct loom__settings *s = (void *)((char *)r->args + o->offset);
	if (!s->at)
		s->at = loom__must(calloc((size_t)r->argc, sizeof(*s->at)));
	s->at[s->n++] = (struct loom__setting){o->name, o->sets, value};
}

static int read_value(const struct loom__option *o, const char *value, void *args, struct loom_error *err)
{
	int real = o->type == LOOM_OPT_F64 || o->type == LOOM_OPT_SHARE;
	const struct loom_opt row = {.name = o->name, .type = o->type, .choices = o->choices,
				     .min = real ? 0 : (int64_t)o->min, .max = real ? 0 : (uint64_t)o->max,
				     .from = real ? o->min : 0, .to = real ? o->max : 0};
	return loom__value_parse(&row, value, (char *)args + o->offset, err);
}

static const struct loom__option *find(const struct loom__usage *u, const char *arg, size_t n)
{
	for (const struct loom__option *o = u->options; o && o->name; o++)
		if (arg[1] == '-' ? n == strlen(o->name) + 2 && !strncmp(arg + 2, o->name, n - 2) :
				    n == 2 && o->letter == arg[1])
			return o;
	return NULL;
}

static int unknown(const struct reader *r, const char *arg, size_t n)
{
	char word[64];
	struct loom__near near = {.word = word};
	snprintf(word, sizeof(word), "%.*s", (int)(n > 2 ? n - 2 : 0), arg + (n > 2 ? 2 : 0));
	loom__nearer(&near, "help");
	for (const struct loom__option *o = r->usage->options; o && o->name; o++)
		loom__nearer(&near, o->name);
	if (near.name)
		loom__say_error(r->cli, "%s: no option '%s'; did you mean '--%s'?", r->usage->command, arg, near.name);
	else
		loom__say_error(r->cli, "%s: no option '%s': see `gpuloom %s --help`", r->usage->command,
				arg, r->usage->command);
	return LOOM_EXIT_USAGE;
}

/* Parses the option at argv[*i], and moves *i to its value if that is a separate argument. Returns an exit code. */
static int take_option(const struct reader *r, int *i)
{
	const char *arg = r->argv[*i], *equals = arg[1] == '-' ? strchr(arg, '=') : NULL;
	const char *value = equals ? equals + 1 : NULL;
	size_t n = equals ? (size_t)(equals - arg) : strlen(arg);
	const struct loom__option *o = find(r->usage, arg, n);
	struct loom_error err = {0};
	if (!o)
		return unknown(r, arg, n);
	if (is_switch(o)) {
		if (value)
			return loom__refuse(r->cli, LOOM_EXIT_USAGE, "%s: --%s takes no value", r->usage->command,
					    o->name);
		value = "yes";
	} else if (!value && !(value = r->argv[++*i])) {
		struct loom__text shown = {0};
		add_value(&shown, o);
		loom__say_error(r->cli, "%s: %s needs a value, as in %s%s", r->usage->command, arg, arg,
				loom__must_text(&shown));
		loom__text_free(&shown);
		return LOOM_EXIT_USAGE;
	}
	if (!o->take && o->type == LOOM_OPT_NONE) {
		if (o->sets)
			add_setting(r, o, value);
		else
			add_word(r, o->offset, value);
		return 0;
	}
	if (o->take) {
		if (!o->take(r->args, value, &err)) {
			if (o->sets)
				add_setting(r, o, value);
			return 0;
		}
		loom__say_error(r->cli, "%s: %s", r->usage->command, err.text);
	} else {
		if (!read_value(o, value, r->args, &err))
			return 0;
		loom__say_error(r->cli, "%s: --%s: %s", r->usage->command, o->name, err.text);
	}
	return LOOM_EXIT_USAGE;
}

static void free_options(const struct loom__usage *u, void *args)
{
	struct loom__words *words = (void *)((char *)args + u->words);
	free(words->at);
	*words = (struct loom__words){0};
	for (const struct loom__option *o = u->options; o && o->name; o++)
		if (o->sets) {
			struct loom__settings *s = (void *)((char *)args + o->offset);
			free(s->at);
			*s = (struct loom__settings){0};
		} else if (!o->take && o->type == LOOM_OPT_NONE) {
			words = (void *)((char *)args + o->offset);
			free(words->at);
			*words = (struct loom__words){0};
		}
}

/* Parses all options. Returns 0 if the command can run, -1 after printing help, or an exit code after printing an
 * error. */
static int read_options(const struct loom__cli *cli, const struct loom__usage *u, int argc, char **argv, void *args)
{
	struct reader r = {cli, u, argc, argv, args};
	int status = 0, words = 0; /* words: 1 after "--", when only words follow */
	for (const struct loom__option *o = u->options; o && o->name; o++)
		if (o->dflt && !o->take && o->type != LOOM_OPT_NONE)
			read_value(o, o->dflt, args, NULL);
	for (int i = 1; i < argc && !status; i++) {
		const char *arg = argv[i];
		if (words || arg[0] != '-' || !arg[1]) {
			add_word(&r, u->words, arg);
		} else if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
			print_help(cli->out, u);
			status = -1;
		} else if (!strcmp(arg, "--")) {
			words = 1;
		} else {
			status = take_option(&r, &i);
		}
	}
	if (status)
		free_options(u, args);
	return status;
}

/* Records the outputs of the command, after all options were found right, and makes its inputs readable. Returns an
 * exit code. */
static int use_files(const struct loom__cli *cli, const struct loom__usage *u, void *args)
{
	const struct loom__words *words = (void *)((char *)args + u->words);
	struct loom_error err;
	int rc = 0;
	for (const struct loom__option *o = u->options; o && o->name && !rc; o++) {
		const char *path = o->writes ? *(const char **)((char *)args + o->offset) : NULL;
		char what[40];
		snprintf(what, sizeof(what), "--%s", o->name);
		if (path)
			rc = loom__file_writes(cli, what, path, o->writes, &err);
	}
	for (size_t i = 0; u->inputs && i < words->n && !rc; i++)
		rc = loom__file_input(&words->at[i], &err);
	return rc ? loom__refuse(cli, LOOM_EXIT_USAGE, "%s: %s", u->command, err.text) : LOOM_EXIT_OK;
}

int loom__command_run(struct loom__cli *cli, const struct loom__usage *u, int argc, char **argv)
{
	void *args = loom__must(calloc(1, u->size));
	cli->argc = argc;
	cli->argv = argv;
	loom__files_begin(cli);
	if (u->begin)
		u->begin(cli, args);
	int status = read_options(cli, u, argc, argv, args);
	if (!status) {
		status = use_files(cli, u, args);
		status = status ? status : u->run(cli, args);
		free_options(u, args);
	}
	if (u->end)
		u->end(args);
	loom__files_end(cli);
	free(args);
	return status < 0 ? LOOM_EXIT_OK : status;
}
