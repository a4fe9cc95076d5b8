/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/session.h"
#include "facts/write.h"
#include "inspect/crash.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The state of the signal handler. */
static void (*stop_fn)(void *arg);
static void *stop_arg;
static const char *stop_text;
static volatile sig_atomic_t asked, measured;
static pid_t owner;  /* the process that measures; its forks may end by exit() */
static int progress; /* 1: the cursor of the terminal may be in the line of the progress */
#define SETUP_ENDS_S 1

/* Ends the process if a signal has come before the first sample. Before the first sample there is nothing to keep, and
 * a plug-in may allocate gigabytes without checking for a stop. */
static void on_alarm(int number)
{
	static const char text[] = "gpuloom: error: interrupted while the run was set up\n";
	(void)number;
	if (measured || !asked)
		return;
	if (write(2, text, sizeof(text) - 1) < 0)
		_exit(LOOM_EXIT_INTERRUPTED);
	_exit(LOOM_EXIT_INTERRUPTED);
}

static void on_signal(int number)
{
	void (*stop)(void *) = __atomic_load_n(&stop_fn, __ATOMIC_ACQUIRE);
	const char *text = __atomic_load_n(&stop_text, __ATOMIC_RELAXED);
	asked++;
	if (asked > 2) {
		signal(number, SIG_DFL);
		raise(number);
	}
	if (!measured && asked == 1)
		alarm(SETUP_ENDS_S); /* time for an orderly end, before on_alarm() ends the process */
	if (stop)
		stop(stop_arg);
	if (asked == 1 && stop && text && write(2, text, strlen(text)) < 0)
		return;
}

/* Reports a crash of the command: worker, plug-in and what to try. Then the signal ends the process as usual. */
static void on_crash(int number, siginfo_t *info, void *context)
{
	static struct loom__crash crash;
	loom__crash_alone();
	if (info->si_code > 0 || info->si_pid == getpid()) { /* otherwise another process has sent the signal */
		loom__crash_put(&crash, "%sgpuloom: error: ", progress ? "\n" : "");
		loom__crash_say(&crash, number, info, context);
		int in_plugin = crash.file && strstr(crash.file, ".so");
		loom__crash_put(&crash, "\n  To find the cause: `gpuloom validate %s` tests a plug-in; ", in_plugin ? crash.file : "FILE");
		if (crash.file)
			loom__crash_put(&crash, "`addr2line -fe %s 0x%lx` or ", crash.file, crash.offset);
		loom__crash_put(&crash, "`gdb --args gpuloom ...` shows the line%s\n",
				crash.of_cpu ? "; with `--set device.cpu.isolation=process` a crash ends only the process of its "
					       "device" : "");
		if (write(2, crash.text, crash.length) < 0)
			crash.length = 0;
	}
	signal(number, SIG_DFL);
	if (info->si_code <= 0)
		raise(number); /* pending until this handler returns; a fault occurs again by itself */
}

/* Called by exit(). Without this, a plug-in that calls exit(0) would look like a run that has succeeded. */
static void on_exit_call(void)
{
	static const char text[] = "gpuloom: error: a plug-in, or a library that it uses, has called exit(), so there is no result: choose "
				   "another plug-in, or report it to its author\n";
	if (owner != getpid())
		return;
	(void)!write(2, text, sizeof(text) - 1);
	_exit(LOOM_EXIT_FAILURE);
}

void loom__session_end(void)
{
	owner = 0;
}

void loom__catch_signals(void)
{
	owner = getpid();
	atexit(on_exit_call);
	struct sigaction action = {.sa_handler = on_signal};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGALRM, on_alarm);
	if (signal(SIGHUP, SIG_IGN) != SIG_IGN) /* an inherited SIG_IGN, as from nohup, stays */
		sigaction(SIGHUP, &action, NULL);
	progress = isatty(2);
	loom__crash_catch(on_crash, 1);
	signal(SIGPIPE, SIG_IGN); /* with SIGPIPE ignored, writing to a closed pipe fails with an error */
}

void loom__on_stop(void (*stop)(void *arg), void *arg, const char *text)
{
	/* The handler must not call a new function with an old argument, so the function is NULL while the argument
	 * changes. */
	__atomic_store_n(&stop_fn, NULL, __ATOMIC_RELEASE);
	stop_arg = arg;
	__atomic_store_n(&stop_text, text, __ATOMIC_RELAXED);
	__atomic_store_n(&stop_fn, stop, __ATOMIC_RELEASE);
}

void loom__measured(void)
{
	measured = 1;
}

int loom__stop_asked(void)
{
	return asked;
}

int loom__put_result(const struct loom__cli *cli, const char *path, const char *json, int *there)
{
	struct loom_error err;
	int out = loom__names_stdout(path), failed = !out && loom__write_file(path, json, strlen(json), &err);
	*there = failed || out;
	if (failed)
		loom__say_error(cli, "%s; the result goes to standard output", err.text);
	if (*there)
		fprintf(cli->out, "%s\n", json);
	return failed ? LOOM_EXIT_FAILURE : LOOM_EXIT_OK;
}

int loom__check_stdout(struct loom__cli *cli, const char *file, int quiet)
{
	int named = file && *file;
	if (cli->out_state == LOOM__OUT_OPEN || (!named && quiet))
		return LOOM_EXIT_OK;
	if (!named || loom__names_stdout(file))
		return loom__refuse(cli, LOOM_EXIT_FAILURE,
				    "standard output is closed: give a file for the result (see --help)");
	cli->out_state = LOOM__OUT_SPARE;
	return LOOM_EXIT_OK;
}

void loom__log_line(void *arg, int level, const char *who, const char *text)
{
	static const char *const name[] = {"error", "warning", "info", "debug"};
	(void)arg;
	int own = !strcmp(who, "gpuloom");
	loom__print(stderr, "gpuloom: %s: %s%s%s\n", name[level < 0 || level > 3 ? 3 : level], own ? "" : who,
		    own ? "" : ": ", text);
}
