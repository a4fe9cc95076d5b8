/* SPDX-License-Identifier: Apache-2.0 */
/* workload_exec: options, verification, and the descriptor of the plug-in. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "lib/child.h"
#include "../common/host.h"
#include "exec.h"

static const struct loom_opt rows[] = {
	LOOM_OPT(struct options, command, LOOM_OPT_STR, NULL,
			 "The program and its arguments, separated by blanks; quotes and backslashes as in a shell. "
			 "It is searched in PATH.", .flags = LOOM_OPT_REQUIRED | LOOM_OPT_TRUST),
	LOOM_OPT(struct options, shell, LOOM_OPT_BOOL, "no",
			 "Whether /bin/sh runs the command, as pipes and variables require.", .flags = LOOM_OPT_TRUST),
	LOOM_OPT(struct options, cores, LOOM_OPT_CPUS, "", "Cores that the program may use. Empty: all that gpuloom "
		"may use."),
	LOOM_OPT(struct options, metrics, LOOM_OPT_STR, "",
			 "Metrics that the program must print, as in 'tasks_per_s:more:tasks/s wait:less:ns': name, "
			 "better direction, unit."),
	LOOM_OPT(struct options, expect, LOOM_OPT_STR, "",
			 "Metrics with values that the program must print, as in 'matches=412 words=9': other values "
			 "are a wrong result."),
	LOOM_OPT(struct options, expect_exit, LOOM_OPT_U32, "0", "Exit status of a right result.", .max = 255),
	LOOM_OPT(struct options, timeout, LOOM_OPT_TIME, "0",
			 "Longest time of one execution. 0: only [run] timeout.", .max = 1e14),
	{.name = NULL},
};

static void destroy(void *self)
{
	struct instance *x = self;
	if (!x)
		return;
	const struct loom_host *host = x->host;
	host->free(host, x->request);
	host->free(host, x);
}

static int check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	struct request *r = host->alloc(host, sizeof(*r));
	const struct instance x = {.host = host, .options = opts, .request = r};
	int code = r ? command_split(&x, r, err) : LOOM_FAIL(host, err, LOOM_ENOMEM, "exec: out of memory");
	host->free(host, r);
	return code ? code : output_check(&x, err);
}

static int create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	struct instance *x = host->alloc(host, sizeof(*x));
	struct request *r = host->alloc(host, sizeof(*r));
	if (!x || !r) {
		host->free(host, x);
		host->free(host, r);
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "exec: out of memory");
	}
	*x = (struct instance){.host = host, .options = opts, .request = r};
	int code = command_read(x, r, err);
	if (code) {
		destroy(x);
		return code;
	}
	*self = x;
	return 0;
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *n,
		struct loom_error *err)
{
	(void)self, (void)layout, (void)err;
	n->global = sizeof(struct block);
	return 0;
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		struct loom_error *err)
{
	const struct instance *x = self;
	struct block *b = view->global;
	struct answer *a = &b->answer;
	(void)layout, (void)err;
	b->request = *x->request;
	memset(a, 0, offsetof(struct answer, out));
	return 0;
}

/* Returns the last line of the program's standard error, for messages. */
static const char *last_error_line(const struct answer *a, char *text, size_t room)
{
	tail_text(text, room, a->err, sizeof(a->err), a->err_total);
	size_t n = strlen(text);
	while (n && (text[n - 1] == '\n' || text[n - 1] == ' '))
		text[--n] = 0;
	char *line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	for (char *p = line; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = ' ';
	return line;
}

static int verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
		  struct loom_report *report, struct loom_error *err)
{
	const struct instance *x = self;
	const struct answer *a = &((struct block *)view->global)->answer;
	const struct loom_host *host = x->host;
	const char *name = x->request->path;
	char text[EXEC_ERR + 1];
	const char *said = last_error_line(a, text, sizeof(text)), *colon = *said ? ": " : "";
	(void)layout;
	if (a->failed)
		return LOOM_FAIL(
		    host, err, LOOM_EUNAVAIL, "exec: %s: cannot run it (%s: %s%s)", name, a->step, strerror(a->failed),
		    a->failed == ENOEXEC ? "; a script needs a first line such as #!/bin/sh, or shell = yes" : "");
	if (!a->started)
		return LOOM_FAIL(host, err, LOOM_EINTERNAL, "exec: %s was not run", name);
	if (a->late)
		return LOOM_FAIL(host, err, LOOM_ETIMEDOUT,
				 "exec: %s: no end after %.3g s ([workload.exec] timeout)%s%.300s", name,
				 (double)x->options->timeout / 1e9, colon, said);
	if (a->status == CHILD_LOST) {
		char how[120];
		child_end_text(a->status, how, sizeof(how));
		return LOOM_FAIL(host, err, LOOM_EWRONG, "exec: %s %s", name, how);
	}
	if (WIFSIGNALED(a->status))
		return LOOM_FAIL(host, err, LOOM_EDIED, "exec: %s was killed by signal %d (%s)%s%.300s",
				 name, WTERMSIG(a->status), strsignal(WTERMSIG(a->status)), colon, said);
	if (WEXITSTATUS(a->status) != (int)x->options->expect_exit)
		return LOOM_FAIL(host, err, LOOM_EWRONG,
				 "exec: %s ended with status %d, a right result has %u%s%.300s", name,
				 WEXITSTATUS(a->status), x->options->expect_exit, colon, said);
	return output_add(x, a, report, err);
}

static const struct loom_workload_ops ops = {
	.size = sizeof(ops),
	.create = create,
	.destroy = destroy,
	.need = need,
	.init = init,
	.tasks = workload_no_tasks,
	.verify = verify,
};

static const struct loom_workload_dev table = {.size = sizeof(table), .kernel = exec_kernel};
static const struct loom_device_code dev = {.size = sizeof(dev), .cpu = &table};

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_exec", "1.0.0", "Apache-2.0",
		   "An external program: its time, its exit status and the metrics that it prints",
		   .opts = rows, .opts_size = sizeof(struct options), .check = check, .ops = &ops, .dev = &dev)
