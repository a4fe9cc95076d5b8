/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a request from the options: arguments, program, cores. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/child.h"
#include "exec.h"
#include "lib/cpu_list.h"

struct words {
	struct request *r;
	size_t used;
	int open;    /* 1: the current character is within a word */
	int too_long;
};

static void put(struct words *w, char c)
{
	if (w->used + 1 >= sizeof(w->r->text))
		w->too_long = 1;
	else
		w->r->text[w->used++] = c;
	w->open = 1;
}

static void close_word(struct words *w)
{
	if (!w->open)
		return;
	w->r->text[w->used++] = 0;
	w->r->args++;
	w->open = 0;
	if (w->r->args > EXEC_ARGS - 1 || w->used + 1 >= sizeof(w->r->text))
		w->too_long = 1;
}

/* Splits the command into words, which blanks separate. Between single quotes every character is literal. Between
 * double quotes a backslash quotes only a double quote or a backslash. */
static const char *split(const char *s, struct words *w)
{
	for (; *s && !w->too_long; s++) {
		if (*s == ' ' || *s == '\t') {
			close_word(w);
		} else if (*s == '\'' || *s == '"') {
			char quote = *s;
			w->open = 1;
			for (s++; *s && *s != quote && !w->too_long; s++) {
				if (quote == '"' && *s == '\\' && (s[1] == '"' || s[1] == '\\'))
					s++;
				put(w, *s);
			}
			if (!*s)
				return "a quote is not closed";
		} else {
			if (*s == '\\' && s[1])
				s++;
			put(w, *s);
		}
	}
	close_word(w);
	return w->too_long ? "it is too long" : !w->r->args ? "it is empty" : NULL;
}

/* Stores the program's path. A name with a slash is a path. Other names are searched in PATH. */
static int find_program(const struct instance *x, struct request *r, struct loom_error *err)
{
	const char *name = r->text;
	if (strchr(name, '/')) {
		int n = snprintf(r->path, sizeof(r->path), "%s", name);
		if (n < (int)sizeof(r->path) && !access(r->path, X_OK))
			return 0;
		return LOOM_FAIL(x->host, err, LOOM_EUNAVAIL,
				 "exec: %s: %s ([workload.exec] command)", r->path, strerror(errno));
	}
	if (!child_find(name, r->path, sizeof(r->path)))
		return 0;
	return LOOM_FAIL(x->host, err, LOOM_EUNAVAIL,
			 "exec: no program '%s' in PATH: install it, or set its path in "
			 "[workload.exec] command",
			 name);
}

static int read_cores(const struct instance *x, struct request *r, struct loom_error *err)
{
	const char *list = x->options->cores;
	return !list || !loom__cpu_list(list, (cpu_set_t *)(void *)r->cpus, sizeof(r->cpus))
		       ? 0
		       : LOOM_REFUSE(x->host, err, "cores", "cores = %s is not a list such as 0-3,8", list);
}

int command_split(const struct instance *x, struct request *r, struct loom_error *err)
{
	const struct options *o = x->options;
	struct words w = {.r = r};
	const char *fault = NULL;
	r->timeout_ns = o->timeout;
	if (o->shell) {
		const char *const args[] = {"/bin/sh", "-c", o->command};
		for (int i = 0; i < 3; i++) {
			for (const char *s = args[i]; *s; s++)
				put(&w, *s);
			w.open = 1;
			close_word(&w);
		}
		fault = w.too_long ? "it is too long" : !*o->command ? "it is empty" : NULL;
	} else {
		fault = split(o->command, &w);
	}
	if (fault)
		return LOOM_REFUSE(x->host, err, "command", "command: %s", fault);
	return read_cores(x, r, err);
}

int command_read(const struct instance *x, struct request *r, struct loom_error *err)
{
	const char *cores = x->options->cores;
	int code = command_split(x, r, err);
	if (!code)
		code = find_program(x, r, err);
	/* By default the program may use the cores of this thread, which no device has bound to a core. */
	if (!code && !(cores && *cores) && sched_getaffinity(0, sizeof(r->cpus), (cpu_set_t *)(void *)r->cpus))
		code = LOOM_FAIL(x->host, err, LOOM_EUNAVAIL, "exec: cannot read the affinity of this thread: %s",
				 strerror(errno));
	return code;
}
