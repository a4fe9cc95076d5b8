/* SPDX-License-Identifier: Apache-2.0 */
/* The victim: an unrelated program on the CPU. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "ssr.h"

#define ARGS 64

static void take_cores(const char *list, cpu_set_t *set)
{
	CPU_ZERO(set);
	for (const char *s = list; *s;) {
		char *end;
		unsigned long from = strtoul(s, &end, 10), to = from;
		if (end == s)
			return;
		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		for (; from <= to && from < CPU_SETSIZE; from++)
			CPU_SET(from, set);
		s = end + (*end == ',');
	}
}

/* `openssl speed` runs for a time of its own: its last line ends in thousands of bytes per second. */
static double openssl_rate(const char *text)
{
	const char *last = strrchr(text, ' ');
	char *end = NULL;
	double rate = last ? strtod(last, &end) : 0;
	return end && *end == 'k' ? rate : 0;
}

/* The last line that looks like a JSON object, or what a program that we know says of its speed. */
static void read_figures(int fd, const char *command, struct ssr_run *run)
{
	char text[8192];
	off_t size = lseek(fd, 0, SEEK_END), from = size > 8191 ? size - 8191 : 0;
	ssize_t n = pread(fd, text, sizeof(text) - 1, from);
	text[n > 0 ? n : 0] = 0;
	if (strstr(command, "openssl speed")) {
		run->rate = openssl_rate(text);
		return;
	}
	char *line = strrchr(text, '{');
	while (line && line > text && line[-1] != '\n')
		line--;
	if (!line)
		return;
	snprintf(run->figures, sizeof(run->figures), "%.*s", (int)sizeof(run->figures) - 1, line);
	double rate = ssr_victim_figure(run, "rate");
	run->rate = rate > 0 ? rate : 0;
}

double ssr_victim_figure(const struct ssr_run *run, const char *name)
{
	cJSON *o = cJSON_Parse(run->figures);
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, name);
	double value = cJSON_IsNumber(item) ? item->valuedouble : -1;
	cJSON_Delete(o);
	return value;
}

static uint64_t nanoseconds(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_usec * 1000u;
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Only what is safe in the child of a program with threads. */
static _Noreturn void become(char **argv, const cpu_set_t *set, int out, int null, int failure)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	if (CPU_COUNT(set) && sched_setaffinity(0, sizeof(*set), set))
		goto failed;
	if (dup2(null, 0) >= 0 && dup2(out, 1) >= 0 && dup2(null, 2) >= 0)
		execvp(argv[0], argv);
failed:;
	int code = errno;
	if (write(failure, &code, sizeof(code)) < 0)
		_exit(126);
	_exit(127);
}

void ssr_victim_run(struct ssr_job *j, struct ssr_run *run)
{
	char text[4096], *argv[ARGS + 1], *rest = NULL;
	int n = 0, said[2] = {-1, -1};
	struct rusage used = {0};
	cpu_set_t set;
	*run = (struct ssr_run){0};
	strncpy(text, j->opts->victim, sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	for (char *one = strtok_r(text, " \t", &rest); one && n < ARGS; one = strtok_r(NULL, " \t", &rest))
		argv[n++] = one;
	argv[n] = NULL;
	take_cores(j->opts->victim_cores, &set);
	int out = memfd_create("victim", MFD_CLOEXEC);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (out < 0 || null < 0 || pipe2(said, O_CLOEXEC)) {
		run->failed = errno;
		goto end;
	}
	uint64_t begin = now_ns();
	pthread_mutex_lock(&j->lock);
	pid_t pid = j->leave ? -1 : fork();
	if (pid == 0)
		become(argv, &set, out, null, said[1]);
	j->victim_pid = pid > 0 ? (int)pid : 0;
	pthread_mutex_unlock(&j->lock);
	close(said[1]);
	said[1] = -1;
	if (pid < 0) {
		run->failed = errno ? errno : ECANCELED;
		goto end;
	}
	siginfo_t ended;
	while (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT) && errno == EINTR)
		;
	run->wall_ns = now_ns() - begin;
	/* Under the lock, so that nobody kills a number that is another's by now. */
	pthread_mutex_lock(&j->lock);
	while (wait4(pid, &run->status, 0, &used) < 0 && errno == EINTR)
		;
	j->victim_pid = 0;
	pthread_mutex_unlock(&j->lock);
	run->user_ns = nanoseconds(&used.ru_utime);
	run->system_ns = nanoseconds(&used.ru_stime);
	if (read(said[0], &run->failed, sizeof(run->failed)) != sizeof(run->failed))
		run->failed = 0;
	read_figures(out, j->opts->victim, run);
end:
	for (int i = 0; i < 2; i++)
		if (said[i] >= 0)
			close(said[i]);
	if (out >= 0)
		close(out);
	if (null >= 0)
		close(null);
}
