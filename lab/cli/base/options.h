/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a command. One row per option serves the parser, --help, the man page, completion and suggestions. */
#ifndef LOOM_CLI_OPTIONS_H
#define LOOM_CLI_OPTIONS_H

#include <gpuloom/plugin.h>

#include "cli/cli.h"

/* Words of the command line. They point into argv. */
struct loom__words {
	const char **at;
	size_t n;
};

/* Options of a conf that the command line sets, in order. */
struct loom__settings {
	struct loom__setting {
		const char *option; /* the option of the command line: "samples" */
		const char *before; /* what precedes the value: "run.samples="; '#' is the number of the setting */
		const char *value;
	} * at;
	size_t n;
};

/* What an option does with the file that it names. */
enum loom__writes {
	LOOM__WRITES_NOTHING,
	LOOM__WRITES_RESULT, /* replaces it */
	LOOM__WRITES_SWEEP,  /* appends samples to the file of a sweep */
	LOOM__WRITES_EITHER, /* one of both, as the conf decides */
};

struct loom__option {
	const char *name;            /* "json" for the option --json; NULL ends the table */
	const char *value;           /* the placeholder in --help, such as "FILE|-"; NULL: the choices, or none */
	const char *help;            /* wrapped when printed, with the default appended */
	const struct loom_opt *rows; /* options of a conf; the one named `name` gives help, choices and default */
	/* If `sets` is not NULL, the option sets an option of the conf, and `offset` locates a struct loom__settings.
	 * "run.samples=" means the same as --set run.samples=VALUE. With "", the value itself is
	 * "section.key=value". */
	const char *sets;
	/* The destination in the command's struct, which LOOM__AT() fills in. LOOM_OPT_BOOL is a switch without a
	 * value. For LOOM_OPT_NONE, the field is a struct loom__words, for options that may be repeated. */
	uint8_t type; /* enum loom_opt_type */
	uint16_t size;
	size_t offset;
	/* If not NULL, the function that parses the value in place of `type`. Its error message must name the
	 * option. */
	int (*take)(void *args, const char *value, struct loom_error *err);
	const char *dflt;           /* the default as a user would write it; NULL: the field stays as begin() set it */
	const char *const *choices; /* LOOM_OPT_ENUM only; ended by NULL */
	double min, max;            /* bounds of the value; both 0: none */
	char letter;                /* 'o' for the alias -o; 0: none */
	enum loom__writes writes;   /* for output files ('-': standard output), which must be writable */
};

#define LOOM__AT(S, field, opt_type)                                                                                   \
	.type = LOOM_OPT_##opt_type, .size = sizeof(((S *)0)->field), .offset = offsetof(S, field)

struct loom__usage {
	const char *command;
	const char *synopsis; /* what follows the command's name; each line is an alternative */
	/* Text before and after the options, or NULL. Lines are filled, except those that begin with a blank. */
	const char *about, *notes;
	const char *examples;               /* command lines without the word gpuloom, each with a tab and a comment */
	const char *page;                   /* the page that explains the command: "docs/compare.md" */
	const struct loom__option *options; /* --help and -h need no row */
	int inputs;   /* 1: the words are input files; '-' is standard input, and pipes are read once */
	size_t words; /* offset of the struct loom__words for arguments that are not options */
	size_t size;  /* size of the command's struct */
	/* Executes the command after its options have been parsed. Returns an exit code. */
	int (*run)(struct loom__cli *cli, void *args);
	/* begin() is called before options are parsed, and end() when the command has ended. They initialise and free
	 * the fields of the struct that no option sets. Each may be NULL. */
	void (*begin)(struct loom__cli *cli, void *args);
	void (*end)(void *args);
};
/* The members of struct loom__usage for a command with struct S, in which `word_` holds the words, and function
 * run_(). */
#define LOOM__REQUEST(S, word_, run_) .words = offsetof(S, word_), .size = sizeof(S), .run = run_

/* Parses options and words in any order, as --name VALUE or --name=VALUE, and runs the command. "--" ends the options.
 * argv[0] is the name of the command. Returns an exit code. */
int loom__command_run(struct loom__cli *cli, const struct loom__usage *u, int argc, char **argv);

/* Rows of options that several commands share. LOOM__AT() names the field that struct S must have. */
#define LOOM__OPTION_LOG(S)                                                                                            \
	{                                                                                                              \
		"log", NULL, "minimum severity of messages on stderr", LOOM__AT(S, log, ENUM),                         \
		    .choices = loom__log_levels, .dflt = "warn"                                                        \
	}
#define LOOM__OPTION_PLUGIN_PATH(S)                                                                                    \
	{                                                                                                              \
		"plugin-path", "DIR[:DIR...]", "folders of plug-ins to search first", LOOM__AT(S, plugin_path, STR)    \
	}
extern const char *const loom__log_levels[]; /* in the order of enum loom_level */

#endif
