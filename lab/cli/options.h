/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a command. One row serves parser, --help, man page, completion and suggestions. */
#ifndef LOOM_CLI_OPTIONS_H
#define LOOM_CLI_OPTIONS_H

#include <gpuloom/plugin.h>

#include "cli/cli.h"

/* Words of the command line, which point into argv. */
struct loom__words {
	const char **at;
	size_t n;
};

/* Conf options set on the command line, in order. */
struct loom__settings {
	struct loom__setting {
		const char *option; /* "samples" */
		const char *before; /* "run.samples="; '#' stands for the number of the setting */
		const char *value;
	} * at;
	size_t n;
};

struct loom__option {
	const char *name;  /* "json", on the command line --json; NULL ends the table */
	const char *value; /* the placeholder in --help, such as "FILE|-"; NULL: the choices, or none */
	const char *help;  /* wrapped when printed, with the default appended */
	const struct loom_opt *rows; /* Options of a conf: the row with this name supplies help, choices and default. */
	/* "run.samples=" sets a conf option, like --set run.samples=VALUE; `offset` locates a struct loom__settings.
	 * With "" the value itself is "section.key=value". */
	const char *sets;
	/* The destination in the command's struct, filled by LOOM__AT(). BOOL is a switch without a value.
	 * LOOM_OPT_NONE is a struct loom__words, for repeatable options. */
	uint8_t type;  /* enum loom_opt_type */
	uint16_t size;
	size_t offset;
	/* A custom parser in place of the type. Its error message names the option. */
	int (*take)(void *args, const char *value, struct loom_error *err);
	const char *dflt; /* as a user would write it; NULL leaves the field unchanged */
	const char *const *choices; /* ENUM only: NULL-terminated */
	double min, max;            /* both 0: unbounded */
	char letter;                /* 'o': an alias -o */
	char writes;                /* 1: an output file ('-': standard output) that must be writable at start */
};

#define LOOM__AT(S, field, opt_type)                                                               \
	.type = LOOM_OPT_##opt_type, .size = sizeof(((S *)0)->field), .offset = offsetof(S, field)

struct loom__usage {
	const char *command;
	const char *synopsis; /* follows the command's name; lines are alternatives */
	const char *about;    /* text before the options, or NULL */
	const char *notes;    /* text after the options, or NULL */
	const struct loom__option *options; /* --help, -h need no row */
	size_t words;         /* offset of the struct loom__words for arguments that are not options */
	size_t size;          /* size of the command's struct */
	/* Executes the command after its options are parsed; returns an exit code. */
	int (*run)(struct loom__cli *cli, void *args);
	/* Called before options are parsed and at the end, or NULL, for additional fields of the struct. */
	void (*begin)(struct loom__cli *cli, void *args);
	void (*end)(void *args);
};
/* The fields for a command with struct S, words in `word_`, and function run_(). */
#define LOOM__REQUEST(S, word_, run_) .words = offsetof(S, word_), .size = sizeof(S), .run = run_

/* Parses options and words in any order, as --name VALUE or --name=VALUE; "--" ends the options. argv[0] is the
 * command's name. Returns an exit code. */
int loom__command_run(struct loom__cli *cli, const struct loom__usage *u, int argc, char **argv);

/* Rows that several commands share, for a struct S with these fields. */
#define LOOM__OPTION_LOG(S)                                                                        \
	{                                                                                          \
		"log", NULL, "minimum severity of messages on stderr", LOOM__AT(S, log, ENUM),               \
		    .choices = loom__log_levels, .dflt = "warn"                                    \
	}
#define LOOM__OPTION_PLUGIN_PATH(S)                                                                \
	{                                                                                          \
		"plugin-path", "DIR[:DIR...]", "folders of plug-ins to search first",                    \
		    LOOM__AT(S, plugin_path, STR)                                                  \
	}
extern const char *const loom__log_levels[]; /* in the order of enum loom_level */

#endif
