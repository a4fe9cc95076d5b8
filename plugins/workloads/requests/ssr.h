/* SPDX-License-Identifier: Apache-2.0 */
/* The host's side of the workloads that ask for services: a victim beside them, and the phases of a
 * sample. */
#ifndef WORKLOAD_SSR_H
#define WORKLOAD_SSR_H

#include <pthread.h>

#include "../../shared/child/child.h"
#include "../../shared/workload/host.h"
#include "ssr.dev.h"

/* Options that all of them have, first in theirs. */
struct ssr_opts {
	const char *victim, *victim_cores;
	uint64_t duration, settle;
	uint64_t pause;
	uint32_t tenants, outstanding;
};

#define SSR_ROW(S, field, opt_type, default_, help_, ...)                                          \
	{                                                                                          \
		.name = #field, .dflt = default_, .help = help_,                                   \
		.offset = offsetof(S, common) + offsetof(struct ssr_opts, field),                  \
		.size = sizeof(((struct ssr_opts *)0)->field), .type = opt_type, __VA_ARGS__       \
	}

#define SSR_ROWS(S)                                                                                \
	SSR_ROW(S, victim, LOOM_OPT_STR, "", \
			 "A command that runs beside the workers twice per sample, without and with requests, to " \
			 "compare its speed. Blanks separate its arguments. Empty: none.", \
			 .flags = LOOM_OPT_TRUST, .section = "workload.requests"), \
	SSR_ROW(S, victim_cores, LOOM_OPT_CPUS, "", \
			 "Cores that the victim may use. Empty: all.", .min = 0, .section = "workload.requests"), \
	SSR_ROW(S, duration, LOOM_OPT_TIME, "0", \
			 "Length of a sample without a victim. 0: until the job is done.", \
			 .min = 0, .max = 1e12, .section = "workload.requests"), \
	SSR_ROW(S, settle, LOOM_OPT_TIME, "20ms", \
			 "Pause before each run of the victim.", \
			 .min = 0, .max = 1e11, .section = "workload.requests"), \
	SSR_ROW(S, pause, LOOM_OPT_TIME, "0", \
			 "Sleep of a worker that can neither request nor continue, or has taken 512 responses, to " \
			 "keep a CPU that models the accelerator idle. It then sends at most 512 requests per pause. " \
			 "0: it spins.", .min = 0, .max = 1e12, .section = "workload.requests"), \
	SSR_ROW(S, tenants, LOOM_OPT_U32, "1", \
			 "Tenants among which the workers are divided evenly.", \
			 .min = 1, .max = LOOM_MAX_TENANTS, .section = "workload.requests"), \
	SSR_ROW(S, outstanding, LOOM_OPT_U32, "64", \
			 "Requests of one worker in flight: a power of two.", \
			 .min = 1, .max = 65536, .section = "workload.requests")

/* One run of the victim. */
struct ssr_run {
	uint64_t wall_ns, user_ns, system_ns;
	int status;	   /* as from child_wait() */
	int failed;	   /* errno: it could not be started */
	double rate;	   /* what it said of itself; 0: nothing */
	char figures[4096]; /* the last line that it printed */
	char complaint[200]; /* ... and that it said as an error */
};

enum ssr_phase { SSR_IDLE = 0, SSR_ARMED, SSR_RUNNING, SSR_OVER };

struct ssr_job {
	const struct loom_host *host;
	const struct ssr_opts *opts;
	const char *name;
	struct loom_tenant tenant[LOOM_MAX_TENANTS];
	struct loom_grant *grant;
	uint32_t grants, workers;
	/* The phases of a sample, by a thread of the host. */
	pthread_t thread;
	int threaded;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum ssr_phase phase; /* under `lock` */
	int leave;	      /* under `lock` */
	uint32_t sample;
	struct ssr_control *control;
	struct ssr_tally *const *tally;
	struct ssr_run alone, beside;
	uint64_t noisy_ns, noisy_done; /* of the part with requests */
	struct child victim;   /* under `lock` */
};

/* Of a plug-in whose options begin with struct ssr_opts. */
int ssr_check(const struct loom_host *host, const void *opts, struct loom_error *err);
void ssr_job_create(struct ssr_job *j, const struct loom_host *host, const struct ssr_opts *opts, const char *name);
void ssr_job_free(struct ssr_job *j);
int ssr_job_tenants(struct ssr_job *j, const struct loom_layout *layout,
		    const struct loom_tenant **tenant, uint32_t *n, struct loom_error *err);
uint32_t ssr_job_tenant_of(const struct ssr_job *j, uint32_t worker);
/* Before a sample: control words and tallies are cleared, the thread waits for the workers. The devices get *plan, with what
 * all jobs have in common filled in. */
void ssr_job_arm(struct ssr_job *j, const struct loom_layout *layout, const struct loom_view *view, struct ssr_plan *plan);
int ssr_job_start(struct ssr_job *j, struct loom_error *err);
void ssr_job_stop(struct ssr_job *j);
/* Ends the sample: workers leave, also those that rest. */
void ssr_job_interrupt(struct ssr_job *j);
/* After a sample: its figures; LOOM_EWRONG when answers were wrong. */
int ssr_job_report(struct ssr_job *j, struct loom_report *report, struct loom_error *err);

/* victim.c */
void ssr_victim_run(struct ssr_job *j, struct ssr_run *run);
double ssr_victim_figure(const struct ssr_run *run, const char *name); /* -1: it said no such */

#endif
