/* SPDX-License-Identifier: Apache-2.0 */
/* The victim: a program on the CPU that has nothing to do with the workers. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/cpu_list.h"
#include "requests.h"
#include "lib/fd.h"
#include "lib/number.h"

#define ARGS 64

/* Returns the rate that `openssl speed` prints: the last line ends with kilobytes per second. The program runs for a
 * fixed time. */
static double openssl_rate(const char *text)
{
	const char *last = strrchr(text, ' ');
	char *end = NULL;
	double rate = last ? number_read(last, &end) : 0;
	return end && *end == 'k' && isfinite(rate) ? rate : 0;
}

/* Reads the end of an output file into `text`, with a NUL. */
static void read_end(int fd, char *text, size_t size)
{
	off_t all = lseek(fd, 0, SEEK_END), most = (off_t)size - 1;
	ssize_t n = pread(fd, text, size - 1, all > most ? all - most : 0);
	text[n > 0 ? n : 0] = 0;
}

/* Reads the last line of the error output that is not empty, without characters that a terminal would interpret. */
static void read_complaint(int fd, struct request_victim_run *run)
{
	char text[1024], *line = text;
	read_end(fd, text, sizeof(text));
	for (char *end = text + strlen(text); end > text && end[-1] == '\n'; *--end = 0)
		;
	if (strrchr(text, '\n'))
		line = strrchr(text, '\n') + 1;
	snprintf(run->complaint, sizeof(run->complaint), "%.*s", (int)sizeof(run->complaint) - 1, line);
	for (char *c = run->complaint; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f) /* also bytes of truncated UTF-8 */
			*c = ' ';
}

/* Reads the victim's rate from its output: as openssl prints it, or from the last line that starts a JSON object. */
static void read_figures(int fd, const char *command, struct request_victim_run *run)
{
	char text[8192];
	read_end(fd, text, sizeof(text));
	if (strstr(command, "openssl speed")) {
		run->rate = openssl_rate(text);
		return;
	}
	char *line = strrchr(text, '{');
	while (line && line > text && line[-1] != '\n')
		line--;
	if (!line)
		return;
	snprintf(run->output, sizeof(run->output), "%.*s", (int)sizeof(run->output) - 1, line);
	double rate = request_victim_value(run, "rate");
	run->rate = rate > 0 ? rate : 0;
}

double request_victim_value(const struct request_victim_run *run, const char *name)
{
	cJSON *o = cJSON_Parse(run->output);
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, name);
	double value = cJSON_IsNumber(item) && isfinite(item->valuedouble) ? item->valuedouble : -1;
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

/* Memory that is shared with a built-in victim. */
struct victim_page {
	int go;
	double rate;
};

/* Starts a built-in victim, which waits for `go`. Returns 0 or an errno. */
static int start_built_in(struct request_job *j, const cpu_set_t *set, struct victim_page *b)
{
	int in_child = child_fork(&j->victim, "victim", 1);
	if (in_child < 0)
		return errno;
	if (!in_child) {
		setpgid(j->victim.pid, j->victim.pid);
		return 0;
	}
	setpgid(0, 0);
	if (set)
		sched_setaffinity(0, sizeof(*set), set);
	while (!__atomic_load_n(&b->go, __ATOMIC_ACQUIRE))
		sched_yield();
	_exit(request_victim_run_built_in(&j->runs, &b->rate) ? 1 : 0);
}

/* Splits the command in `text`, and finds its program. Returns 0 or ENOENT. */
static int read_command(char *text, char *argv[ARGS + 1], char path[4096])
{
	char *rest = NULL;
	int n = 0;
	for (char *one = strtok_r(text, " \t", &rest); one && n < ARGS; one = strtok_r(NULL, " \t", &rest))
		argv[n++] = one;
	argv[n] = NULL;
	if (!n || (!strchr(argv[0], '/') && child_find(argv[0], path, 4096)))
		return ENOENT;
	if (strchr(argv[0], '/'))
		snprintf(path, 4096, "%s", argv[0]);
	return 0;
}

static void close_files(const struct child_program *p)
{
	const int fd[] = {p->in, p->out, p->err};
	for (size_t i = 0; i < sizeof(fd) / sizeof(fd[0]); i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

void request_run_victim(struct request_job *j, struct request_victim_run *run)
{
	char text[4096], path[4096], *argv[ARGS + 1];
	const struct request_victim *v = &j->runs;
	const char *step;
	struct rusage used = {0};
	cpu_set_t set;
	int counter[REQUEST_EVENTS] = {-1, -1, -1};
	struct victim_page *b = NULL;
	struct child victim;
	*run = (struct request_victim_run){0};
	memcpy(text, v->command, sizeof(text));
	loom__cpu_list(j->opts->victim_cores, &set, sizeof(set));
	if (!v->built_in && (run->failed = read_command(text, argv, path)))
		return;
	struct child_program program = {.path = path,
					.argv = argv,
					.in = loom_fd(v->input_mib ? request_victim_input(v->header, v->input_mib)
								   : open("/dev/null", O_RDONLY | O_CLOEXEC)),
					.out = loom_fd(memfd_create("victim", MFD_CLOEXEC)),
					.err = loom_fd(memfd_create("victim", MFD_CLOEXEC)),
					.cores = CPU_COUNT(&set) ? &set : NULL,
					.cores_bytes = sizeof(set),
					.end = SIGKILL};
	b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (program.in < 0 || program.out < 0 || program.err < 0 || b == MAP_FAILED) {
		run->failed = errno;
		goto end;
	}
	uint64_t begin = now_ns();
	pthread_mutex_lock(&j->lock);
	run->failed = j->leave      ? ECANCELED
		      : v->built_in ? start_built_in(j, program.cores, b)
				    : child_start(&j->victim, &program, &step);
	victim = j->victim;
	pthread_mutex_unlock(&j->lock);
	if (run->failed)
		goto end;
	if (j->opts->victim_counters)
		request_counters_open(victim.pid, counter);
	__atomic_store_n(&b->go, 1, __ATOMIC_RELEASE);
	child_await(&victim);
	run->wall_ns = now_ns() - begin;
	/* The lock keeps request_stop_phases() from signalling a process id that has been reused. */
	pthread_mutex_lock(&j->lock);
	run->status = child_wait(&j->victim, &used);
	pthread_mutex_unlock(&j->lock);
	run->user_ns = nanoseconds(&used.ru_utime);
	run->system_ns = nanoseconds(&used.ru_stime);
	if (counter[0] >= 0)
		run->counted = !request_counters_read(counter, run->count);
	request_counters_close(counter);
	if (v->built_in)
		run->rate = b->rate;
	else
		read_figures(program.out, v->command, run);
	read_complaint(program.err, run);
end:
	if (b != MAP_FAILED)
		munmap(b, sizeof(*b));
	close_files(&program);
}
