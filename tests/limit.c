/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a command that makes no progress. The tests use this program in place of timeout(1), because the result of
 * timeout(1) depends on the speed of the machine.
 *   limit SECONDS COMMAND...
 * SECONDS is the limit on an idle machine. While there are more runnable threads than cores (/proc/loadavg), the clock
 * of the limit runs slower in proportion. So a busy machine does not end a test, but an endless loop is ended. The
 * command is also ended when its processes together have used less than 1 % of what a thread gets for SECONDS / 2, at
 * least a minute; then gdb prints their stacks if it is installed. The exit status is the command's, 128 + N if signal N ended it, or 123 after the limit. After the limit, a
 * message on stderr names the bound and the processes. The command's processes, orphans included, then get SIGTERM, and
 * SIGKILL after ten seconds. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef LIMIT_SCALE
#define LIMIT_SCALE 1 /* the factor of all limits: above 1 for slow builds (sanitizers, perturbed schedules) */
#endif
enum { PASSED = 123, BROKEN = 125, GRACE_S = 10, MAX = 4096 };

struct process {
	pid_t pid, parent;
	char state;
	char name[24];
	double cpu; /* in seconds, including children for which the process has waited */
	int ours;
};

static struct process all[MAX]; /* the processes of the machine, up to MAX */
static int count;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int read_process(const char *pid, struct process *p)
{
	char path[300], text[1024], *after;
	unsigned long user, system;
	long users, systems;
	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	/* The name may contain any character, also a parenthesis. */
	if (!(after = strrchr(text, ')')) ||
	    sscanf(after + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &p->state, &p->parent,
		   &user, &system, &users, &systems) != 6)
		return 0;
	*after = 0;
	p->pid = atoi(pid);
	snprintf(p->name, sizeof(p->name), "%s", strchr(text, '(') ? strchr(text, '(') + 1 : "");
	p->cpu = ((double)user + (double)system + (double)users + (double)systems) / (double)sysconf(_SC_CLK_TCK);
	p->ours = 0;
	return 1;
}

/* Marks the descendants of this process in `all`, and returns their processor time. */
static double usage(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	double cpu = 0;
	count = 0;
	while (proc && count < MAX && (entry = readdir(proc)))
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
			count += read_process(entry->d_name, &all[count]);
	if (proc)
		closedir(proc);
	/* Process numbers wrap, so a child may precede its parent in `all`. So the loop repeats until it finds no more
	 * children. */
	for (int more = 1; more;) {
		more = 0;
		for (int i = 0; i < count; i++) {
			int child = all[i].parent == getpid();
			for (int j = 0; j < count && !child && !all[i].ours; j++)
				child = all[j].ours && all[j].pid == all[i].parent;
			if (child && !all[i].ours)
				more = all[i].ours = 1;
		}
	}
	for (int i = 0; i < count; i++)
		if (all[i].ours || all[i].pid == getpid()) /* the time of this process includes that of reaped orphans */
			cpu += all[i].cpu;
	return cpu;
}

static void signal_all(int signal_)
{
	usage();
	for (int i = 0; i < count; i++)
		if (all[i].ours)
			kill(all[i].pid, signal_);
}

/* Returns the speed of the limit's clock: 1, or the share of a core that a runnable thread gets. lib.sh and pace.py
 * have the same function. */
static double pace(void)
{
	double load = 0, running = 0, cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
	FILE *f = fopen("/proc/loadavg", "re");
	if (f && fscanf(f, "%lf %*f %*f %lf", &load, &running) < 2)
		load = running = 0;
	if (f)
		fclose(f);
	load = load > running ? load : running; /* the mean over a minute or the present value */
	return load > cores ? cores / load : 1;
}

static pid_t command;
static int ended, ended_as;

/* Waits for a signal, but at most `seconds`, then reaps ended processes. Forwards signals other than SIGCHLD to the
 * command's processes. */
static void rest(const sigset_t *set, double seconds)
{
	struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
	int got = sigtimedwait(set, NULL, &t), status;
	if (got > 0 && got != SIGCHLD)
		signal_all(got);
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
		if (pid == command) {
			ended = 1;
			ended_as = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		}
}

