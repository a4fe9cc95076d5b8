/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a command: one row feeds the parser, --help, the man page, completion and what is
 * suggested after a typo. */
#ifndef LOOM_CLI_OPTIONS_H
#define LOOM_CLI_OPTIONS_H

#include <gpuloom/plugin.h>

#include "cli/cli.h"

/* Words of the command line; pointers into argv. */
struct loom__words {
	const char **at;
	size_t n;
};

/* What the command line sets in the conf, in order. */
struct loom__settings {
	struct loom__setting {
		const char *option; /* "samples" */
		const char *before; /* "run.samples="; a '#' in it stands for a number of the setting's own */
		const char *value;
	} * at;
	size_t n;
};

struct loom__option {
	const char *name;  /* "json", written --json; NULL ends the table */
	const char *value; /* what --help calls the value, as in "FILE|-"; NULL: the choices, or none */
	const char *help;  /* wrapped when it is printed; the default follows by itself */
	/* An option of a conf that has the same name: help, choices and default are its row's. */
	const struct loom_opt *rows;
	/* "run.samples=": the value is one of the conf, as --set run.samples=VALUE; at `offset` is a struct
	 * loom__settings. "": it is "section.key=value" itself. */
	const char *sets;
	/* Where the value goes in the struct of the command: LOOM__AT() fills these. Type BOOL is a switch
	 * without a value. LOOM_OPT_NONE: a struct loom__words, for what may be repeated. */
	uint8_t type;  /* enum loom_opt_type */
	uint16_t size;
	size_t offset;
	/* Reads the value in place of the type: the sentence in err names the option. */
	int (*take)(void *args, const char *value, struct loom_error *err);
	const char *dflt; /* as a user would write it; NULL: the field is left as it was */
	const char *const *choices; /* ENUM only: NULL-terminated */
	double min, max;            /* both 0: no bounds */
	char letter;                /* 'o': -o does as well */
	char writes;                /* 1: a file to be written at the end ('-': standard output); refused now if it cannot be */
};

#define LOOM__AT(S, field, opt_type)                                                               \
	.type = LOOM_OPT_##opt_type, .size = sizeof(((S *)0)->field), .offset = offsetof(S, field)

struct loom__usage {
	const char *command;
	const char *synopsis; /* behind the command's name; lines are alternatives */
	const char *about;    /* before the options, or NULL */
	const char *notes;    /* behind them, or NULL */
	const struct loom__option *options; /* --help, -h need no row */
	size_t words;         /* offset of the struct loom__words for arguments that are no options */
	size_t size;          /* of the struct of the command */
	/* What the command does once its options are read: an exit code. */
	int (*run)(struct loom__cli *cli, void *args);
	/* Before options are read and after all, or NULL: for what the struct needs besides. */
	void (*begin)(struct loom__cli *cli, void *args);
	void (*end)(void *args);
};
/* The fields for a command whose struct S has its words in `word_`, and that run_() does. */
#define LOOM__REQUEST(S, word_, run_) .words = offsetof(S, word_), .size = sizeof(S), .run = run_

/* Options and words in any order, --name VALUE or --name=VALUE; "--" ends the options. argv[0] is the command's name.
 * Returns an exit code. */
int loom__command_run(struct loom__cli *cli, const struct loom__usage *u, int argc, char **argv);

/* Rows that several commands have, for a struct S with these fields. */
#define LOOM__OPTION_LOG(S)                                                                        \
	{                                                                                          \
		"log", NULL, "the least serious messages that are shown, on stderr", LOOM__AT(S, log, ENUM),               \
		    .choices = loom__log_levels, .dflt = "warn"                                    \
	}
#define LOOM__OPTION_PLUGIN_PATH(S)                                                                \
	{                                                                                          \
		"plugin-path", "DIR[:DIR...]", "folders of plug-ins to search first",                    \
		    LOOM__AT(S, plugin_path, STR)                                                  \
	}
extern const char *const loom__log_levels[]; /* in the order of enum loom_level */

#endif
