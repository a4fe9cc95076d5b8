/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of the workloads that post service requests: options, the victim, and the phases of a sample. */
#ifndef WORKLOAD_REQUESTS_H
#define WORKLOAD_REQUESTS_H

#include <pthread.h>

#include "lib/child.h"
#include "../common/host.h"
#include "requests.dev.h"

/* Options that these workloads share. They are the first member of a workload's options. */
struct request_opts {
	const char *victim, *victim_cores;
	uint64_t duration, settle;
	uint64_t pause;
	uint32_t tenants, outstanding;
	uint8_t victim_counters, silent;
};

#define REQUEST_ROW(S, field, opt_type, default_, help_, ...)                                          \
	{                                                                                          \
		.name = #field, .dflt = default_, .help = help_,                                   \
		.offset = offsetof(S, common) + offsetof(struct request_opts, field),                  \
		.size = sizeof(((struct request_opts *)0)->field), .type = opt_type, __VA_ARGS__       \
	}

#define REQUEST_ROWS(S)                                                                                \
	REQUEST_ROW(S, victim, LOOM_OPT_STR, "", \
			 "A command that runs beside the workers twice per sample, without and with requests, to " \
			 "compare its speed. Blanks separate its arguments. Empty: none. Or a name: @x264, @vips, " \
			 "@openssl and @gzip run these programs, if they are installed, with work for at most a second; " \
			 "@memory misses caches, and threads of @barrier wait for each other: both are built in; @idle: " \
			 "none.", \
			 .flags = LOOM_OPT_TRUST, .section = "workload.requests"), \
	REQUEST_ROW(S, victim_cores, LOOM_OPT_CPUS, "", \
			 "Cores that the victim may use. Empty: all.", .min = 0, .section = "workload.requests"), \
	REQUEST_ROW(S, victim_counters, LOOM_OPT_BOOL, "no", \
			 "Whether to count the victim's misses of the first data cache and its mispredicted branches, in " \
			 "user mode.", .section = "workload.requests"), \
	REQUEST_ROW(S, duration, LOOM_OPT_TIME, "0", \
			 "Length of a sample without a victim (0: until the job is done), and of each run of a victim that " \
			 "is built in (0: a second).", \
			 .min = 0, .max = 1e12, .section = "workload.requests"), \
	REQUEST_ROW(S, silent, LOOM_OPT_BOOL, "no", \
			 "Whether workers post no requests in a sample without a victim. Such samples, which need a " \
			 "duration, are a baseline for samples with requests.", .section = "workload.requests"), \
	REQUEST_ROW(S, settle, LOOM_OPT_TIME, "20ms", \
			 "Pause before each run of the victim.", \
			 .min = 0, .max = 1e11, .section = "workload.requests"), \
	REQUEST_ROW(S, pause, LOOM_OPT_TIME, "0", \
			 "Sleep of a worker that can neither post nor continue, or has taken 512 answers, so that a " \
			 "CPU that models the accelerator is idle. The worker then posts at most 512 requests per " \
			 "pause. 0: it spins.", .min = 0, .max = 1e12, .section = "workload.requests"), \
	REQUEST_ROW(S, tenants, LOOM_OPT_U32, "1", \
			 "Tenants among which the workers are divided evenly.", \
			 .min = 1, .max = LOOM_MAX_TENANTS, .section = "workload.requests"), \
	REQUEST_ROW(S, outstanding, LOOM_OPT_U32, "64", \
			 "Most requests of one worker in flight; a power of two.", \
			 .min = 1, .max = 65536, .section = "workload.requests")

/* Kinds of victim: a command, or one of two that are built in. */
enum request_built_in { REQUEST_COMMAND, REQUEST_MEMORY, REQUEST_BARRIER };

/* What the option `victim` means on this machine. */
struct request_victim {
	char command[4096]; /* "": no victim */
	const char *package; /* package of Debian that has the program; "": not known */
	const char *header;  /* the start of its standard input, which `input_mib` of text follow */
	uint32_t cores, input_mib;
	enum request_built_in built_in;
	uint64_t built_in_ns; /* how long a victim that is built in runs */
};