/* Prints the stacks of a process whose threads all wait, if gdb is installed. */
static void show_stacks(pid_t pid)
{
	char text[160];
	snprintf(text, sizeof(text),
		 "timeout 20 gdb -p %d -batch -ex 'thread apply all backtrace 12' 2>/dev/null </dev/null | grep '^[#T]' >&2", pid);
	signal(SIGCHLD, SIG_DFL);
	if (system(text) < 0)
		perror("limit: system");
}

static void end_all(const sigset_t *set)
{
	signal_all(SIGTERM);
	signal_all(SIGCONT);
	for (double until = now() + GRACE_S; now() < until;) {
		int left = 0;
		rest(set, 0.1);
		usage();
		for (int i = 0; i < count; i++)
			left += all[i].ours;
		if (!left)
			return;
	}
	signal_all(SIGKILL);
	rest(set, 0.1);
}

int main(int argc, char **argv)
{
	char *rest_of;
	double seconds = argc > 2 ? strtod(argv[1], &rest_of) : 0;
	if (argc < 3 || *rest_of || !(seconds > 0)) {
		fprintf(stderr, "limit SECONDS COMMAND...\n");
		return BROKEN;
	}
	seconds *= LIMIT_SCALE;
	sigset_t set, before;
	sigemptyset(&set);
	const int passed_on[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(*passed_on); i++)
		sigaddset(&set, passed_on[i]);
	sigprocmask(SIG_BLOCK, &set, &before);
	signal(SIGCHLD, SIG_DFL);
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans become children of this process */
	setpgid(0, 0);			  /* signals that the command sends to its group do not reach the caller's */
	signal(SIGTTIN, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	setenv("LOOM_TEST_LIMIT", argv[1], 1);
	command = fork();
	if (command < 0) {
		perror("limit: fork");
		return BROKEN;
	}
	if (command == 0) {
		signal(SIGTTIN, SIG_DFL);
		signal(SIGTTOU, SIG_DFL);
		sigprocmask(SIG_SETMASK, &before, NULL);
		execvp(argv[2], argv + 2);
		fprintf(stderr, "limit: cannot run %s: %s\n", argv[2], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	double idle_after = seconds / 2 > 60 ? seconds / 2 : 60;
	double begin = now(), last = begin, spent = 0, seen = 0, seen_at = begin;
	const char *why = NULL;
	int waits = 0;
	char text[100];
	while (!ended && !why) {
		rest(&set, 1);
		double t = now();
		if (ended || t - last < 0.9)
			continue;
		/* A step counts as at most 5 s, because in a longer step the machine was stopped. */
		double speed = pace();
		spent += (t - last < 5 ? t - last : 5) * speed;
		last = t;
		double cpu = usage(), more = cpu > seen ? cpu - seen : seen - cpu;
		if (more >= 0.01 * idle_after * speed)
			seen = cpu, seen_at = t;
		if (spent > seconds)
			snprintf(text, sizeof(text), "no end after %.0f s of an idle machine (%.0f s)", seconds,
				 t - begin),
			    why = text;
		else if (t - seen_at > idle_after)
			snprintf(text, sizeof(text), "no progress for %.0f s: its processes use no processor time",
				 t - seen_at),
			    why = text, waits = 1;
	}
	if (!why)
		return ended_as;
	fflush(stdout);
	fprintf(stderr, "limit: %s:", why);
	for (int i = 2; i < argc; i++)
		fprintf(stderr, " %s", argv[i]);
	fprintf(stderr, "\n");
	for (int i = 0; i < count; i++)
		if (all[i].ours)
			fprintf(stderr, "limit:   %d %s, state %c, %.2f s of processor time\n", all[i].pid, all[i].name,
				all[i].state, all[i].cpu);
	for (int i = 0; i < count && waits; i++)
		if (all[i].ours)
			show_stacks(all[i].pid);
	end_all(&set);
	return PASSED;
}
