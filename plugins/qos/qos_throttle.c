/* SPDX-License-Identifier: Apache-2.0 */
/* qos_throttle: the governor of the HISS paper, section VI. While requests take more than `limit` of the machine's CPU time,
 * the next request is delayed: at first by 10 us, and then each time by twice as long.
 *
 * In the paper, a background thread samples the CPU time every 10 us. Such a thread would itself take a core, so in this
 * plug-in the worker thread evaluates the same windows before each round. The option charge selects the CPU time that counts:
 * that of the service's code, as in the paper, or that of the whole path. */
#include "service.h"

enum { CHARGE_HANDLER = 0, CHARGE_PATH };

struct throttle_opts {
	double limit;
	uint64_t sample, memory, delay, delay_most;
	uint32_t batch, charge;
};

struct throttle {
	struct qos base;
	const struct throttle_opts *opts;
	uint64_t window_ns, window_used; /* start of the window; CPU time that counts, at the start of the window */
	double share;			 /* share of the machine's CPU time, averaged over about the option `memory` */
	uint64_t delay_ns;               /* the last delay; 0: requests are not delayed */
	uint64_t longest_ends_ns; /* end of a delay of length delay_most; 0: there is no such delay */
};

static const char *const charge_choices[] = {"handler", "path", NULL};
static const struct loom_opt rows[] = {
	LOOM_OPT(struct throttle_opts, limit, LOOM_OPT_SHARE, "5%",
			 "Share of the machine's CPU time above which requests are delayed: th_x of the paper.",
			 .from = 1e-4, .to = 1),
	LOOM_OPT(struct throttle_opts, sample, LOOM_OPT_TIME, "10us",
			 "Shortest window over which the share is measured.", .min = 1e3, .max = 1e9),
	LOOM_OPT(struct throttle_opts, memory, LOOM_OPT_TIME, "1ms",
			 "Time over which windows are averaged.", .min = 1e3, .max = 1e10),
	LOOM_OPT(struct throttle_opts, delay, LOOM_OPT_TIME, "10us", "First delay.", .min = 1e3, .max = 1e9),
	LOOM_OPT(struct throttle_opts, delay_most, LOOM_OPT_TIME, "100ms",
			 "Longest delay. After it one batch is served whatever the share is. Otherwise, with charge = "
			 "path and a delay so short that waking up costs more than the limit, the share would never "
			 "fall.",
			 .min = 1e3, .max = 1e9),
	LOOM_OPT(struct throttle_opts, batch, LOOM_OPT_U32, "1",
			 "Requests that are released at once below the limit.", .min = 1, .max = QOS_BATCH_MAX),
	LOOM_OPT(struct throttle_opts, charge, LOOM_OPT_ENUM, "handler",
			 "CPU time that counts. handler: the time in the service's code. path: all CPU time of the "
			 "path's threads.", .choices = charge_choices),
	{.name = NULL},
};

QOS_CREATE(throttle)

static void sample(struct throttle *p, const struct loom_qos_load *load)
{
	uint64_t used = p->opts->charge == CHARGE_PATH ? load->cpu_ns : load->body_ns;
	if (!p->window_ns || used < p->window_used) { /* a sample has started, which has set the CPU time to 0 */
		p->window_ns = load->now_ns;
		p->window_used = used;
		return;
	}
	uint64_t length = load->now_ns - p->window_ns;
	if (length < p->opts->sample)
		return;
	double share = (double)(used - p->window_used) / ((double)length * load->machine);
	double weight = (double)length / (double)(length + p->opts->memory);
	p->share += weight * (share - p->share);
	p->window_ns = load->now_ns;
	p->window_used = used;
}

static void admit(void *self, const struct loom_qos_load *load, struct loom_qos_round *round)
{
	struct throttle *p = self;
	sample(p, load);
	int below = p->share <= p->opts->limit;
	if (below)
		p->delay_ns = 0;
	if (below || (p->longest_ends_ns && load->now_ns >= p->longest_ends_ns)) {
		p->longest_ends_ns = 0;
		round->requests = round->requests < p->opts->batch ? round->requests : p->opts->batch;
		return;
	}
	p->delay_ns = p->delay_ns ? 2 * p->delay_ns : p->opts->delay;
	if (p->delay_ns >= p->opts->delay_most) {
		p->delay_ns = p->opts->delay_most;
		if (!p->longest_ends_ns)
			p->longest_ends_ns = load->now_ns + p->delay_ns;
	}
	round->requests = 0;
	if (round->retry_ns < load->now_ns + p->delay_ns)
		round->retry_ns = load->now_ns + p->delay_ns;
	round->slack_ns = 0;
}

static const struct loom_qos_ops ops = {QOS_OPS_COMMON, .admit = admit};

QOS_PLUGIN(qos_throttle, "The paper's governor: exponential back-off above a share of CPU time", rows,
	   struct throttle_opts, ops)