enum { REQUEST_INSTRUCTIONS, REQUEST_L1D_MISSES, REQUEST_BRANCH_MISSES, REQUEST_EVENTS };

/* The result of one run of the victim. */
struct request_victim_run {
	uint64_t wall_ns, user_ns, system_ns;
	int status;	   /* status from child_wait() */
	int failed;	   /* errno if the victim could not be started, else 0 */
	double rate;	   /* the rate that the victim printed; 0: none */
	int counted;
	double count[REQUEST_EVENTS];
	char output[4096]; /* JSON line of the victim's output; "": none */
	char complaint[200]; /* last line of the victim's error output */
};

enum request_phase { REQUEST_IDLE = 0, REQUEST_ARMED, REQUEST_RUNNING, REQUEST_OVER };

/* What the instances of these workloads have in common. It is their first member. */
struct request_job {
	const struct loom_host *host;
	const struct request_opts *opts;
	struct request_victim runs;
	const char *name;
	struct loom_tenant tenant[LOOM_MAX_TENANTS];
	struct loom_grant *grant;
	uint32_t grants, workers;
	/* State of the thread that runs the phases of a sample. */
	pthread_t thread;
	int threaded;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum request_phase phase; /* protected by `lock` */
	int leave;	      /* protected by `lock` */
	uint32_t sample;
	struct request_control *control;
	struct request_counters *const *counters;
	struct request_victim_run alone, beside;
	uint64_t noisy_ns, noisy_done; /* duration of the phase with requests; number of its requests */
	struct child victim;   /* protected by `lock` */
};

/* Op `check` of a plug-in whose options start with struct request_opts. */
int request_check(const struct loom_host *host, const void *opts, struct loom_error *err);
void request_job_create(struct request_job *j, const struct loom_host *host, const struct request_opts *opts,
			const char *name);
void request_job_free(struct request_job *j);
/* Ops of struct loom_workload_ops. request_interrupt() ends a sample: workers exit, including those that sleep. */
int request_tenants(void *self, const struct loom_layout *layout, const struct loom_tenant **tenant, uint32_t *n,
		    struct loom_error *err);
int request_start_phases(void *self, const struct loom_layout *layout, const struct loom_view *view,
			 const struct loom_segments *segments, struct loom_error *err);
void request_stop_phases(void *self);
void request_interrupt(void *self);
uint32_t request_job_tenant_of(const struct request_job *j, uint32_t worker);
/* Called before a sample. Clears control words and counters, and lets the thread wait until the workers have started.
 * Fills in the common members of *plan, and copies it to all devices. */
void request_job_arm(struct request_job *j, const struct loom_layout *layout, const struct loom_view *view,
		     struct request_plan *plan);
/* Called after a sample. Reports its metrics. Returns LOOM_EWRONG if answers were wrong. */
int request_job_report(struct request_job *j, struct loom_report *report, struct loom_error *err);

/* victims.c */
int request_victim_check(const struct loom_host *host, const char *victim, struct loom_error *err);
void request_victim_set(const char *victim, uint32_t cores, uint64_t duration, struct request_victim *out);
int request_victim_input(const char *header, uint32_t mib); /* returns a file, or -1 and errno */
int request_victim_run_built_in(const struct request_victim *v, double *rate);
/* victim_counters.c. request_counters_open() opens all counters and returns 0, or opens none and returns an errno.
 * The counters count a process, and the processes that it starts afterwards. */
int request_counters_open(pid_t pid, int fd[REQUEST_EVENTS]);
void request_counters_close(int fd[REQUEST_EVENTS]);
int request_counters_read(const int fd[REQUEST_EVENTS], double count[REQUEST_EVENTS]); /* -1: nothing was counted */
int request_counters_check(const struct request_job *j, struct loom_error *err);
/* victim.c */
void request_run_victim(struct request_job *j, struct request_victim_run *run);
double request_victim_value(const struct request_victim_run *run, const char *name); /* -1: the run did not print it */

#endif
