/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a command reads and writes. A file that is written must not be read by the same command, or be written
 * under another name. Links and relative names do not hide that two names mean one file. */
#ifndef LOOM_CLI_FILES_H
#define LOOM_CLI_FILES_H

#include "cli/base/options.h"
#include "report/view/document.h"

struct loom__plan;

/* loom__file_reads() and loom__file_writes() record a file of the running command, before its first sample. `what`
 * names an output in messages, as in "--json". If an output would destroy another file of the command, both return
 * LOOM_EINVAL. loom__file_writes() also checks that the file could be written, and that a result does not replace the
 * samples of a sweep. To record a file again does nothing. */
int loom__file_reads(const struct loom__cli *cli, const char *path, struct loom_error *err);
int loom__file_writes(const struct loom__cli *cli, const char *what, const char *path, enum loom__writes how,
		      struct loom_error *err);
/* Returns LOOM_EINVAL if `path` has the samples of a sweep, which `what` must not replace. */
int loom__file_keeps_sweep(const char *what, const char *path, struct loom_error *err);
/* Records the plug-ins of a plan, and compares the files that its options name with the recorded files. */
int loom__files_of_plan(const struct loom__cli *cli, const struct loom__plan *plan, struct loom_error *err);
/* loom__files_begin() starts the records of a command, with standard output if that is a file. */
void loom__files_begin(struct loom__cli *cli);
void loom__files_end(struct loom__cli *cli);

/* Replaces the word "-" by the path of standard input. If *word names an open pipe, as <(COMMAND) of a shell does,
 * copies the pipe into memory, because a command may read a file several times. */
int loom__file_input(const char **word, struct loom_error *err);

/* Reads documents into `doc`, which has room for all words, and records them. If a file is named twice, removes the
 * second word with a warning, because its samples must not count twice. Prints errors, and returns an exit code. */
int loom__file_documents(const struct loom__cli *cli, struct loom__words *file, struct loom__doc *doc);
/* Records a document. Returns 1 if the command has read the same file as a document before, under the name *before. */
int loom__file_again(const struct loom__cli *cli, const char *path, const char **before);

#endif
